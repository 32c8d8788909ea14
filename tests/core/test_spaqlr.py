"""SPAQL-R alone: its cells, what its values converge to, its policy; `test_tileq` has what both share."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import SPAQLR, files
from spaql.policies import export_text
from spaql.spaqlr import box_around, cell_of, halve, one_cell
from spaql.systems import make_env
from tests.core.test_tileq import CELLS


def test_a_cell_is_halved_where_it_is_widest_and_a_state_on_the_border_is_in_the_upper_half():
    tree, states = one_cell(2, np.zeros((2, 1)), 5.0, 0.5, 1).with_room(2), np.array([[0.0, -0.3], [-0.5, 0.4]])
    codes = np.zeros((2, 1), np.int32)
    tree.seen[:] = [[-1.0, -0.5], [1.0, 0.5]]  # both axes are all of what was seen: the first is halved
    tree.visit(states, codes, 0)
    assert (tree.nodes[0], tree.axis[0], tree.border[0]) == (3, 0, 0.0)
    assert tree.q[:3].tolist() == [[5.0, 5.0]] * 3
    assert [cell_of(tree.child, tree.axis, tree.border, states, codes, row) for row in range(2)] == [2, 1]
    assert box_around(tree, states, 0).tolist() == [[0.0, -0.5], [1.0, 0.5]]
    halve(tree, np.int32(2), states, 0)  # of which half is left along the first axis
    assert (tree.nodes[0], tree.axis[2], tree.border[2]) == (5, 1, 0.0)
    tree.learn(states, codes, 0, 1, 9.0)
    assert tree.q[3].tolist() == [5.0, 7.0]
    assert (tree.best[3], tree.best[4], tree.arms()) == (1, 0, 6)


def test_a_partition_grows_with_its_visits():
    agent = SPAQLR("CartPole-v0", seed=0, visits=50).learn(samples=49)
    assert agent.arms == 2
    assert agent.learn(samples=1).arms == 2 * 2
    assert agent.learn(samples=2000).arms <= 2 * (1 + 2050 // 50)


class Corridor(gym.Env):
    """Reward 1 for every step, for `length` steps; then the episode ends, or is cut off."""

    observation_space, action_space = spaces.Box(-1.0, 1.0, (1,), np.float64), spaces.Discrete(2)

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


@pytest.mark.parametrize(
    ("length", "terminal", "steps", "value"), [(1, True, 50, 1.0), (1, False, 50, 10.0), (10, False, 1, 10.0)]
)
def test_a_terminal_state_is_worth_nothing_and_one_cut_off_its_value(length, terminal, steps, value):
    agent = SPAQLR(Corridor(length, terminal), seed=0, discount=0.9, steps=steps).learn(200)
    assert agent._best.q[0] == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "CartPole-v0"])
def test_the_policy_is_a_tree_to_read(opaque, env_id):
    agent = SPAQLR(opaque(env_id), seed=0, **CELLS).learn(samples=2000)
    tree, env = agent.policy.tree(), make_env(env_id)
    env.observation_space.seed(1)
    observations = np.array([env.observation_space.sample() for _ in range(500)])
    predicted = np.ravel(agent.predict(observations, deterministic=True)[0])
    assert np.array_equal(np.ravel(tree.predict(observations)[0]), predicted)
    assert "<" in export_text(tree)


def test_a_file_with_a_cell_that_no_state_can_be_in_is_refused(tmp_path):
    agent = SPAQLR("CartPole-v0", seed=0, visits=20).learn(30)
    agent.save(tmp_path / "agent")
    header, arrays = files.read(tmp_path / "agent", "SPAQLR")
    arrays["trainee_border"][0] = 5.0
    files.write(tmp_path / "forged", header, arrays)
    with pytest.raises(ValueError, match="no state can be in"):
        SPAQLR.load(tmp_path / "forged")
