"""One agent of an experiment: what determines its numbers, and the numbers."""

import hashlib
import json
import time
import zlib
from typing import Any, NamedTuple

import numpy as np

from spaql.agent import Agent
from spaql.algorithms import AQL, SPAQL, SPAQLTS, Random
from spaql.rules import HISTORY, RULES, Rules
from spaql.systems import make_env

ALGORITHMS: dict[str, type[Agent]] = {"Random": Random, "AQL": AQL, "SPAQL": SPAQL, "SPAQL-TS": SPAQLTS}

FRESH = 1000  # episodes a trained agent is evaluated on afresh


class Job(NamedTuple):
    """An agent to train and evaluate.  Nothing else determines its numbers but the code."""

    algorithm: str
    system: str
    xi: float
    iterations: int
    evaluations: int
    seed: int  # the root seed of the experiment
    agent: int  # the agent's place among those that share everything above
    rules: Rules = RULES["paper"]
    fresh: int = FRESH
    record: bool = False  # keep an episode and the fresh rewards


class Record(NamedTuple):
    """What an agent produced."""

    job: Job
    history: np.ndarray  # an entry an iteration, see `Agent.history`
    fresh: np.ndarray  # mean and standard deviation of the rewards of fresh episodes under the policy kept
    rewards: np.ndarray  # of each of those episodes, if the job records
    episode: dict[str, np.ndarray]  # states, actions and rewards of one more, if the job records
    wall: float  # seconds it took

    def digest(self) -> str:
        """Return a hash of the numbers: two runs agree bit for bit if and only if their digests do."""
        digest = hashlib.sha256(json.dumps(self.job, sort_keys=True).encode())
        for array in (self.history, self.fresh, self.rewards, *(self.episode[key] for key in sorted(self.episode))):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def seeds(job: Job) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """Return the seeds for an agent's learning (which spawns its environment's) and for its fresh evaluation.

    The root seed has a child for each algorithm, system and ξ, which has a child for each agent: independent streams,
    that do not depend on what else an experiment runs.
    """
    cell = zlib.crc32(f"{job.algorithm} {job.system} {float(job.xi)!r}".encode())
    return tuple(np.random.SeedSequence(job.seed, spawn_key=(cell, job.agent)).spawn(2))


def compute(job: Job) -> Record:
    """Train and evaluate an agent."""
    before = time.perf_counter()
    learning, evaluation = seeds(job)
    parameters = {} if job.algorithm == "Random" else {"xi": job.xi}
    agent = ALGORITHMS[job.algorithm](job.system, rules=job.rules, seed=learning, **parameters)
    agent.learn(job.iterations, job.evaluations)
    replay, recording = evaluation.spawn(2)
    rewards = agent.evaluate(job.fresh, seed=replay)
    return Record(
        job=job,
        history=np.asarray(agent.history, HISTORY),
        fresh=np.array([rewards.mean(), rewards.std()]),
        rewards=rewards.astype(np.float32) if job.record else np.zeros(0, np.float32),
        episode=record_episode(agent, job.system, recording) if job.record else {},
        wall=time.perf_counter() - before,
    )


def record_episode(agent: Any, system: str, seed: np.random.SeedSequence) -> dict[str, np.ndarray]:
    """Return the states (the system's own variables), actions and rewards of an episode under the agent's policy."""
    env = make_env(system)
    observation, _ = env.reset(seed=int(seed.generate_state(1)[0]))
    states, actions, rewards = [env.unwrapped.state], [], []
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
    return {"states": np.array(states), "actions": np.array(actions, float)[:, 0], "rewards": np.array(rewards, float)}
