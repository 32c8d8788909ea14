"""What the chapters say beside their figures and tables: sentences with the numbers of the runs they show.

Every function takes frames of agents and returns Markdown.  Words that a number decides ("more", "no difference") are
chosen by that number, so that the sentences are true of other parameters, too.
"""

import numpy as np
import pandas as pd

from spaql.paper.audit.claims import paper_results
from spaql.paper.figures.style import present
from spaql.paper.statistics import student_interval, welch
from spaql.paper.studies import LEARNERS
from spaql.paper.tables.results import welch_sentence, xi_effect_of, xi_effects, xi_groups
from spaql.paper.tables.table import listed, number, p_value, plus_minus, spread
from spaql.systems import solved_at, title


def points(*sentences: str) -> str:
    """Return what is seen, one point per sentence that is not empty."""
    return "**We see:**\n\n" + "\n".join(f"- {sentence}" for sentence in sentences if sentence)


def column_of(ends: pd.DataFrame, algorithm: str, column: str = "rewards") -> np.ndarray:
    """Return a column of an algorithm's agents."""
    return ends[ends.algorithm == algorithm][column].to_numpy()


def xi_ranges(ends: pd.DataFrame, system: str) -> str:
    """Say between which means each learner lies over ξ on a system, and where Random is."""
    here = ends[ends.system == system]
    parts = []
    for (_, algorithm), group in xi_groups(here):
        means = xi_effect_of(group).means
        parts.append(f"between {number(means.min(), 0)} and {number(means.max(), 0)} for {algorithm}")
    random = column_of(here, "Random")
    return f"{title(system)}: as ξ varies, the mean lies {listed(parts)}; Random earns {spread(random, 0)}."


def xi_matters(ends: pd.DataFrame) -> str:
    """Say to which algorithms ξ makes a difference, by a test of all of them together."""
    corrected = {key: p for key, (_, p) in xi_effects(ends).items()}
    found = [f"{name} on {title(system)} ({p_value(p)})" for (system, name), p in corrected.items() if p < 0.05]
    rest = len(corrected) - len(found)
    tests = f"Kruskal–Wallis tests at the 5 % level, with Holm's correction for {len(corrected)} of them"
    if not found:
        return f"By the corrected p, ξ makes no difference that {len(corrected)} tests could see ({tests})."
    others = f", and to the other {rest} none that is seen" if rest else ""
    return f"By the corrected p, ξ makes a difference to {listed(found)}{others} ({tests})."


def without_bonus(ends: pd.DataFrame, system: str) -> str:
    """Say what each learner earns without a bonus, beside its mean with one."""
    here = ends[ends.system == system]
    parts = []
    for algorithm in [name for name in present(here) if name in LEARNERS]:
        mine = here[here.algorithm == algorithm]
        with_bonus = mine[mine.xi > 0].groupby("xi").rewards.mean().mean()
        parts.append(f"{algorithm} earns {spread(mine[mine.xi == 0].rewards, 1)} (with one, {number(with_bonus, 1)})")
    return f"Without a bonus (ξ = 0), {listed(parts)}; Random earns {spread(column_of(here, 'Random'), 1)}."


def beside_paper(ends: pd.DataFrame, algorithms: tuple[str, ...] = ("SPAQL", "SPAQL-TS", "AQL", "Random")) -> str:
    """Say what the agents of one system earn, beside the paper's numbers."""
    (system,) = ends.system.unique()
    paper = paper_results().get(system, {})
    parts = []
    for name in algorithms:
        theirs = f" (paper: {plus_minus(*paper[name]['rewards'], 0)})" if name in paper else ""
        parts.append(f"{name} {spread(column_of(ends, name), 0)}{theirs}")
    return f"Rewards at the end of training: {listed(parts)}."


def arms_ratio(ends: pd.DataFrame, many: str, few: str) -> str:
    """Say how many times the arms of one algorithm another has."""
    more, fewer = (column_of(ends, name, "arms").mean() for name in (many, few))
    times = more / fewer
    return f"{many} ends with {number(times, 0 if times >= 10 else 1)} times the arms of {few}"


