"""For one's own problem: horizons, wrappers, callbacks, luck, bounds, names, and environments that agents share."""

import csv
import logging
import pickle
import re
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, Random, systems
from spaql.hooks import checkpoint, keep_best, log_csv, plot_learning
from spaql.partition import crowded_cells
from spaql.policies import evaluate, export_c, export_python, simplify
from spaql.policies.tree import variables_of
from spaql.systems import ScaleReward, make_env
from tests.conftest import Opaque, same_sines


class Room(gym.Env):
    """An air temperature in kelvin that a heater and the cold outside change; it says no bounds."""

    metadata = {"observations": {"air": "K"}, "action": {"power": "W"}, "choices": (0.0, 500.0, 1000.0)}  # noqa: RUF012
    observation_space = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, leak=0.05):
        self.leak = leak

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.air = self.np_random.uniform(285.0, 300.0)
        return np.array([self.air]), {}

    def step(self, action):
        self.air += 0.8 * action - self.leak * (self.air - 275.0) + 0.1 * self.np_random.standard_normal()
        return np.array([self.air]), -abs(self.air - 294.0), False, False, {}


def limited(steps=50, **kwargs):
    return gym.wrappers.TimeLimit(Room(**kwargs), steps)


BOUNDS = [(270.0, 320.0)]


def room(seed=0, algorithm=SPAQL, env=None, **parameters):
    own = {"xi": 1, "bounds": BOUNDS} | parameters
    own = {name: own[name] for name in own if name != "xi" or algorithm is not Random}
    return algorithm(env or limited(), seed=seed, **own)


# ---------------------------------------------------------------------------------------------------------------------
# Horizon


def test_the_horizon_is_the_environments_own_limit():
    assert room(env=limited(70)).parameters["horizon"] == 70
    assert Random("CartPole-v1").parameters["horizon"] == 500
    for paper in ("Pendulum-v1", "CartPole-v0", "spaql/PendulumScaled-v1", "spaql/PendulumDiscrete-v1"):
        assert Random(paper).parameters["horizon"] == 200
    assert room(env=limited(70), horizon=30).learn(1, 1).history.steps[0] == 30


def test_where_nothing_but_the_papers_horizon_ends_an_episode_it_is_said_once():
    agent = room(env=Room())
    with pytest.warns(UserWarning, match="episodes come to 200 steps, the paper's horizon.*Give horizon="):
        agent.learn(1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.learn(1, 1)
        room(env=Room(), horizon=200).learn(1, 1)  # which was asked for
        room(env=limited(200)).learn(1, 1)


@same_sines
def test_rollouts_that_run_into_the_papers_horizon_are_said_too():
    endless = gym.make("CartPole-v1").unwrapped
    with pytest.warns(UserWarning, match="episodes come to 200 steps"):
        agent = SPAQL(endless, xi=0, seed=0).learn(500, 20)
    assert agent.history.steps.max() < 200  # of those that it learnt from none did
    with pytest.warns(UserWarning, match="episodes come to 200 steps"):
        Random(Room(), seed=0).evaluate(1)


def test_evaluation_returns_lengths_too():
    agent = SPAQL("CartPole-v0", xi=4, seed=0).learn(3, 2)
    rewards, lengths = agent.evaluate(20, seed=1, lengths=True)
    assert np.array_equal(rewards, lengths)  # a reward of 1 for every step
    assert np.array_equal(rewards, agent.evaluate(20, seed=1))
    rewards, lengths = room().evaluate(3, seed=1, lengths=True)
    assert lengths.tolist() == [50, 50, 50]


# ---------------------------------------------------------------------------------------------------------------------
# Compiled or not


def test_watching_wrappers_stay_compiled_and_the_log_names_one_that_hides_the_system(caplog):
    systems.say_interpreted.cache_clear()
    env = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(make_env("CartPole-v0"), 150))
    assert SPAQL(env, xi=4).compiled
    assert not caplog.records
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert not SPAQL(Opaque(env), xi=4).compiled
        assert not SPAQL(gym.wrappers.TransformReward(env, lambda r: 2 * r), xi=4).compiled
        assert not SPAQL(limited(), xi=4).compiled  # of no registered system: nothing could be better
    first, second = [record.getMessage() for record in caplog.records]
    assert first.startswith("CartPole runs interpreted")
    assert "its wrapper Opaque hides it" in first
    assert "TransformReward hides it; spaql.systems.ScaleReward does not" in second


