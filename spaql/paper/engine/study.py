"""What is run: every study as a function that returns its agents, in one registry.

The parameters of a study and their defaults, the published run, stand in its declaration and in its function's
signature; `study("long", agents=5)` changes what is given and nothing else.  A new study is a function with `@declare`,
here or in a module of `paper/chapters` that the last lines import; `spaql reproduce --study NAME` computes it and
writes its file in `results/`.
"""

import functools
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any, NamedTuple

import gymnasium as gym

from spaql.checks import check_integer, check_number
from spaql.paper.baselines.limit import GRIDS
from spaql.paper.baselines.settings import ZOO
from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.job import FRESH, SEED, Job, frozen
from spaql.rules import RULES, Rules, check_rules
from spaql.systems import make_env


class Study(NamedTuple):
    """The agents of a study as a function of its parameters, and which lists are published with them."""

    title: str
    jobs: Callable[..., list[Job]]
    lists: tuple[str, ...]  # see `store.LISTS`
    size: Mapping[str, Any] = {}  # parameters that its function hands on to `make_jobs`


CURVES = ("curve_rewards", "curve_arms", "curve_steps", "curve_evaluation_steps")
STUDIES: dict[str, Study] = {}


def declare(name, title, lists=(), **size):
    """Return a decorator that adds a function to the studies."""

    def add(jobs):
        STUDIES[name] = Study(title, jobs, tuple(lists), size)
        return jobs

    return add


def study(name: str, **changed: Any) -> list[Job]:
    """Return the agents of a study: the published ones, or those with something changed."""
    known = parameters_of(name)
    if unknown := changed.keys() - known.keys():
        raise ValueError(f"study {name!r} has no parameter {', '.join(sorted(unknown))}: it has {', '.join(known)}")
    jobs = STUDIES[name].jobs(**known | changed) if changed else published(name)
    return [replace(job, study=name) for job in dict.fromkeys(jobs)]


def parameters_of(name: str) -> dict[str, Any]:
    """Return the parameters of a study by name, as they are in the published run."""
    given = inspect.signature(STUDIES[name].jobs).parameters.values()
    return {one.name: one.default for one in given if one.kind != one.VAR_KEYWORD} | STUDIES[name].size


@functools.cache
def published(name: str) -> tuple[Job, ...]:
    """Return the published agents of a study."""
    return tuple(dict.fromkeys(STUDIES[name].jobs(**parameters_of(name))))


def is_published(jobs: Iterable[Job]) -> bool:
    """Return whether these are whole groups of published agents, study by study."""
    given = {(job.study, job) for job in jobs}
    groups = {(study, job.group()) for study, job in given}
    known = {(study, job) for study in {study for study, _ in given} for job in published(study)}
    return given == {(study, job) for study, job in known if (study, job.group()) in groups}


def make_jobs(
    algorithm, system, xi=0.0, *, agents, iterations, evaluations, seed=SEED, rules="paper", fresh=FRESH, **parameters
):
    """Return the agents of one algorithm on one system, none if `agents` is 0; `parameters` are the algorithm's."""
    make_env(system)  # so that an unknown one is refused now
    job = Job(
        algorithm,
        system,
        check_number("xi", xi, at_least=0.0),
        check_integer("iterations", iterations),
        check_integer("evaluations", evaluations),
        check_integer("seed", seed, at_least=0, at_most=2**63 - 1),
        agent=0,
        rules=check_rules(rules),
        fresh=check_integer("fresh", fresh),
        parameters=frozen(parameters),
    )
    return [replace(job, agent=agent) for agent in range(check_integer("agents", agents, at_least=0))]


# What the paper ran

XIS = (0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160)

# The ξ and N of the long runs.  The ξ are the released program's: the text does not print them (see long-xi in
# claims/deviations.toml).  The discrete Pendulum gets Pendulum's.  The ablation, the controls and the ladder have them,
# too, and chapters 2 to 4 repeat them as parameters.
LONG_XI: dict[str, dict[str, float]] = {
    "Pendulum-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
    "spaql/PendulumDiscrete-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
    "CartPole-v0": {"AQL": 120, "SPAQL": 20, "SPAQL-TS": 20},
}
LONG_N = {"Pendulum-v1": 20, "spaql/PendulumDiscrete-v1": 20, "CartPole-v0": 100}
BOTH = ("Pendulum-v1", "CartPole-v0")
ROOT: dict[str, Any] = {"seed": SEED, "fresh": FRESH}


@declare("xi", "effect of ξ", agents=20, iterations=100, evaluations=20, rules="paper", **ROOT)
def xi_jobs(
    systems=("Pendulum-v1", "spaql/PendulumScaled-v1", "CartPole-v0"), algorithms=("Random", *LEARNERS), xis=XIS, **size
):
    """Return every learner with every ξ, beside Random."""
    return [
        job
        for system, name in product(systems, algorithms)
        for xi in (xis if name in LEARNERS else [0])
        for job in make_jobs(name, system, xi, **size)
    ]


