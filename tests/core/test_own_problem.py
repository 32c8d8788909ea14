"""For one's own problem: horizons, wrappers, callbacks, bounds, names, and environments that agents share."""

import logging
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import SPAQL, Random
from spaql.hooks import checkpoint, keep_best, plot_learning
from spaql.policies.tree import variables_of
from spaql.systems import ScaleReward, make_env, worlds
from tests.conftest import Opaque, same_sines


class Room(gym.Env):
    """An air temperature that a heater and the cold outside change, and the last power, without bounds."""

    metadata = {"observations": {"air": "K", "last": ""}, "action": {"power": "W"}, "choices": (0, 500, 1000)}  # noqa: RUF012
    observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
    action_space = spaces.Discrete(3)

    def __init__(self, leak=0.05):
        self.leak = leak

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.air = self.np_random.uniform(285.0, 300.0)
        return np.array([self.air, 0.0]), {}

    def step(self, action):
        self.air += 0.8 * action - self.leak * (self.air - 275.0) + 0.1 * self.np_random.standard_normal()
        return np.array([self.air, action]), -abs(self.air - 294.0), False, False, {}


def limited(steps=50, **kwargs):
    return gym.wrappers.TimeLimit(Room(**kwargs), steps)


BOUNDS = [(270.0, 320.0), (0.0, 2.0)]


def room(seed=0, algorithm=SPAQL, env=None, **parameters):
    own = {"xi": 1, "bounds": BOUNDS} | parameters
    own = {name: own[name] for name in own if name != "xi" or algorithm is not Random}
    return algorithm(env or limited(), seed=seed, **own)


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


# Compiled or not


def test_watching_wrappers_stay_compiled_and_the_log_names_one_that_hides_the_system(caplog):
    worlds.warn_once.cache_clear()
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
    assert "TransformReward hides it" in second


@same_sines
def test_scaled_rewards_are_compiled_and_the_same_bits():
    def scaled(env):
        return ScaleReward(env, scale=0.3, shift=-0.7)

    env_id = "CartPole-v0"
    agents = [SPAQL(scaled(env), xi=1, seed=0) for env in (make_env(env_id), Opaque(make_env(env_id)))]
    assert [agent.compiled for agent in agents] == [True, False]
    assert np.array_equal(agents[0].learn(6, 2).history, agents[1].learn(6, 2).history)
    assert np.array_equal(agents[0].evaluate(3, seed=1), agents[1].evaluate(3, seed=1))
    assert not SPAQL(scaled(scaled(make_env(env_id))), xi=1).compiled  # two at once are not


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

    agent = make().learn(30, 3, callback=watch)
    whole = make().learn(30, 3).history
    assert [entry[0] for entry in seen] == list(range(1, 13))
    assert np.array_equal(agent.history, whole[:12])
    loaded = SPAQL.load(tmp_path / "agent.npz", make_env(env) if env != "room" else limited())
    assert np.array_equal(loaded.learn(18, 3).history, whole)
    assert np.array_equal(agent.learn(18, 3).history, whole)


@pytest.mark.parametrize("hook", [checkpoint, keep_best])
def test_a_missing_folder_is_said_before_training(hook, tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        hook(tmp_path / "nowhere" / "agent.npz")


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


# Observations


@pytest.mark.parametrize("bounds", [[(0, 1)] * 3, "w", [(1, 0)] * 2, [(0, np.inf)] * 2, [(0, 1, 2)] * 2])
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="a pair or None for each of 2 observations"):
        SPAQL(limited(), xi=1, bounds=bounds)


def test_bounds_may_be_one_pair_or_leave_some_to_the_environment():
    one = SPAQL("CartPole-v0", xi=1, bounds=(-3.0, 3.0))._space
    assert one.half == (3.0,) * 4
    some = SPAQL("CartPole-v0", xi=1, bounds=[None, (-3, 3), None, np.array([-2, 2], np.float32)])
    usual = SPAQL("CartPole-v0", xi=1)._space
    assert some._space.half == (usual.half[0], 3.0, usual.half[2], 2.0)
    assert some.compiled
    assert some.parameters["bounds"] == [None, [-3.0, 3.0], None, [-2.0, 2.0]]


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


