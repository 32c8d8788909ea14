"""Readings of the experiment: distances worked by hand, the joint measure against SciPy, and the answer as stored."""

import dataclasses
import functools
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from scipy import stats

from spaql.paper.audit import measures, numbers, readings
from spaql.paper.audit.groups import Group, MissingError, load_groups, select
from spaql.paper.audit.numbers import CELLS, FIVE, LONG, Experiment, experiment, paper_numbers
from spaql.paper.audit.readings import EVERY, TEXT, fit
from spaql.paper.runs.provenance import default_store
from spaql.paper.statistics import bootstrap_weights
from spaql.paper.studies import READINGS, SEED, XI_READINGS, study
from spaql.paper.tables import readings as tables
from tests.paper.test_claims import PENDULUM

ROOT = Path(__file__).parents[2]
SIZE = len(paper_numbers())


PRINTED = np.array([np.log(n.printed) if n.in_logs else n.printed for n in paper_numbers()])


def made_up(distances, errors):
    """Return an experiment from which the paper's numbers have these distances, if resampling gives these errors."""
    errors = np.asarray(errors, float)
    whole = np.sqrt(2 * errors**2 + [n.vague**2 for n in paper_numbers()])
    return Experiment(PRINTED - np.asarray(distances) * whole, np.diag(errors**2), np.ones(SIZE))


# ---------------------------------------------------------------------------------------------------------------------
# The paper's numbers


def test_the_numbers_are_those_of_the_papers_table_and_four_in_words():
    found = paper_numbers()
    in_table = sorted(n.printed for n in found if n.kind in ("mean", "half"))
    rows = [line for line in PENDULUM.strip().splitlines() if not line.startswith("TRPO")]
    expected = [float(text) for line in rows for text in line.replace("$", " ").replace(r"\pm", " ").split()
                if text.lstrip("-").replace(".", "").isdigit()]  # fmt: skip
    assert in_table == sorted(expected)
    assert [(n.label, n.printed) for n in found if n.kind not in ("mean", "half")] == [
        ("SPAQL: gain of five torques", 100),
        ("SPAQL-TS: gain of five torques", 100),
        ("SPAQL: TRPO catches up", 200),
        ("SPAQL-TS: TRPO catches up", 200),
    ]
    assert len({n.label for n in found}) == len(found) == 18
    assert {n.claim.place for n in found} == {
        "Table 4: results on Pendulum",
        "Figures 4 and 5: five torques",
        "Figure 9: TRPO on Pendulum",
    }


def test_words_are_as_vague_as_the_range_they_are_read_as():
    gain, crossing = (next(n for n in paper_numbers() if n.kind == kind) for kind in ("gain", "crossing"))
    assert 100 + 1.96 * gain.vague == pytest.approx(150)
    assert 200 * np.exp(1.96 * crossing.vague) == pytest.approx(400)
    assert {n.vague for n in paper_numbers() if n.kind in ("mean", "half")} == {0.0}


# ---------------------------------------------------------------------------------------------------------------------
# The measure


def fitted(own, degrees=np.inf):
    """Return the fit of an experiment with independent starts."""
    return fit(readings.predict_alone(own)._replace(degrees=np.full(SIZE, degrees)))


def place_of(label):
    return [n.label for n in paper_numbers()].index(label)


def test_distances_worked_by_hand():
    """SPAQL's reward: the paper has -835.99, agents of ours -800 with a standard error of 10 in either mean."""
    place = place_of("SPAQL: rewards")
    made = made_up(np.zeros(SIZE), np.full(SIZE, 10.0))
    made.values[place] = -800.0
    found = fitted(made)
    assert found.error[place] == pytest.approx(14.1421, abs=1e-4)
    assert found.distance[place] == pytest.approx(-35.99 / 14.1421, abs=1e-4)
    assert found.chi2 == pytest.approx(2.5449**2, abs=1e-3)


