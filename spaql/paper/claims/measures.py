"""Measuring: for each kind of claim a quantity with its interval, and how far from it the truth may be."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats
from statsmodels.stats.proportion import confint_proportions_2indep

from spaql.paper.claims.groups import AGENTS, Groups, curves_of, pooled, select, values_of
from spaql.paper.claims.load import Claim
from spaql.paper.engine.statistics import (
    bootstrap_weights,
    crossing,
    draw_weights,
    percentile_interval,
    student_interval,
    welch,
)
from spaql.policies.interval import Interval, clipped, paper_interval


class Tails(NamedTuple):
    """The one-sided p-values of a quantity against a bound."""

    below: Callable[[float], float]  # of "it is at most this": small means shown to be above the bound
    above: Callable[[float], float]  # of "it is at least this": small means shown to be below it


class Measured(NamedTuple):
    """A quantity with its interval, and the p-values of whatever is said of it."""

    ours: Interval  # as it is shown
    test: str
    tails: tuple[Tails, ...]  # of each comparison that the claim makes: all must be as it says
    reference: float = np.nan  # what the margin of an equality is a part of
    effect: float = np.nan
    difference: Interval | None = None  # of an equality: from what it should be equal to


def student(estimate: float, error: float, freedom: float) -> Tails:
    """Return the tails of an estimate with a standard error, by Student's distribution."""
    if error == 0.0:  # no doubt at all
        return Tails(lambda bound: float(estimate <= bound), lambda bound: float(estimate >= bound))
    return Tails(
        lambda bound: float(stats.t.sf((estimate - bound) / error, freedom)),
        lambda bound: float(stats.t.cdf((estimate - bound) / error, freedom)),
    )


def resampled_tails(resampled: np.ndarray) -> Tails:
    """Return the tails of a quantity by the bootstrap: the shares of its resamples on either side."""
    least = 1 / (resampled.size + 1)
    return Tails(
        lambda bound: max(least, float(np.mean(resampled <= bound))),
        lambda bound: max(least, float(np.mean(resampled >= bound))),
    )


# ---------------------------------------------------------------------------------------------------------------------
# Equalities: of a number of the paper's tables, of two groups, of counts


def summary_std(half: float, n: int) -> float:
    """Return the sample standard deviation behind a half-interval of the paper's, 1.96 population ones over √n."""
    return half / 1.96 * np.sqrt(n) * np.sqrt(n / (n - 1))


def welch_error(first: float, second: float, n: int, m: int) -> tuple[float, float]:
    """Return the standard error and the degrees of freedom of Welch's test, from two standard deviations."""
    one, other = first**2 / n, second**2 / m
    if one + other == 0.0:
        return 0.0, np.inf
    return np.sqrt(one + other), (one + other) ** 2 / (one**2 / (n - 1) + other**2 / (m - 1))


def measure_number(claim: Claim, groups: Groups, column: str) -> Measured:
    """Compare our mean with the paper's, by Welch's test from its summary; the effect is in standard deviations."""
    values = pooled(groups, claim.group, column)
    theirs, ours = summary_std(claim.half, AGENTS), float(values.std(ddof=1))
    difference = float(values.mean() - claim.paper)
    error, freedom = welch_error(ours, theirs, values.size, AGENTS)
    effect = difference / np.sqrt((theirs**2 + ours**2) / 2)
    half = stats.t.ppf(0.975, freedom) * error
    return Measured(
        paper_interval(values), "Welch", (student(difference, error, freedom),), claim.paper, effect,
        Interval(difference, difference - half, difference + half),
    )  # fmt: skip


def measure_level(claim: Claim, groups: Groups, column: str) -> Measured:
    """Compare two groups."""
    return compare(pooled(groups, claim.group, column), pooled(groups, claim.other, column))


def measure_levels(claim: Claim, groups: Groups, column: str) -> Measured:
    """Compare each of several groups with another; shown is the farthest."""
    other = pooled(groups, claim.other, column)
    found = [compare(values_of(group, column), other) for group in select(groups, claim.group)]
    farthest = max(found, key=lambda one: abs(one.ours.mean))
    return farthest._replace(tails=tuple(tails for one in found for tails in one.tails))


def compare(one: np.ndarray, other: np.ndarray) -> Measured:
    """Compare two groups; the effect is the probability that an agent of the first beats one of the second.

    Where one of them is constant, Welch's test takes the other's spread for both: the bootstrap has the interval then,
    and permutations say whether there is a difference.
    """
    compared = welch(one, other)
    ours = Interval(compared.difference, compared.low, compared.high)
    if (one.std() == 0.0) != (other.std() == 0.0):
        ours, tails = permuted(one, other)
        return Measured(ours, "permutations", (tails,), float(other.mean()), compared.improvement, ours)
    error, freedom = welch_error(float(one.std(ddof=1)), float(other.std(ddof=1)), one.size, other.size)
    tails = student(compared.difference, error, freedom)
    return Measured(ours, "Welch", (tails,), float(other.mean()), compared.improvement, ours)