@declare("long", "long runs", (*CURVES, "fresh_rewards"), agents=20, iterations=2000, rules="paper", **ROOT)
def long_jobs(systems=tuple(LONG_XI), algorithms=("Random", *LEARNERS), xis=LONG_XI, evaluations=LONG_N, **size):
    """Return every learner with one ξ for each system, beside Random."""
    return [
        job
        for system, name in product(systems, algorithms)
        for job in make_jobs(name, system, xis[system].get(name, 0), evaluations=evaluations[system], **size)
    ]


# The iterations are of 4,000 samples; N does not apply.
@declare("trpo", "TRPO", (*CURVES, "fresh_rewards"), agents=20, iterations=100, evaluations=1, **ROOT)
def trpo_jobs(systems=BOTH, algorithms=("TRPO", "TRPO tuned"), **size):
    """Return the TRPO baselines."""
    return [job for system, name in product(systems, algorithms) for job in make_jobs(name, system, **size)]


# The long runs with something changed

# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {name: RULES["paper"]._replace(**{name: getattr(RULES["released"], name)}) for name in Rules._fields} | RULES

# The rules that an algorithm has no use for.
UNUSED: dict[str, set[str]] = {
    "AQL": {"distance", "heating", "reset", "normalisation"},
    "SPAQL": {"distance"},
    "SPAQL-TS": set(),
}


CARTPOLE, N_OF_XI = ("CartPole-v0",), {"evaluations": 20}  # the study of ξ has this N
ABLATION = (  # systems, learners, changes by their names in SWITCHES, and what else is not the long runs'
    (BOTH, LEARNERS, (*Rules._fields, "released"), {}),
    (CARTPOLE, LEARNERS, ("ties", "released"), {"xi": 0, "iterations": 100} | N_OF_XI),
    (CARTPOLE, LEARNERS, ("released",), N_OF_XI),
    (CARTPOLE, ("SPAQL", "SPAQL-TS"), ("paper",), N_OF_XI),
    (BOTH, ("SPAQL",), ("paper",), {"evaluations": 5}),
    (("Pendulum-v1",), ("SPAQL",), ("paper",), {"evaluations": 100}),
    (("spaql/Pendulum-v0",), LEARNERS, ("released",), {}),
)
LIKE = {"spaql/Pendulum-v0": "Pendulum-v1"}  # a system that the long runs lack, and the one whose ξ and N it gets


@declare("ablation", "the program's rules (chapter 6)", ("curve_rewards",), agents=20, **ROOT)
def ablation_jobs(iterations=2000, **size):
    """Return the long runs with other rules or another N."""
    jobs = []
    for systems, learners, changes, other in ABLATION:
        for system, name, change in product(systems, learners, changes):
            if change not in UNUSED[name]:
                like = LIKE.get(system, system)
                given = {"xi": LONG_XI[like][name], "evaluations": LONG_N[like], "iterations": iterations} | other
                given["iterations"] = min(given["iterations"], iterations)
                jobs += make_jobs(name, system, rules=SWITCHES[change], **given, **size)
    return jobs


@declare("random", "Random's row", ("curve_rewards",), agents=20, iterations=300, evaluations=20, **ROOT)
def random_jobs(**size):
    """Return Random on Pendulum with torques both ways and one way, starts independent and shared.

    Each iteration is one more replication of the paper's row.
    """
    systems, starts = ("Pendulum-v1", "spaql/PendulumOneWay-v1"), ("independent", "shared")
    return [
        replace(job, starts=how)
        for system, how in product(systems, starts)
        for job in make_jobs("Random", system, **size)
    ]


# Readings of the paper's experiment


@dataclass(frozen=True)
class Reading:
    """One way to read what the paper ran on Pendulum (chapter 11); the defaults are the text's."""

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
        return replace(self, torque=2).system(f"{kind}{'OneWay' if self.random == 'one way' else ''}")


CHANGES = {"torque": 1, "starts": "shared", "rules": "released", "dynamics": "v0"}
# Random's row is a question of its own, which its mean and its interval answer (chapter 06): all readings but the
# text's have the program's Random.
READINGS = {
    ", ".join(fields): Reading(random="one way", **{field: CHANGES[field] for field in fields})
    for count in range(1, len(CHANGES) + 1)
    for fields in combinations(CHANGES, count)
}

# The kinds of pendulum, and who is run on each: those that the paper has numbers of.
KINDS = {"Pendulum": ("Random", *LEARNERS), "PendulumDiscrete": ("SPAQL", "SPAQL-TS")}
XI_KINDS = ("Pendulum", "PendulumScaled")  # of the study of ξ
# The readings under which it is run, too.
XI_READINGS = ("torque, starts, rules", "torque, starts", "torque, starts, rules, dynamics", "torque, rules")


