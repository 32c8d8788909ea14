"""What every notebook says of its run: whether it is the published one, and where its numbers come from."""

import json
import time
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown

from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.job import job_of
from spaql.paper.engine.provenance import commit
from spaql.paper.engine.study import is_published
from spaql.paper.engine.tables import Table
from spaql.systems import title

STARTED = time.perf_counter()


def scale_note(agents: pd.DataFrame) -> Markdown | None:
    """Return a banner for a page whose agents are not the published ones; nothing for one whose agents are."""
    if is_published(map(job_of, agents.to_dict("records"))):
        return None
    return Markdown(
        f"> **Not the published run**: {len(agents):,} agents with other parameters. The tables and figures below are "
        "theirs; the sentences and the verdicts are about the published run."
    )


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


def provenance(agents: pd.DataFrame, name: str) -> Provenance:
    """Return where the numbers of a notebook come from: its closing block."""
    origins = [json.loads(text) for text in agents.origin.unique()]
    packages: dict[str, set[str]] = {}
    for origin in origins:
        for package, version in origin["versions"].items():
            packages.setdefault(package, set()).add(version)
    used = [f"{name} {'/'.join(sorted(found))}" for name, found in packages.items()]
    run_of = "another run" if scale_note(agents) else "the published run"
    listing = (
        f"Agents of {run_of}, computed on {', '.join(sorted(agents.date.str[:10].unique()))}\n"
        f"Rules: {'; '.join(agents.rules.unique())}\n"
        f"Commits: {', '.join(sorted(text[:10] + text[40:] for text in agents.commit.unique()))}\n"
        f"Machines: {'; '.join(sorted({origin['machine'] for origin in origins}))}\n"
        f"Versions: {', '.join(used)}\n"
        f"This notebook took {time.perf_counter() - STARTED:.0f} s, at commit {commit()[:10]}"
    )
    line = f"{len(agents):,} agents: parameters, versions, machines"
    return Provenance(line, Table(groups_frame(agents), "The agents of this page", name), listing)


def groups_frame(agents: pd.DataFrame) -> pd.DataFrame:
    """Return one row per algorithm and system: with which parameters its agents were trained, and what it took."""
    rows = []
    for (system, algorithm), group in agents.groupby(["system", "algorithm"], sort=False):
        rows.append(
            {
                "system": title(system),
                "algorithm": algorithm,
                "ξ": enumerate_values(sorted(group.xi)) if algorithm in LEARNERS else "",
                "agents": f"{group.agent.nunique()}" + (" for each ξ" if group.xi.nunique() > 1 else ""),
                "iterations": enumerate_values(group.iterations),
                "N": enumerate_values(group.N),
                "root seed": enumerate_values(group.seed),
                "worker-seconds": f"{np.sum(group.wall):,.0f}",
            }
        )
    return pd.DataFrame(rows)


def enumerate_values(values: Iterable) -> str:
    """Return the different values of something, as text: all of them, or of many how many and their ends."""
    texts = list(dict.fromkeys(f"{value:g}" if isinstance(value, float) else str(value) for value in values))
    return ", ".join(texts) if len(texts) <= 4 else f"{len(texts)} values, {texts[0]} to {texts[-1]}"
