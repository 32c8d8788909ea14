"""The problems on [0, 1]: steps and optima by hand, and the compiled twin of each."""

import math

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from spaql.paper.audit.optimum import backwards, consequence
from spaql.systems import ambulance, oil, two_step
from spaql.systems.twins import check_twin

IDS = (*oil.IDS, *ambulance.IDS, *two_step.IDS)


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


@pytest.mark.parametrize("env_id", ["spaql/OilSparse10-v0", "spaql/AmbulanceShifting25-v0", "spaql/TwoStep4-v0"])
def test_their_twins_equal_them_to_the_last_bit(env_id):
    assert check_twin(env_id, 1000, seed=7, reach=1.2) > 100


def returns(env_id, actions, seed=0):
    """The rewards and states of an episode under given actions."""
    env = gym.make(env_id).unwrapped
    env.reset(seed=seed)
    return [(step[1], float(step[0][0])) for step in (env.step(action) for action in actions)]


def test_oil_by_hand():
    f = math.exp(-10 * 0.25)
    found = returns("spaql/OilLaplace10-v0", [[0.5], [0.55], [0.75], [0.75], [0.75]])
    assert found == [
        (f, 0.5),  # stays, and earns what is there
        (pytest.approx(f - 0.05), 0.55),  # a short way costs its length, and is paid from where it began
        (0.0, 0.75),  # exp(-2) is less than a way of 0.2: nothing, not less
        (1.0, 0.75),
        (1.0, 0.75),
    ]
    assert returns("spaql/OilQuadratic10-v0", [[0.5]]) == [(1 - 10 * 0.0625, 0.5)]
    (reward, place), *_ = returns("spaql/OilProduct10-v0", [[1.0]])
    assert reward == pytest.approx(max(0.0, math.exp(-10 * 0.2) - 0.5))
    drawn = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0))).standard_normal(5)
    assert place == pytest.approx(min(1.0, max(0.0, 1.0 + math.sqrt(0.1) * 1.5 * drawn[0])))
    assert returns("spaql/OilSparse10-v0", [[0.5]])[0][0] == pytest.approx(0.2)  # on the first peak, a fifth high


def test_the_ambulance_by_hand():
    calls = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0))).random(5)
    found = returns("spaql/AmbulanceUniform25-v0", [[0.75], [0.0]])
    assert found[0] == (pytest.approx(1 - (0.25 * 0.25 + 0.75 * abs(0.75 - calls[0]))), calls[0])
    assert found[1] == (pytest.approx(1 - (0.25 * calls[0] + 0.75 * calls[1])), calls[1])
    env = gym.make("spaql/AmbulanceShifting0-v0").unwrapped
    for seed in range(20):
        env.reset(seed=seed)
        assert all(low <= call <= high for call, (low, high) in zip(env.calls, ambulance.SHIFTS, strict=True))


@pytest.mark.parametrize("intervals", [1, 4])
def test_of_two_steps_the_better_first_one_earns_nothing_at_once(intervals):
    env = gym.make(f"spaql/TwoStep{intervals}-v0").unwrapped
    for seed in range(10):
        x, _ = env.reset(seed=seed)
        bait = int(x[0] * 2 * intervals) % 2
        assert env.step(bait)[:3] == (two_step.POOR, two_step.BAIT, False)
        assert env.step(1)[:3] == (two_step.OVER, 0.0, True)
        env.reset(seed=seed)
        assert env.step(1 - bait)[:3] == (two_step.RICH, 0.0, False)
        assert env.step(0)[:3] == (two_step.OVER, two_step.PRIZE, True)


@pytest.mark.parametrize("env_id", [*oil.IDS, *ambulance.IDS])
def test_the_model_of_the_optimum_is_the_system(env_id):
    env = gym.make(env_id).unwrapped
    env.reset(seed=3)
    drawn = env.drawn if isinstance(env, oil.OilEnv) else env.calls
    for h, a in enumerate((0.5, 0.75, 0.2, 1.0, 0.7)):
        reward, y = consequence(env, h, np.array([[env.state[0]]]), np.array([[a]]), drawn[h])
        state, earned, *_ = env.step([a])
        assert (earned, state[0]) == (pytest.approx(reward.item()), pytest.approx(y.item()))


def test_optima_by_hand():
    def of(env_id):
        return backwards(gym.make(env_id).unwrapped, 40)

    # Oil: to the peak at once, and four times 1 there; who is myopic stays.
    assert of("spaql/OilLaplace1-v0") == pytest.approx((math.exp(-0.25) - 0.25 + 4, 5 * math.exp(-0.25)))
    assert of("spaql/OilLaplace50-v0") == pytest.approx((4.0, 5 * math.exp(-12.5)))
    # The ambulance: who pays for the first way alone stays; for the second alone, waits at the median.
    assert of("spaql/AmbulanceBeta100-v0") == pytest.approx((5.0, 5.0))
    assert of("spaql/AmbulanceUniform0-v0") == pytest.approx((3.75, 3.75), abs=1e-3)
    for env_id in ambulance.IDS:  # the action changes nothing later
        best, myopic = of(env_id)
        assert best == pytest.approx(myopic, abs=1e-12)
