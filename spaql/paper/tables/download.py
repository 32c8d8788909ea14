"""The data of figures, to take away: a link that holds the file itself, so that it works from a disk, too."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from IPython.display import Markdown

from spaql.paper.labels import thin
from spaql.paper.runs.job import Record
from spaql.paper.statistics import summarise
from spaql.paper.tables.table import csv_link
from spaql.policies.export import describe_action
from spaql.policies.interval import paper_interval
from spaql.policies.simplify import Size
from spaql.policies.tree import LEAF, Tree


def download(frame: pd.DataFrame, name: str, of: str = "figure") -> Markdown:
    """Return a link to a frame as a CSV file: the data of this figure, or of something else."""
    return Markdown(csv_link(frame, name, f"The data of this {of} (CSV)"))


def curves_frame(histories: pd.DataFrame) -> pd.DataFrame:
    """Return the curves of histories at the iterations that figures draw."""
    last = histories.groupby("algorithm").iteration.transform("max")
    shown = {count: set(thin(int(count)) + 1) for count in last.unique()}
    kept = np.array([i in shown[count] for i, count in zip(histories.iteration, last, strict=True)])
    return summarise(
        histories[kept], ["algorithm", "iteration"], rewards=paper_interval, arms=paper_interval, steps=paper_interval
    )


def sizes_frame(curves: Mapping[str, Iterable[Size]]) -> pd.DataFrame:
    """Return the trade-offs of size and return as a frame with one row per tree."""
    return pd.DataFrame(
        [
            {"algorithm": name, "leaves": size.leaves, "return": size.mean, "low": size.low, "high": size.high}
            for name, curve in curves.items()
            for size in curve
        ]
    )


def nodes_frame(tree: Tree) -> pd.DataFrame:
    """Return a tree as a frame with one row per node: its question and the nodes that follow, or its action."""
    rows: list[dict[str, object]] = []
    for node, feature in enumerate(tree.feature):
        if feature == LEAF:
            rows.append({"node": node, "action": describe_action(tree, node, 6)})
        else:
            asked = {"variable": tree.variables.observed[feature], "below": tree.threshold[node]}
            rows.append({"node": node, **asked, "yes": str(tree.left[node]), "no": str(tree.right[node])})
    return pd.DataFrame(rows, columns=["node", "variable", "below", "yes", "no", "action"])


def episodes_frame(records: Mapping[str, Record]) -> pd.DataFrame:
    """Return episodes as a frame with one row per step: the state before it, the action and the reward."""
    frames = []
    for name, record in records.items():
        episode = record.episode
        steps = len(episode["actions"])
        frame = pd.DataFrame(
            episode["states"][:steps], columns=[f"state_{i}" for i in range(episode["states"].shape[1])]
        )
        frame.insert(0, "step", range(steps))
        frame.insert(0, "algorithm", name)
        frames.append(frame.assign(action=episode["actions"], reward=episode["rewards"]))
    return pd.concat(frames, ignore_index=True)
