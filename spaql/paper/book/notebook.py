"""What the notebooks share: loading or computing their agents, and saying where the numbers come from.

What `results/` holds is loaded; whatever else a notebook is asked for is computed, and kept beside the book.
"""

import ast
import contextlib
import dataclasses
import functools
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from IPython import get_ipython

from spaql.paper.audit.readings import TEXT
from spaql.paper.runs import provenance as origin
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import FRESH, Job, Record
from spaql.paper.runs.runner import run
from spaql.paper.runs.store import load_origin, packed_files
from spaql.paper.studies import (
    LONG_RUNS,
    OTHER_SYSTEMS,
    SEED,
    Checkpointed,
    Reading,
    ReadingsStudy,
    checkpointed_jobs,
    make_jobs,
    other_jobs,
    reading_jobs,
    scale_of,
)
from spaql.paper.tables.results import groups_frame
from spaql.paper.tables.table import Table
from spaql.paper.terminal import no_parameter
from spaql.rules import RULES

STARTED = time.perf_counter()
INJECTED = "# Parameters\n"  # how papermill begins the cell that it adds


def gather(jobs: Iterable[Job], workers: int = 0) -> list[Record]:
    """Return the records of these agents: published ones loaded, others computed once and kept for the next time.

    A parameter that papermill was given and the notebook does not have is refused: it would have changed nothing.

    Parameters
    ----------
    jobs
        The agents.
    workers
        How many to compute at a time; 0 for one per core.
    """
    shell = get_ipython()
    refuse_unknown(shell.user_ns.get("In", []) if shell else [])
    return run(jobs, workers=workers or None)


def refuse_unknown(cells: list[str]) -> None:
    """Raise an error if a cell that papermill added, of those that were run, sets what no cell before it has set.

    Papermill alone only warns of a misspelt parameter, in its log, and runs the notebook with what was published.
    """
    known: dict[str, None] = {}
    for cell in cells:
        names = assigned_names(cell)
        wrong = [name for name in names if name not in known] if known and cell.startswith(INJECTED) else []
        for name in wrong:
            raise ValueError(no_parameter("this notebook", name, known))
        known |= dict.fromkeys(names)


def assigned_names(cell: str) -> list[str]:
    """Return the names that the lines of a cell assign values to; none if it is not plain Python."""
    try:
        lines = ast.parse(cell).body
    except SyntaxError:
        return []
    targets = [
        target
        for line in lines
        for target in (line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)])
    ]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def long_jobs(system: str, xis: dict[str, float], agents: int, iterations: int, evaluations: int, seed: int,
              rules: str = "paper", fresh: int = FRESH) -> list[Job]:  # fmt: skip
    """Return the agents of a system's long runs: each learner with its ξ, and Random."""
    jobs = []
    for algorithm, xi in {"Random": 0, **xis}.items():
        jobs += make_jobs([algorithm], [system], [xi], agents, iterations, evaluations, seed, rules, fresh, record=True)
    return jobs


def readings_runs(
    stored: Mapping[str, float], plan: ReadingsStudy, evaluations: int, seed: int
) -> dict[str, list[Job]]:
    """Return the long runs of several readings, with as many root seeds as of each are stored."""
    found = {}
    for name, roots in stored.items():
        same = dataclasses.replace(plan, roots=min(plan.roots, int(roots)), xi_readings=())
        jobs = text_runs(plan, seed) if name == TEXT else reading_jobs(same, name, seed)
        found[name] = [dataclasses.replace(job, evaluations=evaluations) for job in jobs]
    return found


def text_runs(plan: ReadingsStudy, seed: int) -> list[Job]:
    """Return the text's own long runs on the pendulums that readings are about."""
    systems = [Reading().system(kind) for kind in plan.kinds]
    size = plan.agents, plan.iterations
    return [
        job
        for system in systems
        for job in long_jobs(
            system, dict(LONG_RUNS.xis[system]), *size, LONG_RUNS.evaluations[system], seed, fresh=plan.fresh
        )
    ]


