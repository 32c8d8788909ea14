"""Readings of the experiment: distances worked by hand, the joint measure against SciPy, and the stored agents."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spaql.paper.chapters import readings
from spaql.paper.chapters.readings import CELLS, EVERY, FIVE, LONG, TEXT, Experiment, experiment, fit, paper_numbers
from spaql.paper.claims.measures import load_groups, select
from spaql.paper.engine.job import columns_of
from spaql.paper.engine.study import SEED, study

NUMBERS = paper_numbers()
SIZE, LABELS, VAGUE = len(NUMBERS), NUMBERS.label.tolist(), NUMBERS.vague.to_numpy()
PRINTED = np.array([np.log(n.paper) if n.logs else n.paper for n in NUMBERS.itertuples()])


def made_up(distances, errors):
    """Return an experiment from which the paper's numbers have these distances, if resampling gives these errors."""
    errors = np.asarray(errors, float)
    whole = np.sqrt(2 * errors**2 + VAGUE**2)
    return Experiment(PRINTED - np.asarray(distances) * whole, np.diag(errors**2), np.ones(SIZE))


def fitted(own):
    """Return the fit of an experiment with independent starts."""
    values, covariance, _ = readings.predict_alone(own)
    return fit(values, covariance, np.full(SIZE, np.inf))


def test_distances_worked_by_hand():
    """SPAQL's reward: the paper has -835.99, agents of ours -800 with a standard error of 10 in either mean."""
    place = LABELS.index("SPAQL: rewards")
    made = made_up(np.zeros(SIZE), np.full(SIZE, 10.0))
    made.values[place] = -800.0
    found = fitted(made)
    assert found.distance[place] == pytest.approx(-35.99 / 14.1421, abs=1e-4)
    assert found.chi2 == pytest.approx(2.5449**2, abs=1e-3)


def test_shared_starts_by_hand():
    """One agent's reward has a deviation of 100, one of those with the same starts 60: 80 is luck, common to all."""
    mean, half = LABELS.index("SPAQL: rewards"), LABELS.index("SPAQL: rewards, ±")
    alone = made_up(np.zeros(SIZE), np.full(SIZE, 100 / np.sqrt(20)))
    roots = [made_up(np.zeros(SIZE), np.full(SIZE, 60 / np.sqrt(20))) for _ in range(2)]
    for one, value in zip((alone, *roots), (-500.0, -400.0, -840.0), strict=True):
        one.values[mean] = one.values[half] = value
    values, covariance, _ = readings.predict_shared(alone, roots)
    error = np.sqrt(np.diag(covariance))
    assert values[mean] == pytest.approx((20 * -500 - 400 - 840) / 22)  # each root is one more sequence of starts
    assert error[mean] == pytest.approx(np.sqrt(80**2 + 60**2 / 20 + 100**2 / 22))
    assert values[half] == -620  # of which agents with other starts say nothing
    assert error[half] == pytest.approx(60 / np.sqrt(20) * np.sqrt(1 + 1 / 2))
    assert readings.starts_luck(alone, roots)[mean] == pytest.approx(80**2)


def test_the_joint_measure_against_scipy():
    rng = np.random.default_rng(0)
    made = made_up(rng.normal(size=SIZE), np.exp(rng.normal(size=SIZE)))
    mixing = np.eye(SIZE) + 0.3 * rng.normal(size=(SIZE, SIZE))
    made = made._replace(covariance=mixing @ made.covariance @ mixing.T)
    found = fitted(made)
    covariance = 2 * made.covariance + np.diag(VAGUE**2)
    away = PRINTED - made.values
    assert found.chi2 == pytest.approx(away @ np.linalg.inv(covariance) @ away)


def test_an_experiment_has_the_numbers_its_agents_would_print():
    rng = np.random.default_rng(1)
    groups, jobs = {}, {(job.system, job.algorithm): job for job in study("long")}
    for system, algorithm in CELLS:  # rewards and arms are correlated by 0.8, as SPAQL's are
        mean = -800.0 + 100 * (system == FIVE)
        both = rng.multivariate_normal([mean, 1000.0], [[900.0, 4800.0], [4800.0, 40000.0]], 20)
        curves = rng.normal(-1300, 15, (20, 100)) if algorithm == "Random" else np.linspace(-1400, both[:, 0], 100).T
        frame = pd.DataFrame({"rewards": both[:, 0], "arms": both[:, 1], "curve_rewards": list(curves)})
        groups[system, algorithm] = frame.assign(**columns_of(jobs[system, algorithm]))
    (trpo,) = select(load_groups(["trpo"]), f"trpo, {LONG}, TRPO")
    found = experiment(groups, trpo)
    value, error = (dict(zip(LABELS, x, strict=True)) for x in (found.values, np.sqrt(np.diag(found.covariance))))
    spaql, five, random = groups[LONG, "SPAQL"], groups[FIVE, "SPAQL"], groups[LONG, "Random"]
    assert value["SPAQL: rewards"] == pytest.approx(spaql.rewards.mean())
    assert np.exp(value["SPAQL: arms, ±"]) == pytest.approx(1.96 * spaql.arms.std(ddof=0) / np.sqrt(20))
    assert value["SPAQL: gain of five torques"] == pytest.approx(five.rewards.mean() - spaql.rewards.mean())
    assert value["Random: rewards"] == pytest.approx(np.mean(random.curve_rewards.to_list()))
    assert error["SPAQL: rewards"] == pytest.approx(spaql.rewards.std() / np.sqrt(20), rel=0.03)
    together = found.covariance[LABELS.index("SPAQL: rewards"), LABELS.index("SPAQL: arms")]
    assert together / error["SPAQL: rewards"] / error["SPAQL: arms"] == pytest.approx(
        np.corrcoef(spaql.rewards, spaql.arms)[0, 1], abs=0.03
    )


def test_a_reading_with_shared_starts_is_judged_by_agents_with_starts_of_their_own():
    best, key = readings.best_reading(), ("long", "Pendulum-v1", "AQL", 20.0)
    assert EVERY[best].starts == "shared"
    assert set(readings.reading_groups(best, load_groups())[key].starts) == {"independent"}
    # The two sequences that are stored lie apart by no more than their luck explains.
    first, second = (readings.long_groups(best, SEED + root)[key[1:3]].rewards.mean() for root in (0, 1))
    assert abs(first - second) < 3 * np.sqrt(2 * readings.luck_of(best)["pendulum-rewards-aql"])


def test_a_stored_distance_against_the_textbook():
    """The text's SPAQL: means of twenty agents each, a t of 19 degrees of freedom."""
    (group,) = select(load_groups(["long"]), "long, Pendulum-v1, SPAQL")
    t = (-835.99 - group.rewards.mean()) / (group.rewards.std(ddof=1) * np.sqrt(2 / 20))
    frame = readings.distances().set_index(["reading", "label"])
    assert frame.distance[TEXT, "SPAQL: rewards"] == pytest.approx(stats.norm.ppf(stats.t.cdf(t, 19)), rel=0.03)
    assert frame.predicted[TEXT, "SPAQL: rewards"] == pytest.approx(group.rewards.mean())