@same_sines
@pytest.mark.parametrize("env_id", ["CartPole-v0", "Pendulum-v1"])
def test_scaled_rewards_are_compiled_and_the_same_bits(env_id):
    def scaled(env):
        return ScaleReward(env, scale=0.3, shift=-0.7)

    agents = [SPAQL(scaled(env), xi=1, seed=0) for env in (make_env(env_id), Opaque(make_env(env_id)))]
    assert [agent.compiled for agent in agents] == [True, False]
    assert np.array_equal(agents[0].learn(6, 2).history, agents[1].learn(6, 2).history)
    assert np.array_equal(agents[0].evaluate(3, seed=1), agents[1].evaluate(3, seed=1))
    assert not SPAQL(scaled(scaled(make_env(env_id))), xi=1).compiled  # two at once are not


# ---------------------------------------------------------------------------------------------------------------------
# Callbacks


@pytest.mark.parametrize("env", ["CartPole-v0", "room"])
def test_a_callback_sees_every_iteration_may_evaluate_and_stop_and_changes_no_number(env, tmp_path):
    def make():
        return room() if env == "room" else SPAQL(env, xi=4, seed=0)

    seen = []

    def watch(agent):
        seen.append((len(agent.history), agent.history.rewards[-1], agent.evaluate(2, seed=3).mean()))
        agent.save(tmp_path / "agent.npz")
        return len(agent.history) < 12

    agent = make().learn(30, 3, callback=[watch, log_csv(tmp_path / "log.csv")])
    whole = make().learn(30, 3).history
    assert [entry[0] for entry in seen] == list(range(1, 13))
    assert np.array_equal(agent.history, whole[:12])
    loaded = SPAQL.load(tmp_path / "agent.npz", make_env(env) if env != "room" else limited())
    assert np.array_equal(loaded.learn(18, 3).history, whole)
    assert np.array_equal(agent.learn(18, 3).history, whole)
    with (tmp_path / "log.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["iteration"]) for row in rows] == list(range(1, 13))
    assert [float(row["rewards"]) for row in rows] == whole.rewards[:12].tolist()


def test_a_comparison_of_numpys_stops_learning_too():
    assert len(room().learn(5, 2, callback=lambda agent: np.float64(len(agent.history)) < 2).history) == 2
    assert len(room().learn(3, 2, callback=lambda agent: 0).history) == 3  # no answer to whether it goes on


def test_learning_stops_at_a_reward():
    whole = SPAQL("CartPole-v0", xi=20, seed=0).learn(100, 5).history
    goal = whole.rewards[60]
    agent = SPAQL("CartPole-v0", xi=20, seed=0).learn(100, 5, stop_at=goal)
    first = int(np.argmax(whole.rewards >= goal))
    assert np.array_equal(agent.history, whole[: first + 1])


def test_checkpoints_are_written_now_and_then(tmp_path):
    def fail(agent):
        if len(agent.history) == 8:
            raise RuntimeError("the power is cut")

    agent = room()
    with pytest.raises(RuntimeError, match="power is cut"):
        agent.learn(20, 2, callback=[checkpoint(tmp_path / "agent.npz", every=3), fail])
    assert len(agent.history) == 8  # as after any failure, the last full iteration
    loaded = SPAQL.load(tmp_path / "agent.npz", limited())
    assert len(loaded.history) == 6
    assert np.array_equal(loaded.learn(14, 2).history, room().learn(20, 2).history)


def test_a_callback_does_not_copy_the_agent_after_every_short_iteration(monkeypatch):
    agent, copies = SPAQLR("CartPole-v0", seed=0).learn(1), []
    copied = agent._state
    monkeypatch.setattr(agent, "_state", lambda: copies.append(1) or copied())
    agent.learn(300, callback=lambda agent: None)
    assert len(copies) < 100  # five a second, however slow the machine is


def test_what_a_callback_raises_leaves_the_iteration_before_it():
    def stop(agent):
        if len(agent.history) == 8:
            raise KeyboardInterrupt

    agent = SPAQLR("CartPole-v0", seed=0)
    with pytest.raises(KeyboardInterrupt):
        agent.learn(20, callback=stop)
    assert len(agent.history) == 8
    assert np.array_equal(agent.learn(12).history, SPAQLR("CartPole-v0", seed=0).learn(20).history)


def test_the_best_agent_is_kept_and_an_interrupted_run_goes_on_with_it(tmp_path):
    path, saved = tmp_path / "best.npz", tmp_path / "agent.npz"
    means = []

    def watch(agent):
        means.append(agent.evaluate(20, seed=0).mean())
        if len(means) == 25:
            agent.save(saved)

    whole = SPAQLR("CartPole-v0", seed=0).learn(60, callback=[keep_best(path, 1, 20), watch])
    kept = SPAQLR.load(path)
    assert kept.evaluate(20, seed=0).mean() == max(means)
    assert len(kept.history) == np.argmax(means) + 1 < 60
    path.unlink()
    SPAQLR("CartPole-v0", seed=0).learn(25, callback=keep_best(path, 1, 20))
    SPAQLR.load(saved).learn(35, callback=keep_best(path, 1, 20))
    assert repr(SPAQLR.load(path)) == repr(SPAQLR.load(path)) != repr(whole)
    assert SPAQLR.load(path).evaluate(20, seed=0).mean() == max(means)
    with pytest.raises(ValueError, match="holds the best of another run.*: give another path"):
        SPAQLR("CartPole-v0", seed=1).learn(1, callback=keep_best(path, 1, 20))


def test_a_log_repeats_no_iteration_after_a_resume_and_refuses_another_run(tmp_path):
    path = tmp_path / "log.csv"
    agent = SPAQL("CartPole-v0", xi=4, seed=0)
    agent.learn(8, 2, callback=[checkpoint(tmp_path / "agent.npz", every=5), log_csv(path)])
    with path.open("a", encoding="utf-8") as file:
        file.write("9,3.5")  # the power was cut
    SPAQL.load(tmp_path / "agent.npz").learn(10, 2, callback=log_csv(path))
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["iteration"]) for row in rows] == list(range(1, 16))
    assert [float(row["rewards"]) for row in rows] == agent.learn(7, 2).history.rewards.tolist()
    with pytest.raises(ValueError, match="iteration 1 in .* is of another run"):
        SPAQL("CartPole-v0", xi=4, seed=1).learn(1, 2, callback=log_csv(path))


