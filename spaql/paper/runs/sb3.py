"""SAC, PPO and DQN agents of Stable-Baselines3 on compiled environments, with the settings of `sb3_settings`."""

import time
from typing import Any

import numpy as np

from spaql.paper.runs.job import Job, Record, seeds
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.paper.runs.sb3_settings import SETTINGS
from spaql.paper.runs.trpo import CompiledVecEnv
from spaql.rules import HISTORY

try:
    import torch
    from stable_baselines3 import DQN, PPO, SAC
    from stable_baselines3.common.base_class import BaseAlgorithm
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecEnv, VecNormalize
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("SAC, PPO and DQN need stable-baselines3 and torch: pip install 'spaql[trpo]'") from error

CLASSES: dict[str, type[BaseAlgorithm]] = {"SAC": SAC, "PPO": PPO, "DQN": DQN}


class Checkpoints(BaseCallback):
    """Plays fresh episodes with the policy as it is after every so many samples; training is not disturbed by it."""

    def __init__(self, job: Job, words: np.ndarray):
        super().__init__()
        self.job, self.words = job, words
        self.means: list[float] = []
        self.samples: list[int] = []

    def _on_step(self) -> bool:
        # The last checkpoint comes after training, which still has a last update to do.
        due = self.num_timesteps >= CHECKPOINT * (len(self.means) + 1)
        if due and len(self.means) + 1 < self.job.iterations:
            self.look()
        return True

    def look(self) -> np.ndarray:
        """Return the returns of fresh episodes under the deterministic policy, and write down their mean."""
        seed = int(self.words[len(self.means)]) % 2**31
        rewards = play(self.model, self.job.system, self.job.evaluations, seed)
        self.means.append(float(np.mean(rewards)))
        self.samples.append(self.num_timesteps)
        return rewards


def play(agent: BaseAlgorithm, system: str, episodes: int, seed: int) -> np.ndarray:
    """Return the returns of fresh episodes under the deterministic policy as it is now."""
    env: VecEnv = CompiledVecEnv(system, min(episodes, 100), seed)
    if (trained_on := agent.get_vec_normalize_env()) is not None:
        env = VecNormalize(env, training=False, norm_reward=False)
        env.obs_rms = trained_on.obs_rms
    rewards, _ = evaluate_policy(agent, env, episodes, True, return_episode_rewards=True)
    return np.array(rewards)


def schedule(setting: Any) -> Any:
    """Return a setting as Stable-Baselines3 takes it: of "lin_0.2" a function that falls from 0.2 to zero."""
    if not (isinstance(setting, str) and setting.startswith("lin_")):
        return setting
    first = float(setting.removeprefix("lin_"))
    return lambda remaining: remaining * first


def make_sb3(job: Job) -> BaseAlgorithm:
    """Return an untrained agent with the zoo's settings for its system."""
    settings = {name: schedule(setting) for name, setting in SETTINGS[job.algorithm][job.system].items()}
    env_seed, agent_seed = (int(word) % 2**31 for word in seeds(job)[0].generate_state(2))
    env = CompiledVecEnv(job.system, settings.pop("n_envs", 1), env_seed)
    torch.set_num_threads(1)
    seen: VecEnv = env
    if settings.pop("normalize", False):
        seen = VecNormalize(env, gamma=settings["gamma"])  # as rl-baselines3-zoo does
    agent = CLASSES[job.algorithm]("MlpPolicy", seen, seed=agent_seed, device="cpu", **settings)
    env.seed(env_seed)  # SB3 seeds it with the agent's seed, which would tie the two streams
    return agent


def train_sb3(job: Job) -> tuple[BaseAlgorithm, Checkpoints]:
    """Return a trained agent, and what it earned at every checkpoint."""
    agent = make_sb3(job)
    looks = Checkpoints(job, seeds(job)[1].spawn(2)[0].generate_state(job.iterations))
    agent.learn(job.iterations * CHECKPOINT, callback=looks)
    looks.look()
    return agent, looks


def compute(job: Job) -> Record:
    """Train an agent, with fresh episodes at every checkpoint: the counterpart of `training.compute`."""
    before = time.perf_counter()
    agent, looks = train_sb3(job)
    history = np.zeros(job.iterations, HISTORY)
    history["rewards"] = history["evaluations"] = looks.means
    history["steps"] = np.diff(looks.samples, prepend=0)
    last = seeds(job)[1].spawn(2)[1]
    fresh = play(agent, job.system, job.fresh, int(last.generate_state(1)[0]) % 2**31)
    return Record(
        job=job,
        history=history,
        fresh=np.array([np.mean(fresh), np.std(fresh)]),
        rewards=np.zeros(0, np.float32),
        episode={},
        wall=time.perf_counter() - before,
    )
