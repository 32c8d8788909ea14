"""Running agents: on threads of one machine, on processes for TRPO, or on a Dask cluster."""

import dataclasses
import functools
import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

try:
    import pandas as pd
except ModuleNotFoundError:
    raise ModuleNotFoundError("this needs pandas: pip install 'spaql[paper]'", name="pandas") from None

from spaql import archive
from spaql.advice import collected, warn
from spaql.checks import check_integer
from spaql.paper.frames import histories
from spaql.paper.runs import provenance
from spaql.paper.runs.algorithms import ALGORITHMS, compute
from spaql.paper.runs.cluster import on_cluster
from spaql.paper.runs.errors import Damaged, DamagedPack, Stale
from spaql.paper.runs.grid import make_jobs
from spaql.paper.runs.job import FRESH, SEED, Job, Record
from spaql.paper.runs.outcomes import samples_taken
from spaql.paper.runs.processes import in_processes
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.paper.runs.store import load_record, record_path, save_record, set_aside
from spaql.paper.runs.table import read_jobs
from spaql.progress import progress
from spaql.rules import Rules
from spaql.systems import compiled_world, make_env, space_of

PACE = 20_000  # episodes of a compiled system in a second, roughly
FRESH_INTERPRETED = 100  # episodes for a fresh evaluation at Python's speed

log = logging.getLogger(__name__)


def run_grid(
    algorithms: Iterable[str],
    systems: Iterable[str | Callable[[], gym.Env]],
    xis: Iterable[float] = (),
    agents: int = 20,
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int | None = None,
    *,
    samples: int | None = None,
    store: str | os.PathLike | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    progress_bar: bool = True,
    **parameters: Any,
) -> pd.DataFrame:
    """Run every algorithm on every system with every ξ, and return the histories.

    The frame has one row per iteration of an agent, or per thousand `samples`; its column `samples` counts all that the
    algorithm needed until then.  Registered systems run on threads, other environments on processes of their own, which
    import them again.

    Parameters
    ----------
    algorithms
        Of "Random", "AQL", "SPAQL", "SPAQL-TS" and "SPAQL-R" (or the names of their classes), whose iteration is a
        training episode as in `learn`; of "TRPO" and "TRPO tuned", whose iteration is 4,000 samples.
    systems
        Gymnasium ids, `"module:id"` for those that a module of yours registers, or functions of such a module that
        make an environment.
    xis
        Values of ξ, for the algorithms that have one.
    agents, iterations, evaluations
        How many agents for each combination, how many iterations each, how many rollouts (N) after each iteration.
        (The column `evaluations` of the frame is the mean reward of these rollouts.)
    seed
        The root seed, which spawns the streams of every agent.
    rules
        As for the agents.
    fresh
        Episodes each trained agent is evaluated on afresh, 1,000 if not given, or 100 where they are not compiled;
        `finals(run(make_jobs(...)))` shows what they gave.
    samples
        Train on so many samples, whole thousands, instead of `iterations`; the policy plays `evaluations` fresh
        episodes after every thousand.
    store
        A folder to keep results in and to load them from; none if not given.
    workers, scheduler, progress_bar
        See `run`.
    parameters
        Others of the agents, as `horizon`, `reference` or `bounds`: each goes to the algorithms that have it.

    Examples
    --------
    >>> frame = run_grid(["SPAQL"], ["CartPole-v0"], [0, 20], agents=5)
    >>> frame.groupby(["xi", "iteration"]).rewards.mean()
    >>> run_grid(["SPAQLR", "Random"], ["Pendulum-v1"], samples=10_000)
    """
    if samples is not None:
        if check_integer("samples", samples) % CHECKPOINT:
            raise ValueError(f"samples must be whole thousands, as 20_000, not {samples:,}")
        iterations, parameters["looks"] = samples // CHECKPOINT, evaluations
    size = agents, iterations, evaluations, seed, rules, fresh or FRESH
    jobs = make_jobs(algorithms, systems, xis, *size, episodes=samples is None, **parameters)
    refused = sorted({job.algorithm for job in jobs if samples and not ALGORITHMS[job.algorithm].by_samples
                      and ALGORITHMS[job.algorithm].agent is None})  # fmt: skip
    if refused:
        raise ValueError(f"{' and '.join(refused)} cannot count samples: give iterations")
    if fresh is None:
        jobs = [job if on_threads(job) else dataclasses.replace(job, fresh=FRESH_INTERPRETED) for job in jobs]
    records = run(jobs, workers, scheduler, store, progress_bar)
    return histories(records).assign(samples=np.concatenate([samples_taken(record) for record in records]))


