"""What the paper claims against what we measured: verdicts on each line of claims.toml.

Each kind of claim measures one quantity (`MEASURES`), and the claim says where that quantity should lie:

- an *equality* (number, level, levels, count): the difference lies within a margin of zero, 10 % of the paper's value
  (of the agents, for a count) unless the claim gives another: two one-sided tests;
- an *order* (order, same order): the difference lies above zero;
- a *range* (all other kinds): it lies in the range that the claim is read as.

A claim **holds** if every bound is shown to be kept, it **differs** if the contrary is shown (of an equality: that
there is a difference, and it is not shown to be within the margin), and it is **undecided** if neither is, or if only
the correction stands between it and holding.  "Shown" is a two-sided p below 5 % after Holm's correction over the
claims of the same `place`.  An equality that holds although a difference is shown, a small one, is marked "near".

Every claim has a verdict **as written**, from the experiment that the text describes, and **as run**, from the reading
of it that fits the paper's numbers best (`chapters.readings`), which differs from the text on Pendulum alone.  Claims
about rewards at the end of training have a third, **on fresh episodes**.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import pandas as pd

from spaql.paper.chapters.readings import best_reading, luck_of, reading_groups
from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED, load_claims
from spaql.paper.claims.measures import AGENTS, MARGIN, MEASURES, Measured, MissingError, load_groups
from spaql.paper.engine.statistics import holm
from spaql.policies.interval import Interval

EQUALITIES = ("number", "level", "levels", "count")
ORDERS = ("order", "same order")
IN_WORDS = "in words"  # where the paper prints no number
NEAR = "near"  # an equality that holds within its margin, and a difference is shown, too
UNKNOWN = Interval(np.nan, np.nan, np.nan)


class Judged(NamedTuple):
    """A claim's measurement and verdict."""

    found: Measured = Measured(UNKNOWN, "", ())
    p_for: float = np.nan  # that it is so, after Holm's correction in its family
    p_against: float = np.nan  # that it is not
    verdict: str = NOT_JUDGED
    direction: str = ""
    reason: str = ""


def verdicts() -> pd.DataFrame:
    """Return the paper's claims with their verdicts, one row per claim, from the published agents.

    `said` is the paper's value in words; `ours` has the ends `low` and `high` of its 95 % interval; of an equality
    `apart` is how far it is from the paper's.  It should lie where `allowed` says, up to `margin`; `inside` is whether
    our estimate does, shown or not.  `p_for` and `p_against` are corrected.  Columns that begin with `run_` say this
    under the reading that fits best, and `fresh` and `fresh_verdict` of rewards on fresh episodes.

    >>> verdicts().verdict.value_counts()
    """
    groups, best = load_groups(), best_reading()
    return judge(load_claims(), groups, reading_groups(best, groups), luck_of(best))


def judge(claims, groups, as_run=None, luck=None) -> pd.DataFrame:
    """Return the frame of `verdicts` for these claims, as written from `groups`, as run from others.

    `luck` is the variance of a printed mean that its interval does not show, because the agents shared their starts, by
    the ids of claims: the paper's interval is widened by it.
    """
    claims, luck = list(claims), luck or {}
    widened = [
        dataclasses.replace(claim, half=np.hypot(claim.half, 1.96 * np.sqrt(luck.get(claim.id, 0.0))))
        for claim in claims
    ]
    # The paper's numbers are of the best so far, so a number on fresh episodes is no comparison with them.
    on_rewards = [claim for claim in claims if claim.column == "rewards" and claim.kind not in ("crossing", "number")]
    written, fresh = decide(claims, groups), decide(on_rewards, groups, "fresh")
    run = written if as_run is None else decide(widened, as_run)
    table = {(claim.column, claim.group): (claim.paper, claim.half) for claim in claims if claim.kind == "number"}
    rows = []
    for claim in claims:
        found, p_for, p_against, verdict, way, reason = written[claim.id]
        other, again = run[claim.id], fresh.get(claim.id, Judged(verdict=""))
        paper = printed(claim, table)
        (low, high), _ = bounds(claim, found)
        rows.append(
            {key: getattr(claim, key) for key in ("id", "place", "statement", "kind")}
            | {"said": said(claim, table)}
            | columns_of(found)
            | {"test": found.test, "allowed": allowed(claim, low, high), "margin": high}
            | {"inside": verdict == HOLDS or agrees(claim, found)}
            | {"p_for": p_for, "p_against": p_against, "effect": found.effect, "verdict": verdict, "direction": way}
            | {"why": claim.why.get(way, "We have no explanation.") if verdict == DIFFERS else reason}
            | {f"run_{name}": value for name, value in columns_of(other.found).items()}
            | {"run_verdict": other.verdict, "run_direction": other.direction, "run_reason": other.reason}
            | {"paper": paper[0], "paper_half": paper[1]}
            | {"fresh": again.found.ours.mean, "fresh_verdict": again.verdict}
        )
    return pd.DataFrame(rows)


