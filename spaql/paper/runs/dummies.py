"""Pendulum with dummy observations, drawn afresh at every step, which have nothing to do with it.

The paper explains what goes wrong on CartPole by its number of dimensions; these vary that number and nothing else.
"""

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from spaql.compiling import either
from spaql.systems import pendulum
from spaql.systems.pendulum import Pendulum
from spaql.systems.registry import System, Variable, register

# A congruential generator whose products are exact in floating-point numbers, so that compiled code has its bits.
FACTOR, SUMMAND, MODULUS = 1664525.0, 1013904223.0, 2.0**32

turn, begin_turning, look = either(pendulum.step), either(pendulum.begin), either(pendulum.observe)


class WithDummies(gym.Env):
    """Gymnasium's Pendulum with `count` numbers between -1 and 1 after its observation."""

    count = 0

    def __init__(self, **kwargs: Any):
        self.pendulum = PendulumEnv(**kwargs)
        high = np.append(self.pendulum.observation_space.high, np.ones(self.count)).astype(np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.action_space = self.pendulum.action_space

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.pendulum.np_random = self.np_random
        shown, info = self.pendulum.reset(options=options)
        self.dummies = np.floor(MODULUS * self.np_random.random(self.count))
        return self.with_dummies(shown), info

    def step(self, u: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        shown, *rest = self.pendulum.step(u)
        self.dummies = (FACTOR * self.dummies + SUMMAND) % MODULUS
        return self.with_dummies(shown), *rest

    def with_dummies(self, shown: np.ndarray) -> np.ndarray:
        return np.append(shown, self.dummies / (MODULUS / 2) - 1.0).astype(np.float32)

    @property
    def state(self) -> np.ndarray:
        return self.pendulum.state


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
    found = pendulum.describe(env.unwrapped.pendulum)
    return None if found is None else KINDS[env.unwrapped.count](*found)


def draw_starts(constants: Pendulum, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw angles, speeds and dummies."""
    count = KINDS.index(type(constants))
    high = np.array([math.pi, 1.0] + count * [1.0])
    low = np.array([-math.pi, -1.0] + count * [0.0])
    return rng.uniform(low, high, (episodes, 2 + count))


# The constants with so many dummies: a class for each, by whose name kept machine code is found again.
KINDS = [Pendulum, *(type(name, (Pendulum,), {}) for name in ("One", "Two", "Three", "Four", "Five", "Six"))]
globals().update({kind.__name__: kind for kind in KINDS[1:]})
DUMMIES = tuple(f"{__name__}:spaql/PendulumDummies{count}-v1" for count in range(1, len(KINDS)))

for _count, _id in enumerate(DUMMIES, 1):
    _class = type(f"WithDummies{_count}", (WithDummies,), {"count": _count})
    gym.register(_id.partition(":")[2], entry_point=_class, max_episode_steps=200)
    _dummies = tuple(Variable(f"dummy_{i + 1}", f"z{i + 1}", "", (-1.0, 1.0), f"$z_{i + 1}$") for i in range(_count))
    register(
        System(
            name=f"PendulumDummies{_count}",
            originals=(_class,),
            constants=KINDS[_count],
            describe=describe,
            begin=begin,
            step=step,
            observe=observe,
            draw_starts=draw_starts,
            state=(pendulum.THETA, pendulum.THETA_DOT),
            observed=(*pendulum.SYSTEM.observed, *_dummies),
            action=pendulum.SYSTEM.action,
            size=3 + _count,
            titles={_id: f"Pendulum, {_count} dumm{'y' if _count == 1 else 'ies'}"},
            reference=(1.0, 0.0, 0.0) + _count * (0.0,),
            angles=pendulum.SYSTEM.angles,
        )
    )
