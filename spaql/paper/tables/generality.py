"""Tables and sentences of the other systems: frames of `spaql.paper.audit.generality` and records in, Markdown out."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from IPython.display import Markdown

from spaql.paper.audit.claims import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED
from spaql.paper.audit.generality import NOT_ASKED, chosen_xis, goal_counts
from spaql.paper.audit.repaired import at_samples, ends
from spaql.paper.labels import STYLES, between, difference, listed, number, possible, present
from spaql.paper.runs.job import Record
from spaql.paper.statistics import student_interval
from spaql.paper.studies import BOTH, LEARNERS, is_published
from spaql.paper.tables.results import in_bold, scale_note
from spaql.paper.tables.table import Table, badge
from spaql.policies.interval import Interval
from spaql.policies.simplify import Simplified
from spaql.systems import solved_at, title, without_goal

COUNTS = (10_000, 30_000, 100_000)


def mean_of(values: np.ndarray, system: str) -> str:
    """Return a mean with Student's interval, or alone if there is one agent, as text.

    Nothing is said where an agent is missing: those that have a policy early are those that came to the goal early.
    """
    if not np.all(np.isfinite(values)):
        return ""
    return between(possible(student_interval(values), system)) if values.size > 1 else number(values[0], 1)


def agents_note(records: Iterable[Record], others: int = 0) -> Markdown:
    """Say how many agents of each algorithm the chapter is computed from, or that these are not our stored runs."""
    records = list(records)
    if not is_published(record.job for record in records):
        return scale_note(records)
    counts = {record.job.algorithm: record.job.agent + 1 for record in sorted(records, key=lambda r: r.job.agent)}
    sizes: dict[int, list[str]] = {}
    for algorithm in [name for name in STYLES if name in counts]:
        sizes.setdefault(counts[algorithm], []).append(algorithm)
    parts = [f"{size} of {listed(names)}" for size, names in sizes.items()]
    more = f" The study of ξ has {others:,} more." if others else ""
    return Markdown(f"> This page is computed from {len(records):,} agents, on each system {listed(parts)}.{more}")


# ---------------------------------------------------------------------------------------------------------------------
# What they earn


def returns_table(records: Iterable[Record], caption: str, name: str) -> Table:
    """Return what each algorithm's policies earn after some numbers of samples, and at the end of training.

    How many agents there are is said once above, unless some algorithms have fewer.
    """
    records = list(records)
    last = ends(records)
    uneven = last.groupby(["system", "algorithm"]).size().nunique() > 1
    rows = []
    for system in dict.fromkeys(last.system):
        for algorithm in present(last[last.system == system]):
            group = [r for r in records if (r.job.system, r.job.algorithm) == (system, algorithm)]
            end = last[(last.system == system) & (last.algorithm == algorithm)]
            row = {"system and algorithm": f"{title(system)}, {algorithm}"}
            if uneven:
                row["agents"] = str(len(group))
            row["at the end"] = mean_of(end.fresh.to_numpy(), system)
            learns = algorithm != "Random"
            for count in COUNTS:
                at = np.array([at_samples(record, [count])[0] for record in group])
                row[f"after {count:,}"] = (mean_of(at, system) if learns else "") or "–"
            row["samples"] = number(end.samples.mean(), 0) if learns else "0"
            rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def goals_table(records: Iterable[Record], caption: str, name: str) -> Table:
    """Return how many agents end with a policy that comes to the goal, and how many solve the task."""
    counts, rows = goal_counts(records), []
    for system, cell in counts.groupby("system", sort=False):
        for column, words in (("reach", "come to the goal"), ("solve", "solve it")):
            if column == "solve" or np.isfinite(without_goal(str(system))):
                found = {row.algorithm: f"{getattr(row, column)} of {row.agents}" for row in cell.itertuples()}
                rows.append(
                    {"system": f"{title(str(system))}, {words}"} | {n: found.get(n, "") for n in present(counts)}
                )
    return Table(pd.DataFrame(rows), caption, name)


def xi_choice_table(means: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the mean returns of a study of ξ; the ones that choose ξ are bold."""
    chosen, rows = chosen_xis(means), []
    for (system, algorithm), group in means.groupby(["system", "algorithm"], sort=False):
        row = {"system": title(system), "algorithm": algorithm}
        for cell in group.sort_values("xi").itertuples():
            row[f"ξ = {cell.xi:g}"] = in_bold(number(cell.fresh, 1), cell.xi == chosen[system][algorithm])
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


