"""Networks: their environments against Stable-Baselines3's, and what a job of each gives."""

import dataclasses

import numpy as np
import pytest

from spaql.paper.baselines.settings import whole_episodes
from spaql.paper.engine.job import Job
from tests.conftest import same_sines

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore:.*out of date.*")]


@pytest.fixture(scope="module")
def networks():
    """The module that trains networks: importing torch takes seconds, which the quick tests do without."""
    pytest.importorskip("sb3_contrib")
    from spaql.paper.baselines import networks

    return networks


@same_sines
@pytest.mark.parametrize("system", ["Pendulum-v1", "CartPole-v0"])
def test_the_compiled_vector_equals_sb3s(networks, system):
    from stable_baselines3.common.env_util import make_vec_env

    ours, theirs = networks.CompiledVecEnv(system, 5, seed=3), make_vec_env(system, 5, seed=3)
    assert np.array_equal(ours.reset(), theirs.reset())
    ours.action_space.seed(0)
    ended = 0
    for _ in range(2 * ours.limit + 50):
        actions = np.array([ours.action_space.sample() for _ in range(5)])
        *ours_now, our_infos = ours.step(actions)
        *theirs_now, their_infos = theirs.step(actions)
        for one, other in zip(ours_now, theirs_now, strict=True):
            assert np.array_equal(one, other)
            assert one.dtype == other.dtype
        for mine, sb3s in zip(our_infos, their_infos, strict=True):
            assert mine["TimeLimit.truncated"] == sb3s["TimeLimit.truncated"]
            assert ("terminal_observation" in mine) == ("terminal_observation" in sb3s)
            if "terminal_observation" in mine:
                ended += 1
                assert np.array_equal(mine["terminal_observation"], sb3s["terminal_observation"])
                assert mine["episode"]["r"] == pytest.approx(sb3s["episode"]["r"], abs=1e-5)
                assert mine["episode"]["l"] == sb3s["episode"]["l"]
    assert ended >= 10


def test_a_job_of_trpo(networks):
    job = Job("TRPO", "CartPole-v0", 0.0, 1, 1, 5, 0, fresh=10)
    trained = networks.compute(job)
    assert trained.history["steps"].sum() == 4000
    assert (len(trained.fresh), len(trained.quiet)) == (10, 10)
    assert len(trained.episode["states"]) == len(trained.episode["rewards"]) + 1
    assert np.array_equal(trained.fresh, networks.compute(job).fresh)  # same seed, same numbers
    assert not np.array_equal(trained.fresh, networks.compute(dataclasses.replace(job, agent=1)).fresh)


def test_a_job_of_ppo_is_evaluated_on_its_way(networks):
    trained = networks.compute(Job("PPO", "CartPole-v0", 0.0, 2, 3, 5, 0, fresh=4))
    assert len(trained.history) == 2
    assert np.isfinite(trained.history["rewards"]).all()
    assert len(trained.fresh) == 4


def test_an_episode_is_whole_where_the_samples_allow_it():
    collected = {limit: tuple(whole_episodes(limit).values()) for limit in (200, 500, 999, 7000)}
    assert collected == {200: (20, 200), 500: (8, 500), 999: (4, 1000), 7000: (1, 4000)}


def test_a_player_draws_gsdes_noise_as_training_does(networks):
    agent = networks.make_model(networks.CompiledVecEnv("Pendulum-v1", 2, 0), "TRPO tuned", "Pendulum-v1", 0)
    agent.policy.log_std.data -= 4.0  # so that no action is clipped
    agent.policy.reset_noise(2)
    player = networks.Player(agent)
    states = np.tile(np.array([0.6, 0.8, 1.0], np.float32), (50, 1))
    kept = np.array([agent.predict(states)[0] for _ in range(9)])
    assert np.ptp(kept) == 0.0  # what SB3 does: one draw for every row and every step
    drawn = np.array([player.predict(states)[0][:, 0] for _ in range(400)]).reshape(100, 4, 50)
    assert np.ptp(drawn, axis=1).max() == 0.0  # four steps with the same noise,
    assert (drawn[1:, 0] != drawn[:-1, 0]).all()  # then another
    distribution = agent.policy.get_distribution(agent.policy.obs_to_tensor(states[:1])[0]).distribution
    mean, deviation = distribution.mean.item(), distribution.stddev.item()
    assert drawn.mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(5000))
    assert drawn.std() == pytest.approx(deviation, rel=0.05)
    assert np.allclose(player.predict(states, deterministic=True)[0], mean)
