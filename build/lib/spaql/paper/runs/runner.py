"""Running agents: on threads of one machine, on processes for TRPO, or on a Dask cluster."""

import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import joblib
import pandas as pd

from spaql import archive
from spaql.checks import check_integer
from spaql.paper.frames import histories
from spaql.paper.runs import provenance
from spaql.paper.runs.job import FRESH, Job, Record, compute
from spaql.paper.runs.store import Damaged, Stale, load_record, record_path, save_record, set_aside
from spaql.paper.studies import SEED, make_jobs
from spaql.progress import progress
from spaql.rules import Rules

log = logging.getLogger(__name__)


def run_grid(
    algorithms: Iterable[str],
    systems: Iterable[str],
    xis: Iterable[float],
    agents: int = 20,
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
    store: str | os.PathLike | None = None,
    **running: Any,
) -> pd.DataFrame:
    """Run every algorithm on every system with every ξ, and return the histories: a row an iteration of an agent.

    The systems' horizon, slopes and reference states are the paper's; for others train the agents themselves.

    Parameters
    ----------
    algorithms
        Of "Random", "AQL", "SPAQL", "SPAQL-TS", "TRPO" and "TRPO tuned".
    systems
        Gymnasium ids.
    xis
        Values of ξ.
    agents, iterations, evaluations
        How many agents for each combination, how many iterations each, how many rollouts (N) after each iteration.
        (The column `evaluations` of the frame is the mean reward of these rollouts.)
    seed
        The root seed, which spawns the streams of every agent.
    rules
        As for the agents.
    fresh
        Episodes each trained agent is evaluated on afresh; `finals(run(make_jobs(...)))` shows what they gave.
    store
        A folder to keep results in and to load them from; none if not given.
    running
        `workers`, `scheduler`, `progress_bar`: see `run`.

    Examples
    --------
    >>> frame = run_grid(["SPAQL"], ["CartPole-v0"], [0, 20], agents=5)
    >>> frame.groupby(["xi", "iteration"]).rewards.mean()
    """
    jobs = make_jobs(algorithms, systems, xis, agents, iterations, evaluations, seed, rules, fresh)
    return histories(run(jobs, store=store, **running))


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
        The agents, see `make_jobs` and `paper_jobs`.
    workers
        Threads on this machine; all cores if not given.
    scheduler
        The address of a Dask scheduler, to compute on its cluster instead.
    store
        The folder of stored results; the repository's if not given, none if None.
    progress_bar
        Show how far it is and how long it will take, on standard error.
    """
    jobs = list(jobs)
    if workers is not None:
        check_integer("workers", workers)
    if store is not None:
        store = Path(store) if store else provenance.default_store()
        archive.sweep(store)
    records, missing = load_stored(jobs, store)
    if missing:
        bar = progress(sum(map(effort, missing)), f"{len(missing)} agents", unit="episode", shown=progress_bar)
        with bar:
            for record, source in compute_all(missing, workers, scheduler):
                if source.get("numerics", 1) != provenance.numerics(record.job):
                    raise RuntimeError(
                        f"a worker runs code {source['code']}, this is {provenance.numerics(record.job)}"
                    )
                if store is not None:
                    save_record(store, record, source)
                records[record.job] = record
                bar.update(effort(record.job))
    return [records[job] for job in jobs]


def effort(job: Job) -> int:
    """Return about how many episodes an agent plays; one of TRPO's costs as much as many of the others'."""
    if job.algorithm in provenance.TRPO:
        return 20_000 * job.iterations
    return job.iterations * (job.evaluations + 1) + job.fresh


def load_stored(jobs: list[Job], store: Path | None, repair: bool = True) -> tuple[dict[Job, Record], list[Job]]:
    """Return what is stored of these agents and which of them are missing; say what no longer matches.

    Damaged files are set aside if they are to be computed again (`repair`), otherwise left alone.
    """
    records, missing, stale = {}, [], Counter()
    for job in dict.fromkeys(jobs):
        try:
            if store is None:
                raise FileNotFoundError
            records[job] = load_record(store, job)
            continue
        except FileNotFoundError:
            pass
        except Stale:
            stale[job.algorithm, job.system] += 1
        except Damaged as damage:
            aside = f"; set aside as {set_aside(record_path(store, job)).name}" if repair else ""
            log.warning("%s%s", damage, aside)
        missing.append(job)
    for (algorithm, system), count in stale.items():
        log.warning("%d stored %s agents on %s were computed by other code", count, algorithm, system)
    return records, missing


def compute_here(job: Job) -> tuple[Record, dict]:
    """Compute a record, with the provenance of the process that does."""
    if job.algorithm in provenance.TRPO:
        from spaql import trpo

        record = trpo.compute(job)
    else:
        record = compute(job)
    return record, provenance.provenance() | {"numerics": provenance.numerics(job)}


def compute_all(jobs: list[Job], workers: int | None, scheduler: str | None) -> Iterator[tuple[Record, dict]]:
    """Yield the records of these agents as they are computed, in any order."""
    # The longest first, so that no worker is left with a long one at the end.
    jobs = sorted(jobs, key=effort, reverse=True)
    if scheduler is not None:
        yield from on_cluster(jobs, scheduler)
        return
    workers = workers or os.cpu_count()
    pool = ThreadPoolExecutor(workers)
    try:
        compiled = [pool.submit(compute_here, job) for job in jobs if job.algorithm not in provenance.TRPO]
        yield from (future.result() for future in as_completed(compiled))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    # Compiled code leaves Python's lock alone, so threads suffice; TRPO is Python and needs processes.
    interpreted = [job for job in jobs if job.algorithm in provenance.TRPO]
    if interpreted:
        parallel = joblib.Parallel(workers, return_as="generator_unordered", batch_size=1, pre_dispatch="n_jobs")
        yield from parallel(joblib.delayed(compute_here)(job) for job in interpreted)


def on_cluster(jobs: list[Job], scheduler: str) -> Iterator[tuple[Record, dict]]:
    """Yield the records of these agents as a Dask cluster computes them."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a cluster needs the package distributed: pip install 'spaql[cluster]'") from error
    with distributed.Client(scheduler) as client:
        futures = client.map(compute_here, jobs, pure=False, retries=3)
        try:
            yield from (result for _, result in distributed.as_completed(futures, with_results=True))
        finally:
            client.cancel(futures)
