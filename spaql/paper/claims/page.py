"""The paper's claims to read: tables for the book's page of claims, and text or JSON for `spaql claims`."""

import math
import textwrap

import pandas as pd

from spaql.paper.claims.judge import IN_WORDS, verdicts
from spaql.paper.claims.load import DIFFERS, HOLDS, UNDECIDED, VERDICTS, matching, read
from spaql.paper.claims.measures import AGENTS
from spaql.paper.engine.style import p_value
from spaql.paper.engine.tables import Table, badge, bracketed, csv_link

# What stands before and after the values of a kind, and how many digits they have.
SHOWN = {
    "spread": ("f = ", "", 2),
    "lost": ("", " of the gain", 2),
    "ratio": ("", " times", 1),
    "crossing": ("batch ", "", 0),
    "count": ("", f" of {AGENTS}", 0),
    "same order": ("", " pairs alike", 0),
}


def show_ours(row, before=""):
    """Return our value with its interval, in few characters; `row` is one of the frame of `verdicts`."""
    ours, low, high = (getattr(row, f"{before}{name}") for name in ("ours", "low", "high"))
    first, last, digits = SHOWN.get(row.kind, ("", "", 0 if abs(ours) >= 10_000 else 2))
    interval = "" if math.isnan(low) else f" [{low:,.{digits}f}, {high:,.{digits}f}]"
    return f"{first}{ours:,.{digits}f}{last}{interval}"


# ---------------------------------------------------------------------------------------------------------------------
# As text


def show(pattern="", verdict=None, as_json=False) -> str:
    """Return the claims with such an id ("cartpole-*") and verdict: text of at most 120 columns, or all as JSON."""
    wanted = matching(pattern or "*")
    frame = verdicts()
    frame = frame[frame.id.isin(wanted) & frame.verdict.isin([verdict] if verdict else VERDICTS)]
    if as_json:
        return frame.to_json(orient="records", force_ascii=False, indent=1)
    lines = [f"{'claim':<34}{'paper':<23}{'ours [95 %]':<33}{'as written':<15}as run"]
    for place, rows in frame.groupby("place", sort=False):
        lines += ["", place]
        for row in rows.itertuples():
            both = f"{row.verdict}{bracketed(row.direction)}", f"{row.run_verdict}{bracketed(row.run_direction)}"
            lines.append(f"  {row.id:<32}{row.said:<23}{show_ours(row):<33}{both[0]:<15}{both[1]}")
            run = "" if row.run_ours == row.ours else f"As run: {show_ours(row, 'run_')}."
            for text in (row.statement if pattern else "", " ".join(filter(None, (row.why, run)))):
                lines += textwrap.wrap(text, 114, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join([*lines, "", *textwrap.wrap(summary(frame), 120)])


def summary(frame):
    """Return the counts of verdicts in sentences."""

    def counts(column):
        holds, differs, undecided = ((frame[column] == name).sum() for name in (HOLDS, DIFFERS, UNDECIDED))
        return f"{holds} hold, {differs} differ, {undecided} undecided"

    inside = frame.inside[frame.verdict == UNDECIDED]
    agree = (
        f" Undecided means that {AGENTS} agents are too few to decide: in {inside.sum()} of {len(inside)} our estimate "
        "agrees with the paper."
    )
    text = f"{len(frame)} claims. As written: {counts('verdict')}. As run: {counts('run_verdict')}."
    return text + (agree if len(inside) else "")


# ---------------------------------------------------------------------------------------------------------------------
# The page of the book


def substitutions() -> dict[str, str]:
    """Return what book/claims.md shows, by the names it has for them."""
    frame = verdicts()
    unchecked = pd.DataFrame(read("claims.toml")["unchecked"])
    unchecked = unchecked.rename(columns={"place": "where", "reason": "why it is not judged"})
    caption = "What the paper says and our runs cannot judge"
    return {
        "claims_table": verdict_table(frame).myst(),
        "claims_data": csv_link(frame, "claims", "This table (CSV)"),
        "unchecked_table": Table(unchecked, caption, "tab-unchecked", words=True).myst(),
        "deviations_table": deviations_table().myst(),
    }


def verdict_table(frame) -> Table:
    """Return every claim with its two verdicts, and why."""
    rows = []
    for row in frame.itertuples():
        same = row.run_ours == row.ours and row.run_verdict == row.verdict
        run = "(the same)" if same else show_ours(row, "run_")
        expected = f"equal within {row.allowed}" if row.allowed.startswith("±") else row.allowed
        also = ", and our estimate is" if row.verdict == UNDECIDED and row.inside else ""
        said = "" if row.said == IN_WORDS else f"The paper: {row.said}. "
        small = f"{said}Should be {expected}{also}. For: {p_value(row.p_for)}, against: {p_value(row.p_against)}."
        link = f'<a id="claim-{row.id}" href="#claim-{row.id}"><code>{row.id}</code></a>'
        claim = f"**{row.statement}** ({link}, {row.place.split(':')[0]}). {row.why}".rstrip()
        rows.append(
            {
                "claim": f"{claim}<br><small>{minus(small)}</small>",
                "as written": f"{badge(row.verdict, row.direction)} {minus(show_ours(row))}",
                "as run": f"{badge(row.run_verdict, row.run_direction)} {minus(run)}",
            }
        )
    caption = (
        "Every claim, and both verdicts with what we measured. In small print: the paper's number, where ours should "
        "lie (and whether our estimate of an undecided claim does), and p for and against"
    )
    return Table(pd.DataFrame(rows), caption, "tab-verdicts", words=True, filtered=True)


def minus(text):
    """Return numbers with a proper minus sign."""
    return text.replace("-", "−")


def deviations_table() -> Table:
    """Return the register of deviations."""
    rows = [
        {
            "what": row["topic"],
            "paper": row["paper"],
            "here": row["ours"],
            "because": row["reason"],
            "can affect": f"{len(matching(*row['affects']))} claims: "
            + ", ".join(f"`{pattern}`" for pattern in row["affects"]),
        }
        for row in read("deviations.toml")["deviation"]
    ]
    caption = "Where we differ from the paper, why, and which claims it can affect"
    return Table(pd.DataFrame(rows), caption, "tab-deviations", words=True)
