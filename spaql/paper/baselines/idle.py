"""Pendulum with idle variables: they are observed, turn by themselves, and mean nothing.

The task is the same however many there are, so what grows with them is the price of dimensions alone.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems import System, Variable, register

COUNTS = (0, 1, 2, 4, 6)
GRAVITY, DT, SPEED, TORQUE = 10.0, 0.05, 8.0, 2.0  # Gymnasium's


class Idle(NamedTuple):
    """How many idle variables there are."""

    idle: int


def id_of(idle: int) -> str:
    """Return the id of the pendulum with so many idle variables, with the module that registers it."""
    return f"spaql.paper.baselines.idle:IdlePendulum{idle}-v0"


def begin(constants, start, state):
    """Begin anywhere."""
    for i in range(len(start)):
        state[i] = start[i]


def observe(constants, state, observation):
    """Write cosine, sine and speed, and the cosine of each idle phase."""
    observation[0], observation[1], observation[2] = math.cos(state[0]), math.sin(state[0]), state[1]
    for i in range(constants.idle):
        observation[3 + i] = math.cos(state[2 + i])


def step(constants, state, action):
    """Turn the pendulum as Gymnasium does, and each idle phase by a step of its own."""
    torque = min(TORQUE, max(-TORQUE, action[0]))
    angle = (state[0] + math.pi) % (2.0 * math.pi) - math.pi
    cost = angle * angle + 0.1 * state[1] * state[1] + 0.001 * torque * torque
    speed = state[1] + DT * (1.5 * GRAVITY * math.sin(state[0]) + 3.0 * torque)
    state[1] = min(SPEED, max(-SPEED, speed))
    state[0] += DT * state[1]
    for i in range(constants.idle):
        state[2 + i] += 0.1 * (i + 1)
    return -cost, False


def draw_starts(constants: Any, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw angle, speed and phases."""
    high = np.array([math.pi, 1.0] + [math.pi] * constants.idle)
    return rng.uniform(-high, high, size=(episodes, len(high)))


class IdlePendulum(gym.Env):
    """The environment; one subclass for each number of idle variables, since systems are told apart by class."""

    idle = 0
    action_space = spaces.Box(-TORQUE, TORQUE, (1,), np.float64)

    def __init__(self) -> None:
        high = np.array([1.0, 1.0, SPEED] + [1.0] * self.idle)
        self.observation_space = spaces.Box(-high, high, dtype=np.float64)

    def _seen(self) -> np.ndarray:
        seen = np.empty(3 + self.idle)
        observe(self, self.state, seen)
        return seen

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = draw_starts(self, self.np_random, 1)[0]
        return self._seen(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        reward, _ = step(self, self.state, np.asarray(action, float))
        return self._seen(), reward, False, False, {}


def add(idle: int) -> None:
    """Register the pendulum with so many idle variables."""
    constants = type(f"Idle{idle}", (Idle,), {})  # compiled functions are told apart by the class of their constants
    made: Any = type(f"IdlePendulum{idle}", (IdlePendulum,), {"idle": idle})
    name = id_of(idle).rpartition(":")[2]
    gym.register(name, entry_point=made, max_episode_steps=200)
    extra = tuple(Variable(f"z_{i}") for i in range(idle))
    pendulum = (Variable("cos_theta"), Variable("sin_theta"), Variable("theta_dot", ends=(-SPEED, SPEED)))
    angle = Variable("theta", ends=(-math.pi, math.pi), period=2.0 * math.pi)
    register(
        System(
            name=f"IdlePendulum{idle}",
            originals=(made,),
            constants=constants,
            describe=lambda env: constants(env.unwrapped.idle),
            begin=begin,
            step=step,
            observe=observe,
            draw_starts=draw_starts,
            state=(angle, pendulum[2], *extra),
            observed=(*pendulum, *extra),
            action=Variable("torque", ends=(-TORQUE, TORQUE)),
            titles={name: f"Pendulum with {idle} idle variables"},
            angles={"theta": ("cos_theta", "sin_theta")},
        )
    )


for _idle in COUNTS:
    add(_idle)