def test_learning_curves_of_several_agents_are_drawn():
    agents = SPAQL("CartPole-v0", xi=4, seed=0).learn(5, 2), SPAQLR("CartPole-v0", seed=0).learn(30)
    first, second = plot_learning(*agents).axes[0].get_lines()
    assert first.get_ydata().tolist() == pytest.approx(agents[0].history.rewards)
    assert second.get_xdata()[-1] == agents[1].num_timesteps
    assert second.get_ydata()[-1] == pytest.approx(agents[1].history.rewards[-10:].mean())


def test_names_that_stable_baselines_has(caplog):
    agent = SPAQLR("CartPole-v0", seed=0).learn(total_timesteps=400)
    assert agent.num_timesteps == 400
    again = SPAQLR("CartPole-v0", seed=0, **agent.get_params()).learn(samples=400)
    assert np.array_equal(agent.history, again.history)
    longer = make_env("CartPole-v0")
    longer.unwrapped.length = 0.6
    agent.set_env(longer)
    assert agent.env is longer
    assert agent.num_timesteps == 400
    assert agent.learn(3).history[:-3].tolist() == again.history.tolist()
    assert agent.history.tolist() != again.learn(3).history.tolist()
    with pytest.raises(ValueError, match="expected an environment with Box"):
        agent.set_env("MountainCar-v0")
    with pytest.raises(ValueError, match="give either iterations or samples"):
        agent.learn(3, total_timesteps=3)
    agent.learn(20_000, callback=lambda agent: False)
    assert "20,000 iterations are episodes, of up to 200 steps each: did you mean samples=20000?" in caplog.text


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"callback": 3}, TypeError, "callback must be a function of the agent"),
        ({"callback": [3]}, TypeError, "callback must be a function of the agent, or several in a list"),
        ({"stop_at": "high"}, ValueError, "stop_at must be a finite number"),
        ({"reevaluations": -1}, ValueError, "reevaluations must be a whole number of at least 0"),
        ({"callback": lambda agent: agent.learn(1)}, RuntimeError, "learning already, this is its callback"),
    ],
)
def test_bad_hooks_are_refused(options, error, says):
    with pytest.raises(error, match=says):
        SPAQL("CartPole-v0", xi=4, seed=0).learn(2, 1, **options)
    with pytest.raises(ValueError, match="AQL keeps its last agent, not its best: reevaluations must be 0"):
        AQL("CartPole-v0", xi=4).learn(1, reevaluations=2)


