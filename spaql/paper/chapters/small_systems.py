"""The problems on [0, 1] of chapter 8: two steps that ask for foresight, and the two that SPAQL was born on.

In the first of *two steps*, anywhere in [0, 0.5), one action earns a quarter and leads to a place where nothing is
earned; the other earns nothing and leads to a place where everything earns one.

For *oil* a truck stands at x and drives to a.  It earns what a survey says of x, where it stood, less the way.

An *ambulance* stands at x, drives to a, and then to the next call at y, which does not depend on a.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems import System, Variable, register

H = 5  # steps of oil and of the ambulance
BAIT, PRIZE = 0.25, 1.0  # what the worse first action earns at once, and the better one a step later
POOR, RICH, OVER = 0.55, 0.7, 0.9  # the second states, and the end, each in a cell of its own


class Small(gym.Env):
    """What the three have in common: a place on [0, 1]."""

    observation_space = spaces.Box(0.0, 1.0, (1,), np.float64)
    action_space: spaces.Space = spaces.Box(0.0, 1.0, (1,), np.float64)
    state: np.ndarray

    def ended(self, place: float, reward: float, over: bool) -> tuple[np.ndarray, float, bool, bool, dict]:
        self.state = np.array([place])
        return self.state, reward, over, False, {}


class TwoStepEnv(Small):
    """Two steps with two actions; the best return is 1, that of the myopic action 1/4."""

    action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state = np.array([self.np_random.uniform(0.0, 0.5)])
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        (x,) = self.state
        if x >= 0.5:
            return self.ended(OVER, PRIZE if x == RICH else 0.0, True)
        better = int(action) == 1
        return self.ended(RICH if better else POOR, 0.0 if better else BAIT, False)


class OilEnv(Small):
    """Five steps from 0.5; the reward is min(1, max(0, exp(-10|x - 0.75|) - |x - a|)), the next state is a."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.steps = np.array([0.5]), 0
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        x, a = float(self.state[0]), float(np.clip(action, 0.0, 1.0)[0])
        self.steps += 1
        found = math.exp(-10.0 * abs(x - 0.75))
        return self.ended(a, min(1.0, max(0.0, found - abs(x - a))), self.steps == H)


class AmbulanceEnv(Small):
    """Five steps from 0.5; the reward is 1 - (|x - a| + 3|a - y|) / 4, the next state is y, of Beta(5, 2)."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.steps, self.calls = np.array([0.5]), 0, self.np_random.beta(5.0, 2.0, H)
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        x, a, y = float(self.state[0]), float(np.clip(action, 0.0, 1.0)[0]), float(self.calls[self.steps])
        self.steps += 1
        return self.ended(y, 1.0 - (0.25 * abs(x - a) + 0.75 * abs(a - y)), self.steps == H)


# ---------------------------------------------------------------------------------------------------------------------
# The same as compiled systems.  The state is the place, then the step, then the calls of the episode.


class TwoStep(NamedTuple):
    """The constant of two steps."""

    prize: float


class Oil(NamedTuple):
    """The constant of the oil problem."""

    lam: float


class Ambulance(NamedTuple):
    """The constant of the ambulance."""

    alpha: float


def begin(constants, start, state):
    """Begin at the place, and with the calls, that the start holds."""
    state[0], state[1] = start[0], 0.0
    for i in range(1, start.size):
        state[1 + i] = start[i]


def observe(constants, state, observation):
    """Write the place."""
    observation[0] = state[0]


def two_step(constants, state, action):
    """Take one of two actions; the episode is over after two steps."""
    x = state[0]
    if x >= 0.5:
        state[0] = OVER
        return constants.prize if x == RICH else 0.0, True
    better = action[0] == 1.0
    state[0] = RICH if better else POOR
    return 0.0 if better else BAIT, False


def drive_to_oil(constants, state, action):
    """Drive to a place; the episode is over after five steps."""
    x, a = state[0], min(1.0, max(0.0, action[0]))
    state[0], state[1] = a, state[1] + 1.0
    found = math.exp(-constants.lam * abs(x - 0.75))
    return min(1.0, max(0.0, found - abs(x - a))), state[1] == H


def drive_to_call(constants, state, action):
    """Drive to a place and then to the call; the episode is over after five steps."""
    x, a = state[0], min(1.0, max(0.0, action[0]))
    y = state[2 + int(state[1])]
    state[0], state[1] = y, state[1] + 1.0
    return 1.0 - (constants.alpha * abs(x - a) + (1.0 - constants.alpha) * abs(a - y)), state[1] == H


def first_places(constants: TwoStep, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw first states."""
    return rng.uniform(0.0, 0.5, (episodes, 1))


def the_middle(constants: Oil, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Begin in the middle."""
    return np.full((episodes, 1), 0.5)


def calls(constants: Ambulance, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Begin in the middle, and draw the calls."""
    return np.column_stack((np.full(episodes, 0.5), rng.beta(5.0, 2.0, (episodes, H))))


PLACE = Variable("x", "x", "", (0.0, 1.0), "$x$", "place")


def make_known(
    name: str, title: str, steps: int, env: type[Small], constants: Any, step: Any, draw_starts: Any
) -> None:
    """Register a problem, with Gymnasium and as a compiled system."""
    env_id = f"spaql/{name}-v0"
    if env_id not in gym.registry:
        gym.register(env_id, entry_point=f"{__name__}:{env.__name__}", max_episode_steps=steps)
    register(
        System(
            name=env.__name__.removesuffix("Env"),
            originals=(env,),
            constants=type(constants),
            describe=lambda env: constants,
            begin=begin,
            step=step,
            observe=observe,
            draw_starts=draw_starts,
            state=(PLACE,),
            observed=(PLACE,),
            action=Variable("a", "a", "", (0.0, 1.0), "$a$"),
            size=2 + H,
            titles={env_id: title},
            telling=(0, 0),
        )
    )


make_known("TwoStep1", "Two steps", 2, TwoStepEnv, TwoStep(PRIZE), two_step, first_places)
make_known("OilLaplace10", "Oil", H, OilEnv, Oil(10.0), drive_to_oil, the_middle)
make_known("AmbulanceBeta25", "Ambulance", H, AmbulanceEnv, Ambulance(0.25), drive_to_call, calls)
