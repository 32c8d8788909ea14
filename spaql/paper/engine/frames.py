"""Frames of agents in other forms: one row per iteration, the best agent, the book's order."""

import numpy as np
import pandas as pd

from spaql.paper.engine.outcomes import CURVES
from spaql.paper.engine.style import ORDER, STYLES
from spaql.systems import solved_at

OF_JOBS = ("algorithm", "system", "xi", "agent")


def histories(agents: pd.DataFrame) -> pd.DataFrame:
    """Return one row per iteration of an agent, with those of the curves that are stored of all of them."""
    kept = [name for name in CURVES if f"curve_{name}" in agents and agents[f"curve_{name}"].notna().all()]
    if not kept:
        raise LookupError("the learning curves of these agents are not stored, only how they ended")
    lengths = agents[f"curve_{kept[0]}"].map(len)
    frame = agents.loc[agents.index.repeat(lengths), list(OF_JOBS)].reset_index(drop=True)
    frame["iteration"] = np.concatenate([np.arange(1, length + 1) for length in lengths])
    for name in kept:
        frame[name] = np.concatenate(agents[f"curve_{name}"].to_list())
    return frame


def best(agents: pd.DataFrame) -> pd.Series:
    """Return the agent with the highest reward at the end of training."""
    return agents.loc[agents.rewards.idxmax()]


def solves(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return whether a return of each row solves its system, 1 or 0; NaN where nothing says when it is solved."""
    least = frame.system.map(solved_at).astype(float)
    return (frame[column] >= least).astype(float).where(least.notna())


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the book's order of systems and algorithms; those that it does not know come last."""
    places = {name: place for place, name in enumerate((*ORDER, *STYLES))}
    return frame.sort_values(
        ["system", "algorithm"],
        key=lambda names: names.map(places).fillna(len(places)),
        kind="stable",
        ignore_index=True,
    )
