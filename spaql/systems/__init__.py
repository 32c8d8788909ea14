"""The systems: what the package knows of each, and how compiled code finds a system's own functions.

A system is one file: the constants of its dynamics (a named tuple), three short functions of them (`begin`, `step`,
`observe`), where episodes start, and what its variables are called.  `register` makes it known.  Those of this folder
are registered at the end of this module, those of users from wherever they stand.

Compiled code is written once for all systems.  It calls `begin`, `move` and `observe` below, and the compiler picks the
functions of the system by the type of its constants.
"""

import functools
import importlib
import logging
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numba import njit
from numba.extending import overload

from spaql.checks import check_integer, check_name, check_number
from spaql.compiling import INLINED, machine_code
from spaql.spaces import Space, make_space, standardise

log = logging.getLogger(__name__)


class ScaleReward(gym.RewardWrapper):
    """Rewards times `scale` plus `shift`; a registered system stays compiled inside it, unlike in TransformReward."""

    def __init__(self, env: gym.Env, scale: float = 1.0, shift: float = 0.0):
        super().__init__(env)
        self.scale, self.shift = check_number("scale", scale), check_number("shift", shift)

    def reward(self, reward: Any) -> float:
        return float(reward) * self.scale + self.shift


# Wrappers that gym.make() adds by itself, or that only watch: what is inside them is what it seems to be.
TRANSPARENT = (
    gym.wrappers.PassiveEnvChecker,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.TimeLimit,
    gym.wrappers.RecordEpisodeStatistics,
)
HORIZON = 200  # the paper's, which all of its systems have for a limit; of environments that have none


@dataclass(frozen=True)
class Variable:
    """A variable of a system's state, of its observations, or its action."""

    name: str  # as in a program
    symbol: str = ""  # as in a formula of text, "θ̇"
    unit: str = ""
    ends: tuple[float, float] = (-1.0, 1.0)  # how far maps and sliders go
    formula: str = ""  # as in a formula of TeX, r"$\dot\theta$"
    words: str = ""  # as on an axis, "pole angle"
    marks: tuple[float, ...] = ()  # values that a picture marks: where it should be, where an episode ends
    period: float = 0.0  # after which it is the same again, if it turns round


@dataclass(frozen=True)
class System:
    """What the package knows of a system.

    Parameters
    ----------
    name
        What it is called.
    originals
        The environments it is the twin of: exactly these classes run compiled, and their subclasses share its names.
    constants
        The class of the named tuple that holds the constants of the dynamics.
    describe
        Returns the constants of an environment, read from the object itself; None for a variant that the compiled
        functions do not cover, which then runs interpreted.
    begin
        `begin(constants, start, state)` writes the state at the start of an episode.
    step
        `step(constants, state, action)` changes the state and returns the reward and whether the episode ends; actions
        are in the environment's units, or the number of a discrete one.
    observe
        `observe(constants, state, observation)` writes the observation in the environment's units.
    draw_starts
        `draw_starts(constants, rng, episodes)` returns the starts of episodes, one row per episode: the stream that
        the environment's reset() draws from the same generator.
    state, observed, action
        Its variables; the state's are those of `env.unwrapped.state`.
    size
        How many numbers `state` holds in compiled code; as many as there are state variables if not given.
    choices
        `choices(env)` returns the discrete actions in the action's unit.
    titles
        What the system's environments are called in the book, by id.
    returns
        The least and the greatest return that an episode of an environment can have, by id, where they are known.
    without_goal
        The most that an episode can earn without coming to the goal, by id, where there is a goal.
    wrappers
        Wrappers of the system's own that `describe` understands.
    slopes
        Slopes of the sigmoid for unbounded observations (zero where bounded).
    reference
        The observation that SPAQL-TS steers to.
    angles
        Pairs of observed variables that are cosine and sine of an angle of the state: {angle: (cosine, sine)}.
    telling
        The places in `state` of the two variables that tell most: maps are drawn over both, episodes by the first.
    vary
        `vary(env, mass=1.0, length=1.0)` changes the mass and the length of its pendulum or pole, if it has one.
    """

    name: str
    originals: tuple[type[gym.Env], ...]
    constants: type
    describe: Callable[[gym.Env], Any]
    begin: Callable[..., None]
    step: Callable[..., tuple[float, bool]]
    observe: Callable[..., None]
    draw_starts: Callable[[Any, np.random.Generator, int], np.ndarray]
    state: tuple[Variable, ...]
    observed: tuple[Variable, ...]
    action: Variable
    size: int = 0
    choices: Callable[[gym.Env], tuple[float, ...]] | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    returns: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    without_goal: Mapping[str, float] = field(default_factory=dict)
    wrappers: tuple[type[gym.Wrapper], ...] = ()
    slopes: tuple[float, ...] | None = None
    reference: tuple[float, ...] | None = None
    angles: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    telling: tuple[int, int] = (0, 1)
    vary: Callable[..., None] | None = None

    @property
    def numbers(self) -> int:
        """How many numbers the state has in compiled code."""
        return self.size or len(self.state)


