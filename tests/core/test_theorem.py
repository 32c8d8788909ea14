"""The theorem of the book: with rewards that are never negative every value is H, and estimates are a bandit's."""

import math

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaql import AQL, SPAQL, SPAQLTS, Rules
from spaql.partition import BALLS, CELLS, NONE, best_ball, copy, new_partition
from spaql.rules import CHOICES
from spaql.updates import choose, learn_from
from tests.conftest import split

FREE = {
    name: choices for name, choices in CHOICES.items() if name != "distance"
}  # the rules that the theorem leaves free


class Anything(gym.Env):
    """Rewards from 0 to 1, states and ends drawn afresh at every step, which no learner can foresee."""

    observation_space, action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float64), gym.spaces.Discrete(3)

    def __init__(self, ends=0.1, lasts=0):
        self.ends, self.lasts = ends, lasts

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.np_random.uniform(-1.0, 1.0, 2), {}

    def step(self, action):
        self.steps += 1
        reward = float(np.clip(self.np_random.uniform(-0.5, 1.5), 0.0, 1.0))
        over = self.steps == self.lasts or self.np_random.random() < self.ends
        return self.np_random.uniform(-1.0, 1.0, 2), reward, bool(over), False, {}


def values(p):
    """The highest estimate in every cell that is not divided."""
    cells = p.cells[: p.counts[CELLS]]
    return p.balls["q"][cells["best"][cells["children"] == NONE]]


def feed(learner, seed, futures, steps=150, initial=None, least=0.0, tau=0.1):
    """Let the kernels learn from random steps, with next states of another seed; return partition and bandit.

    The bandit's estimates are computed beside them from visits, rewards and bonuses alone.  Now and then the learner
    keeps a copy of itself, and returns to it.
    """
    rng, later = np.random.default_rng(seed), np.random.default_rng(futures)
    H = learner.H
    p = new_partition(1, 2, [0.0 if learner.discrete else -1.0], [3.0 if learner.discrete else 1.0], q=initial or H)
    bandit = [float(p.balls["q"][0])]
    kept = copy(p), list(bandit)
    for _ in range(steps):
        x, y, h = rng.uniform(-1, 1, 2), later.uniform(-1, 1, 2), int(rng.integers(H))
        reward = float(np.clip(rng.uniform(least - 0.5, 1.5), least, 1.0))
        ball = int(choose(p.balls, p.cells, p.axes, learner, h, x, tau, rng))
        due = learn_from(p.balls, p.cells, p.axes, learner, h, ball, x, y, reward)
        v = int(p.balls["visits"][ball])
        alpha = (H + 1.0) / (H + v)
        bandit[ball] = (1.0 - alpha) * bandit[ball] + alpha * (reward + float(H) + learner.xi / math.sqrt(v))
        if due:
            p = split(p, ball, learner.discrete, learner.random_ties, rng)
            bandit += [bandit[ball]] * (int(p.counts[BALLS]) - len(bandit))
        if rng.random() < 0.05:
            kept = copy(p), list(bandit)
        if rng.random() < 0.05:
            p, bandit = copy(kept[0]), list(kept[1])
    return p, np.array(bandit)


def learner_of(H=4, xi=1.0, rules=None, **parameters):
    return SPAQL("Drift-v0", xi=xi, horizon=H, rules=rules or Rules(), **parameters)._learner


@settings(max_examples=60)
@given(
    st.integers(0, 2**32), st.integers(0, 2**32), st.integers(1, 60), st.floats(0.01, 50), st.floats(0, 30),
    st.booleans(), st.sampled_from(("random", "last")), st.sampled_from(("max", "absolute")), st.floats(0.01, 10),
)  # fmt: skip
def test_estimates_are_a_bandits_to_the_last_bit_whatever_the_future(
    seed, futures, H, xi, more, discrete, ties, norm, tau
):
    learner = learner_of(H, xi, Rules(ties=ties, normalisation=norm))._replace(discrete=discrete)
    p, bandit = feed(learner, seed, futures, initial=H + more, tau=tau)
    assert np.array_equal(p.balls["q"][: p.counts[BALLS]], bandit)
    assert bandit.min() >= H
    assert np.minimum(H, values(p)).min() == H


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_without_a_bonus_it_is_true_but_for_rounding(seed, H):
    p, bandit = feed(learner_of(H, 0.0), seed, seed)
    assert np.allclose(p.balls["q"][: p.counts[BALLS]], bandit, rtol=1e-12, atol=0)
    assert np.allclose(np.minimum(H, values(p)), H, rtol=1e-12, atol=0)


