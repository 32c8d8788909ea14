"""Running agents: stored ones are loaded, others computed on threads, processes, or a Dask cluster."""

import contextlib
import functools
import logging
import os
import time
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from spaql.checks import check_integer
from spaql.paper.engine import store
from spaql.paper.engine.algorithms import ALGORITHMS, module_of
from spaql.paper.engine.job import Job, columns_of
from spaql.paper.engine.outcomes import CURVES, outcome
from spaql.paper.engine.provenance import numerics, origin_of
from spaql.progress import progress
from spaql.systems import compiled_world, make_env, space_of

SAVED = 5.0  # seconds of results that a killed run may lose

log = logging.getLogger(__name__)


def run(
    jobs: Iterable[Job],
    workers: int = 0,
    scheduler: str | None = None,
    stored: bool = True,
    progress_bar: bool = True,
    folder: Path | None = None,
) -> pd.DataFrame:
    """Return one row per agent, in this order: loaded where stored, computed and stored where not.

    The numbers do not depend on how or where they are computed.

    Parameters
    ----------
    jobs
        The agents, see `spaql.paper.engine.study.study`.
    workers
        How many agents to compute at a time on this machine; one a core if 0.
    scheduler
        The address of a Dask scheduler, to compute on its cluster instead.
    stored
        Whether to look for stored rows, and to store new ones.
    progress_bar
        Show how far it is, on standard error.
    folder
        Where stored rows are looked for and added, instead of the published results and `_build/runs`.
    """
    jobs = list(jobs)
    found = store.find(jobs, [folder] if folder else None) if stored else {}
    missing = [job for job in dict.fromkeys(jobs) if job not in found]
    if missing:
        refuse_without_torch(missing)
        for row, job in computed(missing, workers, scheduler, stored, progress_bar, folder):
            found[job] = row
    return pd.DataFrame([found[job] | {"study": job.study} for job in jobs])


def computed(
    missing: list[Job],
    workers: int,
    scheduler: str | None,
    stored: bool,
    progress_bar: bool,
    folder: Path | None = None,
) -> Iterator[tuple[dict[str, Any], Job]]:
    """Yield the rows of agents as they are computed, in any order, and store them every few seconds."""
    say_if_long(missing, workers)
    waiting: list[dict[str, Any]] = []
    saved = time.monotonic()
    try:
        with progress(sum(map(effort, missing)), f"{len(missing)} agents", unit="episode", shown=progress_bar) as bar:
            for row, job in compute_all(missing, workers, scheduler):
                if row["numerics"] != numerics(job.algorithm):
                    raise RuntimeError(f"a worker computes numbers of version {row['numerics']}, this code of version "
                                       f"{numerics(job.algorithm)}: install the same version there")  # fmt: skip
                waiting.append(row)
                if stored and time.monotonic() - saved > SAVED:
                    store.add(waiting, folder)
                    waiting, saved = [], time.monotonic()
                bar.update(effort(job))
                yield row, job
    finally:
        if stored and waiting:
            store.add(waiting, folder)


def compute(job: Job) -> tuple[dict[str, Any], Job]:
    """Compute the row of an agent, with all its curves."""
    before = time.perf_counter()
    trained = module_of(job).compute(job)
    row = {"study": job.study} | columns_of(job) | outcome(job, trained) | {"wall": time.perf_counter() - before}
    curves = {f"curve_{name}": np.asarray(trained.history[name], kind) for name, kind in CURVES.items()}
    return row | origin_of(job.algorithm) | curves | {"fresh_rewards": trained.fresh.astype(np.float32)}, job


def compute_all(jobs: list[Job], workers: int, scheduler: str | None) -> Iterator[tuple[dict[str, Any], Job]]:
    """Yield the rows of agents, the longest first, so that no worker is left with a long one at the end."""
    jobs = sorted(jobs, key=effort, reverse=True)
    count = check_integer("workers", workers, at_least=0) or os.cpu_count() or 1
    # Machine code leaves Python's lock alone, so that threads suffice; others need processes.
    groups = {
        "threading": [job for job in jobs if on_threads(job)],
        "loky": [job for job in jobs if not on_threads(job)],
    }
    if scheduler is not None:
        groups = {"dask": jobs}
    for backend, group in groups.items():
        if group:
            with cluster(scheduler) if scheduler else contextlib.nullcontext(), joblib.parallel_config(backend):
                parallel = joblib.Parallel(count, return_as="generator_unordered", batch_size=1)
                yield from parallel(joblib.delayed(compute)(job) for job in group)


@contextlib.contextmanager
def cluster(scheduler: str) -> Iterator[None]:
    """Connect joblib to a Dask scheduler, or say that there is none."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("a cluster needs the package distributed: pip install 'spaql[cluster]'") from error
    try:
        client = Client(scheduler, timeout=8)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ConnectionError(
            f"there is no Dask scheduler at {scheduler}: start one (dask scheduler), or give the address that it shows"
        ) from error
    with client:
        if not client.ncores():
            log.warning("the Dask scheduler at %s has no workers yet: start some (dask worker %s); Ctrl-C ends this",
                        scheduler, scheduler)  # fmt: skip
        yield


def on_threads(job: Job) -> bool:
    """Return whether an agent's work is machine code."""
    return ALGORITHMS[job.algorithm].compiled and is_compiled(job.system)


@functools.cache
def is_compiled(system: str) -> bool:
    """Return whether a system runs as machine code."""
    env = make_env(system)
    return compiled_world(env, space_of(env)) is not None


def effort(job: Job) -> int:
    """Return about how many episodes an agent plays; one that is not machine code costs as much as many others."""
    if not ALGORITHMS[job.algorithm].compiled:
        return 20_000 * job.iterations
    return job.iterations * (job.evaluations + 1) + job.fresh


def refuse_without_torch(missing: list[Job]) -> None:
    """Raise an error if some of these agents have networks and nothing can train them, before any other is computed."""
    names = sorted({job.algorithm for job in missing if not all(map(find_spec, ALGORITHMS[job.algorithm].needs))})
    if names:
        raise ImportError(
            f"{' and '.join(names)} with these parameters are not stored, and training them needs sb3-contrib and "
            "torch (pip install 'spaql[trpo]'; the README says how to do without CUDA).  Nothing was computed"
        )


def say_if_long(missing: list[Job], workers: int) -> None:
    """Say how long it takes, if that is minutes or hours: networks."""
    minutes = sum(ALGORITHMS[job.algorithm].minutes for job in missing) / (workers or os.cpu_count() or 1)
    if minutes > 1:
        log.warning("agents with networks are not stored with these parameters: computing them takes about %.0f "
                    "minutes.  Ctrl-C ends it", minutes)  # fmt: skip
