"""What may be wrong with a stored record."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

MADE_AGAIN = "; delete it, and it is made again"


class Stale(Exception):
    """A stored record has numbers of another version than this code computes."""


class Damaged(Exception):
    """A stored record is not what was written."""


class DamagedPack(Damaged):
    """A Parquet file of stored records is not what was written."""


@contextlib.contextmanager
def reading(path: Path, advice: str = "") -> Iterator[None]:
    """Say of whatever a file's contents make its readers raise that the file is damaged, and what to do."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise Damaged(f"{path} is damaged: {error}{advice}") from error
