"""The agents of a grid: every algorithm on every system with every ξ, checked before anything is computed."""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium as gym

from spaql.checks import check_integer, check_number
from spaql.paper.runs.algorithms import ALGORITHMS, algorithm_called, full_name, make_agent
from spaql.paper.runs.job import BY_EPISODES, FRESH, SEED, Job, frozen
from spaql.parameters import Shared
from spaql.rules import Rules, check_rules
from spaql.systems import factory_called, make_env

LEARNERS = tuple(name for name, row in ALGORITHMS.items() if row.xi)


def make_jobs(
    algorithms: Iterable[str],
    systems: Iterable[str | Callable[[], gym.Env]],
    xis: Iterable[float],
    agents: int,
    iterations: int,
    evaluations: int,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
    record: bool = False,
    starts: str = "independent",
    looks: int = 0,
    episodes: bool = False,
    **parameters: Any,
) -> list[Job]:
    """Return the agents of a grid: every algorithm on every system with every ξ, those without ξ once.

    Other `parameters` of agents go to every algorithm that has them.
    """
    for name, given in (("algorithms", algorithms), ("systems", systems), ("xis", xis)):
        if isinstance(given, str):
            raise ValueError(f"{name} must be a list, not the text {given!r}")
    check_integer("agents", agents)
    seed = check_integer("seed", seed, at_least=0, at_most=2**63 - 1)  # as the files hold it
    iterations, evaluations = check_integer("iterations", iterations), check_integer("evaluations", evaluations)
    fresh, looks = check_integer("fresh", fresh), check_integer("looks", looks, at_least=0)
    if starts not in ("independent", "shared"):
        raise ValueError(f"starts must be 'independent' or 'shared', not {starts!r}")
    rules, xis, algorithms = check_rules(rules), list(xis), list(map(full_name, algorithms))
    if unknown := set(parameters) - {name for algorithm in algorithms for name in parameters_of(algorithm)}:
        raise ValueError(f"{' and '.join(algorithms)} have no parameter {' or '.join(sorted(unknown))}")
    jobs = []
    for algorithm, system in itertools.product(algorithms, map(name_of, systems)):
        others = frozen({name: parameters[name] for name in parameters_of(algorithm) if name in parameters})
        check_pair(algorithm, system, others)
        row = ALGORITHMS[algorithm]
        if row.xi and not xis:
            raise ValueError(f"{algorithm} needs at least one ξ: give xis, as [0.4, 4, 40]")
        looked = BY_EPISODES if episodes and row.by_samples and row.agent is not None else looks
        for xi, agent in itertools.product(xis if row.xi else [0.0], range(agents)):
            group = (algorithm, system, check_number("xi", xi, at_least=0.0), iterations, evaluations, seed)
            jobs.append(Job(*group, agent, rules, fresh, bool(record), starts, others, looked))
    if not jobs:
        raise ValueError("there is nothing to run: give at least one algorithm and one system")
    return list(dict.fromkeys(jobs))


@functools.cache
def parameters_of(algorithm: str) -> tuple[str, ...]:
    """Return the names of the parameters of an algorithm that a grid does not set by itself."""
    row = algorithm_called(algorithm)
    if row.agent is None:
        return ()
    own = inspect.signature(row.agent).parameters
    return tuple(name for name in (*own, *Shared.__annotations__) if name not in OF_THE_GRID)


OF_THE_GRID = ("env", "shared", "xi", "seed", "env_seed", "rules")


def name_of(system: str | Callable[[], gym.Env]) -> str:
    """Return the id of a system, or the name "module:function" of a function that makes it."""
    if isinstance(system, str):
        return system
    name = f"{getattr(system, '__module__', '')}:{getattr(system, '__qualname__', '')}"
    if name.startswith("__main__:") or not callable(system) or factory_called(name) is not system:
        raise ValueError(
            f"a system of a grid must be an id, 'module:id', or a function of a module, which other processes import, "
            f"not {system!r}: put the function into a file of its own"
        )
    return name


@functools.cache
def check_pair(algorithm: str, system: str, parameters: tuple[tuple[str, Any], ...] = ()) -> None:
    """Raise an error here and now if an algorithm is unknown or cannot run on a system."""
    row = algorithm_called(algorithm)
    make_env(system)
    row.check(algorithm, system, dict(parameters))
    if parameters:
        make_agent(algorithm, system, 0.0, **dict(parameters))