def told_apart(ends: pd.DataFrame, first: str, second: str) -> str:
    """Say whether two algorithms differ, by the reported rewards and on fresh episodes; nothing of single agents."""
    one, other = (ends[ends.algorithm == name] for name in (first, second))
    if min(len(one), len(other)) < 2:
        return ""
    fresh = welch(one.fresh, other.fresh)
    verdict = "they differ" if fresh.p < 0.05 else "they do not differ significantly"
    reported = welch_sentence(first, second, welch(one.rewards, other.rewards))
    return f"{reported}; on fresh episodes {verdict} ({p_value(fresh.p)}, {number(fresh.difference, 1)} apart)."


def solved_counts(ends: pd.DataFrame) -> str:
    """Say how many agents of each algorithm solve a system, as reported and on fresh episodes."""
    (system,) = ends.system.unique()
    threshold = solved_at(system)
    parts = []
    for name in present(ends):
        reported, fresh = (int((column_of(ends, name, column) >= threshold).sum()) for column in ("rewards", "fresh"))
        if reported or fresh:
            parts.append(f"{name} {reported} ({fresh} on fresh episodes) of {len(column_of(ends, name))}")
    return f"Agents that solve {title(system)}: {listed(parts)}."


def selection(ends: pd.DataFrame, algorithms: tuple[str, ...] = ("SPAQL", "SPAQL-TS")) -> str:
    """Say by how much fresh episodes fall short of what is reported, or do not."""
    losses = {name: column_of(ends, name) - column_of(ends, name, "fresh") for name in algorithms}
    parts = [f"{spread(loss, 1)} for {name}" for name, loss in losses.items()]
    if min(loss.mean() for loss in losses.values()) > 0:
        return f"What is reported exceeds what the same policies earn on fresh episodes by {listed(parts)}."
    return f"What is reported, less what the same policies earn on fresh episodes, is {listed(parts)}."


def gain(here: pd.DataFrame, there: pd.DataFrame, algorithm: str) -> str:
    """Say what an algorithm gains from one version of a system to another."""
    new, old = (column_of(frame, algorithm) for frame in (here, there))
    fresh = column_of(here, algorithm, "fresh").mean() - column_of(there, algorithm, "fresh").mean()
    test = f" (Welch's test: {p_value(welch(new, old).p)})" if min(len(new), len(old)) > 1 else ""
    return f"{algorithm} gains {number(new.mean() - old.mean(), 0)}{test}, and {number(fresh, 0)} on fresh episodes"


def all_samples(ends: pd.DataFrame) -> str:
    """Say how many samples each algorithm spent, in training and in the rollouts that choose its agent."""
    parts = []
    for name in [n for n in present(ends) if n != "Random"]:
        training, rollouts = (column_of(ends, name, column).mean() / 1000 for column in ("steps", "evaluation_steps"))
        more = f" and {number(rollouts, 0)} in rollouts" if rollouts else ""
        parts.append(f"{name} {number(training, 0)}{more}")
    return f"Thousands of samples per agent: {listed(parts)}."


def reached_within(levels: pd.DataFrame, system: str, level: float) -> str:
    """Say within how many samples half of each algorithm's agents reach a level of a system.

    `levels` is from `spaql.paper.audit.repaired.samples_to_levels`.
    """
    here = levels[(levels.system == system) & (levels.level == level)].sort_values("first", kind="stable")
    finite = np.isfinite(here["first"])
    reached = zip(here.algorithm[finite], here["first"][finite], strict=True)
    there = [f"{samples:,.0f} ({name})" for name, samples in reached]
    never = here.algorithm[~finite].tolist()
    words = f"Samples within which half of the agents reach {number(level, 0)} on {title(system)}"
    missed = f"; with {listed(never)} fewer than half ever do" if never else ""
    return f"{words}: {listed(there)}{missed}."


def alone(values: np.ndarray) -> str:
    """Return a mean that stands beside no number of the paper, with Student's half-interval, as text."""
    found = student_interval(values)
    return plus_minus(found.mean, found.high - found.mean, 1)


def ends_beside(ends: pd.DataFrame, system: str) -> str:
    """Say what each algorithm's policies earn on fresh episodes at the end of training, and after how many samples.

    `ends` is from `spaql.paper.audit.repaired.ends`.
    """
    parts = []
    for name, group in ends[ends.system == system].groupby("algorithm", sort=False):
        parts.append((group.fresh.mean(), f"{name} {alone(group.fresh)} ({group.samples.mean() / 1000:,.0f})"))
    told = listed([words for _, words in sorted(parts, reverse=True)])
    return f"{title(system)}, rewards on fresh episodes at the end, with thousands of samples: {told}."
