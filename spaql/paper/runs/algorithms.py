"""The algorithms of the studies, by name.

Adding one takes a module with a function `compute(job) -> Record` and a row here; `spaql.paper.labels.STYLES` says how
its lines look.
"""

import importlib
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS, Random
from spaql.agent import Agent
from spaql.paper.runs import network_settings
from spaql.paper.runs.job import BY_EPISODES, Job, Record, seed_of_group, seeds
from spaql.paper.runs.repaired_settings import REPAIRED
from spaql.systems import make_env, system_of


def any_system(algorithm: str, system: str, parameters: Mapping[str, Any]) -> None:
    """Accept every system."""


def check_reference(algorithm: str, system: str, parameters: Mapping[str, Any]) -> None:
    """Raise an error if there is no state for SPAQL-TS to steer to."""
    known = system_of(make_env(system))
    if "reference" not in parameters and (known is None or known.reference is None):
        raise ValueError(f"{algorithm} needs a reference state, and {system} has none: give reference=[...]")


class Algorithm(NamedTuple):
    """What the runs know about an algorithm."""

    module: str = "spaql.paper.runs.training"  # has `compute(job) -> Record`; imported when it is first needed
    agent: Callable[..., Agent] | None = None  # the class, for the agents of this package
    settings: Mapping[str, Any] = {}  # parameters of that class
    xi: bool = False  # whether it has a ξ
    family: str = "spaql"  # which entry of `provenance.NUMERICS` is the version of its numbers
    compiled: bool = True  # runs as machine code on compiled systems, so that threads suffice
    needs: tuple[str, ...] = ()  # packages that it cannot be computed without
    seconds: float = 0.0  # of one iteration, where that is long
    check: Callable[[str, str, Mapping[str, Any]], None] = any_system  # raises ValueError if it cannot run on a system
    chooses: bool = False  # its rollouts choose the agent that it keeps, so that their samples count
    before: bool = False  # its rewards are those of the policy before an iteration's update
    by_samples: bool = False  # a row of its history is an evaluation after so many samples, not an iteration


NETWORK = Algorithm(
    "spaql.paper.runs.sb3",
    family="trpo",
    compiled=False,
    needs=("torch", "sb3_contrib"),
    check=network_settings.check,
    by_samples=True,
)
TRPO = NETWORK._replace(by_samples=False, before=True)

TILES = ("Tiles, replayed", "Tiles, slower")
SAME = "Tiles, same numbers"  # as SPAQL-R has: what is left of it without cells, no choice of the search
REPLAYED = (*TILES, "Grid, replayed", SAME)  # SPAQL-R's recipe on another representation
SARSA = ("Sarsa(λ)", "Sarsa(λ), slower")
TEXTBOOK = ("By hand", "Random linear", *SARSA, *TILES, "Grid, replayed", "Fitted Q")
BASELINE = Algorithm("spaql.paper.baselines.compute", family="textbook", by_samples=True)

ALGORITHMS: dict[str, Algorithm] = {
    "Random": Algorithm(agent=Random),
    "AQL": Algorithm(agent=AQL, xi=True),
    "SPAQL": Algorithm(agent=SPAQL, xi=True, chooses=True),
    "SPAQL-TS": Algorithm(agent=SPAQLTS, xi=True, chooses=True, check=check_reference),
    **{
        name: Algorithm(agent=SPAQLR, settings=changed, family="repaired", by_samples=True)
        for name, changed in REPAIRED.items()
    },
    "TRPO": TRPO._replace(seconds=0.9),
    "TRPO tuned": TRPO._replace(seconds=3.9),
    **dict.fromkeys(("SAC", "DQN", "PPO"), NETWORK),
    "Limit": Algorithm("spaql.paper.baselines.limit", family="textbook"),
    **dict.fromkeys(TEXTBOOK, BASELINE),
    **dict.fromkeys(SARSA, BASELINE._replace(family="sarsa")),
    **dict.fromkeys(REPLAYED, BASELINE._replace(family="replayed")),
    "Fitted Q": BASELINE._replace(family="fitted", compiled=False),
}


def algorithm_called(name: str) -> Algorithm:
    """Return the row of an algorithm, or say which there are."""
    if name not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(map(repr, ALGORITHMS))}, not {name!r}")
    return ALGORITHMS[name]


def full_name(name: str) -> str:
    """Return the name of an algorithm in the studies, also for that of its class: SPAQL-R for SPAQLR."""
    return {each.replace("-", ""): each for each in ("SPAQL-R", "SPAQL-TS")}.get(name, name)


def make_agent(algorithm: str, system: str, xi: float, **parameters: Any) -> Agent:
    """Return an untrained agent of an algorithm of this package; some have no ξ."""
    row = algorithm_called(algorithm)
    if row.agent is None:
        known = ", ".join(repr(name) for name, row in ALGORITHMS.items() if row.agent)
        raise ValueError(f"algorithm must be one of {known}, not {algorithm!r}")
    return row.agent(system, **{"xi": xi} if row.xi else {}, **{**row.settings, **parameters})


def untrained(job: Job) -> Agent:
    """Return the agent of a job before it learns."""
    shared = seed_of_group(job) if job.starts == "shared" else None
    return make_agent(
        job.algorithm, job.system, job.xi, rules=job.rules, seed=seeds(job)[0], env_seed=shared, **dict(job.parameters)
    )


def by_samples(job: Job) -> bool:
    """Return whether a row of an agent's history is an evaluation after so many samples, not an iteration."""
    return job.looks > 0 or (ALGORITHMS[job.algorithm].by_samples and job.looks != BY_EPISODES)


def compute(job: Job) -> Record:
    """Train and evaluate the agent of a job."""
    module = importlib.import_module(algorithm_called(job.algorithm).module)
    before = time.perf_counter()
    return module.compute(job)._replace(wall=time.perf_counter() - before)