# ---------------------------------------------------------------------------------------------------------------------
# Luck


@same_sines
def test_the_best_agent_evaluated_again_is_the_same_compiled_and_interpreted_and_after_loading(tmp_path):
    def learn(agent):
        return agent.learn(8, 2, reevaluations=3)

    agents = [learn(SPAQL(env, xi=4, seed=0)) for env in (make_env("CartPole-v0"), Opaque(make_env("CartPole-v0")))]
    assert np.array_equal(agents[0].history, agents[1].history)
    assert not np.array_equal(agents[0].history, SPAQL("CartPole-v0", xi=4, seed=0).learn(8, 2).history)
    agents[0].save(tmp_path / "agent.npz")
    loaded = SPAQL.load(tmp_path / "agent.npz", make_env("CartPole-v0"))
    whole = SPAQL("CartPole-v0", xi=4, seed=0).learn(16, 2, reevaluations=3).history
    assert np.array_equal(learn(loaded).history, whole)
    assert np.array_equal(learn(agents[1]).history, whole)
    assert whole.evaluation_steps.sum() >= 17 * (2 + 3)  # those episodes are counted
    loaded.learn(2, 2).save(tmp_path / "agent.npz")  # not evaluated again any more
    assert np.array_equal(SPAQL.load(tmp_path / "agent.npz", make_env("CartPole-v0")).history, loaded.history)


def test_the_best_of_few_rollouts_is_luck_and_evaluating_it_again_shows_it():
    def claimed_and_fresh(**options):
        agents = [SPAQL("CartPole-v0", xi=20, seed=seed).learn(200, 2, **options) for seed in range(6)]
        return [(agent.history.rewards[-1], agent.evaluate(500, seed=9).mean()) for agent in agents]

    def excess(pairs):
        return np.mean([claimed - fresh for claimed, fresh in pairs])

    lucky, sober = claimed_and_fresh(), claimed_and_fresh(reevaluations=2)
    assert excess(lucky) > 20
    assert abs(excess(sober)) < excess(lucky) / 2


