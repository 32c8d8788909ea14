"""The problems on [0, 1]: steps by hand, and the compiled twin of each."""

import math

import gymnasium as gym
import numpy as np
import pytest

from spaql.paper.chapters import small_systems
from spaql.systems import check_twin


@pytest.mark.parametrize("name", ["OilLaplace10", "AmbulanceBeta25", "TwoStep1"])
def test_their_twins_equal_them_to_the_last_bit(name):
    assert check_twin(f"spaql/{name}-v0", 1000, seed=7, reach=1.2) > 100


def returns(name, actions):
    """The rewards and states of an episode under given actions."""
    env = gym.make(f"spaql/{name}-v0").unwrapped
    env.reset(seed=0)
    return [(step[1], float(step[0][0])) for step in (env.step(action) for action in actions)]


def test_rewards_by_hand():
    f = math.exp(-10 * 0.25)
    assert returns("OilLaplace10", [[0.5], [0.55], [0.75], [0.75]]) == [
        (f, 0.5),  # stays, and earns what is there
        (pytest.approx(f - 0.05), 0.55),  # a short way costs its length, and is paid from where it began
        (0.0, 0.75),  # exp(-2) is less than a way of 0.2: nothing, not less
        (1.0, 0.75),
    ]
    calls = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0))).beta(5.0, 2.0, 5)
    found = returns("AmbulanceBeta25", [[0.75], [0.0]])
    assert found[0] == (pytest.approx(1 - (0.25 * 0.25 + 0.75 * abs(0.75 - calls[0]))), calls[0])
    assert found[1] == (pytest.approx(1 - (0.25 * calls[0] + 0.75 * calls[1])), calls[1])
    assert returns("TwoStep1", [0, 1]) == [(small_systems.BAIT, small_systems.POOR), (0.0, small_systems.OVER)]
    assert returns("TwoStep1", [1, 0]) == [(0.0, small_systems.RICH), (small_systems.PRIZE, small_systems.OVER)]
