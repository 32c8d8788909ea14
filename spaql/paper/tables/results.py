"""Tables and sentences of the paper's experiments."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown
from numpy.typing import ArrayLike
from scipy import stats

from spaql.paper.claims.load import paper_results
from spaql.paper.frames import by_algorithm, finals, solves
from spaql.paper.labels import between, number, plus_minus, present, small, spread
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import outcome
from spaql.paper.runs.provenance import TRPO
from spaql.paper.statistics import holm, welch
from spaql.paper.studies import LEARNERS, is_published, parameters_of
from spaql.paper.tables.table import Table
from spaql.policies.interval import Interval
from spaql.systems import title


def tests_table(frame: pd.DataFrame, pairs: Iterable[tuple[str, str]], caption: str, name: str) -> Table:
    """Return Welch's test of pairs of algorithms, first minus second, by what is reported and on fresh episodes."""
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


def in_bold(text: str, bold: bool) -> str:
    """Return a text in bold, if it is to be."""
    return f"**{text}**" if bold else text


def end_rows(frame: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame, dict[str, str]]]:
    """Yield the agents of each system and algorithm, with their rewards and those on fresh episodes, the best bold."""
    for system, here in frame.groupby("system", sort=False):
        groups = {name: here[here.algorithm == name] for name in present(here)}
        bold = {column: best_of({n: mine[column] for n, mine in groups.items()}) for column in ("rewards", "fresh")}
        for name, mine in groups.items():
            yield system, name, mine, {c: in_bold(spread(mine[c], 1), name in best) for c, best in bold.items()}


def printed(system: str, algorithm: str, column: str, digits: int) -> str:
    """Return a number of the paper's tables as text; nothing if they do not have it."""
    theirs = paper_results().get(system, {}).get(algorithm, {})
    return plus_minus(*theirs[column], digits) if column in theirs else ""


def results_table(records: Iterable[Record], caption: str, name: str) -> Table:
    """Return the rewards and arms at the end of training beside the paper's (its Tables 4 and 5).

    "Fresh" is what the paper does not report: the policy kept, on episodes that had no part in choosing it.  The best
    rewards are bold, as in the paper.
    """
    rows = [
        {
            "algorithm": algorithm,
            "reward": shown["rewards"],
            "paper": printed(system, algorithm, "rewards", 1),
            "fresh": shown["fresh"],
            "arms": spread(mine.arms, 0) if algorithm in LEARNERS else "",
            "paper's arms": printed(system, algorithm, "arms", 0),
        }
        for system, algorithm, mine, shown in end_rows(finals(records))
    ]
    table = pd.DataFrame(rows)
    return Table(
        table.drop(columns=[head for head in table if "paper" in head and not table[head].any()]), caption, name
    )


def solved_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how many agents solve CartPole, and how many reach the greatest return in every episode."""
    found = by_algorithm(frame.assign(agents=1))
    for column, head in (("rewards", ""), ("fresh", ", fresh")):
        found[f"solve it{head}"], found[f"at 200{head}"] = solves(found, column), found[column] == 200.0
    heads = ["agents", "solve it", "at 200", "solve it, fresh", "at 200, fresh"]
    counted = found.groupby("algorithm", sort=False)[heads].sum().astype(int).reset_index()
    return Table(counted.astype(str), caption, name)


def baseline_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the ends of training of the learners and the baselines, with what they cost in samples."""
    rows = [
        {
            "system": title(system),
            "algorithm": algorithm,
            "reward": shown["rewards"],
            "fresh": shown["fresh"],
            "fresh, without noise": spread(mine.fresh_deterministic, 1) if algorithm in TRPO else "",
            "thousand samples in training": number(mine.steps.mean() / 1000, 0),
            "thousand samples in rollouts": number(mine.evaluation_steps.mean() / 1000, 0),
        }
        for system, algorithm, mine, shown in end_rows(frame)
    ]
    return Table(pd.DataFrame(rows), caption, name)


def xi_effects(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how much ξ matters to each learner on each system.

    `spread` is the standard deviation of the mean rewards over ξ, `chance` what that would be about if ξ made no
    difference: the typical standard error of one of them.  `p` is of a Kruskal-Wallis test of the agents at all ξ, and
    `p_holm` corrected over all cases.
    """
    rows = []
    for (system, algorithm), group in frame[frame.algorithm != "Random"].groupby(["system", "algorithm"], sort=False):
        by_xi = group.groupby("xi").rewards
        means, errors = by_xi.mean(), by_xi.std(ddof=0) / np.sqrt(by_xi.size())
        several = len(means) > 1 and group.rewards.nunique() > 1
        rows.append(
            {"system": system, "algorithm": algorithm, "mean": means.mean(), "best": means.max(), "xi": means.idxmax()}
            | {"spread": means.std(ddof=0), "chance": errors.median()}
            | {"p": stats.kruskal(*(rewards for _, rewards in by_xi)).pvalue if several else np.nan}
        )
    found = pd.DataFrame(rows)
    return found.assign(p_holm=holm(found.p.tolist()))


def xi_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how much ξ matters: how far an algorithm's means lie apart over ξ, beside what chance alone would give."""
    rows = [
        {
            "system": title(case.system),
            "algorithm": case.algorithm,
            "mean reward": number(case.mean, 1),
            "spread over ξ": number(case.spread, 1),
            "expected by chance": number(case.chance, 1),
            "p": small(case.p),
            "p (Holm)": small(case.p_holm),
            "best ξ": f"{case.xi:g}",
            "reward at best ξ": number(case.best, 1),
        }
        for case in xi_effects(frame).itertuples()
    ]
    return Table(pd.DataFrame(rows), caption, name)


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