def test_what_is_shown_of_an_agent_has_the_fresh_mean_beside_the_best():
    agent = SPAQL("Pendulum-v1", xi=4, seed=0)
    assert repr(agent) == "SPAQL(Pendulum-v1, 0 iterations, 1 arms)"
    agent.learn(10, 2)
    assert repr(agent).endswith(f"best mean {agent.history.rewards[-1]:.5g})")
    fresh = agent.evaluate(1000, seed=1).mean()
    assert repr(agent).endswith(f"{fresh:.5g} on 1,000 fresh episodes)")
    best, seen = agent.history.rewards[-1], []

    def watch(agent):
        seen.append(agent.history.rewards[-1] == best)
        assert ("fresh" in repr(agent)) == seen[-1]  # as long as it is the same policy
        return seen[-1]

    agent.learn(500, 2, callback=watch)
    assert seen[0] > seen[-1]
    assert "last episode" in repr(SPAQLR("CartPole-v0", seed=0).learn(3))
    assert "last mean" in repr(SPAQLR("CartPole-v0", seed=0).learn(3, 2))


def test_a_bar_has_the_fresh_mean_beside_the_best_and_changes_no_number(monkeypatch, capsys):
    monkeypatch.setattr("spaql.learning.GLANCE", -1.0)
    shown, silent = (SPAQL("CartPole-v0", xi=4, seed=0).learn(20, 5, progress_bar=bar) for bar in (True, False))
    assert re.search(r"best=[\d.]+, fresh=[\d.]+, arms=\d+", capsys.readouterr().err)
    assert np.array_equal(shown.history, silent.history)
    assert np.array_equal(shown.learn(5, 5).history, silent.learn(5, 5).history)


def test_a_bar_does_not_show_the_fresh_mean_of_an_earlier_policy(monkeypatch, capsys):
    monkeypatch.setattr("spaql.learning.GLANCE", 1e9)
    agent = SPAQL("CartPole-v0", xi=20, seed=0).learn(5, 2)
    agent.evaluate(10, seed=1)
    before = agent.history.rewards[-1]
    assert agent.learn(300, 2, progress_bar=True).history.rewards[-1] > before
    assert "fresh" not in capsys.readouterr().err.splitlines()[-1]


def test_a_bar_that_counts_samples_shows_return_and_arms(capsys):
    SPAQLR("CartPole-v0", seed=0).learn(samples=500, progress_bar=True)
    assert re.search(r"500/500 .*return=[\d.]+, arms=\d+", capsys.readouterr().err)


# ---------------------------------------------------------------------------------------------------------------------
# Observations


def test_where_all_is_one_state_to_the_agent_it_is_said_and_bounds_help(tmp_path):
    with pytest.warns(UserWarning, match="nearly all observations fall into one cell.*Give bounds="):
        blind = SPAQL(limited(200), xi=1, seed=0).learn(20, 2)
    with pytest.warns(UserWarning, match="nearly all observations fall into one cell.*Give bounds="):
        SPAQLR(limited(200), seed=0, replays=1).learn(20)
    with pytest.warns(UserWarning, match="nearly all observations fall into one cell.*Give bounds="):
        AQL(limited(20), xi=1, seed=0).learn(320, 1)
    random = Random(limited(200), seed=0).evaluate(100, seed=1).mean()
    assert abs(blind.evaluate(100, seed=1).mean() - random) < 0.5 * abs(random)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = SPAQL(limited(200), xi=1, seed=0, bounds=BOUNDS).learn(60, 5)
    assert agent.evaluate(100, seed=1).mean() > 0.5 * random
    agent.save(tmp_path / "agent.npz")
    loaded = SPAQL.load(tmp_path / "agent.npz", limited(200))
    assert loaded.parameters["bounds"] == [[270.0, 320.0]]
    assert np.array_equal(loaded.learn(3, 2).history, agent.learn(3, 2).history)


class Leaving(Room):
    """A room whose air is outside its bounds where an episode ends."""

    def step(self, action):
        observation, reward, *_ = super().step(action)
        return observation, reward, bool(self.air > 300.0), False, {}


