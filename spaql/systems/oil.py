"""Searching for oil: the first of the two problems that adaptive Q-learning was tried on.

A truck stands at x and drives to a.  It earns what a survey says of x, where it stood, less the way: moving pays later.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register

H = 5


class OilEnv(gym.Env):
    """Five steps on [0, 1] from 0.5; reward max(0, exp(-λ|x - 0.75|) - |x - a|), the next state is a."""

    observation_space = action_space = spaces.Box(0.0, 1.0, (1,), np.float64)

    def __init__(self, lam: float = 10.0):
        self.lam = float(lam)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.steps = np.array([0.5]), 0
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        x, a = float(self.state[0]), float(np.clip(action, 0.0, 1.0)[0])
        self.state = np.array([a])
        self.steps += 1
        earned = max(0.0, math.exp(-self.lam * abs(x - 0.75)) - abs(x - a))
        return self.state, earned, self.steps == H, False, {}


class Oil(NamedTuple):
    """The constants.  The state is the place and the step."""

    lam: float  # how fast the oil gets less with the distance from its peak


def begin(constants, start, state):
    """Begin in the middle."""
    state[0], state[1] = 0.5, 0.0


def observe(constants, state, observation):
    """Write the place."""
    observation[0] = state[0]


def step(constants, state, action):
    """Drive to a place; the episode is over after five steps."""
    x, a = state[0], min(1.0, max(0.0, action[0]))
    state[0] = a
    state[1] += 1
    return max(0.0, math.exp(-constants.lam * abs(x - 0.75)) - abs(x - a)), state[1] == H


def draw_starts(constants: Oil, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Nothing is random."""
    return np.zeros((episodes, 1))


def describe(env: gym.Env) -> Oil | None:
    """Return the constants."""
    inner = env.unwrapped
    return Oil(inner.lam) if plain_numbers(inner, Oil._fields) else None


ID = "spaql/OilLaplace10-v0"
if ID not in gym.registry:
    gym.register(ID, entry_point="spaql.systems.oil:OilEnv", max_episode_steps=H)

PLACE = Variable("x", "x", "", (0.0, 1.0), "$x$", "place")

SYSTEM = register(
    System(
        name="OilSurvey",
        originals=(OilEnv,),
        constants=Oil,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=(PLACE,),
        observed=(PLACE,),
        action=Variable("a", "a", "", (0.0, 1.0), "$a$"),
        size=2,
        titles={ID: "Oil"},
        returns={ID: (0.0, float(H))},
        telling=(0, 0),
    )
)