REGISTRY: dict[type, System] = {}  # by the class of the constants


def register(system: System) -> System:
    """Make a system known: its environments then run compiled.

    Registering another system for the same environments replaces the first, with constants of a class of its own: what
    is compiled already for a class stays as it is.
    """
    check_description(system)
    for known in list(REGISTRY.values()):
        if set(known.originals) & set(system.originals):
            del REGISTRY[known.constants]
    REGISTRY[system.constants] = system
    return system


def check_description(system: System) -> None:
    """Say if what a system says of itself does not fit together."""
    if not isinstance(system.originals, tuple):
        raise TypeError(f"originals of {system.name} must be a tuple of classes, (MyEnv,), not {system.originals!r}")
    for variable in (*system.state, *system.observed, system.action):
        check_name(f"a variable of {system.name}", variable.name)
    for what, variables in (("state", system.state), ("observed", system.observed)):
        names = [variable.name for variable in variables]
        if len(set(names)) < len(names):
            raise ValueError(f"the variables of {system.name} need names of their own; {what} has {', '.join(names)}")
    for what, ids in (("returns", system.returns), ("without_goal", system.without_goal)):
        if untitled := sorted(set(ids) - set(system.titles)):
            raise ValueError(f"{what} of {system.name} names {', '.join(untitled)}, for which titles has no title")
    for what, numbers in (("reference", system.reference), ("slopes", system.slopes)):
        if numbers is not None and len(numbers) != len(system.observed):
            raise ValueError(
                f"{what} of {system.name} must have one number for each of its {len(system.observed)} observed "
                f"variables, not {numbers!r}"
            )


def system_of(env: gym.Env) -> System | None:
    """Return the system whose variables an environment shows: a twin's, or that of a class derived from it."""
    for system in REGISTRY.values():
        if isinstance(env.unwrapped, system.originals) and env.observation_space == env.unwrapped.observation_space:
            return system
    return None


def system_called(env_id: str) -> System | None:
    """Return the system that has a title for an environment's id."""
    return next((system for system in REGISTRY.values() if env_id in system.titles), None)


def title(env_id: str) -> str:
    """Return what an environment is called in the book; its id if no system says."""
    system = system_called(env_id)
    return env_id if system is None else system.titles[env_id]


def possible_returns(env_id: str) -> tuple[float, float]:
    """Return the least and the greatest return of an environment's episodes, as far as its system knows them."""
    system = system_called(env_id)
    return (-math.inf, math.inf) if system is None else system.returns.get(env_id, (-math.inf, math.inf))


def without_goal(env_id: str) -> float:
    """Return the most that an episode can earn without coming to the goal; minus infinity where there is no goal."""
    system = system_called(env_id)
    return -math.inf if system is None else system.without_goal.get(env_id, -math.inf)


def solved_at(env_id: str) -> float | None:
    """Return the mean return from which a task counts as solved, as Gymnasium's registry has it."""
    return gym.spec(env_id).reward_threshold


