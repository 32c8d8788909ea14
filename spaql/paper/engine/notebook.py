"""What every notebook says of its run: whether it is the published one, and where its numbers come from."""

import json
import time

import pandas as pd
from IPython.display import Markdown

from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.job import job_of
from spaql.paper.engine.provenance import commit
from spaql.paper.engine.study import is_published
from spaql.paper.engine.tables import Folded, Table
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


def provenance(agents: pd.DataFrame, name: str) -> Folded:
    """Return where the numbers of a notebook come from: its closing block."""
    rows = []
    for (system, algorithm), group in agents.groupby(["system", "algorithm"], sort=False):
        row = {"system": title(system), "algorithm": algorithm}
        row["ξ"] = different_values(group.xi.sort_values()) if algorithm in LEARNERS else ""
        row["agents"] = f"{group.agent.nunique()}" + (" for each ξ" if group.xi.nunique() > 1 else "")
        row |= {column: different_values(group[column]) for column in ("iterations", "N", "seed")}
        rows.append(row | {"worker-seconds": f"{group.wall.sum():,.0f}"})
    origins = pd.DataFrame([json.loads(text) for text in agents.origin.unique()])
    packages = pd.DataFrame(origins.versions.to_list())
    note = (
        f"Computed on {different_values(agents.date.str[:10].sort_values())} at commits "
        f"{different_values(agents.commit.map(lambda text: text[:10] + text[40:]))}. "
        f"Rules: {'; '.join(agents.rules.unique())}. Machines: {'; '.join(origins.machine.unique())}. Versions: "
        f"{', '.join(f'{package} {different_values(packages[package].dropna())}' for package in packages)}. "
        f"This notebook took {time.perf_counter() - STARTED:.0f} s, at commit {commit()[:10]}."
    )
    line = f"{len(agents):,} agents: parameters, versions, machines"
    return Folded(Table(pd.DataFrame(rows), "The agents of this page", name, note), line)


def different_values(values: pd.Series) -> str:
    """Return the different values of a column, as text: all of them, or of many how many and their ends."""
    texts = [f"{value:g}" if isinstance(value, float) else str(value) for value in values.unique()]
    return ", ".join(texts) if len(texts) <= 4 else f"{len(texts)} values, {texts[0]} to {texts[-1]}"
