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

import functools
import os
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize, stats

from spaql import results
from spaql.experiments import load_stored, paper_jobs
from spaql.jobs import Record
from spaql.statistics import Interval, bootstrap_weights, holm, paper_interval, percentile_interval, welch

HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE = "holds", "differs", "inconclusive", "not comparable"
AGENTS = 20  # behind each of the paper's numbers
BATCH, EARLY = 200, 200  # samples in a batch of the paper's comparison, and batches up to which SPAQL leads in it

# ---------------------------------------------------------------------------------------------------------------------
# The data


@functools.cache
def load_claims() -> tuple[dict[str, Any], ...]:
    """Return the claims, as they stand in claims.toml."""
    return tuple(tomllib.loads((Path(__file__).with_name("claims.toml")).read_text(encoding="utf-8"))["claim"])


def paper_results() -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return the paper's two results tables: by system, algorithm and column the mean and the half-interval."""
    tables: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for claim in load_claims():
        if claim["kind"] == "number":
            _, system, algorithm = claim["group"].split(", ")
            cell = tables.setdefault(system, {}).setdefault(algorithm, {})
            cell[claim["column"]] = claim["paper"], claim["half"]
    return tables


class Group(NamedTuple):
    """What a group of agents ended with, a number an agent, and its learning curves."""

    rewards: np.ndarray  # as the paper reports them: the best so far for SPAQL and SPAQL-TS
    fresh: np.ndarray  # the policy kept, on fresh episodes
    arms: np.ndarray
    curves: np.ndarray  # rewards, an agent a row
    batches: np.ndarray  # of 200 samples, after which each column of the curves was reached

    def column(self, name: str) -> np.ndarray:
        """Return a number an agent: a field, or the mean of the curve over its "early" or "late" part."""
        if name == "early":
            return self.curves[:, self.batches <= EARLY].mean(axis=1)
        if name == "late":
            return self.curves[:, self.batches > 0.75 * self.batches[-1]].mean(axis=1)
        return getattr(self, name)


Key = tuple[str, str, str, float]  # study, system, algorithm, ξ


class MissingError(LookupError):
    """Results that a claim needs are not stored."""


def make_group(records: Iterable[Record]) -> Group:
    """Return what these agents ended with; they differ in nothing but their seeds."""
    records = sorted(records, key=lambda record: record.job.agent)
    job, history = records[0].job, records[0].history
    # The paper counts an iteration of the others as 200 samples, even where the pole falls sooner.
    batches = np.cumsum(history["steps"]) / BATCH if job.algorithm in results.TRPO else np.arange(1, len(history) + 1)
    return Group(
        rewards=np.array([record.history["rewards"][-1] for record in records]),
        fresh=np.array([record.fresh[0] for record in records]),
        arms=np.array([record.history["arms"][-1] for record in records], float),
        curves=np.array([record.history["rewards"] for record in records]),
        batches=batches,
    )


def load_groups(store: str | os.PathLike | None = None, studies: Iterable[str] = ("xi", "long", "trpo")) -> dict:
    """Return the groups of agents of the paper's studies of which every agent is stored, at the paper's scale."""
    store = Path(store) if store else results.default_store()
    groups: dict[Key, Group] = {}
    for study in studies:
        wanted: dict[Key, list] = {}
        for job in paper_jobs(study):
            wanted.setdefault((study, job.system, job.algorithm, job.xi), []).append(job)
        records, _ = load_stored([job for jobs in wanted.values() for job in jobs], store, repair=False)
        for key, jobs in wanted.items():
            if all(job in records for job in jobs):
                groups[key] = make_group(records[job] for job in jobs)
    return groups


def select(groups: Mapping[Key, Group], name: str) -> list[Group]:
    """Return the groups that a claim calls "study, system, algorithm[, ξ]", or raise `MissingError`."""
    study, system, algorithm, *xis = name.split(", ")
    wanted = {key for key in expected_keys() if key[:3] == (study, system, algorithm)}
    if xis and xis[0] != "all":
        wanted = {key for key in wanted if (key[3] > 0 if xis[0] == ">0" else key[3] == float(xis[0]))}
    if not wanted:
        raise ValueError(f"no study of the paper has a group {name!r}")
    if absent := wanted - set(groups):
        raise MissingError(f"results missing: {len(absent)} of {len(wanted)} groups of {name} are not stored")
    return [groups[key] for key in sorted(wanted)]


