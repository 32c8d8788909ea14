"""The paper's claims to read: tables for the book's page of claims, and text or JSON for `spaql claims`."""

import math
import textwrap
from typing import Any

import pandas as pd

from spaql.paper.claims.groups import AGENTS
from spaql.paper.claims.judge import IN_WORDS, verdicts
from spaql.paper.claims.load import (
    DIFFERS,
    HOLDS,
    NOT_JUDGED,
    UNDECIDED,
    VERDICTS,
    deviations,
    load_unchecked,
    matching,
)
from spaql.paper.engine.style import p_value
from spaql.paper.engine.tables import Table, badge, csv_link

# What stands before and after the values of a kind, and how many digits they have.
SHOWN = {
    "spread": ("f = ", "", 2),
    "lost": ("", " of the gain", 2),
    "ratio": ("", " times", 1),
    "crossing": ("batch ", "", 0),
    "count": ("", f" of {AGENTS}", 0),
    "same order": ("", " pairs alike", 0),
}


def show_ours(row: Any, before: str = "") -> str:
    """Return our value with its interval, in few characters; `row` is one of the frame of `verdicts`."""
    ours, low, high = (getattr(row, f"{before}{name}") for name in ("ours", "low", "high"))
    if math.isnan(ours):
        return "-"
    first, last, digits = SHOWN.get(row.kind, ("", "", 0 if abs(ours) >= 10_000 else 2))
    interval = "" if math.isnan(low) else f" [{low:,.{digits}f}, {high:,.{digits}f}]"
    return f"{first}{ours:,.{digits}f}{last}{interval}"


def minus(text: str) -> str:
    """Return numbers with a proper minus sign."""
    return text.replace("-", "−")


# ---------------------------------------------------------------------------------------------------------------------
# As text


def show(pattern: str = "", verdict: str | None = None, as_json: bool = False) -> str:
    """Return the claims with their verdicts as text of at most 120 columns, or as JSON.

    Parameters
    ----------
    pattern
        Only claims with such an id, as `cartpole-*`; what they say is printed, too.
    verdict
        Only claims with this verdict as written.
    as_json
        Return JSON with every column of `judge.verdicts`.
    """
    if verdict not in (None, *VERDICTS):
        raise ValueError(f"no claim has the verdict {verdict!r}: the verdicts are {', '.join(VERDICTS)}")
    wanted = matching([pattern]) if pattern else None
    frame = verdicts()
    frame = frame[frame.id.isin(wanted or frame.id) & frame.verdict.isin([verdict] if verdict else VERDICTS)]
    if as_json:
        return frame.to_json(orient="records", force_ascii=False, indent=1)
    return as_text(frame, statements=bool(pattern))


