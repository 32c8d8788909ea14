"""SPAQL-R: against a version that a reader would write first, compiled against interpreted, samples, saving, values."""

import collections
import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import SPAQL, SPAQLR, files
from spaql.bisection import box_around, copy, cut, first_cell, leaf_below, with_nodes
from spaql.files import FORMAT, VERSION
from spaql.policies import export_python, export_text
from spaql.replay import TAKEN, find_tiles
from spaql.systems import make_env
from spaql.tiles import PLAIN, Tiles, largest_prime
from tests.conftest import same_sines

SMALL = {"visits": 8, "tilings": 8, "memory": 300, "replays": 3, "steps": 4, "decay": 100.0}  # all within 15 episodes
IDS = ["Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"]


# ---------------------------------------------------------------------------------------------------------------------
# The algorithm as a reader of `spaql.replay` would write it first: dictionaries, lists, one step after the other


class Cell:
    """A leaf of the naive tree, or, once it has halves, a question."""

    def __init__(self, q, bounds):
        self.q, self.bounds, self.visits, self.halves = q, bounds, 0, None

    def leaf(self, x):
        if self.halves is None:
            return self
        axis, border, lower, upper = self.halves
        return (upper if x[axis] >= border else lower).leaf(x)

    def best(self):
        return self.q.index(max(self.q))

    def cut(self, seen):
        """Halve what has been seen of the cell, across the axis along which that is most of all that has been seen."""
        whole = [(min(column), max(column)) for column in zip(*seen, strict=True)]
        box = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(whole, self.bounds, strict=True)]
        share = [(b - a) / (d - c) if d > c else 0.0 for (a, b), (c, d) in zip(box, whole, strict=True)]
        axis = share.index(max(share))
        if share[axis] < 1e-6:
            return
        border = (box[axis][0] + box[axis][1]) / 2
        halves = []
        for upper in (False, True):
            bounds = list(self.bounds)
            bounds[axis] = (border, bounds[axis][1]) if upper else (bounds[axis][0], border)
            halves.append(Cell(list(self.q), bounds))
        self.halves = (axis, border, *halves)


