"""Verdicts on hand-made data where they are known, and on the stored results."""

import re

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import confint_proportions_2indep
from statsmodels.stats.weightstats import ttost_ind

from spaql.paper.audit import groups as groups_module
from spaql.paper.audit import longer
from spaql.paper.audit.claims import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED, VERDICTS, Claim, load_claims, load_unchecked
from spaql.paper.audit.groups import (
    AGENTS,
    Group,
    MissingError,
    expected_keys,
    fits,
    load_groups,
    pooled,
    select,
    together,
    with_further,
)
from spaql.paper.audit.judge import (
    EQUALITIES,
    MARGIN,
    ORDERS,
    judge,
    verdicts,
    widened,
    with_luck,
)
from spaql.paper.audit.measures import MEASURES, compare, newcombe, newcombe_tails, student, summary_p, summary_std
from spaql.paper.cli import main
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.outcomes import outcome
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.studies import make_jobs, study
from spaql.policies.interval import paper_interval
from spaql.rules import HISTORY

# The two results tables of the paper, copied from its source apart from the file under test.
PENDULUM = r"""
AQL      & $-1287.31 \pm 5.79$ & $195032.75 \pm 575.81$ \\
SPAQL    & $-835.99 \pm 26.91$ & $1277.50 \pm 168.74$ \\
SPAQL-TS & $-873.40 \pm 39.94$ & $1082.50 \pm 91.42$ \\\hline
Random   & $-1340.43 \pm 6.24$ &   \\
TRPO     & $\mathbf{-176.76 \pm 15.79}$ &   \\\hline
"""
CARTPOLE = r"""
AQL      & $22.40 \pm 0.60$ & $32988.9 \pm 186.61$ \\
SPAQL    & $192.57 \pm 0.94$ & $557.75 \pm 55.10$ \\
SPAQL-TS & $\mathbf{198.53 \pm 1.55}$ & $1289.75 \pm 151.22$ \\\hline
Random   & $22.15 \pm 0.64$ &   \\
TRPO     & $\mathbf{197.27 \pm 3.17}$ &   \\\hline
"""
SPAQL, AQL, RANDOM = (f"long, Pendulum-v1, {name}" for name in ("SPAQL", "AQL", "Random"))
TRPO = "trpo, Pendulum-v1, TRPO"
ZERO, OTHERS, ALL = (f"xi, CartPole-v0, SPAQL, {xi}" for xi in ("0", ">0", "all"))
FLOOR = "xi, CartPole-v0, Random, all"


def sample(mean, std=1.0, n=20):
    """Return numbers with exactly this mean and this population standard deviation."""
    values = stats.norm.ppf((np.arange(n) + 0.5) / n)
    return mean + std * values / values.std()


def make(rewards, curves=None, batches=None):
    rewards = np.asarray(rewards, float)
    curves = rewards[:, None] if curves is None else np.asarray(curves, float)
    return Group(rewards, rewards, rewards, curves, np.arange(1, curves.shape[1] + 1) if batches is None else batches)


def named(**samples):
    """Return groups by the names that claims use: one for each name and each ξ that it stands for."""
    groups = {}
    for name, group in samples.items():
        study, system, algorithm, *xi = name.split(", ")
        for key in expected_keys():
            if key[:3] == (study, system, algorithm) and fits(key[3], *xi or ["all"]):
                groups[key] = group if isinstance(group, Group) else make(group)
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
SURE = SPREAD | {"significance": True}


