"""The rules of the three algorithms against the paper's formulas, worked by hand or by SciPy."""

import math
from collections import Counter

import numpy as np
import pytest
from scipy import special, stats

from spaql import AQL, SPAQL, partition, updates
from spaql.loop import conclude
from spaql.partition import best_ball, new_partition
from spaql.rules import HISTORY, STATUS, Rules
from spaql.updates import choose, learn_from
from tests.conftest import split

RNG = np.random.default_rng


def learner(agent=SPAQL, xi=4.0, rules="paper", horizon=200):
    return agent("Drift-v0", xi=xi, rules=rules, seed=0, horizon=horizon)._learner


ONE = learner()


def test_learning_rate_and_bonus():
    assert updates.learning_rate(200, 1) == 1.0
    assert updates.learning_rate(200, 4) == pytest.approx(201 / 204)
    assert updates.bonus(20.0, 16) == 5.0


def parts(p):
    """What an update needs of a partition."""
    return p.balls, p.cells, p.axes


def sample(p, x, tau, absolute, rng):
    """Draw a ball by Boltzmann's rule, as SPAQL does."""
    return choose(*parts(p), ONE._replace(absolute=absolute), 0, x, tau, rng)


def test_one_update_by_hand():
    # v = 3: α = 201/203, b = 4/√3; V(y) = min(200, 250) = 200 for SPAQL.
    p = new_partition(1, 2, [-1.0], [1.0], q=200.0)
    p.balls["visits"] = 2
    p.balls["q"] = 250.0
    x, y = np.zeros(2), np.zeros(2)
    due = learn_from(*parts(p), learner(), 0, 0, x, y, -8.0)
    alpha = 201 / 203
    assert p.balls["q"][0] == pytest.approx((1 - alpha) * 250 + alpha * (-8 + 200 + 4 / math.sqrt(3)), rel=1e-14)
    assert p.balls["visits"][0] == 3
    assert due  # 3 >= 4^0


def test_aql_has_no_future_beyond_the_horizon_and_its_own_partition_before_it():
    p = new_partition(3, 2, [-1.0], [1.0], q=0.0)
    p.balls["q"] = [1.0, 7.0, 30.0]
    rules = learner(AQL, xi=0.0, horizon=3)
    x = np.zeros(2)
    learn_from(*parts(p), rules, 0, 0, x, x, -1.0)  # v = 1: α = 1, Q = r + V_2
    assert p.balls["q"][0] == -1.0 + min(3, 7.0)
    learn_from(*parts(p), rules, 2, 2, x, x, -1.0)
    assert p.balls["q"][2] == -1.0