def test_an_observation_outside_its_bounds_is_said_once_and_not_where_the_episode_ends():
    agent = SPAQL(limited(), xi=1, seed=0, bounds=[(290, 295)])
    with pytest.warns(UserWarning, match="outside the bounds.*said once") as said:
        agent.learn(2, 2).evaluate(2, seed=1)
    assert len(said) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Random(gym.wrappers.TimeLimit(Leaving(), 50), seed=0, bounds=[(280, 300)]).evaluate(10, seed=1)


@pytest.mark.parametrize(("count", "said"), [(6, False), (7, True)])
def test_what_many_observations_cost_is_said_before_training(count, said, caplog):
    env = limited()
    env.observation_space = spaces.Box(-1.0, 1.0, (count,))
    env.unwrapped.metadata = {}
    SPAQLR(env, seed=0)
    assert ("cut across one of them at a time" in caplog.text) == said
    SPAQL(env, xi=1, seed=0)
    assert ("a cell that splits makes 128 new ones" in caplog.text) == said


def test_the_systems_of_the_paper_are_no_single_state():
    for system in ("CartPole-v0", "Pendulum-v1"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            agent = SPAQL(system, xi=4, seed=0).learn(300, 2)
            SPAQLR(system, seed=0).learn(samples=10_000)
            AQL(system, xi=4, seed=0).learn(400, 1)
        ((way, _),) = crowded_cells(agent._trainee)
        assert len(way) < 4


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ([(0, 1), (0, 1)], r"a pair or None for each of 1 observations"),
        ("wide", "a pair or None for each"),
        (3.0, "a pair or None for each"),
        ([(1, 0)], "bounds of observation 0 must be two finite numbers, low < high"),
        ([(0, np.inf)], "two finite numbers"),
        ([(0, 1, 2)], "two finite numbers"),
    ],
)
def test_bad_bounds_are_refused(bounds, says):
    with pytest.raises(ValueError, match=says):
        SPAQL(limited(), xi=1, bounds=bounds)


def test_bounds_may_be_one_pair_or_leave_some_to_the_environment():
    one = SPAQL("CartPole-v0", xi=1, bounds=(-3.0, 3.0))._space
    assert one.half == (3.0,) * 4
    some = SPAQL("CartPole-v0", xi=1, bounds=[None, (-3, 3), None, np.array([-2, 2], np.float32)])
    usual = SPAQL("CartPole-v0", xi=1)._space
    assert some._space.half == (usual.half[0], 3.0, usual.half[2], 2.0)
    assert some.compiled
    assert some.parameters["bounds"] == [None, [-3.0, 3.0], None, [-2.0, 2.0]]


def test_names_and_units_of_ones_own_variables_are_shown():
    policy = room().learn(20, 2).policy
    assert {"air_low", "air_high"} <= set(policy.table().columns)
    text = export_c(policy.tree())
    assert "int policy(double air)" in text
    assert "in   air in K: " in text
    assert "out  the number of the action; power in W 0: +0, 1: +500, 2: +1000" in text
    nameless = limited()
    nameless.metadata = {"action": {"power": "W"}}
    assert variables_of(nameless).observed == ("observation_0",)
    assert " W" not in export_c(SPAQL(nameless, xi=1).policy.tree())  # a number has no unit


@pytest.mark.parametrize(
    ("metadata", "says"),
    [
        ({"observations": {"air": "K", "wall": "K"}}, "the metadata name 2 observations .* expected 1"),
        (
            {"observations": {"air temperature": "K"}},
            "must be a name that programs .* not 'air temperature'",
        ),
        ({"observations": {"double": "K"}}, "must be a name that programs .* not 'double'"),
        ({"observations": ["air"]}, "observations must be names with their units"),
        ({"choices": (1.0,)}, "must be 3 numbers"),
    ],
)
def test_bad_names_are_refused(metadata, says):
    env = limited()
    env.metadata = metadata
    with pytest.raises(ValueError, match=says):
        SPAQL(env, xi=1)  # not only after the training


