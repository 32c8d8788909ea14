"""Grids of agents: the paper's, and any other; on threads of one machine or on a Dask cluster."""

import functools
import itertools
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import gymnasium as gym
import joblib
import pandas as pd

from spaql import files, results
from spaql.agents import check_integer, check_number, check_rules, make_env
from spaql.jobs import ALGORITHMS, FRESH, Job, Record, compute
from spaql.learning import HISTORY, RULES, Rules
from spaql.progress import progress
from spaql.statistics import welch_holm
from spaql.systems import paper_family

log = logging.getLogger(__name__)
SEED = 2020  # the root seed of the paper's runs

# ---------------------------------------------------------------------------------------------------------------------
# The paper's runs, as data

XIS = (0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160)
LEARNERS = ("AQL", "SPAQL", "SPAQL-TS")

XI_STUDY = {  # the effect of ξ: every learner with every ξ
    "systems": ("Pendulum-v1", "spaql/PendulumScaled-v1", "CartPole-v0"),
    "xis": XIS,
    "iterations": 100,
    "evaluations": {"Pendulum-v1": 20, "spaql/PendulumScaled-v1": 20, "CartPole-v0": 20},
    "agents": 20,
}
LONG_RUNS = {  # the ξ found best for each learner; the text names none for the discrete Pendulum, which gets Pendulum's
    "systems": ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"),
    "xis": {
        "Pendulum-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
        "spaql/PendulumDiscrete-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
        "CartPole-v0": {"AQL": 120, "SPAQL": 20, "SPAQL-TS": 20},
    },
    "iterations": 2000,
    "evaluations": {"Pendulum-v1": 20, "spaql/PendulumDiscrete-v1": 20, "CartPole-v0": 100},
    "agents": 20,
}
TRPO_RUNS = {  # an iteration of TRPO is 4,000 samples; N does not apply
    "systems": ("Pendulum-v1", "CartPole-v0"),
    "iterations": 100,
    "evaluations": {"Pendulum-v1": 1, "CartPole-v0": 1},
    "agents": 20,
}
# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {
    name: RULES["paper"]._replace(**{name: released}) for name, released in RULES["released"]._asdict().items()
} | RULES
# The rules that an algorithm has no use for.
UNUSED = {"AQL": {"distance", "heating", "reset", "normalisation"}, "SPAQL": {"distance"}, "SPAQL-TS": set()}
ABLATION = {  # the long runs under other rules (each alone, then all), with another N, and the ξ study's 0 on CartPole
    "parts": (
        {"systems": ("Pendulum-v1", "CartPole-v0"), "rules": (*Rules._fields, "released")},
        {"systems": ("CartPole-v0",), "rules": ("ties", "released"), "xi": 0, "iterations": 100, "evaluations": 20},
        {"systems": ("CartPole-v0",), "rules": ("released",), "evaluations": 20},
        {"systems": ("CartPole-v0",), "rules": ("paper",), "learners": ("SPAQL", "SPAQL-TS"), "evaluations": 20},
        {"systems": ("CartPole-v0",), "rules": ("paper",), "learners": ("SPAQL",), "evaluations": 5},
        {"systems": ("Pendulum-v1",), "rules": ("paper",), "learners": ("SPAQL",), "evaluations": 5},
        {"systems": ("Pendulum-v1",), "rules": ("paper",), "learners": ("SPAQL",), "evaluations": 100},
        {"systems": ("spaql/Pendulum-v0",), "rules": ("released",)},
    ),
    "like": {"spaql/Pendulum-v0": "Pendulum-v1"},  # whose ξ and N it gets
    "iterations": 2000,
    "agents": 20,
}
# What a smaller scale replaces.
SCALES: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {"xi": {}, "long": {}, "trpo": {}, "ablation": {}},
    "quick": {
        "xi": {"agents": 10},
        "long": {"agents": 10, "iterations": 1000},
        "trpo": {"agents": 2, "iterations": 5},
        "ablation": {"agents": 10, "iterations": 1000},
    },
    "smoke": {
        "xi": {"agents": 2, "iterations": 4, "xis": (0, 4, 160), "fresh": 20},
        "long": {"agents": 2, "iterations": 10, "fresh": 20},
        "trpo": {"agents": 2, "iterations": 1, "fresh": 20},
        "ablation": {"agents": 2, "iterations": 10, "fresh": 20},
    },
}