@pytest.mark.parametrize("tau", [0.01, 0.3, 10.0])
@pytest.mark.parametrize(
    "estimates",
    [(200.0, 190.0, 199.0, 150.0), (-10.0, -12.0, -11.0, -10.5), (5.0, -9.0, 1.0, 0.0), (0.0, -9.0, -1.0, -0.5)],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_boltzmann_sample_follows_the_softmax(tau, estimates, absolute):
    p = new_partition(1, 2, [-1.0], [1.0], q=0.0)
    rng = RNG(2)
    for ball in (0, 1, 2):  # action quarters, over the lowest quarter of the states
        p = split(p, ball, False, False, rng)
    x = np.array([-0.9, -0.9])
    relevant = sorted({sample(p, x, 1e9, True, rng) for _ in range(200)})[:4]
    assert len(relevant) == 4
    for ball, q in zip(relevant, estimates, strict=True):
        partition.update(p.balls, p.cells, 4, ball, q)
    q = np.array(estimates)
    expected = special.softmax(q / ((np.abs(q).max() if absolute else q.max()) or 1.0) / tau)
    drawn = Counter(sample(p, x, tau, absolute, rng) for _ in range(4000))
    observed = np.array([drawn[ball] for ball in relevant])
    assert observed.sum() == 4000
    likely = expected > 1e-3
    if likely.sum() > 1:
        assert (
            stats.chisquare(observed[likely], observed[likely].sum() * special.softmax(np.log(expected[likely]))).pvalue
            > 1e-4
        )
    assert observed[~likely].sum() <= 4000 * 10 * expected[~likely].sum() + 1


def test_a_temperature_next_to_zero_is_greedy():
    p, rng = new_partition(1, 2, [-1.0], [1.0], q=200.0), RNG(3)
    p = split(p, 0, False, True, rng)
    x = np.array([0.5, 0.5])
    assert {sample(p, x, 1e-320, False, rng) for _ in range(50)} == {best_ball(p.cells, p.axes, 0, x)}


class Iterations:
    """Drives `conclude` with evaluation means and split counts of our choice."""

    def __init__(self, rules, first=100.0):
        self.learner = learner(rules=rules)
        self.trainee = self.best = new_partition(1, 2, [-1.0], [1.0], q=200.0)
        self.status, self.history = np.zeros(1, STATUS), np.zeros(100, HISTORY)
        self.status["iteration"], self.status["tau"], self.status["u"], self.status["seen"] = -1, 0.01, 2.0, 1
        self.end(first)

    def end(self, mean, splits=0):
        for _ in range(splits):
            ball = best_ball(self.trainee.cells, self.trainee.axes, 0, np.full(2, 0.3))
            self.trainee = split(self.trainee, ball, False, False, RNG(0))
        self.status["total"] = mean * 20
        self.best = conclude(self.trainee, self.best, self.learner, 20, self.status, self.history)
        return self

    @property
    def tau(self):
        return self.status["tau"][0]

    @property
    def arms(self):
        return int(self.trainee.counts[partition.ARMS]), int(self.best.counts[partition.ARMS])


def test_temperature_and_reset_as_the_text_has_them():
    run = Iterations("paper")
    assert run.status["u"] == 2.0  # the first evaluation is no improvement
    run.end(90)
    assert run.tau == 0.02  # it rises at once
    run.end(90, splits=2)
    assert (run.tau, run.arms) == (0.04, (15, 1))  # two splits are allowed
    run.end(90, splits=1)
    assert (run.tau, run.arms) == (0.01, (1, 1))  # more than two: reset to the best agent
    run.end(90).end(100, splits=1)  # equal is an improvement
    assert (run.tau, run.arms) == (0.01, (8, 8))
    assert run.status["u"] == pytest.approx(2**0.8)
    run.end(90)
    assert run.tau == pytest.approx(0.01 * 2**0.8)
    assert run.history["rewards"][:6].tolist() == [100] * 6
    assert run.history["evaluations"][:6].tolist() == [90, 90, 90, 90, 100, 90]
    assert run.history["arms"][:6].tolist() == [1, 1, 1, 1, 8, 8]


def test_the_released_state_machine():
    run = Iterations("released")
    run.end(90)
    assert run.tau == 0.01  # no split yet: it stays
    run.end(90, splits=1)
    assert (run.tau, run.arms) == (0.02, (8, 1))  # the first split was seen
    run.end(90)
    assert (run.tau, run.arms) == (0.04, (8, 1))
    run.end(90, splits=1)
    assert (run.tau, run.arms) == (0.01, (1, 1))  # a second number of arms: reset
    for _ in range(20):
        run.end(90, splits=run.arms[0] == 1)
    assert 10 <= run.tau < 20  # it no longer rises at 10
    run.end(100)
    assert (run.tau, run.arms, run.status["seen"][0]) == (0.01, (8, 8), 8)


@pytest.mark.parametrize(
    ("first_observation", "start", "speed"),
    [("mapped", 0.8, 0.1), ("raw", 0.8, 0.8), ("raw", 3.0, 1.0), ("raw", -3.0, -1.0)],
)
def test_a_raw_first_observation_is_not_mapped_but_kept_in_the_space(first_observation, start, speed):
    # At rest in every variable but the speed, 0.8 rad/s is 0.1 in the standard space and 0.8 unmapped.
    agent = SPAQL("Pendulum-v1", xi=4, rules=Rules(first_observation=first_observation))
    x = np.zeros(3)
    agent._world.model.reset(np.zeros(3), np.array([0.0, start]), x)
    assert x == pytest.approx([1.0, 0.0, speed])
