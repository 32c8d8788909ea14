"""The car in the valley with an engine of any strength: Gymnasium's MountainCarContinuous-v0."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv

from spaql.compiling import python_or_jit
from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register


class MountainCarContinuous(NamedTuple):
    """The constants of the car.  The state is position, speed, and whether no step has been taken yet."""

    power: float
    min_action: float
    max_action: float
    min_position: float
    max_position: float
    max_speed: float
    goal_position: float
    goal_speed: float


def begin(constants, start, state):
    """Begin at a position, at rest unless the start has a speed."""
    state[0], state[1], state[2] = start[0], (start[1] if start.size > 1 else 0.0), 1.0


def observe(constants, state, observation):
    """Write the state, rounded to the float32 Gymnasium reports."""
    observation[0], observation[1] = np.float32(state[0]), np.float32(state[1])


# Gymnasium keeps the state as float32 from the first step on.  Beside a float32 a number of Python's is rounded to one;
# what was replaced by a number of Python's, because it was out of bounds, is a double again until the step's end.


@python_or_jit
def beside(number, single):
    """A number of Python's as NumPy takes it beside a float32 (`single`) or beside a double."""
    return np.float64(np.float32(number)) if single else number


@python_or_jit
def acceleration(constants, force, position, single):
    """What the engine and the slope add to the speed."""
    slope = 0.0025 * math.cos(np.float64(np.float32(3.0) * np.float32(position)) if single else 3.0 * position)
    engine, of_float32 = np.float64(force), True
    if beside(constants.min_action, True) > engine:
        engine, of_float32 = constants.min_action, False
    if beside(constants.max_action, of_float32) < engine:
        engine, of_float32 = constants.max_action, False
    if of_float32:
        return np.float64(force * np.float32(constants.power) - np.float32(slope))
    return engine * constants.power - slope


def step(constants, state, action):
    """Apply a force between -1 and 1."""
    force = np.float32(action[0])
    position, speed, single = state[0], state[1], state[2] == 0.0
    faster = acceleration(constants, force, position, single)
    speed = np.float64(np.float32(speed) + np.float32(faster)) if single else speed + faster
    speed_single = single
    if speed > beside(constants.max_speed, speed_single):
        speed, speed_single = constants.max_speed, False
    if speed < beside(-constants.max_speed, speed_single):
        speed, speed_single = -constants.max_speed, False
    position = np.float64(np.float32(position) + np.float32(speed)) if single else position + speed
    if position > beside(constants.max_position, single):
        position, single = constants.max_position, False
    if position < beside(constants.min_position, single):
        position, single = constants.min_position, False
    if position == beside(constants.min_position, single) and speed < 0.0:
        speed, speed_single = 0.0, False
    arrived = position >= beside(constants.goal_position, single)
    arrived = arrived and speed >= beside(constants.goal_speed, speed_single)
    state[0], state[1], state[2] = np.float32(position), np.float32(speed), 0.0
    cost = np.float64(force) * np.float64(force) * 0.1
    return (100.0 if arrived else 0.0) - cost, arrived


def draw_starts(constants: MountainCarContinuous, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw positions in the valley."""
    return rng.uniform(-0.6, -0.4, size=(episodes, 1))


ATTRIBUTES = (
    *("power", "min_action", "max_action", "min_position", "max_position", "max_speed"),
    *("goal_position", "goal_velocity"),
)


def describe(env: gym.Env) -> MountainCarContinuous | None:
    """Return the constants of the car; None for forces that are not float32."""
    inner, acted = env.unwrapped, env.action_space
    if acted.shape != (1,) or acted.dtype != np.float32 or not plain_numbers(inner, ATTRIBUTES):
        return None
    return MountainCarContinuous(*(float(getattr(inner, name)) for name in ATTRIBUTES))


STATE = (
    Variable("x", "x", "", (-1.2, 0.6), "$x$", "position", marks=(0.45,)),
    Variable("x_dot", "ẋ", "", (-0.07, 0.07), r"$\dot x$"),
)

SYSTEM = register(
    System(
        name="MountainCarContinuous",
        originals=(Continuous_MountainCarEnv,),
        constants=MountainCarContinuous,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=STATE,
        observed=STATE,
        action=Variable("force", "F", "", (-1.0, 1.0), "$F$"),
        size=3,
        titles={"MountainCarContinuous-v0": "MountainCarContinuous"},
        returns={"MountainCarContinuous-v0": (-math.inf, 100.0)},
        without_goal={"MountainCarContinuous-v0": 0.0},
        reference=(0.45, 0.0),
    )
)
