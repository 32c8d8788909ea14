"""Room in a memory of transitions: as much as is needed, up to its size, so that a copy costs what it holds."""

import numpy as np

from spaql.replay import Memory

LEAST = 1024  # transitions there is room for from the start


def with_room(memory: Memory, wanted: int, size: int) -> Memory:
    """Return a memory with room for at least so many transitions, or for `size`, after which it forgets the oldest.

    A memory that is not as large as it may become has not forgotten anything yet, so what it holds stays in its place.
    """
    held = len(memory.reward)
    if held >= min(wanted, size):
        return memory
    more = min(max(wanted, 2 * held), size) - held
    grown = {
        name: np.concatenate((array, np.zeros((more, *array.shape[1:]), array.dtype)))
        for name, array in memory._asdict().items()
        if name not in ("counts", "rewards", "weights")
    }
    return memory._replace(**grown)