# What is kept, drawn and logged on the way; what no environment should be wrapped in


def test_the_best_agent_is_kept_and_an_interrupted_run_goes_on_with_it(tmp_path):
    path, saved, means = tmp_path / "best.npz", tmp_path / "agent.npz", []

    def watch(agent):
        means.append(agent.evaluate(20, seed=0).mean())
        if len(means) == 25:
            agent.save(saved)

    def make():
        return SPAQL("CartPole-v0", xi=20, seed=0)

    make().learn(60, 2, callback=[keep_best(path, 1, 20), watch])
    assert SPAQL.load(path).evaluate(20, seed=0).mean() == max(means)
    path.unlink()
    make().learn(25, 2, callback=keep_best(path, 1, 20))
    SPAQL.load(saved).learn(35, 2, callback=keep_best(path, 1, 20))
    assert SPAQL.load(path).evaluate(20, seed=0).mean() == max(means)
    # A new run, whose environment may have changed, and one of another seed; also by the same callback.
    again = keep_best(path, 100, 20)
    SPAQL.load(path).learn(1, 2, callback=again)
    for other in (make(), SPAQL("CartPole-v0", xi=20, seed=1).learn(3, 2)):
        trained = len(other.history)
        for callback in (again, keep_best(path, 100, 20)):
            with pytest.raises(ValueError, match="another run"):
                other.learn(1, 2, callback=callback)
        assert len(other.history) == trained  # refused before training


def test_the_best_agent_may_be_the_one_whose_worst_episodes_are_best(tmp_path):
    worst = []

    def watch(agent):
        worst.append(np.sort(agent.evaluate(40, seed=0))[:2].mean())

    path = tmp_path / "best.npz"
    SPAQL("CartPole-v0", xi=20, seed=0).learn(40, 2, callback=[keep_best(path, 1, 40, worst=0.05), watch])
    assert np.sort(SPAQL.load(path).evaluate(40, seed=0))[:2].mean() == max(worst)


def test_learning_curves_are_drawn_and_shown_once():
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    agent = SPAQL("CartPole-v0", xi=4, seed=0).learn(5, 2)
    [line] = plot_learning(agent).axes[0].get_lines()
    assert line.get_ydata().tolist() == pytest.approx(agent.history.rewards)
    assert pyplot.get_fignums() == before  # a notebook would show an open figure once more


@pytest.mark.parametrize("wrapper", [gym.wrappers.NormalizeObservation, gym.wrappers.NormalizeReward])
def test_wrappers_that_an_evaluation_would_change_are_refused(wrapper):
    with pytest.raises(ValueError, match=wrapper.__name__):
        SPAQL(gym.wrappers.TimeLimit(wrapper(Room()), 50), xi=1)
    derived = type("Derived", (wrapper,), {})
    gym.register(f"{wrapper.__name__}-v0", entry_point=lambda: derived(Room()))
    with pytest.raises(ValueError, match="Derived"):
        SPAQL(f"{wrapper.__name__}-v0", xi=1)


def test_where_all_is_one_state_to_the_agent_it_is_said():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        room().learn(2, 2)
        room(algorithm=Random, bounds=None).learn(2, 2)
    with pytest.warns(UserWarning, match="the sigmoid.* is flat there"):
        room(bounds=None).learn(1, 2)
    with pytest.warns(UserWarning, match="the sigmoid.* is flat there"):
        SPAQL("CartPole-v0", xi=1, slopes=1000)


def test_units_are_those_of_what_is_observed_not_of_what_a_wrapper_hides():
    shifted = spaces.Box(-np.inf, np.inf, (1,), np.float64)
    wrapped = gym.wrappers.TransformObservation(limited(), lambda seen: seen[:1] - 294.0, shifted)
    names = variables_of(wrapped)
    assert (names.observed, names.units) == (("observation_0",), ("",))
    assert (names.actions, names.action_unit) == (("power",), "W")  # which it leaves alone
    same = gym.wrappers.TransformObservation(limited(), lambda seen: seen / 10.0, limited().observation_space)
    assert set(variables_of(same).units) == {""}
    wrapped.metadata = wrapped.metadata | {"observations": {"deviation": "K"}}
    assert variables_of(wrapped).units == ("K",)
