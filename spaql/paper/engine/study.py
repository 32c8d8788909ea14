"""What is run: every study as a function that returns its agents, in one registry.

The defaults of a function's parameters are the published run; `study("long", agents=5)` changes what is given and
nothing else.  A new study is a function with `@declare` and a file of the same name in `results/`.
"""

import dataclasses
import functools
import importlib
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from spaql.checks import check_integer, check_number
from spaql.paper.baselines.limit import GRIDS
from spaql.paper.baselines.settings import ZOO
from spaql.paper.engine.algorithms import LEARNERS, algorithm_called
from spaql.paper.engine.job import FRESH, SEED, Job, frozen
from spaql.rules import RULES, Rules, check_rules
from spaql.systems import make_env


class Study(NamedTuple):
    """The agents of a study as a function of its parameters, and which lists are published with them."""

    title: str
    jobs: Callable[..., list[Job]]
    lists: tuple[str, ...]  # see `store.LISTS`


CURVES = ("curve_rewards", "curve_arms", "curve_steps", "curve_evaluation_steps")
STUDIES: dict[str, Study] = {}


def declare(name: str, title: str, lists: Iterable[str] = ()) -> Callable:
    """Return a decorator that adds a function to the studies."""

    def add(jobs: Callable[..., list[Job]]) -> Callable[..., list[Job]]:
        STUDIES[name] = Study(title, jobs, tuple(lists))
        return jobs

    return add


def study(name: str, **changed: Any) -> list[Job]:
    """Return the agents of a study: the published ones, or those with something changed.

    Examples
    --------
    >>> len(study("long", systems=["CartPole-v0"], agents=5))
    20
    """
    known = parameters_of(name)
    if unknown := changed.keys() - known.keys():
        raise ValueError(f"study {name!r} has no parameter {', '.join(sorted(unknown))}: it has {', '.join(known)}")
    jobs = STUDIES[name].jobs(**known | changed) if changed else published(name)
    return [dataclasses.replace(job, study=name) for job in dict.fromkeys(jobs)]


def parameters_of(name: str) -> dict[str, Any]:
    """Return the parameters of a study by name, as they are in the published run."""
    if name not in STUDIES:
        raise ValueError(f"study must be one of {', '.join(STUDIES)}, not {name!r}")
    return {key: value.default for key, value in inspect.signature(STUDIES[name].jobs).parameters.items()}


@functools.cache
def published(name: str) -> tuple[Job, ...]:
    """Return the published agents of a study."""
    return tuple(STUDIES[name].jobs(**parameters_of(name)))


def is_published(jobs: Iterable[Job]) -> bool:
    """Return whether these are whole groups of published agents, study by study."""
    by_study: dict[str, set[Job]] = {}
    for job in jobs:
        by_study.setdefault(job.study, set()).add(job)
    for name, mine in by_study.items():
        groups = {job.group() for job in mine}
        if name not in STUDIES or mine != {job for job in published(name) if job.group() in groups}:
            return False
    return True


def make_jobs(
    algorithm: str,
    system: str,
    xi: float = 0.0,
    *,
    agents: int,
    iterations: int,
    evaluations: int,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
    starts: str = "independent",
    **parameters: Any,
) -> list[Job]:
    """Return the agents of one algorithm on one system, none if `agents` is 0; `parameters` are the algorithm's."""
    count = check_integer("agents", agents, at_least=0)
    algorithm_called(algorithm)
    make_env(system)
    job = Job(
        algorithm,
        system,
        check_number("xi", xi, at_least=0.0),
        check_integer("iterations", iterations),
        check_integer("evaluations", evaluations),
        check_integer("seed", seed, at_least=0, at_most=2**63 - 1),
        0,
        check_rules(rules),
        check_integer("fresh", fresh),
        starts,
        frozen(parameters),
    )
    return [dataclasses.replace(job, agent=agent) for agent in range(count)]


# ---------------------------------------------------------------------------------------------------------------------
# What the paper ran

XIS = (0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160)

# The ξ and N of the long runs.  The ξ are the released program's: the text does not print them (see long-xi in
# deviations.toml).  The discrete Pendulum gets Pendulum's.
LONG_XI: dict[str, dict[str, float]] = {
    "Pendulum-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
    "spaql/PendulumDiscrete-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
    "CartPole-v0": {"AQL": 120, "SPAQL": 20, "SPAQL-TS": 20},
}
LONG_N = {"Pendulum-v1": 20, "spaql/PendulumDiscrete-v1": 20, "CartPole-v0": 100}
LONG_SYSTEMS = tuple(LONG_XI)
BOTH = ("Pendulum-v1", "CartPole-v0")


