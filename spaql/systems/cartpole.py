"""The cart and its pole: Gymnasium's CartPole-v0 and CartPole-v1."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register


class CartPole(NamedTuple):
    """The constants of cart and pole.  The state is position, speed, angle and angular speed."""

    gravity: float
    mass_pole: float
    total_mass: float
    pole_mass_length: float
    length: float
    force: float
    dt: float
    max_position: float
    max_angle: float


def begin(constants, start, state):
    """Begin with a state near the origin."""
    for i in range(4):  # one by one: an assignment of whole arrays compiles for three seconds
        state[i] = start[i]


def observe(constants, state, observation):
    """Write the state, rounded to the float32 Gymnasium reports."""
    for i in range(4):
        observation[i] = np.float32(state[i])


def step(constants, state, action):
    """Push to the left (0) or to the right (1)."""
    position, speed, theta, theta_speed = state[0], state[1], state[2], state[3]
    force = constants.force if action[0] == 1.0 else -constants.force
    cos, sin = math.cos(theta), math.sin(theta)
    temp = (force + constants.pole_mass_length * (theta_speed * theta_speed) * sin) / constants.total_mass
    theta_acceleration = (constants.gravity * sin - cos * temp) / (
        constants.length * (4.0 / 3.0 - constants.mass_pole * (cos * cos) / constants.total_mass)
    )
    acceleration = temp - constants.pole_mass_length * theta_acceleration * cos / constants.total_mass
    position = position + constants.dt * speed
    speed = speed + constants.dt * acceleration
    theta = theta + constants.dt * theta_speed
    theta_speed = theta_speed + constants.dt * theta_acceleration
    state[0], state[1], state[2], state[3] = position, speed, theta, theta_speed
    fell = abs(position) > constants.max_position or abs(theta) > constants.max_angle
    return 1.0, fell


def draw_starts(constants: CartPole, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw all four variables within 0.05 of zero."""
    high = np.full(4, 0.05)
    return rng.uniform(-high, high, size=(episodes, 4))


ATTRIBUTES = (
    *("gravity", "masspole", "total_mass", "polemass_length", "length", "force_mag", "tau"),
    *("x_threshold", "theta_threshold_radians"),
)


def describe(env: gym.Env) -> CartPole | None:
    """Return the constants of cart and pole; None for the other reward, the other integrator or other pushes."""
    inner = env.unwrapped
    if inner._sutton_barto_reward or inner.kinematics_integrator != "euler":
        return None
    numbers = plain_numbers(env, ATTRIBUTES)
    return None if numbers is None or env.action_space != spaces.Discrete(2) else CartPole(*numbers)


STATE = (
    Variable("x", "x", "m", (-2.4, 2.4), "$x$"),
    Variable("x_dot", "ẋ", "m/s", (-3.0, 3.0), r"$\dot x$"),
    Variable("theta", "θ", "rad", (-0.2095, 0.2095), r"$\theta$", "pole angle", marks=(-0.2095, 0.0, 0.2095)),
    Variable("theta_dot", "θ̇", "rad/s", (-3.0, 3.0), r"$\dot\theta$"),
)

register(
    System(
        name="CartPole",
        originals=(CartPoleEnv,),
        constants=CartPole,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=STATE,
        observed=STATE,
        action=Variable("force", "F", "N", (-10.0, 10.0), "$F$"),
        choices=lambda env: (-float(env.unwrapped.force_mag), float(env.unwrapped.force_mag)),
        titles={"CartPole-v0": "CartPole", "CartPole-v1": "CartPole (500 steps)"},
        slopes=(0.0, 1 / 240, 0.0, 1 / 21),
        reference=(0.0, 0.0, 0.0, 0.0),
        telling=(2, 3),
    )
)
