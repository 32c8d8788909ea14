"""The TRPO baseline: its environments against Gymnasium's, its numbers against themselves."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest

from spaql.paper.frames import finals, histories
from spaql.paper.runs import provenance, runner, store
from spaql.paper.runs.job import Job
from spaql.paper.runs.network import Network, load_network, network_of, save_network
from spaql.paper.runs.network_settings import whole_episodes
from spaql.paper.runs.runner import run
from spaql.paper.studies import study
from tests.conftest import same_sines

pytestmark = [
    pytest.mark.long,
    pytest.mark.usefixtures("trpo"),
    pytest.mark.filterwarnings("ignore:.*out of date.*"),
]
SYSTEMS = ["Pendulum-v1", "CartPole-v0"]  # of the paper
OTHERS = ["CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]


@pytest.fixture(scope="module")
def trpo():
    """The module that trains TRPO: importing torch takes seconds, which the quick tests do without."""
    return pytest.importorskip("spaql.paper.runs.sb3")


@same_sines
@pytest.mark.parametrize("system", SYSTEMS + OTHERS)
def test_the_compiled_vector_equals_sb3s(trpo, system):
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env.util import obs_space_info

    ours, theirs = trpo.CompiledVecEnv(system, 5, seed=3), make_vec_env(system, 5, seed=3)
    assert np.array_equal(ours.reset(), theirs.reset())
    ours.action_space.seed(0)
    ended = 0
    for _ in range(2 * ours.limit + 50):
        actions = np.array([ours.action_space.sample() for _ in range(5)])
        for one, other, name in zip(ours.step(actions), theirs.step(actions), ("o", "r", "d", "infos"), strict=True):
            if name != "infos":
                assert np.array_equal(one, other), name
                assert one.dtype == other.dtype
                continue
            for mine, sb3s in zip(one, other, strict=True):
                assert mine["TimeLimit.truncated"] == sb3s["TimeLimit.truncated"]
                assert ("terminal_observation" in mine) == ("terminal_observation" in sb3s)
                if "terminal_observation" in mine:
                    ended += 1
                    assert np.array_equal(mine["terminal_observation"], sb3s["terminal_observation"])
                    assert mine["episode"]["r"] == pytest.approx(sb3s["episode"]["r"], abs=1e-5)
                    assert mine["episode"]["l"] == sb3s["episode"]["l"]
    assert ended >= 10
    assert obs_space_info(ours.observation_space)[1] == obs_space_info(theirs.observation_space)[1]
    # A seed set later counts from the next reset on, as with SB3's.
    ours.seed(9), theirs.seed(9)
    assert np.array_equal(ours.reset(), theirs.reset())
    assert np.array_equal(ours.reset(), theirs.reset())


def test_a_system_that_is_not_compiled_is_refused(trpo):
    with pytest.raises(ValueError, match="no registered system"):
        trpo.CompiledVecEnv("Drift-v0", 2, seed=0)


@pytest.mark.parametrize("algorithm", provenance.TRPO)
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_record(trpo, algorithm, system):
    job = Job(algorithm, system, 0.0, 1, 1, 5, 0, fresh=30, record=True)
    record = trpo.compute(job)
    settings = trpo.settings_of(algorithm, system)
    batch = settings["n_envs"] * settings["n_steps"]
    assert record.history["steps"].sum() == 4000 // batch * batch
    assert np.isfinite(record.history["rewards"]).all()
    assert record.fresh.shape == (4,)
    assert record.rewards.shape == (30,)
    assert len(record.episode["states"]) == len(record.episode["rewards"]) + 1
    if (algorithm, system) == ("TRPO", "CartPole-v0"):  # the canaries compute all of them a second time
        assert record.digest() == trpo.compute(job).digest()  # same seed, same numbers
        assert record.digest() != trpo.compute(dataclasses.replace(job, agent=1)).digest()


@pytest.mark.parametrize("algorithm", provenance.TRPO)
@pytest.mark.parametrize("system", OTHERS)
def test_it_runs_on_every_classic_control_task(trpo, algorithm, system):
    iterations = 2 if algorithm == "TRPO tuned" else 1  # whose batch may be more than an iteration's 4,000 samples
    job = Job(algorithm, system, 0.0, iterations, 1, 5, 0, fresh=3, record=True)
    record = trpo.compute(job)
    assert np.isfinite(record.history["rewards"]).all()  # some episode ends
    assert record.fresh.shape == (4,)
    assert len(record.episode["states"]) == len(record.episode["rewards"]) + 1


def test_an_episode_is_whole_where_the_samples_allow_it():
    collected = {limit: tuple(whole_episodes(limit).values()) for limit in (200, 500, 999, 7000)}
    assert collected == {200: (20, 200), 500: (8, 500), 999: (4, 1000), 7000: (1, 4000)}


def test_normalised_observations_reach_player_and_network_as_they_reached_the_agent(trpo):
    job = Job("TRPO tuned", "MountainCar-v0", 0.0, 1, 1, 5, 0)
    agent, _ = trpo.train(job)
    normal = agent.get_vec_normalize_env()
    states = np.random.default_rng(0).uniform([-1.2, -0.07], [0.6, 0.07], (200, 2)).astype(np.float32)
    seen = (states - normal.obs_rms.mean) / np.sqrt(normal.obs_rms.var + 1e-8)
    assert np.abs(seen).max() > 2  # they look otherwise
    expected, _ = agent.predict(seen.astype(np.float32), deterministic=True)
    assert np.array_equal(trpo.Player(agent).predict(states, deterministic=True)[0], expected)
    network = network_of(agent)
    assert (network.predict(states)[0] == expected).mean() > 0.99  # but for ties within a rounding
    assert len(set(expected.tolist())) > 1


def test_the_network_of_normalised_observations_is_stored_whole(tmp_path):
    arrays = [np.ones((2, 3), np.float32), np.zeros(3, np.float32), np.zeros(0, np.float32), np.zeros(0, np.float32)]
    network = Network((arrays[0],), (arrays[1],), *arrays[2:], np.array([0.5, 1.0]), np.array([2.0, 3.0]))
    job = Job("TRPO tuned", "MountainCar-v0", 0.0, 1, 1, 5, 0)
    save_network(tmp_path / "network.npz", job, network, None)
    again = load_network(tmp_path / "network.npz", job)
    assert np.array_equal(again.mean, network.mean)
    assert np.array_equal(again.deviation, network.deviation)
    assert again.weights == 6 + 3 + 4


def test_the_settings_are_garages_where_sb3_has_them(trpo):
    agent = trpo.make_model(trpo.CompiledVecEnv("Pendulum-v1", 20, 0), "TRPO", "Pendulum-v1", 0)
    assert agent.n_steps * agent.n_envs == trpo.SAMPLES
    assert (agent.gamma, agent.gae_lambda, agent.target_kl) == (0.99, 0.98, 0.01)
    assert (agent.cg_max_steps, agent.cg_damping) == (10, 1e-5)
    assert (agent.line_search_max_iter, agent.line_search_shrinking_factor) == (15, 0.8)
    assert [layer.out_features for layer in agent.policy.mlp_extractor.policy_net[::2]] == [32, 32]
    assert agent.policy.log_std.exp().item() == 1.0


def test_a_player_draws_gsdes_noise_as_training_does(trpo):
    agent = trpo.make_model(trpo.CompiledVecEnv("Pendulum-v1", 2, 0), "TRPO tuned", "Pendulum-v1", 0)
    agent.policy.log_std.data -= 4.0  # so that no action is clipped
    agent.policy.reset_noise(2)
    player = trpo.Player(agent)
    states = np.tile(np.array([0.6, 0.8, 1.0], np.float32), (50, 1))
    kept = np.array([agent.predict(states)[0] for _ in range(9)])
    assert np.ptp(kept) == 0.0  # what SB3 does: one draw for every row and every step
    assert np.abs(kept).max() < 2.0
    drawn = np.array([player.predict(states)[0][:, 0] for _ in range(400)]).reshape(100, 4, 50)
    assert np.ptp(drawn, axis=1).max() == 0.0  # four steps with the same noise,
    assert (drawn[1:, 0] != drawn[:-1, 0]).all()  # then another
    distribution = agent.policy.get_distribution(agent.policy.obs_to_tensor(states[:1])[0]).distribution
    mean, deviation = distribution.mean.item(), distribution.stddev.item()
    assert drawn.mean() == pytest.approx(mean, abs=4 * deviation / np.sqrt(5000))
    assert drawn.std() == pytest.approx(deviation, rel=0.05)
    assert np.allclose(player.predict(states, deterministic=True)[0], mean)
    assert player.predict(states[0])[0].shape == (1,)


def test_a_player_without_gsde_is_the_agent(trpo):
    agent = trpo.make_model(trpo.CompiledVecEnv("Pendulum-v1", 20, 0), "TRPO", "Pendulum-v1", 0)
    states = np.random.default_rng(0).uniform(-1, 1, (30, 3)).astype(np.float32)
    played = []
    for policy in (agent, trpo.Player(agent)):
        trpo.torch.manual_seed(0)
        played.append([policy.predict(states)[0] for _ in range(6)])
    assert np.array_equal(*played)


def test_workers_do_not_change_the_numbers_and_what_is_stored_is_not_computed_again(tmp_path, monkeypatch):
    jobs = [job for job in study("trpo", "smoke") if job.algorithm == "TRPO"]
    two = run(jobs, workers=2, store=tmp_path, progress_bar=False)
    (one,) = run(jobs[-1:], workers=1, store=None, progress_bar=False)
    assert one.digest() == two[-1].digest()
    # Half of them lost, as after a kill: only those are computed.
    for job in jobs[::2]:
        store.record_path(tmp_path, job).unlink()
    written = []
    save = store.save_record
    monkeypatch.setattr(runner, "save_record", lambda *given: written.append(given[1].job) or save(*given))
    again = run(jobs, workers=2, store=tmp_path, progress_bar=False)
    assert set(written) == set(jobs[::2])
    assert [r.digest() for r in again] == [r.digest() for r in two]
    assert histories(two).groupby("system").size().to_dict() == {"CartPole-v0": 2, "Pendulum-v1": 2}
    assert list(finals(two).fresh_deterministic) == [record.fresh[2] for record in two]
    origin = store.load_origin(tmp_path, jobs[0])
    assert "torch" in origin["versions"]
    assert origin["platform"] == provenance.platform_key("trpo")


def test_without_sb3_contrib_the_message_says_what_to_install():
    code = "import sys; sys.modules['sb3_contrib'] = None; import spaql; import spaql.paper.runs.sb3"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert "pip install 'spaql[trpo]'" in done.stderr
