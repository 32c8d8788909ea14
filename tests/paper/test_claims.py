"""Verdicts on hand-made data where they are known, and on the stored results."""

import re

import numpy as np
import pytest
from scipy import stats

from spaql.paper.audit.claims import DIFFERS, HOLDS, INCONCLUSIVE, NOT_COMPARABLE, Claim, load_claims
from spaql.paper.audit.groups import Group, MissingError, expected_keys, load_groups, select
from spaql.paper.audit.judge import JUDGES, as_text, judge, verdicts
from spaql.paper.audit.measures import MEASURES, summary_p, summary_std
from spaql.paper.cli import main
from spaql.paper.runs import provenance, store
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.statistics import holm
from spaql.paper.studies import make_jobs, paper_jobs
from spaql.policies.interval import paper_interval

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
            if key[:3] == (study, system, algorithm) and (
                not xi or xi[0] == "all" or (key[3] > 0 if xi[0] == ">0" else key[3] == float(xi[0]))
            ):
                groups[key] = group if isinstance(group, Group) else make(group)
    return groups


def made(fields, name="x"):
    return Claim(id=name, place="", statement="", **fields)


def verdict(claim, samples, column="rewards"):
    row = judge([made(claim | {"column": column})], named(**samples)).iloc[0]
    return row.verdict, row.direction


NUMBER = {"kind": "number", "group": AQL, "paper": 10.0, "half": 0.5}
ORDER = {"kind": "order", "group": SPAQL, "below": [AQL, RANDOM]}
LEVEL = {"kind": "level", "group": SPAQL, "other": AQL}
COUNT = {"kind": "count", "group": AQL, "threshold": 195.0, "paper": 17}
SPREAD = {"kind": "spread", "group": ALL, "range": [0.0, 0.4]}
LOST = {"kind": "lost", "group": ZERO, "other": OTHERS, "floor": FLOOR, "range": [0.5, np.inf]}
RATIO = {"kind": "ratio", "group": AQL, "other": SPAQL, "range": [31.6, 316.2]}
MEAN = {"kind": "mean", "group": AQL, "range": [195.0, np.inf]}
GAIN = {"kind": "gain", "group": SPAQL, "other": AQL, "paper": 100.0}


@pytest.mark.parametrize(
    ("claim", "samples", "expected"),
    [
        (NUMBER, {AQL: sample(10.2)}, (HOLDS, "")),
        (NUMBER, {AQL: sample(15)}, (DIFFERS, "up")),
        (NUMBER, {AQL: sample(5)}, (DIFFERS, "down")),
        (NUMBER, {}, (NOT_COMPARABLE, "")),
        (ORDER, {SPAQL: sample(9), AQL: sample(5), RANDOM: sample(4)}, (HOLDS, "")),
        (ORDER, {SPAQL: sample(5), AQL: sample(4.9), RANDOM: sample(3)}, (INCONCLUSIVE, "")),
        (ORDER, {SPAQL: sample(5), AQL: sample(9), RANDOM: sample(3)}, (DIFFERS, "down")),
        (ORDER, {SPAQL: sample(5), AQL: sample(3)}, (NOT_COMPARABLE, "")),
        (LEVEL, {SPAQL: sample(5), AQL: sample(5.1)}, (HOLDS, "")),
        (LEVEL, {SPAQL: sample(9), AQL: sample(5)}, (DIFFERS, "up")),
        (LEVEL, {SPAQL: sample(5), AQL: sample(9)}, (DIFFERS, "down")),
        (COUNT, {AQL: [200] * 15 + [190] * 5}, (HOLDS, "")),
        (COUNT, {AQL: [200] * 3 + [190] * 17}, (DIFFERS, "down")),
        (SPREAD, {ALL: sample(5)}, (HOLDS, "")),
        (SPREAD, {ZERO: sample(50), OTHERS: sample(5)}, (DIFFERS, "up")),
        (SPREAD, {ZERO: sample(6.5), OTHERS: sample(5)}, (INCONCLUSIVE, "")),
        (SPREAD, {ZERO: sample(5)}, (NOT_COMPARABLE, "")),
        (LOST, {ZERO: sample(30), OTHERS: sample(120), FLOOR: sample(20)}, (HOLDS, "")),
        (LOST, {ZERO: sample(110), OTHERS: sample(120), FLOOR: sample(20)}, (DIFFERS, "down")),
        (LOST, {ZERO: sample(70, 20), OTHERS: sample(120), FLOOR: sample(20)}, (INCONCLUSIVE, "")),
        (RATIO, {AQL: sample(1000), SPAQL: sample(10)}, (HOLDS, "")),
        (RATIO, {AQL: sample(100), SPAQL: sample(10)}, (DIFFERS, "down")),
        (RATIO, {AQL: sample(9000), SPAQL: sample(10)}, (DIFFERS, "up")),
        (MEAN, {AQL: sample(197)}, (HOLDS, "")),
        (MEAN, {AQL: sample(195.1)}, (INCONCLUSIVE, "")),
        (MEAN, {AQL: sample(190)}, (DIFFERS, "down")),
        (GAIN, {SPAQL: sample(200, 50), AQL: sample(90, 50)}, (HOLDS, "")),
        (GAIN, {SPAQL: sample(400, 50), AQL: sample(90, 50)}, (DIFFERS, "up")),
        (GAIN, {SPAQL: sample(95, 50), AQL: sample(90, 50)}, (DIFFERS, "down")),
        (GAIN, {SPAQL: sample(150, 300), AQL: sample(90, 300)}, (INCONCLUSIVE, "")),
    ],
)
def test_verdicts_that_are_known(claim, samples, expected):
    assert verdict(claim, samples) == expected


