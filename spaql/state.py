"""All that learning changes in an agent."""

from typing import NamedTuple

import numpy as np

from spaql.partition import BALLS, Partition
from spaql.replay import Memory


class State(NamedTuple):
    """All that learning changes in an agent: what it falls back on, and what a file keeps."""

    trainee: Partition
    best: Partition
    status: np.ndarray
    history: np.ndarray
    streams: dict
    played: int  # rollouts behind the best mean, where the best agent is evaluated again; 0: never was, -1: not now
    memory: Memory | None = None  # SPAQL-R's


def check_finite(trainee: Partition, best: Partition, status: np.ndarray, history: np.ndarray) -> None:
    """Raise an error unless estimates and rewards are finite: by others nothing can be chosen, nor saved."""
    numbers = *(p.balls["q"][: p.counts[BALLS]] for p in (trainee, best)), status["best"], history["evaluations"]
    if not all(np.isfinite(each).all() for each in numbers):
        raise OverflowError(
            "estimates or sums of rewards have become infinite or NaN: the rewards or ξ are too large for "
            "floating-point numbers, scale them down (the agent is left as it was before)"
        )
