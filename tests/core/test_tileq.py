"""TileQ, and what it shares with SPAQL-R: against a naive version, compiled against interpreted, samples, files."""

import math
from itertools import product

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import SPAQLR, TileQ, files, replay
from spaql.policies import export_c
from spaql.spaqlr import cell_of
from spaql.systems import make_env
from tests.conftest import HOME, same_sines
from tests.core.naive_replay import Naive, NaiveCells, NaiveTiles

SMALL = {"replays": 3, "steps": 4, "decay": 100.0}
TILES, CELLS = SMALL | {"tilings": 8}, SMALL | {"visits": 8}
IDS = ["Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"]
BOTH = [TileQ, SPAQLR]
AT_HOME = [
    pytest.param(*pair, marks=() if HOME[pair[0]] == pair[1] else pytest.mark.long) for pair in product(BOTH, IDS)
]


@pytest.fixture
def forgetful(monkeypatch):
    """Agents that remember so little that they forget within a test."""
    monkeypatch.setattr(replay, "MEMORY", 300)


def same(agent, other):
    mine, theirs = agent._arrays(), other._arrays()
    return all(np.array_equal(mine[name], theirs[name]) for name in mine)


@same_sines
@pytest.mark.parametrize(("algorithm", "env_id"), AT_HOME)
def test_the_package_learns_what_the_naive_version_learns(algorithm, env_id, forgetful):
    naive, small = (NaiveTiles, TILES) if algorithm is TileQ else (NaiveCells, CELLS)
    agent, episodes = algorithm(env_id, seed=4, **small), 15 if "Cart" in env_id else 4
    other = Naive(algorithm(make_env(env_id), seed=4, **small), naive, memory=300, **small)
    assert agent.learn(episodes).history.rewards.tolist() == pytest.approx(other.learn(episodes), abs=1e-9)
    states, points = other.seen(100)
    expected = np.ravel([other.what.q(x) for x in states])
    if algorithm is TileQ:
        found = agent._best.values(points)
    else:
        tree = agent._best
        codes = np.zeros((100, 1), np.int32)
        cells = [cell_of(tree.child, tree.axis, tree.border, points, codes, row) for row in range(100)]
        found = tree.q[cells]
        assert len(set(cells)) > 5
        assert tree.best[cells].tolist() == [other.best(x) for x in states]
    assert np.ravel(found) == pytest.approx(expected, rel=1e-6)


@same_sines
@pytest.mark.parametrize(("algorithm", "env_id"), AT_HOME)
def test_a_wrapped_environment_gives_the_compiled_bits(opaque, algorithm, env_id, forgetful):
    compiled = algorithm(env_id, seed=3, **SMALL).learn(5, 2)
    interpreted = algorithm(opaque(env_id), seed=3, **SMALL).learn(5, 2)
    assert compiled.compiled
    assert not interpreted.compiled
    assert same(compiled, interpreted)
    assert np.array_equal(compiled.evaluate(3, seed=9), interpreted.evaluate(3, seed=9))
    assert same(compiled.learn(samples=70), interpreted.learn(samples=70))


@pytest.mark.parametrize("algorithm", BOTH)
def test_learning_twice_is_learning_once_and_rollouts_only_report(algorithm, forgetful):
    once = algorithm(HOME[algorithm], seed=0, **SMALL).learn(12)
    assert same(once, algorithm(HOME[algorithm], seed=0, **SMALL).learn(5).learn(7))
    reported = algorithm(HOME[algorithm], seed=0, **SMALL).learn(1, evaluations=4)
    silent = algorithm(HOME[algorithm], seed=0, **SMALL).learn(1)
    assert np.array_equal(reported._arrays()["memory_x"], silent._arrays()["memory_x"])
    assert reported.history.evaluation_steps[0] > silent.history.evaluation_steps[0] == 0


