"""What the paper claims against what we measured: a verdict on each line of claims.toml.

A claim names groups of agents and a kind.  Its kind measures one quantity on them (`MEASURES`) and has one of five ways
to judge it (`JUDGES`):

- *agree* (number, level, count): the paper's Welch test, or Fisher's for counts.  No difference at 5 %: holds.  A
  difference that survives Holm's correction over all claims: differs.  One that does not: inconclusive.
- *exceed* (order): each group named is below, significantly after Holm's correction; one significantly above: differs.
- *keep_order* (same order): pairs significant on both systems with one sign, or on neither.
- *within* (spread, lost, ratio, mean, crossing): the 95 % interval lies in the range that the claim is read as, outside
  of it, or across its border.
- *gain*: significant, and the paper's value lies in our 95 % interval.

Verdicts come from whole groups of stored agents at the paper's scale or not at all.
"""

import os
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from spaql.paper.audit.claims import DIFFERS, HOLDS, INCONCLUSIVE, NOT_COMPARABLE, Claim, load_claims
from spaql.paper.audit.groups import AGENTS, Group, Key, MissingError, load_groups
from spaql.paper.audit.measures import MEASURES, Measured, summary_p
from spaql.paper.statistics import holm


def agree(claim: Claim, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """No difference by the paper's own criterion; a difference that survives the correction; or neither."""
    if found.p[0] >= 0.05:
        return HOLDS, ""
    return (DIFFERS, direction(found.signs[0])) if corrected[0] < 0.05 else (INCONCLUSIVE, "")


def exceed(claim: Claim, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """All below, some above, or some too near to tell."""
    if any(p < 0.05 and sign < 0 for p, sign in zip(corrected, found.signs, strict=True)):
        return DIFFERS, "down"
    return (HOLDS, "") if all(p < 0.05 for p in corrected) else (INCONCLUSIVE, "")


def keep_order(claim: Claim, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """Every pair significant on both systems with one sign, or on neither; a pair reversed; or a pair on one only."""
    pairs = np.where(np.array(corrected) < 0.05, np.sign(found.signs), 0.0).reshape(-1, 2)
    if np.any(pairs.prod(axis=1) < 0):
        return DIFFERS, "reversed"
    return (HOLDS, "") if np.all(pairs[:, 0] == pairs[:, 1]) else (INCONCLUSIVE, "")


def within(claim: Claim, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """The whole interval in the range, outside of it, or across its border."""
    low, high = claim.range
    if low <= found.ours.low and found.ours.high <= high:
        return HOLDS, ""
    if found.ours.low > high:
        return DIFFERS, "up"
    return (DIFFERS, "down") if found.ours.high < low else (INCONCLUSIVE, "")


def gained(claim: Claim, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """Significant and as much as the paper's; another amount; or not to be told from nothing."""
    if not found.ours.low <= claim.paper <= found.ours.high:
        return DIFFERS, direction(found.ours.mean - claim.paper)
    return (HOLDS, "") if corrected[0] < 0.05 else (INCONCLUSIVE, "")


def direction(difference: float) -> str:
    """Return the word for a sign."""
    return "up" if difference > 0 else "down"


JUDGES: dict[str, Callable[[Claim, Measured, list[float]], tuple[str, str]]] = {
    "number": agree,
    "level": agree,
    "count": agree,
    "order": exceed,
    "same order": keep_order,
    "gain": gained,
    "spread": within,
    "lost": within,
    "ratio": within,
    "mean": within,
    "crossing": within,
}


def judge(claims: Iterable[Claim], groups: Mapping[Key, Group]) -> pd.DataFrame:
    """Return the frame of `verdicts` for these claims from these groups of agents."""
    claims = list(claims)
    reported = judge_all(claims, groups, lambda claim: claim.column)
    on_rewards = [c for c in claims if c.column == "rewards" and c.kind not in ("crossing", "untested")]
    fresh = judge_all(on_rewards, groups, lambda claim: "fresh")
    rows = []
    for claim in claims:
        found, p, p_holm, verdict, way, reason = reported[claim.id]
        again = fresh.get(claim.id)
        # The paper's numbers are of the best so far, so a number on fresh episodes is no comparison with them.
        survives = again.verdict if again and claim.kind != "number" else ""
        rows.append(
            {key: getattr(claim, key) for key in ("id", "place", "statement", "kind")}
            | {"said": said(claim, claims)}
            | dict(zip(("ours", "low", "high"), found.ours if found else (np.nan,) * 3, strict=True))
            | {"test": found.test if found else "", "p": p, "p_holm": p_holm}
            | {"effect": found.effect if found else np.nan, "verdict": verdict, "direction": way}
            | {"why": claim.why.get(way, "We have no explanation.") if verdict == DIFFERS else reason}
            | {"fresh": again.found.ours.mean if again and again.found else np.nan, "fresh_verdict": survives}
        )
    return pd.DataFrame(rows)


class Judged(NamedTuple):
    """A claim's measurement and verdict."""

    found: Measured | None
    p: float
    p_holm: float
    verdict: str
    direction: str
    reason: str


def judge_all(claims: list[Claim], groups: Mapping[Key, Group], column: Callable[[Claim], str]) -> dict[str, Judged]:
    """Measure all claims, correct all their p-values together, and judge them."""
    measured: dict[str, Measured] = {}
    judged: dict[str, Judged] = {}
    for claim in claims:
        try:
            if claim.kind == "untested":
                raise MissingError(claim.reason)
            measured[claim.id] = MEASURES[claim.kind](claim, groups, column(claim))
        except MissingError as missing:
            judged[claim.id] = Judged(None, np.nan, np.nan, NOT_COMPARABLE, "", str(missing))
    corrected = iter(holm([p for found in measured.values() for p in found.p]))
    for claim in claims:
        if found := measured.get(claim.id):
            own = [next(corrected) for _ in found.p]
            verdict, way = JUDGES[claim.kind](claim, found, own)
            p, p_holm = max(found.p, default=np.nan), max(own, default=np.nan)
            judged[claim.id] = Judged(found, p, p_holm, verdict, way, "")
    return judged


def said(claim: Claim, claims: Iterable[Claim]) -> str:
    """Return the paper's value in words: its number, or what its tables give for two groups."""
    if claim.kind == "number":
        return f"{claim.paper:,.2f} ± {claim.half:.2f}"
    if claim.kind == "count":
        return f"{claim.paper} of {AGENTS}"
    if not np.isnan(claim.paper):
        return f"about {claim.paper:g}"
    table = {c.group: (c.paper, c.half) for c in claims if c.kind == "number" and c.column == claim.column}
    pairs = [(claim.group, other) for other in claim.below or (claim.other,)] if claim.group else []
    if not pairs or not all(name in table for pair in pairs for name in pair):
        return "in words" if claim.kind != "untested" else "a picture"
    if claim.kind == "ratio":
        return f"{table[pairs[0][0]][0] / table[pairs[0][1]][0]:.1f} times"
    one, other = min(pairs, key=lambda pair: table[pair[0]][0] - table[pair[1]][0])
    return f"{table[one][0] - table[other][0]:+.2f}, p = {summary_p(*table[one], *table[other]):.0e}"


def verdicts(store: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return the paper's claims with their verdicts, one row per claim, from results stored at the paper's scale.

    Parameters
    ----------
    store
        The folder of stored results; the repository's if not given.

    Returns
    -------
    frame
        Columns id, place, statement, kind; `said`, the paper's value; `ours` with `low` and `high`, the ends of
        its 95 % interval; `test`, `p` (the greatest or only one), `p_holm` and `effect`; `verdict`, `direction` and
        `why`; and where the claim is about rewards at the end of training the same quantity on fresh episodes,
        `fresh`, with the verdict it would get, `fresh_verdict`.

    Examples
    --------
    >>> verdicts().verdict.value_counts()
    """
    return judge(load_claims(), load_groups(store))


def counts(frame: pd.DataFrame) -> dict[str, int]:
    """Return how many claims have each verdict, in one order."""
    return {name: int((frame.verdict == name).sum()) for name in (HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE)}


def summary(frame: pd.DataFrame) -> str:
    """Return the count of verdicts as a line."""
    found = counts(frame)
    return (
        f"{len(frame)} claims: {found[HOLDS]} hold, {found[DIFFERS]} differ, {found[INCONCLUSIVE]} inconclusive, "
        f"{found[NOT_COMPARABLE]} not comparable."
    )


# What stands before and after the values of a kind, and how many digits they have.
SHOWN = {
    "spread": ("f = ", "", 2),
    "lost": ("share ", "", 2),
    "ratio": ("", " times", 1),
    "crossing": ("batch ", "", 0),
    "count": ("", f" of {AGENTS}", 0),
    "same order": ("", " pairs alike", 0),
}


def show_ours(row: Any) -> str:
    """Return our value with its interval, in few characters; `row` is one of the frame of `verdicts`."""
    if np.isnan(row.ours):
        return "-"
    before, after, digits = SHOWN.get(row.kind, ("", "", 0 if abs(row.ours) >= 10_000 else 2))
    interval = "" if np.isnan(row.low) else f" [{row.low:,.{digits}f}, {row.high:,.{digits}f}]"
    return f"{before}{row.ours:,.{digits}f}{after}{interval}"


def as_text(frame: pd.DataFrame) -> str:
    """Return the table of verdicts as text of at most 120 columns, place by place, with the count at the end."""
    lines = [f"{'claim':<33}{'paper':<25}{'ours [95 %]':<35}{'p (Holm)':<11}verdict"]
    for place, rows in frame.groupby("place", sort=False):
        lines += ["", str(place)]
        for row in rows.itertuples():
            p = "" if np.isnan(row.p_holm) else f"{row.p_holm:.2g}"
            verdict = f"{row.verdict} ({row.direction})" if row.direction else row.verdict
            lines.append(f"  {row.id:<31}{row.said:<25}{show_ours(row):<35}{p:<11}{verdict}")
            if row.why:
                lines += textwrap.wrap(row.why, 114, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join([*lines, "", summary(frame)])
