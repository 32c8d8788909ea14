"""The tables of the audit: frames of `spaql.claims` and `spaql.audit` in, tables of the book out."""

import math
from collections.abc import Iterable
from typing import Any

import pandas as pd

from spaql.paper.audit.claims import DIFFERS, HOLDS
from spaql.paper.audit.judge import show_ours
from spaql.paper.labels import SYSTEM_NAMES
from spaql.paper.tables.table import Table, between, number, plus_minus
from spaql.policies.interval import Interval


def interval_of(row: pd.Series, column: str, digits: int = 1) -> str:
    """Return a column with the ends of its interval, as text; infinite is never."""
    interval = Interval(row[column], row[f"{column}_low"], row[f"{column}_high"])
    return between(interval, digits).replace("inf", "∞") if math.isfinite(interval.mean) else "never"


def small(p: float) -> str:
    """Return a p-value in few characters."""
    return "" if math.isnan(p) else f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def verdict_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return every claim with its verdict."""
    rows = []
    for row in frame.itertuples():
        way = f" ({row.direction})" if row.direction else ""
        p = f", Holm p = {small(row.p_holm)}" if not math.isnan(row.p_holm) else ""
        rows.append(
            {
                "claim": f"{row.statement} (`{row.id}`)",
                "paper": row.said.replace("-", "−"),
                "ours": show_ours(row).replace("-", "−"),
                "test": f"{row.test}{p}",
                "verdict": f"**{row.verdict}**{way}",
            }
        )
    whys = [f"- *{row.statement}* {verdict_words(row)}: {row.why}" for row in frame.itertuples() if row.why]
    return Table(pd.DataFrame(rows), caption, name, "\n".join(whys), words=True)


def verdict_words(row: Any) -> str:
    """Return a verdict as the end of a sentence."""
    ways = {"up": "differs, ours is higher", "down": "differs, ours is lower"}
    return ways.get(row.direction, row.verdict if row.verdict in (HOLDS, DIFFERS) else f"is {row.verdict}")


def bias_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the reported rewards, the fresh ones and the bias."""
    rows = []
    for _, row in frame.iterrows():
        solved = "" if math.isnan(row.solved) else f"{row.solved:.0f} and {row.solved_fresh:.0f} of {row.agents}"
        rows.append(
            {"system": SYSTEM_NAMES[row.system], "": row.algorithm, "N": str(row.N)}
            | {column: interval_of(row, column) for column in ("reported", "fresh", "bias")}
            | {"solved, reported and fresh": solved}
        )
    return Table(pd.DataFrame(rows), caption, name)


def interval_table(frame: pd.DataFrame, columns: Iterable[str], caption: str, name: str) -> Table:
    """Return a frame with its intervals as text."""
    columns = list(columns)
    kept = [c for c in frame.columns if not any(c == column or c.startswith(f"{column}_") for column in columns)]
    texts = {column: [interval_of(row, column) for _, row in frame.iterrows()] for column in columns}
    return Table(frame[kept].assign(**texts), caption, name)


def random_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how well each hypothesis fits the paper's row for Random."""
    rows = [
        {
            "torque": row.torque,
            "starts": row.starts,
            "mean": interval_of(row, "mean"),
            "as far out": f"{100 * row.mean_fits:.0f} %",
            "half-interval": interval_of(row, "half"),
            "as far out ": f"{100 * row.half_fits:.0f} %",
        }
        for _, row in frame.iterrows()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def explanations_table(frame: pd.DataFrame, verdicts: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the numbers of the paper's tables beside ours under every variant; bold where the verdict is "differs"."""
    numbers = verdicts[verdicts.kind == "number"].set_index("id")
    short = numbers.statement.str.replace(" at the end of training", "")
    marks = numbers.verdict.map(lambda verdict: "**" if verdict == DIFFERS else "")
    rows = [
        {
            "number": f"{marks[row.id]}{short[row.id]}{marks[row.id]}",
            "paper": plus_minus(row.paper, row.half, 1),
            "system": SYSTEM_NAMES[row.system],
            "rules": row.rules,
            "N": str(row.N),
            "ours": interval_of(row, "ours"),
            "p": small(row.p),
            "p, one more agent": small(row.p_shared),
        }
        for _, row in frame[frame.id.isin(numbers.index)].iterrows()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def samples_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how many samples it takes to reach thresholds, training alone and everything counted."""
    rows = []
    able = set(frame[frame.reached > 0].algorithm)  # AQL reaches none of them
    for (system, threshold, algorithm), cell in frame.groupby(["system", "threshold", "algorithm"]):
        if algorithm not in able:
            continue
        counted = {row.counted: interval_of(row, "samples", 0) for _, row in cell.iterrows()}
        rows.append(
            {"system": SYSTEM_NAMES[system], "reward": number(threshold, 0), "": algorithm}
            | {"reached by": f"{100 * cell.reached.iloc[0]:.0f} %"}
            | {"training": counted["training"], "everything": counted["all"]}
        )
    return Table(pd.DataFrame(rows), caption, name)


def budget_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the rewards when a budget of samples is spent, training alone and everything counted."""
    rows = []
    for (system, algorithm), cell in frame.groupby(["system", "algorithm"], sort=False):
        both = {row.counted: row for _, row in cell.iterrows()}
        rows.append(
            {"system": SYSTEM_NAMES[system], "": algorithm}
            | {"training": interval_of(both["training"], "rewards"), "everything": interval_of(both["all"], "rewards")}
            | {"K": number(both["all"].iterations, 0)}
        )
    return Table(pd.DataFrame(rows), caption, name)


def deviations_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the register of deviations."""
    rows = [
        {
            "what": row.topic,
            "paper": row.paper,
            "here": row.ours,
            "because": row.reason,
            "can affect": f"{len(row.affects)} claims: " + ", ".join(f"`{pattern}`" for pattern in row.patterns),
        }
        for row in frame.itertuples()
    ]
    return Table(pd.DataFrame(rows), caption, name, words=True)
