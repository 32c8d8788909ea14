"""What the package knows of each system, and how a system is made known.

A system is one file: the constants of its dynamics (a named tuple), three short functions of them (`begin`, `step`,
`observe`), where episodes start, and what its variables are called.  `register` makes it known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.checks import check_name


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
        `choices(env)` returns the discrete actions in the action's unit; without it they have numbers and no unit.
    titles
        What the system's environments are called in the book, by id.
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
    action: Variable | tuple[Variable, ...]  # one for each number of an action
    size: int = 0
    choices: Callable[[gym.Env], tuple[float, ...]] | None = None
    titles: Mapping[str, str] = field(default_factory=dict)
    wrappers: tuple[type[gym.Wrapper], ...] = ()
    slopes: tuple[float, ...] | None = None
    reference: tuple[float, ...] | None = None
    angles: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    telling: tuple[int, int] = (0, 1)

    @property
    def actions(self) -> tuple[Variable, ...]:
        """The variables of an action."""
        return self.action if isinstance(self.action, tuple) else (self.action,)

    @property
    def numbers(self) -> int:
        """How many numbers the state has in compiled code."""
        return self.size or len(self.state)

    @property
    def functions(self) -> tuple[Callable, ...]:
        """What compiled code calls."""
        return self.begin, self.step, self.observe


REGISTRY: dict[type, System] = {}  # by the class of the constants


def register(system: System) -> System:
    """Make a system known: its environments then run compiled.

    Registering another system for the same environments replaces the first.  Each has a class of constants of its own:
    what is compiled for a class stays as it is.
    """
    same = REGISTRY.get(system.constants, system)
    if same.functions != system.functions or not set(same.originals) & set(system.originals):
        raise ValueError(f"{system.name} needs constants of a class of its own: {system.constants.__name__} is "
                         f"{same.name}'s, and machine code is made for it")  # fmt: skip
    for variable in (*system.state, *system.observed, *system.actions):
        check_name(f"a variable of {system.name}", variable.name)
    for known in list(REGISTRY.values()):
        if set(known.originals) & set(system.originals):
            del REGISTRY[known.constants]
    REGISTRY[system.constants] = system
    return system


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


def solved_at(env_id: str) -> float | None:
    """Return the mean return from which a task counts as solved, as Gymnasium's registry has it."""
    return gym.spec(env_id).reward_threshold
