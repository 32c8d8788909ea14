"""One agent of an experiment: what determines its numbers, and the numbers."""

import dataclasses
import hashlib
import json
import time
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from spaql.agent import Agent
from spaql.algorithms import AQL, SPAQL, SPAQLR, SPAQLTS, Random
from spaql.rules import HISTORY, RULES, Rules
from spaql.systems import make_env

ALGORITHMS: dict[str, Callable[..., Agent]] = {
    "Random": Random,
    "AQL": AQL,
    "SPAQL": SPAQL,
    "SPAQL-TS": SPAQLTS,
    "SPAQL-R": SPAQLR,
}
WITHOUT_XI = ("Random", "SPAQL-R")

FRESH = 1000  # episodes a trained agent is evaluated on afresh


@dataclasses.dataclass(frozen=True)
class Job:
    """An agent to train and evaluate.  Nothing else determines its numbers but the code.

    A job is written by the names of its fields, without those that have their defaults, so that a field or a rule that
    comes later with a default leaves every stored identity and digest as it is.
    """

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
    starts: str = "independent"  # or "shared": all agents of a group begin their episodes in the same states
    parameters: tuple[tuple[str, Any], ...] = ()  # others of the agent, by name, in the order of their names
    looks: int = 0  # fresh episodes at each look at the policy while it trains; then `iterations` are thousand samples
    brief: bool = False  # keep the training as a single entry of the history: how it ended, and the samples it took

    def named(self) -> dict[str, Any]:
        """Return the fields by name as plain data, without those that have their defaults."""
        found = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }
        if "rules" in found:
            found["rules"] = {
                name: choice for name, choice in self.rules._asdict().items() if choice != Rules._field_defaults[name]
            }
        if "parameters" in found:
            found["parameters"] = dict(self.parameters)
        return found | {"xi": float(self.xi)}

    def identity(self) -> str:
        """Return a text that two jobs share if and only if they are equal: canonical JSON of their fields."""
        return json.dumps(self.named(), sort_keys=True)

    @classmethod
    def parse(cls, named: dict[str, Any]) -> "Job":
        """Return the job of fields by name."""
        given = named.get("parameters") or {}
        given = json.loads(given) if isinstance(given, str) else given
        return cls(**named | {"rules": Rules(**named.get("rules", {})), "parameters": frozen(given)})

    def group(self) -> "Job":
        """Return the first job of those that differ from this one in their agent alone."""
        return dataclasses.replace(self, agent=0)


def frozen(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return parameters as a job holds them: sorted, and with tuples for lists."""

    def fixed(value: Any) -> Any:
        return tuple(map(fixed, value)) if isinstance(value, list | tuple | np.ndarray) else value

    return tuple(sorted((name, fixed(value)) for name, value in parameters.items()))


class Record(NamedTuple):
    """What an agent produced."""

    job: Job
    history: np.ndarray  # one entry per iteration, see `Agent.history`
    fresh: np.ndarray  # mean and standard deviation of the rewards of fresh episodes under the policy kept
    rewards: np.ndarray  # of each of those episodes, if the job records
    episode: dict[str, np.ndarray]  # states, actions and rewards of one more, if the job records
    wall: float  # seconds it took

    def digest(self) -> str:
        """Return a hash of the job and the numbers: two runs agree bit for bit if and only if their digests do."""
        digest = hashlib.sha256(self.job.identity().encode())
        for array in (self.history, self.fresh, self.rewards, *(self.episode[key] for key in sorted(self.episode))):
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()


def cell_of(job: Job) -> int:
    """Return a number for the algorithm, system and ξ of a job."""
    return zlib.crc32(f"{job.algorithm} {job.system} {float(job.xi)!r}".encode())


def seeds(job: Job) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """Return the seeds for an agent's learning (which spawns its environment's) and for its fresh evaluation.

    The root seed has a child for each algorithm, system and ξ, which has a child for each agent: independent streams,
    that do not depend on what else an experiment runs.
    """
    learning, evaluation = np.random.SeedSequence(job.seed, spawn_key=(cell_of(job), job.agent)).spawn(2)
    return learning, evaluation


def make_agent(algorithm: str, system: str, xi: float, **parameters: Any) -> Agent:
    """Return an untrained agent of an algorithm, by its name; some have no ξ."""
    own = {} if algorithm in WITHOUT_XI else {"xi": xi}
    return ALGORITHMS[algorithm](system, **own, **parameters)


def untrained(job: Job) -> Agent:
    """Return the agent of a job before it learns."""
    learning, _ = seeds(job)
    env_seed = int(np.random.SeedSequence(job.seed, spawn_key=(cell_of(job),)).generate_state(1)[0])
    shared = env_seed if job.starts == "shared" else None
    others = dict(job.parameters)
    return make_agent(job.algorithm, job.system, job.xi, rules=job.rules, seed=learning, env_seed=shared, **others)


def compute(job: Job) -> Record:
    """Train and evaluate an agent."""
    before = time.perf_counter()
    _, evaluation = seeds(job)
    agent = untrained(job).learn(job.iterations, job.evaluations)
    replay, recording = evaluation.spawn(2)
    rewards = agent.evaluate(job.fresh, seed=replay)
    return Record(
        job=job,
        history=history_of(agent, job.brief),
        fresh=np.array([rewards.mean(), rewards.std()]),
        rewards=rewards.astype(np.float32) if job.record else np.zeros(0, np.float32),
        episode=record_episode(agent, job.system, recording) if job.record else {},
        wall=time.perf_counter() - before,
    )


def history_of(agent: Agent, brief: bool) -> np.ndarray:
    """Return an agent's history, or one entry for all of it: how the training ended, and the samples it took."""
    history = np.asarray(agent.history, HISTORY)
    if not brief:
        return history
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