@functools.cache
def expected_keys() -> frozenset[Key]:
    """Return the keys of all groups that the paper's studies declare."""
    return frozenset(
        (study, job.system, job.algorithm, job.xi) for study in ("xi", "long", "trpo") for job in paper_jobs(study)
    )


def pooled(groups: Mapping[Key, Group], name: str, column: str) -> np.ndarray:
    """Return a number an agent, of all groups of a name."""
    return np.concatenate([group.column(column) for group in select(groups, name)])


# ---------------------------------------------------------------------------------------------------------------------
# Measuring


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


def number(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare our mean with the paper's, by Welch's test from its summary; the effect is in standard deviations."""
    values = pooled(groups, claim["group"], column)
    std = summary_std(claim["half"], AGENTS)
    difference = values.mean() - claim["paper"]
    scale = np.sqrt((std**2 + values.var(ddof=1)) / 2)
    half = paper_interval(values).high - values.mean()
    p = summary_p(claim["paper"], claim["half"], values.mean(), half, values.size)
    return Measured(paper_interval(values), "Welch", (p,), (difference,), difference / scale)


def summary_p(first: float, first_half: float, second: float, second_half: float, n: int = AGENTS) -> float:
    """Return the p of Welch's test between the paper's mean and another of n agents, both with half-intervals."""
    stds = summary_std(first_half, AGENTS), summary_std(second_half, n)
    if stds == (0.0, 0.0):
        return float(first == second)
    return float(stats.ttest_ind_from_stats(first, stds[0], AGENTS, second, stds[1], n, equal_var=False).pvalue)


def level(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare two groups; the effect is the probability that an agent of the first beats one of the second."""
    compared = welch(pooled(groups, claim["group"], column), pooled(groups, claim["other"], column))
    ours = Interval(compared.difference, compared.low, compared.high)
    return Measured(ours, "Welch", (compared.p,), (compared.difference,), compared.improvement)


def order(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare a group with each that should be below; shown is the nearest of them."""
    found = [level({**claim, "other": other}, groups, column) for other in claim["below"]]
    nearest = min(found, key=lambda one: one.ours.mean)
    return nearest._replace(p=sum((one.p for one in found), ()), signs=sum((one.signs for one in found), ()))


def same_order(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare pairs of algorithms on two systems, ξ pooled; shown is how many pairs have the same sign on both."""
    found = [
        [
            level({"group": f"xi, {system}, {one}, all", "other": f"xi, {system}, {other}, all"}, groups, column)
            for system in claim["systems"]
        ]
        for one, other in claim["pairs"]
    ]
    same = sum(np.sign(a.ours.mean) == np.sign(b.ours.mean) for a, b in found)
    p, signs = (tuple(getattr(one, name)[0] for pair in found for one in pair) for name in ("p", "signs"))
    return Measured(Interval(same, np.nan, np.nan), "Welch, pairs", p, signs, same / len(found))


def count(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Compare how many agents reach a threshold with the paper's number, by Fisher's exact test."""
    return count_reached(claim, pooled(groups, claim["group"], column))


def count_reached(claim: dict, values: np.ndarray) -> Measured:
    """Compare how many of these values reach a claim's threshold with the paper's number."""
    reached, n = int(np.sum(values >= claim["threshold"])), values.size
    p = stats.fisher_exact([[reached, n - reached], [claim["paper"], AGENTS - claim["paper"]]]).pvalue
    low, high = stats.binomtest(reached, n).proportion_ci()
    sign = reached / n - claim["paper"] / AGENTS
    return Measured(Interval(reached, n * low, n * high), "Fisher", (float(p),), (sign,))


def gain(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure a difference of means, with Welch's interval."""
    return level(claim, groups, column)


def mean(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure a mean, with Student's interval."""
    values = pooled(groups, claim["group"], column)
    half = stats.t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size)
    return Measured(Interval(values.mean(), values.mean() - half, values.mean() + half), "t interval")


def spread(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure Cohen's f: the standard deviation of the means over ξ, in standard deviations of agents with the same ξ.

    Its interval inverts the non-central F distribution; Cohen calls 0.1 small, 0.25 medium and 0.4 large.
    """
    samples = [group.column(column) for group in select(groups, claim["group"])]
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


def ratio(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure a ratio of means, with a bootstrap interval."""
    rng = np.random.default_rng(0)
    one, other = (pooled(groups, claim[name], column) for name in ("group", "other"))
    found = percentile_interval(
        one.mean() / other.mean(),
        (bootstrap_weights(rng, one.size) @ one) / (bootstrap_weights(rng, other.size) @ other),
    )
    return Measured(found, "bootstrap")


def lost(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure the share of the gain over a floor that a group lacks, compared to another; bootstrap interval."""
    rng = np.random.default_rng(0)
    samples = [pooled(groups, claim[name], column) for name in ("group", "other", "floor")]

    def share(one: Any, other: Any, floor: Any) -> Any:
        return (other - one) / (other - floor)

    resampled = share(*(bootstrap_weights(rng, sample.size) @ sample for sample in samples))
    return Measured(percentile_interval(share(*(sample.mean() for sample in samples)), resampled), "bootstrap")


def crossing(claim: dict, groups: Mapping[Key, Group], column: str) -> Measured:
    """Measure the first batch after which the mean curve of a group is not below another's."""
    (one,), (other,) = select(groups, claim["group"]), select(groups, claim["other"])
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
    return percentile_interval(estimate, resampled)


# ---------------------------------------------------------------------------------------------------------------------
# Judging: from a measured quantity and its p-values after Holm's correction to a verdict and the direction


def agree(claim: dict, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """No difference by the paper's own criterion; a difference that survives the correction; or neither."""
    if found.p[0] >= 0.05:
        return HOLDS, ""
    return (DIFFERS, direction(found.signs[0])) if corrected[0] < 0.05 else (INCONCLUSIVE, "")


def exceed(claim: dict, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """All below, some above, or some too near to tell."""
    if any(p < 0.05 and sign < 0 for p, sign in zip(corrected, found.signs, strict=True)):
        return DIFFERS, "down"
    return (HOLDS, "") if all(p < 0.05 for p in corrected) else (INCONCLUSIVE, "")


def keep_order(claim: dict, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """Every pair significant on both systems with one sign, or on neither; a pair reversed; or a pair on one only."""
    pairs = np.where(np.array(corrected) < 0.05, np.sign(found.signs), 0.0).reshape(-1, 2)
    if np.any(pairs.prod(axis=1) < 0):
        return DIFFERS, "reversed"
    return (HOLDS, "") if np.all(pairs[:, 0] == pairs[:, 1]) else (INCONCLUSIVE, "")


def within(claim: dict, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """The whole interval in the range, outside of it, or across its border."""
    low, high = claim["range"]
    if low <= found.ours.low and found.ours.high <= high:
        return HOLDS, ""
    if found.ours.low > high:
        return DIFFERS, "up"
    return (DIFFERS, "down") if found.ours.high < low else (INCONCLUSIVE, "")


def gained(claim: dict, found: Measured, corrected: list[float]) -> tuple[str, str]:
    """Significant and as much as the paper's; another amount; or not to be told from nothing."""
    if not found.ours.low <= claim["paper"] <= found.ours.high:
        return DIFFERS, direction(found.ours.mean - claim["paper"])
    return (HOLDS, "") if corrected[0] < 0.05 else (INCONCLUSIVE, "")


def direction(difference: float) -> str:
    """Return the word for a sign."""
    return "up" if difference > 0 else "down"


MEASURES: dict[str, Callable[[dict, Mapping[Key, Group], str], Measured]] = {
    "number": number,
    "level": level,
    "count": count,
    "order": order,
    "same order": same_order,
    "gain": gain,
    "spread": spread,
    "lost": lost,
    "ratio": ratio,
    "mean": mean,
    "crossing": crossing,
}
JUDGES: dict[str, Callable[[dict, Measured, list[float]], tuple[str, str]]] = {
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

# ---------------------------------------------------------------------------------------------------------------------
# The table


def verdicts(store: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return the paper's claims with their verdicts, a row a claim, from results stored at the paper's scale.

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


def judge(claims: Iterable[dict], groups: Mapping[Key, Group]) -> pd.DataFrame:
    """Return the frame of `verdicts` for these claims from these groups of agents."""
    claims = list(claims)
    reported = judge_all(claims, groups, lambda claim: claim.get("column", "rewards"))
    on_rewards = [
        c for c in claims if c.get("column", "rewards") == "rewards" and c["kind"] not in ("crossing", "untested")
    ]
    fresh = judge_all(on_rewards, groups, lambda claim: "fresh")
    rows = []
    for claim in claims:
        found, p, p_holm, verdict, way, reason = reported[claim["id"]]
        again = fresh.get(claim["id"])
        # The paper's numbers are of the best so far, so a number on fresh episodes is no comparison with them.
        survives = again.verdict if again and claim["kind"] != "number" else ""
        rows.append(
            {key: claim[key] for key in ("id", "place", "statement", "kind")}
            | {"said": said(claim, claims)}
            | dict(zip(("ours", "low", "high"), found.ours if found else (np.nan,) * 3, strict=True))
            | {"test": found.test if found else "", "p": p, "p_holm": p_holm}
            | {"effect": found.effect if found else np.nan, "verdict": verdict, "direction": way}
            | {"why": claim.get("why", {}).get(way, "We have no explanation.") if verdict == DIFFERS else reason}
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


def judge_all(claims: list[dict], groups: Mapping[Key, Group], column: Callable[[dict], str]) -> dict[str, Judged]:
    """Measure all claims, correct all their p-values together, and judge them."""
    measured: dict[str, Measured] = {}
    judged: dict[str, Judged] = {}
    for claim in claims:
        try:
            if claim["kind"] == "untested":
                raise MissingError(claim["reason"])
            measured[claim["id"]] = MEASURES[claim["kind"]](claim, groups, column(claim))
        except MissingError as missing:
            judged[claim["id"]] = Judged(None, np.nan, np.nan, NOT_COMPARABLE, "", str(missing))
    corrected = iter(holm([p for found in measured.values() for p in found.p]))
    for claim in claims:
        if found := measured.get(claim["id"]):
            own = [next(corrected) for _ in found.p]
            verdict, way = JUDGES[claim["kind"]](claim, found, own)
            p, p_holm = max(found.p, default=np.nan), max(own, default=np.nan)
            judged[claim["id"]] = Judged(found, p, p_holm, verdict, way, "")
    return judged


def said(claim: dict, claims: Iterable[dict]) -> str:
    """Return the paper's value in words: its number, or what its tables give for two groups."""
    if claim["kind"] == "number":
        return f"{claim['paper']:,.2f} ± {claim['half']:.2f}"
    if claim["kind"] == "count":
        return f"{claim['paper']} of {AGENTS}"
    if "paper" in claim:
        return f"about {claim['paper']:g}"
    column = claim.get("column", "rewards")
    table = {c["group"]: (c["paper"], c["half"]) for c in claims if c["kind"] == "number" and c["column"] == column}
    pairs = [(claim["group"], other) for other in claim.get("below", [claim.get("other")])] if "group" in claim else []
    if not pairs or not all(name in table for pair in pairs for name in pair):
        return "in words" if claim["kind"] != "untested" else "a picture"
    if claim["kind"] == "ratio":
        return f"{table[pairs[0][0]][0] / table[pairs[0][1]][0]:.1f} times"
    one, other = min(pairs, key=lambda pair: table[pair[0]][0] - table[pair[1]][0])
    return f"{table[one][0] - table[other][0]:+.2f}, p = {summary_p(*table[one], *table[other]):.0e}"


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
