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
PEAKS = (0.5, 0.25, 0.5, 0.75, 1.0)  # of the survey that moves with the step
LAPLACE, QUADRATIC, PRODUCT, SPARSE = range(4)
SURVEYS = ("laplace", "quadratic", "product", "sparse")


class OilEnv(gym.Env):
    """Five steps on [0, 1] from 0.5; reward min(1, max(0, f(x) - |x - a|)), the next state is a, perhaps with noise."""

    observation_space = action_space = spaces.Box(0.0, 1.0, (1,), np.float64)

    def __init__(self, survey: str = "laplace", lam: float = 1.0, noise: float = 0.0):
        self.survey, self.lam, self.noise = SURVEYS.index(survey), float(lam), float(noise)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.state, self.steps, self.drawn = np.array([0.5]), 0, self.np_random.standard_normal(H)
        return self.state, {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        x, a = float(self.state[0]), float(np.clip(action, 0.0, 1.0)[0])
        found = {
            LAPLACE: lambda: math.exp(-self.lam * abs(x - 0.75)),
            QUADRATIC: lambda: 1.0 - self.lam * ((x - 0.75) * (x - 0.75)),
            PRODUCT: lambda: math.exp(-self.lam * abs(x * a - 0.7)),
            SPARSE: lambda: (self.steps + 1) / H * math.exp(-self.lam * abs(x - PEAKS[self.steps])),
        }[self.survey]()
        moved = a + math.sqrt(self.noise) * (x + a) * self.drawn[self.steps]
        self.state = np.array([min(1.0, max(0.0, moved))])
        self.steps += 1
        return self.state, min(1.0, max(0.0, found - abs(x - a))), self.steps == H, False, {}


class Oil(NamedTuple):
    """The constants of a survey.  The state is the place, the step, and the noise of each step, drawn beforehand."""

    survey: int
    lam: float
    noise: float  # the variance of the next place, in multiples of (x + a)²


def begin(constants, start, state):
    """Begin in the middle; the start holds the noise of the episode."""
    state[0], state[1] = 0.5, 0.0
    for h in range(H):
        state[2 + h] = start[h]


def observe(constants, state, observation):
    """Write the place."""
    observation[0] = state[0]


def step(constants, state, action):
    """Drive to a place; the episode is over after five steps."""
    x, h, a = state[0], int(state[1]), min(1.0, max(0.0, action[0]))
    if constants.survey == LAPLACE:
        found = math.exp(-constants.lam * abs(x - 0.75))
    elif constants.survey == QUADRATIC:
        found = 1.0 - constants.lam * ((x - 0.75) * (x - 0.75))
    elif constants.survey == PRODUCT:
        found = math.exp(-constants.lam * abs(x * a - 0.7))
    else:
        found = (h + 1) / H * math.exp(-constants.lam * abs(x - PEAKS[h]))
    moved = a + math.sqrt(constants.noise) * (x + a) * state[2 + h]
    state[0] = min(1.0, max(0.0, moved))
    state[1] = h + 1
    return min(1.0, max(0.0, found - abs(x - a))), h + 1 == H


def draw_starts(constants: Oil, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw the noise of each step of each episode."""
    return rng.standard_normal((episodes, H))


def describe(env: gym.Env) -> Oil | None:
    """Return the constants of a survey."""
    inner = env.unwrapped
    return Oil(inner.survey, inner.lam, inner.noise) if plain_numbers(inner, Oil._fields) else None


IDS: dict[str, tuple[str, dict]] = {
    f"spaql/Oil{survey.capitalize()}{lam}-v0": (f"Oil, {survey}, λ = {lam}", {"survey": survey, "lam": lam})
    for survey in ("laplace", "quadratic")
    for lam in (1, 10, 50)
} | {
    "spaql/OilProduct10-v0": ("Oil, product, λ = 10", {"survey": "product", "lam": 10, "noise": 0.1}),
    "spaql/OilSparse10-v0": ("Oil, moving, λ = 10", {"survey": "sparse", "lam": 10, "noise": 0.05}),
}
for _id, (_, _kwargs) in IDS.items():
    if _id not in gym.registry:
        gym.register(_id, entry_point="spaql.systems.oil:OilEnv", max_episode_steps=H, kwargs=_kwargs)

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
        size=2 + H,
        titles={env_id: words for env_id, (words, _) in IDS.items()},
        returns=dict.fromkeys(IDS, (0.0, float(H))),
        telling=(0, 0),
    )
)