@declare("xi", "effect of ξ")
def xi_jobs(
    systems: Iterable[str] = ("Pendulum-v1", "spaql/PendulumScaled-v1", "CartPole-v0"),
    algorithms: Iterable[str] = ("Random", *LEARNERS),
    xis: Iterable[float] = XIS,
    agents: int = 20,
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
) -> list[Job]:
    """Return every learner with every ξ, beside Random."""
    size: dict[str, Any] = {"agents": agents, "iterations": iterations, "evaluations": evaluations}
    size |= {"seed": seed, "rules": rules, "fresh": fresh}
    return [
        job
        for system, name in itertools.product(systems, algorithms)
        for xi in (xis if name in LEARNERS else [0])
        for job in make_jobs(name, system, xi, **size)
    ]


@declare("long", "long runs", (*CURVES, "fresh_rewards"))
def long_jobs(
    systems: Iterable[str] = LONG_SYSTEMS,
    algorithms: Iterable[str] = ("Random", *LEARNERS),
    xis: Mapping[str, Mapping[str, float]] = LONG_XI,
    agents: int = 20,
    iterations: int = 2000,
    evaluations: Mapping[str, int] = LONG_N,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
) -> list[Job]:
    """Return every learner with one ξ for each system, beside Random."""
    size: dict[str, Any] = {"agents": agents, "iterations": iterations, "seed": seed, "rules": rules, "fresh": fresh}
    return [
        job
        for system, name in itertools.product(systems, algorithms)
        for job in make_jobs(name, system, xis[system].get(name, 0), evaluations=evaluations[system], **size)
    ]