def permuted(one: np.ndarray, other: np.ndarray) -> tuple[Interval, Tails]:
    """Return the difference of two means: by permutations whether there is one, by the bootstrap how great it is."""
    rng = np.random.default_rng(0)
    difference = one.mean() - other.mean()
    both = rng.permuted(np.tile(np.concatenate((one, other)), (9999, 1)), axis=1)
    drawn = both[:, : one.size].mean(axis=1) - both[:, one.size :].mean(axis=1)
    tiny = 1e-9 * max(1.0, abs(difference))
    beyond = drawn >= difference - tiny, drawn <= difference + tiny
    higher, lower = ((np.sum(side) + 1) / (len(drawn) + 1) for side in beyond)
    resampled = draw_weights(rng, one.size) @ one - draw_weights(rng, other.size) @ other
    far = resampled_tails(resampled)
    tails = Tails(
        lambda bound: float(higher) if bound == 0.0 else far.below(bound),
        lambda bound: float(lower) if bound == 0.0 else far.above(bound),
    )
    return percentile_interval(difference, resampled), tails


def measure_count(claim: Claim, groups: Groups, column: str) -> Measured:
    """Compare the share of agents that reach a threshold with the paper's, by Newcombe's interval.

    However many agents there are, the number is given as one of the paper's twenty.
    """
    values = pooled(groups, claim.group, column)
    reached, n = int(np.sum(values >= claim.threshold)), values.size
    low, high = stats.binomtest(reached, n).proportion_ci()
    ours = Interval(AGENTS * reached / n, AGENTS * low, AGENTS * high)
    counts = reached, n, int(claim.paper), AGENTS
    difference = reached / n - claim.paper / AGENTS
    found = Interval(difference, *newcombe(*counts, 0.05))
    return Measured(ours, "Newcombe", (newcombe_tails(*counts),), 1.0, difference, found)


def newcombe(count: int, n: int, other: int, m: int, alpha: float) -> tuple[float, float]:
    """Return the ends of Newcombe's interval of the difference of two shares."""
    return confint_proportions_2indep(count, n, other, m, method="newcomb", compare="diff", alpha=alpha)


def newcombe_tails(count: int, n: int, other: int, m: int) -> Tails:
    """Return the tails of a difference of shares: how wide Newcombe's interval must be to have the bound at its end."""
    difference = count / n - other / m

    def below(bound: float) -> float:
        end = 0 if difference > bound else 1

        def excess(z: float) -> float:
            return newcombe(count, n, other, m, 2 * stats.norm.sf(z))[end] - bound

        if difference == bound:
            return 0.5
        widest = 37.0  # beyond which the share outside is no number any more
        z = optimize.brentq(excess, 0.0, widest) if excess(0.0) * excess(widest) < 0 else widest
        return float(stats.norm.sf(z) if difference > bound else stats.norm.cdf(z))

    return Tails(below, lambda bound: 1.0 - below(bound))


# ---------------------------------------------------------------------------------------------------------------------
# Orders


def measure_order(claim: Claim, groups: Groups, column: str) -> Measured:
    """Compare a group with each that should be below; shown is the nearest of them."""
    one = pooled(groups, claim.group, column)
    found = [compare(one, pooled(groups, other, column)) for other in claim.below]
    nearest = min(found, key=lambda each: each.ours.mean)
    return nearest._replace(tails=tuple(tails for each in found for tails in each.tails), difference=None)


def measure_same_order(claim: Claim, groups: Groups, column: str) -> Measured:
    """Compare pairs of algorithms on two systems, ξ pooled; shown is how many pairs have the same sign on both.

    A pair is in the same order if its sign is shown on both systems, or if on both it is shown to be level, within
    10 %; and it is reversed if opposite signs are shown.  Its tails are those of a number that should be above zero.
    """
    found = [
        [compare(*(pooled(groups, f"xi, {system}, {name}, all", column) for name in pair)) for system in claim.systems]
        for pair in claim.pairs
    ]
    same = sum(np.sign(a.ours.mean) == np.sign(b.ours.mean) for a, b in found)
    tails = tuple(pair_tails(*pair) for pair in found)
    return Measured(Interval(same, np.nan, np.nan), "Welch, pairs", tails, effect=same / len(found))