def test_a_difference_that_does_not_survive_the_correction_is_inconclusive():
    near = {AQL: sample(10.8)}
    assert verdict(NUMBER, near)[0] == DIFFERS
    many = [made(NUMBER, str(i)) for i in range(30)]
    frame = judge(many, named(**near))
    assert set(frame.verdict) == {INCONCLUSIVE}
    assert frame.p_holm.tolist() == pytest.approx(holm(frame.p))


@pytest.mark.parametrize(
    ("scaled", "expected"),
    [((9, 5, 9), HOLDS), ((5, 9, 9), DIFFERS), ((9, 5, 5), INCONCLUSIVE)],
)
def test_the_same_order_on_two_systems(scaled, expected):
    systems = ["Pendulum-v1", "spaql/PendulumScaled-v1"]
    claim = {"kind": "same order", "systems": systems, "pairs": [["SPAQL", "AQL"], ["SPAQL", "SPAQL-TS"]]}
    samples = {
        f"xi, {system}, {name}, all": sample(mean)
        for system, means in zip(systems, ((9, 5, 9), scaled), strict=True)
        for name, mean in zip(("SPAQL", "AQL", "SPAQL-TS"), means, strict=True)
    }
    assert verdict(claim, samples)[0] == expected


def crossing(trpo, std=0.01):
    spaql = make(np.full(20, 5.0), np.full((20, 100), 5.0))
    curves = np.asarray(trpo, float) + sample(0, std)[:, None]
    baseline = make(curves[:, -1], curves, np.array([20.0, 40.0, 60.0, 80.0, 100.0]))
    claim = made({"kind": "crossing", "group": TRPO, "other": SPAQL, "range": [30.0, 70.0]})
    return judge([claim], named(**{TRPO: baseline, SPAQL: spaql})).iloc[0]


def test_where_curves_cross():
    row = crossing([1, 2, 6, 7, 8])
    assert (row.ours, row.low, row.high, row.verdict) == (60, 60, 60, HOLDS)
    assert crossing([6, 6, 6, 6, 6]).direction == "down"
    never = crossing([1, 2, 3, 3, 3])
    assert (never.ours, never.verdict, never.direction) == (np.inf, DIFFERS, "up")
    doubtful = crossing([1, 2, 5.05, 6, 8], std=0.5)
    assert (doubtful.low, doubtful.high, doubtful.verdict) == (60, 80, INCONCLUSIVE)


def test_early_and_late_parts_of_a_curve():
    curve = np.concatenate([np.full(200, 1.0), np.full(1300, 2.0), np.full(500, 3.0)])
    group = make([3.0], curve[None])
    assert group.column("early") == [1.0]
    assert group.column("late") == [3.0]


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


FIELDS = {"group", "other", "below", "floor", "paper", "half", "threshold", "range", "systems", "pairs", "reason"}
NEEDED = {  # the fields that a kind needs, and those that it may have
    "number": ({"group", "paper", "half"}, set()),
    "level": ({"group", "other"}, set()),
    "count": ({"group", "threshold", "paper"}, set()),
    "order": ({"group", "below"}, set()),
    "same order": ({"systems", "pairs"}, set()),
    "gain": ({"group", "other", "paper"}, set()),
    "spread": ({"group", "range"}, set()),
    "lost": ({"group", "other", "floor", "range"}, set()),
    "ratio": ({"group", "other", "range"}, set()),
    "mean": ({"group", "range"}, {"paper"}),
    "crossing": ({"group", "other", "range"}, {"paper"}),
    "untested": ({"reason"}, set()),
}


