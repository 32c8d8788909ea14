"""All that learning changes in an agent."""

from typing import Any, NamedTuple

import numpy as np

from spaql.partition import BALLS, Partition
from spaql.partition import copy as copy_partition


class State(NamedTuple):
    """All that learning changes in an agent: what it falls back on, and what a file keeps."""

    trainee: Any  # a `Partition`; a representation of its own for TileQ and SPAQL-R
    best: Any
    status: np.ndarray
    history: np.ndarray
    streams: dict
    played: int  # rollouts behind the best mean, where the best agent is evaluated again; 0: never was, -1: not now
    memory: Any = None  # of TileQ and SPAQL-R


def copy_of(part: Any) -> Any:
    """Return a copy that shares no array that learning changes."""
    if isinstance(part, Partition):
        return copy_partition(part)
    if part is None:
        return None
    return part._replace(**{name: array.copy() for name, array in part._asdict().items() if hasattr(array, "copy")})


def check_finite(trainee: Any, best: Any, status: np.ndarray, history: np.ndarray) -> None:
    """Raise an error unless estimates and rewards are finite: by others nothing can be chosen, nor saved."""
    parts = (part.balls["q"][: part.counts[BALLS]] if isinstance(part, Partition) else part.estimates()
             for part in (trainee, best))  # fmt: skip
    if not all(np.isfinite(each).all() for each in (*parts, status["best"], history["evaluations"])):
        raise OverflowError(
            "estimates or sums of rewards have become infinite or NaN: the rewards or ξ are too large for "
            "floating-point numbers, scale them down (the agent is left as it was before)"
        )
