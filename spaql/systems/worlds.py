"""Compiled systems as worlds that an agent learns in.

Compiled code is written once for all systems.  It calls `begin`, `move` and `observe` below, and the compiler picks the
functions of the system by the type of its constants.
"""

import functools
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numba.core import types
from numba.extending import overload, overload_method

from spaql.compiling import INLINED, machine_code
from spaql.spaces import Space, standardise
from spaql.systems.environments import ScaleReward, make_generator, wrappers_of
from spaql.systems.registry import REGISTRY, System

log = logging.getLogger(__name__)
warn_once = functools.cache(log.warning)  # each message

# Wrappers that gym.make() adds by itself, or that only watch: what is inside them is what it seems to be.
TRANSPARENT = (
    gym.wrappers.PassiveEnvChecker,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.TimeLimit,
    gym.wrappers.RecordEpisodeStatistics,
)

# What compiled code calls.  In Python these look the system up in the registry; the compiler does so once, by type.


def begin(constants: Any, start: np.ndarray, state: np.ndarray) -> None:
    """Write the state at the start of an episode."""
    REGISTRY[type(constants)].begin(constants, start, state)


def move(constants: Any, state: np.ndarray, action: np.ndarray) -> tuple[float, bool]:
    """Change the state by one step under an action in the environment's units; return reward and end of episode."""
    return REGISTRY[type(constants)].step(constants, state, action)


def observe(constants: Any, state: np.ndarray, observation: np.ndarray) -> None:
    """Write the observation in the environment's units."""
    REGISTRY[type(constants)].observe(constants, state, observation)


compiled_as = functools.partial(overload, jit_options=INLINED, strict=False)  # whatever functions call their arguments
compiled_as(begin)(lambda constants, start, state: REGISTRY[constants.instance_class].begin)
compiled_as(move)(lambda constants, state, action: REGISTRY[constants.instance_class].step)
compiled_as(observe)(lambda constants, state, observation: REGISTRY[constants.instance_class].observe)

# How a step says that an episode is over: it has ended, for which compiled systems return True, or time is up.
ENDED, TIME_UP = 1, 2


class Model(NamedTuple):
    """What the loops take of a compiled world: the system's constants and how the agent sees it."""

    constants: Any  # of the system
    space: Space
    numbers: int  # that the system's state has
    raw_first: bool  # the first observation of an episode reaches the agent unmapped (the released program's way)
    scale: float  # of rewards, see `ScaleReward`
    shift: float

    def room(self):
        """Return room for the state of the system."""
        return np.empty(self.numbers)

    def reset(self, state, start, x):
        """Begin an episode; write what the agent observes to `x`."""
        begin(self.constants, start, state)
        observe(self.constants, state, x)
        if self.raw_first:
            for i in range(x.size):
                x[i] = min(1.0, max(-1.0, x[i]))
        else:
            standardise(self.space, x, x)

    def step(self, state, action, x):
        """Apply an action, which becomes the environment's; write what the agent observes, return reward and end."""
        if self.space.actions == 0:
            for i in range(len(self.space.action_half)):
                action[i] = self.space.action_centre[i] + self.space.action_half[i] * action[i]
        reward, over = move(self.constants, state, action)
        observe(self.constants, state, x)
        standardise(self.space, x, x)
        return reward * self.scale + self.shift, over


METHODS = {  # which compiled loops call
    "room": lambda self: self.instance_class.room,
    "reset": lambda self, state, start, x: self.instance_class.reset,
    "step": lambda self, state, action, x: self.instance_class.step,
}
for name, method in METHODS.items():
    overload_method(types.NamedTuple, name, jit_options=INLINED)(method)

# What an agent learns in


