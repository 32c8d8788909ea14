"""The problems on [0, 1] of chapter 8: two steps that ask for foresight, and the two that SPAQL was born on.

In the first of *two steps*, anywhere in [0, 0.5), one action earns a quarter and leads to a place where nothing is
earned; the other earns nothing and leads to a place where everything earns one.

For *oil* a truck stands at x and drives to a.  It earns what a survey says of x, where it stood, less the way.

An *ambulance* stands at x, drives to a, and then to the next call at y, which does not depend on a.
"""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from spaql.systems import REGISTRY, System, Variable, begin, move, observe, register

H = 5  # steps of oil and of the ambulance
BAIT, PRIZE = 0.25, 1.0  # what the worse first action earns at once, and the better one a step later
POOR, RICH, OVER = 0.55, 0.7, 0.9  # the second states, and the end, each in a cell of its own

# As compiled systems.  The state is the place, then the step, then the calls of the episode.


class TwoStep(NamedTuple):
    """The constant of two steps."""

    prize: float


class Oil(NamedTuple):
    """The constant of the oil problem."""

    lam: float


class Ambulance(NamedTuple):
    """The constant of the ambulance."""

    alpha: float


def begin_episode(constants, start, state):
    """Begin at the place, and with the calls, that the start holds."""
    state[0], state[1] = start[0], 0.0
    for i in range(1, start.size):
        state[1 + i] = start[i]


def observe_place(constants, state, observation):
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
    """Earn min(1, max(0, exp(-λ|x - 0.75|) - |x - a|)), and be at a; the episode is over after five steps."""
    x, a = state[0], min(1.0, max(0.0, action[0]))
    state[0], state[1] = a, state[1] + 1.0
    found = math.exp(-constants.lam * abs(x - 0.75))
    return min(1.0, max(0.0, found - abs(x - a))), state[1] == H


def drive_to_call(constants, state, action):
    """Earn 1 - (α|x - a| + (1 - α)|a - y|), and be at the call y, of Beta(5, 2); over after five steps."""
    x, a = state[0], min(1.0, max(0.0, action[0]))
    y = state[2 + int(state[1])]
    state[0], state[1] = y, state[1] + 1.0
    return 1.0 - (constants.alpha * abs(x - a) + (1.0 - constants.alpha) * abs(a - y)), state[1] == H


def first_places(constants, rng, episodes):
    """Draw the first of two states."""
    return rng.uniform(0.0, 0.5, (episodes, 1))


def the_middle(constants, rng, episodes):
    """Begin in the middle."""
    return np.full((episodes, 1), 0.5)


def the_middle_and_calls(constants, rng, episodes):
    """Begin in the middle, and draw the calls."""
    return np.column_stack((np.full(episodes, 0.5), rng.beta(5.0, 2.0, (episodes, H))))


# As environments


class Interpreted(gym.Env):
    """An environment that runs the functions of its compiled system as plain Python."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        system = REGISTRY[type(self.constants)]
        (start,) = system.draw_starts(self.constants, self.np_random, 1)
        self.numbers = np.zeros(system.numbers)
        begin(self.constants, start, self.numbers)
        return self.shown(), {}

    def step(self, action):
        reward, over = move(self.constants, self.numbers, np.atleast_1d(action))
        return self.shown(), float(reward), bool(over), False, {}

    def shown(self):
        observation = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        observe(self.constants, self.numbers, observation)
        return observation

    @property
    def state(self):
        """The system's own variables."""
        return self.numbers[: len(REGISTRY[type(self.constants)].state)].copy()


PLACE, UNIT = Variable("x", "x", "", (0.0, 1.0), "$x$", "place"), spaces.Box(0.0, 1.0, (1,), np.float64)


def make_known(name, title, constants, step, draw_starts, steps=H, actions=UNIT):
    """Register a problem, with Gymnasium and as a compiled system."""
    kind, env_id = type(constants), f"spaql/{name}-v0"
    known = {"constants": constants, "observation_space": UNIT, "action_space": actions}
    env = type(f"{kind.__name__}Env", (Interpreted,), known)
    gym.register(env_id, entry_point=env, max_episode_steps=steps)
    register(
        System(
            name=kind.__name__,
            originals=(env,),
            constants=kind,
            describe=lambda env: env.unwrapped.constants,
            begin=begin_episode,
            step=step,
            observe=observe_place,
            draw_starts=draw_starts,
            state=(PLACE,),
            observed=(PLACE,),
            action=Variable("a", "a", "", (0.0, 1.0), "$a$"),
            size=2 + H,
            titles={env_id: title},
            telling=(0, 0),
        )
    )


make_known("TwoStep1", "Two steps", TwoStep(PRIZE), two_step, first_places, steps=2, actions=spaces.Discrete(2))
make_known("OilLaplace10", "Oil", Oil(10.0), drive_to_oil, the_middle)
make_known("AmbulanceBeta25", "Ambulance", Ambulance(0.25), drive_to_call, the_middle_and_calls)
