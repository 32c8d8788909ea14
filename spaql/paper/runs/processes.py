"""Work in processes of their own, which end when the one that started them does, even if that is killed."""

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import joblib

LOOK = 0.5  # seconds between two looks at the parent


def in_processes(function: Callable, jobs: Iterable[Any], workers: int) -> Iterator[Any]:
    """Yield what a function gives for each of these jobs, as processes compute it, in any order."""
    parallel = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
    shared = os.getpid(), list(warnings.filters)
    return parallel(joblib.delayed(with_parent)(function, job, *shared) for job in jobs)


def with_parent(function: Callable, job: Any, parent: int, filters: list) -> Any:
    """Call a function; a process of its own ends with its parent from now on, and ignores the warnings that it does."""
    if os.getpid() != parent and not any(thread.name == with_parent.__name__ for thread in threading.enumerate()):
        threading.Thread(target=end_with, args=(parent,), name=with_parent.__name__, daemon=True).start()
    with warnings.catch_warnings():
        warnings.filters[:] = filters  # type: ignore[index]
        return function(job)


def end_with(parent: int) -> None:
    """End this process as soon as it is another one's child: its parent was killed, and nobody waits for its work."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)
