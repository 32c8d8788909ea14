"""Intervals and tests: pure functions of arrays with one number per agent."""

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from spaql.policies.interval import Interval, numbers


def student_interval(values: ArrayLike) -> Interval:
    """Return the mean with Student's 95 % interval; of a single agent both ends are its value."""
    values = numbers(values)
    if values.size == 1:
        return Interval(values[0], values[0], values[0])
    half = stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return Interval(values.mean(), values.mean() - half, values.mean() + half)


def bootstrap_interval(values: ArrayLike, resamples: int = 9999) -> Interval:
    """Return the mean with its 95 % bootstrap interval (bias-corrected and accelerated)."""
    values = numbers(values)
    if np.ptp(values) == 0.0:  # nothing to resample, and no acceleration to estimate
        return Interval(values[0], values[0], values[0])
    found = stats.bootstrap((values,), np.mean, n_resamples=resamples, rng=np.random.default_rng(0))
    return Interval(values.mean(), *map(float, found.confidence_interval))


def draw_weights(rng: np.random.Generator, n: int, resamples: int = 9999) -> np.ndarray:
    """Return how much each of n agents weighs in each resample, one row per resample: times values, the means."""
    return rng.multinomial(n, np.full(n, 1.0 / n), size=resamples) / n


@functools.lru_cache(8)
def bootstrap_weights(*sizes: int) -> tuple[np.ndarray, ...]:
    """Return such weights for groups of these sizes, drawn one after the other; they are drawn once and used often."""
    rng = np.random.default_rng(0)
    return tuple(draw_weights(rng, n) for n in sizes)


def percentile_interval(estimate: float, resampled: ArrayLike, level: float = 0.95) -> Interval:
    """Return an estimate with the bootstrap's percentile interval; infinite values (never reached) take part."""
    low, high = np.quantile(np.asarray(resampled, float), [(1 - level) / 2, (1 + level) / 2], method="inverted_cdf")
    return Interval(float(estimate), float(low), float(high))


def crossing(
    curves: np.ndarray, at: np.ndarray, others: np.ndarray, others_at: np.ndarray, lasting: bool = False
) -> tuple[float, np.ndarray]:
    """Return where one mean curve first is not below another, or stays so, and the same of bootstrap resamples.

    `curves` has one row per agent, whose columns were measured at the places `at`; where the curves never cross the
    place is infinite.
    """
    # A shorter run says nothing about what comes after it, and nobody has learned anything before place 0.
    shared = (at <= others_at[-1]) & (at > 0)
    if not shared.any():
        return np.inf, np.full(2, np.inf)
    places = at[shared]
    ours, theirs = curves[:, shared], others[:, np.searchsorted(others_at, places)]

    def place(above):
        if lasting:  # what is above from here to the end
            above = np.flip(np.logical_and.accumulate(np.flip(above, axis=-1), axis=-1), axis=-1)
        return np.where(above.any(axis=-1), places[above.argmax(axis=-1)], np.inf)

    one, other = bootstrap_weights(len(ours), len(theirs))
    estimate = place(ours.mean(axis=0) >= theirs.mean(axis=0))
    return float(estimate), place(one @ ours >= other @ theirs)


class Comparison(NamedTuple):
    """How two groups of agents compare."""

    difference: float  # of the means, first minus second
    low: float  # of the 95 % interval of the difference
    high: float
    p: float  # Welch's test, two-sided
    p_holm: float  # the same, corrected for the number of tests made together
    improvement: float  # probability that an agent of the first group beats one of the second


def welch(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Compare two groups by Welch's t-test, which does not assume equal variances."""
    first, second = numbers(first, at_least=2), numbers(second, at_least=2)
    improvement = probability_of_improvement(first, second)
    difference = first.mean() - second.mean()
    if first.std() == second.std() == 0.0:  # the test's limit: no doubt at all
        p = float(difference == 0.0)
        return Comparison(difference, difference, difference, p, p, improvement)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Precision loss")  # one group may be constant: every agent at the maximum
        test = stats.ttest_ind(first, second, equal_var=False)
    low, high = test.confidence_interval()
    return Comparison(difference, float(low), float(high), float(test.pvalue), float(test.pvalue), improvement)


def paired(first: ArrayLike, second: ArrayLike) -> Comparison:
    """Compare two groups agent by agent, by the paired t-test: agents of the same place share their seeds.

    What is said of the improvement is the share of agents that gain; a tie is half a gain.
    """
    first, second = numbers(first, at_least=2), numbers(second, at_least=2)
    differences = first - second
    found = student_interval(differences)
    constant = np.ptp(differences) == 0.0  # the test's limit: no doubt at all
    p = float(found.mean == 0.0) if constant else float(stats.ttest_rel(first, second).pvalue)
    return Comparison(*found, p, p, float(np.mean((np.sign(differences) + 1) / 2)))


def with_holm(compare: Callable[..., Comparison], pairs: dict) -> dict:
    """Compare several pairs of groups, by name, by `welch` or `paired`, with Holm's correction of the p-values."""
    compared = {name: compare(*pair) for name, pair in pairs.items()}
    corrected = holm([comparison.p for comparison in compared.values()])
    return {name: c._replace(p_holm=p) for (name, c), p in zip(compared.items(), corrected, strict=True)}


def holm(p: ArrayLike) -> list[float]:
    """Return p-values corrected by Holm's step-down method.

    That of statsmodels collects garbage in each call, which took three quarters of the time of all verdicts.
    """
    order = np.argsort(p)
    corrected = np.empty(len(p))
    corrected[order] = np.maximum.accumulate(np.asarray(p)[order] * np.arange(len(p), 0, -1)).clip(max=1.0)
    return corrected.tolist()


def probability_of_improvement(first: ArrayLike, second: ArrayLike) -> float:
    """Return the probability that a number of the first group beats one of the second; a tie is half a win."""
    return float(stats.mannwhitneyu(first, second).statistic) / (len(first) * len(second))


def summarise(frame: pd.DataFrame, by: list[str], **intervals) -> pd.DataFrame:
    """Return one row per group of agents: how many they are, and of each column an interval, by a function of it."""
    rows = []
    for key, cell in frame.groupby(by, sort=False):
        row = dict(zip(by, key, strict=True)) | {"agents": len(cell)}
        for column, interval in intervals.items():
            found = interval(cell[column])
            row |= {column: found.mean, f"{column}_low": found.low, f"{column}_high": found.high}
        rows.append(row)
    return pd.DataFrame(rows)