# ---------------------------------------------------------------------------------------------------------------------
# Verdicts


def generality_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the verdict on each conclusion on each system, with a dagger where it was said of that system."""
    rows = []
    for _, cells in frame.groupby("id", sort=False):
        row = {"conclusion": cells.statement.iloc[0]}
        rows.append(
            row | {title(cell.system): badge(cell.verdict) + (" †" if cell.said else "") for cell in cells.itertuples()}
        )
    return Table(pd.DataFrame(rows), caption, name, words=True)


def cells_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what was measured for each verdict."""
    rows = [
        {
            "conclusion": f"{title(cell.system)}: {cell.statement}",
            "measured": difference(Interval(cell.ours, cell.low, cell.high)) if np.isfinite(cell.ours) else "",
            "verdict": badge(cell.verdict),
        }
        for cell in frame.itertuples()
    ]
    return Table(pd.DataFrame(rows), caption, name, words=True, filtered=True)


def where(frame: pd.DataFrame, id: str) -> str:
    """Say on which systems a conclusion has which verdict: "holds on A and B, differs on C" or "on all 6 systems"."""
    cells = frame[frame.id == id]
    parts = []
    if cells.verdict.nunique() == 1:
        return f"{cells.verdict.iloc[0]} on all {len(cells)} systems"
    for verdict in (HOLDS, DIFFERS, UNDECIDED, NOT_ASKED, NOT_JUDGED):
        systems = [title(system) for system in cells[cells.verdict == verdict].system]
        if systems:
            parts.append(f"{verdict} {'to' if verdict == NOT_ASKED else 'on'} {listed(systems)}")
    return ", ".join(parts)


def score(frame: pd.DataFrame, whose: str = "paper") -> str:
    """Say how many of the verdicts on the systems that the paper does not have are which."""
    cells = frame[(frame.whose == whose) & ~frame.system.isin(BOTH)]
    counts = {verdict: int((cells.verdict == verdict).sum()) for verdict in (HOLDS, DIFFERS, UNDECIDED, NOT_JUDGED)}
    left = f", {counts[NOT_JUDGED]} are not judged" if counts[NOT_JUDGED] else ""
    return f"{counts[HOLDS]} hold, {counts[DIFFERS]} differ and {counts[UNDECIDED]} are undecided{left}"


def goal_sentence(records: Iterable[Record], system: str) -> str:
    """Say of which algorithms all, some and no agents come to the goal of a system."""
    counts = goal_counts([record for record in records if record.job.system == system])
    counts = counts.set_index("algorithm").loc[present(counts)]
    every = list(counts.index[counts.reach == counts.agents])
    if len(every) == len(counts):
        return f"on {title(system)} all agents of every algorithm"
    some = [
        f"{cell.reach} of {cell.agents} of {cell.Index}" for cell in counts.itertuples() if 0 < cell.reach < cell.agents
    ]
    none = list(counts.index[counts.reach == 0])
    parts = [
        f"{verb} {listed(which)}" for verb, which in (("all agents of", every), ("", some), ("none of", none)) if which
    ]
    return f"on {title(system)} " + ", ".join(part.strip() for part in parts)


def repaired_sentence(records: Iterable[Record]) -> str:
    """Say what SPAQL-R ends with on each system, beside the best of the paper's algorithms."""
    frame, parts = ends(records), []
    for system, here in frame.groupby("system", sort=False):
        means = here.groupby("algorithm").fresh.mean()
        theirs = means[[name for name in LEARNERS if name in means]]
        if "SPAQL-R" in means and len(theirs):
            parts.append(
                f"{number(means['SPAQL-R'], 1)} on {title(system)} ({theirs.idxmax()}: {number(theirs.max(), 1)})"
            )
    return listed(parts)


