"""SPAQL-R beside the others: what each algorithm's policy earns after how many samples, when every sample counts."""

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spaql.paper.audit.changes import in_order
from spaql.paper.audit.comparison import middle
from spaql.paper.audit.controls import control_of
from spaql.paper.audit.groups import better_policies
from spaql.paper.frames import finals
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.outcomes import outcome, samples_behind, samples_taken
from spaql.paper.runs.repaired_settings import REMOVED
from spaql.paper.statistics import interquartile_interval, percentile_interval, spell, student_interval, summarise

# Mean returns on the way, and what TRPO ends near to.
LEVELS = {"Pendulum-v1": (-500.0, -300.0, -200.0, -175.0), "CartPole-v0": (100.0, 150.0, 195.0, 199.0)}
COUNTS = (5_000, 10_000, 20_000, 40_000, 70_000, 100_000)
AHEAD = "SPAQL-R"

RUNGS = {  # of the ladder from SPAQL to SPAQL-R: each keeps what the one above has
    "SPAQL, text": "SPAQL, the best of its agents",
    "SPAQL, last kept": "the last agent instead of the best",
    "SPAQL-R, rung 1": "SPAQL-R's actions and exploration",
    "SPAQL-R, rung 2": "value zero at the end",
    "SPAQL-R, rung 3": "discount",
    "SPAQL-R, rung 4": "first estimate 0",
    "SPAQL-R, rung 5": "constant learning rate",
    "SPAQL-R, rung 6": "cells halved across one axis",
    "SPAQL-R, rung 7": "angles",
    "SPAQL-R, rung 8": "targets of several steps",
    "SPAQL-R, no tiles": "replay",
    "SPAQL-R": "estimates on tiles: SPAQL-R",
}


def at_samples(record: Record, counts: ArrayLike) -> np.ndarray:
    """Return the reward of an agent's policy after so many samples: of the last row before; NaN before the first one.

    An agent that stopped earlier has NaN from then on.
    """
    taken = samples_behind(record)
    rows = np.searchsorted(taken, counts, side="right") - 1
    known = (rows >= 0) & (np.asarray(counts) <= samples_taken(record)[-1])
    return np.where(known, record.history["rewards"][np.maximum(rows, 0)], np.nan)


def rewards_at(records: Iterable[Record], counts: Sequence[int] = COUNTS) -> pd.DataFrame:
    """Return one row per agent and number of samples, with the reward of its policy then."""
    rows = [
        {"system": record.job.system, "algorithm": record.job.algorithm, "agent": record.job.agent}
        | {"samples": count, "reward": reward}
        for record in records
        for count, reward in zip(counts, at_samples(record, counts), strict=True)
    ]
    return pd.DataFrame(rows).dropna(subset="reward").reset_index(drop=True)


def summary_at(records: Iterable[Record], counts: Sequence[int] = COUNTS) -> pd.DataFrame:
    """Return mean and interquartile mean over agents, with intervals, of each algorithm after so many samples.

    There is no row where an agent has no policy yet, or none any more: a mean over the others would be another group's.
    """
    records = list(records)
    everybody = Counter((record.job.system, record.job.algorithm) for record in records)
    frame = rewards_at(records, counts)
    frame = frame.assign(mean=frame.reward, iqm=frame.reward)
    by = ["system", "algorithm", "samples"]
    found = summarise(frame, by, mean=student_interval, iqm=interquartile_interval)
    whole = [everybody[row.system, row.algorithm] == row.agents for row in found.itertuples()]
    return found[whole].reset_index(drop=True)


def samples_to_levels(records: Iterable[Record]) -> pd.DataFrame:
    """Return after how many samples agents first reach a level, and stay at or above it in the mean over agents.

    `first` is the median over agents of the samples after which a single look is at the level, as in `samples_needed`,
    infinite if fewer than half get there, with its bootstrap interval; `stays` is from where on the mean of all agents
    never falls below it again while all of them train, infinite if it ends below.
    """
    rows = []
    groups: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        groups.setdefault((record.job.system, record.job.algorithm), []).append(record)
    for (system, algorithm), group in groups.items():
        rng = np.random.default_rng(0)
        drawn = rng.integers(len(group), size=(1999, len(group)))
        counts = np.unique(np.concatenate([samples_behind(record) for record in group]))
        counts = counts[counts <= min(samples_behind(record)[-1] for record in group)]
        mean = np.mean([at_samples(record, counts) for record in group], axis=0)
        for level in LEVELS[system]:
            first = np.array([first_at(record, level) for record in group])
            found = percentile_interval(float(middle(first)), middle(first[drawn]))
            below = np.flatnonzero(~(mean >= level))
            stays = counts[0] if below.size == 0 else np.inf if below[-1] + 1 == len(counts) else counts[below[-1] + 1]
            rows.append(
                {"system": system, "algorithm": algorithm, "level": level, "agents": len(group), "stays": float(stays)}
                | spell("first", found)
            )
    return pd.DataFrame(rows)


def first_at(record: Record, level: float) -> float:
    """Return after how many samples an agent's reward first is at a level; infinite if never."""
    reached = np.flatnonzero(record.history["rewards"] >= level)
    return float(samples_behind(record)[reached[0]]) if reached.size else np.inf


def ends(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per agent: the policy it ends with on fresh episodes, and the samples it took.

    Of TRPO's two policies, with its noise and without, the one counts that earns more in the mean over agents.
    """
    records = list(records)
    taken = [outcome(record)["samples"] for record in records]
    found = finals(records).assign(fresh=better_policies(records), samples=taken)
    return found[["system", "algorithm", "agent", "fresh", "samples", "wall"]]


def removals(records: Iterable[Record], counts: Sequence[int] = (10_000, 20_000, 40_000)) -> pd.DataFrame:
    """Return what SPAQL-R and each of its variants with one repair taken back earn after so many samples."""
    mine = [record for record in records if record.job.algorithm in {AHEAD, *REMOVED}]
    return summary_at(mine, counts)


def rung_of(job: Job) -> str:
    """Return which rung of the ladder from SPAQL to SPAQL-R an agent stands on, or nothing if on none."""
    name = f"SPAQL, {control_of(job)}" if job.algorithm == "SPAQL" else job.algorithm
    return RUNGS.get(name, "")


def ladder(records: Iterable[Record], samples: int = 40_000) -> pd.DataFrame:
    """Return what each rung from SPAQL to SPAQL-R earns: one row per system and rung, with the samples it took.

    SPAQL's agents are those at the end of the long runs, on fresh episodes; without their rollouts' samples where the
    rollouts choose nothing.  The others have had so many samples.
    """
    rows = []
    for record in records:
        if not (rung := rung_of(record.job)):
            continue
        if record.job.algorithm == "SPAQL":
            taken = outcome(record)["samples" if record.job.rules.kept == "best" else "steps"]
            reward = record.fresh[0]
        else:
            taken = min(samples, samples_taken(record)[-1])
            reward = at_samples(record, [taken])[0]
        rows.append({"system": record.job.system, "rung": rung, "reward": reward, "samples": taken})
    frame, by = pd.DataFrame(rows), ["system", "rung"]
    found = summarise(frame, by, reward=student_interval).join(frame.groupby(by).samples.mean(), on=by)
    return found.sort_values("rung", key=in_order(RUNGS.values()), ignore_index=True, kind="stable")