def test_trees_are_evaluated_and_made_smaller_on_any_environment():
    agent, undisturbed = (room().learn(40, 3) for _ in range(2))
    tree = agent.policy.tree()
    assert np.array_equal(evaluate(tree, agent.env, 5, seed=1), agent.evaluate(5, seed=1, deterministic=True))
    found = agent.policy.simplify(leaves=3, episodes=5, proposals=4, rounds=1, fresh=10)
    assert found.tree.leaves <= 3 or found.tree.leaves == tree.leaves
    again = simplify(tree, limited(), leaves=3, episodes=5, proposals=4, rounds=1, fresh=10)
    assert (again.fresh, again.full_fresh) == (found.fresh, found.full_fresh)
    whole = agent.policy.tree(deterministic=False)
    assert len(set(evaluate(whole, agent.env, 5, seed=1, deterministic=False, noise=0.1))) == 5
    assert np.array_equal(agent.learn(5, 3).history, undisturbed.learn(5, 3).history)


@same_sines
def test_a_tree_plays_an_environment_as_it_plays_its_compiled_twin():
    tree = SPAQL("CartPole-v0", xi=20, seed=0).learn(60, 5).policy.tree()
    compiled, interpreted = (evaluate(tree, env, 5, seed=2) for env in ("CartPole-v0", Opaque(make_env("CartPole-v0"))))
    assert np.array_equal(compiled, interpreted)


def test_exports_have_no_denormal_numbers():
    tree = SPAQL("CartPole-v0", xi=20, seed=0).learn(100, 5).policy.tree()
    tiny = tree._replace(threshold=np.where(tree.feature >= 0, -5e-324, 0.0))
    for text in (export_c(tiny), export_python(tiny)):
        assert "e-3" not in text
        assert "< 0.0" in text


# ---------------------------------------------------------------------------------------------------------------------
# Sharing, copying and other processes


def test_two_agents_that_share_an_environment_give_the_numbers_of_two_that_do_not():
    env = limited()
    shared = [room(seed, env=env) for seed in (1, 2)]
    alone = [room(seed) for seed in (1, 2)]
    for _ in range(3):
        for agents in (shared, alone):
            for agent in agents:
                agent.learn(2, 2)
        shared[0].evaluate(2, seed=5)
    assert all(np.array_equal(one.history, other.history) for one, other in zip(shared, alone, strict=True))


def test_two_agents_at_once_in_one_environment_are_refused():
    env = limited()
    busy, other = room(1, env=env), room(2, env=env)
    began, end = threading.Event(), threading.Event()

    def wait(agent):
        began.set()
        return end.wait(20) and False

    thread = threading.Thread(target=busy.learn, args=(5, 1), kwargs={"callback": wait})
    thread.start()
    assert began.wait(20)
    try:
        with pytest.raises(RuntimeError, match="another thread is using this environment"):
            other.learn(1, 1)
    finally:
        end.set()
        thread.join()
    assert len(other.learn(1, 1).history) == 1


def learned(agent):
    return agent.learn(4, 2)


def test_interpreted_agents_pickle_and_learn_in_other_processes():
    agent = room().learn(3, 2)
    copied = pickle.loads(pickle.dumps(agent))
    with ProcessPoolExecutor(1) as pool:
        elsewhere = pool.submit(learned, agent).result()
    assert np.array_equal(copied.learn(4, 2).history, elsewhere.history)
    assert np.array_equal(learned(agent).history, elsewhere.history)


def test_spaqlts_on_ones_own_environment():
    agent = room(algorithm=SPAQLTS, reference=[294.0]).learn(10, 2)
    assert agent.parameters["reference"] == [294.0]
