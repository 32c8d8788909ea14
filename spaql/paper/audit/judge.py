"""What the paper claims against what we measured: verdicts on each line of claims.toml.

A claim names groups of agents and a kind.  Its kind measures one quantity on them (`MEASURES`), and the claim says
where that quantity should lie:

- an *equality* (number, level, levels, count): the difference lies within a margin of zero, 10 % of the paper's value
  (of the agents, for a count) unless the claim gives another: two one-sided tests;
- an *order* (order, same order): the difference lies above zero;
- a *range* (spread, lost, ratio, mean, share, gain, crossing): it lies in the range that the claim is read as.

One standard for all: a claim **holds** if every bound is shown to be kept, it **differs** if the contrary is shown (of
an equality: that there is a difference, and it is not shown to be within the margin), and it is **undecided** if
neither is, or if only the correction stands between it and holding.  An equality that holds although a difference is
shown, a small one, is marked "near".  "Shown" is a two-sided p below 5 % after Holm's correction over the claims of the
same family, which is the table, figure or section of the paper that they stand in (`place`).  Without the correction
that is: the 95 % interval lies inside, or it excludes what is claimed.

Every claim has two verdicts, **as written** from the experiment that the text describes and **as run** from the reading
of it that fits the paper's numbers best (`spaql.paper.audit.readings`), which differs from the text on Pendulum alone.
If the agents of that reading share their starts, a claim is judged by the mean over sequences of starts, from agents
with starts of their own, and the luck of the one sequence that the paper's agents shared widens the paper's interval.
The verdicts come from whole groups of stored agents at the paper's scale, or there are none: **not judged**.  A third
verdict is that of the text's experiment **with more agents** than the paper's twenty, where a claim needs but the end
of runs of which more are stored (`spaql.paper.audit.groups.with_further`); elsewhere it is the first.
"""

import dataclasses
import os
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED, VERDICTS, Claim, load_claims
from spaql.paper.audit.groups import AGENTS, Group, Key, MissingError, load_groups, with_further
from spaql.paper.audit.measures import MEASURES, Measured
from spaql.paper.audit.readings import TEXT, best_reading, luck_of, reading_groups
from spaql.paper.statistics import holm
from spaql.paper.studies import parameters_of

EQUALITIES = ("number", "level", "levels", "count")
ORDERS = ("order", "same order")
MARGIN = 0.1  # of the paper's value
IN_WORDS = "in words"  # where the paper prints no number
NEAR = "near"  # an equality that holds within its margin, and a difference is shown, too
MORE = f"with up to {parameters_of('further')['agents']} agents"

Bounds = tuple[float, float]


def bounds(claim: Claim, found: Measured, scale: float = 1.0) -> tuple[Bounds, Bounds]:
    """Return where a claim's quantity should lie, and outside of what it refutes the claim.

    A scale makes margins, and ranges that are readings of vague words, so many times as wide.
    """
    if claim.kind in EQUALITIES:
        margin = scale * (claim.margin if np.isfinite(claim.margin) else MARGIN * abs(found.reference))
        return (-margin, margin), (0.0, 0.0)
    if claim.kind in ORDERS:
        return (0.0, np.inf), (0.0, np.inf)
    low, high = claim.range
    if not claim.defined:
        low, high = widened(low, high, scale)
    return (low, high), (0.0, 0.0) if claim.significance else (low, high)


def widened(low: float, high: float, scale: float) -> Bounds:
    """Return a range so many times as wide around its middle; of one with a single end, the end multiplied."""
    if np.isinf(low):
        return low, high * scale
    if np.isinf(high):
        return low / scale, high
    middle, half = (low + high) / 2, scale * (high - low) / 2
    return middle - half, middle + half


def weigh(found: Measured, inside: Bounds, null: Bounds) -> tuple[float, float]:
    """Return two p-values, both two-sided: small ones show that a quantity lies inside, and that it lies outside."""

    def below(tails: Any, bound: float) -> float:
        return 0.0 if bound == -np.inf else 1.0 if bound == np.inf else tails.below(bound)

    def above(tails: Any, bound: float) -> float:
        return 0.0 if bound == np.inf else 1.0 if bound == -np.inf else tails.above(bound)

    kept = max(max(below(t, inside[0]), above(t, inside[1])) for t in found.tails)
    left = len(found.tails) * min(min(above(t, null[0]), below(t, null[1])) for t in found.tails)
    return min(1.0, 2 * kept), min(1.0, 2 * left)