def test_the_estimate_is_a_mean_of_immediate_rewards_and_bonuses():
    """Part 3 by its formula: the weights of the rewards at one ball's visits."""
    H, xi, rng = 5, 0.7, np.random.default_rng(0)
    rewards = rng.random(30)
    alpha = (H + 1) / (H + np.arange(1, 31))
    weights = alpha * np.array([np.prod(1 - alpha[i + 1 :]) for i in range(30)])
    assert weights.sum() == pytest.approx(1)
    q = float(H)
    for v, reward in enumerate(rewards, 1):
        q = (1 - alpha[v - 1]) * q + alpha[v - 1] * (reward + min(H, q) + xi / v**0.5)
    assert q == pytest.approx(H + weights @ (rewards + xi / np.arange(1, 31) ** 0.5))
    w_1 = [6 / (v * (v + 1) * (v + 2)) for v in range(1, 31)]  # the first weight for H = 2, as the book has it
    alpha = 3 / (2 + np.arange(1, 31))
    assert w_1 == pytest.approx([np.prod(1 - alpha[1:v]) for v in range(1, 31)])


@pytest.mark.parametrize(
    ("changes", "fed"),
    [
        ({"discount": 0.9}, {}),
        ({}, {"initial": 1.0}),
        ({}, {"least": -5.0}),
    ],
    ids=["discount", "first estimate", "negative rewards"],
)
def test_without_any_one_of_its_conditions_the_future_counts(changes, fed):
    learner = learner_of(H=4, xi=0.1, **changes)
    (one, bandit), (other, _) = (feed(learner, 1, futures, **fed) for futures in (2, 3))
    estimates = one.balls["q"][: one.counts[BALLS]]
    assert min(estimates) < 4
    assert not np.array_equal(estimates, bandit)
    assert not np.array_equal(estimates, other.balls["q"][: other.counts[BALLS]])  # same rewards, other next states


@settings(max_examples=12)
@given(
    st.integers(0, 2**32), st.integers(1, 12), st.fixed_dictionaries({k: st.sampled_from(v) for k, v in FREE.items()})
)
def test_whole_agents_on_random_processes_under_any_rules(seed, H, rules):
    agent = SPAQL(Anything(), xi=0.5, seed=seed, horizon=H, rules=Rules(**rules)).learn(25, 2)
    for p in (agent._trainee, agent._best):
        assert np.minimum(H, values(p)).min() == H


def test_rewards_may_be_negative_for_as_many_visits_as_the_bonus_outweighs_them():
    steps, c = 150, 2.0
    p, bandit = feed(learner_of(xi=c * steps**0.5), 1, 2, steps, least=-c)
    assert np.array_equal(p.balls["q"][: p.counts[BALLS]], bandit)
    assert np.minimum(4, values(p)).min() == 4
    p = new_partition(1, 2, [-1.0], [1.0], q=4.0)
    learn_from(p.balls, p.cells, p.axes, learner_of(xi=1.0), 0, 0, np.zeros(2), np.zeros(2), -1.1)
    assert p.balls["q"][0] < 4


@pytest.mark.parametrize("norm", CHOICES["distance"])
def test_the_weight_of_spaql_ts_is_that_of_the_state_before_the_step(norm):
    learner = SPAQLTS(
        "Drift-v0", xi=1.0, horizon=4, lam=3.0, reference=[0.2, -0.1], rules=Rules(distance=norm)
    )._learner
    rng, p, at_H = np.random.default_rng(0), new_partition(1, 2, [-1.0], [1.0], q=4.0), []
    for _ in range(300):
        x, y, reward = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2), rng.random()
        ball = int(choose(p.balls, p.cells, p.axes, learner, 0, x, 0.1, rng))
        at_H.append(p.balls["q"][best_ball(p.cells, p.axes, 0, y)] >= 4 and ball != best_ball(p.cells, p.axes, 0, y))
        before, v = p.balls["q"][ball], p.balls["visits"][ball] + 1
        due = learn_from(p.balls, p.cells, p.axes, learner, 0, ball, x, y, reward)
        away = np.linalg.norm(x - learner.reference, 2 if norm == "euclidean" else np.inf) / 3.0
        target = reward + 4 * math.exp(-(away**2)) + 1 / math.sqrt(v)
        if at_H[-1]:
            assert p.balls["q"][ball] == pytest.approx((1 - 5 / (4 + v)) * before + 5 / (4 + v) * target)
        if due:
            p = split(p, ball, learner.discrete, learner.random_ties, rng)
    assert any(at_H)
    assert not all(at_H)


def test_aql_learns_of_the_future_only_if_episodes_reach_the_horizon():
    for lasts, learns in ((5, False), (6, True)):
        agent = AQL(Anything(ends=0.0, lasts=lasts), xi=0.01, seed=0, horizon=6).learn(60, 1)
        assert (values(agent._best).min() < 6) == learns