def test_shared_starts_by_hand():
    """One agent's reward has a deviation of 100, one of those with the same starts 60: 80 is luck, common to all."""
    mean, half = place_of("SPAQL: rewards"), place_of("SPAQL: rewards, ±")
    alone = made_up(np.zeros(SIZE), np.full(SIZE, 100 / np.sqrt(20)))
    roots = [made_up(np.zeros(SIZE), np.full(SIZE, 60 / np.sqrt(20))) for _ in range(2)]
    for one, value in zip((alone, *roots), (-500.0, -400.0, -840.0), strict=True):
        one.values[mean] = one.values[half] = value
    found = readings.predict_shared(alone, roots)
    error = np.sqrt(np.diag(found.covariance))
    assert found.values[mean] == pytest.approx((20 * -500 - 400 - 840) / 22)  # each root is one more sequence of starts
    assert error[mean] == pytest.approx(np.sqrt(80**2 + 60**2 / 20 + 100**2 / 22))
    assert found.values[half] == -620  # of which agents with other starts say nothing
    assert error[half] == pytest.approx(60 / np.sqrt(20) * np.sqrt(1 + 1 / 2))
    assert readings.starts_luck(alone, roots)[mean] == pytest.approx(80**2)
    wider = readings.predict_shared(roots[0], [alone])  # no luck at all, then
    assert np.sqrt(wider.covariance[mean, mean]) == pytest.approx(np.sqrt(100**2 / 20 + 60**2 / 21))


def test_few_agents_make_a_distance_students():
    assert readings.normal_scores(np.array([2.093, -2.093, 0.0]), np.full(3, 19)) == pytest.approx(
        [1.96, -1.96, 0.0], abs=1e-3
    )
    assert readings.normal_scores(np.array([-3.0]), np.array([np.inf])) == pytest.approx([-3.0])


def test_the_joint_measure_against_scipy():
    rng = np.random.default_rng(0)
    made = made_up(rng.normal(size=SIZE), np.exp(rng.normal(size=SIZE)))
    mixing = np.eye(SIZE) + 0.3 * rng.normal(size=(SIZE, SIZE))
    made = made._replace(covariance=mixing @ made.covariance @ mixing.T)
    found = fitted(made)
    covariance = 2 * made.covariance + np.diag([n.vague**2 for n in paper_numbers()])
    assert found.log_likelihood == pytest.approx(stats.multivariate_normal(made.values, covariance).logpdf(PRINTED))
    away = PRINTED - made.values
    assert found.chi2 == pytest.approx(away @ np.linalg.inv(covariance) @ away)
    assert (found.degrees, found.p) == (18, pytest.approx(stats.chi2(18).sf(found.chi2)))


def test_without_correlations_chi_square_is_the_sum_of_squares():
    distances = np.arange(SIZE) / 5 - 1
    found = fitted(made_up(distances, np.ones(SIZE)))
    assert found.distance == pytest.approx(distances)
    assert found.chi2 == pytest.approx(np.sum(distances**2)) == sum(found.parts.values())
    own = [n.algorithm == "AQL" for n in paper_numbers()]
    assert found.parts["AQL"] == pytest.approx(np.sum(distances[own] ** 2))


def test_likelihood_does_not_favour_a_reading_that_predicts_little():
    exact, vague = (fitted(made_up(np.ones(SIZE), np.full(SIZE, e)), 19) for e in (1, 50))
    assert vague.chi2 == pytest.approx(exact.chi2)
    assert vague.log_likelihood < exact.log_likelihood - 20


# ---------------------------------------------------------------------------------------------------------------------
# From agents to numbers


def make_groups(rng, level=-800.0):
    """Return groups of normal agents; rewards and arms hang together by 0.8, as SPAQL's do."""
    groups = {}
    for cell in sorted(CELLS):
        system, algorithm = cell
        mean = level + 100 * (system == FIVE)
        both = rng.multivariate_normal([mean, 1000.0], [[900.0, 0.8 * 30 * 200], [0.8 * 30 * 200, 40000.0]], 20)
        curves = np.linspace(-1400.0, both[:, 0], 100).T
        curves = rng.normal(-1300, 15, (20, 100)) if algorithm == "Random" else curves
        groups[cell] = Group(both[:, 0], both[:, 0], both[:, 1], curves, 20.0 * np.arange(1, 101))
    return groups


def make_trpo(rng):
    end = rng.normal(-200, 20, 20)
    return Group(end, end, end, np.linspace(-1300.0, end, 100).T, 20.0 * np.arange(1, 101))


