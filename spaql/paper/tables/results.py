"""Tables and sentences of the paper's experiments."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown

from spaql.paper.audit.claims import paper_results
from spaql.paper.figures.style import present
from spaql.paper.frames import finals
from spaql.paper.runs.job import Record
from spaql.paper.runs.provenance import TRPO
from spaql.paper.statistics import Comparison
from spaql.paper.studies import LEARNERS, SCALES, LongRuns, XiStudy, scale_of
from spaql.paper.tables.table import Table, number, p_value, plus_minus, spread
from spaql.policies.interval import paper_interval
from spaql.systems import solved_at, title


def welch_sentence(first: str, second: str, comparison: Comparison) -> str:
    """Say what a Welch test of two groups of agents found."""
    outcome = "differ" if comparison.p < 0.05 else "cannot be told apart"
    return (
        f"{first} and {second} {outcome} at the 5 % level (Welch, two-sided: {p_value(comparison.p)}; difference of "
        f"the means {number(comparison.difference, 1)}, 95 % interval {number(comparison.low, 1)} to "
        f"{number(comparison.high, 1)})"
    )


def results_table(records: Iterable[Record], caption: str, name: str) -> Table:
    """Return the rewards and arms at the end of training beside the paper's (its Tables 4 and 5).

    "Fresh" is what the paper does not report: the policy kept, on episodes that had no part in choosing it.
    """
    frame = finals(list(records))
    system = frame.system.iloc[0]
    paper = paper_results().get(system, {})
    rows = []
    for algorithm in present(frame):
        mine, theirs = frame[frame.algorithm == algorithm], paper.get(algorithm, {})
        arms = algorithm in LEARNERS
        rows.append(
            {
                "": algorithm,
                "agents": str(len(mine)),
                "reward": spread(mine.rewards),
                "paper": plus_minus(*theirs["rewards"]) if "rewards" in theirs else "",
                "fresh": spread(mine.fresh),
                "arms": spread(mine.arms, 1) if arms else "",
                "paper's arms": plus_minus(*theirs["arms"]) if "arms" in theirs else "",
            }
        )
    table = pd.DataFrame(rows)
    if not paper:
        table = table.drop(columns=["paper", "paper's arms"])
    return Table(table, caption, name)


def solved_table(frame: pd.DataFrame, caption: str, name: str, perfect: float = 200.0) -> Table:
    """Return how many agents solve a system, and how many are perfect.

    Parameters
    ----------
    frame
        From `frames.finals`, of one system that Gymnasium's registry has a threshold for.
    caption, name
        Of the table.
    perfect
        The greatest return that an episode can have.
    """
    (system,) = frame.system.unique()
    solved = solved_at(system)
    if solved is None:
        raise ValueError(f"Gymnasium's registry does not say when {system} is solved")
    rows = []
    for algorithm in present(frame):
        mine = frame[frame.algorithm == algorithm]
        rows.append(
            {
                "": algorithm,
                "agents": len(mine),
                "solve it": (mine.rewards >= solved).sum(),
                f"at {perfect:g}": (mine.rewards == perfect).sum(),
                "solve it, fresh": (mine.fresh >= solved).sum(),
                f"at {perfect:g}, fresh": (mine.fresh == perfect).sum(),
            }
        )
    return Table(pd.DataFrame(rows).astype(str), caption, name)


def baseline_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the ends of training of the learners and the baselines, with what they cost in samples."""
    rows = []
    for system, group in frame.groupby("system", sort=False):
        for algorithm in present(group):
            mine = group[group.algorithm == algorithm]
            rows.append(
                {
                    "system": title(system),
                    "": algorithm,
                    "reward": spread(mine.rewards, 1),
                    "fresh": spread(mine.fresh, 1),
                    "fresh, no noise": spread(mine.fresh_deterministic, 1) if algorithm in TRPO else "",
                    "training": number(mine.steps.mean() / 1000, 0),
                    "rollouts": number(mine.evaluation_steps.mean() / 1000, 0),
                }
            )
    return Table(pd.DataFrame(rows), caption, name)


def xi_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how much ξ matters: how far an algorithm's means lie apart over ξ, beside how well each is known."""
    rows = []
    for (system, algorithm), group in frame[frame.algorithm != "Random"].groupby(["system", "algorithm"], sort=False):
        intervals = group.groupby("xi").rewards.apply(paper_interval)
        means = intervals.map(lambda interval: interval.mean)
        rows.append(
            {
                "system": title(system),
                "algorithm": algorithm,
                "mean over ξ": number(means.mean(), 1),
                "spread over ξ": number(means.std(ddof=0), 1),
                "half-interval": number(intervals.map(lambda interval: interval.high - interval.mean).median(), 1),
                "best ξ": f"{means.idxmax():g}",
                "its reward": number(means.max(), 1),
                "reward at ξ = 0": number(means[0], 1) if 0 in means.index else "",
            }
        )
    return Table(pd.DataFrame(rows), caption, name)


def parameter_table(plan: XiStudy | LongRuns, caption: str, name: str) -> Table:
    """Return the parameters of a study (the paper's Tables 2 and 3), from what the code runs."""
    rows: list[tuple[str, Any]] = [("Episode length H", 200), ("Training iterations K", plan.iterations)]
    rows.append(("Agents", plan.agents))
    by_count: dict[int, list[str]] = {}
    for system, count in plan.evaluations.items():
        by_count.setdefault(count, []).append(title(system))
    for count, systems in by_count.items():
        which = f" ({'; '.join(systems)})" if len(by_count) > 1 else ""
        rows.append((f"Evaluation rollouts N{which}", count))
    if isinstance(plan, XiStudy):
        rows.append(("Values of ξ", ", ".join(f"{xi:g}" for xi in plan.xis)))
    else:
        for system, xis in plan.xis.items():
            rows.append((f"ξ ({title(system)})", ", ".join(f"{name} {xi:g}" for name, xi in xis.items())))
    return Table(pd.DataFrame(rows, columns=["parameter", "value"]).astype(str), caption, name)


def scale_note(records: Iterable[Record]) -> Markdown:
    """Say whether these are the paper's runs or others."""
    records = list(records)
    scale = scale_of(record.job for record in records)
    agents = f"{len(records):,} agents"
    if scale == "paper":
        return Markdown(f"> The paper's runs at the paper's scale: {agents}.")
    known = f'the "{scale}" scale' if scale in SCALES else "other parameters than the paper's"
    return Markdown(f"> **Not the paper's runs**: {agents} with {known}. Nothing below is a verdict on the paper.")


def enumerate_values(values: Iterable) -> str:
    """Return the different values of something, as text."""
    return ", ".join(dict.fromkeys(f"{value:g}" if isinstance(value, float) else str(value) for value in values))


def groups_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per algorithm and system: with which parameters its agents were trained, and what it took."""
    frame = pd.DataFrame([vars(record.job) | {"wall": record.wall} for record in records])
    rows = []
    for (system, algorithm), group in frame.groupby(["system", "algorithm"], sort=False):
        rows.append(
            {
                "system": title(system),
                "algorithm": algorithm,
                "ξ": enumerate_values(sorted(group.xi)) if algorithm in LEARNERS else "",
                "agents": f"{group.agent.nunique()}" + (" for each ξ" if group.xi.nunique() > 1 else ""),
                "iterations": enumerate_values(group.iterations),
                "N": "" if algorithm in TRPO else enumerate_values(group.evaluations),
                "root seed": enumerate_values(group.seed),
                "worker-seconds": f"{np.sum(group.wall):,.0f}",
            }
        )
    return pd.DataFrame(rows)
