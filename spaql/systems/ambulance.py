"""Where an ambulance should wait: the second of the two problems that adaptive Q-learning was tried on.

It stands at x, drives to a, and then to the next call at y, which does not depend on a.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register

H = 5
ALPHA = 0.25  # how much the way to the waiting place counts, beside the way to the call


class AmbulanceEnv(gym.Env):
    """Five steps on [0, 1] from 0.5; reward 1 - (α|x - a| + (1 - α)|a - y|), the next state y is drawn from a beta."""

    observation_space = action_space = spaces.Box(0.0, 1.0, (1,), np.float64)

    def __init__(self, alpha: float = ALPHA):
        self.alpha = float(alpha)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.steps, self.calls = np.array([0.5]), 0, self.np_random.beta(5.0, 2.0, H)
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        x, a, y = float(self.state[0]), float(np.clip(action, 0.0, 1.0)[0]), float(self.calls[self.steps])
        self.state = np.array([y])
        self.steps += 1
        return self.state, 1.0 - (self.alpha * abs(x - a) + (1.0 - self.alpha) * abs(a - y)), self.steps == H, False, {}


class Ambulance(NamedTuple):
    """The constants.  The state is the place, the step, and the call of each step, drawn beforehand."""

    alpha: float


def begin(constants, start, state):
    """Begin in the middle; the start holds the calls of the episode."""
    state[0], state[1] = 0.5, 0.0
    for h in range(H):
        state[2 + h] = start[h]


def observe(constants, state, observation):
    """Write the place."""
    observation[0] = state[0]


def step(constants, state, action):
    """Drive to a place and then to the call; the episode is over after five steps."""
    x, h, a = state[0], int(state[1]), min(1.0, max(0.0, action[0]))
    y = state[2 + h]
    state[0], state[1] = y, h + 1
    return 1.0 - (constants.alpha * abs(x - a) + (1.0 - constants.alpha) * abs(a - y)), h + 1 == H


def draw_starts(constants: Ambulance, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw the call of each step of each episode."""
    return rng.beta(5.0, 2.0, (episodes, H))


def describe(env: gym.Env) -> Ambulance | None:
    """Return the constants."""
    inner = env.unwrapped
    return Ambulance(inner.alpha) if plain_numbers(inner, Ambulance._fields) else None


ID = "spaql/AmbulanceBeta25-v0"
if ID not in gym.registry:
    gym.register(ID, entry_point="spaql.systems.ambulance:AmbulanceEnv", max_episode_steps=H)

PLACE = Variable("x", "x", "", (0.0, 1.0), "$x$", "place")

SYSTEM = register(
    System(
        name="Ambulance",
        originals=(AmbulanceEnv,),
        constants=Ambulance,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=(PLACE,),
        observed=(PLACE,),
        action=Variable("a", "a", "", (0.0, 1.0), "$a$"),
        size=2 + H,
        titles={ID: "Ambulance"},
        returns={ID: (0.0, float(H))},
        telling=(0, 0),
    )
)