@pytest.mark.parametrize(
    ("claim", "samples", "expected"),
    [
        (NUMBER, {AQL: sample(10.1, 0.5)}, (HOLDS, "")),
        (NUMBER, {AQL: sample(10.2, 2)}, (UNDECIDED, "")),  # no difference found, and not shown to be close
        (NUMBER, {AQL: sample(15)}, (DIFFERS, "up")),
        (NUMBER, {AQL: sample(5)}, (DIFFERS, "down")),
        (
            NUMBER | {"half": 0.01},
            {AQL: sample(10.3, 0.01)},
            (HOLDS, "near"),
        ),  # a difference, shown to be within the margin
        (NUMBER | {"half": 0.01, "margin": 0.2}, {AQL: sample(10.3, 0.01)}, (DIFFERS, "up")),
        (NUMBER, {}, (NOT_JUDGED, "")),
        (ORDER, {SPAQL: sample(9), AQL: sample(5), RANDOM: sample(4)}, (HOLDS, "")),
        (ORDER, {SPAQL: sample(5), AQL: sample(4.9), RANDOM: sample(3)}, (UNDECIDED, "")),
        (ORDER, {SPAQL: sample(5), AQL: sample(9), RANDOM: sample(3)}, (DIFFERS, "down")),
        (ORDER, {SPAQL: sample(5), AQL: sample(3)}, (NOT_JUDGED, "")),
        (LEVEL, {SPAQL: sample(5, 0.2), AQL: sample(5.1, 0.2)}, (HOLDS, "")),
        (LEVEL, {SPAQL: sample(5), AQL: sample(5.1)}, (UNDECIDED, "")),
        (LEVEL, {SPAQL: sample(9), AQL: sample(5)}, (DIFFERS, "up")),
        (LEVEL, {SPAQL: sample(5), AQL: sample(9)}, (DIFFERS, "down")),
        (LEVELS, {ALL: sample(20), FLOOR: sample(20)}, (HOLDS, "")),
        (LEVELS, {ZERO: sample(30), OTHERS: sample(20), FLOOR: sample(20)}, (DIFFERS, "up")),
        (LEVELS, {ZERO: sample(21.5), OTHERS: sample(20), FLOOR: sample(20, 5)}, (UNDECIDED, "")),
        (COUNT, {AQL: [200] * 17 + [190] * 3}, (UNDECIDED, "")),  # twenty agents do not show a count
        (COUNT | {"margin": 0.4}, {AQL: [200] * 17 + [190] * 3}, (HOLDS, "")),
        (COUNT, {AQL: [200] * 3 + [190] * 17}, (DIFFERS, "down")),
        (SPREAD, {ALL: sample(5)}, (HOLDS, "")),
        (SPREAD, {ZERO: sample(50), OTHERS: sample(5)}, (DIFFERS, "up")),
        (SPREAD, {ZERO: sample(6.5), OTHERS: sample(5)}, (UNDECIDED, "")),
        (SURE, {ZERO: sample(6.5), OTHERS: sample(5)}, (DIFFERS, "up")),
        (SPREAD, {ZERO: sample(5)}, (NOT_JUDGED, "")),
        (LOST, {ZERO: sample(30), OTHERS: sample(120), FLOOR: sample(20)}, (HOLDS, "")),
        (LOST, {ZERO: sample(110), OTHERS: sample(120), FLOOR: sample(20)}, (DIFFERS, "down")),
        (LOST, {ZERO: sample(70, 20), OTHERS: sample(120), FLOOR: sample(20)}, (UNDECIDED, "")),
        (RATIO, {AQL: sample(1000), SPAQL: sample(10)}, (HOLDS, "")),
        (RATIO, {AQL: sample(100), SPAQL: sample(10)}, (DIFFERS, "down")),
        (RATIO, {AQL: sample(9000), SPAQL: sample(10)}, (DIFFERS, "up")),
        (MEAN, {AQL: sample(197)}, (HOLDS, "")),
        (MEAN, {AQL: sample(195.1)}, (UNDECIDED, "")),
        (MEAN, {AQL: sample(190)}, (DIFFERS, "down")),
        (MEAN, {AQL: [200] * 20}, (HOLDS, "")),
        (SHARE, {AQL: [0] * 20}, (HOLDS, "")),
        (SHARE, {AQL: [0] * 16 + [1] * 4}, (UNDECIDED, "")),
        (SHARE, {AQL: [0] * 8 + [1] * 12}, (DIFFERS, "up")),
        (GAIN, {SPAQL: sample(190, 30), AQL: sample(90, 30)}, (HOLDS, "")),
        (GAIN, {SPAQL: sample(400, 50), AQL: sample(90, 50)}, (DIFFERS, "up")),
        (GAIN, {SPAQL: sample(95, 50), AQL: sample(90, 50)}, (DIFFERS, "down")),
        (GAIN, {SPAQL: sample(150, 300), AQL: sample(90, 300)}, (UNDECIDED, "")),
    ],
)
def test_verdicts_that_are_known(claim, samples, expected):
    assert verdict(claim, samples) == expected


