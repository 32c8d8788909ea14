"""The car in the valley: Gymnasium's MountainCar-v0."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register


class MountainCar(NamedTuple):
    """The constants of the car.  The state is position and speed."""

    force: float
    gravity: float
    min_position: float
    max_position: float
    max_speed: float
    goal_position: float
    goal_speed: float


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
    return -1.0, position >= constants.goal_position and speed >= constants.goal_speed


def draw_starts(constants: MountainCar, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw positions in the valley."""
    return rng.uniform(-0.6, -0.4, size=(episodes, 1))


ATTRIBUTES = (
    *("force", "gravity", "min_position", "max_position", "max_speed"),
    *("goal_position", "goal_velocity"),
)


def describe(env: gym.Env) -> MountainCar | None:
    """Return the constants of the car; None for a car with more or fewer pushes."""
    inner = env.unwrapped
    if env.action_space != spaces.Discrete(3) or not plain_numbers(inner, ATTRIBUTES):
        return None
    return MountainCar(*(float(getattr(inner, name)) for name in ATTRIBUTES))


STATE = (
    Variable("x", "x", "", (-1.2, 0.6), "$x$", "position", marks=(0.5,)),
    Variable("x_dot", "ẋ", "", (-0.07, 0.07), r"$\dot x$"),
)

SYSTEM = register(
    System(
        name="MountainCar",
        originals=(MountainCarEnv,),
        constants=MountainCar,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=STATE,
        observed=STATE,
        action=Variable("push", "u", "", (-1.0, 1.0), "$u$"),
        choices=lambda env: (-1.0, 0.0, 1.0),
        titles={"MountainCar-v0": "MountainCar"},
        returns={"MountainCar-v0": (-200.0, 0.0)},
        without_goal={"MountainCar-v0": -200.0},
        reference=(0.5, 0.0),
    )
)