# ---------------------------------------------------------------------------------------------------------------------
# Trees


def reaches(found: Simplified, system: str) -> bool:
    """Return whether a tree reaches the return of a solved task on episodes that had no part in its choice."""
    return found.fresh.mean >= (solved_at(system) or np.inf)


def small_trees_table(found: Mapping[tuple[str, str], Simplified], caption: str, name: str) -> Table:
    """Return the smallest trees that reach the registered threshold, by system and algorithm of the best agent."""
    rows = [
        {
            "system": title(system),
            "threshold": number(solved_at(system) or np.nan, 0),
            "from": algorithm,
            "exact leaves": f"{simple.full.leaves:,}",
            "its return": between(simple.full_fresh),
            "smallest": str(simple.tree.leaves) if reaches(simple, system) else "none",
            "its return ": between(simple.fresh) if reaches(simple, system) else "",
        }
        for (system, algorithm), simple in found.items()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def trees_sentence(found: Mapping[tuple[str, str], Simplified]) -> str:
    """Say how small a tree reaches the threshold of each system."""
    parts = []
    for system in dict.fromkeys(system for system, _ in found):
        here = {name: simple for (s, name), simple in found.items() if s == system}
        small = [(simple.tree.leaves, name) for name, simple in here.items() if reaches(simple, system)]
        leaves, name = min(small, default=(0, ""))
        parts.append(f"{title(system)} {leaves} leaves (from {name})" if small else f"{title(system)} none")
    return listed(parts)


# ---------------------------------------------------------------------------------------------------------------------
# What was found


def found(frame: pd.DataFrame, records: Iterable[Record], trees: Mapping[tuple[str, str], Simplified]) -> str:
    """Say what the other systems say of the paper, in a few sentences."""
    records = list(records)
    theirs = frame[(frame.whose == "paper") & ~frame.system.isin(BOTH)]
    there = dict.fromkeys(record.job.system for record in records)
    goals = "; ".join(goal_sentence(records, system) for system in there if np.isfinite(without_goal(system)))
    return f"""
- **The order.** The paper's {theirs.id.nunique()} conclusions, asked of the other {theirs.system.nunique()} systems: {score(frame)}. *SPAQL earns more than AQL* ({where(frame, "spaql-aql")}). *SPAQL-TS earns more than AQL* ({where(frame, "ts-aql")}). *AQL needs more arms* ({where(frame, "arms")}).
- **The terminal state.** *SPAQL-TS earns more than SPAQL* ({where(frame, "ts-spaql")}).
- **Samples**, every one of them counted. *SPAQL is more sample-efficient than TRPO* ({where(frame, "efficient-spaql")}). *SPAQL-TS is more sample-efficient than TRPO* ({where(frame, "efficient-ts")}). *TRPO ends above both* ({where(frame, "trpo-best")}).
- **SPAQL-R with its defaults** (found partly on MountainCar and on CartPole with 500 steps; the other two systems it had never seen). It ends with {repaired_sentence(records)}. *It ends above SPAQL and SPAQL-TS* ({where(frame, "repaired-spaql")}). *It is more sample-efficient than TRPO* ({where(frame, "repaired-efficient")}). *It solves the task* ({where(frame, "repaired-solves")}). Against TRPO with the settings published for each task: *SPAQL-R ends higher* ({where(frame, "repaired-tuned")}). *It is more sample-efficient* ({where(frame, "repaired-tuned-efficient")}).
- **Sparse rewards.** Who comes to the goal at the end: {goals}. [A table](#tab-systems-goals) has the counts, also of who solves the tasks.
- **Trees.** The smallest trees found that solve the tasks: {trees_sentence(trees)}.
"""  # noqa: E501