def test_p_values_are_corrected_within_a_family_and_not_beyond():
    near = named(**{AQL: sample(10.8)})
    alone = judge([made(NUMBER)], near).iloc[0]
    assert alone.verdict == DIFFERS
    many = judge([made(NUMBER, str(i)) for i in range(30)], near)
    assert set(many.verdict) == {UNDECIDED}
    assert many.p_against.tolist() == pytest.approx(multipletests([alone.p_against] * 30, method="holm")[1])
    elsewhere = [Claim(id=str(i), place=str(i), statement="", **NUMBER) for i in range(30)]
    frame = judge(elsewhere, near)
    assert set(frame.verdict) == {DIFFERS}
    assert frame.p_against.tolist() == [alone.p_against] * 30


def test_an_equality_is_two_one_sided_tests():
    one, other = sample(5, 0.4), sample(5.2, 0.7, 30)
    (tails,) = compare(one, other).tails
    p, (_, lower, _), (_, upper, _) = ttost_ind(one, other, -0.5, 0.5, usevar="unequal")
    assert (tails.below(-0.5), tails.above(0.5)) == pytest.approx((lower, upper))
    row = judge([made(LEVEL | {"margin": 0.5})], named(**{SPAQL: one, AQL: other})).iloc[0]
    assert row.p_for == pytest.approx(2 * p)
    assert row.p_against == pytest.approx(stats.ttest_ind(one, other, equal_var=False).pvalue)


def test_an_equality_with_the_papers_summary_is_the_same():
    ours, theirs = sample(12, 2), sample(11, 3)
    half = paper_interval(theirs).high - theirs.mean()
    row = judge([made(NUMBER | {"paper": 11.0, "half": half, "margin": 3.0})], named(**{AQL: ours})).iloc[0]
    assert row.p_for == pytest.approx(2 * ttost_ind(ours, theirs, -3, 3, usevar="unequal")[0])
    test = stats.ttest_ind(ours, theirs, equal_var=False)
    assert row.p_against == pytest.approx(test.pvalue)
    assert (row.apart_low, row.apart_high) == pytest.approx(tuple(test.confidence_interval()))


@pytest.mark.parametrize("counts", [(17, 20, 14, 20), (3, 20, 17, 20), (0, 20, 1, 20), (20, 20, 20, 20)])
def test_counts_are_compared_by_newcombes_interval(counts):
    expected = confint_proportions_2indep(*counts, method="newcomb", compare="diff")
    found = newcombe(*counts, 0.05)
    assert found == pytest.approx(expected)
    tails = newcombe_tails(*counts)
    for end, p in zip(found, (tails.below, tails.above), strict=True):
        if end not in (-1.0, 1.0):
            assert p(end) == pytest.approx(0.025, abs=1e-6)


def test_a_constant_group_is_compared_by_permutations():
    one, other = np.full(20, 200.0), np.array([200.0] * 14 + [199, 198, 197, 196, 170, 150])
    found = compare(one, other)
    assert found.test == "permutations"
    test = stats.permutation_test(
        (one, other), lambda a, b: a.mean() - b.mean(), alternative="greater", n_resamples=9999, rng=1
    )
    assert found.tails[0].below(0.0) == pytest.approx(test.pvalue, rel=0.3)
    assert 0 < found.ours.low < found.ours.mean < found.ours.high
    # Welch's test would have found nothing.
    assert found.tails[0].below(0.0) < 0.02 < 0.5 * stats.ttest_ind(one, other, equal_var=False).pvalue


