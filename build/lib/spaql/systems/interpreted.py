"""Any Gymnasium environment as a world that an agent learns in, at Python's speed."""

import math
import warnings
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.spaces import FLOATS, Space, standardise, to_box


class InterpretedWorld:
    """A Gymnasium environment behind the interface of a compiled world: the same loops run on it as plain Python."""

    compiled = False

    def __init__(self, env: gym.Env, space: Space, seed: int, raw_first: bool = False):
        self.env, self.space, self.raw_first = env, space, raw_first
        self.seed = self.first_seed = seed  # `seed` until the first reset has used it
        self.warned = False
        self.between_steps: Callable[[], None] = do_nothing  # called before every step

    def call(self, function: Callable, *arguments: Any) -> Any:
        """Run a loop as plain Python; its first argument is the world itself."""
        return function(self, *arguments)

    def starts(self, episodes: int) -> range:
        """Return a place holder for each of the next episodes: where they start is the environment's own business."""
        return range(episodes)

    @property
    def stream(self) -> dict | None:
        """The state of the environment's random stream: None before its first reset, {} if NumPy does not make it."""
        if self.seed is not None:
            return None
        generator = getattr(self.env.unwrapped, "_np_random", None)
        return generator.bit_generator.state if isinstance(generator, np.random.Generator) else {}

    @stream.setter
    def stream(self, state: dict | None) -> None:
        self.seed = self.first_seed if state is None else None
        if state:
            kind = getattr(np.random, state["bit_generator"])
            self.env.unwrapped.np_random = np.random.Generator(kind())
            self.env.unwrapped.np_random.bit_generator.state = state

    def room(self) -> None:
        """Return no room for a state: that is the environment's own business too."""

    def reset(self, state: None, start: int, x: FLOATS) -> None:
        """Begin an episode; write what the agent observes to `x`."""
        observation, _ = self.env.reset(seed=self.seed)
        self.seed = None  # one seed at the start, then the environment's own stream goes on
        self._observe(observation, x, mapped=not self.raw_first)

    def step(self, state: None, action: FLOATS, x: FLOATS) -> tuple[float, bool]:
        """Apply an action of the standard space; write what the agent observes, return reward and end of episode."""
        self.between_steps()
        observation, reward, terminated, truncated, _ = self.env.step(self._action(action))
        self._observe(observation, x)
        reward = float(reward)
        if not math.isfinite(reward):
            raise ValueError(f"the environment gave a reward of {reward}; expected a finite number")
        return reward, bool(terminated or truncated)

    def _observe(self, observation: Any, x: FLOATS, mapped: bool = True) -> None:
        """Write an observation to `x`, mapped to the standard space unless told otherwise."""
        observation = np.asarray(observation, float).ravel()
        if observation.size != x.size:
            raise ValueError(f"the environment gave an observation of {observation.size} numbers, expected {x.size}")
        if np.isnan(observation).any():
            raise ValueError(f"the environment gave an observation with NaN: {observation}; expected numbers")
        outside = np.abs(observation - self.space.centre) > np.multiply(self.space.half, 1 + 1e-6)
        if outside.any() and not self.warned:
            self.warned = True
            warnings.warn(
                f"observation {observation} is outside the bounds the environment declares; "
                "it is clipped to them, as will be others (this is said once)",
                stacklevel=2,
            )
        if mapped:
            standardise(self.space, observation, x)
        else:
            x[:] = np.clip(observation, -1.0, 1.0)

    def _action(self, action: FLOATS) -> Any:
        """Return the environment's action for an action of the standard space."""
        space = self.env.action_space
        if self.space.actions:
            return space.start + np.int64(action[0])
        return to_box(space, self.space, action)


def do_nothing() -> None:
    """Do nothing: what happens between steps unless somebody wants more."""
