"""The car in the valley: Gymnasium's MountainCar-v0, and MountainCarContinuous-v0 with an engine of any strength."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

from spaql.compiling import python_or_jit
from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register


class MountainCar(NamedTuple):
    """The constants of the car, as Gymnasium calls them.  The state is position and speed."""

    force: float
    gravity: float
    min_position: float
    max_position: float
    max_speed: float
    goal_position: float
    goal_velocity: float


def begin(constants, start, state):
    """Begin at a position, at rest unless the start has a speed."""
    state[0], state[1] = start[0], (start[1] if start.size > 1 else 0.0)


def observe(constants, state, observation):
    """Write the state, rounded to the float32 Gymnasium reports."""
    observation[0], observation[1] = np.float32(state[0]), np.float32(state[1])


def step(constants, state, action):
    """Push to the left (0), not at all (1), or to the right (2)."""
    position, speed = state[0], state[1]
    speed += (action[0] - 1.0) * constants.force + math.cos(3.0 * position) * (-constants.gravity)
    speed = min(constants.max_speed, max(-constants.max_speed, speed))
    position += speed
    position = min(constants.max_position, max(constants.min_position, position))
    if position == constants.min_position and speed < 0.0:
        speed = 0.0
    state[0], state[1] = position, speed
    return -1.0, position >= constants.goal_position and speed >= constants.goal_velocity


def draw_starts(constants: NamedTuple, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw positions in the valley."""
    return rng.uniform(-0.6, -0.4, size=(episodes, 1))


def describe(env: gym.Env) -> MountainCar | None:
    """Return the constants of the car; None for a car with more or fewer pushes."""
    numbers = plain_numbers(env, MountainCar._fields)
    return None if numbers is None or env.action_space != spaces.Discrete(3) else MountainCar(*numbers)


def variables(goal: float) -> tuple[Variable, Variable]:
    """Return position and speed."""
    position = Variable("x", "x", "", (-1.2, 0.6), "$x$", "position", marks=(goal,))
    return position, Variable("x_dot", "ẋ", "", (-0.07, 0.07), r"$\dot x$")


register(
    System(
        name="MountainCar",
        originals=(MountainCarEnv,),
        constants=MountainCar,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=variables(0.5),
        observed=variables(0.5),
        action=Variable("push", "u", "", (-1.0, 1.0), "$u$"),
        choices=lambda env: (-1.0, 0.0, 1.0),
        titles={"MountainCar-v0": "MountainCar"},
        reference=(0.5, 0.0),
    )
)

# An engine of any strength


class MountainCarContinuous(NamedTuple):
    """The constants of the car.  The state is position, speed, and whether no step has been taken yet."""

    power: float
    min_action: float
    max_action: float
    min_position: float
    max_position: float
    max_speed: float
    goal_position: float
    goal_velocity: float


def begin_continuous(constants, start, state):
    """Begin at a position, at rest unless the start has a speed."""
    state[0], state[1], state[2] = start[0], (start[1] if start.size > 1 else 0.0), 1.0


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


def step_continuous(constants, state, action):
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
    arrived = arrived and speed >= beside(constants.goal_velocity, speed_single)
    state[0], state[1], state[2] = np.float32(position), np.float32(speed), 0.0
    cost = np.float64(force) * np.float64(force) * 0.1
    return (100.0 if arrived else 0.0) - cost, arrived


def describe_continuous(env: gym.Env) -> MountainCarContinuous | None:
    """Return the constants of the car; None for forces that are not float32."""
    numbers, acted = plain_numbers(env, MountainCarContinuous._fields), env.action_space
    usual = acted.shape == (1,) and acted.dtype == np.float32
    return None if numbers is None or not usual else MountainCarContinuous(*numbers)


register(
    System(
        name="MountainCarContinuous",
        originals=(Continuous_MountainCarEnv,),
        constants=MountainCarContinuous,
        describe=describe_continuous,
        begin=begin_continuous,
        step=step_continuous,
        observe=observe,
        draw_starts=draw_starts,
        state=variables(0.45),
        observed=variables(0.45),
        action=Variable("force", "F", "", (-1.0, 1.0), "$F$"),
        size=3,
        titles={"MountainCarContinuous-v0": "MountainCarContinuous"},
        reference=(0.45, 0.0),
    )
)
