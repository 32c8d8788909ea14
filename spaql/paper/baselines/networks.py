"""TRPO, SAC, PPO and DQN of Stable-Baselines3 on compiled environments, with `settings`."""

import numpy as np

from spaql.paper.baselines.settings import SAMPLES, settings_of
from spaql.paper.engine.algorithms import CHECKPOINT, Trained, record_episode
from spaql.paper.engine.job import seeds
from spaql.policies.play import step_batch
from spaql.rules import HISTORY
from spaql.systems import begin, compiled_world, episode_limit, make_env, make_generator, observe, space_of

try:
    import torch
    from sb3_contrib import TRPO
    from stable_baselines3 import DQN, PPO, SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("networks need sb3-contrib and torch: pip install 'spaql[trpo]'") from error

CLASSES = {"TRPO": TRPO, "TRPO tuned": TRPO, "SAC": SAC, "PPO": PPO, "DQN": DQN}

# Environments side by side


class CompiledVecEnv(VecEnv):
    """Environments of a compiled system, stepped in one call: what SB3's `make_vec_env` makes of them, only faster.

    Like SB3's `Monitor` it reports each finished episode, in its last step's info.
    """

    def __init__(self, env_id, n_envs, seed):
        self._env = make_env(env_id)
        space = space_of(self._env)
        self._world, self.limit = compiled_world(self._env, space), episode_limit(self._env)
        self._states = np.zeros((n_envs, self._world.system.numbers))
        self._observations = np.zeros((n_envs, len(space.centre)), self._env.observation_space.dtype)
        self._rewards, self._fell = np.zeros(n_envs), np.zeros(n_envs, bool)
        self._returns, self._steps = np.zeros(n_envs), np.zeros(n_envs, np.int64)
        self._rngs = []
        self.finished = []  # returns of the episodes finished since this list was last emptied
        self.render_mode = None
        super().__init__(n_envs, self._env.observation_space, self._env.action_space)
        self.seed(seed)

    def reset(self):
        if not self._rngs or self._seeds[0] is not None:
            self._rngs = [make_generator(seed) for seed in self._seeds]
        self._reset_seeds()
        for i in range(self.num_envs):
            self._begin(i)
        return self._observations.copy()

    def _begin(self, i):
        (start,), constants = self._world.draw(self._rngs[i], 1), self._world.model.constants
        begin(constants, start, self._states[i])
        observe(constants, self._states[i], self._observations[i])
        self._returns[i] = self._steps[i] = 0
        self._fell[i] = False

    def step_async(self, actions):
        self._actions = np.asarray(actions, np.float64).reshape(self.num_envs, -1)

    def step_wait(self):
        """Step all environments; those whose episode ends begin another."""
        self._rewards[:] = 0.0
        self._world.call(step_batch, self._states, self._actions, self._observations, self._rewards, self._fell)
        self._returns += self._rewards
        self._steps += 1
        truncated = (self._steps >= self.limit) & ~self._fell
        dones = self._fell | truncated
        infos = [{"TimeLimit.truncated": bool(end)} for end in truncated]
        observations = self._observations
        for i in np.flatnonzero(dones).tolist():
            infos[i]["terminal_observation"] = observations[i].copy()
            infos[i]["episode"] = {"r": float(self._returns[i]), "l": int(self._steps[i])}
            self.finished.append(float(self._returns[i]))
            self._begin(i)
        return observations.copy(), self._rewards.astype(np.float32), dones, infos

    def env_is_wrapped(self, wrapper_class, indices=None):
        """Say that episodes are monitored, which is so."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def get_attr(self, attr_name, indices=None):
        value = None if attr_name == "render_mode" else getattr(self._env, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name, value, indices=None):
        raise AttributeError(attr_name)

    def env_method(self, method_name, *arguments, indices=None, **options):
        raise AttributeError(method_name)

    def close(self):
        pass


# Training


def make_model(env, algorithm, system, seed):
    """Return an untrained agent with the settings of an algorithm on a system."""
    settings = {name: schedule(setting) for name, setting in settings_of(algorithm, system).items()}
    settings.pop("n_envs", None)
    if settings.pop("normalize", False):
        env = VecNormalize(env, gamma=settings.get("gamma", 0.99))  # the agent's own, as in rl-baselines3-zoo
    torch.set_num_threads(1)
    return CLASSES[algorithm]("MlpPolicy", env, seed=seed, device="cpu", **settings)


def schedule(setting):
    """Return a setting as Stable-Baselines3 takes it: of "lin_0.2" a function that falls from 0.2 to zero."""
    if not (isinstance(setting, str) and setting.startswith("lin_")):
        return setting
    first = float(setting.removeprefix("lin_"))
    return lambda remaining: remaining * first


class Returns(BaseCallback):
    """Writes down the mean return of the episodes that ended in each iteration of TRPO."""

    def __init__(self):
        super().__init__()
        self.means = []

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        self.means.append(float(np.mean(self.training_env.finished)))
        self.training_env.finished.clear()


class Checkpoints(BaseCallback):
    """Plays fresh episodes, which disturb no training, after every thousand samples, and ends training at a level."""

    def __init__(self, job, words, level):
        super().__init__()
        self.job, self.words, self.level = job, words, level
        self.means, self.samples = [], []

    def _on_step(self):
        # The last checkpoint comes after training, which still has a last update to do.
        due = self.num_timesteps >= CHECKPOINT * (len(self.means) + 1)
        if due and len(self.means) + 1 < self.job.iterations:
            self.evaluate()
        return not self.reached()

    def reached(self):
        """Return whether the policy is at the level."""
        return bool(self.means) and self.means[-1] >= self.level

    def evaluate(self):
        """Write down the mean return of fresh episodes under the deterministic policy."""
        self.means.append(play(self.model, self.job.system, self.job.evaluations, self.words[len(self.means)]).mean())
        self.samples.append(self.num_timesteps)


def play(agent, system, episodes, word):
    """Return the returns of fresh episodes under the deterministic policy as it is now."""
    env = CompiledVecEnv(system, min(episodes, 100), int(word) % 2**31)
    if (trained_on := agent.get_vec_normalize_env()) is not None:
        env = VecNormalize(env, training=False, norm_reward=False)
        env.obs_rms = trained_on.obs_rms
    rewards, _ = evaluate_policy(agent, env, episodes, True, return_episode_rewards=True)
    return np.array(rewards)


class Player:
    """A trained agent that plays as it trained: with gSDE it draws its noise anew every `sde_sample_freq` steps.

    SB3's own `predict` keeps the last draw for ever, which is one policy out of many and may be a bad one.  An agent
    that trained on normalised observations gets them normalised here, as they were at the end of its training.
    """

    def __init__(self, agent):
        self._agent, self._calls = agent, 0
        self._trained_on = agent.get_vec_normalize_env()

    def predict(self, observations, state=None, episode_start=None, deterministic=False):
        """Return the actions in these states, as SB3's `predict` does."""
        agent = self._agent
        if agent.use_sde and self._calls % agent.sde_sample_freq == 0:
            agent.policy.reset_noise(len(np.atleast_2d(observations)))
        self._calls += 1
        if self._trained_on is not None:
            observations = self._trained_on.normalize_obs(observations)
        return agent.predict(observations, state, episode_start, deterministic)


