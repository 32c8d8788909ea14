"""Agents of this package: trained, evaluated on fresh episodes, and trained again from their seeds."""

from typing import Any

import gymnasium as gym
import numpy as np

from spaql.agent import Agent
from spaql.paper.runs.algorithms import ALGORITHMS, by_samples, untrained
from spaql.paper.runs.job import BY_EPISODES, Job, Record, moments, seeds
from spaql.paper.runs.repaired_settings import CHECKPOINT, SPACING
from spaql.rules import HISTORY
from spaql.systems import make_env


def compute(job: Job) -> Record:
    """Train and evaluate an agent."""
    looks = by_samples(job)
    first, second = seeds(job)[1].spawn(2)
    try:
        agent, history = train(job)
    except gym.error.UnregisteredEnv as error:
        raise ValueError(
            f"a process of its own does not know {job.system!r}: name it with the module that registers it, "
            f"'module:{job.system}'"
        ) from error
    rewards = agent.evaluate(job.fresh, seed=second if looks else first)
    if looks or not job.record:
        return Record(job, history, moments(rewards))
    return Record(job, history, moments(rewards), rewards.astype(np.float32), record_episode(agent, job.system, second))


def train(job: Job) -> tuple[Agent, np.ndarray]:
    """Return the trained agent of a job and its history."""
    looks = seeds(job)[1].spawn(2)[0]
    if ALGORITHMS[job.algorithm].by_samples and job.looks != BY_EPISODES:
        return train_repaired(job, looks)
    if job.looks > 0:
        return train_learner(job, looks)
    agent = untrained(job).learn(job.iterations, job.evaluations)
    history = np.asarray(agent.history, HISTORY)
    return agent, end_of(history) if job.brief else history


def end_of(history: np.ndarray) -> np.ndarray:
    """Return a history as one entry: how the training ended, and the samples it took."""
    last = history[-1:].copy()
    for name in ("steps", "evaluation_steps"):
        last[name] = history[name].sum()
    return last


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
        rewards.append(reward)
    found = {"states": states, "actions": np.array(actions)[:, 0], "rewards": rewards}
    return {name: np.array(numbers, float) for name, numbers in found.items()}


def train_repaired(job: Job, looks: np.random.SeedSequence) -> tuple[Agent, np.ndarray]:
    """Train an agent of SPAQL-R or of a variant; its policy is evaluated after every `CHECKPOINT` samples."""
    agent = untrained(job)
    history = np.zeros(job.iterations, HISTORY)
    for row, seed in zip(history, looks.spawn(job.iterations), strict=True):
        row["tau"] = agent.learn(samples=CHECKPOINT).history.tau[-1]  # type: ignore[call-arg]
        row["rewards"] = row["evaluations"] = agent.evaluate(job.evaluations, seed=seed).mean()
        row["arms"] = row["trainee_arms"] = agent.arms
        row["steps"] = CHECKPOINT
    return agent, history


def train_learner(job: Job, looks: np.random.SeedSequence) -> tuple[Agent, np.ndarray]:
    """Train an agent of the paper's on `iterations` times `CHECKPOINT` samples; each look at it is `looks` episodes.

    N is `job.evaluations`.  From one look to the next all samples, those of the rollouts too, grow by `CHECKPOINT` or
    by the factor `SPACING`.  A row's `evaluations` is what the agent itself reports of the policy that it keeps.
    """
    agent, budget, rows = untrained(job), job.iterations * CHECKPOINT, []
    longest, history = agent.parameters["horizon"], agent.history
    done = trained = taken = 0
    while trained < budget:
        goal = max(taken + CHECKPOINT, int(SPACING * taken))
        while trained < budget and taken < goal:
            # As many iterations at once as come to the look if they are as long as those so far, but no more samples.
            each = taken / len(history) if taken else (job.evaluations + 1) * longest
            blocks = int((goal - taken) / each), (budget - trained) // longest
            history = agent.learn(max(1, min(blocks)), job.evaluations).history
            trained = int(history.steps.sum())
            taken = trained + int(history.evaluation_steps.sum())
        row = history[-1].copy()
        row["rewards"] = agent.evaluate(job.looks, seed=looks.spawn(1)[0]).mean()
        row["evaluations"] = history.rewards[-1]
        row["steps"], row["evaluation_steps"] = history.steps[done:].sum(), history.evaluation_steps[done:].sum()
        rows.append(row)
        done = len(history)
    return agent, np.array(rows, HISTORY)