def paper_jobs(study: str, scale: str = "paper", seed: int = SEED) -> list[Job]:
    """Return the agents of the paper's study "xi", "long" (both with the Random baseline), "trpo" or "ablation"."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    declared = {"xi": XI_STUDY, "long": LONG_RUNS, "trpo": TRPO_RUNS, "ablation": ABLATION}
    if study not in declared:
        raise ValueError(f"study must be one of {', '.join(declared)}, not {study!r}")
    plan = {"fresh": FRESH} | declared[study] | SCALES[scale][study]
    if study == "ablation":
        return ablation_jobs(plan, seed)
    jobs = []
    for system in plan["systems"]:
        if study == "xi":
            cells = [("Random", 0), *itertools.product(LEARNERS, plan["xis"])]
        elif study == "long":
            cells = [("Random", 0), *plan["xis"][system].items()]
        else:
            cells = [(algorithm, 0) for algorithm in results.TRPO]
        for algorithm, xi in cells:
            jobs += make_jobs(
                [algorithm],
                [system],
                [xi],
                plan["agents"],
                plan["iterations"],
                plan["evaluations"][system],
                seed,
                fresh=plan["fresh"],
                record=study != "xi",
            )
    return jobs


def ablation_jobs(plan: dict[str, Any], seed: int) -> list[Job]:
    """Return the agents of the ablation, part by part."""
    jobs = []
    for part in plan["parts"]:
        for system, algorithm, rules in itertools.product(
            part["systems"], part.get("learners", LEARNERS), part["rules"]
        ):
            if rules in UNUSED[algorithm]:
                continue
            long = plan["like"].get(system, system)
            jobs += make_jobs(
                [algorithm],
                [system],
                [part.get("xi", LONG_RUNS["xis"][long][algorithm])],
                plan["agents"],
                min(part.get("iterations", plan["iterations"]), plan["iterations"]),
                part.get("evaluations", LONG_RUNS["evaluations"][long]),
                seed,
                SWITCHES[rules],
                plan["fresh"],
            )
    return jobs


def scale_of(jobs: Iterable[Job]) -> str:
    """Return the scale at which these are whole groups of the paper's runs (with any root seed), or "custom"."""

    def groups(jobs: Iterable[Job]) -> dict[Job, set[int]]:
        found: dict[Job, set[int]] = {}
        for job in jobs:
            found.setdefault(job._replace(agent=0, seed=SEED), set()).add(job.agent)
        return found

    given = groups(jobs)
    for scale in SCALES:
        declared = groups(job for study in SCALES[scale] for job in paper_jobs(study, scale))
        if all(agents == declared.get(group) for group, agents in given.items()):
            return scale
    return "custom"


# ---------------------------------------------------------------------------------------------------------------------
# Running


def make_jobs(
    algorithms: Iterable[str],
    systems: Iterable[str],
    xis: Iterable[float],
    agents: int,
    iterations: int,
    evaluations: int,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
    record: bool = False,
) -> list[Job]:
    """Return the agents of a grid: every algorithm on every system with every ξ (Random once for all ξ)."""
    for name, given in (("algorithms", algorithms), ("systems", systems), ("xis", xis)):
        if isinstance(given, str):
            raise ValueError(f"{name} must be a list, not the text {given!r}")
    check_integer("agents", agents)
    seed = check_integer("seed", seed, at_least=0)
    iterations, evaluations = check_integer("iterations", iterations), check_integer("evaluations", evaluations)
    fresh = check_integer("fresh", fresh)
    rules, xis = check_rules(rules), list(xis)
    jobs = []
    for algorithm, system in itertools.product(algorithms, systems):
        check_pair(algorithm, system)
        for xi, agent in itertools.product(xis, range(agents)):
            xi = check_number("xi", xi, at_least=0.0) if algorithm in LEARNERS else 0.0
            jobs.append(Job(algorithm, system, xi, iterations, evaluations, seed, agent, rules, fresh, bool(record)))
    if not jobs:
        raise ValueError("there is nothing to run: give at least one algorithm, one system and one xi")
    return list(dict.fromkeys(jobs))


@functools.cache
def check_pair(algorithm: str, system: str) -> None:
    """Raise an error here and now if an algorithm is unknown or cannot run on a system."""
    gym.spec(system)
    if algorithm not in (known := (*ALGORITHMS, *results.TRPO)):
        raise ValueError(f"algorithm must be one of {', '.join(known)}, not {algorithm!r}")
    if algorithm == "SPAQL-TS" and paper_family(make_env(system)) is None:
        raise ValueError(f"SPAQL-TS needs a reference state, and a grid has none for {system}: train SPAQLTS itself")
    if algorithm in results.TRPO and system not in TRPO_RUNS["systems"]:
        raise ValueError(f"TRPO runs on {' and '.join(TRPO_RUNS['systems'])}, not on {system}")


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
        store = Path(store) if store else results.default_store()
        files.sweep(store)
    records, missing = load_stored(jobs, store)
    if missing:
        bar = progress(sum(map(effort, missing)), f"{len(missing)} agents", unit="episode", shown=progress_bar)
        with bar:
            for record, source in compute_all(missing, workers, scheduler):
                if source["code"] != results.code(record.job):
                    raise RuntimeError(f"a worker runs code {source['code']}, this is {results.code(record.job)}")
                if store is not None:
                    results.save(store, record, source)
                records[record.job] = record
                bar.update(effort(record.job))
    return [records[job] for job in jobs]


