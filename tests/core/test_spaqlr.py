"""SPAQL-R: against a version that a reader would write first, compiled against interpreted, samples, saving, values."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import SPAQL, SPAQLR, archive
from spaql.partition import copy
from spaql.policies import export_text
from spaql.replay import TAKEN
from spaql.saving import FORMAT, VERSION
from spaql.systems import make_env
from tests.conftest import same_sines

SMALL = {"visits": 8, "memory": 300, "replays": 3, "steps": 4, "decay": 100.0}  # everything happens within 15 episodes
IDS = ["Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"]


# ---------------------------------------------------------------------------------------------------------------------
# The algorithm as a reader of `spaql.replay` would write it first: dictionaries, lists, one step after the other


class Naive:
    """SPAQL-R with a dictionary of estimates; it shares with the package the order in which numbers are drawn."""

    def __init__(self, agent, discount=0.99, alpha=0.1, epsilon=0.1, deepest=8, visits=0, memory=0, replays=0,
                 steps=0, decay=0.0):  # fmt: skip
        self.agent, self.gamma, self.alpha, self.epsilon, self.deepest = agent, discount, alpha, epsilon, deepest
        self.visits, self.memory, self.replays, self.steps, self.decay = visits, memory, replays, steps, decay
        self.rng = np.random.default_rng(agent.seed.spawn(3)[0])
        space = agent.env.action_space
        self.actions = list(range(space.n)) if isinstance(space, spaces.Discrete) else [[-2.0], [2.0]]
        count = len(self.actions)
        self.ranks = self.rng.random(count).tolist()
        self.q = {(): [0.0] * count}  # of the leaf cells: a cell is the row of halves that leads to it
        self.met = {(): 0}
        self.transitions = []

    def leaf(self, x):
        """The halves of [-1, 1]^d that lead to the leaf cell of a state."""
        cell, low, width = (), [-1.0] * len(x), 2.0
        while cell not in self.q:
            width /= 2
            upper = tuple(v >= a + width for v, a in zip(x, low, strict=True))
            low = [a + width * u for a, u in zip(low, upper, strict=True)]
            cell = (*cell, upper)
        return cell

    def best(self, cell):
        return max(range(len(self.actions)), key=lambda a: (self.q[cell][a], self.ranks[a]))

    def target(self, i):
        """G of transition i: follow the episode while it stays in the cell and repeats the action."""
        x, a, total, y, end = self.transitions[i]
        cell, power, m = self.leaf(x), self.gamma, 1
        while self.leaf(y) == cell and m < self.steps and end == "" and i + 1 < len(self.transitions):
            _, following, reward, after, its_end = self.transitions[i + 1]
            if following != a:
                break
            i, y, end = i + 1, after, its_end
            total, power, m = total + power * reward, power * self.gamma, m + 1
        return total if end == "terminal" else total + power * max(self.q[self.leaf(y)])

    def learn(self, episodes):
        """Return what each training episode gave, and the number of arms after it."""
        env, found = self.agent.env, []
        for episode in range(episodes):
            x = self.state(env.reset(seed=self.agent.env_seed if episode == 0 else None)[0])
            total, end = 0.0, ""
            while end == "":
                cell = self.leaf(x)
                a = self.best(cell)
                if self.rng.random() < max(self.epsilon, math.exp(-self.taken() / self.decay)):
                    a = int(self.rng.random() * len(self.actions))
                action = self.actions[a] if isinstance(self.actions[a], int) else np.array(self.actions[a], np.float32)
                observation, reward, terminated, truncated, _ = env.step(action)
                y, total = self.state(observation), total + float(reward)
                end = "terminal" if terminated else "cut off" if truncated else ""
                self.transitions.append((x, a, float(reward), y, end))
                self.count(cell)
                self.update(len(self.transitions) - 1)
                for _ in range(self.replays):
                    kept = min(self.taken(), self.memory)
                    at = int(self.rng.random() * kept)  # a place in the ring, which holds the newest of these
                    self.update(at + (self.taken() - 1 - at) // self.memory * self.memory)
                x = y
            found.append((total, len(self.q) * len(self.actions)))
        return found

    def taken(self):
        return len(self.transitions)

    def count(self, cell):
        self.met[cell] += 1
        if self.met[cell] == self.visits and len(cell) < self.deepest:
            q = self.q.pop(cell)
            dimensions = len(self.transitions[0][0])
            for half in range(2**dimensions):
                child = (*cell, tuple(bool(half >> i & 1) for i in range(dimensions)))
                self.q[child], self.met[child] = list(q), 0

    def update(self, i):
        x, a, *_ = self.transitions[i]
        row = self.q[self.leaf(x)]
        row[a] = (1.0 - self.alpha) * row[a] + self.alpha * self.target(i)

    def state(self, observation):
        """The observation in [-1, 1]^d: divided by its bound, or the sigmoid of slope 1 where it has none."""
        high = self.agent.env.observation_space.high
        low = self.agent.env.observation_space.low
        found = []
        for v, a, b in zip(observation.tolist(), low.tolist(), high.tolist(), strict=True):
            bounded = math.isfinite(b)
            mapped = (v - (a + b) / 2) / ((b - a) / 2) if bounded else 2.0 / (1.0 + math.exp(-2.0 * v)) - 1.0
            found.append(min(1.0, max(-1.0, mapped)))
        return found


@same_sines
@pytest.mark.parametrize("env_id", IDS)
def test_the_package_learns_what_the_naive_version_learns(env_id):
    agent = SPAQLR(env_id, seed=4, **SMALL)
    naive = Naive(SPAQLR(make_env(env_id), seed=4, **SMALL), **SMALL)
    episodes = 15
    expected = naive.learn(episodes)
    agent.learn(episodes)
    assert agent.history.rewards.tolist() == pytest.approx([total for total, _ in expected], abs=1e-9)
    assert agent.history.arms.tolist() == [arms for _, arms in expected]
    assert agent.history.arms[-1] > 10 * len(naive.actions)
    found = agent.policy.find([observe(agent, x) for x, *_ in naive.transitions[-200:]])
    wanted = [max(naive.q[naive.leaf(x)]) for x, *_ in naive.transitions[-200:]]
    assert found.q.tolist() == pytest.approx(wanted, rel=1e-9)


def observe(agent, x):
    """The observation of a point of the standard space."""
    return [agent.policy._unmap(i, np.array(v)) for i, v in enumerate(x)]


# ---------------------------------------------------------------------------------------------------------------------
# The same agent, however it comes about


@same_sines
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("depths", [(0, 8), (1, 1)])
def test_a_wrapped_environment_gives_the_compiled_bits(opaque, env_id, depths):
    compiled = SPAQLR(env_id, seed=3, depths=depths, **SMALL).learn(5, 2)
    interpreted = SPAQLR(opaque(env_id), seed=3, depths=depths, **SMALL).learn(5, 2)
    assert compiled.compiled
    assert not interpreted.compiled
    assert np.array_equal(compiled.history, interpreted.history)
    assert np.array_equal(copy(compiled._best).balls, copy(interpreted._best).balls)
    assert np.array_equal(compiled.evaluate(3, seed=9), interpreted.evaluate(3, seed=9))
    assert np.array_equal(compiled.learn(samples=70).history, interpreted.learn(samples=70).history)


def test_learning_twice_is_learning_once_and_rollouts_only_report():
    once = SPAQLR("CartPole-v0", seed=0, **SMALL).learn(12)
    twice = SPAQLR("CartPole-v0", seed=0, **SMALL).learn(5).learn(7)
    assert np.array_equal(once.history, twice.history)
    # The rollouts draw nothing: in a point of the action space there is nothing to draw from.  Their starts are drawn.
    reported = SPAQLR("CartPole-v0", seed=0, env_seed=1, **SMALL).learn(1, evaluations=4)
    silent = SPAQLR("CartPole-v0", seed=0, env_seed=1, **SMALL).learn(1)
    assert np.array_equal(copy(reported._best).balls, copy(silent._best).balls)
    assert reported.history.evaluation_steps[0] > silent.history.evaluation_steps[0] == 0


@pytest.mark.parametrize("env_id", ["CartPole-v0", "Pendulum-v1"])
def test_samples_are_counted_exactly(env_id):
    agent = SPAQLR(env_id, seed=0, **SMALL)
    for samples in (1, 1000, 1234):
        before = agent._memory.counts[TAKEN]
        agent.learn(samples=samples, evaluations=1)
        assert agent._memory.counts[TAKEN] - before == samples
    assert agent.history.steps.sum() == 2235
    with pytest.raises(ValueError, match="either iterations or samples"):
        agent.learn()
    with pytest.raises(ValueError, match="either iterations or samples"):
        agent.learn(5, samples=5)


@pytest.mark.parametrize("env_id", ["CartPole-v0", "Pendulum-v1"])
def test_a_saved_agent_goes_on_to_the_same_bits(tmp_path, env_id):
    agent = SPAQLR(env_id, seed=0, **SMALL).learn(samples=1000)
    agent.save(tmp_path / "agent.npz")
    again = SPAQLR.load(tmp_path / "agent.npz")
    assert again.parameters == agent.parameters
    assert np.array_equal(agent.learn(10, 1).history, again.learn(10, 1).history)
    assert np.array_equal(copy(agent._best).balls, copy(again._best).balls)
    with pytest.raises(ValueError, match=r"SPAQLR\.load"):
        SPAQL.load(tmp_path / "agent.npz")


def damage_action(arrays):
    arrays["memory_action"][3] = 2


def damage_state(arrays):
    arrays["memory_x"][3, 1] = 1.5


def damage_reward(arrays):
    arrays["memory_reward"][3] = np.nan


def damage_length(arrays):
    arrays["memory_taken"][0] += 1000


def damage_end(arrays):
    arrays["memory_end"][3] = 7


@pytest.mark.parametrize("damage", [damage_action, damage_state, damage_reward, damage_length, damage_end])
def test_a_memory_that_no_learning_gives_is_refused(tmp_path, damage):
    path = tmp_path / "agent.npz"
    SPAQLR("CartPole-v0", seed=0, **SMALL | {"memory": 2000}).learn(samples=200).save(path)
    header, arrays = archive.read(path, FORMAT, VERSION)
    arrays = {name: array.copy() for name, array in arrays.items()}
    damage(arrays)
    archive.write(path, {key: value for key, value in header.items() if key != "checksum"}, arrays)
    with pytest.raises(ValueError, match="not a sound saved agent"):
        SPAQLR.load(path)


def test_an_interrupted_agent_is_left_as_it_was():
    class Tired(gym.Wrapper):
        steps = 0

        def step(self, action):
            self.steps += 1
            if self.steps == 500:
                raise RuntimeError("tired")
            return self.env.step(action)

    agent = SPAQLR(Tired(make_env("CartPole-v0")), seed=3, **SMALL)
    with pytest.raises(RuntimeError, match="tired"):
        agent.learn(100)
    done = len(agent.history)
    assert agent._memory.counts[TAKEN] == agent.history.steps.sum() < 500
    expected = SPAQLR("CartPole-v0", seed=3, **SMALL).learn(done)
    assert np.array_equal(agent.history, expected.history)
    assert np.array_equal(agent._memory.reward, expected._memory.reward)


# ---------------------------------------------------------------------------------------------------------------------
# What the estimates converge to, where that is known


class Corridor(gym.Env):
    """Reward 1 for every step, for `length` steps; then the episode ends, or is cut off."""

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, length, terminal):
        self.length, self.terminal = length, terminal

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(1), {}

    def step(self, action):
        self.at += 1
        over = self.at == self.length
        return np.zeros(1), 1.0, over and self.terminal, over and not self.terminal, {}


VALUES = [(True, True, 1.0), (True, False, 10.0), (False, True, 10.0)]  # of a reward of 1 with a discount of 0.9


@pytest.mark.parametrize(("terminal", "honoured", "value"), VALUES)
def test_a_terminal_state_is_worth_nothing_and_a_cut_off_one_its_value(terminal, honoured, value):
    agent = SPAQLR(Corridor(1, terminal), seed=0, discount=0.9, depths=(0, 0), terminal=honoured).learn(60)
    assert agent._best.balls["q"] == pytest.approx(value, rel=1e-3)


def test_following_the_episode_does_not_change_what_a_value_converges_to():
    for steps in (1, 20):
        agent = SPAQLR(Corridor(10, False), seed=0, discount=0.9, depths=(0, 0), steps=steps).learn(60)
        assert agent._best.balls["q"] == pytest.approx(10.0, rel=1e-3)


# ---------------------------------------------------------------------------------------------------------------------
# Partition, actions, policies, parameters


def test_a_fixed_grid_stays_as_it_is_and_a_partition_grows_with_its_visits():
    grid = SPAQLR("CartPole-v0", seed=0, depths=(2, 2)).learn(samples=500)
    assert grid.arms == 2 * 4**4
    agent = SPAQLR("CartPole-v0", seed=0, depths=(0, 8), visits=50).learn(samples=49)
    assert agent.arms == 2
    assert agent.learn(samples=1).arms == 2 * 16
    assert agent.learn(samples=2000).arms <= 2 * (1 + 15 * (2050 // 50))


def test_continuous_actions_are_points_in_every_dimension():
    class Two(gym.Env):
        observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
        action_space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return self.np_random.uniform(-1, 1, 1).astype(np.float32), {}

        def step(self, action):
            best = np.allclose(action, [1, 2])
            return self.np_random.uniform(-1, 1, 1).astype(np.float32), float(best), False, False, {}

    agent = SPAQLR(Two(), seed=0, actions=3, horizon=50, discount=0.5, decay=1000.0).learn(samples=2000)
    assert agent.arms % 9 == 0
    for deterministic in (True, False):
        assert agent.predict(np.array([0.3], np.float32), deterministic=deterministic)[0] == pytest.approx([1, 2])
    with pytest.raises(ValueError, match="expected at most 1,000"):
        SPAQLR(Two(), actions=100)


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "CartPole-v0"])
def test_the_policy_is_a_tree_to_read(env_id):
    agent = SPAQLR(env_id, seed=0, **SMALL).learn(samples=2000)
    tree, env = agent.policy.tree(), make_env(env_id)
    env.observation_space.seed(1)
    observations = np.array([env.observation_space.sample() for _ in range(500)])
    predicted = np.ravel(agent.predict(observations, deterministic=True)[0])
    assert np.array_equal(np.ravel(tree.predict(observations)[0]), predicted)
    assert "if" in export_text(tree) or "<" in export_text(tree)


def test_it_learns_both_systems_of_the_paper():
    cart = SPAQLR("CartPole-v0", seed=0).learn(samples=40_000)
    assert cart.evaluate(200, seed=1).mean() > 195
    pendulum = SPAQLR("Pendulum-v1", seed=0).learn(samples=40_000)
    assert pendulum.evaluate(200, seed=1).mean() > -250


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"alpha": 0}, "alpha must be a number above 0 and at most 1"),
        ({"alpha": 1.5}, "alpha must be a number above 0 and at most 1"),
        ({"epsilon": -0.1}, "epsilon must be a number of at least 0 and at most 1"),
        ({"discount": 1.1}, "discount must be"),
        ({"decay": 0}, "decay must be a number above 0"),
        ({"replays": -1}, "replays must be a whole number of at least 0"),
        ({"memory": 0}, "memory must be a whole number of at least 1"),
        ({"visits": 0}, "visits must be"),
        ({"steps": 0.5}, "steps must be"),
        ({"actions": 1}, "actions must be a whole number of at least 2"),
        ({"depths": 3}, "depths must be two whole numbers"),
        ({"depths": (3, 2)}, r"depths\[1\] must be a whole number of at least 3"),
    ],
)
def test_wrong_parameters_are_refused_in_words(given, message):
    with pytest.raises(ValueError, match=message):
        SPAQLR("Pendulum-v1", **given)