def decide(claims, groups, column="") -> dict[str, Judged]:
    """Measure and judge claims, in their own columns or another one, with p-values corrected family by family."""
    judged, families = {}, {}
    for claim in claims:
        try:
            found = MEASURES[claim.kind](claim, groups, column or claim.column)
            families.setdefault(claim.place, []).append((claim, found))
        except MissingError as missing:
            judged[claim.id] = Judged(reason=str(missing))
    for family in families.values():
        shown, refuted = zip(*(weigh(found, *bounds(claim, found)) for claim, found in family), strict=True)
        corrected = zip(family, shown, holm(shown), holm(refuted), strict=True)
        for (claim, found), alone, p_for, p_against in corrected:
            verdict, way = UNDECIDED, ""
            if p_for < 0.05:
                verdict, way = HOLDS, NEAR if claim.kind in EQUALITIES and p_against < 0.05 else ""
            elif p_against < 0.05 and alone >= 0.05:  # what the correction takes from one side is nothing for the other
                verdict, way = DIFFERS, direction(claim, found)
            judged[claim.id] = Judged(found, p_for, p_against, verdict, way)
    return judged


def bounds(claim, found):
    """Return where a claim's quantity should lie, and outside of what it refutes the claim."""
    if claim.kind in EQUALITIES:
        margin = claim.margin if np.isfinite(claim.margin) else MARGIN * abs(found.reference)
        return (-margin, margin), (0.0, 0.0)
    if claim.kind in ORDERS:
        return (0.0, np.inf), (0.0, np.inf)
    return tuple(claim.range), (0.0, 0.0) if claim.significance else tuple(claim.range)


def weigh(found, inside, null):
    """Return two p-values, both two-sided: small ones show that a quantity lies inside, and that it lies outside."""
    kept = [tails.below(inside[0]) for tails in found.tails if inside[0] > -np.inf]
    kept += [tails.above(inside[1]) for tails in found.tails if inside[1] < np.inf]
    left = [tails.above(null[0]) for tails in found.tails if null[0] > -np.inf]
    left += [tails.below(null[1]) for tails in found.tails if null[1] < np.inf]
    return min(1.0, 2 * max(kept)), min(1.0, 2 * len(found.tails) * min(left))


def agrees(claim, found) -> bool:
    """Return whether our estimate lies where the claim says, whether or not that is shown."""
    if claim.kind == "same order":  # of all pairs
        return found.effect == 1.0
    (low, high), _ = bounds(claim, found)
    return bool(low <= (found.difference or found.ours).mean <= high)


def direction(claim, found):
    """Return the word for where a quantity lies that refutes a claim: ours is "up" or "down" from there."""
    if claim.kind == "same order":
        return "reversed"
    if claim.kind in ORDERS:
        return "down"
    if found.difference is not None:
        return "up" if found.difference.mean > 0 else "down"
    return "up" if claim.significance or found.ours.mean > claim.range[1] else "down"


def columns_of(found):
    """Return our value with the ends of its interval, and its distance from the paper's."""
    names = ("ours", "low", "high", "apart", "apart_low", "apart_high")
    return dict(zip(names, (*found.ours, *(found.difference or UNKNOWN)), strict=True))


def about(value):
    """Return a number with three digits that count, thousands apart, and a proper minus sign."""
    return f"{float(f'{value:.3g}'):,.10g}".replace("-", "−")


def allowed(claim, low, high):
    """Return in few words where a claim's quantity should lie."""
    if claim.kind in ORDERS:
        return "above 0" if claim.kind == "order" else "alike in every pair"
    if claim.kind in EQUALITIES:
        return f"± {high * AGENTS:g} of {AGENTS}" if claim.kind == "count" else f"± {about(high)}"
    if np.isinf(high):
        return f"at least {about(low)}"
    return f"at most {about(high)}" if np.isinf(low) else f"{about(low)} to {about(high)}"


def printed(claim, table):
    """Return the paper's value with its half-interval: a number, or the difference of two in its tables.

    Of an order that is the smallest difference, with the half-interval of independent means.
    """
    if not np.isnan(claim.paper):
        return claim.paper, claim.half
    names = [(claim.column, name) for name in (claim.group, *(claim.below or (claim.other,)))]
    if claim.kind not in ("order", "level") or not table.keys() >= set(names):
        return np.nan, np.nan
    (value, half), *others = (table[name] for name in names)
    return min((value - mean, np.hypot(half, other)) for mean, other in others)


def said(claim, table):
    """Return the paper's value in words: its number, or what its tables give for two groups."""
    value, half = printed(claim, table)
    if claim.kind == "count":
        return f"{claim.paper} of {AGENTS}"
    if np.isfinite(half):
        return f"{value:{'' if claim.kind == 'number' else '+'},.2f} ± {half:.2f}"
    one, other = (claim.column, claim.group), (claim.column, claim.other)
    if claim.kind == "ratio" and {one, other} <= table.keys():
        return f"{table[one][0] / table[other][0]:.1f} times"
    return IN_WORDS if np.isnan(value) else f"about {value:,g}"
