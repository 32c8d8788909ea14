"""The baselines, against closed forms and examples worked by hand."""

import math

import numpy as np
import pytest

from spaql import SPAQLR
from spaql.paper.baselines import by_hand, limit, search
from spaql.paper.baselines.compute import BASELINES
from spaql.paper.baselines.fitted import FittedQ, features
from spaql.paper.baselines.replayed import GOES_ON, Kept, Recipe, Replayed, learn_from, retrace
from spaql.paper.baselines.sarsa import Sarsa, explore, traces_kept, train_sarsa
from spaql.paper.baselines.tiles import greedy, places_of
from spaql.paper.runs.algorithms import SAME
from spaql.spaces import Space
from spaql.systems import ENDED, make_env
from spaql.tileq import Tiles, active, count_of, sum_of


class Chain:
    """States -1 and 1 on a line.  Action 1 leads to the other one, from where it ends the episode; action 0 stays."""

    space = Space((0.0,), (1.0,), (0.0,), (0.0,), (1.0,), 2, (-1,))

    def room(self):
        return np.empty(1)

    def reset(self, state, start, x):
        state[0] = x[0] = -1.0

    def step(self, state, action, x):
        over = ENDED if action[0] == 1.0 and state[0] == 1.0 else 0
        if action[0] == 1.0:
            state[0] = 1.0
        x[0] = state[0]
        return -1.0, over


TWO = Tiles(1, 2, np.array([[0, -1]]))  # one tiling of two tiles, and the one more that a shift would need


def test_tiles_by_hand():
    tiles = Tiles(2, 4, np.array([[0, -1]]))
    found = np.empty((1, 2), np.int64)
    active(
        tiles, np.array([-0.3]), found, 0
    )  # 1.4 tiles from the left; the second tiling is shifted by half a tile: 1.9
    assert found[0].tolist() == [1, 5 + 1]
    active(tiles, np.array([-0.2]), found, 0)  # 1.6 and 2.1
    assert found[0].tolist() == [1, 5 + 2]
    assert count_of(tiles) == 10


def test_an_angle_turns_round():
    tiles = Tiles(4, 8, np.array([[0, 1]]))
    found = np.empty((2, 4), np.int64)
    for row, angle in enumerate((math.pi - 1e-6, -math.pi)):
        active(tiles, np.array([math.cos(angle), math.sin(angle)]), found, row)
    assert (found[0] == found[1]).sum() == 3  # all but the tiling that has an edge there


def test_sarsa_on_a_chain():
    """With rewards of -1, no discount and greedy actions, the values are the steps to go."""
    weights = np.zeros((count_of(TWO), 2))
    given = Sarsa(alpha=0.5, lam=0.5, gamma=1.0, epsilon=0.2)
    rng, actions = np.random.default_rng(0), np.array([[0.0], [1.0]])
    train_sarsa(Chain(), np.zeros((2000, 1)), 100, 0, 2000, TWO, given, weights, np.full(weights.shape, -1), actions,
                traces_kept(given), rng)  # fmt: skip
    states = np.empty((2, 1), np.int64)
    for row, x in enumerate((-1.0, 1.0)):
        active(TWO, np.array([x]), states, row)
    assert [greedy(weights, states, row)[0] for row in range(2)] == [1, 1]
    assert sum_of(weights, states, 1, 1) == pytest.approx(-1.0)
    assert sum_of(weights, states, 0, 1) == pytest.approx(-2.0, abs=0.5)  # the next action is random now and then


def test_sarsa_explores_less_and_less():
    weights, tiles, rng = np.array([[0.0, 1.0]]), np.zeros((1, 1), np.int64), np.random.default_rng(0)
    for given, t, share in ((Sarsa(decay=100.0), 0, 1.0), (Sarsa(decay=100.0), 100, math.exp(-1.0)),
                            (Sarsa(epsilon=0.2, decay=100.0), 1000, 0.2), (Sarsa(epsilon=0.2), 0, 0.2)):  # fmt: skip
        other = np.mean([explore(weights, tiles, given, t, 2, rng) == 0 for _ in range(4000)])
        assert other == pytest.approx(share / 2, abs=0.03)


