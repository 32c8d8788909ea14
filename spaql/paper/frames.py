"""Records of agents as data frames."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from spaql.paper.labels import STYLES
from spaql.paper.runs.job import Record
from spaql.paper.studies import LONG_RUNS, scale_of
from spaql.rules import COLUMNS

OF_JOBS = ("algorithm", "system", "xi", "agent")


def by_system(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the book's order of systems: Pendulum, with five torques, CartPole, and then any others."""
    places = {system: place for place, system in enumerate(LONG_RUNS.systems)}
    return frame.sort_values(
        "system", key=lambda systems: systems.map(places).fillna(len(places)), kind="stable", ignore_index=True
    )


def by_algorithm(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows by system, and by algorithm in the order that every figure has them in."""
    places = {name: place for place, name in enumerate(STYLES)}
    return by_system(frame.sort_values("algorithm", key=lambda names: names.map(places), kind="stable"))


def histories(records: Iterable[Record]) -> pd.DataFrame:
    """Return the histories of records as one frame, with one row per iteration of an agent."""
    records = list(records)
    lengths = [len(record.history) for record in records]
    whole = pd.DataFrame(
        {name: pd.Series([getattr(record.job, name) for record in records]).repeat(lengths).array for name in OF_JOBS}
        | {"iteration": np.concatenate([np.arange(1, length + 1) for length in lengths])}
        | {name: np.concatenate([record.history[name] for record in records]) for name in COLUMNS}
    )
    whole["scale"] = scale_of(record.job for record in records)
    return whole


def finals(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per agent: what it ended with, and the same policy on fresh episodes.

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