def make_env(env: str | gym.Env) -> gym.Env:
    """Return the environment, made if only its id is given."""
    if isinstance(env, str):
        if (factory := factory_called(env)) is not None:
            return make_env(factory())
        with warnings.catch_warnings():
            # Gymnasium advises against CartPole-v0, which is the paper's.
            warnings.simplefilter("ignore", DeprecationWarning)
            return gym.make(env)
    if not isinstance(env, gym.Env):
        vector = " (one environment, not a vector of them)" if isinstance(env, gym.vector.VectorEnv) else ""
        raise TypeError(f"env must be an id or a gymnasium.Env, not {type(env).__name__}{vector}")
    return env


def factory_called(name: str) -> Callable[[], gym.Env] | None:
    """Return the function that a name like "module:function" means, or None where it is the id of an environment."""
    module, colon, function = name.partition(":")
    if not colon or not function.isidentifier():  # ids end in a version, which no identifier does
        return None
    return getattr(importlib.import_module(module), function, None)


def space_of(env: gym.Env, slopes: Any = None, bounds: Any = None) -> Space:
    """Return the map of an environment to the standard space, with its system's slopes unless others are given."""
    if slopes is None:
        system = system_of(env)
        slopes = system.slopes if system and system.slopes is not None else 1.0
    return make_space(env, slopes, bounds)


def episode_limit(env: gym.Env) -> int | None:
    """Return after how many steps the environment's own wrappers end an episode, or None if they never do."""
    limits = [one._max_episode_steps for one in wrappers_of(env) if isinstance(one, gym.wrappers.TimeLimit)]
    return min(limits, default=None)


def plain_numbers(env: gym.Env, names: Iterable[str]) -> bool:
    """Return whether these attributes are numbers of Python's own: with NumPy's, results may have another precision."""
    return all(type(getattr(env, name)) in (int, float) for name in names)


def horizon_of(env: gym.Env, horizon: Any = None, at_most: int | None = None) -> int:
    """Return the greatest length of an episode: what is given, or the environment's own limit, or the paper's."""
    return check_integer("horizon", (episode_limit(env) or HORIZON) if horizon is None else horizon, at_most=at_most)


def make_generator(seed: int) -> np.random.Generator:
    """Return the generator a Gymnasium environment has after reset(seed=seed)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


# ---------------------------------------------------------------------------------------------------------------------
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


def blank_state(constants: Any) -> np.ndarray:
    """Return room for a system's state."""
    return np.empty(REGISTRY[type(constants)].numbers)


@overload(begin, jit_options=INLINED)
def _begin(constants, start, state):
    kernel = njit(**INLINED)(REGISTRY[constants.instance_class].begin)
    return lambda constants, start, state: kernel(constants, start, state)


@overload(move, jit_options=INLINED)
def _move(constants, state, action):
    kernel = njit(**INLINED)(REGISTRY[constants.instance_class].step)
    return lambda constants, state, action: kernel(constants, state, action)


@overload(observe, jit_options=INLINED)
def _observe(constants, state, observation):
    kernel = njit(**INLINED)(REGISTRY[constants.instance_class].observe)
    return lambda constants, state, observation: kernel(constants, state, observation)


@overload(blank_state, jit_options=INLINED)
def _blank_state(constants):
    numbers = REGISTRY[constants.instance_class].numbers
    return lambda constants: np.empty(numbers)


# How a step says that an episode is over: it has ended, for which compiled systems return True, or time is up.
ENDED, TIME_UP = 1, 2


class Model(NamedTuple):
    """What the compiled loops take of a world: the system's constants and how the agent sees it."""

    constants: Any  # of the system
    space: Space
    raw_first: bool  # the first observation of an episode reaches the agent unmapped (the released program's way)
    scale: float  # of rewards, see `ScaleReward`
    shift: float

    def room(self) -> np.ndarray:
        return blank_state(self.constants)

    def reset(self, state: np.ndarray, start: np.ndarray, x: np.ndarray) -> None:
        system = REGISTRY[type(self.constants)]
        reset_with(system.begin, system.observe)(self, state, start, x)

    def step(self, state: np.ndarray, action: np.ndarray, x: np.ndarray) -> tuple[float, bool]:
        system = REGISTRY[type(self.constants)]
        return step_with(system.step, system.observe)(self, state, action, x)


