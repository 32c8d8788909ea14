"""Chapter 7: maps show what agents do, and random trees are trees."""

import numpy as np
import pytest

from spaql import SPAQL, SPAQLTS
from spaql.paper.chapters import policies
from spaql.paper.engine.figures import draw_tree, place_nodes
from spaql.policies.tree import LEAF, variables_of
from spaql.systems import make_env


@pytest.mark.parametrize(
    ("system", "x", "y"), [("Pendulum-v1", "theta", "theta_dot"), ("CartPole-v0", "theta", "theta_dot")]
)
def test_a_map_shows_the_agents_actions(system, x, y):
    agent = (SPAQL if system == "Pendulum-v1" else SPAQLTS)(system, xi=4, seed=1).learn(100, 5)
    at = {"x": 0.1} if system == "CartPole-v0" else None
    figure = policies.policy_map(agent.policy, x, y, at)
    field = np.asarray(figure.axes[0].images[0].get_array())
    left, right, bottom, top = figure.axes[0].images[0].get_extent()
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, 480, (2, 500))
    across, up = left + (j + 0.5) / 480 * (right - left), bottom + (i + 0.5) / 480 * (top - bottom)
    zero = np.zeros(500)
    if system == "Pendulum-v1":
        points = np.stack((np.cos(across), np.sin(across), up), axis=1)
        expected = agent.predict(points, deterministic=True)[0][:, 0]
    else:
        points = np.stack((zero + 0.1, zero, across, up), axis=1)
        expected = np.where(agent.predict(points, deterministic=True)[0] == 1, 10.0, -10.0)
    assert np.allclose(field[i, j], expected)
    assert len(np.unique(field)) > 1


def test_a_map_is_over_variables_of_the_system():
    with pytest.raises(ValueError, match="angle"):
        policies.policy_map(SPAQL("Pendulum-v1", xi=4, seed=0).policy, "theta", "angle")


@pytest.mark.parametrize("system", ["Pendulum-v1", "CartPole-v0"])
def test_random_trees_are_trees_of_that_size_and_are_drawn_without_crossings(system):
    names = variables_of(make_env(system))
    trees = list(policies.random_trees(names, 5, 20, seed=0))
    assert {tree.leaves for tree in trees} == {5}
    for tree in trees:
        seen = tree.apply(np.random.default_rng(0).normal(scale=2, size=(500, len(names.observed))))
        assert np.all(tree.feature[seen] == LEAF)
        place = place_nodes(tree)
        assert sorted(place[tree.feature == LEAF, 0]) == [0, 1, 2, 3, 4]
    draw_tree(trees[0]).canvas.draw()
    assert len({tree.threshold.tobytes() for tree in trees}) == 20


def test_another_length_changes_the_pole_alone():
    varied = policies.lengths("CartPole-v0", [0.5, 2])
    assert [env.unwrapped.length for env in varied.values()] == [0.25, 1.0]
    assert make_env("CartPole-v0").unwrapped.length == 0.5
