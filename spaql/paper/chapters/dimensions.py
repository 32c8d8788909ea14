"""Chapter 10: what dimensions cost, on Pendulum with dummy observations that say nothing.

The paper explains what goes wrong on CartPole by its number of dimensions.  Dummies vary that number and nothing else:
they are drawn afresh at every step.
"""

import dataclasses
import math
from itertools import product

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.compiling import python_or_jit
from spaql.paper.baselines.settings import ZOO
from spaql.paper.chapters.small_systems import Interpreted
from spaql.paper.engine.algorithms import CHECKPOINT, Trained, module_of, untrained
from spaql.paper.engine.job import seeds
from spaql.paper.engine.study import declare, make_jobs
from spaql.rules import HISTORY
from spaql.systems import Variable, make_env, pendulum, register

LEVEL = -250.0  # a mean return that is 90 % of the way from Random to the limit
LEARNERS = ("TileQ", "SPAQL-R", "PPO")

# The environments

# A congruential generator whose products are exact in floating-point numbers, so that compiled code has its bits.
FACTOR, SUMMAND, MODULUS = 1664525.0, 1013904223.0, 2.0**32

turn, begin_turning, look = python_or_jit(pendulum.step), python_or_jit(pendulum.begin), python_or_jit(pendulum.observe)


class OneDummy(pendulum.Pendulum):
    """The constants of the pendulum with one dummy: compiled systems are told apart by this class."""


class TwoDummies(pendulum.Pendulum):
    """Those with two."""


def begin(constants, start, state):
    """Begin with an angle, a speed and the first dummies."""
    begin_turning(constants, start, state)
    for i in range(2, len(start)):
        state[i + 1] = math.floor(MODULUS * start[i])


def observe(constants, state, observation):
    """Write what the pendulum shows, and the dummies."""
    look(constants, state, observation)
    for i in range(3, len(observation)):
        observation[i] = np.float32(state[i] / (MODULUS / 2) - 1.0)


def step(constants, state, action):
    """Apply a torque, and draw the dummies afresh."""
    reward, over = turn(constants, state, action)
    for i in range(3, len(state)):
        state[i] = (FACTOR * state[i] + SUMMAND) % MODULUS
    return reward, over


def make_known(count, kind):
    """Register the pendulum with so many dummies; return its id, which says where to import it from."""
    plain, known, name = make_env("Pendulum-v1"), pendulum.SYSTEM, f"PendulumDummies{count}"
    bounds = np.append(plain.observation_space.high, np.ones(count, np.float32))
    box = {"observation_space": spaces.Box(-bounds, bounds), "action_space": plain.action_space}
    env = type(name, (Interpreted,), box | {"constants": kind(*pendulum.describe(plain))})
    gym.register(f"spaql/{name}-v1", entry_point=env, max_episode_steps=200)
    low, high = np.array([-math.pi, -1.0] + count * [0.0]), np.array([math.pi, 1.0] + count * [1.0])
    env_id = f"{__name__}:spaql/{name}-v1"
    register(
        dataclasses.replace(
            known,
            name=name,
            originals=(env,),
            constants=kind,
            describe=lambda env: env.unwrapped.constants,
            begin=begin,
            step=step,
            observe=observe,
            draw_starts=lambda constants, rng, episodes: rng.uniform(low, high, (episodes, 2 + count)),
            observed=(*known.observed, *(Variable(f"dummy_{i + 1}", f"z{i + 1}") for i in range(count))),
            size=3 + count,
            titles={env_id: f"Pendulum, {count} {'dummy' if count == 1 else 'dummies'}"},
            reference=(*known.reference, *(0.0,) * count),
        )
    )
    ZOO[env_id] = ZOO["Pendulum-v1"]
    return env_id


SYSTEMS = ("Pendulum-v1", make_known(1, OneDummy), make_known(2, TwoDummies))  # with 0, 1 and 2 dummies

# Samples until the level


@declare("dimensions", "what dimensions cost")
def dimension_jobs(systems=SYSTEMS, learners=LEARNERS, agents=5, most=100, evaluations=100, seed=5050):
    """Return agents that learn until they reach the level, for at most so many thousand samples, with more dummies."""
    size = {"agents": agents, "iterations": most, "evaluations": evaluations, "seed": seed, "fresh": evaluations}
    jobs = []
    for system, name in product(systems, learners):  # TileQ's numbers have a version of their own
        jobs += make_jobs("TileQ to a level" if name == "TileQ" else "To a level", system, learner=name, **size)
    return jobs


def compute(job):
    """Return how an agent learnt until it was at the level, or had its samples."""
    given = dataclasses.replace(job, algorithm=dict(job.parameters)["learner"], parameters=())
    if given.algorithm == "PPO":
        return module_of(given).compute(given, LEVEL)
    agent, history = untrained(given), np.zeros(job.iterations, HISTORY)
    for row, seed in zip(history, seeds(given)[1].spawn(job.iterations), strict=True):
        earned = agent.learn(samples=CHECKPOINT).evaluate(job.evaluations, seed=seed)
        row["rewards"] = row["evaluations"] = earned.mean()
        row["arms"], row["steps"] = agent.arms, CHECKPOINT
        if earned.mean() >= LEVEL:
            break
    return Trained(history[history["steps"] > 0], earned)
