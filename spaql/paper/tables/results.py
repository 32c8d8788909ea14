"""Tables and sentences of the paper's experiments."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from IPython.display import Markdown
from numpy.typing import ArrayLike
from scipy import stats

from spaql.paper.audit.claims import paper_results
from spaql.paper.frames import finals
from spaql.paper.labels import between, number, plus_minus, present, small, spread
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import outcome
from spaql.paper.runs.provenance import TRPO
from spaql.paper.statistics import holm, welch
from spaql.paper.studies import LEARNERS, is_published, parameters_of
from spaql.paper.tables.table import Table
from spaql.policies.interval import Interval
from spaql.systems import solved_at, title


def tests_table(frame: pd.DataFrame, pairs: Iterable[tuple[str, str]], caption: str, name: str) -> Table:
    """Return Welch's test of pairs of algorithms, by what is reported and on fresh episodes.

    Parameters
    ----------
    frame
        From `frames.finals`, of one system.
    pairs
        Of algorithms; the difference is the first minus the second.
    caption, name
        Of the table.
    """
    rows = []
    for first, second in pairs:
        one, other = (frame[frame.algorithm == algorithm] for algorithm in (first, second))
        if min(len(one), len(other)) < 2:
            continue
        row = {"comparison": f"{first} − {second}", "agents": f"{len(one)}, {len(other)}"}
        for column, head in (("rewards", "reported"), ("fresh", "fresh")):
            found = welch(one[column], other[column])
            row |= {head: between(Interval(found.difference, found.low, found.high)), f"p, {head}": small(found.p)}
        rows.append(row)
    return Table(pd.DataFrame(rows, columns=["comparison", "agents", "reported", "p, reported", "fresh", "p, fresh"]),
                 caption, name)  # fmt: skip


def best_of(groups: Mapping[str, ArrayLike]) -> set[str]:
    """Return the groups to be shown in bold: the highest mean, and what Welch's test at 5 % does not tell from it.

    This is the rule of the paper's Table 5.
    """
    means = {name: float(np.mean(np.asarray(values, float))) for name, values in groups.items()}
    best = max(means, key=lambda name: means[name])
    if min(len(np.asarray(values)) for values in groups.values()) < 2:
        return {name for name, mean in means.items() if mean == means[best]}
    return {name for name, values in groups.items() if name == best or welch(groups[best], values).p >= 0.05}


def results_table(records: Iterable[Record], caption: str, name: str) -> Table:
    """Return the rewards and arms at the end of training beside the paper's (its Tables 4 and 5).

    "Fresh" is what the paper does not report: the policy kept, on episodes that had no part in choosing it.  The best
    rewards are bold, as in the paper.
    """
    frame = finals(list(records))
    system = frame.system.iloc[0]
    paper = paper_results().get(system, {})
    groups = {algorithm: frame[frame.algorithm == algorithm] for algorithm in present(frame)}
    bold = {
        column: best_of({algorithm: mine[column] for algorithm, mine in groups.items()})
        for column in ("rewards", "fresh")
    }
    rows = []
    for algorithm, mine in groups.items():
        theirs = paper.get(algorithm, {})
        shown = {column: in_bold(spread(mine[column], 1), algorithm in best) for column, best in bold.items()}
        rows.append(
            {
                "algorithm": algorithm,
                "reward": shown["rewards"],
                "paper": plus_minus(*theirs["rewards"], 1) if "rewards" in theirs else "",
                "fresh": shown["fresh"],
                "arms": spread(mine.arms, 0) if algorithm in LEARNERS else "",
                "paper's arms": plus_minus(*theirs["arms"], 0) if "arms" in theirs else "",
            }
        )
    table = pd.DataFrame(rows)
    if not paper:
        table = table.drop(columns=["paper", "paper's arms"])
    return Table(table, caption, name)


def in_bold(text: str, bold: bool) -> str:
    """Return a text in bold, if it is to be."""
    return f"**{text}**" if bold else text


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
                "algorithm": algorithm,
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
        names = present(group)
        bold = {
            column: best_of({n: group[group.algorithm == n][column] for n in names}) for column in ("rewards", "fresh")
        }
        for algorithm in names:
            mine = group[group.algorithm == algorithm]
            rows.append(
                {
                    "system": title(system),
                    "algorithm": algorithm,
                    "reward": in_bold(spread(mine.rewards, 1), algorithm in bold["rewards"]),
                    "fresh": in_bold(spread(mine.fresh, 1), algorithm in bold["fresh"]),
                    "fresh, without noise": spread(mine.fresh_deterministic, 1) if algorithm in TRPO else "",
                    "thousand samples in training": number(mine.steps.mean() / 1000, 0),
                    "thousand samples in rollouts": number(mine.evaluation_steps.mean() / 1000, 0),
                }
            )
    return Table(pd.DataFrame(rows), caption, name)


class XiEffect(NamedTuple):
    """How much ξ matters to an algorithm on a system."""

    means: pd.Series  # the mean reward at each ξ
    spread: float  # their standard deviation
    chance: float  # what it would be about if ξ made no difference: the typical standard error of one of them
    p: float  # of a Kruskal-Wallis test of the agents at all ξ


def xi_effect_of(group: pd.DataFrame) -> XiEffect:
    """Return how much ξ matters to the agents of one algorithm on one system."""
    by_xi = group.groupby("xi").rewards
    means, errors = by_xi.mean(), by_xi.std(ddof=0) / np.sqrt(by_xi.size())
    several = len(means) > 1 and group.rewards.nunique() > 1
    p = float(stats.kruskal(*(rewards for _, rewards in by_xi)).pvalue) if several else float("nan")
    return XiEffect(means, float(means.std(ddof=0)), float(errors.median()), p)


def xi_effects(frame: pd.DataFrame) -> dict[tuple[str, str], tuple[XiEffect, float]]:
    """Return how much ξ matters to each learner on each system, and the p with Holm's correction over all of them."""
    effects = {key: xi_effect_of(group) for key, group in xi_groups(frame)}
    corrected = holm([effect.p for effect in effects.values()])
    return dict(zip(effects, zip(effects.values(), corrected, strict=True), strict=True))


