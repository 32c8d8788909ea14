"""The algorithms of the studies by name, and training those of this package.

A new one takes a module with a function `compute(job) -> Trained` and a row in `ALGORITHMS`; `style.STYLES` says how
its lines look.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, Random, TileQ
from spaql.agent import Agent
from spaql.loop import rollouts
from spaql.paper.engine.job import Job, seed_of_group, seeds
from spaql.rules import HISTORY
from spaql.systems import compiled_world, make_env

CHECKPOINT = 1000  # samples between two evaluations of an algorithm that counts samples
LONGER = {"CartPole-v0": 2000}  # steps of longer episodes: the paper says that the pole would go on standing


class Algorithm(NamedTuple):
    """What the studies know about an algorithm."""

    agent: Callable[..., Agent] | None = None  # the class, for the agents of this package
    module: str = __name__  # has `compute(job) -> Trained`; imported when it is first needed
    xi: bool = False  # whether it has a ξ
    family: str = "spaql"  # which entry of `provenance.NUMERICS` is the version of its numbers
    compiled: bool = True  # runs as machine code on compiled systems, so that threads suffice
    needs: tuple[str, ...] = ()  # packages that it cannot be computed without
    chooses: bool = False  # its rollouts choose the agent that it keeps, so that their samples count
    before: bool = False  # its rewards are those of the policy before an iteration's update
    by_samples: bool = False  # a row of its curve is an evaluation after a thousand samples, not an iteration


REPAIRED = Algorithm(family="repaired", by_samples=True)
TILES = REPAIRED._replace(family="tiles")
NETWORK = Algorithm(
    module="spaql.paper.baselines.networks", family="trpo", compiled=False, needs=("torch", "sb3_contrib")
)

ALGORITHMS = {
    "Random": Algorithm(Random),
    "AQL": Algorithm(AQL, xi=True),
    "SPAQL": Algorithm(SPAQL, xi=True, chooses=True),
    "SPAQL-TS": Algorithm(SPAQLTS, xi=True, chooses=True),
    "SPAQL-R": REPAIRED._replace(agent=SPAQLR),
    "TileQ": TILES._replace(agent=TileQ),
    **dict.fromkeys(("TRPO", "TRPO tuned"), NETWORK._replace(before=True)),
    **dict.fromkeys(("SAC", "DQN", "PPO"), NETWORK._replace(by_samples=True)),
    "Limit": Algorithm(module="spaql.paper.baselines.limit", family="textbook", by_samples=True),
    "Tree": REPAIRED._replace(module="spaql.paper.chapters.systems", family="tree"),
    "To a level": REPAIRED._replace(module="spaql.paper.chapters.dimensions"),
    "TileQ to a level": TILES._replace(module="spaql.paper.chapters.dimensions"),
    "Sarsa(λ)": Algorithm(module="spaql.paper.baselines.sarsa", family="sarsa", by_samples=True),
}
LEARNERS = tuple(name for name, row in ALGORITHMS.items() if row.xi)


def module_of(job):
    """Return the module that computes a job."""
    return importlib.import_module(ALGORITHMS[job.algorithm].module)


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


def untrained(job: Job) -> Agent:
    """Return the agent of a job before it learns."""
    row = ALGORITHMS[job.algorithm]
    given = dict(job.parameters) | {"seed": seeds(job)[0]}
    if row.xi:
        given["xi"] = job.xi
    if job.starts == "shared":
        given["env_seed"] = seed_of_group(job)
    if not row.by_samples:
        given["rules"] = job.rules
    if "control" in given:
        return importlib.import_module("spaql.paper.chapters.learned").CONTROLLED[job.algorithm](job.system, **given)
    return row.agent(job.system, **given)


def train(job: Job) -> tuple[Agent, np.ndarray]:
    """Return the trained agent of a job and its history, the same each time: stored rows hold no partitions."""
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
    own, of_env = seed.spawn(2)
    world = compiled_world(agent.env, agent._space, int(of_env.generate_state(1)[0]))
    rewards, steps = np.empty(job.fresh), np.empty(job.fresh, np.int64)
    patient = agent._learner._replace(limit=LONGER[job.system])
    world.call(
        rollouts, world.starts(job.fresh), agent._best, patient, False, np.random.default_rng(own), rewards, steps
    )
    return rewards


def record_episode(agent, system: str, seed: np.random.SeedSequence) -> dict[str, np.ndarray]:
    """Return the states (the system's own variables), actions and rewards of an episode under the agent's policy."""
    env = make_env(system)
    observation, _ = env.reset(seed=int(seed.generate_state(1)[0]))
    states, actions, rewards = [env.unwrapped.state], [], []
    state, over = None, False
    while not over:
        action, state = agent.predict(observation, state=state, episode_start=np.array([not actions]))
        observation, reward, terminated, truncated, _ = env.step(action)
        over = terminated or truncated
        states.append(env.unwrapped.state)
        actions.append(np.ravel(action)[0])
        rewards.append(float(reward))
    found = {"states": states, "actions": actions, "rewards": rewards}
    return {name: np.array(numbers, float) for name, numbers in found.items()}