class Naive:
    """SPAQL-R with a tree of objects; it shares with the package the order in which numbers are drawn."""

    def __init__(
        self,
        agent,
        discount=0.995,
        alpha=0.2,
        beta=0.05,
        tilings=0,
        epsilon=0.1,
        visits=0,
        memory=0,
        replays=0,
        steps=0,
        decay=0.0,
    ):
        self.agent, self.gamma, self.alpha, self.beta, self.epsilon = agent, discount, alpha, beta, epsilon
        self.tilings = tilings
        self.visits, self.memory, self.replays, self.steps, self.decay = visits, memory, replays, steps, decay
        self.rng = np.random.default_rng(agent.seed.spawn(3)[0])
        space = agent.env.action_space
        self.actions = list(range(space.n)) if isinstance(space, spaces.Discrete) else [[-2.0], [2.0]]
        self.angle = "Pendulum" in str(agent.env)
        dimensions = agent.env.observation_space.shape[0] - self.angle
        self.root = Cell([0.0] * len(self.actions), [(-math.inf, math.inf)] * dimensions)
        self.cells, self.transitions, self.rewards = 1, [], [0.0, 0.0]
        self.weights = collections.defaultdict(float)

    def tiles(self, x):
        """The tiles of x in n grids of 8 tiles along each axis, shifted by odd multiples of 1/n of a tile."""
        found = []
        for n in range(self.tilings):
            shifts = [(2 * i + 1) * n % self.tilings / self.tilings for i in range(len(x))]
            tile = [math.floor((v + 1) * 4 + shift) for v, shift in zip(x, shifts, strict=True)]
            if self.angle:
                tile[0] %= 8
            found.append((n, *tile))
        return found

    def on_tiles(self, x, of):
        """V(x), or U(x, a) of an action."""
        return sum(self.weights[tile, of] for tile in self.tiles(x))

    def estimate(self, x, a):
        """Q(x, a)."""
        return self.on_tiles(x, "value") + self.on_tiles(x, a)

    def target(self, i):
        """G of transition i: follow the episode while it does what is now thought best."""
        _, _, total, y, end = self.transitions[i]
        power = self.gamma
        for _ in range(self.steps - 1):
            if end or i + 1 == len(self.transitions):
                break
            x, a, reward, after, its_end = self.transitions[i + 1]
            if a != self.root.leaf(x).best():
                break
            i, y, end = i + 1, after, its_end
            total, power = total + power * reward, power * self.gamma
        if end == "terminal":
            return total
        best = self.estimate(y, self.root.leaf(y).best())
        lowest, highest = (reward / (1 - self.gamma) for reward in self.rewards)
        return total + power * min(highest, max(lowest, best))

    def learn(self, episodes):
        """Return what each training episode gave, and the number of arms after it."""
        env, found = self.agent.env, []
        for episode in range(episodes):
            x = self.state(env.reset(seed=self.agent.env_seed if episode == 0 else None)[0])
            total, end = 0.0, ""
            while end == "":
                cell = self.root.leaf(x)
                a = cell.best()
                if self.rng.random() < max(self.epsilon, math.exp(-self.taken() / self.decay)):
                    a = int(self.rng.random() * len(self.actions))
                action = self.actions[a] if isinstance(self.actions[a], int) else np.array(self.actions[a], np.float32)
                observation, reward, terminated, truncated, _ = env.step(action)
                y, total = self.state(observation), total + float(reward)
                end = "terminal" if terminated else "cut off" if truncated else ""
                self.transitions.append((x, a, float(reward), y, end))
                self.rewards = [min(self.rewards[0], float(reward)), max(self.rewards[1], float(reward))]
                cell.visits += 1
                if cell.visits >= self.visits:
                    cell.cut([transition[0] for transition in self.transitions])
                    self.cells += cell.halves is not None
                self.update(len(self.transitions) - 1)
                for _ in range(self.replays):
                    kept = min(self.taken(), self.memory)
                    at = int(self.rng.random() * kept)  # a place in the ring, which holds the newest of these
                    self.update(at + (self.taken() - 1 - at) // self.memory * self.memory)
                x = y
            found.append((total, self.cells * len(self.actions)))
        return found

    def taken(self):
        return len(self.transitions)

    def update(self, i):
        x, a, *_ = self.transitions[i]
        cell = self.root.leaf(x)
        delta = self.target(i) - self.estimate(x, a)
        for tile in self.tiles(x):
            self.weights[tile, "value"] += self.alpha / self.tilings * delta
            self.weights[tile, a] += self.beta * self.alpha / self.tilings * delta
        cell.q = [q + self.alpha * (self.on_tiles(x, b) - q) for b, q in enumerate(cell.q)]

    def state(self, observation):
        """The observation in [-1, 1]^d: divided by its bound, or the sigmoid of slope 1 where it has none."""
        high = self.agent.env.observation_space.high
        low = self.agent.env.observation_space.low
        found = []
        for v, a, b in zip(observation.tolist(), low.tolist(), high.tolist(), strict=True):
            bounded = math.isfinite(b)
            mapped = (v - (a + b) / 2) / ((b - a) / 2) if bounded else 2.0 / (1.0 + math.exp(-2.0 * v)) - 1.0
            found.append(min(1.0, max(-1.0, mapped)))
        if self.angle:
            cosine, sine = observation[:2].tolist()
            found = [math.atan2(sine, cosine) / math.pi, found[2]]
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
    last = [x for x, *_ in naive.transitions[-200:]]
    points = np.array([[x[0], 0.0, x[1]] if naive.angle else x for x in last])  # the package leaves the sine's place
    cells = [leaf_of(agent._best, point) for point in points]
    for field, wanted in (
        ("q", [naive.root.leaf(x).q for x in last]),
        ("best", [naive.root.leaf(x).best() for x in last]),
    ):
        assert np.ravel(getattr(agent._best, field)[cells]) == pytest.approx(np.ravel(wanted), rel=1e-6)


def leaf_of(tree, point):
    node = 0
    while tree.child[node] >= 0:
        node = tree.child[node] + (point[tree.axis[node]] >= tree.border[node])
    return node


# ---------------------------------------------------------------------------------------------------------------------
# The same agent, however it comes about


def same_tree(agent, other):
    return all(np.array_equal(a, b) for a, b in zip(copy(agent._best), copy(other._best), strict=True))


@same_sines
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("changed", [{}, {"alpha": None, "visits": None, "tilings": 0}])
def test_a_wrapped_environment_gives_the_compiled_bits(opaque, env_id, changed):
    given = SMALL | changed
    compiled = SPAQLR(env_id, seed=3, **given).learn(5, 2)
    interpreted = SPAQLR(opaque(env_id), seed=3, **given).learn(5, 2)
    assert compiled.compiled
    assert not interpreted.compiled
    assert np.array_equal(compiled.history, interpreted.history)
    assert same_tree(compiled, interpreted)
    assert np.array_equal(compiled.evaluate(3, seed=9), interpreted.evaluate(3, seed=9))
    assert np.array_equal(compiled.learn(samples=70).history, interpreted.learn(samples=70).history)


def test_learning_twice_is_learning_once_and_rollouts_only_report():
    once = SPAQLR("CartPole-v0", seed=0, **SMALL).learn(12)
    twice = SPAQLR("CartPole-v0", seed=0, **SMALL).learn(5).learn(7)
    assert np.array_equal(once.history, twice.history)
    # The rollouts draw nothing: in a point of the action space there is nothing to draw from.  Their starts are drawn.
    reported = SPAQLR("CartPole-v0", seed=0, env_seed=1, **SMALL).learn(1, evaluations=4)
    silent = SPAQLR("CartPole-v0", seed=0, env_seed=1, **SMALL).learn(1)
    assert same_tree(reported, silent)
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
    assert same_tree(agent, again)
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


def damage_extremes(arrays):
    arrays["memory_rewards"][1] = 0.5


def damage_child(arrays):
    arrays["trainee_child"][0] = 3


def damage_axis(arrays):
    arrays["trainee_axis"][0] = 4


def damage_weights(arrays):
    arrays["memory_weights"][0] = np.inf


def damage_best(arrays):
    arrays["trainee_best"][-1] += 1


DAMAGES = (damage_action, damage_state, damage_reward, damage_length, damage_end, damage_extremes, damage_child,
           damage_axis, damage_weights, damage_best)  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_no_learning_gives_is_refused(tmp_path, damage):
    path = tmp_path / "agent.npz"
    SPAQLR("CartPole-v0", seed=0, **SMALL | {"memory": 2000}).learn(samples=200).save(path)
    header, arrays = files.read(path, FORMAT, VERSION)
    arrays = {name: array.copy() for name, array in arrays.items()}
    damage(arrays)
    files.write(path, {key: value for key, value in header.items() if key != "checksum"}, arrays)
    with pytest.raises(ValueError, match="not a sound saved agent"):
        SPAQLR.load(path)


def test_an_agent_of_the_version_before_is_refused_with_what_to_do(tmp_path):
    path = tmp_path / "agent.npz"
    SPAQLR("CartPole-v0", seed=0, **SMALL).learn(samples=50).save(path)
    header, arrays = files.read(path, FORMAT, VERSION)
    before = {name: array for name, array in arrays.items() if not name.startswith("trainee")}
    for former in (before | {"trainee_balls": np.zeros(1)}, arrays | {"memory_weights": np.zeros(5)}):
        files.write(path, header, former)
        with pytest.raises(ValueError, match="train it again"):
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
    agent = SPAQLR(Corridor(1, terminal), seed=0, discount=0.9, terminal=honoured).learn(120)
    assert first_estimates(agent) == pytest.approx(value, rel=1e-3)


def first_estimates(agent):
    """Q(x, a) where the first episode began."""
    value, *advantages = agent._memory.weights[agent._memory.tiles_x[0]].sum(axis=0)
    return value + np.array(advantages)


def test_following_the_episode_does_not_change_what_a_value_converges_to():
    for steps in (1, 20):
        agent = SPAQLR(Corridor(10, False), seed=0, discount=0.9, steps=steps).learn(120)
        assert first_estimates(agent) == pytest.approx(10.0, rel=1e-3)


# ---------------------------------------------------------------------------------------------------------------------
# Partition, actions, policies, parameters


def test_a_partition_grows_with_its_visits():
    agent = SPAQLR("CartPole-v0", seed=0, visits=50).learn(samples=49)
    assert agent.arms == 2
    assert agent.learn(samples=1).arms == 2 * 2
    assert agent.learn(samples=2000).arms <= 2 * (1 + 2050 // 50)


class Late(gym.Env):
    """Shows one state for a long time, and then many."""

    observation_space, action_space = spaces.Box(-1.0, 1.0, (2,), np.float64), spaces.Discrete(2)
    taken = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(2), {}

    def step(self, action):
        self.at, self.taken = self.at + 1, self.taken + 1
        shown = np.zeros(2) if self.taken < 1500 else self.np_random.uniform(-1.0, 1.0, 2)
        return shown, 1.0, False, self.at == 100, {}


def test_there_is_room_when_a_point_becomes_a_cell():
    agent = SPAQLR(Late(), seed=0, horizon=100, replays=0, visits=20).learn(14)
    assert agent.arms == 2
    assert agent.learn(10).arms > 2 * 70  # many more cuts than visits of their own would allow


def test_a_state_on_a_border_is_in_the_upper_half_and_so_is_its_box():
    tree, state = with_nodes(first_cell(np.ones(1), np.zeros((2, 1)), 0.0), 3), np.zeros((1, 1))
    cut(tree, 0, 0, 0.0)
    assert leaf_below(tree.child, tree.axis, tree.border, 0, state, 0) == 2
    assert box_around(tree, state, 0).tolist() == [[0.0], [1.0]]


def test_more_tiles_than_weights_share_them():
    places = np.array([[i, PLAIN] for i in range(20)])
    states = np.random.default_rng(0).uniform(-1.0, 1.0, (1000, 20))
    found = np.empty((1000, 16), np.int32)
    assert largest_prime(1_000_100) == 1_000_099
    find_tiles(Tiles(16, 8, places, 1_000_099), states, found)
    assert len(np.unique(found)) > 15_000
    number = 5
    for i, z in enumerate(states[7]):
        number = number * 9 + int((z + 1.0) / 2.0 * 8 + (2 * i + 1) * 5 % 16 / 16)
    assert found[7, 5] == number % 1_000_099


def test_values_stay_within_what_rewards_allow():
    agent = SPAQLR("CartPole-v0", seed=0, alpha=1.0).learn(samples=20_000)
    assert np.abs(agent._best.q).max() < 1e4  # without the bound they grow beyond all numbers


class Wheel(gym.Env):
    """Turn a wheel to the top; the angle is seen as sine and cosine, in this order."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)
    action_space = spaces.Discrete(2)

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


def test_angles_of_an_environment_of_ones_own():
    agent = SPAQLR(Wheel(), seed=0, angles=[(2, 1)], horizon=40, decay=500.0, visits=20, discount=0.9)
    agent.learn(samples=4000)
    tree = agent.policy.tree()
    assert "angle_2 < " in export_text(tree)
    assert set(tree.feature) <= {-1, 2}
    angles = np.linspace(-3.0, 3.0, 601)
    seen = np.stack((np.full(601, 0.3), np.sin(angles), np.cos(angles)), axis=1)
    actions = agent.predict(seen)[0]
    assert np.array_equal(tree.predict(seen)[0], actions)
    clear = (np.abs(angles) > 0.5) & (np.abs(angles) < 2.0)
    assert actions[clear].tolist() == (angles[clear] < 0).astype(int).tolist()
    assert agent.parameters["angles"] == [[2, 1]]
    scope = {}
    exec(export_python(tree), scope)
    assert [scope["policy"](*row) for row in seen.tolist()] == actions.tolist()


@pytest.mark.parametrize(
    ("env_id", "angles", "message"),
    [
        ("Pendulum-v1", [(0, 3)], "places from 0 to 2"),
        ("Pendulum-v1", [(0, -1)], "places from 0 to 2"),
        ("Pendulum-v1", [(0, 1, 2)], "pairs of places"),
        ("Pendulum-v1", 7, "pairs of whole numbers"),
        ("Pendulum-v1", [(0.5, 1)], "pairs of whole numbers"),
        ("Pendulum-v1", [(0, 0)], "each observation once"),
        ("Acrobot-v1", [(0, 1), (1, 2)], "each observation once"),
        ("Pendulum-v1", [(0, 2)], "squares should add up to 1"),
        ("CartPole-v0", [(0, 1)], "squares should add up to 1"),
    ],
)
def test_wrong_angles_are_refused_in_words(env_id, angles, message):
    with pytest.raises(ValueError, match=message) as raised:
        SPAQLR(env_id, angles=angles)
    assert "angles=[" in str(raised.value)


def test_angles_that_are_none_are_refused_where_they_are_seen():
    with pytest.raises(ValueError, match="squares should add up to 1"):
        SPAQLR(Wheel(), seed=0, angles=[(0, 1)], horizon=40).learn(1)


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
        ({"alpha": 1.0, "beta": 1.0}, "must be below 2"),
        ({"beta": 0}, "beta must be a number above 0"),
        ({"tilings": 6}, "tilings must be 0 or a power of two, not 6"),
        ({"bins": 2000}, "bins must be a whole number of at most 1,000"),
        ({"epsilon": -0.1}, "epsilon must be a number of at least 0 and at most 1"),
        ({"discount": 1.1}, "discount must be"),
        ({"decay": 0}, "decay must be a number above 0"),
        ({"replays": -1}, "replays must be a whole number of at least 0"),
        ({"memory": 0}, "memory must be a whole number of at least 1"),
        ({"visits": 0}, "visits must be"),
        ({"steps": 0.5}, "steps must be"),
        ({"actions": 1}, "actions must be a whole number of at least 2"),
        ({"rules": "released"}, "leave `rules` out"),
    ],
)
def test_wrong_parameters_are_refused_in_words(given, message):
    with pytest.raises(ValueError, match=message):
        SPAQLR("Pendulum-v1", **given)
