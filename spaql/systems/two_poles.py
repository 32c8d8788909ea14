"""A cart with two poles of different lengths, side by side, that should both stay up.

Six states: the cart's position, both angles, and their speeds.  With one pole of no mass it is CartPole.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register

START, ROOM, TILT, FASTEST = 0.05, 2.4, math.pi / 5, 4.0  # of all states; where an episode ends; what is reported


class TwoPolesEnv(gym.Env):
    """Actions 0 and 1 push the cart to the left and to the right; a step earns 1, until a pole falls.

    The poles' lengths are halves, as CartPole's.
    """

    action_space = spaces.Discrete(2)

    def __init__(self, lengths: tuple[float, float] = (0.5, 0.2), masses: tuple[float, float] = (0.1, 0.04)):
        self.gravity, self.cart, self.force, self.dt = 9.8, 1.0, 10.0, 0.02
        (self.mass_1, self.mass_2), (self.length_1, self.length_2) = masses, lengths
        high = np.array([ROOM, TILT, TILT, FASTEST, FASTEST, FASTEST])
        self.observation_space = spaces.Box(-high, high, dtype=np.float64)
        self.state = np.zeros(6)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-START, START, size=6)
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        return np.clip(self.state, self.observation_space.low, self.observation_space.high)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward, over = step(describe(self), self.state, np.array([float(action)]))
        return self._seen(), reward, over, False, {}


class TwoPoles(NamedTuple):
    """The constants: gravity, masses of cart and poles, half the poles' lengths, the force, and the time step."""

    gravity: float
    cart: float
    mass_1: float
    mass_2: float
    length_1: float
    length_2: float
    force: float
    dt: float


def begin(constants, start, state):
    """Begin with a state near the origin."""
    for i in range(6):
        state[i] = start[i]


def observe(constants, state, observation):
    """Write the state, cut to its bounds."""
    observation[0] = min(ROOM, max(-ROOM, state[0]))
    for i in range(1, 3):
        observation[i] = min(TILT, max(-TILT, state[i]))
    for i in range(3, 6):
        observation[i] = min(FASTEST, max(-FASTEST, state[i]))


def step(constants, state, action):
    """Push the cart, and move by an Euler step: each pole adds a force and a mass to the cart's."""
    g = constants.gravity
    sin_1, cos_1, sin_2, cos_2 = math.sin(state[1]), math.cos(state[1]), math.sin(state[2]), math.cos(state[2])
    force = constants.force if action[0] == 1.0 else -constants.force
    force += constants.mass_1 * sin_1 * (constants.length_1 * (state[4] * state[4]) - 0.75 * g * cos_1)
    force += constants.mass_2 * sin_2 * (constants.length_2 * (state[5] * state[5]) - 0.75 * g * cos_2)
    mass = constants.mass_1 * (1.0 - 0.75 * (cos_1 * cos_1)) + constants.mass_2 * (1.0 - 0.75 * (cos_2 * cos_2))
    pull = force / (constants.cart + mass)
    for i in range(3):
        state[i] += constants.dt * state[i + 3]
    state[3] += constants.dt * pull
    state[4] += constants.dt * 0.75 * (g * sin_1 - pull * cos_1) / constants.length_1
    state[5] += constants.dt * 0.75 * (g * sin_2 - pull * cos_2) / constants.length_2
    return 1.0, abs(state[0]) > ROOM or abs(state[1]) > TILT or abs(state[2]) > TILT


def draw_starts(constants: TwoPoles, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw states near the origin."""
    return rng.uniform(-START, START, size=(episodes, 6))


def describe(env: gym.Env) -> TwoPoles | None:
    """Return the constants of a cart."""
    inner = env.unwrapped
    if not plain_numbers(inner, TwoPoles._fields):
        return None
    return TwoPoles(*(float(getattr(inner, name)) for name in TwoPoles._fields))


if "spaql/TwoPoles-v0" not in gym.registry:
    gym.register("spaql/TwoPoles-v0", entry_point="spaql.systems.two_poles:TwoPolesEnv", max_episode_steps=200)

STATE = (
    Variable("x", "x", "m", (-ROOM, ROOM), "$x$", "position", marks=(0.0,)),
    Variable("theta_1", "θ₁", "rad", (-TILT, TILT), r"$\theta_1$", "long pole", marks=(0.0,)),
    Variable("theta_2", "θ₂", "rad", (-TILT, TILT), r"$\theta_2$", "short pole", marks=(0.0,)),
    Variable("x_dot", "ẋ", "m/s", (-FASTEST, FASTEST), r"$\dot x$"),
    Variable("theta_1_dot", "θ̇₁", "rad/s", (-FASTEST, FASTEST), r"$\dot\theta_1$"),
    Variable("theta_2_dot", "θ̇₂", "rad/s", (-FASTEST, FASTEST), r"$\dot\theta_2$"),
)

SYSTEM = register(
    System(
        name="TwoPoles",
        originals=(TwoPolesEnv,),
        constants=TwoPoles,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=STATE,
        observed=STATE,
        action=Variable("force", "F", "N", (-10.0, 10.0), "$F$"),
        choices=lambda env: (-float(env.unwrapped.force), float(env.unwrapped.force)),
        titles={"spaql/TwoPoles-v0": "Two poles"},
        returns={"spaql/TwoPoles-v0": (0.0, 200.0)},
        reference=(0.0,) * 6,
        telling=(1, 2),
    )
)