def test_every_claim_is_complete():
    blank = vars(Claim("", "", "", ""))
    ids = [claim.id for claim in load_claims()]
    assert len(ids) == len(set(ids))
    for claim in load_claims():
        assert claim.kind in {*MEASURES, "untested"}
        assert set(claim.why) <= {"up", "down", "reversed"}
        given = {name for name, value in vars(claim).items() if value is not blank[name]} & FIELDS
        needed, allowed = NEEDED[claim.kind]
        assert needed <= given <= needed | allowed, claim
        for name in filter(
            None, (claim.group, claim.other, claim.floor, *claim.below)
        ):  # a misspelt group is an error, not a missing result
            with pytest.raises(MissingError):
                select({}, name)
    assert MEASURES.keys() == JUDGES.keys()
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
def shown():
    return verdicts()


def test_the_command_shows_the_verdicts_that_follow_from_the_stored_results(shown, capsys):
    main(["claims"])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    for row in shown.itertuples():
        line = next(line for line in lines if line.startswith(f"  {row.id} "))
        assert line.endswith(f"{row.verdict} ({row.direction})" if row.direction else row.verdict)
    counted = dict(shown.verdict.value_counts())
    numbers = [int(number) for number in re.findall(r"\d+", lines[-1])]
    assert numbers == [len(shown), *(counted.get(v, 0) for v in (HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE))]


def test_stored_results_judged_without_the_machinery(shown):
    shown = shown.set_index("id")
    jobs = [job for job in paper_jobs("long") if job.system == "CartPole-v0"]
    records, missing = load_stored(jobs, provenance.default_store(), repair=False)
    assert not missing
    ends = {}
    for job, record in records.items():
        ends.setdefault(job.algorithm, []).append(record.history["rewards"][-1])
    assert shown.ours["cartpole-solved-ts"] == sum(end >= 195 for end in ends["SPAQL-TS"])
    test = stats.ttest_ind(ends["SPAQL-TS"], ends["SPAQL"], equal_var=False)
    assert shown.p["cartpole-ts-spaql"] == pytest.approx(test.pvalue)
    assert (shown.verdict["cartpole-ts-spaql"] == HOLDS) == (
        test.statistic > 0 and shown.p_holm["cartpole-ts-spaql"] < 0.05
    )
    assert shown.ours["cartpole-rewards-random"] == pytest.approx(np.mean(ends["Random"]))


def test_whatever_differs_is_explained_or_said_to_be_unexplained(shown):
    explained = shown[shown.verdict == DIFFERS]
    assert explained.why.str.endswith(".").all()
    assert not explained.why.str.contains("no explanation").any(), "write a sentence in claims.toml"
    assert (shown.why[shown.verdict == NOT_COMPARABLE] != "").all()


def test_results_of_a_smaller_scale_give_no_verdict(tmp_path):
    jobs = make_jobs(["Random", "SPAQL"], ["CartPole-v0"], [20], agents=20, iterations=5, evaluations=100, fresh=20)
    run(jobs, store=tmp_path, progress_bar=False)
    assert load_groups(tmp_path) == {}
    frame = verdicts(tmp_path)
    assert set(frame.verdict) == {NOT_COMPARABLE}
    assert frame.why[frame.kind != "untested"].str.startswith("results missing").all()


def test_a_group_that_lacks_an_agent_gives_no_verdict(tmp_path):
    jobs = [job for job in paper_jobs("long") if (job.system, job.algorithm) == ("CartPole-v0", "Random")]
    for record in load_stored(jobs, provenance.default_store(), repair=False)[0].values():
        store.save_record(tmp_path, record)
    judged = verdicts(tmp_path).set_index("id").verdict
    assert judged["cartpole-rewards-random"] != NOT_COMPARABLE
    assert (judged.drop("cartpole-rewards-random") == NOT_COMPARABLE).all()
    store.record_path(tmp_path, jobs[13]).unlink()
    assert set(verdicts(tmp_path).verdict) == {NOT_COMPARABLE}


def test_the_text_of_missing_results_says_so():
    frame = judge(load_claims()[:2], {})
    assert "results missing" in as_text(frame)
    assert as_text(frame).endswith("2 claims: 0 hold, 0 differ, 0 inconclusive, 2 not comparable.")
