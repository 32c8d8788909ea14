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
of it that fits the paper's numbers best (`claims.readings`), which differs from the text on Pendulum alone.  If the
agents of that reading share their starts, a claim is judged by the mean over sequences of starts, from agents with
starts of their own, and the luck of the one sequence that the paper's agents shared widens the paper's interval.  A
third verdict, **on fresh episodes**, is given where the claim is about rewards at the end of training.  The verdicts
come from whole groups of published agents, or there are none: **not judged**.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from spaql.paper.claims.groups import AGENTS, Groups, MissingError, load_groups
from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED, Claim, load_claims
from spaql.paper.claims.measures import MEASURES, Measured
from spaql.paper.claims.readings import best_reading, luck_of, reading_groups
from spaql.paper.engine.statistics import holm

EQUALITIES = ("number", "level", "levels", "count")
ORDERS = ("order", "same order")
MARGIN = 0.1  # of the paper's value
IN_WORDS = "in words"  # where the paper prints no number
NEAR = "near"  # an equality that holds within its margin, and a difference is shown, too

Bounds = tuple[float, float]


def bounds(claim: Claim, found: Measured) -> tuple[Bounds, Bounds]:
    """Return where a claim's quantity should lie, and outside of what it refutes the claim."""
    if claim.kind in EQUALITIES:
        margin = claim.margin if np.isfinite(claim.margin) else MARGIN * abs(found.reference)
        return (-margin, margin), (0.0, 0.0)
    if claim.kind in ORDERS:
        return (0.0, np.inf), (0.0, np.inf)
    low, high = claim.range
    return (low, high), (0.0, 0.0) if claim.significance else (low, high)


def agrees(claim: Claim, found: Measured) -> bool:
    """Return whether our estimate lies where the claim says, whether or not that is shown."""
    if claim.kind == "same order":  # of all pairs
        return found.effect == 1.0
    estimate = found.difference.mean if claim.kind in EQUALITIES and found.difference else found.ours.mean
    (low, high), _ = bounds(claim, found)
    return bool(low <= estimate <= high)


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

    found: Measured | None = None
    p_for: float = np.nan  # that it is so, after Holm's correction in its family
    p_against: float = np.nan  # that it is not
    verdict: str = NOT_JUDGED
    direction: str = ""
    reason: str = ""


def measure(claims: Iterable[Claim], groups: Groups, column: str = "") -> dict[str, Measured | str]:
    """Return what these groups have for each claim, in its own column or another one, or why there is nothing."""
    found: dict[str, Measured | str] = {}
    for claim in claims:
        try:
            found[claim.id] = MEASURES[claim.kind](claim, groups, column or claim.column)
        except MissingError as missing:
            found[claim.id] = str(missing)
    return found


def decide(claims: Iterable[Claim], measured: Mapping[str, Measured | str]) -> dict[str, Judged]:
    """Judge measured claims, with p-values corrected family by family."""
    judged: dict[str, Judged] = {}
    families: dict[str, list[tuple[Claim, Measured]]] = {}
    for claim in claims:
        found = measured[claim.id]
        if isinstance(found, str):
            judged[claim.id] = Judged(reason=found)
        else:
            families.setdefault(claim.place, []).append((claim, found))
    for family in families.values():
        shown, refuted = zip(*(weigh(found, *bounds(claim, found)) for claim, found in family), strict=True)
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
    claims: Iterable[Claim], groups: Groups, as_run: Groups | None = None, luck: Mapping[str, float] | None = None
) -> pd.DataFrame:
    """Return the frame of `verdicts` for these claims.

    The groups are those of the text's experiment; as run they are the best reading's, with the luck of shared starts
    there (`readings.luck_of`).
    """
    claims = list(claims)
    written = decide(claims, measure(claims, groups))
    run = written if as_run is None else decide(claims, measure(with_luck(claims, luck or {}), as_run))
    # The paper's numbers are of the best so far, so a number on fresh episodes is no comparison with them.
    on_rewards = [claim for claim in claims if claim.column == "rewards" and claim.kind not in ("crossing", "number")]
    fresh = decide(on_rewards, measure(on_rewards, groups, "fresh"))
    rows = []
    for claim in claims:
        found, p_for, p_against, verdict, way, reason = written[claim.id]
        other, again = run[claim.id], fresh.get(claim.id, Judged(verdict=""))
        rows.append(
            {key: getattr(claim, key) for key in ("id", "place", "statement", "kind")}
            | {"said": said(claim, claims)}
            | columns_of("", found)
            | {"test": found.test if found else "", "allowed": allowed(claim, found) if found else ""}
            | {"margin": bounds(claim, found)[0][1] if found else np.nan}
            | {"inside": verdict == HOLDS or bool(found and agrees(claim, found))}
            | {"p_for": p_for, "p_against": p_against, "effect": found.effect if found else np.nan}
            | {"verdict": verdict, "direction": way}
            | {"why": claim.why.get(way, "We have no explanation.") if verdict == DIFFERS else reason}
            | columns_of("run_", other.found)
            | {"run_verdict": other.verdict, "run_direction": other.direction, "run_reason": other.reason}
            | dict(zip(("paper", "paper_half"), printed(claim, claims), strict=True))
            | {"fresh": again.found.ours.mean if again.found else np.nan, "fresh_verdict": again.verdict}
        )
    return pd.DataFrame(rows)


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


def verdicts() -> pd.DataFrame:
    """Return the paper's claims with their verdicts, one row per claim, from the published agents.

    Returns
    -------
    frame
        Columns id, place, statement, kind; `said`, the paper's value; `ours` with `low` and `high`, the ends of its
        95 % interval; of an equality `apart`, how far it is from the paper's, with `apart_low` and `apart_high`;
        `test`, `allowed` (where the claim says it lies), `margin` (the upper end of that), `inside` (our estimate lies
        there, whether or not that is shown) and `effect`; `p_for` and `p_against`, corrected; `verdict`, `direction`
        and `why`; the same under the reading that fits best, `run_ours` to `run_reason`; the paper's value, `paper`
        and `paper_half`; and where the claim is about rewards at the end of training the quantity on fresh episodes,
        `fresh`, with the verdict that it would get, `fresh_verdict`.

    Examples
    --------
    >>> verdicts().verdict.value_counts()
    """
    groups, best = load_groups(), best_reading()
    run = reading_groups(best, groups) if best else None
    return judge(load_claims(), groups, run, luck_of(best) if best else None)
