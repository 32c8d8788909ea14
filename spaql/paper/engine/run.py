"""Running agents: stored ones are loaded, others computed on threads, processes, or a Dask cluster."""

import functools
import os
import time
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

from spaql.checks import check_integer
from spaql.paper.engine import store
from spaql.paper.engine.algorithms import ALGORITHMS, module_of
from spaql.paper.engine.job import Job, columns_of
from spaql.paper.engine.outcomes import CURVES, outcome
from spaql.paper.engine.provenance import origin_of
from spaql.progress import progress
from spaql.systems import compiled_world, make_env, space_of

SAVED = 5.0  # seconds of results that a killed run may lose


def run(
    jobs: Iterable[Job], workers=0, scheduler=None, stored=True, progress_bar=True, folder: Path | None = None
) -> pd.DataFrame:
    """Return one row per agent, in this order: loaded where stored, computed and stored where not.

    There are so many `workers` on this machine, one a core if 0, or those of the Dask cluster of the `scheduler` at
    this address; the numbers do not depend on them.  `stored=False` neither looks for rows nor stores any; a `folder`
    is where rows are looked for and added, instead of the published results and `_build/runs`.
    """
    jobs, workers = list(jobs), check_integer("workers", workers, at_least=0)
    found = store.find(jobs, [folder] if folder else None) if stored else {}
    missing = [job for job in dict.fromkeys(jobs) if job not in found]
    refuse_without_torch(missing)
    waiting, saved, shown = [], time.monotonic(), progress_bar and missing != []
    try:
        with progress(sum(map(effort, missing)), f"{len(missing)} agents", unit="episode", shown=shown) as bar:
            for row, job in compute_all(missing, workers, scheduler):
                found[job] = row
                waiting.append(row)
                if stored and time.monotonic() - saved > SAVED:
                    store.add(waiting, folder)
                    waiting, saved = [], time.monotonic()
                bar.update(effort(job))
    finally:
        if stored and waiting:
            store.add(waiting, folder)
    return pd.DataFrame([found[job] | {"study": job.study} for job in jobs])


def compute(job: Job) -> tuple[dict, Job]:
    """Compute the row of an agent, with all its curves."""
    before = time.perf_counter()
    trained = module_of(job).compute(job)
    row = {"study": job.study} | columns_of(job) | outcome(job, trained) | {"wall": time.perf_counter() - before}
    curves = {f"curve_{name}": trained.history[name] for name in CURVES}
    return row | origin_of(job.algorithm) | curves | {"fresh_rewards": trained.fresh.astype(np.float32)}, job


def compute_all(jobs, workers, scheduler):
    """Yield the rows of agents, the longest first, so that no worker is left with a long one at the end."""
    jobs = sorted(jobs, key=effort, reverse=True)
    # Machine code leaves Python's lock alone, so that threads suffice; others need processes.
    groups = {"threading": [job for job in jobs if is_compiled(job.algorithm, job.system)]}
    groups["loky"] = [job for job in jobs if not is_compiled(job.algorithm, job.system)]
    given = {}
    if scheduler is not None:
        groups, given = {"dask": jobs}, {"scheduler_host": scheduler}
    for backend, group in groups.items():
        if group:
            with joblib.parallel_config(backend, **given):
                parallel = joblib.Parallel(workers or os.cpu_count(), return_as="generator_unordered", batch_size=1)
                yield from parallel(joblib.delayed(compute)(job) for job in group)


@functools.cache
def is_compiled(algorithm: str, system: str) -> bool:
    """Return whether an agent's work is machine code."""
    env = make_env(system)
    return ALGORITHMS[algorithm].compiled and compiled_world(env, space_of(env)) is not None


def effort(job: Job) -> int:
    """Return about how many episodes an agent plays; one that is not machine code costs as much as many others."""
    if not ALGORITHMS[job.algorithm].compiled:
        return 20_000 * job.iterations
    return job.iterations * (job.evaluations + 1) + job.fresh


def refuse_without_torch(missing):
    """Raise an error if some of these agents have networks and nothing can train them, before any other is computed."""
    names = sorted({job.algorithm for job in missing if not all(map(find_spec, ALGORITHMS[job.algorithm].needs))})
    if names:
        raise ImportError(
            f"{' and '.join(names)} with these parameters are not stored, and training them needs sb3-contrib and "
            "torch (pip install 'spaql[trpo]'; the README says how to do without CUDA).  Nothing was computed"
        )
