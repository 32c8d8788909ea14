"""The tables of the audit: frames of `spaql.paper.audit` in, tables of the book out."""

import math
from collections.abc import Iterable, Mapping

import pandas as pd

from spaql.paper.claims.load import DIFFERS
from spaql.paper.audit.judge import IN_WORDS, show_more, show_ours
from spaql.paper.frames import by_system
from spaql.paper.labels import between, number, p_value, plus_minus, small
from spaql.paper.tables.table import Table, badge, bracketed
from spaql.policies.interval import Interval
from spaql.systems import title


def interval_of(row: pd.Series, column: str, digits: int = 1) -> str:
    """Return a column with the ends of its interval, as text; infinite is never."""
    interval = Interval(row[column], row[f"{column}_low"], row[f"{column}_high"])
    return between(interval, digits).replace("inf", "∞") if math.isfinite(interval.mean) else "never"


def verdict_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return every claim with its verdicts, why, and how they depend on what we chose."""
    rows = []
    for row in frame.itertuples():
        changed = [
            f"{verdict} if {words}"
            for verdict, words in ((row.half, "half"), (row.double, "twice"))
            if row.vague and verdict != row.verdict
        ]
        same = row.run_ours == row.ours and row.run_verdict == row.verdict
        run = "" if math.isnan(row.run_ours) else "(the same)" if same else show_ours(row, "run_")
        absent = row.run_reason if row.run_reason != row.why else ""
        reasons = " ".join(filter(None, (row.why, absent, minus(show_more(row)))))
        numbers = [
            "" if row.said == IN_WORDS else f"The paper: {minus(row.said)}.",
            f"Should be {expected(row.allowed)}{bracketed('; '.join(changed))}." if row.allowed else "",
            "" if math.isnan(row.p_for) else f"For: {p_value(row.p_for)}, against: {p_value(row.p_against)}.",
        ]
        rows.append(
            {
                "claim": f"**{row.statement}** ({linked(row.id)}, {row.place.split(':')[0]}). {reasons}".rstrip()
                + f"<br><small>{' '.join(filter(None, numbers))}</small>",
                "as written": f"{badge(row.verdict, row.direction)} {minus(show_ours(row))}",
                "as run": f"{badge(row.run_verdict, row.run_direction)} {minus(run)}",
            }
        )
    return Table(pd.DataFrame(rows), caption, name, words=True, filtered=True)


def linked(claim: str) -> str:
    """Return a claim's id as the place that links lead to."""
    return f'<a id="claim-{claim}" href="#claim-{claim}"><code>{claim}</code></a>'


def expected(allowed: str) -> str:
    """Return in words where a claim's quantity should lie."""
    return f"equal within {allowed}" if allowed.startswith("±") else minus(allowed)


def minus(text: str) -> str:
    """Return numbers with a proper minus sign."""
    return text.replace("-", "−")


def unchecked_table(rows: Iterable[dict[str, str]], caption: str, name: str) -> Table:
    """Return what the paper says and our runs cannot judge."""
    frame = pd.DataFrame(rows).rename(columns={"place": "where", "reason": "why it is not judged"})
    return Table(frame, caption, name, words=True)


def bias_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the reported rewards, the fresh ones and the bias."""
    rows = []
    for _, row in frame.iterrows():
        solved = "" if math.isnan(row.solved) else f"{row.solved:.0f} ({row.solved_fresh:.0f} fresh)"
        rows.append(
            {"system": title(row.system), "algorithm": row.algorithm, "N": str(row.N)}
            | {column: interval_of(row, column) for column in ("reported", "fresh", "bias")}
            | {"solve it": solved}
        )
    return Table(pd.DataFrame(rows), caption, name)


def interval_table(
    frame: pd.DataFrame, columns: Iterable[str] | Mapping[str, str], caption: str, name: str, digits: int = 1
) -> Table:
    """Return a frame with its intervals as text; a mapping gives the heads of their columns."""
    heads = columns if isinstance(columns, Mapping) else {column: column for column in columns}
    kept = [c for c in frame.columns if not any(c == column or c.startswith(f"{column}_") for column in heads)]
    texts = {head: [interval_of(row, column, digits) for _, row in frame.iterrows()] for column, head in heads.items()}
    return Table(frame[kept].assign(**texts), caption, name)


def random_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how well each hypothesis fits the paper's row for Random."""
    rows = [
        {
            "torque": row.torque,
            "starts": row.starts,
            "mean": interval_of(row, "mean"),
            "as extreme as the paper's mean": f"{100 * row.mean_fits:.0f} %",
            "half-interval": interval_of(row, "half"),
            "as extreme as the paper's half-interval": f"{100 * row.half_fits:.0f} %",
        }
        for _, row in frame.iterrows()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def explanations_table(frame: pd.DataFrame, verdicts: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the numbers of the paper's tables from which ours differ, beside ours under every variant."""
    numbers = verdicts[(verdicts.kind == "number") & (verdicts.verdict == DIFFERS)].set_index("id")
    short = numbers.statement.str.replace(" at the end of training", "")
    rows = [
        {
            "number": short[row.id],
            "paper": plus_minus(row.paper, row.half, 1),
            "system": title(row.system),
            "rules": row.rules,
            "N": str(row.N),
            "ours": interval_of(row, "ours"),
            "p": small(row.p),
            "p as one more agent": small(row.p_shared),
        }
        for _, row in frame[frame.id.isin(numbers.index)].iterrows()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def samples_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how many samples it takes to reach thresholds, training alone and everything counted."""
    rows = []
    able = set(frame[frame.reached > 0].algorithm)  # AQL reaches none of them
    rising = by_system(frame.sort_values("threshold", kind="stable"))
    for (system, threshold, algorithm), cell in rising.groupby(["system", "threshold", "algorithm"], sort=False):
        if algorithm not in able:
            continue
        counted = {row.counted: interval_of(row, "samples", 0) for _, row in cell.iterrows()}
        rows.append(
            {"system and threshold": f"{title(system)}, {number(threshold, 0)}", "algorithm": algorithm}
            | {"reached by": f"{100 * cell.reached.iloc[0]:.0f} %"}
            | {"samples of training": counted["training"], "all samples": counted["all"]}
        )
    return Table(pd.DataFrame(rows), caption, name)


def budget_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the rewards when a budget of samples is spent, training alone and everything counted."""
    rows = []
    for (system, algorithm), cell in frame.groupby(["system", "algorithm"], sort=False):
        both = {row.counted: row for _, row in cell.iterrows()}
        rows.append(
            {"system": title(system), "algorithm": algorithm}
            | {"training counted": interval_of(both["training"], "rewards")}
            | {"everything counted": interval_of(both["all"], "rewards")}
            | {"iterations K": number(both["all"].iterations, 0)}
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


def generality_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the verdict on each conclusion on each system, with a dagger where it was said of that system."""
    rows = []
    for _, cells in frame.groupby("id", sort=False):
        found = {title(cell.system): badge(cell.verdict) + (" †" if cell.said else "") for cell in cells.itertuples()}
        rows.append({"conclusion": cells.statement.iloc[0]} | found)
    return Table(pd.DataFrame(rows), caption, name, words=True)