def test_no_doubt_where_nothing_varies():
    tails = student(3.0, 0.0, 19)
    assert (tails.below(2.0), tails.above(2.0), tails.below(3.0), tails.above(4.0)) == (0.0, 1.0, 1.0, 0.0)


def test_what_half_and_twice_a_range_mean():
    assert widened(100.0, 400.0, 2.0) == (-50.0, 550.0)
    assert widened(-np.inf, 0.25, 0.5) == (-np.inf, 0.125)
    assert widened(0.5, np.inf, 2.0) == (0.25, np.inf)
    row = judge([made(NUMBER)], named(**{AQL: sample(10.1, 0.9)})).iloc[0]
    assert (row.half, row.verdict, row.double) == (UNDECIDED, HOLDS, HOLDS)
    exact = judge([made(MEAN | {"defined": True})], named(**{AQL: sample(195.1)})).iloc[0]
    assert (exact.half, exact.double) == (UNDECIDED, UNDECIDED)


def test_two_verdicts():
    written, run = named(**{AQL: sample(15)}), named(**{AQL: sample(10.1, 0.5)})
    row = judge([made(NUMBER)], written, run).iloc[0]
    assert (row.verdict, row.run_verdict, row.run_ours) == (DIFFERS, HOLDS, pytest.approx(10.1))
    same = judge([made(NUMBER)], written).iloc[0]
    assert (same.verdict, same.run_verdict, same.run_ours) == (DIFFERS, DIFFERS, same.ours)
    absent = judge([made(NUMBER)], written, {}).iloc[0]
    assert (absent.verdict, absent.run_verdict) == (DIFFERS, NOT_JUDGED)
    assert absent.run_reason.startswith("results missing")


def test_the_luck_of_shared_starts_widens_the_papers_interval():
    claim, run = made(NUMBER | {"paper": 11.0, "half": 0.2}), named(**{AQL: sample(15, 0.5)})
    plain, lucky = (judge([claim], run, run, None, luck).iloc[0] for luck in ({}, {claim.id: 9.0}))
    assert (plain.verdict, plain.run_verdict) == (DIFFERS, DIFFERS)
    assert (lucky.verdict, lucky.run_verdict) == (DIFFERS, UNDECIDED)
    (wider,) = with_luck([claim], {claim.id: 9.0})
    assert wider.half == pytest.approx(np.hypot(0.2, 1.96 * 3))
    assert lucky.said == plain.said  # what is shown is what the paper prints


def test_the_correction_makes_a_claim_undecided_and_never_refutes_it():
    near = sample(10.9, 0.15)  # within 1 of 10 by itself, and surely not 10
    alone = judge([made(NUMBER | {"half": 0.01})], named(**{AQL: near})).iloc[0]
    assert (alone.verdict, alone.direction) == (HOLDS, "near")
    family = [Claim(id=str(i), place="one", statement="", **(NUMBER | {"half": 0.01})) for i in range(40)]
    row = judge(family, named(**{AQL: near})).iloc[0]
    assert row.p_for > 0.05 > row.p_against
    assert row.verdict == UNDECIDED


def test_an_equality_within_the_margin_is_near_if_a_difference_is_shown():
    row = judge([made(NUMBER | {"paper": 100.0, "half": 0.1})], named(**{AQL: sample(103, 0.5)})).iloc[0]
    assert (row.verdict, row.direction) == (HOLDS, "near")
    assert row.p_for < 0.05
    assert row.p_against < 0.05
    same = judge([made(NUMBER | {"paper": 103.0, "half": 0.3})], named(**{AQL: sample(103, 0.5)})).iloc[0]
    assert (same.verdict, same.direction) == (HOLDS, "")