class Judged(NamedTuple):
    """A claim's measurement and verdict."""

    found: Measured | None
    p_for: float = np.nan  # that it is so, after Holm's correction in its family
    p_against: float = np.nan  # that it is not
    verdict: str = NOT_JUDGED
    direction: str = ""
    reason: str = ""


def measure(claims: Iterable[Claim], groups: Mapping[Key, Group], column: str = "") -> dict[str, Measured | str]:
    """Return what these groups have for each claim, in its own column or another one, or why there is nothing."""
    found: dict[str, Measured | str] = {}
    for claim in claims:
        try:
            found[claim.id] = MEASURES[claim.kind](claim, groups, column or claim.column)
        except MissingError as missing:
            found[claim.id] = str(missing)
    return found


def decide(claims: Iterable[Claim], measured: Mapping[str, Measured | str], scale: float = 1.0) -> dict[str, Judged]:
    """Judge measured claims, with p-values corrected family by family; for the scale see `bounds`."""
    judged: dict[str, Judged] = {}
    families: dict[str, list[tuple[Claim, Measured]]] = {}
    for claim in claims:
        found = measured[claim.id]
        if isinstance(found, str):
            judged[claim.id] = Judged(None, reason=found)
        else:
            families.setdefault(claim.place, []).append((claim, found))
    for family in families.values():
        shown, refuted = zip(*(weigh(found, *bounds(claim, found, scale)) for claim, found in family), strict=True)
        corrected = zip(family, shown, holm(shown), holm(refuted), strict=True)
        for (claim, found), alone, p_for, p_against in corrected:
            verdict = HOLDS if p_for < 0.05 else DIFFERS if p_against < 0.05 else UNDECIDED
            if verdict == DIFFERS and alone < 0.05:  # what the correction takes from one side is nothing for the other
                verdict = UNDECIDED
            way = direction(claim, found) if verdict == DIFFERS else ""
            if verdict == HOLDS and claim.kind in EQUALITIES and p_against < 0.05:
                way = NEAR
            judged[claim.id] = Judged(found, p_for, p_against, verdict, way)
    return judged


def direction(claim: Claim, found: Measured) -> str:
    """Return the word for where a quantity lies that refutes a claim: ours is "up" or "down" from there."""
    if claim.kind == "same order":
        return "reversed"
    if claim.kind in ORDERS:
        return "down"
    if found.difference is not None:
        return "up" if found.difference.mean > 0 else "down"
    return "up" if claim.significance or found.ours.mean > claim.range[1] else "down"


def judge(
    claims: Iterable[Claim],
    groups: Mapping[Key, Group],
    as_run: Mapping[Key, Group] | None = None,
    larger: Mapping[Key, Group] | None = None,
    luck: Mapping[str, float] | None = None,
) -> pd.DataFrame:
    """Return the frame of `verdicts` for these claims.

    The groups are those of the text's experiment; as run they are the best reading's, with the luck of shared starts
    there (`readings.luck_of`); the larger ones have more agents (`with_further`).
    """
    claims = list(claims)
    measured = measure(claims, groups)
    written = decide(claims, measured)
    run = written if as_run is None else decide(claims, measure(with_luck(claims, luck or {}), as_run))
    more = written if larger is None else decide(claims, measured | known(measure(claims, larger)))
    scaled = {name: decide(claims, measured, scale) for name, scale in (("half", 0.5), ("double", 2.0))}
    # The paper's numbers are of the best so far, so a number on fresh episodes is no comparison with them.
    on_rewards = [claim for claim in claims if claim.column == "rewards" and claim.kind not in ("crossing", "number")]
    afresh = measure(on_rewards, groups, "fresh")
    fresh = decide(on_rewards, afresh)
    more_fresh = decide(on_rewards, afresh | known(measure(on_rewards, larger or {}, "fresh")))
    rows = []
    for claim in claims:
        found, p_for, p_against, verdict, way, reason = written[claim.id]
        other, wider = run[claim.id], more[claim.id]
        rows.append(
            {key: getattr(claim, key) for key in ("id", "place", "statement", "kind")}
            | {"said": said(claim, claims)}
            | columns_of("", found)
            | {"test": found.test if found else "", "allowed": allowed(claim, found) if found else ""}
            | {"margin": bounds(claim, found)[0][1] if found else np.nan}
            | {"p_for": p_for, "p_against": p_against, "effect": found.effect if found else np.nan}
            | {"verdict": verdict, "direction": way}
            | {"why": claim.why.get(way, "We have no explanation.") if verdict == DIFFERS else reason}
            | columns_of("run_", other.found)
            | {"run_verdict": other.verdict, "run_direction": other.direction, "run_reason": other.reason}
            | columns_of("more_", wider.found)
            | {"more_verdict": wider.verdict, "more_direction": wider.direction}
            | {name: judged[claim.id].verdict for name, judged in scaled.items()}
            | {"vague": claim.kind not in ORDERS and not claim.defined}
            | dict(zip(("paper", "paper_half"), printed(claim, claims), strict=True))
            | dict(zip(("fresh", "fresh_verdict"), level(fresh.get(claim.id)), strict=True))
            | dict(zip(("more_fresh", "more_fresh_verdict"), level(more_fresh.get(claim.id)), strict=True))
        )
    return pd.DataFrame(rows)


