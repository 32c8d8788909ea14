"""What users hold: any environment, prediction, saving, interruption, reproducibility, errors."""

import io
import os
import signal
import sys
import threading
import time

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, Random, Rules, TileQ
from spaql.partition import copy
from spaql.policies import evaluate
from spaql.systems import make_env
from tests.conftest import same_sines

ALGORITHMS = [AQL, SPAQL, SPAQLTS, Random]
IDS = ["Pendulum-v1", "spaql/PendulumDiscrete-v1", "spaql/PendulumScaled-v1", "CartPole-v0"]

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*out of date.*"),
    pytest.mark.filterwarnings("ignore:.*Monitor.*"),
]


def make(algorithm, env, seed=0, **parameters):
    if algorithm is not Random:
        parameters.setdefault("xi", 4)
    return algorithm(env, seed=seed, **parameters)


class Arm(gym.Env):
    """A user's environment: a joint that two torques move.  It has CartPole's number of variables, to compile less."""

    observation_space = spaces.Box(np.array([-1, -np.inf, -1, 0], np.float32), np.array([1, np.inf, 1, 4], np.float32))
    action_space = spaces.Box(np.array([-1, 0], np.float32), np.array([1, 4], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = np.append(self.np_random.uniform(-0.5, 0.5, 2), [0, 0])
        return self.state.astype(np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.state[1] += 0.1 * (action[0] - 0.1 * action[1])
        self.state[0] = np.clip(self.state[0] + 0.1 * self.state[1], -1, 1)
        return self.state.astype(np.float32), -float(self.state[0] ** 2), False, False, {}


@same_sines
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    "env_id", [pytest.param(env_id, marks=() if env_id == "CartPole-v0" else pytest.mark.long) for env_id in IDS]
)
@pytest.mark.parametrize("rules", [pytest.param("paper", marks=pytest.mark.long), "released"])
def test_a_wrapped_environment_gives_the_compiled_history_bit_for_bit(opaque, algorithm, env_id, rules):
    compiled = make(algorithm, env_id, seed=3, rules=rules).learn(6, 3)
    interpreted = make(algorithm, opaque(env_id), seed=3, rules=rules).learn(6, 3)
    assert np.array_equal(compiled.history, interpreted.history)
    assert np.array_equal(copy(compiled._best).balls, copy(interpreted._best).balls)
    assert np.array_equal(compiled.evaluate(3, seed=9), interpreted.evaluate(3, seed=9))
    # and evaluating has not disturbed learning
    assert np.array_equal(compiled.learn(2, 3).history, interpreted.learn(2, 3).history)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_users_own_environment(algorithm):
    reference = {"reference": np.zeros(4)} if algorithm is SPAQLTS else {}
    agent = make(algorithm, Arm(), horizon=50, slopes=0.5, **reference).learn(20, 2)
    assert len(agent.history) == 20
    action, _ = agent.predict(np.array([0.1, 3.0, 0.0, 0.0], np.float32))
    assert Arm.action_space.contains(action)
    if algorithm in (SPAQL, SPAQLTS):
        assert (
            agent.evaluate(20, seed=1).mean() > make(Random, Arm(), horizon=50, slopes=0.5).evaluate(20, seed=1).mean()
        )


@same_sines
def test_discrete_actions_need_not_start_at_0():
    class Shifted(gym.ActionWrapper):
        def __init__(self, env):
            super().__init__(env)
            self.action_space = spaces.Discrete(2, start=5)

        def action(self, action):
            assert self.action_space.contains(action)
            return action - 5

    agent = make(SPAQL, Shifted(make_env("CartPole-v0")), seed=3).learn(3, 2)
    assert np.array_equal(agent.history, make(SPAQL, "CartPole-v0", seed=3).learn(3, 2).history)
    assert agent.predict(np.zeros(4))[0] in (5, 6)


def test_learning_learns():
    agent = SPAQLTS("CartPole-v0", xi=20, seed=0).learn(100, 20)
    assert agent.evaluate(200, seed=1).mean() > 100 > 30 > Random("CartPole-v0", seed=0).evaluate(200, seed=1).mean()


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("deterministic", [False, True])
def test_evaluate_policy_of_sb3_agrees_with_our_evaluation(algorithm, env_id, deterministic):
    evaluate_policy = pytest.importorskip("stable_baselines3.common.evaluation").evaluate_policy
    agent = make(algorithm, env_id, seed=1).learn(30, 3)
    env = make_env(env_id)
    env.reset(seed=4)
    rewards, _ = evaluate_policy(
        agent, env, n_eval_episodes=8, deterministic=deterministic, return_episode_rewards=True
    )
    ours = agent.evaluate(400, seed=5, deterministic=deterministic)
    spread = 5 * ours.std() * np.sqrt(1 / 8 + 1 / 400) + 1e-9
    assert abs(np.mean(rewards) - ours.mean()) <= spread


def test_predict_single_and_batched():
    agent = make(SPAQLTS, "Pendulum-v1").learn(50, 3)
    batch = np.array([[1, 0, 0.5], [0, 1, -3], [-1, 0, 8]], np.float32)
    actions, state = agent.predict(batch, deterministic=True)
    assert state is None
    assert actions.shape == (3, 1)
    assert actions.dtype == np.float32
    for observation, action in zip(batch, actions, strict=True):
        single, _ = agent.predict(observation, deterministic=True)
        assert single.shape == (1,)
        assert single == action
    # Not deterministic is uniform in the ball whose centre is deterministic.
    draws = np.array([agent.predict(batch[0])[0] for _ in range(300)])
    assert draws.std() > 0
    assert abs(draws.mean() - actions[0]) < 5 * draws.std() / np.sqrt(300)
    single, _ = make(SPAQL, "CartPole-v0").predict(np.zeros(4), deterministic=True)
    assert single in (0, 1)


def test_aql_follows_the_time_step():
    agent = make(AQL, "CartPole-v0", horizon=5).learn(1, 1)
    _, state = agent.predict(np.zeros((2, 4)), episode_start=np.ones(2, bool))
    assert state.tolist() == [1, 1]
    _, state = agent.predict(np.zeros((2, 4)), state=state, episode_start=np.array([False, True]))
    assert state.tolist() == [2, 1]
    _, far = agent.predict(np.zeros((1, 4)), state=np.array([-(10**9)]))  # nonsense is no way out of the arrays
    assert far.tolist() == [1]
    for _ in range(9):  # past the horizon its last policy goes on
        _, state = agent.predict(np.zeros((2, 4)), state=state)
    assert state.tolist() == [5, 5]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("rules", ["released", Rules(ties="last")])
def test_a_loaded_agent_predicts_the_same_and_goes_on_learning(tmp_path, algorithm, rules):
    agent = make(algorithm, "CartPole-v0", rules=rules).learn(20, 5)
    agent.save(tmp_path / "agent.npz")
    loaded = algorithm.load(tmp_path / "agent.npz")
    observations = np.random.default_rng(0).uniform(-0.2, 0.2, (50, 4))
    assert np.array_equal(
        agent.predict(observations, deterministic=True)[0], loaded.predict(observations, deterministic=True)[0]
    )
    assert np.array_equal(agent.history, loaded.history)
    assert np.array_equal(agent.learn(10, 5).history, loaded.learn(10, 5).history)
    assert np.array_equal(agent.predict(observations)[0], loaded.predict(observations)[0])
    assert loaded.rules == agent.rules
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]


def test_a_loaded_agent_of_a_users_environment_goes_on_where_it_was(tmp_path, opaque):
    agent = make(SPAQL, opaque("CartPole-v0")).learn(3, 2)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(ValueError, match="give load\\(\\) such an environment"):
        SPAQL.load(tmp_path / "agent.npz")
    loaded = SPAQL.load(tmp_path / "agent.npz", opaque("CartPole-v0"))
    assert np.array_equal(agent.learn(3, 2).history, loaded.learn(3, 2).history)
    for other in ("Pendulum-v1", "spaql/PendulumDiscrete-v1"):
        with pytest.raises(ValueError, match="not a sound saved agent for this environment"):
            SPAQL.load(tmp_path / "agent.npz", opaque(other))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_learning_twice_is_learning_once(algorithm):
    once = make(algorithm, "Pendulum-v1").learn(12, 4)
    twice = make(algorithm, "Pendulum-v1").learn(5, 4).learn(7, 4)
    assert np.array_equal(once.history, twice.history)


def test_agents_can_share_first_states():
    one, other = (make(Random, "Pendulum-v1", seed=seed, env_seed=8) for seed in (1, 2))
    assert np.array_equal(one._world.starts(5), other._world.starts(5))
    assert not np.array_equal(one._rng.random(5), other._rng.random(5))


@pytest.mark.parametrize("evaluations", [20, 10**7])  # a short iteration, and one of many seconds
def test_an_interrupt_returns_soon_and_keeps_the_last_full_iteration(evaluations):
    agent = make(SPAQL, "Pendulum-v1").learn(3, 2)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    before = time.perf_counter()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        agent.learn(10**6, evaluations)
    assert time.perf_counter() - before < 0.7 + 1.5
    done = len(agent.history) - 3
    if evaluations > 20:
        assert done == 0
    else:
        assert done > 10
    undisturbed = make(SPAQL, "Pendulum-v1").learn(3, 2)
    if done:
        undisturbed.learn(done, 20)
    assert np.array_equal(undisturbed.history, agent.history)
    assert np.array_equal(undisturbed.learn(5, 2).history, agent.learn(5, 2).history)


class Odd(gym.Wrapper):
    """A reward, or a speed, of our choice."""

    def __init__(self, reward=None, speed=None):
        super().__init__(make_env("CartPole-v0"))
        self.given, self.speed = reward, speed

    def step(self, action):
        observation, reward, *rest = self.env.step(action)
        if self.speed is not None:
            observation[1] = self.speed
        return observation, reward if self.given is None else self.given, *rest


class Before(gym.Wrapper):
    def step(self, action):
        return self.env.step(action)[:4]


def test_rewards_and_observations_that_are_no_numbers_are_said():
    for strange in (-np.inf, np.nan, "1", np.array([1.0]), np.array([1.0, 2.0])):
        agent = make(SPAQL, Odd(strange))
        for play in (lambda agent: agent.learn(1, 1), lambda agent: evaluate(agent.policy.tree(), agent.env, 1)):
            with pytest.raises(ValueError, match="gave a reward of .*; expected a finite number"):
                play(agent)
    for strange in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="NaN or infinity"):
            make(SPAQL, Odd(speed=strange)).learn(1, 1)
    with pytest.raises(ValueError, match="step must return"):  # as before Gymnasium
        make(SPAQL, Before(Odd(1))).learn(1, 1)
    for number in (1, np.float32(1), np.array(1.0), True, np.bool_(True)):
        assert make(SPAQL, Odd(number)).learn(1, 1).history.evaluations[0] >= 1