def compute(job, level=np.inf):
    """Train and evaluate an agent: the counterpart of `algorithms.compute`.

    `fresh` are episodes under the deterministic policy; of TRPO under the stochastic one, and `quiet` without noise.
    """
    learning, evaluation = seeds(job)
    env_seed, agent_seed = (int(word) % 2**31 for word in learning.generate_state(2))
    env = CompiledVecEnv(job.system, settings_of(job.algorithm, job.system).get("n_envs", 1), env_seed)
    agent = make_model(env, job.algorithm, job.system, agent_seed)
    env.seed(env_seed)  # SB3 seeds it with the agent's seed, which would tie the two streams
    first, second = evaluation.spawn(2)
    if not job.algorithm.startswith("TRPO"):
        points = Checkpoints(job, first.generate_state(job.iterations), level)
        agent.learn(job.iterations * CHECKPOINT, callback=points)
        if not points.reached():
            points.evaluate()
        history = history_of(points.means, np.diff(points.samples, prepend=0))
        return Trained(history, play(agent, job.system, job.fresh, second.generate_state(1)[0]))
    batch, returns = agent.n_envs * agent.n_steps, Returns()
    agent.learn(job.iterations * SAMPLES // batch * batch, callback=returns)
    player, fresh = Player(agent), []
    for deterministic, word in zip((False, True), first.generate_state(2), strict=True):
        torch.manual_seed(int(word))
        env = CompiledVecEnv(job.system, min(job.fresh, 100), int(word) % 2**31)
        rewards, _ = evaluate_policy(player, env, job.fresh, deterministic, return_episode_rewards=True)
        fresh.append(np.array(rewards))
    return Trained(history_of(returns.means, batch), *fresh, record_episode(player, job.system, second))


def history_of(means, steps):
    """Return rewards and steps as a history."""
    history = np.zeros(len(means), HISTORY)
    history["rewards"] = history["evaluations"] = means
    history["steps"] = steps
    return history