def test_one_step_of_sarsa_by_hand():
    """Two steps without a random action: δ = -1, then -1 - 0; with λ = 0.5 the second reaches back by half."""
    weights = np.zeros((count_of(TWO), 2))
    weights[:, 1] = 1e-12  # so that action 1 is taken
    given = Sarsa(alpha=0.5, lam=0.5, gamma=1.0, epsilon=0.0)
    train_sarsa(
        Chain(),
        np.zeros((1, 1)),
        2,
        0,
        2,
        TWO,
        given,
        weights,
        np.full(weights.shape, -1),
        np.array([[0.0], [1.0]]),
        8,
        np.random.default_rng(0),
    )
    assert weights[:, 1] == pytest.approx([-0.5 - 0.25, 0.0, -0.5], abs=1e-9)


def test_replay_follows_what_is_thought_best():
    """Three steps of reward 1, 2, 4 that all did the best action; γ = 0.5, the last state is worth 8."""
    x, y = np.array([[0], [1], [2]], np.int32), np.array([[1], [2], [3]], np.int32)
    weights = np.zeros((4, 2))
    weights[:, 1] = 8.0
    kept = Kept(x, y, np.array([1, 1, 1]), np.array([1.0, 2.0, 4.0]), np.zeros(3, np.int8), np.array([3]))
    learn_from(*kept[:-1], weights, Recipe(alpha=1.0, gamma=0.5, steps=20), 0, 2)
    assert weights[0, 1] == 1 + 0.5 * 2 + 0.25 * 4 + 0.125 * 8
    kept.action[2] = 0  # another action than the best: the target ends before it
    learn_from(*kept[:-1], weights, Recipe(alpha=1.0, gamma=0.5, steps=20), 0, 2)
    assert weights[0, 1] == 1 + 0.5 * 2 + 0.25 * 8


def test_dynamic_programming_on_a_chain():
    """Five nodes on a line: one action moves to the right, the other stays; the right end is the goal."""
    grid = limit.make_grid([0.0], [4.0], [5], [0.0])
    cells, shares, rewards = np.zeros((5, 2), np.int32), np.zeros((5, 2, 1)), -np.ones((5, 2))
    for node in range(5):
        cells[node, 0] = limit.locate(grid, np.array([float(node)]), shares[node, 0])
        cells[node, 1] = limit.locate(grid, np.array([node + 1.0]), shares[node, 1]) if node < 3 else -1
    values, before = np.zeros(5), np.empty(5)
    for _ in range(10):
        limit.back_up(grid.corners, cells, shares, rewards, values, before)
        values, before = before, values
    assert values.tolist() == [-4.0, -3.0, -2.0, -1.0, -1.0]


def test_interpolation_is_exact_for_multilinear_functions():
    grid = limit.make_grid([-1.0, 0.0], [1.0, 3.0], [5, 4], [0.0, 0.0])
    nodes = [(-1 + 0.5 * i, 1.0 * j) for i in range(5) for j in range(4)]
    values = np.array([2 + x - 3 * y + x * y for x, y in nodes])
    shares = np.empty(2)
    for x, y in np.random.default_rng(0).uniform([-1, 0], [1, 3], (50, 2)):
        at = limit.locate(grid, np.array([x, y]), shares)
        assert limit.between(grid.corners, values, at, shares) == pytest.approx(2 + x - 3 * y + x * y)


def test_cartpole_is_linearised_as_gymnasium_moves():
    env = make_env("CartPole-v1")
    A, B = by_hand.linearised(env)
    small = np.array([1e-4, -2e-4, 3e-4, -1e-4])
    env.reset(seed=0)
    env.unwrapped.state = tuple(small)
    moved = env.step(1)[0]
    assert moved == pytest.approx(A @ small + B[:, 0] * env.unwrapped.force_mag, abs=1e-5)


