"""The baseline the paper compares with: trust region policy optimisation, from sb3-contrib.

The paper used Garage's TRPO with the settings of Garage's examples, 100 iterations of 4,000 samples.  "TRPO" comes as
near to them as Stable-Baselines3 allows; "TRPO tuned" has the settings that rl-baselines3-zoo publishes for the two
tasks, with at most as many samples.  Where the first differs from Garage:

- Garage's baseline is linear in the observation, its square and powers of time; SB3 trains a critic network.
- The trust region bounds KL(old ‖ new) in Garage, KL(new ‖ old) in SB3.
- Garage collects whole episodes; SB3 a fixed number of steps of each environment, here 200 of 20, which are whole
  episodes of Pendulum but not of CartPole.
- At a time limit SB3 adds the critic's value of the last state to the last reward; Garage adds nothing.
- Garage centres the advantages; SB3, by default, also divides them by their standard deviation, which scales the
  gradient but not the step that the trust region allows.
"""

import time
from typing import Any

import gymnasium as gym
import numpy as np

try:
    import torch
    from sb3_contrib import TRPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("TRPO needs sb3-contrib and torch: pip install 'spaql[trpo]'") from error

from spaql.agents import make_env, make_generator
from spaql.compiling import entry
from spaql.jobs import Job, Record, record_episode, seeds
from spaql.learning import HISTORY
from spaql.systems import (
    Pendulum,
    cartpole_observe,
    cartpole_step,
    compile_system,
    draw_starts,
    make_space,
    pendulum_observe,
    pendulum_step,
)

SAMPLES = 4000  # an iteration of the paper's
GARAGE = {
    "n_envs": 20,
    "n_steps": 200,
    "batch_size": 200,  # of the critic, whose training Garage has no counterpart of; it divides the 4,000 samples
    "gamma": 0.99,
    "gae_lambda": 0.98,
    "target_kl": 0.01,
    "cg_max_steps": 10,
    "cg_damping": 1e-5,
    "line_search_max_iter": 15,
    "line_search_shrinking_factor": 0.8,
    "policy_kwargs": {"net_arch": {"pi": [32, 32], "vf": [32, 32]}, "log_std_init": 0.0},
}
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "TRPO": {"Pendulum-v1": GARAGE, "CartPole-v0": GARAGE},
    "TRPO tuned": {
        "Pendulum-v1": {
            "n_envs": 2,
            "n_steps": 1024,
            "gamma": 0.9,
            "n_critic_updates": 15,
            "use_sde": True,
            "sde_sample_freq": 4,
        },
        "CartPole-v0": {
            "n_envs": 2,
            "n_steps": 512,
            "batch_size": 512,
            "cg_damping": 1e-3,
            "gae_lambda": 0.98,
            "gamma": 0.99,
            "learning_rate": 1e-3,
            "n_critic_updates": 20,
        },
    },
}


@entry
def step_pendulums(system, states, actions, x, observations, rewards, fell):
    """Step each pendulum of a batch, with torques in Nm; write observations in Gymnasium's units."""
    action = np.empty(1)
    for i in range(len(states)):
        action[0] = actions[i] / system.space.action_half[0]
        rewards[i], fell[i] = pendulum_step(system, states[i], action, x)
        pendulum_observe(system, states[i], observations[i])


@entry
def step_cartpoles(system, states, actions, x, observations, rewards, fell):
    """Step each cart of a batch; write observations in Gymnasium's units."""
    action = np.empty(1)
    for i in range(len(states)):
        action[0] = actions[i]
        rewards[i], fell[i] = cartpole_step(system, states[i], action, x)
        cartpole_observe(system, states[i], observations[i])