def xi_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how much ξ matters: how far an algorithm's means lie apart over ξ, beside what chance alone would give."""
    rows = []
    for (system, algorithm), (effect, corrected) in xi_effects(frame).items():
        best = effect.means.idxmax()
        rows.append(
            {
                "system": title(system),
                "algorithm": algorithm,
                "mean reward": number(effect.means.mean(), 1),
                "spread over ξ": number(effect.spread, 1),
                "expected by chance": number(effect.chance, 1),
                "p": small(effect.p),
                "p (Holm)": small(corrected),
                "best ξ": f"{best:g}",
                "reward at best ξ": number(effect.means[best], 1),
            }
        )
    return Table(pd.DataFrame(rows), caption, name)


def xi_groups(frame: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Return the learners' agents by system and algorithm, systems first, in the order of all figures."""
    learners = frame[frame.algorithm != "Random"]
    return [
        ((system, algorithm), learners[(learners.system == system) & (learners.algorithm == algorithm)])
        for system in dict.fromkeys(learners.system)
        for algorithm in present(learners)
    ]


def parameter_table(study: str, caption: str, name: str) -> Table:
    """Return the parameters of a study (the paper's Tables 2 and 3), from what the code runs."""
    plan = parameters_of(study)
    rows: list[tuple[str, Any]] = [("Episode length H", 200), ("Training iterations K", plan["iterations"])]
    rows.append(("Agents", plan["agents"]))
    if study == "xi":
        rows.append(("Evaluation rollouts N", plan["evaluations"]))
        rows.append(("Values of ξ", ", ".join(f"{xi:g}" for xi in plan["xis"])))
    else:
        for count in dict.fromkeys(plan["evaluations"].values()):
            systems = [title(system) for system, n in plan["evaluations"].items() if n == count]
            rows.append((f"Evaluation rollouts N ({'; '.join(systems)})", count))
        for system, xis in plan["xis"].items():
            rows.append((f"ξ ({title(system)})", ", ".join(f"{name} {xi:g}" for name, xi in xis.items())))
    texts = [(parameter, f"{value:,}" if isinstance(value, int) else str(value)) for parameter, value in rows]
    return Table(pd.DataFrame(texts, columns=["parameter", "value"]), caption, name)


def scale_note(records: Iterable[Record]) -> Markdown | None:
    """Return a banner for a page whose agents are not the published ones; nothing for one whose agents are."""
    records = list(records)
    if is_published(record.job for record in records):
        return None
    return Markdown(
        f"> **Not the published run**: {len(records):,} agents with other parameters. The tables and figures below are "
        "theirs; the sentences and the verdicts are about the published run."
    )


def enumerate_values(values: Iterable) -> str:
    """Return the different values of something, as text: all of them, or of many how many and their ends."""
    texts = list(dict.fromkeys(f"{value:g}" if isinstance(value, float) else str(value) for value in values))
    return ", ".join(texts) if len(texts) <= 4 else f"{len(texts)} values, {texts[0]} to {texts[-1]}"


def iterations_of(record: Record) -> int:
    """Return for how many iterations an agent was trained; a job with looks gives thousands of samples instead."""
    return record.job.iterations if record.job.brief else int(outcome(record)["rows"])


def groups_frame(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per algorithm and system: with which parameters its agents were trained, and what it took."""
    frame = pd.DataFrame(
        [vars(record.job) | {"wall": record.wall, "iterations": iterations_of(record)} for record in records]
    )
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
