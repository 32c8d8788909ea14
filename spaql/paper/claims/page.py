"""The paper's claims to read: tables for the book's page of claims, and text or JSON for `spaql claims`."""

import html
import math
import re
import textwrap

import pandas as pd

from spaql.paper.claims.judge import verdicts
from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED, VERDICTS, matching, read
from spaql.paper.claims.measures import AGENTS
from spaql.paper.engine.style import number, p_value
from spaql.paper.engine.tables import Table, badge, bracketed, csv_link, unbroken

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
    first, last, digits = SHOWN.get(row.kind, ("", "", 0 if abs(ours) >= 100 else 2))
    interval = "" if math.isnan(low) else f" [{low:,.{digits}f}, {high:,.{digits}f}]"
    sign = "+" if row.kind in ("order", "level") else ""
    return f"{first}{ours:{sign},.{digits}f}{last}{interval}"


# As text


def show(pattern="", verdict=None) -> str:
    """Return the claims with such an id ("cartpole-*") and verdict, as text of at most 120 columns."""
    wanted = matching(pattern or "*")
    frame = verdicts()
    frame = frame[frame.id.isin(wanted) & frame.verdict.isin([verdict] if verdict else VERDICTS)]
    lines = [f"{'claim':<34}{'paper':<23}{'ours [95 %]':<33}{'as written':<15}best reading"]
    for place, rows in frame.groupby("place", sort=False):
        lines += ["", place]
        for row in rows.itertuples():
            both = f"{row.verdict}{bracketed(row.direction)}", f"{row.run_verdict}{bracketed(row.run_direction)}"
            lines.append(f"  {row.id:<32}{row.said:<23}{show_ours(row):<33}{both[0]:<15}{both[1]}")
            run = "" if row.run_ours == row.ours else f"Under the best reading: {show_ours(row, 'run_')}."
            for text in (row.statement if pattern else "", " ".join(filter(None, (row.why, run)))):
                lines += textwrap.wrap(text, 114, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join([*lines, "", *textwrap.wrap(summary(frame), 120)])


def summary(frame):
    """Return the counts of verdicts in sentences."""

    def counts(column):
        holds, differs, undecided = ((frame[column] == name).sum() for name in (HOLDS, DIFFERS, UNDECIDED))
        return f"{holds} hold, {differs} differ, {undecided} undecided"

    inside = frame.inside[frame.verdict == UNDECIDED].sum()
    return (
        f"{len(frame)} claims. As written: {counts('verdict')} ({AGENTS} agents are too few to decide; in {inside} of "
        f"these our estimate agrees with the paper). Under the best reading: {counts('run_verdict')}."
    )


# The page of the book


def substitutions() -> dict[str, str]:
    """Return what book/claims.md shows, by the names it has for them."""
    frame = verdicts()
    unchecked = pd.DataFrame(read("claims.toml")["unchecked"]).rename(columns={"place": "where", "reason": "why not"})
    caption = "What the paper says and our runs cannot judge"
    return {
        "claims_table": claims_table(frame),
        "claims_data": csv_link(frame, "claims", "This table (CSV)"),
        "unchecked_table": Table(unchecked, caption, "tab-unchecked", words=True).myst(),
        "deviations_table": deviations_table().myst(),
    }


def claims_table(frame) -> str:
    """Return every claim with the paper's number, ours and the verdict; the tests are folded away below each."""
    caption = (
        "Every claim, in the paper's order. A difference of two groups is positive if as claimed, or the first minus "
        "the second if they should be level. In brackets: 95 % intervals, uncorrected; up, down: above or below it"
    )
    heads = "<th>claim</th><th>the paper</th><th>ours</th><th>verdict</th>"
    parts = [f'<table class="table words filtered"><caption>{caption}</caption><thead><tr>{heads}</tr></thead>']
    for place, rows in frame.groupby("place", sort=False):
        parts.append(f'<tbody><tr><th colspan="4">{place}</th></tr>')
        for row in rows.itertuples():
            claim = f'<a id="claim-{row.id}"></a>{html.escape(row.statement)}'
            parts.append(f"<tr><td>{claim}<details><summary>the test</summary>{tested(row)}</details></td>")
            way = row.direction + ", within the margin" * (row.verdict == DIFFERS and row.inside)
            way += "agrees" * (row.verdict == UNDECIDED and row.inside)
            cells = (minus(row.said), unbroken(minus(show_ours(row))), badge(row.verdict, way))
            parts.append("".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        parts.append("</tbody>")
    return "\n".join(["```{raw} html", *parts, "</table>", "```"])


def tested(row):
    """Return how a claim was judged, in sentences."""
    expected = f"equal within {row.allowed}" if row.allowed.startswith("±") else row.allowed
    also = ", and our estimate is" if row.verdict == UNDECIDED and row.inside else ""
    text = f"Should be {expected}{also}. For: {p_value(row.p_for)}; against: {p_value(row.p_against)}. "
    if (row.run_ours, row.run_verdict) != (row.ours, row.verdict):
        text += f"Under the best reading: {row.run_verdict}{bracketed(row.run_direction)}, {show_ours(row, 'run_')}. "
    if row.fresh_verdict not in ("", NOT_JUDGED):
        text += f"On fresh episodes: {row.fresh_verdict}, {number(row.fresh)}. "
    return f"{minus(text)} {html.escape(row.why)} <code>{row.id}</code>"


def minus(text):
    """Return numbers with a proper minus sign."""
    return re.sub(r"-(?=\d)", "−", text)


def deviations_table() -> Table:
    """Return the register of deviations."""
    frame = pd.DataFrame(read("deviations.toml")["deviation"])
    frame["affects"] = [f"{len(matching(*names))} claims" for names in frame["affects"]]
    heads = {"topic": "what", "paper": "paper", "ours": "here", "reason": "because", "affects": "can affect"}
    caption = "Where we differ from the paper, why, and which claims it can affect"
    return Table(frame[[*heads]].rename(columns=heads), caption, "tab-deviations", words=True)
