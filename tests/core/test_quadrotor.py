"""The planar quadrotor: its steps by hand, and its compiled twin."""

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from spaql.systems.twins import check_twin


def flown(*actions):
    """The state, the last reward and whether it is over after some actions, from hovering in the middle."""
    env = gym.make("spaql/Quadrotor-v0").unwrapped
    env.reset(seed=0)
    env.state[:] = 0.0
    for action in actions:
        _, reward, over, _, _ = env.step(action)
    return env.state, reward, over


@pytest.mark.filterwarnings("ignore:.*Box.*")
def test_it_is_a_sound_environment_and_its_twin_equals_it():
    check_env(gym.make("spaql/Quadrotor-v0").unwrapped, skip_render_check=True)
    assert check_twin("spaql/Quadrotor-v0", 2000, seed=7) > 20


def test_it_falls_rises_and_turns():
    assert flown(0)[0].tolist() == [0, 0, 0, 0, pytest.approx(-9.81 * 0.04), 0]
    assert flown(3)[0][4] == pytest.approx((15 - 9.81) * 0.04)
    for action, way in ((1, -1), (2, 1)):  # the left rotor turns it to the right, and the other way round
        assert flown(action)[0][5] == pytest.approx(way * 7.5 * 0.2 / 0.25 * 0.04)
    state, reward, over = flown(2, 2, 2)
    assert state[3] < 0 < state[2]  # tilted to the left, it drifts to the left
    assert reward == pytest.approx(1 - (state[0] ** 2 + state[1] ** 2) / 18)
    assert not over
    assert flown(*[0] * 25)[1:] == (0.0, True)  # a second without rotors is a fall of five metres
