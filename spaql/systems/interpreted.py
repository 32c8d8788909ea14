"""Any Gymnasium environment as a world that an agent learns in, at Python's speed."""

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.advice import BLIND, Advice
from spaql.checks import shown
from spaql.files import FINITE
from spaql.spaces import Space, check_circles, is_flat, pairs_of, standardise, to_box
from spaql.systems.worlds import ENDED, TIME_UP

OUTSIDE = "observation %s is outside the bounds that were declared or given; it is clipped to them, as will be others"


class InterpretedWorld:
    """A Gymnasium environment behind the interface of a compiled world: the same loops run on it as plain Python."""

    compiled = False

    def __init__(self, env: gym.Env, space: Space, seed: int, raw_first: bool = False, advice: Advice | None = None):
        self.env, self.space, self.raw_first = env, space, raw_first
        self.first_seed = seed
        self.seed: int | None = seed  # until the first reset has used it
        self.generator: Any = None  # the environment's, since then: another agent may use the environment meanwhile
        self.advice = advice or Advice()
        self.between_steps: Callable[[], None] | None = None  # called before every step, if anything is
        self.begun: list[np.ndarray] | None = None  # where the first observation of each episode is noted, if it is
        reach = np.minimum(np.multiply(space.half, 1 + 1e-6), FINITE)  # of unbounded ones, all but infinity
        self.low, self.high = (space.centre - reach).tolist(), (space.centre + reach).tolist()
        self.angles = pairs_of(space)
        self.action_space = env.action_space  # a chain of wrappers is asked once

    def call(self, function: Callable, *arguments: Any) -> Any:
        """Run a loop as plain Python; its first argument is the world itself."""
        return function(self, *arguments)

    def starts(self, episodes: int) -> range:
        """Return a place holder for each of the next episodes: where they start is the environment's own business."""
        return range(episodes)

    @property
    def stream(self) -> Any:
        """The state of the environment's random stream: None before its first reset, {} if it is no PCG64."""
        if self.seed is not None:
            return None
        bits = getattr(self.generator, "bit_generator", None)
        return bits.state if isinstance(bits, np.random.PCG64) else {}

    @stream.setter
    def stream(self, state: Any) -> None:
        self.seed, self.generator = self.first_seed if state is None else None, None
        if state:
            self.generator = np.random.Generator(np.random.PCG64())
            self.generator.bit_generator.state = state

    def room(self) -> None:
        """Return no room for a state: that is the environment's own business too."""

    def reset(self, state: None, start: int, x: np.ndarray) -> None:
        """Begin an episode; write what the agent observes to `x`."""
        inner = self.env.unwrapped
        if self.seed is None and self.generator is not None and inner._np_random is not self.generator:
            inner.np_random = self.generator
        found = self.env.reset(seed=self.seed)
        if not isinstance(found, tuple) or len(found) != 2:
            raise ValueError("the environment's reset must return observation and info")
        observation, _ = found
        self.seed = None  # one seed at the start, then the environment's own stream goes on
        self.generator = getattr(inner, "_np_random", None)
        if self.begun is not None:
            self.begun.append(np.array(observation))
        self._observe(observation, x, mapped=not self.raw_first)
        if is_flat(self.space, np.ravel(observation)):
            self.advice.once(BLIND, observation)

    def step(self, state: None, action: np.ndarray, x: np.ndarray) -> tuple[float, int]:
        """Apply an action of the standard space; write what the agent observes, return reward and end of episode."""
        if self.between_steps is not None:
            self.between_steps()
        if self.space.actions:
            given = self.action_space.start + np.int64(action[0])
        else:
            given = to_box(self.action_space, self.space, action)
        found = self.env.step(given)
        if not isinstance(found, tuple) or len(found) != 5:
            raise ValueError("the environment's step must return observation, reward, terminated, truncated and info")
        observation, reward, terminated, truncated, _ = found
        self._observe(observation, x, last=terminated)
        return check_reward(reward), ENDED if terminated else TIME_UP if truncated else 0

    def _observe(self, observation: Any, x: np.ndarray, mapped: bool = True, last: bool = False) -> None:
        """Write an observation to `x`, mapped to the standard space unless told otherwise."""
        observation = np.asarray(observation, float).ravel()
        if observation.size != x.size:
            raise ValueError(f"the environment gave an observation of {observation.size} numbers, expected {x.size}")
        seen = observation.tolist()  # Python's own numbers are the fastest ones here
        for number, low, high in zip(seen, self.low, self.high, strict=True):
            if not low <= number <= high:  # nor is NaN
                self._say_outside(observation, last)
                break
        if self.angles:
            check_circles(self.angles, seen)
        if mapped:
            standardise(self.space, seen, x)
        else:
            x[:] = np.clip(observation, -1.0, 1.0)

    def _say_outside(self, observation: np.ndarray, last: bool) -> None:
        """Refuse an observation that is not made of numbers; warn, once, of one outside its bounds."""
        if np.isnan(observation).any() or np.any(np.isinf(observation) & np.isinf(self.space.half)):
            raise ValueError(f"the environment gave an observation with NaN or infinity: {observation}")
        if not last:  # a terminal state may lie outside: often that is why the episode ends
            self.advice.once(OUTSIDE, observation)


def check_reward(reward: Any) -> float:
    """Return an environment's reward as a float, or say what is wrong with it."""
    number = np.asarray(reward)
    if number.ndim or number.dtype.kind not in "biuf" or not math.isfinite(number):
        raise ValueError(f"the environment gave a reward of {shown(reward)}; expected a finite number")
    return float(reward)
