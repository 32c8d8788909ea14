"""One-time warnings, which name the line of the user's own program."""

import logging
import sys
import warnings
from collections.abc import Callable
from typing import Any

FIRST_LOOK = 10  # iterations after which an agent looks at what it sees, and again whenever they have doubled
CROWDED = 4  # depth of a cell that should not hold nearly all that is seen: 1/16 of the range of every variable
MANY = 7  # observations from which on what they cost is said

log = logging.getLogger(__name__)


def warn(message: str) -> None:
    """Warn of something at the line that called this package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("spaql."):
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{message} (this is said once)", stacklevel=level)


def say_dimensions(observations: int, one_at_a_time: bool) -> None:
    """Say, before hours are spent, what many observations cost."""
    if observations < MANY:
        return
    cost = "cells are cut across one of them at a time, and each waits for visits of its own"
    if not one_at_a_time:
        cost = f"a cell that splits makes {2**observations:,} new ones"
    log.warning(
        "%d observations: %s.  Leave out what a good action need not know, observe an angle rather than its cosine and "
        "sine (SPAQLR takes angles=); if 100,000 samples earn hardly more than Random, take another method",
        *(observations, cost),
    )


class Advice:
    """What an agent has to say while it learns, and what it has said already."""

    def __init__(self, unlimited: bool, quiet: bool):
        self.unlimited = unlimited  # nothing but the paper's horizon ends episodes, and nobody has been told
        self.crowd_told = quiet
        self.outside_told = False
        self.next_look = FIRST_LOOK

    def if_cut_off(self, longest: float, horizon: int) -> None:
        """Warn if episodes so long run into the paper's horizon, and nothing else would have ended them."""
        if self.unlimited and longest >= horizon:
            self.unlimited = False
            warn(
                f"episodes come to {horizon} steps, the paper's horizon, and end there: the environment declares no "
                "limit of its own.  Give horizon=, or a gymnasium.wrappers.TimeLimit",
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
                "are one state.  Give bounds=[(low, high), ...] where they vary, or other slopes=",
            )

    def outside(self, observation: Any) -> None:
        """Warn of an observation outside its bounds."""
        if not self.outside_told:
            self.outside_told = True
            warn(
                f"observation {observation} is outside the bounds that the environment declares or that were given; "
                "it is clipped to them, as will be others",
            )