@declare("readings", "readings (chapter 11)", ("curve_rewards",))
def readings_jobs(agents=20, iterations=2000, roots=2, seed=SEED, fresh=FRESH):
    """Return the long runs on Pendulum, and its study of ξ, under readings, but for those that the ablation has."""
    size = {"agents": agents, "iterations": min(iterations, 100), "seed": seed, "fresh": fresh}
    of_xi = study("xi", systems=[Reading().system(kind) for kind in XI_KINDS], **size)
    jobs = []
    for name, reading in READINGS.items():
        jobs += reading_jobs(reading, agents, iterations, roots=roots, seed=seed, fresh=fresh)
        if name in XI_READINGS:
            jobs += [under_reading(job, reading, seed) for job in of_xi]
    known = set(published("ablation"))
    return [job for job in jobs if job not in known]


def reading_jobs(reading, agents=20, iterations=2000, evaluations=20, roots=2, seed=SEED, fresh=FRESH):
    """Return the long runs under a reading; `roots` says with how many root seeds where starts are shared.

    Several show the luck of one sequence of starts.
    """
    text = []
    for kind, algorithms in KINDS.items():
        system = Reading().system(kind)
        size = {"agents": agents, "iterations": iterations, "evaluations": {system: evaluations}, "fresh": fresh}
        text += study("long", systems=[system], algorithms=algorithms, seed=seed, **size)
    several = range(seed, seed + (roots if reading.starts == "shared" else 1))
    return [under_reading(job, reading, root) for root in several for job in text]


def under_reading(job: Job, reading: Reading, root: int) -> Job:
    """Return the agent that stands under a reading, with a root seed, for one of the text's on a pendulum."""
    if reading == Reading():
        return job
    kind = job.system.removeprefix("spaql/").removesuffix("-v1")
    same = {"starts": reading.starts, "seed": root}
    if job.algorithm == "Random":
        return replace(job, system=reading.random_system(kind), **same)
    return replace(job, system=reading.system(kind), rules=RULES[reading.rules], **same)


# Six systems.  An iteration is a thousand samples, after which the policy plays `evaluations` fresh episodes.

SIX = (*BOTH, "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")


@declare("six", "six systems", CURVES, **ROOT)
def six_jobs(systems=SIX, agents=100, others=20, iterations=100, evaluations=20, **size):
    """Return the learners of tiles and cells, beside fewer `others`: Sarsa(λ) and Random, which learns nothing."""
    size["evaluations"] = evaluations
    jobs = []
    for system in systems:
        for name in ("TileQ", "SPAQL-R"):
            jobs += make_jobs(name, system, agents=agents, iterations=iterations, **size)
        jobs += make_jobs("Sarsa(λ)", system, agents=others, iterations=iterations, **size | {"evaluations": 100})
        jobs += make_jobs("Random", system, agents=others, iterations=1, **size)
    return jobs


FEW = {"SAC": 5, "DQN": 10, "PPO": 10}  # agents on the systems that are not the paper's


@declare("networks", "SAC, DQN and PPO", CURVES, **ROOT)
def network_jobs(systems=SIX, agents=FEW, paper_agents=20, iterations=100, **size):
    """Return SAC, DQN and PPO for as many samples as rl-baselines3-zoo gives them, but at most so many thousand."""
    jobs = []
    for system, name in product(systems, FEW):
        if samples := ZOO.get(system, {}).get(name, {}).get("samples"):
            size["agents"], size["evaluations"] = (paper_agents, 100) if system in BOTH else (agents[name], 20)
            jobs += make_jobs(name, system, iterations=min(samples // 1000, iterations), **size)
    return jobs


LIMITED = ("Pendulum-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")  # CartPole's is its time limit
CONTINUOUS = ("Pendulum-v1", "MountainCarContinuous-v0")


@declare("limit", "the best possible return (chapter 10)", seed=SEED)
def limit_jobs(systems=LIMITED, fresh=10_000, **size):
    """Return dynamic programming on each grid, on half of it, and with two actions where they are continuous.

    A policy that looks several steps ahead plays fewer episodes.
    """
    size |= {"agents": 1, "iterations": 1, "evaluations": 1}
    jobs = []
    for system in systems:
        grid = GRIDS[system]
        half = tuple((count + 1) // 2 for count in grid["nodes"])
        episodes = min(fresh, FRESH) if "depth" in grid else fresh
        for change in ({}, {"nodes": half}, *([{"actions": 2}] if system in CONTINUOUS else [])):
            jobs += make_jobs("Limit", system, fresh=episodes, **size, **change)
    return jobs


# Studies that one chapter has stand in its module.
for _chapter in ("dimensions", "ladder", "learned", "systems"):
    importlib.import_module(f"spaql.paper.chapters.{_chapter}")
