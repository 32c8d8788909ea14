"""The cart with two poles: CartPole if one of them has no mass, and its compiled twin."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from spaql.systems.twins import check_twin
from spaql.systems.two_poles import TwoPolesEnv


@pytest.mark.filterwarnings("ignore:.*Box.*")
def test_it_is_a_sound_environment_and_its_twin_equals_it():
    check_env(gym.make("spaql/TwoPoles-v0").unwrapped, skip_render_check=True)
    assert check_twin("spaql/TwoPoles-v0", 2000, seed=7) > 20


@pytest.mark.parametrize("pole", [1, 2])
def test_with_one_pole_of_no_mass_it_is_gymnasiums_cartpole(pole):
    weights, rng = [0.0, 0.0], np.random.default_rng(0)
    weights[pole - 1] = 0.1
    ours, theirs = TwoPolesEnv(lengths=(0.5, 0.5), masses=tuple(weights)), gym.make("CartPole-v1").unwrapped
    ours.reset(seed=0)
    theirs.reset(seed=0)
    same = [0, 3, pole, pole + 3]  # CartPole has each speed beside its place
    theirs.state = ours.state[same]
    for _ in range(20):
        action = int(rng.integers(2))
        ours.step(action)
        theirs.step(action)
        assert ours.state[same] == pytest.approx(theirs.state, abs=1e-12)
