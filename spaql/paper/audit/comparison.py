"""A fairer comparison with TRPO: crossings, samples to a threshold, equal budgets."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from spaql.paper.audit.ablation import RULE_NAMES
from spaql.paper.audit.groups import KEPT_BEST, Group, make_group
from spaql.paper.audit.measures import crossing
from spaql.paper.frames import by_system, histories
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import BUDGET
from spaql.paper.statistics import bootstrap_interval, bootstrap_weights, percentile_interval, spell, summarise
from spaql.paper.studies import is_long
from spaql.policies.interval import Interval

# The systems that TRPO ran on, and the rewards on the way to what the algorithms end with there: the last one of
# CartPole's is where Gymnasium's registry counts it as solved.
THRESHOLDS = {"Pendulum-v1": (-900.0, -700.0, -500.0, -200.0), "CartPole-v0": (100.0, 150.0, 190.0, 195.0)}
TOLD = {"Pendulum-v1": -700.0, "CartPole-v0": 195.0}  # the two that the book names

COUNTED = ("training", "all")  # samples: of training alone, or also of the rollouts that choose the agent


def crossings(records: Iterable[Record]) -> pd.DataFrame:
    """Return the batch after which TRPO's mean curve first is not below SPAQL's or SPAQL-TS's, and stays so.

    There is one row for each of their sets of rules.  `lead` is how far those are ahead before: the difference of the
    mean rewards over the first 200 batches.
    """
    members: dict[tuple[str, str, str], list[Record]] = {}
    for record in records:
        key = record.job.system, record.job.algorithm, RULE_NAMES[record.job.rules]
        members.setdefault(key, []).append(record)
    groups = {key: make_group(group) for key, group in members.items()}
    rows: list[dict[str, Any]] = [
        {"system": system, "baseline": baseline, "algorithm": algorithm, "rules": rules}
        | spell("lead", early_lead(group, other))
        | spell("first", crossing(other, group))
        | spell("batch", crossing(other, group, lasting=True))
        for (system, algorithm, rules), group in groups.items()
        if algorithm in KEPT_BEST and rules in ("paper", "released")
        for (where, baseline, _), other in groups.items()
        if baseline in provenance.TRPO and where == system
    ]
    columns = ["system", "baseline", "algorithm", "rules"]
    columns += [f"{name}{end}" for name in ("lead", "first", "batch") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:4], ignore_index=True)


def early_lead(one: Group, other: Group) -> Interval:
    """Return by how much the mean reward of a group exceeds another's over the first 200 batches, by bootstrap."""
    first, second = one.column("early"), other.column("early")
    ours, theirs = bootstrap_weights(first.size, second.size)
    resampled = ours @ first - theirs @ second
    return percentile_interval(first.mean() - second.mean(), resampled)


def compared(records: Iterable[Record]) -> list[Record]:
    """Return the records of the comparison with TRPO: its own, and the long runs of the text on the same systems."""
    return [
        record
        for record in records
        if record.job.system in THRESHOLDS
        and RULE_NAMES[record.job.rules] == "paper"
        and (is_long(record.job) or record.job.algorithm in provenance.TRPO)
    ]


def samples_needed(records: Iterable[Record], thresholds: Mapping[str, tuple[float, ...]] = THRESHOLDS) -> pd.DataFrame:
    """Return how many samples the agents need to reach thresholds, counted as the paper does and in full.

    `counted` is "training" or "all", which includes the evaluation rollouts that SPAQL's keep-the-best rule consumes.
    (AQL does not use its rollouts, TRPO has none.)  `reached` is the share of agents that get there at all; `samples`
    the median over agents, infinite if fewer than half do, with its bootstrap interval.
    """
    rng = np.random.default_rng(0)
    rows = []
    for (system, algorithm), cell in histories(compared(records)).groupby(["system", "algorithm"]):
        agents = cell.agent.nunique()
        drawn = rng.integers(agents, size=(9999, agents))
        for threshold, counted in itertools.product(thresholds[system], COUNTED):
            needed = agents_needed(cell, threshold, counted).to_numpy()
            rows.append(
                {"system": system, "algorithm": algorithm, "threshold": threshold, "counted": counted}
                | {"reached": np.isfinite(needed).mean()}
                | spell("samples", percentile_interval(float(middle(needed)), middle(needed[drawn])))
            )
    return by_system(pd.DataFrame(rows))


def samples_given(cell: pd.DataFrame, counted: str) -> pd.Series:
    """Return how many samples the policy behind each row of an algorithm's histories had been given."""
    (algorithm,) = cell.algorithm.unique()
    taken = cell.steps + (cell.evaluation_steps if counted == "all" and algorithm in KEPT_BEST else 0)
    return taken.groupby(cell.agent).cumsum() - (taken if algorithm in provenance.TRPO else 0)


def agents_needed(cell: pd.DataFrame, threshold: float, counted: str) -> pd.Series:
    """Return how many samples each agent of an algorithm needs to reach a threshold, infinite if it never does."""
    given = samples_given(cell, counted)
    return given.where(cell.rewards >= threshold).groupby(cell.agent).min().fillna(np.inf)


def samples_by_agent(records: Iterable[Record], thresholds: Mapping[str, float] = TOLD) -> pd.DataFrame:
    """Return one row per agent and way of counting: the samples that it needs to reach a threshold of its system.

    Random, which learns nothing, is left out.
    """
    frame = histories(record for record in records if record.job.algorithm != "Random")
    frames = [
        agents_needed(cell, thresholds[system], counted)
        .rename("samples")
        .reset_index()
        .assign(system=system, algorithm=algorithm, threshold=thresholds[system], counted=counted)
        for (system, algorithm), cell in frame.groupby(["system", "algorithm"], sort=False)
        for counted in COUNTED
    ]
    return pd.concat(frames, ignore_index=True)


def middle(values: np.ndarray) -> np.ndarray:
    """Return the upper median along the last axis, which is some agent's, so that infinities do no harm."""
    return np.sort(values, axis=-1)[..., values.shape[-1] // 2]


def at_budget(records: Iterable[Record], budget: int = BUDGET) -> pd.DataFrame:
    """Return the reward reported once an agent has spent a budget of samples, training alone or everything counted."""
    frames = [
        cell[samples_given(cell, counted) <= budget].groupby("agent").last().assign(counted=counted)
        for _, cell in histories(compared(records)).groupby(["system", "algorithm"])
        for counted in COUNTED
    ]
    last, by = pd.concat(frames), ["system", "algorithm", "counted"]
    found = summarise(last, by, rewards=bootstrap_interval)
    return by_system(found.join(last.groupby(by).iteration.median().rename("iterations"), on=by))
