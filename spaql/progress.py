"""Progress bars that move on a screen and do not flood a log."""

import os
import sys

from tqdm import tqdm


def progress(total: int, name: str, unit: str = "it", shown: bool = True) -> tqdm:
    """Return a bar on standard error: lively on a screen, every ten seconds in a log or under papermill."""
    interval = 0.1 if sys.stderr is not None and sys.stderr.isatty() else 10.0
    if "ipykernel" in sys.modules and "JPY_SESSION_NAME" in os.environ:  # a server's kernel; papermill does not name it
        interval = 1.0
    return tqdm(
        total=total,
        desc=name,
        unit=unit,
        disable=not shown or sys.stderr is None,  # as in programs without a window
        mininterval=interval,
        maxinterval=interval,
        unit_scale=total > 9999,
    )