def test_the_regulator_solves_the_riccati_equation():
    """One dimension, x' = x + u: the cost-to-go p solves p = 1 + p - p²/(1 + p), so p is the golden ratio."""
    gain = by_hand.regulator(np.eye(1), np.eye(1))
    golden = (1 + math.sqrt(5)) / 2
    assert gain == pytest.approx(np.array([[golden / (1 + golden)]]))


def test_fitted_q_plays_what_scikit_learn_fitted():
    """Each remembered action is the best by scikit-learn's own predictions; Q of a last step is its reward."""
    agent = FittedQ("CartPole-v0", 0, sweeps=2, trees=3, least=1, epsilon=0.0, decay=1.0).learn(2000)
    taken = agent.batch[0][1000:]
    before = FittedQ("CartPole-v0", 0, sweeps=2, trees=3, least=1, epsilon=0.0, decay=1.0).learn(1000)
    best = np.argmax([model.predict(taken) for model in before.models], axis=0)
    assert (agent.batch[2][1000:] == best).all()
    x, _, action, reward, end = agent.batch
    for a, model in enumerate(agent.models):
        last = end & (action == a)
        assert model.predict(x[last]) == pytest.approx(reward[last])
    FittedQ("CartPole-v0", 0).learn(1)  # does not know both actions yet


def test_forests_are_told_angles():
    z = np.empty(2, np.float32)
    features(places_of(make_env("Pendulum-v1")), np.array([math.cos(3.0), math.sin(3.0), 7.0]), z)
    assert z == pytest.approx([3.0 / math.pi, 7.0])


@pytest.mark.parametrize("name", ["Tiles, replayed", "Random linear"])
def test_evaluating_does_not_disturb_learning(name):
    made, settings = BASELINES[name]
    often, once = (made("CartPole-v0", 3, **settings) for _ in range(2))
    for _ in range(4):
        often.learn(250)
        often.evaluate(2, 0)
    for _ in range(4):
        once.learn(250)
    assert (often.weights == once.weights).all()


def test_regulators_hold_one_pole_or_two_and_hover():
    assert (by_hand.ByHand("CartPole-v1", 0).evaluate(50, 0) == 500).all()
    assert (by_hand.ByHand("spaql/TwoPoles-v0", 0).evaluate(50, 0) == 200).all()
    assert by_hand.ByHand("spaql/Quadrotor-v0", 0).evaluate(50, 0).min() > 190


def test_the_settings_are_those_that_the_search_chose():
    trials = search.load_trials()
    for name in search.LISTS:
        own = [trial["settings"] for trial in trials if trial["algorithm"] == name]
        assert own == search.draw_settings(name)
        given = SPAQLR("CartPole-v0").parameters if name == "SPAQL-R" else BASELINES[name][1]
        assert search.chosen(trials, name).items() <= given.items()
    same, ours = BASELINES[SAME][1], SPAQLR("CartPole-v0").parameters
    assert all(same[name] == ours[name] for name in same.keys() - {"gamma", "common"})
    assert (same["gamma"], same["common"]) == (ours["discount"], 1.0 - ours["beta"])
    assert search.chosen(trials, "Sarsa(λ)", search.LAST) == BASELINES["Sarsa(λ), slower"][1]
    assert search.chosen(trials, "Tiles, replayed", search.LAST) == BASELINES["Tiles, slower"][1]


def test_what_tiles_saw_in_training_is_seen_again():
    agent, twin = (Replayed("CartPole-v0", 1) for _ in range(2))
    seen, taken, ends = np.empty((300, 4)), agent.learn(300).kept.action, agent.kept.end
    retrace(agent.world.model, twin.world.starts(300), agent.actions, taken[:300], ends[:300], seen)
    env = make_env("CartPole-v0")
    env.reset(seed=0)
    for t in np.flatnonzero(ends[:299] == GOES_ON):
        env.unwrapped.state = tuple(seen[t])
        np.testing.assert_allclose(env.unwrapped.step(int(taken[t]))[0], seen[t + 1], rtol=1e-5, atol=1e-6)
    begun = np.flatnonzero(ends[:299] != GOES_ON) + 1
    assert len(begun)
    assert np.abs(seen[begun]).max() <= 0.05