# The three functions that the loops call of a world.  In Python they are its methods, whatever kind of world it is; the
# compiler knows models only.


def room(world: Any) -> np.ndarray:
    """Return room for the state of a world's system."""
    return world.room()


def reset(world: Any, state: np.ndarray, start: np.ndarray, x: np.ndarray) -> None:
    """Begin an episode; write what the agent observes to `x`."""
    world.reset(state, start, x)


def step(world: Any, state: np.ndarray, action: np.ndarray, x: np.ndarray) -> tuple[float, bool]:
    """Apply an action of the standard space; write what the agent observes to `x`, return reward and end of episode."""
    return world.step(state, action, x)


@overload(room, jit_options=INLINED)
def _room(world):
    return lambda world: blank_state(world.constants)


@overload(reset, jit_options=INLINED)
def _reset(world, state, start, x):
    system = REGISTRY[world.types[0].instance_class]
    return reset_with(njit(**INLINED)(system.begin), njit(**INLINED)(system.observe))


@overload(step, jit_options=INLINED)
def _step(world, state, action, x):
    system = REGISTRY[world.types[0].instance_class]
    return step_with(njit(**INLINED)(system.step), njit(**INLINED)(system.observe))


# Compiled functions count references to the arrays they are handed, so there are as few as possible between a loop and
# a system's own functions: these two are made for each system.


def reset_with(begin: Callable, observe: Callable) -> Callable:
    """Return how an episode of a compiled system begins, with its own functions."""

    def reset_model(world, state, start, x):
        begin(world.constants, start, state)
        observe(world.constants, state, x)
        if world.raw_first:
            for i in range(x.size):
                x[i] = min(1.0, max(-1.0, x[i]))
        else:
            standardise(world.space, x, x)

    return reset_model


def step_with(move: Callable, observe: Callable) -> Callable:
    """Return how a compiled system takes a step, with its own functions; the action becomes the environment's."""

    def step_model(world, state, action, x):
        if world.space.actions == 0:
            for i in range(len(world.space.action_half)):
                action[i] = world.space.action_centre[i] + world.space.action_half[i] * action[i]
        reward, over = move(world.constants, state, action)
        observe(world.constants, state, x)
        standardise(world.space, x, x)
        return reward * world.scale + world.shift, over

    return step_model


# ---------------------------------------------------------------------------------------------------------------------
# Worlds: what an agent learns in


class CompiledWorld:
    """A compiled system that an agent learns in, with the random stream of its starts."""

    compiled = True

    def __init__(
        self,
        constants: Any,
        space: Space,
        seed: int,
        raw_first: bool = False,
        scale: float = 1.0,
        shift: float = 0.0,
    ):
        self.model = Model(constants, space, raw_first, scale, shift)
        self.between_steps: Any = None  # an interpreted world calls it; machine code cannot
        self._generator = make_generator(seed)

    @property
    def system(self) -> System:
        """What the package knows of the system."""
        return REGISTRY[self.kind]

    @property
    def kind(self) -> type:
        """The class of the system's constants, by which the compiler finds its functions."""
        return type(self.model.constants)

    def call(self, function: Callable, *arguments: Any) -> Any:
        """Run a loop as machine code; its first argument is the model."""
        return machine_code(function, self.kind)(self.model, *arguments)

    def starts(self, episodes: int) -> np.ndarray:
        """Draw the starts of the next episodes, one row per episode."""
        return self.draw(self._generator, episodes)

    def draw(self, rng: np.random.Generator, episodes: int) -> np.ndarray:
        """Draw starts with a generator of the caller's."""
        return self.system.draw_starts(self.model.constants, rng, episodes)

    @property
    def stream(self) -> Any:
        """The state of the random stream."""
        return self._generator.bit_generator.state

    @stream.setter
    def stream(self, state: Any) -> None:
        self._generator.bit_generator.state = state