class Scaled(gym.RewardWrapper):
    """Rewards near the end of what numbers can say, from some step on."""

    def __init__(self, env, size, after=0):
        super().__init__(env)
        self.size, self.left = size, after

    def reward(self, reward):
        self.left -= 1
        return self.size if self.left < 0 else reward


@pytest.mark.parametrize("size", [1.7e308, -1.7e308])
@pytest.mark.parametrize("algorithm", [AQL, SPAQL, Random])
def test_an_overflow_is_said_and_the_agent_stays_as_it_was(algorithm, size, tmp_path):
    agent = make(algorithm, Scaled(make_env("CartPole-v0"), size, after=2000))
    agent.learn(2, 1)
    assert agent.env.left > 0
    before = agent.history
    with pytest.raises(OverflowError, match="have become infinite or NaN: the rewards or ξ are too large"):
        agent.learn(300, 1)
    assert np.array_equal(agent.history[:2], before)
    assert np.isfinite(agent.history.evaluations).all()
    agent.save(tmp_path / "agent.npz")
    assert len(algorithm.load(tmp_path / "agent.npz", make_env("CartPole-v0")).history) == len(agent.history)


BAD_PARAMETERS = [
    ({"xi": -1}, "xi must be a number of at least 0"),
    ({"horizon": 10**30}, "horizon must be a whole number of at most 1,000,000, not 10{30}"),
    ({"u": 0.5}, "u must be a number of at least 1"),
    ({"seed": 0.5}, "seed must be"),
    ({"reference": [0, 0]}, "reference must be 4 finite numbers"),
    ({"reference": [5, 0, 0, 0]}, "within the observation's bounds"),
    ({"rules": "original"}, "rules must be 'paper' or 'released'"),
    ({"rules": Rules(ties="first")}, "rule ties must be 'random' or 'last'"),
    ({"discount": 1.01}, "discount must be a number of at least 0 and at most 1, not 1.01"),
    ({"slopes": [1, 2]}, "slopes"),
]


