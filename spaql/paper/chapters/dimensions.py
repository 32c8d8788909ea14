"""Chapter 10: what dimensions cost, on Pendulum with dummy observations that say nothing.

The paper explains what goes wrong on CartPole by its number of dimensions.  Dummies vary that number and nothing else:
they are drawn afresh at every step.
"""

import dataclasses
import math
from collections.abc import Iterable
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd
from gymnasium import spaces
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from spaql.compiling import python_or_jit
from spaql.paper.baselines.settings import ZOO
from spaql.paper.engine.algorithms import CHECKPOINT, Trained, module_of, untrained
from spaql.paper.engine.job import Job, seeds
from spaql.paper.engine.study import declare, make_jobs
from spaql.rules import HISTORY
from spaql.systems import pendulum
from spaql.systems.pendulum import Pendulum
from spaql.systems.registry import Variable, register

LEVEL = -250.0  # a mean return that is 90 % of the way from Random to the limit
LEARNERS = ("TileQ", "SPAQL-R", "PPO")
MOST = 2  # dummies

# ---------------------------------------------------------------------------------------------------------------------
# The environments

# A congruential generator whose products are exact in floating-point numbers, so that compiled code has its bits.
FACTOR, SUMMAND, MODULUS = 1664525.0, 1013904223.0, 2.0**32

turn, begin_turning, look = python_or_jit(pendulum.step), python_or_jit(pendulum.begin), python_or_jit(pendulum.observe)


