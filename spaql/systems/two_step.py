"""Two steps, of which the better first one earns nothing at once: the smallest process that asks for foresight.

In the first state, anywhere in [0, 0.5), one action earns a quarter and leads to a place where nothing is earned; the
other earns nothing and leads to a place where everything earns one.
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems.environments import plain_numbers
from spaql.systems.registry import System, Variable, register

BAIT, PRIZE = 0.25, 1.0  # what the worse first action earns at once, and the better one a step later
POOR, RICH, OVER = 0.55, 0.7, 0.9  # the second states, and the end, each in a cell of its own


class TwoStepEnv(gym.Env):
    """Two steps on [0, 1] with two actions; the best return is 1, that of the myopic action 1/4."""

    observation_space, action_space = spaces.Box(0.0, 1.0, (1,), np.float64), spaces.Discrete(2)

    def __init__(self, bait: float = BAIT):
        self.bait = float(bait)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = np.array([self.np_random.uniform(0.0, 0.5)])
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        (x,) = self.state
        if x < 0.5:
            better = int(action) == 1
            self.state = np.array([RICH if better else POOR])
            return self.state, 0.0 if better else self.bait, False, False, {}
        self.state = np.array([OVER])
        return self.state, PRIZE if x == RICH else 0.0, True, False, {}


class TwoStep(NamedTuple):
    """The constants.  The state is one number, which tells the step."""

    bait: float


def begin(constants, start, state):
    """Begin in a first state."""
    state[0] = start[0]


def observe(constants, state, observation):
    """Write the state."""
    observation[0] = state[0]


def step(constants, state, action):
    """Take one of two actions; the episode is over after two steps."""
    x = state[0]
    if x < 0.5:
        better = action[0] == 1.0
        state[0] = RICH if better else POOR
        return 0.0 if better else constants.bait, False
    state[0] = OVER
    return PRIZE if x == RICH else 0.0, True


def draw_starts(constants: TwoStep, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw first states."""
    return rng.uniform(0.0, 0.5, (episodes, 1))


def describe(env: gym.Env) -> TwoStep | None:
    """Return the constants."""
    inner = env.unwrapped
    return TwoStep(inner.bait) if plain_numbers(inner, TwoStep._fields) else None


ID = "spaql/TwoStep1-v0"
if ID not in gym.registry:
    gym.register(ID, entry_point="spaql.systems.two_step:TwoStepEnv", max_episode_steps=2)

PLACE = Variable("x", "x", "", (0.0, 1.0), "$x$", "place")

SYSTEM = register(
    System(
        name="TwoStep",
        originals=(TwoStepEnv,),
        constants=TwoStep,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=(PLACE,),
        observed=(PLACE,),
        action=Variable("a", "a", "", (0.0, 1.0), "$a$"),
        choices=lambda env: (0.0, 1.0),
        titles={ID: "Two steps"},
        returns={ID: (0.0, 1.0)},
        telling=(0, 0),
    )
)
