"""Progress bars that move on a screen and do not flood a log."""

import sys

from tqdm import tqdm


def progress(total: int, name: str, unit: str = "it", shown: bool = True) -> tqdm:
    """Return a bar on standard error: lively in a terminal, every other second in a notebook, every ten in a log."""
    if sys.stderr.isatty():
        interval = 0.1
    else:
        interval = 2.0 if "ipykernel" in sys.modules else 10.0
    return tqdm(total=total, desc=name, unit=unit, disable=not shown, mininterval=interval, maxinterval=interval)