def compiled_world(env: gym.Env, space: Space, seed: int = 0, raw_first: bool = False) -> CompiledWorld | None:
    """Return the compiled twin of an environment, with its physical constants, or None if it has none."""
    system = twin_of(env)
    if system is None or opaque_wrapper(env, system) is not None:
        return None
    inner = env.unwrapped
    if any(callable(getattr(type(inner), name, None)) for name in vars(inner)):
        return None  # this object has a method of its own in place of its class's
    constants = system.describe(env)
    if constants is None:
        return None
    check_shapes(system, constants, env)
    scaled = [wrapper for wrapper in wrappers_of(env) if type(wrapper) is ScaleReward]
    scale, shift = (scaled[0].scale, scaled[0].shift) if scaled else (1.0, 0.0)
    return CompiledWorld(constants, space, seed, raw_first, scale, shift)


def check_shapes(system: System, constants: Any, env: gym.Env) -> None:
    """Say if the functions of a system do not fit together: machine code would read and write beyond its arrays."""
    if len(system.observed) != env.observation_space.shape[0]:
        raise ValueError(
            f"{system.name} names {len(system.observed)} observed variables, and its environment shows "
            f"{env.observation_space.shape[0]}"
        )
    (start,) = system.draw_starts(constants, np.random.default_rng(0), 1)
    state, observation = blank_state(constants), np.zeros(len(system.observed))
    try:
        system.begin(constants, start, state)
        system.observe(constants, state, observation)
    except TypeError as error:
        raise TypeError(
            f"{system.name} needs begin(constants, start, state) and observe(constants, state, observation): {error}"
        ) from error
    except IndexError as error:
        raise ValueError(
            f"{system.name} does not fit together: draw_starts gives {np.size(start)} numbers for an episode, the "
            f"state has {len(state)} and the observation {len(observation)}, and begin or observe uses more ({error})"
        ) from error


def twin_of(env: gym.Env) -> System | None:
    """Return the system that an environment's innermost class has a compiled twin in."""
    return next((one for one in REGISTRY.values() if type(env.unwrapped) in one.originals), None)


def wrappers_of(env: gym.Env) -> Iterator[gym.Wrapper]:
    """Yield an environment's wrappers, the outermost first."""
    while isinstance(env, gym.Wrapper):
        yield env
        env = env.env


def opaque_wrapper(env: gym.Env, system: System) -> type[gym.Wrapper] | None:
    """Return the class of the outermost wrapper that compiled code cannot look through; a second scale is one, too."""
    scaled = False
    for wrapper in wrappers_of(env):
        known = type(wrapper) in (*TRANSPARENT, *system.wrappers) or (type(wrapper) is ScaleReward and not scaled)
        if not known:
            return type(wrapper)
        scaled = scaled or type(wrapper) is ScaleReward
    return None


@functools.cache
def say_interpreted(system: str, reason: str) -> None:
    """Say, once, why an environment of a registered system does not run as machine code."""
    log.warning("%s runs interpreted, hundreds of times slower than compiled: %s", system, reason)


def explain_interpreted(env: gym.Env) -> None:
    """Say why an environment that could run compiled does not, if it could."""
    if (system := twin_of(env)) is not None:
        wrapper = opaque_wrapper(env, system)
        reason = "this variant has no compiled twin" if wrapper is None else f"its wrapper {wrapper.__name__} hides it"
        hint = "; spaql.systems.ScaleReward does not" if wrapper is gym.wrappers.TransformReward else ""
        say_interpreted(system.name, reason + hint)


from spaql.systems import (  # noqa: E402  (they register themselves)
    acrobot,  # noqa: F401
    cartpole,  # noqa: F401
    mountain_car,  # noqa: F401
    mountain_car_continuous,  # noqa: F401
    pendulum,  # noqa: F401
)
