"""Progress bars that move on a screen, do not flood a log, and never stop what they report on."""

import contextlib
import io
import os
import sys
from typing import Any, TextIO

from tqdm import tqdm


class Screen:
    """Standard error for a bar: if it is full, closed meanwhile or cannot say something, the bar goes without."""

    def __init__(self, stream: TextIO):
        self.stream = stream

    def write(self, text: str) -> None:
        """Write, if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.write(text)

    def flush(self) -> None:
        """Send what was written on its way, if that is possible."""
        with contextlib.suppress(OSError, ValueError):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def __eq__(self, other: object) -> bool:  # a bar asks whether it is on standard error, to know its width
        return other is self.stream

    __hash__ = None  # type: ignore[assignment]


def progress(total: int, name: str, unit: str = "it", shown: bool = True, delay: float = 0.0) -> tqdm:
    """Return a bar on standard error: lively on a screen, every ten seconds in a log or under papermill.

    It appears after `delay` seconds.
    """
    stream = sys.stderr
    if stream is None or getattr(stream, "closed", False):  # as for services and programs without a window
        return tqdm(total=total, file=io.StringIO(), disable=True)
    if stream.isatty():
        interval = 0.1
    else:
        # A Jupyter server names the session of the kernels it starts; papermill does not.
        interval = 1.0 if "ipykernel" in sys.modules and "JPY_SESSION_NAME" in os.environ else 10.0
    return tqdm(
        total=total,
        desc=name,
        unit=unit,
        file=Screen(stream),
        disable=not shown,
        mininterval=interval,
        maxinterval=interval,
        unit_scale=total > 9999,
        delay=delay,
    )