def run(
    jobs: Iterable[Job],
    workers: int | None = None,
    scheduler: str | None = None,
    store: str | os.PathLike | None = "",
    progress_bar: bool = True,
) -> list[Record]:
    """Return the records of these agents, in this order: loaded where stored, computed and stored where not.

    The numbers do not depend on how or where they are computed.  An interrupted run has stored what was complete; it
    returns when the agents that were under way are, a few seconds later for the paper's.

    Parameters
    ----------
    jobs
        The agents, see `make_jobs` and `studies.study`.
    workers
        Threads on this machine; all cores if not given.
    scheduler
        The address of a Dask scheduler, to compute on its cluster instead.
    store
        The folder of stored results, none if None.  If not given, the repository's are loaded, and what is computed
        is kept in _build/runs, never among them.
    progress_bar
        Show how far it is and how long it will take, on standard error.
    """
    jobs, asked_for = list(jobs), store
    if workers is not None:
        check_integer("workers", workers)
    published: dict[Job, Record] = {}
    wanted = jobs
    if store == "":
        published, wanted = load_stored(jobs, provenance.default_store(), repair=False)
        store = provenance.own_store()
    store = None if store is None else Path(store)
    if store is not None and wanted:
        archive.sweep(store)
    records, missing = load_stored(wanted, store)
    records |= published
    if missing:
        if asked_for == "" and provenance.repository() is None:
            raise FileNotFoundError(
                f"no results are stored here, so that {len(missing):,} agents would be computed, about "
                f"{sum(map(effort, missing)) / PACE / 60:.0f} minutes of one core: give store='results' to compute and "
                "keep them, or call this in a clone of the repository, which has them"
            )
        told: set[tuple[str, str]] = set()
        if scheduler is None:
            refuse_without_torch(missing)
        say_if_long(missing, workers or os.cpu_count() or 1, scheduler)
        bar = progress(sum(map(effort, missing)), f"{len(missing)} agents", unit="episode", shown=progress_bar)
        with bar:
            for record, origin in compute_all(missing, workers, scheduler):
                for kind, message in origin.pop("said", {}).items():
                    if (record.job.system, kind) not in told:
                        warn(kind, f"{record.job.system}: {message}")
                    told.add((record.job.system, kind))
                if origin["numerics"] != provenance.numerics(record.job):
                    raise RuntimeError(
                        f"a worker computes numbers of version {origin['numerics']}, this code of version "
                        f"{provenance.numerics(record.job)}"
                    )
                if store is not None:
                    save_record(store, record, origin)
                records[record.job] = record
                bar.update(effort(record.job))
    return [records[job] for job in jobs]


def refuse_without_torch(missing: list[Job]) -> None:
    """Raise an error if some of these agents have networks and nothing can train them, before any other is computed."""
    names = sorted({job.algorithm for job in missing if not all(map(find_spec, ALGORITHMS[job.algorithm].needs))})
    if names:
        raise ImportError(
            f"{' and '.join(names)} with these parameters are not stored, and training them needs sb3-contrib and "
            "torch (pip install 'spaql[trpo]'; the README says how to do without CUDA).  Nothing was computed"
        )


