"""SPAQL-R among its yardsticks on six systems: the limit, rules by hand, the textbook's algorithms, and networks."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from spaql.paper.audit.repaired import AHEAD, ends, rewards_at
from spaql.paper.runs.algorithms import SAME, SARSA, TEXTBOOK, TILES
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.provenance import SB3
from spaql.paper.statistics import student_interval, welch
from spaql.paper.studies import SIX, study
from spaql.systems import episode_limit, make_env, possible_returns

RIVALS = (SAME, *(name for name in TEXTBOOK if name != "By hand"))  # that learn, and have no network
AGAINST = {"no cells": (SAME,), "tiles": TILES, "Sarsa(λ)": SARSA, "no network": RIVALS, "networks": SB3}
LIMITS = ("Limit", "Limit, two actions")
ORDER = (*LIMITS, "By hand", AHEAD, *RIVALS, *SB3, "TRPO tuned", "SPAQL", "SPAQL-TS", "Random")
COUNTS = (2_000, 5_000, 10_000, 20_000, 40_000, 100_000)


def others() -> list[Job]:
    """Return the agents that the textbook's are compared with."""
    found = [job for name in ("limit", "sb3", "networks", "repaired") for job in study(name)]
    for name in ("long", "trpo", "systems"):
        found += [job for job in study(name) if job.system in SIX and job.algorithm in ORDER]
    return found


def name_of(record: Record) -> str:
    """Return the row of an agent in a table; the limit has several, and one of them is not shown: on half the grid."""
    if record.job.algorithm != "Limit" or not record.job.parameters:
        return record.job.algorithm
    return "Limit, two actions" if "actions" in dict(record.job.parameters) else "Limit, half the grid"


def returns(records: Iterable[Record]) -> pd.DataFrame:
    """Return what each algorithm's policies earn on fresh episodes at the end, one row per system and algorithm.

    Intervals are over agents, or over episodes where there is one.
    The limit of CartPole is the greatest possible return, which the regulator reaches.
    """
    records = list(records)
    frame = ends(records).assign(algorithm=[name_of(record) for record in records])
    frame["error"] = [record.fresh[1] / np.sqrt(record.job.fresh) for record in records]
    rows = []
    for (system, algorithm), cell in frame.groupby(["system", "algorithm"], sort=False):
        mean, error = cell.fresh.iloc[0], 1.96 * cell.error.iloc[0]
        found = student_interval(cell.fresh) if len(cell) > 1 else (mean, mean - error, mean + error)
        rows.append((system, algorithm, len(cell), cell.samples.mean(), *found))
    known = {row[0] for row in rows if row[1] == "Limit"}
    rows += [
        (system, "Limit", 0, 0.0, possible_returns(system)[1], np.nan, np.nan)
        for system in dict.fromkeys(frame.system)
        if system not in known and possible_returns(system)[1] == episode_limit(make_env(system))
    ]
    columns = ["system", "algorithm", "agents", "samples", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def leads(records: Iterable[Record], counts: Sequence[int] = COUNTS, rivals: Sequence[str] = RIVALS) -> pd.DataFrame:
    """Return, by system and number of samples, SPAQL-R's mean beside that of the best rival.

    From the end of an algorithm's training on it is the mean of fresh episodes, which are more.  `told` is whether
    Welch's test tells their agents apart.  The rival is the best of those that it finds ahead, and if there is none
    the best of all: a better mean of few agents hides no loss.
    """
    mine = [record for record in records if record.job.algorithm in {AHEAD, *rivals}]
    last = ends(mine).rename(columns={"samples": "in_all"})
    frame = last.merge(pd.Series(counts, name="samples"), how="cross").merge(rewards_at(mine, counts), how="left")
    frame["reward"] = frame.reward.where(frame.samples < frame.in_all, frame.fresh)
    rows = []
    for (system, samples), here in frame.dropna(subset="reward").groupby(["system", "samples"]):
        agents = {name: group.reward for name, group in here.groupby("algorithm")}
        ours = agents.pop(AHEAD)
        if not agents:
            continue  # a rival does not run there, or has no policy yet
        told = {name: min(len(ours), len(each)) > 1 and welch(ours, each).p < 0.05 for name, each in agents.items()}
        ahead = [name for name, each in agents.items() if told[name] and each.mean() > ours.mean()]
        rival = max(ahead or agents, key=lambda name: agents[name].mean())
        rows.append((system, samples, ours.mean(), rival, agents[rival].mean(), told[rival]))
    return pd.DataFrame(rows, columns=["system", "samples", "ours", "rival", "theirs", "told"])


def all_leads(records: Iterable[Record]) -> pd.DataFrame:
    """Return the leads over the best of each group of rivals, one below the other."""
    return pd.concat([leads(records, rivals=each).assign(rivals=name) for name, each in AGAINST.items()])


def curves(records: Iterable[Record], counts: Sequence[int] = tuple(range(1000, 101_000, 1000))) -> pd.DataFrame:
    """Return the mean return of each algorithm after so many samples: the data of the figure."""
    shown = [record for record in records if record.job.algorithm in {AHEAD, *RIVALS, *SB3}]
    return rewards_at(shown, counts).groupby(["system", "algorithm", "samples"]).reward.mean().reset_index()
