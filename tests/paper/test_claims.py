"""Verdicts on hand-made data where they are known, and on the published results, judged again by other programs."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.weightstats import ttost_ind

from spaql.paper.claims import measures, page
from spaql.paper.claims.judge import MARGIN, decide, judge
from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED, Claim, load_claims
from spaql.paper.claims.measures import AGENTS, compare, fits, jobs_of, load_groups, pooled, summary_std
from spaql.paper.engine.job import columns_of

SPAQL, AQL, RANDOM = (f"long, Pendulum-v1, {name}" for name in ("SPAQL", "AQL", "Random"))
TRPO = "trpo, Pendulum-v1, TRPO"
ZERO, OTHERS, ALL = (f"xi, CartPole-v0, SPAQL, {xi}" for xi in ("0", ">0", "all"))
FLOOR = "xi, CartPole-v0, Random, all"


def sample(mean, std=1.0, n=20):
    """Return numbers with exactly this mean and this population standard deviation."""
    values = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return mean + std * values / values.std()


def named(**samples):
    """Return groups by the names that claims use: one for each name and each ξ that it stands for.

    A sample is an array of rewards, or a frame.
    """
    groups = {}
    for name, group in samples.items():
        study, system, algorithm, *xi = name.split(", ")
        frame = group if isinstance(group, pd.DataFrame) else pd.DataFrame(dict.fromkeys(("rewards", "fresh"), group))
        for key, jobs in jobs_of(study).items():
            if key[1:3] == (system, algorithm) and fits(key[3], *xi or ["all"]):
                groups[key] = frame.astype({"rewards": float}).assign(**columns_of(jobs[0]))
    return groups


def made(fields, name="x"):
    return Claim(id=name, place="", statement="", **fields)


def verdict(claim, samples):
    row = judge([made(claim)], named(**samples)).iloc[0]
    return row.verdict, row.direction


NUMBER = {"kind": "number", "group": AQL, "paper": 10.0, "half": 0.5}
ORDER = {"kind": "order", "group": SPAQL, "below": [AQL, RANDOM]}
LEVEL = {"kind": "level", "group": SPAQL, "other": AQL}
LEVELS = {"kind": "levels", "group": ALL, "other": FLOOR}
COUNT = {"kind": "count", "group": AQL, "threshold": 195.0, "paper": 17}
SPREAD = {"kind": "spread", "group": ALL, "range": [-np.inf, 0.25]}
LOST = {"kind": "lost", "group": ZERO, "other": OTHERS, "floor": FLOOR, "range": [0.5, np.inf]}
RATIO = {"kind": "ratio", "group": AQL, "other": SPAQL, "range": [31.6, 316.2]}
MEAN = {"kind": "mean", "group": AQL, "range": [195.0, np.inf]}
SHARE = {"kind": "share", "group": AQL, "range": [-np.inf, 0.25]}
GAIN = {"kind": "gain", "group": SPAQL, "other": AQL, "paper": 100.0, "range": [50.0, 150.0]}


@pytest.mark.parametrize(
    ("claim", "samples", "expected"),
    [
        (NUMBER, {AQL: sample(10.1, 0.5)}, (HOLDS, "")),
        (NUMBER, {AQL: sample(10.2, 2)}, (UNDECIDED, "")),  # no difference found, and not shown to be close
        (NUMBER | {"half": 0.01}, {AQL: sample(10.3, 0.01)}, (HOLDS, "near")),  # a difference, within the margin
        (NUMBER | {"half": 0.01, "margin": 0.2}, {AQL: sample(10.3, 0.01)}, (DIFFERS, "up")),
        (NUMBER, {}, (NOT_JUDGED, "")),
        (ORDER, {SPAQL: sample(9), AQL: sample(5), RANDOM: sample(4)}, (HOLDS, "")),
        (ORDER, {SPAQL: sample(5), AQL: sample(9), RANDOM: sample(3)}, (DIFFERS, "down")),
        (LEVEL, {SPAQL: sample(5, 0.2), AQL: sample(5.1, 0.2)}, (HOLDS, "")),
        (LEVEL, {SPAQL: sample(5), AQL: sample(9)}, (DIFFERS, "down")),
        (LEVELS, {ZERO: sample(30), OTHERS: sample(20), FLOOR: sample(20)}, (DIFFERS, "up")),
        (COUNT, {AQL: [200] * 17 + [190] * 3}, (UNDECIDED, "")),  # twenty agents do not show a count
        (COUNT | {"margin": 0.4}, {AQL: [200] * 17 + [190] * 3}, (HOLDS, "")),
        (SPREAD, {ALL: sample(5)}, (HOLDS, "")),
        (SPREAD, {ZERO: sample(6.5), OTHERS: sample(5)}, (UNDECIDED, "")),
        (SPREAD | {"significance": True}, {ZERO: sample(6.5), OTHERS: sample(5)}, (DIFFERS, "up")),
        (LOST, {ZERO: sample(30), OTHERS: sample(120), FLOOR: sample(20)}, (HOLDS, "")),
        (LOST, {ZERO: sample(110), OTHERS: sample(120), FLOOR: sample(20)}, (DIFFERS, "down")),
        (RATIO, {AQL: sample(1000), SPAQL: sample(10)}, (HOLDS, "")),
        (RATIO, {AQL: sample(9000), SPAQL: sample(10)}, (DIFFERS, "up")),
        (MEAN, {AQL: [200] * 20}, (HOLDS, "")),
        (SHARE, {AQL: [0] * 8 + [1] * 12}, (DIFFERS, "up")),
        (GAIN, {SPAQL: sample(190, 30), AQL: sample(90, 30)}, (HOLDS, "")),
        (GAIN, {SPAQL: sample(95, 50), AQL: sample(90, 50)}, (DIFFERS, "down")),
    ],
)
def test_verdicts_that_are_known(claim, samples, expected):
    assert verdict(claim, samples) == expected


def test_a_constant_group_is_compared_by_permutations():
    one, other = np.full(20, 200.0), np.array([200.0] * 14 + [199, 198, 197, 196, 170, 150])
    found = compare(one, other)
    assert found.test == "permutations"
    test = stats.permutation_test(
        (one, other), lambda a, b: a.mean() - b.mean(), alternative="greater", n_resamples=9999, rng=1
    )
    assert found.tails[0].below(0.0) == pytest.approx(test.pvalue, rel=0.3)
    assert 0 < found.ours.low < found.ours.mean < found.ours.high


def test_a_claim_is_judged_as_written_and_as_run():
    written, run = named(**{AQL: sample(15)}), named(**{AQL: sample(10.1, 0.5)})
    row = judge([made(NUMBER)], written, run).iloc[0]
    assert (row.verdict, row.run_verdict, row.run_ours) == (DIFFERS, HOLDS, pytest.approx(10.1))
    same = judge([made(NUMBER)], written).iloc[0]
    assert (same.verdict, same.run_verdict, same.run_ours) == (DIFFERS, DIFFERS, same.ours)
    absent = judge([made(NUMBER)], written, {}).iloc[0]
    assert (absent.verdict, absent.run_verdict) == (DIFFERS, NOT_JUDGED)
    assert absent.run_reason.startswith("results missing")


def test_a_claim_is_judged_on_fresh_episodes_where_it_is_about_rewards():
    frames = {SPAQL: pd.DataFrame({"rewards": sample(9), "fresh": sample(5)}), AQL: sample(5.1), RANDOM: sample(1)}
    row = judge([made(ORDER)], named(**frames)).iloc[0]
    assert (row.verdict, row.fresh_verdict, row.fresh) == (HOLDS, UNDECIDED, pytest.approx(-0.1))
    assert judge([made(NUMBER)], named(**frames)).fresh_verdict[0] == ""  # which the paper has of the best so far


def test_without_its_column_a_claim_is_not_judged():
    row = judge([made(MEAN | {"column": "kept"})], named(**{AQL: sample(1)})).iloc[0]
    assert (row.verdict, row.why) == (NOT_JUDGED, "results missing: these agents were stored without 'kept'")


def test_the_luck_of_shared_starts_widens_the_papers_interval():
    claim, run = made(NUMBER | {"paper": 11.0, "half": 0.2}), named(**{AQL: sample(15, 0.5)})
    plain, lucky = (judge([claim], run, run, luck).iloc[0] for luck in ({}, {claim.id: 9.0}))
    assert (plain.verdict, plain.run_verdict) == (DIFFERS, DIFFERS)
    assert (lucky.verdict, lucky.run_verdict) == (DIFFERS, UNDECIDED)
    assert lucky.said == plain.said  # what is shown is what the paper prints


def test_the_correction_makes_a_claim_undecided_and_never_refutes_it():
    near = sample(10.9, 0.15)  # within 1 of 10 by itself, and surely not 10
    alone = judge([made(NUMBER | {"half": 0.01})], named(**{AQL: near})).iloc[0]
    assert (alone.verdict, alone.direction) == (HOLDS, "near")
    family = [Claim(id=str(i), place="one", statement="", **(NUMBER | {"half": 0.01})) for i in range(40)]
    row = judge(family, named(**{AQL: near})).iloc[0]
    assert row.p_for > 0.05 > row.p_against
    assert row.verdict == UNDECIDED


@pytest.mark.parametrize(
    ("scaled", "expected"),
    [((9, 5, 9), HOLDS), ((5, 9, 9), DIFFERS)],
)
def test_the_same_order_on_two_systems(scaled, expected):
    systems = ["Pendulum-v1", "spaql/PendulumScaled-v1"]
    claim = {"kind": "same order", "systems": systems, "pairs": [["SPAQL", "AQL"], ["SPAQL", "SPAQL-TS"]]}
    samples = {
        f"xi, {system}, {name}, all": sample(mean, 0.5)
        for system, means in zip(systems, ((9, 5, 9), scaled), strict=True)
        for name, mean in zip(("SPAQL", "AQL", "SPAQL-TS"), means, strict=True)
    }
    assert verdict(claim, samples)[0] == expected


def crossing(trpo, std=0.01, **options):
    """Judge where TRPO, with these means after 20, 40, … batches, crosses SPAQL, which has 5 all along."""
    flat = pd.DataFrame({"rewards": np.full(20, 5.0), "curve_rewards": list(np.full((20, 100), 5.0))})
    curves = np.asarray([0, *trpo], float) + sample(0, std)[:, None]  # the first policy had learned nothing
    steps = [np.full(curves.shape[1], 4000)] * 20
    baseline = pd.DataFrame({"rewards": curves[:, -1], "curve_rewards": list(curves), "curve_steps": steps})
    claim = made({"kind": "crossing", "group": TRPO, "other": SPAQL, "range": [30.0, 70.0]} | options)
    return judge([claim], named(**{TRPO: baseline, SPAQL: flat})).iloc[0]


def test_where_curves_cross():
    row = crossing([1, 2, 6, 7, 8])
    assert (row.ours, row.low, row.high, row.verdict) == (60, 60, 60, HOLDS)
    assert crossing([6, 6, 6, 6, 6]).direction == "down"
    # Crossing back: the lead is lost again at 80.
    assert crossing([1, 6, 6, 4, 8]).ours == 100
    assert crossing([1, 6, 6, 4, 8], lasting=False).ours == 40
    never = crossing([1, 2, 3, 3, 3])
    assert (never.ours, never.verdict, never.direction) == (np.inf, DIFFERS, "up")
    doubtful = crossing([1, 2, 5.05, 6, 8], std=0.5)
    assert (doubtful.low, doubtful.high, doubtful.verdict) == (60, 80, UNDECIDED)


def test_numbers_that_follow_from_curves():
    rewards, at = np.array([np.arange(400.0), np.zeros(400)]), np.arange(1, 401)
    assert measures.late(rewards, at).tolist() == [np.arange(300, 400).mean(), 0]
    assert measures.progress(rewards, at).tolist() == [300, 0]
    assert measures.rise_late(rewards, at).tolist() == [200 / 399, 0]


def test_the_spread_is_cohens_f():
    # Two values of ξ at ±1 with standard deviation 1 would be f = 1; thirteen, one of which is apart by d, are
    # d √12 / 13.
    samples = {ZERO: sample(8, 1, 2000), OTHERS: sample(5, 1, 2000)}
    row = judge([made(SPREAD)], named(**samples)).iloc[0]
    assert row.ours == pytest.approx(3 * np.sqrt(12) / 13, rel=0.01)
    assert row.low < row.ours < row.high < 1.05 * row.ours


def test_an_undecided_claim_says_whether_our_estimate_agrees():
    far = {SPAQL: sample(95, 80), AQL: sample(90, 80)}  # a gain of 5, where 50 to 150 are claimed
    near = {SPAQL: sample(150, 300), AQL: sample(90, 300)}
    for samples, agreeing in ((far, False), (near, True)):
        row = judge([made(GAIN)], named(**samples)).iloc[0]
        assert (row.verdict, row.inside) == (UNDECIDED, agreeing)
    level = {SPAQL: sample(5), AQL: sample(5.1)}
    assert judge([made(LEVEL)], named(**level)).inside[0]
    assert not judge([made(LEVEL | {"margin": 0.05})], named(**level)).inside[0]


# The published results


@pytest.fixture(scope="module")
def groups():
    return load_groups()


@pytest.fixture(scope="module")
def shown(groups):
    return judge(load_claims(), groups)


def test_every_verdict_follows_from_the_stored_results_judged_again(shown, groups):
    """Equalities and orders of whole groups, by statsmodels and SciPy; family by family, with their Holm correction."""
    claims = {claim.id: claim for claim in load_claims()}
    for _, family in shown.groupby("place"):
        expected = {row.id: independent_p(claims[row.id], groups, row) for row in family.itertuples()}
        for side in (0, 1):
            given = [p[side] for p in expected.values()]
            corrected = [min(1, max(q * sum(r >= q for r in given) for q in given if q <= p)) for p in given]
            found = family.p_for if side == 0 else family.p_against
            assert found.tolist() == pytest.approx(corrected, abs=2e-3, rel=0.02)
        for row in family.itertuples():
            expected_verdict = HOLDS if row.p_for < 0.05 else DIFFERS if row.p_against < 0.05 else UNDECIDED
            assert row.verdict == expected_verdict


def independent_p(claim, groups, row):
    """The two p-values of a claim: by other programs where there is one, and for the rest from the frame's interval."""
    column = claim.column
    if claim.kind in ("level", "order"):
        tests = []
        for other in claim.below or [claim.other]:
            one, two = pooled(groups, claim.group, column), pooled(groups, other, column)
            if one.std() == 0 or two.std() == 0:
                return raw(claim, groups)
            margin = claim.margin if np.isfinite(claim.margin) else MARGIN * abs(two.mean())
            test = stats.ttest_ind(one, two, equal_var=False)
            if claim.kind == "level":
                return min(1, 2 * ttost_ind(one, two, -margin, margin, usevar="unequal")[0]), test.pvalue
            tests.append((test.pvalue, test.statistic))
        kept = max(p if t > 0 else 2 - p for p, t in tests)
        left = len(tests) * min(p if t < 0 else 2 - p for p, t in tests)
        return min(1, kept), min(1, left)
    if claim.kind == "number":
        values, std = pooled(groups, claim.group, column), summary_std(claim.half, AGENTS)
        margin = claim.margin if np.isfinite(claim.margin) else MARGIN * abs(claim.paper)

        def welch_from(shift, side):
            return stats.ttest_ind_from_stats(
                values.mean(), values.std(ddof=1), values.size, claim.paper + shift, std, AGENTS, False, side
            ).pvalue

        kept = max(welch_from(-margin, "greater"), welch_from(margin, "less"))
        return min(1, 2 * kept), welch_from(0, "two-sided")
    if claim.kind == "mean":
        values = pooled(groups, claim.group, column)
        if values.std() > 0:
            ends = zip(claim.range, ("greater", "less"), strict=True)
            kept = [stats.ttest_1samp(values, end, alternative=side).pvalue for end, side in ends if np.isfinite(end)]
            return min(1, 2 * max(kept)), min(1, 2 * min(1 - p for p in kept))
    return raw(claim, groups)


