"""The algorithms of the studies, by name.

A new one takes a module with a function `compute(job) -> Trained` and a row here; `style.STYLES` says how its lines
look.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, Random, TileQ
from spaql.agent import Agent
from spaql.paper.engine.job import Job, seed_of_group, seeds


class Algorithm(NamedTuple):
    """What the studies know about an algorithm."""

    agent: Callable[..., Agent] | None = None  # the class, for the agents of this package
    module: str = "spaql.paper.engine.training"  # has `compute(job) -> Trained`; imported when it is first needed
    settings: Mapping[str, Any] = {}  # parameters of that class
    xi: bool = False  # whether it has a ξ
    family: str = "spaql"  # which entry of `provenance.NUMERICS` is the version of its numbers
    compiled: bool = True  # runs as machine code on compiled systems, so that threads suffice
    needs: tuple[str, ...] = ()  # packages that it cannot be computed without
    minutes: float = 0.0  # of one agent, where that is long
    chooses: bool = False  # its rollouts choose the agent that it keeps, so that their samples count
    before: bool = False  # its rewards are those of the policy before an iteration's update
    by_samples: bool = False  # a row of its curve is an evaluation after a thousand samples, not an iteration


NETWORK = Algorithm(
    module="spaql.paper.baselines.networks", family="trpo", compiled=False, needs=("torch", "sb3_contrib"),
    by_samples=True, minutes=5.0,
)  # fmt: skip
BASELINE = Algorithm(by_samples=True, family="textbook")

ALGORITHMS: dict[str, Algorithm] = {
    "Random": Algorithm(Random),
    "AQL": Algorithm(AQL, xi=True),
    "SPAQL": Algorithm(SPAQL, xi=True, chooses=True),
    "SPAQL-TS": Algorithm(SPAQLTS, xi=True, chooses=True),
    "SPAQL-R": Algorithm(SPAQLR, family="repaired", by_samples=True),
    "TileQ": Algorithm(TileQ, family="repaired", by_samples=True),
    "TRPO": NETWORK._replace(by_samples=False, before=True, minutes=1.5),
    "TRPO tuned": NETWORK._replace(by_samples=False, before=True, minutes=6.5),
    **dict.fromkeys(("SAC", "DQN", "PPO"), NETWORK),
    "Limit": BASELINE._replace(module="spaql.paper.baselines.limit"),
    "Tree": Algorithm(module="spaql.paper.chapters.systems", family="repaired", by_samples=True),
    "To a level": Algorithm(module="spaql.paper.chapters.dimensions", family="repaired", by_samples=True),
    "Sarsa(λ)": BASELINE._replace(module="spaql.paper.baselines.sarsa", family="sarsa"),
}
LEARNERS = tuple(name for name, row in ALGORITHMS.items() if row.xi)


def algorithm_called(name: str) -> Algorithm:
    """Return the row of an algorithm, or say which there are."""
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, not {name!r}")
    return ALGORITHMS[name]


def untrained(job: Job) -> Agent:
    """Return the agent of a job before it learns."""
    row = algorithm_called(job.algorithm)
    if row.agent is None:
        raise ValueError(f"{job.algorithm} is no algorithm of this package: it has no agent")
    given: dict[str, Any] = {**row.settings, **dict(job.parameters), "seed": seeds(job)[0]}
    if row.xi:
        given["xi"] = job.xi
    if job.starts == "shared":
        given["env_seed"] = seed_of_group(job)
    if not row.by_samples:
        given["rules"] = job.rules
    if "control" in given:
        return importlib.import_module("spaql.paper.chapters.learned").CONTROLLED[job.algorithm](job.system, **given)
    return row.agent(job.system, **given)


def module_of(job: Job) -> Any:
    """Return the module that computes a job."""
    return importlib.import_module(algorithm_called(job.algorithm).module)
