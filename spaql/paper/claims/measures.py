"""Measuring: groups of stored agents, and for each kind of claim a quantity of theirs with what may be said of it."""

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, stats
from statsmodels.stats.proportion import confint_proportions_2indep

from spaql.paper.engine import statistics, store
from spaql.paper.engine.job import job_of
from spaql.paper.engine.outcomes import batches
from spaql.paper.engine.provenance import results
from spaql.paper.engine.statistics import percentile_interval
from spaql.paper.engine.study import published
from spaql.policies.interval import Interval, paper_interval

AGENTS = 20  # behind each of the paper's numbers
MARGIN = 0.1  # within which two numbers are equal, of the one that is the reference
STUDIES = ("xi", "long", "trpo")  # of the text's experiment
CHANGED = ("ablation", "readings")  # which have agents for them as well, under other rules and readings

# Numbers of each agent that follow from its stored curve: `rewards` has one row per agent, and `at` says after how many
# batches the policies behind its columns were there.


def late(rewards, at):
    """Return the mean reward over the last quarter of training."""
    return rewards[:, at > 0.75 * at[-1]].mean(axis=1)


def progress(rewards, at):
    """Return by how much the mean reward of the last quarter exceeds that of the first."""
    quarter = max(1, len(at) // 4)
    return rewards[:, -quarter:].mean(axis=1) - rewards[:, :quarter].mean(axis=1)


def rise_late(rewards, at):
    """Return which share of the rise comes in the second half of training."""
    rise, second = (rewards[:, -1] - rewards[:, place] for place in (0, len(at) // 2 - 1))
    return second / np.where(rise == 0.0, np.inf, rise)  # no share where nothing rises


QUANTITIES = {"late": late, "progress": progress, "rise_late": rise_late}

# Groups of agents that differ in nothing but their seeds: what a claim is about

Key = tuple[str, str, str, float]  # study, system, algorithm, ξ
Groups = Mapping[Key, pd.DataFrame]  # one row per agent, as the engine stores them


class MissingError(LookupError):
    """Results that a claim needs are not stored."""


@functools.cache
def jobs_of(study):
    """Return the published agents of a study, group by group."""
    found = {}
    for job in published(study):
        found.setdefault((study, job.system, job.algorithm, job.xi), []).append(job)
    return found


def load_groups(studies=STUDIES) -> Groups:
    """Return the complete groups of published agents."""
    return stored_groups({key: jobs for study in studies for key, jobs in jobs_of(study).items()})


def stored_groups(wanted) -> Groups:
    """Return the complete ones of these groups of jobs, whichever study their agents were run for."""
    files = dict.fromkeys((*(key[0] for key in wanted), *CHANGED))
    jobs = {job for group in wanted.values() for job in group}
    found = store.find([dataclasses.replace(job, study=file) for job in jobs for file in files], [results()])
    complete = {key: group for key, group in wanted.items() if all(job in found for job in group)}
    return {key: pd.DataFrame([found[job] for job in group]) for key, group in complete.items()}


def select(groups: Groups, name: str) -> list[pd.DataFrame]:
    """Return the groups that a claim calls "study, system, algorithm[, ξ]"."""
    study, system, algorithm, *xis = name.split(", ")
    wanted = sorted(key for key in jobs_of(study) if key[1:3] == (system, algorithm) and fits(key[3], *xis))
    if not wanted:
        raise ValueError(f"no study of the paper has a group {name!r}")
    if absent := set(wanted) - set(groups):
        raise MissingError(f"results missing: {len(absent)} of {len(wanted)} groups of {name} are not stored")
    return [groups[key] for key in wanted]


def fits(xi, asked="all"):
    """Return whether a ξ is one of those asked for: "all", a number, "<" (but not 0) or ">" a number."""
    if asked == "all":
        return True
    if asked[0] in "<>":
        return 0 < xi < float(asked[1:]) if asked[0] == "<" else xi > float(asked[1:])
    return xi == float(asked)


def values_of(group, column) -> np.ndarray:
    """Return one number per agent: one of `QUANTITIES`, or a stored one."""
    if column in QUANTITIES:
        return QUANTITIES[column](*curves_of(group))
    if column not in group or group[column].isna().any():
        raise MissingError(f"results missing: these agents were stored without {column!r}")
    return group[column].to_numpy(float)


def pooled(groups, name, column) -> np.ndarray:
    """Return one number per agent, of all groups of a name."""
    return np.concatenate([values_of(group, column) for group in select(groups, name)])


def curves_of(group) -> tuple[np.ndarray, np.ndarray]:
    """Return the agents' rewards, one row per agent, and after how many batches the policies behind them were there."""
    first = group.iloc[0]
    history = {"rewards": first.curve_rewards, "steps": first.get("curve_steps")}
    return np.stack(group.curve_rewards), batches(job_of(first), history)


# What is measured


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


def student(estimate, error, freedom) -> Tails:
    """Return the tails of an estimate with a standard error, by Student's distribution."""
    if error == 0.0:  # no doubt at all
        return Tails(lambda bound: float(estimate <= bound), lambda bound: float(estimate >= bound))
    law = stats.t(freedom, estimate, error)
    return Tails(law.cdf, law.sf)


def resampled_tails(resampled) -> Tails:
    """Return the tails of a quantity by the bootstrap: the shares of its resamples on either side."""
    least = 1 / (resampled.size + 1)
    return Tails(
        lambda bound: max(least, np.mean(resampled <= bound)), lambda bound: max(least, np.mean(resampled >= bound))
    )


# Comparisons: with a number of the paper's tables, of two groups, of counts


def summary_std(half, n):
    """Return the sample standard deviation behind a half-interval of the paper's, 1.96 population ones over √n."""
    return half / 1.96 * np.sqrt(n) * np.sqrt(n / (n - 1))


def welch_error(first, second, n, m):
    """Return the standard error and the degrees of freedom of Welch's test, from two standard deviations."""
    one, other = first**2 / n, second**2 / m
    if one + other == 0.0:
        return 0.0, np.inf
    return np.sqrt(one + other), (one + other) ** 2 / (one**2 / (n - 1) + other**2 / (m - 1))


def measure_number(claim, groups, column):
    """Compare our mean with the paper's, by Welch's test from its summary; the effect is in standard deviations."""
    values = pooled(groups, claim.group, column)
    theirs, ours = summary_std(claim.half, AGENTS), values.std(ddof=1)
    difference = values.mean() - claim.paper
    error, freedom = welch_error(ours, theirs, values.size, AGENTS)
    effect = difference / np.sqrt((theirs**2 + ours**2) / 2)
    half = stats.t.ppf(0.975, freedom) * error
    apart = Interval(difference, difference - half, difference + half)
    tails = student(difference, error, freedom)
    return Measured(paper_interval(values), "Welch", (tails,), claim.paper, effect, apart)


def measure_difference(claim, groups, column):
    """Compare a group ("levels": each of several) with others; shown is the one farthest from what is claimed."""
    several, equal = claim.kind == "levels", claim.kind in ("level", "levels")
    ones = [values_of(group, column) for group in select(groups, claim.group)]
    ones = ones if several else [np.concatenate(ones)]
    others = [pooled(groups, name, column) for name in claim.below or (claim.other,)]
    found = [compare(one, other) for one in ones for other in others]
    shown = max(found, key=lambda each: abs(each.ours.mean) if several else -each.ours.mean)
    tails = tuple(tails for each in found for tails in each.tails)
    return shown._replace(tails=tails, difference=shown.ours if equal else None)


def compare(one, other) -> Measured:
    """Compare two groups; the effect is the probability that an agent of the first beats one of the second.

    Where one of them is constant, Welch's test takes the other's spread for both: the bootstrap has the interval then,
    and permutations say whether there is a difference.
    """
    found = statistics.welch(one, other)
    if (one.std() == 0.0) != (other.std() == 0.0):
        test, (ours, tails) = "permutations", permuted(one, other)
    else:
        test, ours = "Welch", Interval(found.difference, found.low, found.high)
        tails = student(found.difference, *welch_error(one.std(ddof=1), other.std(ddof=1), one.size, other.size))
    return Measured(ours, test, (tails,), other.mean(), found.improvement)


def permuted(one, other) -> tuple[Interval, Tails]:
    """Return the difference of two means: by permutations whether there is one, by the bootstrap how great it is."""
    rng = np.random.default_rng(0)
    difference = one.mean() - other.mean()
    both = rng.permuted(np.tile(np.concatenate((one, other)), (9999, 1)), axis=1)
    drawn = both[:, : one.size].mean(axis=1) - both[:, one.size :].mean(axis=1)
    tiny = 1e-9 * max(1.0, abs(difference))
    beyond = drawn >= difference - tiny, drawn <= difference + tiny
    higher, lower = ((np.sum(side) + 1) / (len(drawn) + 1) for side in beyond)
    weights = [statistics.draw_weights(rng, group.size) for group in (one, other)]
    resampled = weights[0] @ one - weights[1] @ other
    far = resampled_tails(resampled)
    tails = Tails(
        lambda bound: higher if bound == 0.0 else far.below(bound),
        lambda bound: lower if bound == 0.0 else far.above(bound),
    )
    return percentile_interval(difference, resampled), tails


def measure_count(claim, groups, column):
    """Compare the share of agents that reach a threshold with the paper's, by Newcombe's interval; given of twenty."""
    values = pooled(groups, claim.group, column)
    reached, n = int(np.sum(values >= claim.threshold)), values.size
    difference = reached / n - claim.paper / AGENTS

    def newcombe(alpha):
        return confint_proportions_2indep(
            reached, n, int(claim.paper), AGENTS, method="newcomb", compare="diff", alpha=alpha
        )

    def below(bound):  # how wide must the interval be to end at the bound?
        def excess(z):
            return newcombe(2 * stats.norm.sf(z))[0 if difference > bound else 1] - bound

        if difference == bound:
            return 0.5
        widest = 37.0  # beyond which the share outside is no number any more
        z = optimize.brentq(excess, 0.0, widest) if excess(0.0) * excess(widest) < 0 else widest
        return stats.norm.sf(z) if difference > bound else stats.norm.cdf(z)

    low, high = stats.binomtest(reached, n).proportion_ci()
    ours = Interval(AGENTS * reached / n, AGENTS * low, AGENTS * high)
    tails = Tails(below, lambda bound: 1.0 - below(bound))
    return Measured(ours, "Newcombe", (tails,), 1.0, difference, Interval(difference, *newcombe(0.05)))


def measure_same_order(claim, groups, column):
    """Compare pairs of algorithms on two systems, ξ pooled; shown is how many pairs are in the same order on both.

    A pair is in the same order if its sign is shown on both systems, or if on both it is shown to be level, within
    10 %; and it is reversed if opposite signs are shown.  Its tails are those of a number that should be above zero.
    """
    found = [
        [compare(*(pooled(groups, f"xi, {system}, {name}, all", column) for name in pair)) for system in claim.systems]
        for pair in claim.pairs
    ]
    same = sum(
        np.sign(one.ours.mean) == np.sign(other.ours.mean)
        or all(abs(each.ours.mean) <= MARGIN * abs(each.reference) for each in (one, other))
        for one, other in found
    )
    tails = tuple(pair_tails(*pair) for pair in found)
    return Measured(Interval(same, np.nan, np.nan), "Welch, pairs", tails, effect=same / len(found))


def pair_tails(one: Measured, other: Measured) -> Tails:
    """Return the tails of "a pair is in the same order on both systems"."""
    (first,), (second,) = one.tails, other.tails
    both_up, both_down = max(first.below(0), second.below(0)), max(first.above(0), second.above(0))
    apart = min(max(first.below(0), second.above(0)), max(first.above(0), second.below(0)))
    margins = (first, MARGIN * abs(one.reference)), (second, MARGIN * abs(other.reference))
    level = max(max(tails.below(-margin), tails.above(margin)) for tails, margin in margins)
    same = min(1.0, 3 * min(both_up, both_down, level))  # one of three ways to be in the same order
    return Tails(lambda bound: same, lambda bound: min(1.0, 2 * apart))


# Quantities that should lie in a range


def measure_mean(claim, groups, column):
    """Measure a mean, with Student's interval."""
    values = pooled(groups, claim.group, column)
    tails = student(values.mean(), values.std(ddof=1) / np.sqrt(values.size), values.size - 1)
    shown = statistics.student_interval(values)
    if values.min() >= 0.0 and values.max() <= 1.0:  # shares, of which an interval cannot reach beyond
        shown = Interval(shown.mean, max(shown.low, 0.0), min(shown.high, 1.0))
    return Measured(shown, "Student", (tails,))


def measure_share(claim, groups, column):
    """Measure the share of agents of which something is so, with Clopper and Pearson's interval."""
    values = pooled(groups, claim.group, column)
    count, n = int(values.sum()), values.size
    tails = Tails(lambda bound: stats.binom.sf(count - 1, n, bound), lambda bound: stats.binom.cdf(count, n, bound))
    return Measured(Interval(count / n, *stats.binomtest(count, n).proportion_ci()), "binomial", (tails,))


def measure_spread(claim, groups, column):
    """Measure Cohen's f: the standard deviation of the means over ξ, in standard deviations of agents with the same ξ.

    Its interval inverts the non-central F distribution; Cohen calls 0.1 small, 0.25 medium and 0.4 large.
    """
    samples = [values_of(group, column) for group in select(groups, claim.group)]
    k, n = len(samples), sum(sample.size for sample in samples)
    statistic = stats.f_oneway(*samples).statistic

    def below(f):
        return stats.ncf.sf(statistic, k - 1, n - k, n * f**2) if f > 0 else stats.f.sf(statistic, k - 1, n - k)

    def end(level):
        return 0.0 if below(0.0) >= level else optimize.brentq(lambda f: below(f) - level, 0.0, 8.0)

    f = np.sqrt(max(0.0, (k - 1) * (statistic - 1.0)) / n)
    return Measured(Interval(f, end(0.025), end(0.975)), "Cohen's f", (Tails(below, lambda f: 1 - below(f)),), effect=f)


def measure_quotient(claim, groups, column):
    """Measure a ratio of means, or the share of the gain over a floor that a group lacks, by the bootstrap."""

    def quotient(one, other, floor=None):
        return one / other if floor is None else (other - one) / (other - floor)

    samples = [pooled(groups, name, column) for name in (claim.group, claim.other, claim.floor) if name]
    weights = statistics.bootstrap_weights(*(sample.size for sample in samples))
    resampled = quotient(*(drawn @ sample for drawn, sample in zip(weights, samples, strict=True)))
    found = percentile_interval(quotient(*(sample.mean() for sample in samples)), resampled)
    return Measured(found, "bootstrap", (resampled_tails(resampled),))


def measure_crossing(claim, groups, column):
    """Measure the batch from which on the mean curve of a group is not below another's."""
    (one,), (other,) = select(groups, claim.group), select(groups, claim.other)
    estimate, resampled = statistics.crossing(*curves_of(one), *curves_of(other), claim.lasting)
    return Measured(percentile_interval(estimate, resampled), "bootstrap", (resampled_tails(resampled),))


MEASURES = dict.fromkeys(("level", "levels", "order", "gain"), measure_difference) | {
    "number": measure_number,
    "count": measure_count,
    "same order": measure_same_order,
    "mean": measure_mean,
    "share": measure_share,
    "spread": measure_spread,
    "ratio": measure_quotient,
    "lost": measure_quotient,
    "crossing": measure_crossing,
}
