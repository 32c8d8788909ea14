"""Chapter 7: random trees are trees, and are drawn without crossings."""

import numpy as np
import pytest

from spaql.paper.engine.figures import draw_tree, place_nodes
from spaql.policies.tree import LEAF, variables_of
from spaql.systems import make_env
from tests.conftest import from_notebook


@pytest.mark.parametrize("system", ["Pendulum-v1", "CartPole-v0"])
def test_random_trees_are_trees_of_that_size_and_are_drawn_without_crossings(system):
    names = variables_of(make_env(system))
    trees = list(from_notebook("07_policies")["random_trees"](names, 5, 20, seed=0))
    assert {tree.leaves for tree in trees} == {5}
    for tree in trees:
        seen = tree.apply(np.random.default_rng(0).normal(scale=2, size=(500, len(names.observed))))
        assert np.all(tree.feature[seen] == LEAF)
        place = place_nodes(tree)
        assert sorted(place[tree.feature == LEAF, 1]) == [0, 1, 2, 3, 4]
    draw_tree(trees[0]).canvas.draw()
    assert len({tree.threshold.tobytes() for tree in trees}) == 20