def test_an_experiment_has_the_numbers_its_agents_would_print():
    rng = np.random.default_rng(1)
    groups, trpo = make_groups(rng), make_trpo(rng)
    found = experiment(groups, trpo)
    labels = {n.label: i for i, n in enumerate(paper_numbers())}
    spaql, five, random = groups[LONG, "SPAQL"], groups[FIVE, "SPAQL"], groups[LONG, "Random"]
    assert found.values[labels["SPAQL: rewards"]] == pytest.approx(spaql.rewards.mean())
    assert np.exp(found.values[labels["SPAQL: arms, ±"]]) == pytest.approx(1.96 * spaql.arms.std() / np.sqrt(20))
    gain = labels["SPAQL: gain of five torques"]
    assert found.values[gain] == pytest.approx(five.rewards.mean() - spaql.rewards.mean())
    assert found.values[labels["Random: rewards"]] == pytest.approx(random.curves.mean())
    assert found.repeats[labels["Random: rewards"]] == 100
    mean, arms = labels["SPAQL: rewards"], labels["SPAQL: arms"]
    error = np.sqrt(np.diag(found.covariance))
    assert error[mean] == pytest.approx(spaql.rewards.std(ddof=1) / np.sqrt(20), rel=0.03)
    assert error[gain] == pytest.approx(np.hypot(error[mean], five.rewards.std(ddof=1) / np.sqrt(20)), rel=0.03)

    def correlation(one, other):
        return found.covariance[one, other] / (error[one] * error[other])

    assert correlation(mean, arms) == pytest.approx(np.corrcoef(spaql.rewards, spaql.arms)[0, 1], abs=0.03)
    assert correlation(mean, gain) == pytest.approx(-error[mean] / error[gain], abs=0.03)
    assert abs(correlation(mean, labels["AQL: rewards"])) < 0.05
    assert error[labels["Random: rewards"]] == pytest.approx(15 / np.sqrt(20), rel=0.3)


def test_never_overtaken_is_the_last_batch():
    rng = np.random.default_rng(1)
    groups, trpo = make_groups(rng), make_trpo(rng)
    batch, error = numbers.log_crossing(trpo._replace(curves=trpo.curves - 5000), groups[LONG, "SPAQL"])
    assert (np.exp(batch), error) == (pytest.approx(2000), 0)


def reprinted(number, value):
    """Return a number as another paper would have printed it."""
    field = "half" if number.kind == "half" else "paper"
    value = np.exp(value) if number.in_logs else value
    return number._replace(claim=dataclasses.replace(number.claim, **{field: float(value)}))


def test_if_a_reading_is_right_chi_square_is_about_its_degrees_of_freedom(monkeypatch):
    """Papers printed by agents like ours: their chi-square has the mean and the tail it should."""
    rng, found = np.random.default_rng(2), []
    for module in (numbers, measures):  # fewer resamples do
        monkeypatch.setattr(module, "bootstrap_weights", functools.partial(bootstrap_weights, resamples=999))
    for _ in range(60):
        groups, trpo = make_groups(rng), make_trpo(rng)
        paper = experiment(groups, trpo).values
        for i, n in enumerate(paper_numbers()):
            if n.algorithm == "Random":  # whose history is many papers
                paper[i] = numbers.by_iteration(n, groups[LONG, "Random"].curves)[0]
        printed = tuple(map(reprinted, paper_numbers(), paper))
        made = experiment(make_groups(rng), trpo)
        with monkeypatch.context() as patched:
            patched.setattr(readings, "paper_numbers", lambda printed=printed: printed)
            found.append(fit(readings.predict_alone(made)).chi2)
    assert 0.7 < np.mean(found) / SIZE < 1.15  # below one: nothing here is as vague as words
    assert np.mean(np.array(found) > stats.chi2(SIZE).ppf(0.95)) < 0.15


# ---------------------------------------------------------------------------------------------------------------------
# The agents of a reading, and what is stored


def test_every_agent_of_a_reading_is_declared():
    declared = {job for name in ("xi", "long", "ablation", "readings") for job in study(name)}
    for name, reading in EVERY.items():
        for root in range(SEED, SEED + readings.roots_of(name)):
            for (of, *cell, _), jobs in readings.jobs_under(reading, root).items():
                if of == "long" and tuple(cell) in CELLS:
                    assert set(jobs) <= declared, (name, cell)
                    assert {job.starts for job in jobs} == {reading.starts}
                    assert len(jobs) == 20
    with_xi = {
        name for name in READINGS
        if all(set(jobs) <= declared for key, jobs in readings.jobs_under(EVERY[name]).items() if key[0] == "xi")
    }  # fmt: skip
    assert with_xi == set(XI_READINGS)