def test_a_verdict_with_more_agents():
    few, many = (
        named(**{AQL: sample(10.5, 2.0)}),
        named(**{AQL: together(make(sample(10.5, 2.0)), make(sample(9.9, 0.5, 80)))}),
    )
    row = judge([made(NUMBER)], few, None, many).iloc[0]
    assert (row.verdict, row.more_verdict) == (UNDECIDED, HOLDS)
    assert row.more_ours == pytest.approx(0.2 * 10.5 + 0.8 * 9.9)


def test_further_agents_join_those_of_the_paper_runs():
    groups = load_groups(studies=("long",))
    larger = with_further(groups)
    assert set(larger) == set(groups)
    assert {len(larger[key].fresh) for key in groups if key[2] == "Random"} == {20}
    key = "long", "CartPole-v0", "SPAQL-TS", 20.0
    assert larger[key].rewards.size == larger[key].arms.size == 100
    assert np.array_equal(larger[key].fresh[:20], groups[key].fresh)
    with pytest.raises(MissingError, match="without what 'early' needs"):
        larger[key].column("early")


@pytest.mark.parametrize(
    ("scaled", "expected"),
    [((9, 5, 9), HOLDS), ((5, 9, 9), DIFFERS), ((9, 5, 5), UNDECIDED)],
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
    spaql = make(np.full(20, 5.0), np.full((20, 100), 5.0))
    curves = np.asarray(trpo, float) + sample(0, std)[:, None]
    baseline = make(curves[:, -1], curves, np.array([20.0, 40.0, 60.0, 80.0, 100.0]))
    claim = made({"kind": "crossing", "group": TRPO, "other": SPAQL, "range": [30.0, 70.0]} | options)
    return judge([claim], named(**{TRPO: baseline, SPAQL: spaql})).iloc[0]


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


def test_early_and_late_parts_of_a_curve():
    history = np.zeros(2000, HISTORY)
    history["rewards"] = np.concatenate([np.full(200, 1.0), np.full(1300, 2.0), np.full(500, 3.0)])
    job = Job("SPAQL", "CartPole-v0", 20.0, 2000, 20, 0, 0)
    found = outcome(Record(job, history, np.array([3.0, 0.0]), np.zeros(0, np.float32), {}, 0.0))
    assert (found["early"], found["late"]) == (1.0, 3.0)


def test_the_spread_is_cohens_f():
    # Two values of ξ at ±1 with standard deviation 1 would be f = 1; thirteen, one of which is apart by d, are
    # d √12 / 13.
    samples = {ZERO: sample(8, 1, 2000), OTHERS: sample(5, 1, 2000)}
    row = judge([made(SPREAD)], named(**samples)).iloc[0]
    assert row.ours == pytest.approx(3 * np.sqrt(12) / 13, rel=0.01)
    assert row.low < row.ours < row.high < 1.05 * row.ours


def test_the_standard_deviation_behind_the_papers_interval():
    values = sample(7, 3)
    half = paper_interval(values).high - 7
    assert summary_std(half, len(values)) == pytest.approx(values.std(ddof=1))
    other = sample(8, 2)
    p = summary_p(7, half, 8, paper_interval(other).high - 8)
    assert p == pytest.approx(stats.ttest_ind(values, other, equal_var=False).pvalue)
    assert summary_p(1, 0, 1, 0) == 1.0


def test_differing_without_an_explanation_says_so():
    claim = made(NUMBER | {"why": {"down": "Because."}})
    assert judge([claim], named(**{AQL: sample(5)})).why[0] == "Because."
    assert judge([claim], named(**{AQL: sample(15)})).why[0] == "We have no explanation."


# ---------------------------------------------------------------------------------------------------------------------
# The file


OPTIONAL = {"paper", "margin", "defined", "significance", "lasting", "column", "why"}
NEEDED = {  # the fields that a kind needs
    "number": {"group", "paper", "half"},
    "level": {"group", "other"},
    "levels": {"group", "other"},
    "count": {"group", "threshold", "paper"},
    "order": {"group", "below"},
    "same order": {"systems", "pairs"},
    "gain": {"group", "other", "paper", "range"},
    "spread": {"group", "range"},
    "lost": {"group", "other", "floor", "range"},
    "ratio": {"group", "other", "range"},
    "mean": {"group", "range"},
    "share": {"group", "range"},
    "crossing": {"group", "other", "range"},
}


def test_every_claim_is_complete():
    blank = vars(Claim("", "", "", ""))
    ids = [claim.id for claim in load_claims()]
    assert len(ids) == len(set(ids))
    for claim in load_claims():
        assert set(claim.why) <= {"up", "down", "reversed"}
        given = {name for name, value in vars(claim).items() if value is not blank[name]}
        given -= {"id", "place", "statement", "kind"}
        assert NEEDED[claim.kind] <= given <= NEEDED[claim.kind] | OPTIONAL, claim
        for name in filter(
            None, (claim.group, claim.other, claim.floor, *claim.below)
        ):  # a misspelt group is an error, not a missing result
            with pytest.raises(MissingError):
                select({}, name)
    assert set(NEEDED) == set(MEASURES)
    assert all(len(row["reason"]) > 20 for row in load_unchecked())
    with pytest.raises(ValueError, match="no study"):
        select({}, "long, Pendulum-v1, SPAQLL")


@pytest.mark.parametrize(("table", "system"), [(PENDULUM, "Pendulum-v1"), (CARTPOLE, "CartPole-v0")])
def test_the_papers_tables_are_copied_right(table, system):
    printed = set()
    for line in table.strip().splitlines():
        name, *cells = line.split("&")
        for column, cell in zip(("rewards", "arms"), cells, strict=True):
            if found := re.search(r"(-?[\d.]+) \\pm ([\d.]+)", cell):
                study = "trpo" if name.strip() == "TRPO" else "long"
                printed.add((f"{study}, {system}, {name.strip()}", column, float(found[1]), float(found[2])))
    copied = {
        (claim.group, claim.column, claim.paper, claim.half)
        for claim in load_claims()
        if claim.kind == "number" and system in claim.group
    }
    assert copied == printed
    assert len(copied) == 8


# ---------------------------------------------------------------------------------------------------------------------
# The stored results


@pytest.fixture(scope="module")
def shown(judged):
    return judged


def test_the_command_shows_the_verdicts_that_follow_from_the_stored_results(shown, capsys, monkeypatch):
    monkeypatch.setattr("spaql.paper.audit.judge.verdicts", lambda store: shown)  # which takes seconds
    main(["claims"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    for row in shown.itertuples():
        line = next(line for line in lines if line.startswith(f"  {row.id} "))
        written, run = (
            f"{verdict} ({way})" if way else verdict
            for verdict, way in ((row.verdict, row.direction), (row.run_verdict, row.run_direction))
        )
        assert re.search(rf" {re.escape(written)} +{re.escape(run)}$", line)
    ended = " ".join(lines[-2:])
    written, more, run = re.search(r"As written: (.*) \(with up to 100 agents (.*)\)\. As run: (.*)\.$", ended).groups()
    for sentence, column in ((written, shown.verdict), (more, shown.more_verdict), (run, shown.run_verdict)):
        counted = {
            name: int(number) for number, name in re.findall(r"(\d+) (hold|differ|undecided|not judged)", sentence)
        }
        counted = {name + "s" * (name in ("hold", "differ")): number for name, number in counted.items()}
        assert {name: number for name, number in counted.items() if number} == dict(column.value_counts())


def test_stored_results_judged_without_the_machinery(shown):
    shown = shown.set_index("id")
    jobs = [job for job in study("long") if job.system == "CartPole-v0"]
    records, missing = load_stored(jobs, provenance.default_store(), repair=False)
    assert not missing
    ends = {}
    for job, record in records.items():
        ends.setdefault(job.algorithm, []).append(record.history["rewards"][-1])
    assert shown.ours["cartpole-solved-ts"] == sum(end >= 195 for end in ends["SPAQL-TS"])
    test = stats.ttest_ind(ends["SPAQL-TS"], ends["SPAQL"], equal_var=False)
    assert shown.p_for["cartpole-ts-spaql"] >= test.pvalue
    assert (shown.verdict["cartpole-ts-spaql"] == HOLDS) == (
        test.statistic > 0 and shown.p_for["cartpole-ts-spaql"] < 0.05
    )
    assert shown.ours["cartpole-rewards-random"] == pytest.approx(np.mean(ends["Random"]))


def test_every_verdict_follows_from_the_stored_results_judged_again(shown):
    """Equalities and orders of whole groups, by statsmodels and SciPy; family by family, with their Holm correction."""
    groups, claims = load_groups(), {claim.id: claim for claim in load_claims()}
    for _, family in shown.groupby("place"):
        expected = {row.id: independent_p(claims[row.id], groups, row) for row in family.itertuples()}
        for side in (0, 1):
            corrected = multipletests([p[side] for p in expected.values()], method="holm")[1]
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
    row = judge([claim], groups).iloc[0]
    return row.p_for, row.p_against


def test_the_kinds_are_one_standard():
    assert {*EQUALITIES, *ORDERS} < set(MEASURES)
    assert len(set(VERDICTS)) == 4


def test_whatever_differs_is_explained_or_said_to_be_unexplained(shown):
    explained = shown[shown.verdict == DIFFERS]
    assert explained.why.str.endswith(".").all()
    assert not explained.why.str.contains("no explanation").any(), "write a sentence in claims.toml"
    assert (shown.why[shown.verdict == NOT_JUDGED] != "").all()


def test_results_of_a_smaller_scale_give_no_verdict(tmp_path):
    jobs = make_jobs(["Random", "SPAQL"], ["CartPole-v0"], [20], agents=20, iterations=5, evaluations=100, fresh=20)
    run(jobs, store=tmp_path, progress_bar=False)
    assert load_groups(tmp_path) == {}
    frame = verdicts(tmp_path)
    assert set(frame.verdict) == {NOT_JUDGED}
    assert frame.why.str.startswith("results missing").all()


def test_a_group_that_lacks_an_agent_is_not_judged(monkeypatch):
    key = "long", "CartPole-v0", "Random", 0.0
    lost = [job for job in study("long") if (job.system, job.algorithm) == key[1:3]][13]

    def without_one(jobs, *place, **options):
        return load_stored([job for job in jobs if job != lost], *place, **options)

    complete = load_groups(studies=("long",))
    monkeypatch.setattr(groups_module, "load_stored", without_one)
    assert set(complete) - set(load_groups(studies=("long",))) == {key}


# ---------------------------------------------------------------------------------------------------------------------
# Longer episodes


def test_longer_episodes_by_hand(tmp_path):
    assert longer.lasting(np.array([30.0, 200, 500, 2000])) == {
        "reach_200": 0.75,
        "reach_500": pytest.approx(2 / 3),
        "reach_2000": pytest.approx(1 / 3),
    }
    assert longer.load_longer(tmp_path) == {}
    stored = longer.load_longer()
    assert {len(shares["reach_2000"]) for shares in stored.values()} == {AGENTS}
    assert set(stored) == {("CartPole-v0", "SPAQL"), ("CartPole-v0", "SPAQL-TS")}


def test_longer_episodes_are_those_of_the_agents_trained_again(monkeypatch):
    chosen = [job for job in study("long") if (job.system, job.algorithm) == ("CartPole-v0", "SPAQL-TS")][:1]
    monkeypatch.setattr(longer, "study", lambda name: chosen)
    (row,) = longer.compute_longer()
    stored = longer.load_longer()["CartPole-v0", "SPAQL-TS"]
    assert [row[name] for name in stored] == pytest.approx([shares[0] for shares in stored.values()], abs=0.1)
