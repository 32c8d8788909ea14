"""What the notebooks share: loading or computing their agents, and saying where the numbers come from.

What `results/` holds is loaded; whatever else a notebook is asked for is computed, and kept beside the book.
"""

import ast
import contextlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

from IPython import get_ipython

from spaql.paper.runs import provenance as origin
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import run
from spaql.paper.runs.store import load_origin
from spaql.paper.studies import is_published
from spaql.paper.tables.results import groups_frame
from spaql.paper.tables.table import Table
from spaql.paper.terminal import no_parameter
from spaql.rules import RULES

STARTED = time.perf_counter()
INJECTED = "# Parameters\n"  # how papermill begins the cell that it adds


def gather(jobs: Iterable[Job], workers: int = 0) -> list[Record]:
    """Return the records of these agents: published ones loaded, others computed once and kept for the next time.

    A parameter that papermill was given and the notebook does not have is refused: it would have changed nothing.
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


class Provenance:
    """Where the numbers of a notebook come from: a table and a listing, folded away below one line."""

    def __init__(self, line: str, table: Table, listing: str):
        self.line, self.table, self.listing = line, table, listing

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        shown = self.table._repr_mimebundle_()
        return {
            "text/markdown": f"`````{{dropdown}} {self.line}\n{shown['text/markdown']}\n"
            f"```text\n{self.listing}\n```\n`````\n",
            "text/html": f"<p>{self.line}</p>{shown['text/html']}<pre>{self.listing}</pre>",
            "text/plain": f"{self.line}\n{shown['text/plain']}\n{self.listing}",
        }


def provenance_table(records: Iterable[Record], name: str) -> Provenance:
    """Return where the numbers of a notebook come from: its closing block."""
    records = list(records)
    table = groups_frame(records)
    run_of = "the published run" if is_published(record.job for record in records) else "another run"
    commits, dates, machines = set(), set(), set()
    versions: dict[str, set[str]] = {}
    for source in stored_sources(record.job for record in records):
        commits.add(source["commit"][:10] + source["commit"][40:])
        dates.add(source["date"][:10])
        machines.add(source["machine"])
        for package, version in source["versions"].items():
            versions.setdefault(package, set()).add(version)
    wall = time.perf_counter() - STARTED
    line = f"{len(records):,} agents: parameters, versions, machines"
    packages = ", ".join(f"{name} {'/'.join(sorted(found))}" for name, found in versions.items())
    listing = (
        f"Agents of {run_of}, computed on {', '.join(sorted(dates))}\n"
        f"Rules: {named_rules(records)}\nCommits: {', '.join(sorted(commits))}\n"
        f"Machines: {'; '.join(sorted(machines))}\nVersions: {packages}\n"
        f"This notebook took {wall:.0f} s, at commit {origin.provenance()['commit'][:10]}"
    )
    return Provenance(line, Table(table, "The agents of this page", name), listing)


def named_rules(records: Iterable[Record]) -> str:
    """Return the names of the rules of records; of a mixture, what differs from the text's."""
    names = []
    for rules in dict.fromkeys(record.job.rules for record in records):
        known = [name for name, choice in RULES.items() if choice == rules]
        different = {key: value for key, value in rules._asdict().items() if value != getattr(RULES["paper"], key)}
        names.append(known[0] if known else "paper with " + ", ".join(f"{k}={v!r}" for k, v in different.items()))
    return "; ".join(names)


def stored_sources(jobs: Iterable[Job]) -> Iterator[dict]:
    """Yield the provenance of each stored record that `gather` returned, published or not."""
    for job in jobs:
        for store in (origin.default_store(), origin.own_store()):
            with contextlib.suppress(FileNotFoundError, Damaged):
                yield load_origin(store, job)
                break
        else:
            raise FileNotFoundError(f"{job} is not stored")
