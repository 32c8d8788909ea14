"""Two steps, of which the better first one earns nothing at once: the smallest process that asks for foresight.

In the first state, anywhere in [0, 0.5), one action earns a quarter and leads to a place where nothing is earned; the
other earns nothing and leads to a place where everything earns one.  Which of the two is which changes from one of
`intervals` intervals of first states to the next.
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

    def __init__(self, intervals: int = 1):
        self.intervals = intervals

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = np.array([self.np_random.uniform(0.0, 0.5)])
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        (x,) = self.state
        if x < 0.5:
            better = int(action) != int(2 * self.intervals * x) % 2
            self.state = np.array([RICH if better else POOR])
            return self.state, 0.0 if better else BAIT, False, False, {}
        self.state = np.array([OVER])
        return self.state, PRIZE if x == RICH else 0.0, True, False, {}


class TwoStep(NamedTuple):
    """The constants.  The state is one number, which tells the step."""

    intervals: int


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
        better = int(action[0]) != int(2 * constants.intervals * x) % 2
        state[0] = RICH if better else POOR
        return 0.0 if better else BAIT, False
    state[0] = OVER
    return PRIZE if x == RICH else 0.0, True


def draw_starts(constants: TwoStep, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw first states."""
    return rng.uniform(0.0, 0.5, (episodes, 1))


def describe(env: gym.Env) -> TwoStep | None:
    """Return the constants."""
    inner = env.unwrapped
    return TwoStep(inner.intervals) if plain_numbers(inner, TwoStep._fields) else None


IDS = {
    f"spaql/TwoStep{intervals}-v0": (f"Two steps, {intervals} interval{'s' if intervals > 1 else ''}", intervals)
    for intervals in (1, 4)
}
for _id, (_, _intervals) in IDS.items():
    if _id not in gym.registry:
        gym.register(
            _id,
            entry_point="spaql.systems.two_step:TwoStepEnv",
            max_episode_steps=2,
            kwargs={"intervals": _intervals},
        )

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
        titles={env_id: words for env_id, (words, _) in IDS.items()},
        returns=dict.fromkeys(IDS, (0.0, 1.0)),
        telling=(0, 0),
    )
)
