"""A planar quadrotor: two rotors on a beam, each on or off, that should hover at the origin.

Six states, x, y, θ and their speeds; forces and weights as for a craft of one kilogram.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register

STARTS = np.array([1.0, 1.0, 0.3, 0.5, 0.5, 0.5])  # how far from hovering episodes begin, to both sides
ROOM, TILT, FASTEST = 3.0, math.pi / 2, 5.0  # where an episode ends, and what is reported of speeds at most


class QuadrotorEnv(gym.Env):
    """Actions 0 to 3: both rotors off, only the left one on, only the right one on, both on.

    A step earns 1 - (x² + y²)/(2 · 3²); the episode ends where the craft is further away or lies on its side.
    """

    action_space = spaces.Discrete(4)

    def __init__(self, gravity: float = 9.81, thrust: float = 7.5, arm: float = 0.2, inertia: float = 0.25):
        self.gravity, self.thrust, self.arm, self.inertia, self.dt = gravity, thrust, arm, inertia, 0.04
        high = np.array([ROOM, ROOM, TILT, FASTEST, FASTEST, FASTEST])
        self.observation_space = spaces.Box(-high, high, dtype=np.float64)
        self.state = np.zeros(6)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = STARTS * self.np_random.uniform(-1.0, 1.0, size=6)
        return self._seen(), {}

    def _seen(self) -> np.ndarray:
        return np.clip(self.state, self.observation_space.low, self.observation_space.high)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward, over = step(describe(self), self.state, np.array([float(action)]))
        return self._seen(), reward, over, False, {}


class Quadrotor(NamedTuple):
    """The constants: gravity, the thrust of a rotor, half the beam, the moment of inertia, and the time step."""

    gravity: float
    thrust: float
    arm: float
    inertia: float
    dt: float


def begin(constants, start, state):
    """Begin near hovering."""
    for i in range(6):
        state[i] = start[i]


def observe(constants, state, observation):
    """Write the state, cut to its bounds."""
    for i in range(2):
        observation[i] = min(ROOM, max(-ROOM, state[i]))
    observation[2] = min(TILT, max(-TILT, state[2]))
    for i in range(3, 6):
        observation[i] = min(FASTEST, max(-FASTEST, state[i]))


def step(constants, state, action):
    """Switch the rotors, and move by an Euler step."""
    left, right = float(int(action[0]) % 2), float(int(action[0]) // 2)
    lift, turn = constants.thrust * (left + right), constants.thrust * (right - left) * constants.arm
    tilt = state[2]
    for i in range(3):
        state[i] += constants.dt * state[i + 3]
    state[3] -= constants.dt * lift * math.sin(tilt)
    state[4] += constants.dt * (lift * math.cos(tilt) - constants.gravity)
    state[5] += constants.dt * turn / constants.inertia
    away = state[0] * state[0] + state[1] * state[1]
    over = abs(state[0]) > ROOM or abs(state[1]) > ROOM or abs(state[2]) > TILT
    return (0.0 if over else 1.0 - away / (2.0 * ROOM * ROOM)), over


def draw_starts(constants: Quadrotor, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw states near hovering."""
    return STARTS * rng.uniform(-1.0, 1.0, size=(episodes, 6))


def describe(env: gym.Env) -> Quadrotor | None:
    """Return the constants of a craft."""
    inner = env.unwrapped
    if not plain_numbers(inner, Quadrotor._fields):
        return None
    return Quadrotor(*(float(getattr(inner, name)) for name in Quadrotor._fields))


if "spaql/Quadrotor-v0" not in gym.registry:
    gym.register("spaql/Quadrotor-v0", entry_point="spaql.systems.quadrotor:QuadrotorEnv", max_episode_steps=200)

STATE = (
    Variable("x", "x", "m", (-ROOM, ROOM), "$x$", "position", marks=(0.0,)),
    Variable("y", "y", "m", (-ROOM, ROOM), "$y$", "height", marks=(0.0,)),
    Variable("theta", "θ", "rad", (-TILT, TILT), r"$\theta$", "tilt", marks=(0.0,)),
    Variable("x_dot", "ẋ", "m/s", (-FASTEST, FASTEST), r"$\dot x$"),
    Variable("y_dot", "ẏ", "m/s", (-FASTEST, FASTEST), r"$\dot y$"),
    Variable("theta_dot", "θ̇", "rad/s", (-FASTEST, FASTEST), r"$\dot\theta$"),
)

SYSTEM = register(
    System(
        name="Quadrotor",
        originals=(QuadrotorEnv,),
        constants=Quadrotor,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=STATE,
        observed=STATE,
        action=Variable("rotors", "u", "", (0.0, 3.0), "$u$", "rotors"),
        titles={"spaql/Quadrotor-v0": "Quadrotor"},
        returns={"spaql/Quadrotor-v0": (0.0, 200.0)},
        reference=(0.0,) * 6,
        telling=(2, 5),
    )
)