@declare("trpo", "TRPO", (*CURVES, "fresh_rewards"))
def trpo_jobs(
    systems: Iterable[str] = BOTH,
    algorithms: Iterable[str] = ("TRPO", "TRPO tuned"),
    agents: int = 20,
    iterations: int = 100,  # of 4,000 samples; N does not apply
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the TRPO baselines."""
    size: dict[str, Any] = {"agents": agents, "iterations": iterations, "evaluations": 1, "seed": seed, "fresh": fresh}
    return [job for system, name in itertools.product(systems, algorithms) for job in make_jobs(name, system, **size)]


# ---------------------------------------------------------------------------------------------------------------------
# The long runs with something changed

# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {name: RULES["paper"]._replace(**{name: getattr(RULES["released"], name)}) for name in Rules._fields} | RULES

# The rules that an algorithm has no use for.
UNUSED: dict[str, set[str]] = {
    "AQL": {"distance", "heating", "reset", "normalisation"},
    "SPAQL": {"distance"},
    "SPAQL-TS": set(),
}


class Part(NamedTuple):
    """Long runs of some learners with some changes, by their names in `SWITCHES`."""

    systems: tuple[str, ...]
    changes: tuple[str, ...]
    learners: tuple[str, ...] = LEARNERS
    xi: float | None = None  # the long runs' if not given; N and K are the study's
    evaluations: int | None = None
    iterations: int | None = None


ABLATION = (  # each rule alone, then all; with another N; and the ξ study's 0 on CartPole
    Part(BOTH, (*Rules._fields, "released")),
    Part(("CartPole-v0",), ("ties", "released"), xi=0, iterations=100, evaluations=20),
    Part(("CartPole-v0",), ("released",), evaluations=20),
    Part(("CartPole-v0",), ("paper",), ("SPAQL", "SPAQL-TS"), evaluations=20),
    Part(("CartPole-v0",), ("paper",), ("SPAQL",), evaluations=5),
    Part(("Pendulum-v1",), ("paper",), ("SPAQL",), evaluations=5),
    Part(("Pendulum-v1",), ("paper",), ("SPAQL",), evaluations=100),
    Part(("spaql/Pendulum-v0",), ("released",)),
)
LIKE = {"spaql/Pendulum-v0": "Pendulum-v1"}  # a system that the long runs lack, and the one whose ξ and N it gets


@declare("ablation", "ablation", ("curve_rewards",))
def ablation_jobs(agents: int = 20, iterations: int = 2000, seed: int = SEED, fresh: int = FRESH) -> list[Job]:
    """Return the long runs with other rules or another N."""
    jobs = []
    for part in ABLATION:
        for system, name, change in itertools.product(part.systems, part.learners, part.changes):
            if change not in UNUSED[name]:
                long = LIKE.get(system, system)
                jobs += make_jobs(
                    name,
                    system,
                    LONG_XI[long][name] if part.xi is None else part.xi,
                    agents=agents,
                    iterations=min(part.iterations or iterations, iterations),
                    evaluations=part.evaluations or LONG_N[long],
                    seed=seed,
                    rules=SWITCHES[change],
                    fresh=fresh,
                )
    return jobs


@declare("random", "Random's row", ("curve_rewards",))
def random_jobs(
    agents: int = 20, iterations: int = 300, evaluations: int = 20, seed: int = SEED, fresh: int = FRESH
) -> list[Job]:
    """Return Random on Pendulum with torques both ways and one way, starts independent and shared.

    Each iteration is one more replication of the paper's row.
    """
    size = {"agents": agents, "iterations": iterations, "evaluations": evaluations, "seed": seed, "fresh": fresh}
    return [
        job
        for system in ("Pendulum-v1", "spaql/PendulumOneWay-v1")
        for starts in ("independent", "shared")
        for job in make_jobs("Random", system, starts=starts, **size)
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Readings of the paper's experiment


@dataclasses.dataclass(frozen=True)
class Reading:
    """One way to read what the paper ran on Pendulum; the defaults are the text's.

    The authors' released program differs from the text in some of these, and does not settle others: with actions given
    as plain numbers its pendulum would have got half the torque.
    """

    torque: int = 2  # the greatest that reaches the pendulum, in Nm
    starts: str = "independent"  # or "shared" by all agents of a group
    rules: str = "paper"
    dynamics: str = "v1"  # of Gymnasium's Pendulum; the program's was v0
    random: str = "both ways"  # or "one way": what Random's torques are drawn from, [0, 2] Nm in the program

    def system(self, kind: str) -> str:
        """Return the id of a kind of pendulum, as "Pendulum" or "PendulumDiscrete", in this reading."""
        name = f"{kind}{'Half' if self.torque == 1 else ''}-{self.dynamics}"
        return name if name in gym.registry else f"spaql/{name}"

    def random_system(self, kind: str) -> str:
        """Return the id of the pendulum that Random has in this reading: its torques are never halved."""
        way = "OneWay" if self.random == "one way" else ""
        return dataclasses.replace(self, torque=2).system(f"{kind}{way}")


# Random's row is a question of its own, which its mean and its interval answer (chapter 06): all readings but the
# text's have the program's Random.
READINGS = {
    name: dataclasses.replace(reading, random="one way")
    for name, reading in {
        "torque": Reading(torque=1),
        "torque, starts": Reading(torque=1, starts="shared"),
        "torque, starts, rules": Reading(torque=1, starts="shared", rules="released"),
        "torque, starts, dynamics": Reading(torque=1, starts="shared", dynamics="v0"),
        "torque, rules": Reading(torque=1, rules="released"),
        "all": Reading(torque=1, starts="shared", rules="released", dynamics="v0"),
        "starts": Reading(starts="shared"),
        "torque, rules, dynamics": Reading(torque=1, rules="released", dynamics="v0"),
        "all but torque": Reading(starts="shared", rules="released", dynamics="v0"),
        "rules": Reading(rules="released"),
        "rules, dynamics": Reading(rules="released", dynamics="v0"),
        "dynamics": Reading(dynamics="v0"),
        "torque, dynamics": Reading(torque=1, dynamics="v0"),
    }.items()
}

# The kinds of pendulum, and who is run on each: those that the paper has numbers of.
KINDS = {"Pendulum": ("Random", *LEARNERS), "PendulumDiscrete": ("SPAQL", "SPAQL-TS")}
XI_KINDS = ("Pendulum", "PendulumScaled")  # of the study of ξ
XI_READINGS = ("torque, starts, rules", "torque, starts", "all", "torque, rules")  # of which it is run, too


@declare("readings", "readings", ("curve_rewards",))
def readings_jobs(
    agents: int = 20, iterations: int = 2000, roots: int = 2, seed: int = SEED, fresh: int = FRESH
) -> list[Job]:
    """Return the long runs on Pendulum, and its study of ξ, under readings, but for those that the ablation has."""
    jobs = []
    systems = [Reading().system(kind) for kind in XI_KINDS]
    for name, reading in READINGS.items():
        jobs += reading_jobs(reading, agents, iterations, roots=roots, seed=seed, fresh=fresh)
        if name in XI_READINGS:
            text = xi_jobs(systems, agents=agents, iterations=min(iterations, 100), seed=seed, fresh=fresh)
            jobs += [under_reading(job, reading, seed) for job in text]
    known = set(published("ablation"))
    return [job for job in dict.fromkeys(jobs) if job not in known]


def reading_jobs(
    reading: Reading,
    agents: int = 20,
    iterations: int = 2000,
    evaluations: int = 20,
    roots: int = 2,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the long runs under a reading; `roots` says with how many root seeds where starts are shared.

    Several show the luck of one sequence of starts.
    """
    text = []
    for kind, algorithms in KINDS.items():
        system = Reading().system(kind)
        text += long_jobs([system], algorithms, LONG_XI, agents, iterations, {system: evaluations}, seed, fresh=fresh)
    several = range(seed, seed + (roots if reading.starts == "shared" else 1))
    return [under_reading(job, reading, root) for root in several for job in text]


def under_reading(job: Job, reading: Reading, root: int) -> Job:
    """Return the agent that stands under a reading, with a root seed, for one of the text's on a pendulum."""
    if reading == Reading():
        return job
    kind = job.system.removeprefix("spaql/").removesuffix("-v1")
    learns = job.algorithm in LEARNERS
    return dataclasses.replace(
        job,
        system=reading.system(kind) if learns else reading.random_system(kind),
        rules=RULES[reading.rules if learns else "paper"],  # which Random has no use for
        starts=reading.starts,
        seed=root,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Six systems.  An iteration is a thousand samples, after which the policy plays `evaluations` fresh episodes.

SIX = (*BOTH, "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")

LIMITED = ("Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")  # CartPole's is its time limit
CONTINUOUS = ("Pendulum-v1", "MountainCarContinuous-v0")


@declare("six", "six systems", CURVES)
def six_jobs(
    systems: Iterable[str] = SIX,
    agents: int = 100,
    others: int = 20,  # agents of Sarsa(λ) and of Random, which learns nothing
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the learners of tiles and cells, beside Random."""
    size = {"evaluations": evaluations, "seed": seed, "fresh": fresh}
    jobs = []
    for system in systems:
        for name in ("TileQ", "SPAQL-R"):
            jobs += make_jobs(name, system, agents=agents, iterations=iterations, **size)
        jobs += make_jobs("Sarsa(λ)", system, agents=others, iterations=iterations, **size | {"evaluations": 100})
        jobs += make_jobs("Random", system, agents=others, iterations=1, **size)
    return jobs


@declare("networks", "SAC, DQN and PPO", CURVES)
def network_jobs(
    systems: Iterable[str] = SIX,
    agents: Mapping[str, int] = {"SAC": 5, "DQN": 10, "PPO": 10},
    paper_agents: int = 20,  # on the paper's systems
    iterations: int = 100,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return SAC, DQN and PPO for as many samples as rl-baselines3-zoo gives them, but at most so many thousand."""
    jobs = []
    for system in systems:
        own = system in BOTH
        for name in ("SAC", "DQN", "PPO"):
            if samples := ZOO.get(system, {}).get(name, {}).get("samples"):
                jobs += make_jobs(
                    name,
                    system,
                    agents=paper_agents if own else agents[name],
                    iterations=min(samples // 1000, iterations),
                    evaluations=100 if own else 20,
                    seed=seed,
                    fresh=fresh,
                )
    return jobs


@declare("limit", "the limit")
def limit_jobs(systems: Iterable[str] = LIMITED, seed: int = SEED, fresh: int = 10_000) -> list[Job]:
    """Return dynamic programming on each grid, on half of it, and with two actions where they are continuous.

    A policy that looks several steps ahead plays fewer episodes.
    """
    jobs = []
    for system in systems:
        grid = GRIDS[system]
        half = tuple((count + 1) // 2 for count in grid["nodes"])
        changes: list[dict[str, Any]] = [{}, {"nodes": half}, *([{"actions": 2}] if system in CONTINUOUS else [])]
        size = {"agents": 1, "iterations": 1, "evaluations": 1, "seed": seed}
        episodes = min(fresh, FRESH) if "depth" in grid else fresh
        jobs += [job for change in changes for job in make_jobs("Limit", system, fresh=episodes, **size, **change)]
    return jobs


# Studies that one chapter has stand in its module.
for _chapter in ("dimensions", "ladder", "learned", "systems"):
    importlib.import_module(f"spaql.paper.chapters.{_chapter}")