class CompiledWorld:
    """A compiled system that an agent learns in, with the random stream of its starts."""

    compiled = True

    def __init__(self, model: Model, seed: int):
        self.model = model
        self.between_steps: Any = None  # an interpreted world calls it; machine code cannot
        self._generator = make_generator(seed)

    @property
    def system(self) -> System:
        """What the package knows of the system."""
        return REGISTRY[type(self.model.constants)]

    def call(self, function: Callable, *arguments: Any) -> Any:
        """Run a loop as machine code; its first argument is the model."""
        system = self.system
        return machine_code(function, system.constants, system.functions)(self.model, *arguments)

    def starts(self, episodes: int) -> np.ndarray:
        """Draw the starts of the next episodes, one row per episode."""
        return self.draw(self._generator, episodes)

    def draw(self, rng: np.random.Generator, episodes: int) -> np.ndarray:
        """Draw starts with a generator of the caller's."""
        starts = self.system.draw_starts(self.model.constants, rng, episodes)
        if np.ndim(starts) != 2 or len(starts) != episodes:
            raise ValueError(f"draw_starts of {self.system.name} gave an array of shape {np.shape(starts)}; expected a "
                             f"row for each of {episodes} episodes")  # fmt: skip
        return starts

    def first_observation(self, start: np.ndarray) -> np.ndarray:
        """Return the first observation of an episode."""
        constants, state, observation = self.model.constants, self.model.room(), np.empty(len(self.model.space.centre))
        begin(constants, start, state)
        observe(constants, state, observation)
        return observation

    @property
    def stream(self) -> Any:
        """The state of the random stream."""
        return self._generator.bit_generator.state

    @stream.setter
    def stream(self, state: Any) -> None:
        self._generator.bit_generator.state = state


def compiled_world(env: gym.Env, space: Space, seed: int = 0, raw_first: bool = False) -> CompiledWorld | None:
    """Return the compiled twin of an environment, with its physical constants, or None if it has none."""
    system, inner = twin_of(env), env.unwrapped
    own_methods = any(callable(getattr(type(inner), name, None)) for name in vars(inner))  # in place of its class's
    several = isinstance(env.action_space, gym.spaces.MultiDiscrete)  # which machine code does not know
    if system is None or own_methods or several or opaque_wrapper(env, system) is not None:
        return None
    if (constants := system.describe(env)) is None:
        return None
    check_shapes(system, constants, env)
    scaled = [wrapper for wrapper in wrappers_of(env) if type(wrapper) is ScaleReward]
    scale, shift = (scaled[0].scale, scaled[0].shift) if scaled else (1.0, 0.0)
    return CompiledWorld(Model(constants, space, system.numbers, raw_first, scale, shift), seed)


def check_shapes(system: System, constants: Any, env: gym.Env) -> None:
    """Say if the functions of a system do not fit together: machine code would read and write beyond its arrays."""
    state, observation = np.empty(system.numbers), np.zeros(len(system.observed))
    try:
        system.begin(constants, system.draw_starts(constants, np.random.default_rng(0), 1)[0], state)
        system.observe(constants, state, observation)
    except IndexError as error:
        raise ValueError(f"begin or observe of {system.name} uses more numbers than its start, its {state.size} of "
                         f"the state or its {observation.size} observed variables") from error  # fmt: skip
    if env.observation_space.shape != observation.shape:
        raise ValueError(f"{system.name} names {observation.size} observed variables, its environment shows others")


def twin_of(env: gym.Env) -> System | None:
    """Return the system that an environment's innermost class has a compiled twin in."""
    return next((one for one in REGISTRY.values() if type(env.unwrapped) in one.originals), None)


def opaque_wrapper(env: gym.Env, system: System) -> type[gym.Wrapper] | None:
    """Return the class of the outermost wrapper that compiled code cannot look through; a second scale is one, too."""
    known, kinds = (*TRANSPARENT, *system.wrappers, ScaleReward), [type(wrapper) for wrapper in wrappers_of(env)]
    twice = ScaleReward if kinds.count(ScaleReward) > 1 else None
    return next((kind for kind in kinds if kind not in known), twice)


def explain_interpreted(env: gym.Env) -> None:
    """Say why an environment of a registered system does not run as machine code."""
    if (system := twin_of(env)) is not None:
        wrapper = opaque_wrapper(env, system)
        reason = "this variant has no compiled twin" if wrapper is None else f"its wrapper {wrapper.__name__} hides it"
        warn_once(f"{system.name} runs interpreted, 10 to 100 times slower than compiled: {reason}")
