"""One-time warnings, which name the line of the user's own program."""

import sys
import warnings
from typing import Any

BLIND = (
    "observation %s is so far from zero that the sigmoid, which bounds unlimited observations, is flat there: to the "
    "agent such states are one.  Give bounds=[(low, high), ...] where observations vary, or other slopes="
)


class Advice:
    """The warnings that an agent has given."""

    def __init__(self, *quiet: str):
        self.given = set(quiet)

    def once(self, message: str, *about: Any) -> None:
        """Warn at the line that called this package, unless that has been said."""
        if message in self.given:
            return
        self.given.add(message)
        level, frame = 2, sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("spaql."):
            level, frame = level + 1, frame.f_back
        warnings.warn(f"{message % about} (this is said once)", stacklevel=level)