def effort(job: Job) -> int:
    """Return about how many episodes an agent plays; one of TRPO's costs as much as many of the others'."""
    if job.algorithm in results.TRPO:
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
            records[job] = results.load(store, job)
            continue
        except FileNotFoundError:
            pass
        except results.Stale:
            stale[job.algorithm, job.system] += 1
        except results.Damaged as damage:
            aside = f"; set aside as {results.set_aside(results.path_of(store, job)).name}" if repair else ""
            log.warning("%s%s", damage, aside)
        missing.append(job)
    for (algorithm, system), count in stale.items():
        log.warning("%d stored %s agents on %s were computed by other code", count, algorithm, system)
    return records, missing


def compute_here(job: Job) -> tuple[Record, dict]:
    """Compute a record, with the provenance of the process that does."""
    if job.algorithm in results.TRPO:
        from spaql import trpo

        record = trpo.compute(job)
    else:
        record = compute(job)
    return record, results.provenance() | {"code": results.code(job)}


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
        compiled = [pool.submit(compute_here, job) for job in jobs if job.algorithm not in results.TRPO]
        yield from (future.result() for future in as_completed(compiled))
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    # Compiled code leaves Python's lock alone, so threads suffice; TRPO is Python and needs processes.
    interpreted = [job for job in jobs if job.algorithm in results.TRPO]
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


# ---------------------------------------------------------------------------------------------------------------------
# Frames


def histories(records: Iterable[Record]) -> pd.DataFrame:
    """Return the histories of records as one frame, a row an iteration of an agent."""
    records = list(records)
    frames = []
    for record in records:
        frame = pd.DataFrame({name: record.history[name] for name in HISTORY.names})
        frame.insert(0, "iteration", range(1, len(frame) + 1))
        for name in ("agent", "xi", "system", "algorithm"):
            frame.insert(0, name, getattr(record.job, name))
        frames.append(frame)
    whole = pd.concat(frames, ignore_index=True)
    whole["scale"] = scale_of(record.job for record in records)
    return whole


def finals(records: Iterable[Record]) -> pd.DataFrame:
    """Return a row an agent: what it ended with, and the same policy on fresh episodes.

    `fresh_deterministic` is without the noise of the policy; only TRPO's agents are evaluated in that way too.
    """
    records = list(records)
    rows = []
    for record in records:
        last = record.history[-1]
        rows.append(
            {name: getattr(record.job, name) for name in ("algorithm", "system", "xi", "agent", "iterations")}
            | {name: last[name].item() for name in ("rewards", "arms", "evaluations")}
            | {"N": record.job.evaluations, "fresh": record.fresh[0], "fresh_std": record.fresh[1]}
            | {"fresh_deterministic": record.fresh[2] if record.fresh.size > 2 else float("nan")}
            | {"steps": int(record.history["steps"].sum()), "wall": record.wall}
            | {"evaluation_steps": int(record.history["evaluation_steps"].sum())}
        )
    frame = pd.DataFrame(rows)
    frame["scale"] = scale_of(record.job for record in records)
    return frame


def best(records: Iterable[Record]) -> Record:
    """Return the record with the highest reward at the end of training."""
    return max(records, key=lambda record: record.history["rewards"][-1])


# ---------------------------------------------------------------------------------------------------------------------
# Reproducing


def agreement(ours: Iterable[Record], theirs: Iterable[Record]) -> pd.DataFrame:
    """Compare two computations of the same agents, a row a group of them that differ in nothing but their seeds.

    On the same machine they are the same bits (`same_bits` counts the agents that are).  On another one the last bit
    of a sine may differ, and with it, sooner or later, everything; the groups must still agree.  Each row has Welch
    tests of the final rewards, the fresh rewards and the arms; `p` is the least of the three after Holm's correction
    for all tests of the frame, and the row `agrees` if it is at least 5 %.
    """
    keys = ["system", "algorithm", "xi", "iterations", "evaluations"]
    pairs = pd.DataFrame(
        [
            {key: getattr(a.job, key) for key in keys}
            | {"same_bits": a.digest() == b.digest()}
            | {f"{side}_{name}": value for side, r in (("our", a), ("their", b)) for name, value in outcome(r).items()}
            for a, b in zip(ours, theirs, strict=True)
        ]
    )
    cells = pairs.groupby(keys, sort=False)
    names = ("rewards", "fresh", "arms")
    tests = welch_holm(
        {(*cell, name): (group[f"our_{name}"], group[f"their_{name}"]) for cell, group in cells for name in names}
    )
    frame = cells.agg(agents=("same_bits", "size"), same_bits=("same_bits", "sum"))
    frame["p"] = [min(tests[*cell, name].p_holm for name in names) for cell in frame.index]
    frame["agrees"] = frame.p >= 0.05
    return frame.reset_index()


def outcome(record: Record) -> dict[str, float]:
    """Return what an agent is judged by."""
    last = record.history[-1]
    return {"rewards": float(last["rewards"]), "fresh": float(record.fresh[0]), "arms": float(last["arms"])}
