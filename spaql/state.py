"""All that learning changes in an agent."""

from typing import Any, NamedTuple

import numpy as np

from spaql.bisection import Bisection
from spaql.partition import BALLS
from spaql.replay import Memory


class State(NamedTuple):
    """All that learning changes in an agent: what it falls back on, and what a file keeps."""

    trainee: Any  # a `Partition`; SPAQL-R's is a `Bisection`
    best: Any
    status: np.ndarray
    history: np.ndarray
    streams: dict
    played: int  # rollouts behind the best mean, where the best agent is evaluated again; 0: never was, -1: not now
    memory: Memory | None = None  # SPAQL-R's


def estimates(partition: Any) -> np.ndarray:
    """Return the estimates of a partition of either kind."""
    if isinstance(partition, Bisection):
        return partition.q[: partition.nodes[0]]
    return partition.balls["q"][: partition.counts[BALLS]]


def check_finite(trainee: Any, best: Any, status: np.ndarray, history: np.ndarray) -> None:
    """Raise an error unless estimates and rewards are finite: by others nothing can be chosen, nor saved."""
    numbers = estimates(trainee), estimates(best), status["best"], history["evaluations"]
    if not all(np.isfinite(each).all() for each in numbers):
        raise OverflowError(
            "estimates or sums of rewards have become infinite or NaN: the rewards or ξ are too large for "
            "floating-point numbers, scale them down (the agent is left as it was before)"
        )