def raw(claim, groups):
    """The p-values without a correction: of a family of one."""
    judged = decide([claim], groups)[claim.id]
    return judged.p_for, judged.p_against


def test_a_group_that_lacks_an_agent_is_not_judged(monkeypatch):
    key = "trpo", "CartPole-v0", "TRPO", 0.0
    lost = jobs_of("trpo")[key][13]
    find, complete = measures.store.find, load_groups(["trpo"])
    monkeypatch.setattr(measures.store, "find", lambda jobs, folders: find(set(jobs) - {lost}, folders))
    fewer = load_groups(["trpo"])
    assert set(complete) - set(fewer) == {key}
    row = judge([made({"kind": "mean", "group": "trpo, CartPole-v0, TRPO"})], fewer).iloc[0]
    assert (row.verdict, row.why) == (
        NOT_JUDGED,
        "results missing: 1 of 1 groups of trpo, CartPole-v0, TRPO are not stored",
    )


def test_the_command_shows_what_is_asked_for(shown, monkeypatch):
    monkeypatch.setattr(page, "verdicts", lambda: shown)  # which takes seconds
    lines = page.show().splitlines()
    assert max(map(len, lines)) <= 120
    for row in shown.itertuples():
        assert sum(line.startswith(f"  {row.id} ") for line in lines) == 1
    assert re.findall(r"^  (\S+)", page.show("cartpole-*", HOLDS), re.MULTILINE) == [
        row.id for row in shown.itertuples() if row.id.startswith("cartpole-") and row.verdict == HOLDS
    ]
    assert shown.statement[shown.id == "scaling-order"].item() in page.show("scaling-order")


def test_the_command_refuses_before_it_computes(monkeypatch):
    monkeypatch.setattr(page, "verdicts", lambda: pytest.fail("computed"))
    with pytest.raises(ValueError, match="no claim has"):
        page.show("acrobot-*")


def test_the_tables_of_the_page_have_every_claim(shown, monkeypatch):
    monkeypatch.setattr(page, "verdicts", lambda: shown)
    found = page.substitutions()
    for claim in load_claims():
        assert found["claims_table"].count(f'<a id="claim-{claim.id}"') == 1
    assert found["claims_data"].startswith("<a ")