def test_a_reading_of_a_group():
    keys = ("long", "Pendulum-v1", "SPAQL", 4.0), ("long", "Pendulum-v1", "Random", 0.0)
    spaql, random = (readings.jobs_under(EVERY["all"], SEED + 1)[key][3] for key in keys)
    assert (spaql.system, spaql.starts, spaql.seed, spaql.agent) == ("spaql/PendulumHalf-v0", "shared", SEED + 1, 3)
    assert spaql.rules.ties == "last"
    assert (random.system, random.starts, random.rules.ties) == ("spaql/PendulumOneWay-v0", "shared", "random")
    text = readings.jobs_under(EVERY[TEXT])[keys[0]]
    assert text == [job for job in study("long") if (job.system, job.algorithm) == keys[0][1:3]]


def test_randoms_luck_is_what_its_iterations_vary_more_with_shared_starts():
    alone, shared = (made_up(np.zeros(SIZE), np.full(SIZE, error))._replace(repeats=np.full(SIZE, 2000))
                     for error in (30.0, 50.0))  # fmt: skip
    assert np.sqrt(readings.starts_luck(alone, [shared])) == pytest.approx(np.full(SIZE, 40.0))


def test_a_reading_with_shared_starts_is_judged_by_agents_with_starts_of_their_own():
    best = readings.best_reading()
    assert EVERY[best].starts == "shared"
    alone, found = readings.alone_of(best), readings.reading_groups(best)
    key = ("long", "Pendulum-v1", "AQL", 20.0)
    jobs = readings.jobs_under(EVERY[alone])[key]
    assert {job.starts for job in jobs} == {"independent"}
    assert np.array_equal(found[key].rewards, readings.stored_groups({key: jobs})[key].rewards)
    luck = readings.luck_of(best)
    assert set(luck) == {n.claim.id for n in paper_numbers() if n.kind == "mean"}
    # The two sequences that are stored lie apart by no more than such luck explains.
    first, second = (readings.long_groups(best, SEED + root)["Pendulum-v1", "AQL"].rewards for root in (0, 1))
    deviation = np.sqrt(luck["pendulum-rewards-aql"])
    assert deviation > 5 * first.std() / np.sqrt(20)
    assert 0.1 * deviation < abs(first.mean() - second.mean()) < 3 * np.sqrt(2) * deviation
    assert readings.luck_of(alone) == {}


def test_the_groups_of_the_text_are_those_that_claims_are_judged_by():
    found, usual = readings.reading_groups(TEXT), load_groups()
    assert set(found) == set(usual)
    for key in usual:
        assert np.array_equal(found[key].rewards, usual[key].rewards), key


def test_missing_runs_are_said_and_not_judged(tmp_path):
    nothing = readings.reading_fits(tmp_path)
    assert set(nothing.values()) == {"TRPO's agents are not stored"}
    with pytest.raises(MissingError, match="no reading's runs are stored"):
        readings.best_reading(tmp_path)
    some = tmp_path / "some"
    shutil.copytree(default_store() / "curves", some / "curves")
    whole = pq.read_table(default_store() / "agents.parquet")
    pq.write_table(whole.filter(pc.is_in(whole["study"], pa.array(["long", "trpo"]))), some / "agents.parquet")
    joint, frame = readings.joint_fits(some), readings.distances(some)
    assert joint.reading[joint.missing == ""].tolist() == [TEXT]
    assert set(frame.reading) == {TEXT}
    for name in ("torque", "starts"):
        assert f"*{name}* (its runs are not stored)" in tables.readings_table(joint, "", "x").note
    assert tables.readings_table(joint, "", "x").frame.reading.tolist() == [TEXT]
    key = "long, Pendulum-v1, SPAQL"
    with pytest.raises(MissingError, match="are not stored"):
        select(readings.reading_groups("torque", some), key)


def test_a_stored_distance_against_the_textbook():
    """The text's SPAQL: means of twenty agents each, a t of 19 degrees of freedom."""
    (group,) = select(load_groups(studies=["long"]), "long, Pendulum-v1, SPAQL")
    t = (-835.99 - group.rewards.mean()) / (group.rewards.std(ddof=1) * np.sqrt(2 / 20))
    frame = readings.distances().set_index(["reading", "label"])
    found = frame.distance[TEXT, "SPAQL: rewards"]
    assert found == pytest.approx(stats.norm.ppf(stats.t.cdf(t, 19)), rel=0.03)
    assert frame.predicted[TEXT, "SPAQL: rewards"] == pytest.approx(group.rewards.mean())