def test_bad_parameters_are_refused():
    for parameters, says in BAD_PARAMETERS:
        with pytest.raises(ValueError, match=says):
            SPAQLTS("CartPole-v0", **{"xi": 20, "seed": 0, **parameters})


def changed(space):
    """An environment with other actions."""
    env = Arm()
    env.action_space = space
    return env


FAR = spaces.Box(-np.finfo(float).max, np.finfo(float).max, (2,), np.float64)
BAD_CALLS = [
    (lambda agent: agent.learn(samples=1000), "SPAQL learns by iterations"),
    (lambda agent: SPAQL("CartPole-v0", xi=1).learn(), "give either iterations"),
    (lambda agent: SPAQL(changed(spaces.Discrete(2**40)), xi=1), "expected at most 1,000"),
    (lambda agent: SPAQLR(changed(spaces.Discrete(10**7))), "expected at most 1,000"),
    (lambda agent: SPAQL(changed(FAR), xi=1), "needs finite bounds"),
    (lambda agent: agent.learn(0), "iterations must be a whole number of at least 1, not 0"),
    (lambda agent: agent.learn(10**20), "iterations must be a whole number of at most 100,000,000"),
    (lambda agent: agent.evaluate(10**12), "episodes must be a whole number of at most 1,000,000,000"),
    (lambda agent: agent.predict(np.zeros(3)), "expected an observation of shape"),
    (lambda agent: agent.predict(np.full(4, np.nan)), "NaN"),
    (lambda agent: SPAQLTS("Drift-v0", xi=1), "SPAQL-TS needs `reference`"),
]