def as_text(frame: pd.DataFrame, statements: bool = False) -> str:
    """Return verdicts as text, place by place, with the counts at the end."""
    lines = [f"{'claim':<34}{'paper':<23}{'ours [95 %]':<33}{'as written':<15}as run"]
    for place, rows in frame.groupby("place", sort=False):
        lines += ["", str(place)]
        for row in rows.itertuples():
            both = f"{with_direction(row):<15}{with_direction(row, 'run_')}"
            lines.append(f"  {row.id:<32}{row.said:<23}{show_ours(row):<33}{both}")
            run = "" if math.isnan(row.run_ours) or row.run_ours == row.ours else f"As run: {show_ours(row, 'run_')}."
            absent = f"As run: {row.run_reason}." if row.run_reason not in ("", row.why) else ""
            for text in (row.statement if statements else "", " ".join(filter(None, (row.why, run, absent)))):
                lines += textwrap.wrap(text, 114, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join([*lines, "", *textwrap.wrap(summary(frame), 120)])


def with_direction(row: Any, before: str = "") -> str:
    """Return a verdict with its direction: "differs (up)"."""
    verdict, way = getattr(row, f"{before}verdict"), getattr(row, f"{before}direction")
    return f"{verdict} ({way})" if way else verdict


def summary(frame: pd.DataFrame) -> str:
    """Return the counts of verdicts in sentences."""

    def counts(column: str) -> str:
        found = {name: (frame[column] == name).sum() for name in VERDICTS}
        left = f", {found[NOT_JUDGED]} not judged" if found[NOT_JUDGED] else ""
        return f"{found[HOLDS]} hold, {found[DIFFERS]} differ, {found[UNDECIDED]} undecided{left}"

    open_ones = frame[frame.verdict == UNDECIDED]
    agree = (
        f" Undecided means that {AGENTS} agents are too few to decide: in {open_ones.inside.sum()} of {len(open_ones)} "
        "our estimate agrees with the paper."
        if len(open_ones)
        else ""
    )
    return f"{len(frame)} claims. As written: {counts('verdict')}. As run: {counts('run_verdict')}.{agree}"


# ---------------------------------------------------------------------------------------------------------------------
# The page of the book


def substitutions() -> dict[str, str]:
    """Return what book/claims.md shows, by the names it has for them."""
    frame = verdicts()
    return {
        "claims_table": verdict_table(frame).myst(),
        "claims_data": csv_link(frame, "claims", "This table (CSV)"),
        "unchecked_table": unchecked_table().myst(),
        "deviations_table": deviations_table().myst(),
    }


def verdict_table(frame: pd.DataFrame) -> Table:
    """Return every claim with its two verdicts, and why."""
    rows = []
    for row in frame.itertuples():
        same = row.run_ours == row.ours and row.run_verdict == row.verdict
        run = "" if math.isnan(row.run_ours) else "(the same)" if same else show_ours(row, "run_")
        reasons = " ".join(filter(None, (row.why, row.run_reason if row.run_reason != row.why else "")))
        also = ", and our estimate is" if row.verdict == UNDECIDED and row.inside else ""
        numbers = [
            "" if row.said == IN_WORDS else f"The paper: {minus(row.said)}.",
            f"Should be {expected(row.allowed)}{also}." if row.allowed else "",
            "" if math.isnan(row.p_for) else f"For: {p_value(row.p_for)}, against: {p_value(row.p_against)}.",
        ]
        link = f'<a id="claim-{row.id}" href="#claim-{row.id}"><code>{row.id}</code></a>'
        rows.append(
            {
                "claim": f"**{row.statement}** ({link}, {row.place.split(':')[0]}). {reasons}".rstrip()
                + f"<br><small>{' '.join(filter(None, numbers))}</small>",
                "as written": f"{badge(row.verdict, row.direction)} {minus(show_ours(row))}",
                "as run": f"{badge(row.run_verdict, row.run_direction)} {minus(run)}",
            }
        )
    caption = (
        "Every claim, and both verdicts with what we measured. In small print: the paper's number, where ours should "
        "lie (and whether our estimate of an undecided claim does), and p for and against"
    )
    return Table(pd.DataFrame(rows), caption, "tab-verdicts", words=True, filtered=True)


def expected(allowed: str) -> str:
    """Return in words where a claim's quantity should lie."""
    return f"equal within {allowed}" if allowed.startswith("±") else minus(allowed)


def unchecked_table() -> Table:
    """Return what the paper says and our runs cannot judge."""
    frame = pd.DataFrame(load_unchecked()).rename(columns={"place": "where", "reason": "why it is not judged"})
    return Table(frame, "What the paper says and our runs cannot judge", "tab-unchecked", words=True)


def deviations_table() -> Table:
    """Return the register of deviations."""
    rows = [
        {
            "what": row.topic,
            "paper": row.paper,
            "here": row.ours,
            "because": row.reason,
            "can affect": f"{len(row.affects)} claims: " + ", ".join(f"`{pattern}`" for pattern in row.patterns),
        }
        for row in deviations().itertuples()
    ]
    caption = "Where we differ from the paper, why, and which claims it can affect"
    return Table(pd.DataFrame(rows), caption, "tab-deviations", words=True)
