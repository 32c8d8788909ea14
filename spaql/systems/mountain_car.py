"""The car in the valley: Gymnasium's MountainCar-v0."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv

from spaql.systems import System, Variable, register


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
    """Begin at a position, at rest."""
    state[0], state[1] = start[0], 0.0


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


def describe(env: gym.Env) -> MountainCar:
    """Return the constants of the car."""
    inner = env.unwrapped
    return MountainCar(
        force=float(inner.force),
        gravity=float(inner.gravity),
        min_position=float(inner.min_position),
        max_position=float(inner.max_position),
        max_speed=float(inner.max_speed),
        goal_position=float(inner.goal_position),
        goal_speed=float(inner.goal_velocity),
    )


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
        reference=(0.5, 0.0),
    )
)