def test_bad_calls_are_refused():
    agent = make(SPAQL, "CartPole-v0")
    for call, says in BAD_CALLS:
        with pytest.raises(ValueError, match=says):
            call(agent)
    with pytest.raises(TypeError, match="a gymnasium.Env, not CartPoleVectorEnv"):
        SPAQL(gym.make_vec("CartPole-v1", num_envs=2), xi=1)
    with pytest.raises(TypeError, match="AQL has no parameter lam=1.2: .* It has xi, seed"):
        AQL("CartPole-v0", xi=1, lam=1.2)
    with pytest.raises(TypeError, match="TileQ and SPAQLR choose among all combinations"):
        SPAQL(changed(spaces.MultiDiscrete([2, 3])), xi=1)


def test_the_progress_bar_reaches_the_end_and_never_stops_learning(capsys, monkeypatch):
    make(SPAQL, "CartPole-v0").learn(500, 20, progress_bar=True)
    shown = capsys.readouterr().err
    assert "500/500" in shown
    assert shown.count("\r") < 10  # which would flood a log

    for stream in (None, io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert len(make(SPAQL, "CartPole-v0").learn(3, 2, progress_bar=True).history) == 3


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_evaluation_tells_where_its_worst_episode_began(opaque, wrapped):
    agent = SPAQL(opaque("CartPole-v0") if wrapped else "CartPole-v0", xi=4, seed=0).learn(5, 2)
    returns, starts = agent.evaluate(10, seed=1, starts=True)
    assert np.array_equal(returns, agent.evaluate(10, seed=1))
    assert starts.shape == (10, 4)
    assert 0 < np.abs(starts).max() <= 0.05
    other = SPAQL("CartPole-v0", xi=4, seed=1).evaluate(10, seed=1, starts=True)[1]
    assert np.allclose(starts, other)  # the seed alone decides where episodes begin


def test_an_agent_in_files_that_only_can_be_read_learns(tmp_path):
    joblib = pytest.importorskip("joblib")
    for agent in (SPAQL("Pendulum-v1", xi=4, seed=0).learn(5, 2), TileQ("Pendulum-v1", seed=0).learn(5, 2)):
        joblib.dump(agent, tmp_path / "agent")
        lent = joblib.load(tmp_path / "agent", mmap_mode="r")
        assert np.array_equal(lent.learn(2, 2).history, agent.learn(2, 2).history)
    assert lent._best.tiles.places.flags.writeable  # or machine code would be made anew
