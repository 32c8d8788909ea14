"""Figures that chapters share: they show the numbers they are given."""

import numpy as np
import pandas as pd
import pytest

from spaql.paper.claims.load import paper_results
from spaql.paper.engine import figures, store
from spaql.systems import make_env


@pytest.fixture(scope="module")
def agents():
    frame = pd.concat([store.read("long"), store.read("trpo")], ignore_index=True)
    return frame[(frame.system == "CartPole-v0") & (frame.agent < 3)]


def test_learning_curves_show_the_means_of_the_agents_beside_the_papers_ends(agents):
    learners = agents[~agents.algorithm.str.startswith("TRPO")]
    top, bottom = figures.learning_curves(store.histories(learners)).axes
    lines = {line.get_label(): line for line in top.lines if not line.get_label().startswith("_")}
    for name, group in learners.groupby("algorithm"):
        curves, x = np.array(group.curve_rewards.to_list()), lines[name].get_xdata()
        assert np.allclose(lines[name].get_ydata(), curves.mean(axis=0)[x - 1])
    assert len([line for line in top.lines if line.get_alpha()]) == len(learners)  # one faint line per agent
    assert "Random" not in {line.get_label() for line in bottom.lines}  # which has no arms
    diamonds = {line.get_ydata()[0] for line in top.lines if line.get_marker() == "D" and len(line.get_ydata())}
    assert diamonds == {paper_results()["CartPole-v0"][name]["rewards"][0] for name in learners.algorithm.unique()}


def test_an_episode_shows_angles_in_rad_and_forces_in_newton():
    episode = {"states": np.arange(16.0).reshape(4, 4), "actions": np.array([0, 1, 1]), "rewards": np.ones(3)}
    left, right = figures.episodes({"SPAQL": episode}, "CartPole-v0").axes
    assert left.lines[0].get_ydata().tolist() == [2, 6, 10, 14]
    assert right.lines[0].get_ydata().tolist() == [-10, 10, 10]
    assert "rad" in left.get_ylabel()
    assert figures.in_units(make_env("spaql/PendulumDiscrete-v1"), np.array([0, 4, 2])).tolist() == [-2, 2, 0]
