"""Sarsa(λ) and the limit, against closed forms and examples worked by hand."""

import numpy as np
import pytest

from spaql.paper.baselines import limit
from spaql.paper.baselines.sarsa import Sarsa, train_sarsa
from spaql.spaces import Space
from spaql.systems import ENDED
from spaql.tileq import Tiles, TileWeights, count_of


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


def two_tiles():
    """One tiling of two tiles, and the one more that a shift would need, with weights of zero."""
    tiles = Tiles(1, 2, np.array([[0, 0]]))
    weights = np.zeros((count_of(tiles), 2))
    return TileWeights(tiles, weights, np.zeros(len(weights)), np.array([[0.0], [1.0]]), 0.5, 1)


def test_sarsa_on_a_chain():
    """With rewards of -1, no discount and greedy actions, the values are the steps to go."""
    what, given = two_tiles(), Sarsa(100, alpha=0.5, lam=0.5, gamma=1.0, epsilon=0.2)
    stamp, rng = np.full(what.weights.shape, -1), np.random.default_rng(0)
    train_sarsa(Chain(), np.zeros((2000, 1)), 0, 2000, what, given, stamp, rng)
    values = what.values(np.array([[-1.0], [1.0]]))
    assert values.argmax(axis=1).tolist() == [1, 1]
    assert values[1, 1] == pytest.approx(-1.0)
    assert values[0, 1] == pytest.approx(-2.0, abs=0.5)  # the next action is random now and then


def test_two_steps_of_sarsa_by_hand():
    """Without a random action: δ = -1, then -1 - 0; with λ = 0.5 the second reaches back by half."""
    what, given = two_tiles(), Sarsa(2, alpha=0.5, lam=0.5, gamma=1.0, epsilon=0.0, decay=1e-9)
    what.weights[:, 1] = 1e-12  # so that action 1 is taken
    stamp, rng = np.full(what.weights.shape, -1), np.random.default_rng(0)
    train_sarsa(Chain(), np.zeros((1, 1)), 10, 12, what, given, stamp, rng)
    assert what.weights[:, 1] == pytest.approx([-0.5 - 0.25, 0.0, -0.5], abs=1e-9)


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
    values = np.array([2 + x - 3 * y + x * y for x in -1 + 0.5 * np.arange(5) for y in range(4)])
    shares = np.empty(2)
    for x, y in np.random.default_rng(0).uniform([-1, 0], [1, 3], (50, 2)):
        at = limit.locate(grid, np.array([x, y]), shares)
        assert limit.between(grid.corners, values, at, shares) == pytest.approx(2 + x - 3 * y + x * y)