def pair_tails(one: Measured, other: Measured) -> Tails:
    """Return the tails of "a pair is in the same order on both systems"."""
    (first,), (second,) = one.tails, other.tails
    both_up, both_down = max(first.below(0), second.below(0)), max(first.above(0), second.above(0))
    apart = min(max(first.below(0), second.above(0)), max(first.above(0), second.below(0)))
    near = (each.tails[0] for each in (one, other))
    margins = (0.1 * abs(each.reference) for each in (one, other))
    level = max(max(t.below(-margin), t.above(margin)) for t, margin in zip(near, margins, strict=True))
    same = min(1.0, 3 * min(both_up, both_down, level))  # one of three ways to be in the same order
    return Tails(lambda bound: same, lambda bound: min(1.0, 2 * apart))


# ---------------------------------------------------------------------------------------------------------------------
# Quantities that should lie in a range


def measure_gain(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure a difference of means, with Welch's interval."""
    return measure_level(claim, groups, column)._replace(difference=None)


def measure_mean(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure a mean, with Student's interval."""
    values = pooled(groups, claim.group, column)
    tails = student(float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size)), values.size - 1)
    shown = student_interval(values)
    if values.min() >= 0.0 and values.max() <= 1.0:  # shares, of which an interval cannot reach beyond
        shown = clipped(shown, 0.0, 1.0)
    return Measured(shown, "Student", (tails,))


def measure_share(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure the share of agents of which something is so, with Clopper and Pearson's interval."""
    values = pooled(groups, claim.group, column)
    count, n = int(values.sum()), values.size
    tails = Tails(
        lambda bound: float(stats.binom.sf(count - 1, n, bound)), lambda bound: float(stats.binom.cdf(count, n, bound))
    )
    return Measured(Interval(count / n, *stats.binomtest(count, n).proportion_ci()), "binomial", (tails,))


def measure_spread(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure Cohen's f: the standard deviation of the means over ξ, in standard deviations of agents with the same ξ.

    Its interval inverts the non-central F distribution; Cohen calls 0.1 small, 0.25 medium and 0.4 large.
    """
    samples = [values_of(group, column) for group in select(groups, claim.group)]
    k, n = len(samples), sum(sample.size for sample in samples)
    statistic = float(stats.f_oneway(*samples).statistic)

    def below(f: float) -> float:
        return float(stats.ncf.sf(statistic, k - 1, n - k, n * f**2) if f > 0 else stats.f.sf(statistic, k - 1, n - k))

    def end(level: float) -> float:
        if below(0.0) >= level:
            return 0.0
        highest = 1.0
        while below(highest) < level:
            highest *= 2.0
        return optimize.brentq(lambda f: below(f) - level, 0.0, highest)

    f = float(np.sqrt(max(0.0, (k - 1) * (statistic - 1.0)) / n))
    return Measured(Interval(f, end(0.025), end(0.975)), "Cohen's f", (Tails(below, lambda f: 1 - below(f)),), effect=f)


def measure_ratio(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure a ratio of means, with a bootstrap interval."""
    return bootstrapped(
        lambda one, other: one / other, [pooled(groups, name, column) for name in (claim.group, claim.other)]
    )


def measure_lost(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure the share of the gain over a floor that a group lacks, compared to another; bootstrap interval."""
    return bootstrapped(
        lambda one, other, floor: (other - one) / (other - floor),
        [pooled(groups, name, column) for name in (claim.group, claim.other, claim.floor)],
    )


def bootstrapped(statistic: Callable[..., Any], samples: list[np.ndarray]) -> Measured:
    """Measure a function of several groups' means by the bootstrap."""
    weights = bootstrap_weights(*(sample.size for sample in samples))
    resampled = statistic(*(drawn @ sample for drawn, sample in zip(weights, samples, strict=True)))
    found = percentile_interval(statistic(*(sample.mean() for sample in samples)), resampled)
    return Measured(found, "bootstrap", (resampled_tails(resampled),))


def measure_crossing(claim: Claim, groups: Groups, column: str) -> Measured:
    """Measure the batch from which on the mean curve of a group is not below another's."""
    (one,), (other,) = select(groups, claim.group), select(groups, claim.other)
    estimate, resampled = crossing(*curves_of(one), *curves_of(other), claim.lasting)
    return Measured(percentile_interval(estimate, resampled), "bootstrap", (resampled_tails(resampled),))


MEASURES: dict[str, Callable[[Claim, Groups, str], Measured]] = {
    "number": measure_number,
    "level": measure_level,
    "levels": measure_levels,
    "count": measure_count,
    "order": measure_order,
    "same order": measure_same_order,
    "gain": measure_gain,
    "spread": measure_spread,
    "lost": measure_lost,
    "ratio": measure_ratio,
    "mean": measure_mean,
    "share": measure_share,
    "crossing": measure_crossing,
}