def say_if_long(missing: list[Job], workers: int, scheduler: str | None) -> None:
    """Say what will be computed and how long it takes, if that is minutes or hours: TRPO's agents.

    Any parameter that differs from the published ones, even `fresh`, makes other agents, which are not stored.
    """
    agents = [job for job in missing if ALGORITHMS[job.algorithm].seconds]
    seconds = sum(ALGORITHMS[job.algorithm].seconds * job.iterations for job in agents)
    if seconds < 60:
        return
    each = seconds / len(agents) / 60
    where = "of the workers' time" if scheduler else f"with {workers} at a time"
    minutes = seconds / 60 if scheduler else max(each, seconds / 60 / workers)
    total = f"{minutes:.0f} minutes" if minutes < 120 else f"{minutes / 60:.1f} hours"
    log.warning("%d agents of TRPO with these parameters are not stored and will be computed: about %.1f minutes each, "
                "%s %s. Ctrl-C ends it.", len(agents), each, total, where)  # fmt: skip


def effort(job: Job) -> int:
    """Return about how many episodes an agent plays; one of TRPO's costs as much as many of the others'."""
    if not ALGORITHMS[job.algorithm].compiled:
        return 20_000 * job.iterations
    return job.iterations * (job.evaluations + 1) + job.fresh


def load_stored(jobs: list[Job], store: Path | None, repair: bool = True) -> tuple[dict[Job, Record], list[Job]]:
    """Return what is stored of these agents and which of them are missing; say what no longer matches.

    Damaged files of single agents are set aside if they are to be computed again (`repair`), otherwise left alone.  A
    damaged table is an error: it is better taken from the repository again than computed.
    """
    wanted = list(dict.fromkeys(jobs))
    if store is None:
        return {}, wanted
    records: dict[Job, Record] = {}
    missing: list[Job] = []
    stale: Counter[tuple[str, str]] = Counter()
    packed = read_jobs(store, wanted)
    for job in wanted:
        try:
            records[job] = load_record(store, job, packed)
            continue
        except FileNotFoundError:
            pass
        except Stale:
            stale[job.algorithm, job.system] += 1
        except DamagedPack:
            raise
        except Damaged as damage:
            aside = f"; set aside as {set_aside(record_path(store, job)).name}" if repair else ""
            log.warning("%s%s", damage, aside)
        missing.append(job)
    for (algorithm, system), count in stale.items():
        log.warning("%d stored %s agents on %s have numbers of another version", count, algorithm, system)
    return records, missing


def compute_here(job: Job) -> tuple[Record, dict]:
    """Compute a record; return it with its origin, and with what the agent would warn of."""
    with collected() as said:
        return compute(job), provenance.origin_of(job) | {"said": said}


def on_threads(job: Job) -> bool:
    """Return whether an agent's work is machine code, which leaves Python's lock alone, so that threads suffice."""
    return ALGORITHMS[job.algorithm].compiled and is_compiled(job.system)


@functools.cache
def is_compiled(system: str) -> bool:
    """Return whether a system runs as machine code."""
    env = make_env(system)
    return compiled_world(env, space_of(env)) is not None


def compute_all(jobs: list[Job], workers: int | None, scheduler: str | None) -> Iterator[tuple[Record, dict]]:
    """Yield the records of these agents as they are computed, in any order."""
    # The longest first, so that no worker is left with a long one at the end.
    jobs = sorted(jobs, key=effort, reverse=True)
    if scheduler is not None:
        yield from on_cluster(compute_here, jobs, scheduler)
        return
    workers = workers or os.cpu_count() or 1
    pool = ThreadPoolExecutor(workers)
    try:
        compiled = [pool.submit(compute_here, job) for job in jobs if on_threads(job)]
        yield from (future.result() for future in as_completed(compiled))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    interpreted = [job for job in jobs if not on_threads(job)]
    if interpreted:
        yield from in_processes(compute_here, interpreted, workers)
