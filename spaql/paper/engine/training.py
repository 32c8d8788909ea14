"""Training the agents of this package from their jobs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from spaql.agent import Agent
from spaql.paper.engine.algorithms import ALGORITHMS, untrained
from spaql.paper.engine.job import Job, seeds
from spaql.policies.play import evaluate
from spaql.rules import HISTORY
from spaql.systems import make_env

CHECKPOINT = 1000  # samples between two evaluations of an algorithm that counts samples
LONGER = {"CartPole-v0": 2000}  # steps of longer episodes: the paper says that the pole would go on standing


class Trained(NamedTuple):
    """What an agent produced."""

    history: np.ndarray  # one entry per iteration or per thousand samples, see `Agent.history`
    fresh: np.ndarray  # returns of fresh episodes under the policy kept
    quiet: np.ndarray = np.zeros(0)  # the same without a network's noise
    episode: Mapping[str, np.ndarray] = {}  # states, actions and rewards of one more episode
    longer: np.ndarray = np.zeros(0)  # returns of episodes longer than the agent was trained on, see `LONGER`


def compute(job: Job) -> Trained:
    """Train an agent, evaluate it on fresh episodes, and record one episode."""
    agent, history = train(job)
    looks, episode, longer = seeds(job)[1].spawn(3)
    if ALGORITHMS[job.algorithm].by_samples:
        return Trained(history, agent.evaluate(job.fresh, seed=episode))
    return Trained(
        history,
        agent.evaluate(job.fresh, seed=looks),
        episode=record_episode(agent, job.system, episode),
        longer=play_longer(agent, job, longer),
    )


def train(job: Job) -> tuple[Agent, np.ndarray]:
    """Return the trained agent of a job and its history."""
    agent = untrained(job)
    if not ALGORITHMS[job.algorithm].by_samples:
        return agent, np.asarray(agent.learn(job.iterations, job.evaluations).history, HISTORY)
    history = np.zeros(job.iterations, HISTORY)
    for row, seed in zip(history, seeds(job)[1].spawn(2)[0].spawn(job.iterations), strict=True):
        row["tau"] = agent.learn(samples=CHECKPOINT).history.tau[-1]
        row["rewards"] = row["evaluations"] = agent.evaluate(job.evaluations, seed=seed).mean()
        row["arms"] = row["trainee_arms"] = agent.arms
        row["steps"] = CHECKPOINT
    return agent, history


def play_longer(agent: Agent, job: Job, seed: np.random.SeedSequence) -> np.ndarray:
    """Return the returns of longer episodes, of agents whose rollouts chose a policy; nothing of others."""
    if job.system not in LONGER or not ALGORITHMS[job.algorithm].chooses:
        return np.zeros(0)
    env = gym.wrappers.TimeLimit(make_env(job.system).unwrapped, LONGER[job.system])
    return evaluate(agent.policy.tree(deterministic=False), env, job.fresh, seed, deterministic=False)


def retrain(job: Job) -> Agent:
    """Return the agent of a job, trained again from its seeds: stored rows hold no partitions."""
    return train(job)[0]


def record_episode(agent: Any, system: str, seed: np.random.SeedSequence) -> dict[str, np.ndarray]:
    """Return the states (the system's own variables), actions and rewards of an episode under the agent's policy."""
    env = make_env(system)
    observation, _ = env.reset(seed=int(seed.generate_state(1)[0]))
    states: list[np.ndarray] = [env.unwrapped.state]
    actions: list[np.ndarray] = []
    rewards: list[float] = []
    state: Any = None
    over = False
    while not over:
        start = np.array([not actions])
        action, state = agent.predict(observation, state=state, episode_start=start)
        observation, reward, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        states.append(env.unwrapped.state)
        actions.append(np.ravel(action))
        rewards.append(float(reward))
    found = {"states": states, "actions": np.array(actions)[:, 0], "rewards": rewards}
    return {name: np.array(numbers, float) for name, numbers in found.items()}