@pytest.mark.parametrize("algorithm", BOTH)
def test_samples_are_counted_exactly(algorithm):
    agent = algorithm(HOME[algorithm], seed=0, **SMALL)
    for samples in (1, 1000, 1234.0):
        before = agent.num_timesteps
        agent.learn(samples=samples, evaluations=1)
        assert agent.num_timesteps - before == samples
    assert agent.history.steps.sum() == agent._memory.taken[0] == 2235
    for wrong in ({}, {"iterations": 5, "samples": 5}):
        with pytest.raises(ValueError, match="give either iterations or samples"):
            agent.learn(**wrong)


@pytest.mark.parametrize("algorithm", BOTH)
def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path, algorithm, forgetful):
    agent = algorithm(HOME[algorithm], seed=0, **SMALL).learn(samples=1000)
    agent.save(tmp_path / "agent.npz")
    again = algorithm.load(tmp_path / "agent.npz")
    assert again.parameters == agent.parameters
    assert same(agent.learn(10, 1), again.learn(10, 1))
    with pytest.raises(ValueError, match=rf"{algorithm.__name__}\.load"):
        BOTH[1 - BOTH.index(algorithm)].load(tmp_path / "agent.npz")


DAMAGES = [  # an algorithm, an array of its file, a place in it, and what stands there then
    (TileQ, "memory_action", 3, 2),
    (TileQ, "memory_reward", 3, np.nan),
    (TileQ, "memory_taken", 0, 1200),
    (TileQ, "memory_extremes", 0, -0.5),
    (TileQ, "trainee_weights", 0, np.inf),
    (SPAQLR, "trainee_child", 0, 3),
    (SPAQLR, "trainee_axis", 0, 4),
    (SPAQLR, "trainee_q", (0, 0), np.inf),
]


def test_what_no_learning_gives_is_refused(tmp_path):
    path = tmp_path / "agent.npz"
    for algorithm, name, place, number in DAMAGES:
        algorithm(HOME[algorithm], seed=0, **(TILES if algorithm is TileQ else CELLS)).learn(samples=200).save(path)
        header, arrays = files.read(path, algorithm.__name__)
        arrays[name][place] = number
        files.write(path, header, arrays)
        with pytest.raises(ValueError, match="not a sound saved agent"):
            algorithm.load(path)


@pytest.mark.parametrize("algorithm", BOTH)
def test_an_interrupted_agent_is_left_as_it_was(opaque, algorithm, forgetful):
    class Tired(gym.Wrapper):
        steps = 0

        def step(self, action):
            self.steps += 1
            if self.steps == 500:
                raise RuntimeError("tired")
            return self.env.step(action)

    agent = algorithm(Tired(make_env("CartPole-v0")), seed=3, **SMALL)
    with pytest.raises(RuntimeError, match="tired"):
        agent.learn(100)
    assert agent._memory.taken[0] == agent.history.steps.sum() < 500
    undisturbed = algorithm(opaque("CartPole-v0"), seed=3, **SMALL).learn(len(agent.history))
    assert np.array_equal(agent.history, undisturbed.history)


# Actions, policies, parameters, and what it learns


def test_all_combinations_of_several_discrete_actions():
    class Locks(gym.Env):
        observation_space, action_space = spaces.Box(-1.0, 1.0, (4,), np.float32), spaces.MultiDiscrete([2, 3])

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return np.zeros(4, np.float32), {}

        def step(self, action):
            assert self.action_space.contains(action)
            return np.zeros(4, np.float32), float(action.tolist() == [1, 2]), False, False, {}

    for algorithm in BOTH:
        agent = algorithm(Locks(), seed=0, horizon=50, discount=0.5, decay=300.0).learn(samples=1000)
        assert agent.predict(np.zeros(4, np.float32))[0].tolist() == [1, 2]
        assert agent.predict(np.zeros((3, 4), np.float32))[0].shape == (3, 2)
        tree = agent.policy.tree(leaves=2, rounds=1, episodes=2, fresh=2)
        assert "out  action_1: 0 to 2" in export_c(tree)


