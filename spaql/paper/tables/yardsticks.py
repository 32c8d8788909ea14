"""The tables of six systems: frames of `spaql.paper.audit.yardsticks` in, tables of the book out."""

import itertools
import json
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from spaql.paper.audit.repaired import AHEAD, rewards_at
from spaql.paper.audit.tile_trees import CHOSEN
from spaql.paper.audit.yardsticks import AGAINST, ORDER, returns
from spaql.paper.labels import between, number
from spaql.paper.runs.job import Record
from spaql.paper.runs.provenance import default_store
from spaql.paper.studies import SIX
from spaql.paper.tables.table import Table
from spaql.policies.interval import Interval
from spaql.systems import title


def span(values: pd.Series) -> str:
    """Return the least and the greatest of some counts as text, one number if they are equal."""
    low, high = f"{values.min():,.0f}", f"{values.max():,.0f}"
    return low if low == high else f"{low}–{high}"


def returns_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the mean return of each algorithm at the end of training, one column per system."""
    rows = []
    for algorithm in ORDER:
        mine = frame[frame.algorithm == algorithm].set_index("system")
        if mine.empty:
            continue
        learns = mine.samples.max() > 0 and algorithm != "Random"
        row = {"": algorithm, "agents": span(mine.agents) if learns else ""}
        row["samples"] = span(mine.samples.round(-3)) if learns else ""
        row |= {title(system): number(mine["mean"][system], 1) if system in mine.index else "–" for system in SIX}
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def leads_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return by how much SPAQL-R leads the best of each group of rivals, and which that is, by numbers of samples."""
    rows = []
    for (rivals, samples), here in frame.groupby(["rivals", "samples"], sort=False):
        row = {"rivals": rivals, "samples": f"{samples:,}"} | dict.fromkeys(map(title, SIX), "–")
        for cell in here.itertuples():
            gap = cell.ours - cell.theirs
            sign = "≈ " * (not cell.told) + "+" * (gap > 0)
            rival = f" ({cell.rival})" * (len(AGAINST[rivals]) > 1)
            row[title(cell.system)] = f"{sign}{number(gap, 1)}{rival}"
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name, words=True)


def samples_table(records: Iterable[Record], counts: Sequence[int], caption: str, name: str) -> Table:
    """Return the mean return of each algorithm after so many samples; some learn nothing."""
    records = list(records)
    means = rewards_at(records, counts).groupby(["algorithm", "system", "samples"]).reward.mean()
    ends = returns(records).set_index(["algorithm", "system"])["mean"]
    rows = []
    for algorithm in (each for each in ORDER if any(record.job.algorithm == each for record in records)):
        row = {"": algorithm}
        for system, samples in itertools.product(dict.fromkeys(record.job.system for record in records), counts):
            still = algorithm in ("Random", "By hand")
            found = ends.get((algorithm, system)) if still else means.get((algorithm, system, samples))
            row[f"{title(system)}, {samples // 1000}k"] = "–" if found is None else number(found, 0)
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def load_seconds() -> pd.DataFrame:
    """Return the measured agents, one row each; infinite seconds and samples where the level was not reached."""
    found = json.loads((default_store() / "seconds.json").read_text(encoding="utf-8"))
    frame = pd.DataFrame(found["agents"])
    for column in ("samples", "seconds"):
        frame[column] = frame[column].where(frame.reached, np.inf)
    alone = [
        {"algorithm": "the environment", "system": system, "samples": 100_000.0, "seconds": seconds}
        for system, seconds in found["environment"].items()
    ]
    return pd.concat([frame, pd.DataFrame(alone)], ignore_index=True)


def seconds_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the seconds and thousands of samples until a level is reached, medians over agents."""
    rows = []
    for algorithm in sorted(frame.algorithm.unique(), key=[*ORDER, "the environment"].index):
        row, mine = {"": algorithm}, frame[frame.algorithm == algorithm]
        for system in dict.fromkeys(frame.system):
            here = mine[mine.system == system][["seconds", "samples"]].median()
            reached = len(mine[mine.system == system]) and np.isfinite(here.seconds)
            row[title(system)] = f"{float(f'{here.seconds:.2g}'):g} s ({here.samples / 1000:.0f})" if reached else "–"
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def tile_trees_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what tiles earn, and trees in their place, beside SPAQL-R's trees (see `tile_trees.means`)."""
    rows = []
    for system, here in frame.groupby("system", sort=False):
        tiles, cells = (here[here.algorithm == algorithm] for algorithm in (CHOSEN, AHEAD))
        row = {"": title(system), "tiles": number(tiles[tiles["size"].isna()]["return"].iloc[0], 1)}
        trees = tiles.dropna(subset="size").set_index("size")["return"]
        row |= {f"{size:.0f} leaves": number(mean, 1) for size, mean in trees.items()}
        rows.append(row | {AHEAD: number(cells["return"].iloc[0], 1), "its leaves": f"{cells.leaves.iloc[0]:,.0f}"})
    return Table(pd.DataFrame(rows), caption, name)


def trees_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the size and return of the best policies, of small trees, and of random ones (see `small_trees`)."""

    def ends(found: object) -> str:
        return between(Interval(*found)) if isinstance(found, list) else ""

    rows = [
        {
            "system": title(row.system),
            "solved at": number(row.target, 0),
            "from": row.algorithm,
            "exact leaves": f"{row.exact:,}",
            "return": ends(row.exact_return),
            "small": f"{row.small:.0f}" if np.isfinite(row.small) else "none",
            "its return": ends(row.small_return),
            "a random one's": ends(row.random_return),
        }
        for row in frame.itertuples()
    ]
    return Table(pd.DataFrame(rows), caption, name)
