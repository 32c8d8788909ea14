"""Environments: made from an id, looked into through their wrappers, and mapped to the standard space."""

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer, check_number
from spaql.spaces import Space, make_space
from spaql.systems.registry import system_of

HORIZON = 200  # the paper's, which all of its systems have for a limit; of environments that have none

# Wrappers whose statistics every episode moves, so that evaluating an agent would change what it sees.
STATEFUL = {
    gym.wrappers.NormalizeObservation: "leave it out, and give bounds=[(low, high), ...] where observations vary",
    gym.wrappers.NormalizeReward: "use spaql.systems.ScaleReward(env, scale=...)",
}


class ScaleReward(gym.RewardWrapper):
    """Rewards times `scale` plus `shift`; a registered system stays compiled inside it, unlike in TransformReward."""

    def __init__(self, env: gym.Env, scale: float = 1.0, shift: float = 0.0):
        super().__init__(env)
        self.scale, self.shift = check_number("scale", scale), check_number("shift", shift)

    def reward(self, reward: Any) -> float:
        return float(reward) * self.scale + self.shift


def make_env(env: str | gym.Env) -> gym.Env:
    """Return the environment, made if only its id is given."""
    if isinstance(env, str):
        with warnings.catch_warnings():
            # Gymnasium advises against CartPole-v0, which is the paper's.
            warnings.simplefilter("ignore", DeprecationWarning)
            env = gym.make(env)
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be an id or a gymnasium.Env, not {type(env).__name__}")
    for wrapper in wrappers_of(env):
        for kind, cure in STATEFUL.items():
            if isinstance(wrapper, kind):
                raise ValueError(f"{type(wrapper).__name__} keeps statistics that each episode changes: {cure}")
    return env


def space_of(env: gym.Env, slopes: Any = None, bounds: Any = None, angles: Any = ()) -> Space:
    """Return an environment's map to the standard space; its system's slopes if None are given, and so the angles."""
    if slopes is None:
        system = system_of(env)
        slopes = system.slopes if system and system.slopes is not None else 1.0
    return make_space(env, slopes, bounds, angles_of(env) if angles is None else angles)


def angles_of(env: gym.Env) -> list[list[int]]:
    """Return the places of the cosines and sines of angles in what an environment of a registered system shows."""
    system = system_of(env)
    if system is None:
        return []
    names = [variable.name for variable in system.observed]
    return [[names.index(part) for part in pair] for pair in system.angles.values()]


def episode_limit(env: gym.Env) -> int | None:
    """Return after how many steps the environment's own wrappers end an episode, or None if they never do."""
    limits = [one._max_episode_steps for one in wrappers_of(env) if isinstance(one, gym.wrappers.TimeLimit)]
    return min(limits, default=None)


def plain_numbers(env: gym.Env, names: Iterable[str]) -> list[float] | None:
    """Return attributes as floats; None if one is no number of Python's own: results may have another precision."""
    numbers = [getattr(env.unwrapped, name) for name in names]
    return list(map(float, numbers)) if all(type(number) in (int, float) for number in numbers) else None


def horizon_of(env: gym.Env, horizon: Any = None, at_most: int | None = None) -> int:
    """Return the greatest length of an episode: what is given, or the environment's own limit, or the paper's."""
    return check_integer("horizon", (episode_limit(env) or HORIZON) if horizon is None else horizon, at_most=at_most)


def make_generator(seed: int) -> np.random.Generator:
    """Return the generator a Gymnasium environment has after reset(seed=seed)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def wrappers_of(env: gym.Env) -> Iterator[gym.Wrapper]:
    """Yield an environment's wrappers, the outermost first."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env