def level(judged: Judged | None) -> tuple[float, str]:
    """Return a claim's quantity and its verdict; neither if it was not asked for."""
    if judged is None:
        return np.nan, ""
    return judged.found.ours.mean if judged.found else np.nan, judged.verdict


def with_luck(claims: Iterable[Claim], luck: Mapping[str, float]) -> list[Claim]:
    """Return claims whose printed half-intervals are as wide as if the agents had not shared the luck of their starts.

    `luck` is the variance of a printed mean that its interval does not show, by the ids of claims.
    """
    return [
        dataclasses.replace(claim, half=float(np.hypot(claim.half, 1.96 * np.sqrt(luck[claim.id]))))
        if claim.id in luck
        else claim
        for claim in claims
    ]


def known(measured: Mapping[str, Measured | str]) -> dict[str, Measured | str]:
    """Return what was measured, without the reasons why something was not."""
    return {claim: found for claim, found in measured.items() if not isinstance(found, str)}


def columns_of(before: str, found: Measured | None) -> dict[str, float]:
    """Return the columns of our value with the ends of its interval, and of its distance from the paper's."""
    names = ("ours", "low", "high", "apart", "apart_low", "apart_high")
    nothing = (np.nan,) * 3
    values = (*found.ours, *(found.difference or nothing)) if found else (*nothing, *nothing)
    return {f"{before}{name}": value for name, value in zip(names, values, strict=True)}


def about(value: float) -> str:
    """Return a number with three digits that count, thousands apart, and a proper minus sign."""
    return f"{float(f'{value:.3g}'):,.10g}".replace("-", "−")


def allowed(claim: Claim, found: Measured) -> str:
    """Return in few words where a claim's quantity should lie."""
    (low, high), _ = bounds(claim, found)
    if claim.kind in ORDERS:
        return "above 0"
    if claim.kind in EQUALITIES:
        return f"± {high * AGENTS:g} of {AGENTS}" if claim.kind == "count" else f"± {about(high)}"
    if np.isinf(high):
        return f"at least {about(low)}"
    return f"at most {about(high)}" if np.isinf(low) else f"{about(low)} to {about(high)}"


def printed(claim: Claim, claims: Iterable[Claim]) -> tuple[float, float]:
    """Return the paper's value with its half-interval: a number, or the difference of two of its tables.

    Of an order that is the smallest difference, with the half-interval of independent means.
    """
    if not np.isnan(claim.paper):
        return claim.paper, claim.half
    table = {c.group: (c.paper, c.half) for c in claims if c.kind == "number" and c.column == claim.column}
    others = claim.below or (claim.other,)
    if claim.kind not in ("order", "level") or any(name not in table for name in (claim.group, *others)):
        return np.nan, np.nan
    value, half = table[claim.group]
    return min((value - table[other][0], float(np.hypot(half, table[other][1]))) for other in others)


