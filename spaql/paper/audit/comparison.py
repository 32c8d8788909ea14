"""A fairer comparison with TRPO: crossings, samples to a threshold, equal budgets."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from spaql.paper.audit.ablation import RULE_NAMES
from spaql.paper.audit.groups import KEPT_BEST, Group, grouped, spell
from spaql.paper.audit.measures import first_crossing, lasting_crossing
from spaql.paper.frames import by_system, histories
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import BUDGET
from spaql.paper.statistics import (
    bootstrap_interval,
    bootstrap_weights,
    percentile_interval,
    samples_to_reach,
)
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
    groups = grouped(records)
    rows = []
    for job, group in groups.items():
        rules = RULE_NAMES[job.rules]
        if job.algorithm not in KEPT_BEST or rules not in ("paper", "released"):
            continue
        for trpo, baseline in groups.items():
            if trpo.algorithm in provenance.TRPO and trpo.system == job.system:
                found = spell("lead", early_lead(group, baseline))
                found |= spell("first", first_crossing(baseline, group)) | spell(
                    "batch", lasting_crossing(baseline, group)
                )
                names = {"system": job.system, "baseline": trpo.algorithm, "algorithm": job.algorithm, "rules": rules}
                rows.append(names | found)
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
        for threshold in thresholds[system]:
            for counted in COUNTED:
                needed = agents_needed(cell, algorithm, threshold, counted).to_numpy()
                found = percentile_interval(float(middle(needed)), middle(needed[drawn]))
                rows.append(
                    {"system": system, "algorithm": algorithm, "threshold": threshold, "counted": counted}
                    | {"reached": np.isfinite(needed).mean()}
                    | spell("samples", found)
                )
    return by_system(pd.DataFrame(rows))


def agents_needed(cell: pd.DataFrame, algorithm: str, threshold: float, counted: str) -> pd.Series:
    """Return how many samples each agent of an algorithm needs to reach a threshold, infinite if it never does."""
    own = counted == "all" and algorithm in KEPT_BEST
    return samples_to_reach(cell, threshold, own, algorithm in provenance.TRPO).fillna(np.inf)


def samples_by_agent(records: Iterable[Record], thresholds: Mapping[str, float] = TOLD) -> pd.DataFrame:
    """Return one row per agent and way of counting: the samples that it needs to reach a threshold of its system.

    Parameters
    ----------
    records
        Of one group of agents for each algorithm and system; Random, which learns nothing, is left out.
    thresholds
        The reward to reach on each system.
    """
    frame = histories(record for record in records if record.job.algorithm != "Random")
    frames = [
        agents_needed(cell, algorithm, thresholds[system], counted)
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
    rows = []
    for (system, algorithm), cell in histories(compared(records)).groupby(["system", "algorithm"]):
        ordered = cell.sort_values(["agent", "iteration"])
        for counted in ("training", "all"):
            own = counted == "all" and algorithm in KEPT_BEST
            taken = ordered.steps + (ordered.evaluation_steps if own else 0)
            spent = taken.groupby(ordered.agent).cumsum() - (taken if algorithm in provenance.TRPO else 0)
            last = ordered[spent <= budget].groupby("agent").last()
            rows.append(
                {"system": system, "algorithm": algorithm, "counted": counted}
                | {"iterations": last.iteration.median(), "agents": len(last)}
                | spell("rewards", bootstrap_interval(last.rewards))
            )
    return by_system(pd.DataFrame(rows))
