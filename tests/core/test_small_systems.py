"""The problems on [0, 1]: steps by hand, and the compiled twin of each."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from spaql.systems import ambulance, oil, two_step
from spaql.systems.twins import check_twin

IDS = (oil.ID, ambulance.ID, two_step.ID)


@pytest.mark.filterwarnings("ignore:.*Box.*")
@pytest.mark.parametrize("env_id", IDS)
def test_they_are_sound_environments_of_short_episodes_with_rewards_from_zero_to_one(env_id):
    env = gym.make(env_id)
    check_env(env.unwrapped, skip_render_check=True)
    env.action_space.seed(0)
    for seed in range(20):
        env.reset(seed=seed)
        over, steps = False, 0
        while not over:
            _, reward, over, _, _ = env.step(env.action_space.sample())
            assert 0.0 <= reward <= 1.0
            steps += 1
        assert steps == env.spec.max_episode_steps


@pytest.mark.parametrize("env_id", IDS)
def test_their_twins_equal_them_to_the_last_bit(env_id):
    assert check_twin(env_id, 1000, seed=7, reach=1.2) > 100


def returns(env_id, actions, seed=0):
    """The rewards and states of an episode under given actions."""
    env = gym.make(env_id).unwrapped
    env.reset(seed=seed)
    return [(step[1], float(step[0][0])) for step in (env.step(action) for action in actions)]


def test_oil_by_hand():
    f = math.exp(-10 * 0.25)
    found = returns(oil.ID, [[0.5], [0.55], [0.75], [0.75], [0.75]])
    assert found == [
        (f, 0.5),  # stays, and earns what is there
        (pytest.approx(f - 0.05), 0.55),  # a short way costs its length, and is paid from where it began
        (0.0, 0.75),  # exp(-2) is less than a way of 0.2: nothing, not less
        (1.0, 0.75),
        (1.0, 0.75),
    ]


def test_the_ambulance_by_hand():
    calls = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0))).beta(5.0, 2.0, 5)
    found = returns(ambulance.ID, [[0.75], [0.0]])
    assert found[0] == (pytest.approx(1 - (0.25 * 0.25 + 0.75 * abs(0.75 - calls[0]))), calls[0])
    assert found[1] == (pytest.approx(1 - (0.25 * calls[0] + 0.75 * calls[1])), calls[1])


def test_of_two_steps_the_better_first_one_earns_nothing_at_once():
    assert returns(two_step.ID, [0, 1]) == [(two_step.BAIT, two_step.POOR), (0.0, two_step.OVER)]
    assert returns(two_step.ID, [1, 0]) == [(0.0, two_step.RICH), (two_step.PRIZE, two_step.OVER)]