def said(claim: Claim, claims: Iterable[Claim]) -> str:
    """Return the paper's value in words: its number, or what its tables give for two groups."""
    value, half = printed(claim, claims)
    if claim.kind == "count":
        return f"{claim.paper} of {AGENTS}"
    if np.isfinite(half):
        return f"{value:{'' if claim.kind == 'number' else '+'},.2f} ± {half:.2f}"
    table = {c.group: c.paper for c in claims if c.kind == "number" and c.column == claim.column}
    if claim.kind == "ratio" and {claim.group, claim.other} <= table.keys():
        return f"{table[claim.group] / table[claim.other]:.1f} times"
    return IN_WORDS if np.isnan(value) else f"about {value:,g}"


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
        its 95 % interval; of an equality `apart`, how far it is from the paper's, with `apart_low` and `apart_high`;
        `test`, `allowed` (where the claim says it lies), `margin` (the upper end of that) and `effect`; `p_for` and
        `p_against`, corrected; `verdict`, `direction` and `why`; the same under the reading that fits best, `run_ours`
        to `run_verdict`, and with more
        agents, `more_ours` to `more_verdict`; `half` and `double`, the verdicts if the margin or the range of vague
        words were half or twice as wide; and where the claim is about rewards at the end of training the quantity on
        fresh episodes, `fresh`, with the verdict it would get, `fresh_verdict`, and with more agents `more_fresh` and
        `more_fresh_verdict`.  `frame.attrs["reading"]` is the name of the reading.

    Examples
    --------
    >>> verdicts().verdict.value_counts()
    """
    store = Path(store) if store else None
    groups = load_groups(store)
    try:
        reading = best_reading(store)
    except MissingError:
        reading = TEXT
    run = None if reading == TEXT else reading_groups(reading, store, groups)
    frame = judge(load_claims(), groups, run, with_further(groups, store), luck_of(reading, store))
    frame.attrs["reading"] = reading
    return frame


def summary(frame: pd.DataFrame) -> str:
    """Return the counts of verdicts as a line."""

    def words(column: str) -> str:
        found = {name: (frame[column] == name).sum() for name in VERDICTS}
        left = f", {found[NOT_JUDGED]} not judged" if found[NOT_JUDGED] else ""
        return f"{found[HOLDS]} hold, {found[DIFFERS]} differ, {found[UNDECIDED]} undecided{left}"

    more = f" ({MORE} {words('more_verdict')})" if (frame.more_verdict != frame.verdict).any() else ""
    return f"{len(frame)} claims. As written: {words('verdict')}{more}. As run: {words('run_verdict')}."


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
    if np.isnan(ours):
        return "-"
    first, last, digits = SHOWN.get(row.kind, ("", "", 0 if abs(ours) >= 10_000 else 2))
    interval = "" if np.isnan(low) else f" [{low:,.{digits}f}, {high:,.{digits}f}]"
    return f"{first}{ours:,.{digits}f}{last}{interval}"


def show_verdict(row: Any, before: str = "") -> str:
    """Return a verdict with its direction: "differs (up)"."""
    verdict, way = getattr(row, f"{before}verdict"), getattr(row, f"{before}direction")
    return f"{verdict} ({way})" if way else verdict


def show_more(row: Any) -> str:
    """Return what more agents give, as a sentence, if there are any."""
    if np.isnan(row.more_ours) or row.more_ours == row.ours:
        return ""
    return f"{MORE[0].upper()}{MORE[1:]}: {show_verdict(row, 'more_')}, {show_ours(row, 'more_')}."


def as_text(frame: pd.DataFrame) -> str:
    """Return the table of verdicts as text of at most 120 columns, place by place, with the counts at the end."""
    lines = [f"{'claim':<34}{'paper':<23}{'ours [95 %]':<33}{'as written':<15}as run"]
    for place, rows in frame.groupby("place", sort=False):
        lines += ["", str(place)]
        for row in rows.itertuples():
            verdicts = f"{show_verdict(row):<15}{show_verdict(row, 'run_')}"
            lines.append(f"  {row.id:<32}{row.said:<23}{show_ours(row):<33}{verdicts}")
            run = "" if np.isnan(row.run_ours) or row.run_ours == row.ours else f"As run: {show_ours(row, 'run_')}."
            absent = f"As run: {row.run_reason}." if row.run_reason not in ("", row.why) else ""
            reasons = filter(None, (row.why, run, absent, show_more(row)))
            lines += textwrap.wrap(" ".join(reasons), 114, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join([*lines, "", *textwrap.wrap(summary(frame), 120)])