def test_the_policy_has_the_values():
    agent = TileQ("Pendulum-v1", seed=0, **TILES).learn(samples=2000)
    policy, angles = agent.policy, np.random.default_rng(0).uniform(-3, 3, 50)
    observations = np.stack((np.cos(angles), np.sin(angles), angles), axis=1)
    actions, values = agent.predict(observations)[0], policy.values(observations)
    assert np.array_equal(policy.predict(observations)[0], actions)
    assert np.array_equal(values.argmax(axis=1), actions[:, 0] > 0)
    agent.learn(samples=500)
    assert np.array_equal(policy.values(observations), values)


def test_values_stay_within_what_rewards_allow(opaque):
    agent = TileQ(opaque("CartPole-v0"), seed=0, alpha=1.0).learn(samples=4000)
    assert np.abs(agent._best.values(agent._memory.x)).max() < 1e4  # without the bound they grow beyond all numbers


def test_both_learn():
    for algorithm, samples, least in ((TileQ, 10_000, -250), (SPAQLR, 40_000, 190)):
        assert algorithm(HOME[algorithm], seed=0).learn(samples=samples).evaluate(200, seed=1).mean() > least


BAD = [
    (ValueError, {"alpha": 0}, "alpha must be a number above 0 and at most 1"),
    (ValueError, {"tilings": 6}, "tilings must be a power of two, not 6"),
    (ValueError, {"bins": 1000}, "expected at most 5,000,000: give fewer bins"),
    (ValueError, {"actions": 1}, "actions must be a whole number of at least 2"),
    (ValueError, {"angles": [(0, 3)]}, "places from 0 to 2"),
    (ValueError, {"angles": [(0.5, 1)]}, "pairs of different places"),
    (TypeError, {"gamma": 0.9}, "called discount here"),
    (TypeError, {"rules": "released"}, "no parameter rules"),
    (TypeError, {"episilon": 0.1}, "did you mean epsilon"),
]


def test_wrong_parameters_are_refused_in_words():
    for kind, given, message in BAD:
        with pytest.raises(kind, match=message):
            TileQ("Pendulum-v1", **given)


def test_angles_of_an_environment_of_ones_own():
    agent = SPAQLR(Wheel(), seed=0, angles=[(2, 1)], horizon=40, decay=500.0, visits=20, discount=0.9)
    tiles = TileQ(Wheel(), seed=0, angles=[(2, 1)], horizon=40, decay=500.0, discount=0.9)
    angles = np.linspace(-3.0, 3.0, 601)
    seen = np.stack((np.full(601, 0.3), np.sin(angles), np.cos(angles)), axis=1)
    clear = (np.abs(angles) > 0.5) & (np.abs(angles) < 2.0)
    for each in (agent, tiles):
        actions = each.learn(samples=4000).predict(seen)[0]
        assert actions[clear].tolist() == (angles[clear] < 0).astype(int).tolist()
        assert each.parameters["angles"] == [[2, 1]]
    assert set(agent.policy.tree().feature) <= {-1, 2}
    with pytest.raises(ValueError, match="no cosine and sine"):
        TileQ(Wheel(), seed=0, angles=[(0, 1)], horizon=40).learn(1)


class Wheel(gym.Env):
    """Turn a wheel to the top; the angle is seen as sine and cosine, in this order."""

    observation_space, action_space = spaces.Box(-np.inf, np.inf, (3,), np.float64), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.angle, self.steps = self.np_random.uniform(-3.0, 3.0), 0
        return self.seen(), {}

    def seen(self):
        return np.array([0.3, math.sin(self.angle), math.cos(self.angle)])

    def step(self, action):
        self.angle += (-0.2, 0.2)[action]
        self.steps += 1
        return self.seen(), math.cos(self.angle), False, self.steps == 40, {}
