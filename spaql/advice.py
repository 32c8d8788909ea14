"""What a user should be told, once: by warnings that name the line of the user's own program."""

import sys
import warnings
from collections.abc import Callable

FIRST_LOOK = 10  # iterations after which an agent looks at what it sees, and again whenever they have doubled
CROWDED = 4  # depth of a cell that should not hold nearly all that is seen: 1/16 of the range of every variable


def warn(message: str) -> None:
    """Warn of something at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("spaql."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{message} (this is said once)", stacklevel=level)


class Advice:
    """What an agent has to say while it learns, and what it has said already."""

    def __init__(self, unlimited: bool, quiet: bool):
        self.unlimited = unlimited  # nothing but the paper's horizon ends episodes, and nobody has been told
        self.crowd_told = quiet
        self.next_look = FIRST_LOOK

    def if_cut_off(self, longest: float, horizon: int) -> None:
        """Warn if episodes so long run into the paper's horizon, and nothing else would have ended them."""
        if self.unlimited and longest >= horizon:
            self.unlimited = False
            warn(
                f"episodes come to {horizon} steps, the paper's horizon, and end there: the environment declares no "
                "limit of its own.  Give horizon=, or a gymnasium.wrappers.TimeLimit"
            )

    def if_crowded(self, iterations: int, crowded: Callable[[], bool]) -> None:
        """Warn if nearly all that was seen is one state; this looks seldom, as it costs time."""
        if self.crowd_told or iterations < self.next_look:
            return
        self.next_look = 2 * iterations
        self.crowd_told = crowded()
        if self.crowd_told:
            warn(
                "nearly all observations fall into one cell, 1/16 of the range of every variable: to the agent they "
                "are one state.  Give bounds=[(low, high), ...] where they vary, or other slopes="
            )
