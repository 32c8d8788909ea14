"""A user's system with two actuators: two tanks that leak into each other and out, and a pump for each."""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from spaql.systems import System, Variable, register


class TanksEnv(gym.Env):
    """Tanks with a floor of 1 m², 1 m high; the levels should stay at 0.3 m and at 0.6 m."""

    def __init__(self, outflow: float = 0.1, between: float = 0.05):
        self.outflow, self.between = outflow, between
        self.observation_space = gym.spaces.Box(0.0, 1.0, (2,), np.float64)
        self.action_space = gym.spaces.Box(0.0, np.array([0.1, 0.2], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(0.0, 1.0, size=2)
        return self.state.copy(), {}

    def step(self, action):
        first, second = self.state
        flow = self.between * (first - second)
        first += 0.5 * (float(action[0]) - flow - self.outflow * math.sqrt(first))
        second += 0.5 * (float(action[1]) + flow - self.outflow * math.sqrt(second))
        self.state = np.array([min(1.0, max(0.0, first)), min(1.0, max(0.0, second))])
        return self.state.copy(), -abs(self.state[0] - 0.3) - abs(self.state[1] - 0.6), False, False, {}


class Tanks(NamedTuple):
    outflow: float
    between: float


def begin(tanks, start, state):
    state[0], state[1] = start[0], start[1]


def step(tanks, state, action):
    first, second = state[0], state[1]
    flow = tanks.between * (first - second)
    first += 0.5 * (np.float64(np.float32(action[0])) - flow - tanks.outflow * math.sqrt(first))
    second += 0.5 * (np.float64(np.float32(action[1])) + flow - tanks.outflow * math.sqrt(second))
    state[0], state[1] = min(1.0, max(0.0, first)), min(1.0, max(0.0, second))
    return -abs(state[0] - 0.3) - abs(state[1] - 0.6), False


def observe(tanks, state, observation):
    observation[0], observation[1] = state[0], state[1]


def describe(env):
    return Tanks(float(env.unwrapped.outflow), float(env.unwrapped.between))


def draw_starts(tanks, rng, episodes):
    return rng.uniform(0.0, 1.0, size=(episodes, 2))


if "Tanks-v0" not in gym.registry:
    gym.register("Tanks-v0", entry_point=TanksEnv, max_episode_steps=100)

LEVELS = tuple(Variable(f"level_{i}", f"h{i}", "m", (0.0, 1.0)) for i in (1, 2))

register(
    System(
        name="Tanks",
        originals=(TanksEnv,),
        constants=Tanks,
        describe=describe,
        begin=begin,
        step=step,
        observe=observe,
        draw_starts=draw_starts,
        state=LEVELS,
        observed=LEVELS,
        titles={"Tanks-v0": "Two tanks"},
        action=tuple(Variable(f"pump_{i}", f"q{i}", "m³/s", (0.0, 0.1 * i)) for i in (1, 2)),
    )
)
