"""Records of agents as data frames."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from spaql.paper.labels import ORDER, STYLES
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import outcome
from spaql.rules import COLUMNS
from spaql.systems import solved_at

OF_JOBS = ("algorithm", "system", "xi", "agent")
ENDS = ("rewards", "arms", "evaluations", "N", "fresh", "fresh_std", "fresh_deterministic", "steps", "wall",
        "evaluation_steps")  # fmt: skip


def by_system(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the book's order of systems: Pendulum, with five torques, CartPole, and then any others."""
    places = {system: place for place, system in enumerate(ORDER)}
    return frame.sort_values(
        "system", key=lambda systems: systems.map(places).fillna(len(places)), kind="stable", ignore_index=True
    )


def by_algorithm(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by system, and by algorithm in the order that every figure has them in."""
    places = {name: place for place, name in enumerate(STYLES)}
    return by_system(frame.sort_values("algorithm", key=lambda names: names.map(places), kind="stable"))


def histories(records: Iterable[Record]) -> pd.DataFrame:
    """Return the histories of records as one frame, with one row per iteration of an agent.

    Of stored agents it has the columns that are stored of all of them.
    """
    records = list(records)
    if ended := [record for record in records if record.only_end and not record.job.brief]:
        raise LookupError(
            f"the learning curves of {len(ended)} of these {len(records)} agents are not stored, only how they ended: "
            "finals(records) has that, and run(jobs, store=None) computes them again"
        )
    lengths = [len(record.history) for record in records]
    kept = [name for name in COLUMNS if all(name in (record.history.dtype.names or ()) for record in records)]
    return pd.DataFrame(
        {name: pd.Series([getattr(record.job, name) for record in records]).repeat(lengths).array for name in OF_JOBS}
        | {"iteration": np.concatenate([np.arange(1, length + 1) for length in lengths])}
        | {name: np.concatenate([record.history[name] for record in records]) for name in kept}
    )


def finals(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per agent: what it ended with, and the same policy on fresh episodes.

    `fresh_deterministic` is without the noise of the policy; only TRPO's agents are evaluated in that way too.
    """
    rows = []
    for record in records:
        found = outcome(record) | {"N": record.job.evaluations, "wall": record.wall}
        rows.append(
            {name: getattr(record.job, name) for name in ("algorithm", "system", "xi", "agent", "iterations")}
            | {name: found[name] for name in ENDS}
        )
    return pd.DataFrame(rows)


def solves(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return whether a return of each row solves its system, 1 or 0; NaN where nothing says when it is solved."""
    least = frame.system.map(solved_at).astype(float)
    return (frame[column] >= least).astype(float).where(least.notna())


def best(records: Iterable[Record]) -> Record:
    """Return the record with the highest reward at the end of training."""
    return max(records, key=lambda record: outcome(record)["rewards"])
