"""Measuring: for each kind of claim one quantity with its interval and the tests that judge it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, stats

from spaql.paper.audit.claims import Claim
from spaql.paper.audit.groups import AGENTS, Group, Key, pooled, select
from spaql.paper.statistics import bootstrap_weights, percentile_interval, welch
from spaql.policies.interval import Interval, paper_interval


class Measured(NamedTuple):
    """A quantity with its interval, the tests that judge it, and how it was tested."""

    ours: Interval
    test: str
    p: tuple[float, ...] = ()
    signs: tuple[float, ...] = ()  # of the difference that each p is of: positive is ours, or the first group
    effect: float = np.nan


def summary_std(half: float, n: int) -> float:
    """Return the sample standard deviation behind a half-interval of the paper's, 1.96 population ones over √n."""
    return half / 1.96 * np.sqrt(n) * np.sqrt(n / (n - 1))


def measure_number(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare our mean with the paper's, by Welch's test from its summary; the effect is in standard deviations."""
    values = pooled(groups, claim.group, column)
    std = summary_std(claim.half, AGENTS)
    difference = values.mean() - claim.paper
    scale = np.sqrt((std**2 + values.var(ddof=1)) / 2)
    half = paper_interval(values).high - values.mean()
    p = summary_p(claim.paper, claim.half, values.mean(), half, values.size)
    return Measured(paper_interval(values), "Welch", (p,), (difference,), difference / scale)


def summary_p(first: float, first_half: float, second: float, second_half: float, n: int = AGENTS) -> float:
    """Return the p of Welch's test between the paper's mean and another of n agents, both with half-intervals."""
    stds = summary_std(first_half, AGENTS), summary_std(second_half, n)
    if stds == (0.0, 0.0):
        return float(first == second)
    return float(stats.ttest_ind_from_stats(first, stds[0], AGENTS, second, stds[1], n, equal_var=False).pvalue)


def measure_level(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare two groups."""
    return compare(groups, claim.group, claim.other, column)


def compare(groups: Mapping[Key, Group], one: str, other: str, column: str) -> Measured:
    """Compare two groups; the effect is the probability that an agent of the first beats one of the second."""
    compared = welch(pooled(groups, one, column), pooled(groups, other, column))
    ours = Interval(compared.difference, compared.low, compared.high)
    return Measured(ours, "Welch", (compared.p,), (compared.difference,), compared.improvement)


def measure_order(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare a group with each that should be below; shown is the nearest of them."""
    found = [compare(groups, claim.group, other, column) for other in claim.below]
    nearest = min(found, key=lambda one: one.ours.mean)
    return nearest._replace(p=sum((one.p for one in found), ()), signs=sum((one.signs for one in found), ()))


def measure_same_order(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare pairs of algorithms on two systems, ξ pooled; shown is how many pairs have the same sign on both."""
    found = [
        [
            compare(groups, f"xi, {system}, {one}, all", f"xi, {system}, {other}, all", column)
            for system in claim.systems
        ]
        for one, other in claim.pairs
    ]
    same = sum(np.sign(a.ours.mean) == np.sign(b.ours.mean) for a, b in found)
    p, signs = (tuple(getattr(one, name)[0] for pair in found for one in pair) for name in ("p", "signs"))
    return Measured(Interval(same, np.nan, np.nan), "Welch, pairs", p, signs, same / len(found))


def measure_count(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare how many agents reach a threshold with the paper's number, by Fisher's exact test."""
    return count_reached(claim, pooled(groups, claim.group, column))


def count_reached(claim: Claim, values: np.ndarray) -> Measured:
    """Compare how many of these values reach a claim's threshold with the paper's number."""
    reached, n = int(np.sum(values >= claim.threshold)), values.size
    p = stats.fisher_exact([[reached, n - reached], [claim.paper, AGENTS - claim.paper]]).pvalue
    low, high = stats.binomtest(reached, n).proportion_ci()
    sign = reached / n - claim.paper / AGENTS
    return Measured(Interval(reached, n * low, n * high), "Fisher", (float(p),), (sign,))


def measure_gain(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure a difference of means, with Welch's interval."""
    return measure_level(claim, groups, column)


def measure_mean(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure a mean, with Student's interval."""
    values = pooled(groups, claim.group, column)
    half = stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return Measured(Interval(values.mean(), values.mean() - half, values.mean() + half), "t interval")


def measure_spread(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure Cohen's f: the standard deviation of the means over ξ, in standard deviations of agents with the same ξ.

    Its interval inverts the non-central F distribution; Cohen calls 0.1 small, 0.25 medium and 0.4 large.
    """
    samples = [group.column(column) for group in select(groups, claim.group)]
    k, n = len(samples), sum(sample.size for sample in samples)
    test = stats.f_oneway(*samples)

    def noncentrality(level: float) -> float:
        def excess(nc: float) -> float:
            return stats.ncf.cdf(test.statistic, k - 1, n - k, nc) - level

        if excess(0.0) <= 0.0:
            return 0.0
        bracket = 1.0
        while excess(bracket) > 0.0:
            bracket *= 2.0
        return optimize.brentq(excess, 0.0, bracket)

    estimate = max(0.0, (k - 1) * (test.statistic - 1.0))
    f = [float(np.sqrt(nc / n)) for nc in (estimate, noncentrality(0.975), noncentrality(0.025))]
    return Measured(Interval(*f), "Cohen's f", effect=f[0])


def measure_ratio(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure a ratio of means, with a bootstrap interval."""
    rng = np.random.default_rng(0)
    one, other = (pooled(groups, name, column) for name in (claim.group, claim.other))
    found = percentile_interval(
        one.mean() / other.mean(),
        (bootstrap_weights(rng, one.size) @ one) / (bootstrap_weights(rng, other.size) @ other),
    )
    return Measured(found, "bootstrap")


def measure_lost(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure the share of the gain over a floor that a group lacks, compared to another; bootstrap interval."""
    rng = np.random.default_rng(0)
    samples = [pooled(groups, name, column) for name in (claim.group, claim.other, claim.floor)]

    def share(one: Any, other: Any, floor: Any) -> Any:
        return (other - one) / (other - floor)

    resampled = share(*(bootstrap_weights(rng, sample.size) @ sample for sample in samples))
    return Measured(percentile_interval(share(*(sample.mean() for sample in samples)), resampled), "bootstrap")


def measure_crossing(claim: Claim, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure the first batch after which the mean curve of a group is not below another's."""
    (one,), (other,) = select(groups, claim.group), select(groups, claim.other)
    return Measured(first_crossing(one, other), "bootstrap")


def first_crossing(one: Group, other: Group) -> Interval:
    """Return the first batch after which one mean curve is not below another (infinite: none), by bootstrap."""
    rng = np.random.default_rng(0)
    shared = one.batches <= other.batches[-1]  # a shorter run says nothing about what comes after it
    if not shared.any():
        return Interval(np.inf, np.inf, np.inf)
    one = one._replace(curves=one.curves[:, shared], batches=one.batches[shared])
    at = np.searchsorted(other.batches, one.batches)  # the other group's iteration that has seen as many batches

    def first(above: np.ndarray) -> np.ndarray:
        return np.where(above.any(axis=-1), one.batches[above.argmax(axis=-1)], np.inf)

    means = [
        (group.mean(axis=0), bootstrap_weights(rng, len(group)) @ group) for group in (one.curves, other.curves[:, at])
    ]
    estimate, resampled = (first(a >= b) for a, b in zip(*means, strict=True))
    return percentile_interval(float(estimate), resampled)


MEASURES: dict[str, Callable[[Claim, Mapping[Key, Group], str], Measured]] = {
    "number": measure_number,
    "level": measure_level,
    "count": measure_count,
    "order": measure_order,
    "same order": measure_same_order,
    "gain": measure_gain,
    "spread": measure_spread,
    "lost": measure_lost,
    "ratio": measure_ratio,
    "mean": measure_mean,
    "crossing": measure_crossing,
}