class WithDummies(PendulumEnv):
    """Gymnasium's Pendulum with `count` numbers between -1 and 1 after its observation."""

    count = 0

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        high = np.append(self.observation_space.high, np.ones(self.count, np.float32))
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)

    def reset(self, **kwargs: Any) -> tuple[np.ndarray, dict]:
        shown, info = super().reset(**kwargs)
        self.dummies = np.floor(MODULUS * self.np_random.random(self.count))
        return self.with_dummies(shown), info

    def step(self, u: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        shown, *rest = super().step(u)
        self.dummies = (FACTOR * self.dummies + SUMMAND) % MODULUS
        return self.with_dummies(shown), *rest

    def with_dummies(self, shown: np.ndarray) -> np.ndarray:
        return np.append(shown, self.dummies / (MODULUS / 2) - 1.0).astype(np.float32)


def begin(constants: Pendulum, start: np.ndarray, state: np.ndarray) -> None:
    """Begin with an angle, a speed and the first dummies."""
    begin_turning(constants, start, state)
    for i in range(2, len(start)):
        state[i + 1] = math.floor(MODULUS * start[i])


def observe(constants: Pendulum, state: np.ndarray, observation: np.ndarray) -> None:
    """Write what the pendulum shows, and the dummies."""
    look(constants, state, observation)
    for i in range(3, len(observation)):
        observation[i] = np.float32(state[i] / (MODULUS / 2) - 1.0)


def step(constants: Pendulum, state: np.ndarray, action: np.ndarray) -> tuple[float, bool]:
    """Apply a torque, and draw the dummies afresh."""
    reward, over = turn(constants, state, action)
    for i in range(3, len(state)):
        state[i] = (FACTOR * state[i] + SUMMAND) % MODULUS
    return reward, over


def describe(env: gym.Env) -> Pendulum | None:
    """Return the constants of the pendulum, in the class of this number of dummies."""
    found = pendulum.describe(env)
    return None if found is None else KINDS[env.unwrapped.count](*found._replace(clip_first=True))


def draw_starts(constants: Pendulum, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw angles, speeds and dummies."""
    count = KINDS.index(type(constants))
    high = np.array([math.pi, 1.0] + count * [1.0])
    low = np.array([-math.pi, -1.0] + count * [0.0])
    return rng.uniform(low, high, (episodes, 2 + count))


# The constants with so many dummies: a class for each, by whose name kept machine code is found again.
KINDS = [Pendulum, *(type(f"Dummies{count}", (Pendulum,), {}) for count in range(1, MOST + 1))]
globals().update({kind.__name__: kind for kind in KINDS[1:]})
DUMMIES = tuple(f"{__name__}:spaql/PendulumDummies{count}-v1" for count in range(1, MOST + 1))
SYSTEMS = ("Pendulum-v1", *DUMMIES)
ZOO.update({key: {"PPO": ZOO["Pendulum-v1"]["PPO"]} for key in DUMMIES})

for _count, _id in enumerate(DUMMIES, 1):
    _class = type(f"WithDummies{_count}", (WithDummies,), {"count": _count})
    gym.register(_id.partition(":")[2], entry_point=_class, max_episode_steps=200)
    _dummies = tuple(Variable(f"dummy_{i + 1}", f"z{i + 1}", "", (-1.0, 1.0), f"$z_{i + 1}$") for i in range(_count))
    _changed = {
        "name": f"PendulumDummies{_count}",
        "originals": (_class,),
        "constants": KINDS[_count],
        "describe": describe,
        "begin": begin,
        "step": step,
        "observe": observe,
        "draw_starts": draw_starts,
        "observed": (*pendulum.SYSTEM.observed, *_dummies),
        "size": 3 + _count,
        "choices": None,
        "titles": {_id: f"Pendulum, {_count} dumm{'y' if _count == 1 else 'ies'}"},
        "returns": {},
        "wrappers": (),
        "reference": (1.0, 0.0, 0.0) + _count * (0.0,),
        "vary": None,
    }
    register(dataclasses.replace(pendulum.SYSTEM, **_changed))

# ---------------------------------------------------------------------------------------------------------------------
# Samples until the level


@declare("dimensions", "what dimensions cost")
def dimension_jobs(
    systems: Iterable[str] = SYSTEMS,
    learners: Iterable[str] = LEARNERS,
    agents: int = 5,
    most: int = 100,  # thousands of samples
    evaluations: int = 100,
    seed: int = 5050,
) -> list[Job]:
    """Return agents that learn until their policy is at the level, on Pendulum with more and more dummies."""
    size = {"agents": agents, "iterations": most, "evaluations": evaluations, "seed": seed, "fresh": evaluations}
    return [
        job for system in systems for name in learners for job in make_jobs("To a level", system, learner=name, **size)
    ]


def compute(job: Job) -> Trained:
    """Return how an agent learnt until it was at the level, or had its samples."""
    given = dataclasses.replace(job, algorithm=dict(job.parameters)["learner"], parameters=())
    if given.algorithm not in ("TileQ", "SPAQL-R"):
        whole = module_of(given).compute(given)  # a network cannot be stopped on the way
        there = np.flatnonzero(whole.history["rewards"] >= LEVEL)
        return Trained(whole.history[: there[0] + 1] if there.size else whole.history, whole.fresh)
    agent, rows = untrained(given), []
    for seed in seeds(given)[1].spawn(job.iterations):
        agent.learn(samples=CHECKPOINT)
        earned = agent.evaluate(job.evaluations, seed=seed)
        rows.append(np.zeros((), HISTORY))
        rows[-1]["rewards"] = rows[-1]["evaluations"] = earned.mean()
        rows[-1]["arms"], rows[-1]["steps"] = agent.arms, CHECKPOINT
        if earned.mean() >= LEVEL:
            break
    return Trained(np.array(rows), earned)


def medians(agents: pd.DataFrame) -> pd.DataFrame:
    """Return the median samples until the level by learner and dimensions, infinite where most do not get there."""
    reached = agents.evaluations.isna() | (agents.evaluations >= LEVEL)  # PPO's are not stored: all of them do
    frame = agents.assign(samples=agents.samples.astype(float).where(reached, np.inf))
    frame["dimensions"] = [2 + SYSTEMS.index(system) for system in frame.system]
    frame["algorithm"] = frame.parameters.str.extract(r'"learner": "([^"]+)"', expand=False)
    return frame.groupby(["algorithm", "dimensions"]).samples.median().reset_index()