def trpo_jobs(
    system: str, agents: int, iterations: int, algorithms: Iterable[str] = ("TRPO",), fresh: int = FRESH
) -> list[Job]:
    """Return the agents of the baseline, with the published root seed; none if `agents` is 0."""
    if agents == 0:
        return []
    return make_jobs(algorithms, [system], [0], agents, iterations, 1, SEED, fresh=fresh, record=True)


def checkpointed(
    plan: Checkpointed, agents: int, iterations: int, evaluations: int, seed: int, fresh: int = FRESH
) -> list[Job]:
    """Return the agents of a study with checkpoints, with other numbers than its own; none if `agents` is 0."""
    if agents == 0:
        return []
    plan = dataclasses.replace(plan, agents=agents, iterations=iterations, evaluations=evaluations, fresh=fresh)
    return checkpointed_jobs(plan, seed)


def other_systems(
    agents: int,
    iterations: int,
    evaluations: int,
    looks: int,
    trpo_agents: int,
    trpo_tuned_agents: int,
    seed: int,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the agents on other systems, with other numbers than the published ones."""
    published = OTHER_SYSTEMS
    plan = dataclasses.replace(
        published,
        agents=agents,
        iterations=iterations,
        tuned_iterations=published.tuned_iterations * iterations // published.iterations,
        evaluations=evaluations,
        looks=looks,
        trpo_agents=trpo_agents,
        trpo_tuned_agents=trpo_tuned_agents,
        fresh=fresh,
    )
    return other_jobs(plan, seed)


class Provenance:
    """Where the numbers of a notebook come from: one line, and a table folded away below it."""

    def __init__(self, line: str, table: Table):
        self.line, self.table = line, table

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        shown = self.table._repr_mimebundle_()
        more = "[How to compute them again](../book/reproducibility.md)."
        folded = f"`````{{dropdown}} Parameters, versions, machines\n{shown['text/markdown']}\n`````\n"
        return {
            "text/markdown": f"{self.line} {more}\n\n{folded}",
            "text/html": f"<p>{self.line}</p>{shown['text/html']}",
            "text/plain": f"{self.line}\n{shown['text/plain']}",
        }


def provenance_table(records: Iterable[Record], name: str) -> Provenance:
    """Return where the numbers of a notebook come from: its closing block."""
    records = list(records)
    table = groups_frame(records)
    scale = scale_of(record.job for record in records)
    commits, dates, versions, machines = set(), set(), set(), set()
    for source in stored_sources(record.job for record in records):
        commits.add(source["commit"][:10] + source["commit"][40:])
        dates.add(source["date"][:10])
        machines.add(source["machine"])
        versions.add(", ".join(f"{package} {version}" for package, version in source["versions"].items()))
    wall = time.perf_counter() - STARTED
    line = f"These numbers come from {len(records):,} agents, computed on {' and '.join(sorted(dates))}."
    note = (
        f"Scale: {scale}. Rules: {named_rules(records)}. Computed by commit {' and '.join(sorted(commits))}, on a "
        f"machine with {' and '.join(sorted(machines))}; {'; or '.join(sorted(versions))}. Every agent has its own "
        f"streams, spawned from the root seed. This notebook took {wall:.0f} s, at commit "
        f"{origin.provenance()['commit'][:10]}."
    )
    return Provenance(line, Table(table, "The agents of this page", name, note))


def named_rules(records: Iterable[Record]) -> str:
    """Return the names of the rules of records; of a mixture, what differs from the text's."""
    names = []
    for rules in dict.fromkeys(record.job.rules for record in records):
        known = [name for name, choice in RULES.items() if choice == rules]
        different = {key: value for key, value in rules._asdict().items() if value != getattr(RULES["paper"], key)}
        names.append(known[0] if known else "paper with " + ", ".join(f"`{k}={v!r}`" for k, v in different.items()))
    return "; ".join(names)


def stored_sources(jobs: Iterable[Job]) -> Iterator[dict]:
    """Yield the provenance of each stored record that `gather` returned, published or not."""
    stores, files = (origin.default_store(), origin.own_store()), functools.cache(packed_files)
    for job in jobs:
        for store in stores:
            with contextlib.suppress(FileNotFoundError, Damaged):
                yield load_origin(store, job, files(store, job.system))
                break
        else:
            raise FileNotFoundError(f"{job} is not stored")