class CompiledVecEnv(VecEnv):
    """Environments of a compiled system, stepped in one call: what SB3's `make_vec_env` makes of them, only faster.

    Like SB3's `Monitor` it reports each finished episode, in its last step's info.
    """

    def __init__(self, env_id: str, n_envs: int, seed: int):
        self._env = make_env(env_id)
        self.limit = self._env.spec.max_episode_steps
        space = make_space(self._env)
        self._system = compile_system(self._env, space)
        if self._system is None:
            raise ValueError(f"{env_id} has no compiled system; expected Pendulum-v1 or CartPole-v0")
        self._pendulum = isinstance(self._system, Pendulum)
        dimensions = len(space.centre)
        self._states, self._x = np.zeros((n_envs, 3 if self._pendulum else 4)), np.empty(dimensions)
        self._observations = np.zeros((n_envs, dimensions), np.float32)
        self._rewards, self._fell = np.zeros(n_envs), np.zeros(n_envs, bool)
        self._returns, self._steps = np.zeros(n_envs), np.zeros(n_envs, np.int64)
        self._rngs: list[np.random.Generator] = []
        self.finished: list[float] = []  # returns of the episodes finished since this list was last emptied
        self.render_mode = None
        super().__init__(n_envs, self._env.observation_space, self._env.action_space)
        self.seed(seed)

    def reset(self) -> np.ndarray:
        """Begin an episode everywhere."""
        if not self._rngs or self._seeds[0] is not None:
            self._rngs = [make_generator(seed) for seed in self._seeds]
        self._reset_seeds()
        for i in range(self.num_envs):
            self._begin(i)
        return self._observations.copy()

    def _begin(self, i: int) -> None:
        start = draw_starts(self._system, self._rngs[i], 1)[0]
        self._states[i, : start.size] = start
        if self._pendulum:
            self._states[i, 2] = np.sin(start[0])
        observe = pendulum_observe if self._pendulum else cartpole_observe
        observe(self._system, self._states[i], self._observations[i])
        self._returns[i] = self._steps[i] = 0

    def step_async(self, actions: np.ndarray) -> None:
        """Take the actions of the next step."""
        self._actions = np.asarray(actions, np.float64).reshape(self.num_envs)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict]]:
        """Step all environments; those whose episode ends begin another."""
        kernel = step_pendulums if self._pendulum else step_cartpoles
        kernel(self._system, self._states, self._actions, self._x, self._observations, self._rewards, self._fell)
        self._returns += self._rewards
        self._steps += 1
        truncated = (self._steps >= self.limit) & ~self._fell
        dones = self._fell | truncated
        infos: list[dict] = [{"TimeLimit.truncated": bool(end)} for end in truncated]
        observations = self._observations
        for i in np.flatnonzero(dones):
            infos[i]["terminal_observation"] = observations[i].copy()
            infos[i]["episode"] = {"r": float(self._returns[i]), "l": int(self._steps[i])}
            self.finished.append(float(self._returns[i]))
            self._begin(i)
        return observations.copy(), self._rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of the environment, for each."""
        value = None if attr_name == "render_mode" else getattr(self._env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the compiled environments have no attributes of their own."""
        raise AttributeError(f"compiled environments have no attribute {attr_name!r} to set")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **options: Any) -> list[Any]:
        """Refuse: the compiled environments have no methods of their own."""
        raise AttributeError(f"compiled environments have no method {method_name!r}")

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: Any = None) -> list[bool]:
        """Say that episodes are monitored, which is so."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]


class Returns(BaseCallback):
    """Writes down the mean return of the episodes that ended in each iteration."""

    def __init__(self):
        super().__init__()
        self.means: list[float] = []

    def _on_step(self) -> bool:
        return True

    def _on_rollout_end(self) -> None:
        finished = self.training_env.finished
        # An iteration in which no episode ends (2 environments, 512 steps: not here) repeats the last mean.
        self.means.append(float(np.mean(finished)) if finished else self.means[-1])
        finished.clear()


def make_trpo(env: VecEnv, algorithm: str, system: str, seed: int) -> TRPO:
    """Return an untrained TRPO agent with the settings of `algorithm`."""
    settings = {key: value for key, value in SETTINGS[algorithm][system].items() if key != "n_envs"}
    torch.set_num_threads(1)
    return TRPO("MlpPolicy", env, seed=seed, device="cpu", **settings)


def train(job: Job) -> tuple[TRPO, Returns]:
    """Return a trained TRPO agent, and the returns it met on the way."""
    settings = SETTINGS[job.algorithm][job.system]
    env_seed, agent_seed = (int(word) % 2**31 for word in seeds(job)[0].generate_state(2))
    env = CompiledVecEnv(job.system, settings["n_envs"], env_seed)
    agent = make_trpo(env, job.algorithm, job.system, agent_seed)
    env.seed(env_seed)  # SB3 seeds it with the agent's seed, which would tie the two streams
    batch = settings["n_envs"] * settings["n_steps"]
    iterations = job.iterations * SAMPLES // batch
    if iterations == 0:
        raise ValueError(f"{job.iterations} iterations of {SAMPLES} samples are less than one batch of {batch}")
    returns = Returns()
    agent.learn(iterations * batch, callback=returns)
    return agent, returns


class Player:
    """A trained agent that plays as it trained: with gSDE it draws its noise anew every `sde_sample_freq` steps.

    SB3's own `predict` keeps the last draw for ever, which is one policy out of many and may be a bad one.
    """

    def __init__(self, agent: TRPO):
        self._agent, self._calls = agent, 0

    def predict(self, observations, state=None, episode_start=None, deterministic: bool = False):
        """Return the actions in these states, as SB3's `predict` does."""
        agent = self._agent
        if agent.use_sde and self._calls % agent.sde_sample_freq == 0:
            agent.policy.reset_noise(len(np.atleast_2d(observations)))
        self._calls += 1
        return agent.predict(observations, state, episode_start, deterministic)


def compute(job: Job) -> Record:
    """Train and evaluate a TRPO agent: the counterpart of `jobs.compute`.

    A history's `rewards` is the mean return of the episodes that ended in the iteration.  `fresh` has the mean and
    standard deviation of fresh episodes under the stochastic policy, then under the deterministic one.
    """
    before = time.perf_counter()
    agent, returns = train(job)
    history = np.zeros(len(returns.means), HISTORY)
    history["rewards"] = history["evaluations"] = returns.means
    history["steps"] = agent.n_envs * agent.n_steps
    player = Player(agent)
    replay, recording = seeds(job)[1].spawn(2)
    fresh = []
    for deterministic, word in zip((False, True), replay.generate_state(2), strict=True):
        torch.manual_seed(int(word))
        replayed = CompiledVecEnv(job.system, min(job.fresh, 100), int(word) % 2**31)
        rewards, _ = evaluate_policy(player, replayed, job.fresh, deterministic, return_episode_rewards=True)
        fresh.append(np.array(rewards))
    return Record(
        job=job,
        history=history,
        fresh=np.array([moment for rewards in fresh for moment in (rewards.mean(), rewards.std())]),
        rewards=fresh[0].astype(np.float32) if job.record else np.zeros(0, np.float32),
        episode=record_episode(player, job.system, recording) if job.record else {},
        wall=time.perf_counter() - before,
    )
