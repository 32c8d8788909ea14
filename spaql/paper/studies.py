"""What is run: the paper's studies and the audit's, as data, and the agents they consist of."""

import dataclasses
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import gymnasium as gym

from spaql.agent import Shared
from spaql.checks import check_integer, check_number
from spaql.paper.runs import provenance
from spaql.paper.runs.job import ALGORITHMS, FRESH, Job, frozen, make_agent
from spaql.paper.runs.trpo_settings import settings_of
from spaql.rules import RULES, Rules, check_rules
from spaql.systems import compiled_world, episode_limit, factory_called, make_env, space_of, system_of

SEED = 2020  # the root seed of the paper's runs

LEARNERS = ("AQL", "SPAQL", "SPAQL-TS")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """Agents on several systems; `cells` says which algorithms run on a system, and with which ξ."""

    systems: tuple[str, ...]
    iterations: int  # K
    evaluations: Mapping[str, int]  # N of each system
    agents: int
    fresh: int = FRESH
    record: bool = True

    def cells(self, system: str) -> list[tuple[str, float]]:
        raise NotImplementedError


@dataclasses.dataclass(frozen=True, kw_only=True)
class XiStudy(Study):
    """Every learner with every ξ, beside Random."""

    xis: tuple[float, ...]

    def cells(self, system: str) -> list[tuple[str, float]]:
        return [("Random", 0), *itertools.product(LEARNERS, self.xis)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class LongRuns(Study):
    """Every learner with one ξ for each system, beside Random."""

    xis: Mapping[str, Mapping[str, float]]  # by system and learner

    def cells(self, system: str) -> list[tuple[str, float]]:
        return [("Random", 0), *self.xis[system].items()]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrpoRuns(Study):
    """TRPO, which has no ξ."""

    def cells(self, system: str) -> list[tuple[str, float]]:
        return [(algorithm, 0) for algorithm in provenance.TRPO]


@dataclasses.dataclass(frozen=True)
class Part:
    """Long runs with something changed: learners under each of some sets of rules (see `SWITCHES`)."""

    systems: tuple[str, ...]
    rules: tuple[str, ...]
    learners: tuple[str, ...] = LEARNERS
    xi: float | None = None  # the long runs' if not given, as N; K is the ablation's
    evaluations: int | None = None
    iterations: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ablation:
    """The long runs with other rules or another N, part by part."""

    parts: tuple[Part, ...]
    like: Mapping[str, str]  # a system that the long runs do not have, and the one of theirs whose ξ and N it gets
    iterations: int
    agents: int
    fresh: int = FRESH


# ---------------------------------------------------------------------------------------------------------------------
# What the paper ran

XI_STUDY = XiStudy(  # the effect of ξ
    systems=("Pendulum-v1", "spaql/PendulumScaled-v1", "CartPole-v0"),
    xis=(0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160),
    iterations=100,
    evaluations={"Pendulum-v1": 20, "spaql/PendulumScaled-v1": 20, "CartPole-v0": 20},
    agents=20,
    record=False,
)

# The ξ are the released program's: the text does not print them (see long-xi in deviations.toml).  The discrete
# Pendulum gets Pendulum's.
LONG_RUNS = LongRuns(
    systems=("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"),
    xis={
        "Pendulum-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
        "spaql/PendulumDiscrete-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
        "CartPole-v0": {"AQL": 120, "SPAQL": 20, "SPAQL-TS": 20},
    },
    iterations=2000,
    evaluations={"Pendulum-v1": 20, "spaql/PendulumDiscrete-v1": 20, "CartPole-v0": 100},
    agents=20,
)

TRPO_RUNS = TrpoRuns(  # an iteration of TRPO is 4,000 samples; N does not apply
    systems=("Pendulum-v1", "CartPole-v0"),
    iterations=100,
    evaluations={"Pendulum-v1": 1, "CartPole-v0": 1},
    agents=20,
)

# ---------------------------------------------------------------------------------------------------------------------
# What the audit adds

# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {
    name: RULES["paper"]._replace(**{name: released}) for name, released in RULES["released"]._asdict().items()
} | RULES

# The rules that an algorithm has no use for.
UNUSED: dict[str, set[str]] = {
    "AQL": {"distance", "heating", "reset", "normalisation"},
    "SPAQL": {"distance"},
    "SPAQL-TS": set(),
}

ABLATION = Ablation(  # each rule alone, then all; with another N; and the ξ study's 0 on CartPole
    parts=(
        Part(("Pendulum-v1", "CartPole-v0"), (*Rules._fields, "released")),
        Part(("CartPole-v0",), ("ties", "released"), xi=0, iterations=100, evaluations=20),
        Part(("CartPole-v0",), ("released",), evaluations=20),
        Part(("CartPole-v0",), ("paper",), ("SPAQL", "SPAQL-TS"), evaluations=20),
        Part(("CartPole-v0",), ("paper",), ("SPAQL",), evaluations=5),
        Part(("Pendulum-v1",), ("paper",), ("SPAQL",), evaluations=5),
        Part(("Pendulum-v1",), ("paper",), ("SPAQL",), evaluations=100),
        Part(("spaql/Pendulum-v0",), ("released",)),
    ),
    like={"spaql/Pendulum-v0": "Pendulum-v1"},
    iterations=2000,
    agents=20,
)


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

    def system(self, kind: str) -> str:
        """Return the id of a kind of pendulum, as "Pendulum" or "PendulumDiscrete", in this reading."""
        name = f"{kind}{'Half' if self.torque == 1 else ''}-{self.dynamics}"
        return name if name in gym.registry else f"spaql/{name}"


READINGS = {
    "torque": Reading(torque=1),
    "torque, starts": Reading(torque=1, starts="shared"),
    "torque, rules": Reading(torque=1, rules="released"),
    "all": Reading(torque=1, starts="shared", rules="released", dynamics="v0"),
    "starts": Reading(starts="shared"),
    "torque, rules, dynamics": Reading(torque=1, rules="released", dynamics="v0"),
    "all but torque": Reading(starts="shared", rules="released", dynamics="v0"),
    "rules": Reading(rules="released"),
    "dynamics": Reading(dynamics="v0"),
    "torque, dynamics": Reading(torque=1, dynamics="v0"),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingsStudy:
    """The long runs on Pendulum, and its study of ξ, under readings of the experiment."""

    readings: Mapping[str, Reading]
    kinds: Mapping[str, str]  # of pendulums, and the system of the long runs whose ξ and N they get
    xi_readings: tuple[str, ...]  # of which the study of ξ is run, too
    xi_kinds: tuple[str, ...]
    iterations: int
    xi_iterations: int
    agents: int
    roots: int  # how many root seeds where starts are shared, so that the luck of one sequence of starts shows
    fresh: int = FRESH


READINGS_STUDY = ReadingsStudy(
    readings=READINGS,
    kinds={"Pendulum": "Pendulum-v1", "PendulumDiscrete": "spaql/PendulumDiscrete-v1"},
    xi_readings=("torque", "torque, starts", "all"),
    xi_kinds=("Pendulum", "PendulumScaled"),
    iterations=2000,
    xi_iterations=100,
    agents=20,
    roots=3,
)

# ---------------------------------------------------------------------------------------------------------------------
# The same at smaller scales

SCALES: dict[str, dict[str, Study | Ablation | ReadingsStudy]] = {
    "paper": {
        "xi": XI_STUDY,
        "long": LONG_RUNS,
        "trpo": TRPO_RUNS,
        "ablation": ABLATION,
        "readings": READINGS_STUDY,
    },
    "quick": {
        "xi": dataclasses.replace(XI_STUDY, agents=10),
        "long": dataclasses.replace(LONG_RUNS, agents=10, iterations=1000),
        "trpo": dataclasses.replace(TRPO_RUNS, agents=2, iterations=5),
        "ablation": dataclasses.replace(ABLATION, agents=10, iterations=1000),
        "readings": dataclasses.replace(READINGS_STUDY, agents=10, iterations=1000, roots=1),
    },
    "smoke": {
        "xi": dataclasses.replace(XI_STUDY, agents=2, iterations=4, xis=(0, 4, 160), fresh=20),
        "long": dataclasses.replace(LONG_RUNS, agents=2, iterations=10, fresh=20),
        "trpo": dataclasses.replace(TRPO_RUNS, agents=2, iterations=1, fresh=20),
        "ablation": dataclasses.replace(ABLATION, agents=2, iterations=10, fresh=20),
        "readings": dataclasses.replace(READINGS_STUDY, agents=2, iterations=10, xi_iterations=4, roots=1, fresh=20),
    },
}


def scale_changes(study: str, scale: str) -> dict[str, Any]:
    """Return what is different in a study at a scale from the paper's: the fields by name."""
    fields = vars(SCALES[scale][study])
    return {name: value for name, value in fields.items() if value != getattr(SCALES["paper"][study], name)}


# ---------------------------------------------------------------------------------------------------------------------
# The agents


def paper_jobs(study: str, scale: str = "paper", seed: int = SEED) -> list[Job]:
    """Return the agents of a study: "xi" or "long" (with the Random baseline), "trpo", "ablation" or "readings"."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    if study not in SCALES[scale]:
        raise ValueError(f"study must be one of {', '.join(SCALES[scale])}, not {study!r}")
    plan = SCALES[scale][study]
    if isinstance(plan, Ablation):
        return ablation_jobs(plan, seed)
    if isinstance(plan, ReadingsStudy):
        known = set(ablation_jobs(ABLATION, seed))  # which has some of them already
        return [job for name in plan.readings for job in reading_jobs(plan, name, seed) if job not in known]
    return study_jobs(plan, seed)


def study_jobs(study: Study, seed: int) -> list[Job]:
    """Return the agents of a study, system by system."""
    jobs = []
    for system in study.systems:
        for algorithm, xi in study.cells(system):
            jobs += make_jobs(
                [algorithm],
                [system],
                [xi],
                study.agents,
                study.iterations,
                study.evaluations[system],
                seed,
                fresh=study.fresh,
                record=study.record,
            )
    return jobs


def ablation_jobs(plan: Ablation, seed: int) -> list[Job]:
    """Return the agents of the ablation, part by part."""
    jobs = []
    for part in plan.parts:
        for system, algorithm, rules in itertools.product(part.systems, part.learners, part.rules):
            if rules in UNUSED[algorithm]:
                continue
            long = plan.like.get(system, system)
            jobs += make_jobs(
                [algorithm],
                [system],
                [LONG_RUNS.xis[long][algorithm] if part.xi is None else part.xi],
                plan.agents,
                min(part.iterations or plan.iterations, plan.iterations),
                part.evaluations or LONG_RUNS.evaluations[long],
                seed,
                SWITCHES[rules],
                plan.fresh,
            )
    return jobs


def reading_jobs(plan: ReadingsStudy, name: str, seed: int) -> list[Job]:
    """Return the agents of a reading: the long runs, then the study of ξ if it is one of those that have it."""
    reading, jobs = plan.readings[name], []
    for root in range(seed, seed + (plan.roots if reading.starts == "shared" else 1)):
        for kind, long in plan.kinds.items():
            for learner, xi in LONG_RUNS.xis[long].items():
                jobs += make_jobs(
                    [learner],
                    [reading.system(kind)],
                    [xi],
                    plan.agents,
                    plan.iterations,
                    LONG_RUNS.evaluations[long],
                    root,
                    reading.rules,
                    plan.fresh,
                    starts=reading.starts,
                )
    if name in plan.xi_readings:
        jobs += make_jobs(
            LEARNERS,
            [reading.system(kind) for kind in plan.xi_kinds],
            XI_STUDY.xis,
            plan.agents,
            plan.xi_iterations,
            XI_STUDY.evaluations["Pendulum-v1"],
            seed,
            reading.rules,
            plan.fresh,
            starts=reading.starts,
        )
    return jobs


@functools.cache
def studies_of_groups() -> dict[Job, str]:
    """Return the study of every declared group of agents at any scale, by its first job with the paper's root seed."""
    return {
        dataclasses.replace(job, agent=0): study
        for scale, studies in SCALES.items()
        for study in studies
        for job in paper_jobs(study, scale)
    }


def study_of(job: Job) -> str:
    """Return the study that an agent is part of at some scale, with any root seed, or "other"."""
    return studies_of_groups().get(dataclasses.replace(job, agent=0, seed=SEED), "other")


def scale_of(jobs: Iterable[Job]) -> str:
    """Return the scale at which these are whole groups of the paper's runs (with any root seed), or "custom"."""

    def groups(jobs: Iterable[Job]) -> dict[Job, set[int]]:
        found: dict[Job, set[int]] = {}
        for job in jobs:
            found.setdefault(dataclasses.replace(job, agent=0, seed=SEED), set()).add(job.agent)
        return found

    given = groups(jobs)
    for scale in SCALES:
        declared = groups(job for study in SCALES[scale] for job in paper_jobs(study, scale))
        if all(agents == declared.get(group) for group, agents in given.items()):
            return scale
    return "custom"


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
    **parameters: Any,
) -> list[Job]:
    """Return the agents of a grid: every algorithm on every system with every ξ (Random once for all ξ).

    Other `parameters` of agents go to every algorithm that has them.
    """
    for name, given in (("algorithms", algorithms), ("systems", systems), ("xis", xis)):
        if isinstance(given, str):
            raise ValueError(f"{name} must be a list, not the text {given!r}")
    check_integer("agents", agents)
    seed = check_integer("seed", seed, at_least=0, at_most=2**63 - 1)  # as the files hold it
    iterations, evaluations = check_integer("iterations", iterations), check_integer("evaluations", evaluations)
    fresh = check_integer("fresh", fresh)
    if starts not in ("independent", "shared"):
        raise ValueError(f"starts must be 'independent' or 'shared', not {starts!r}")
    rules, xis, algorithms = check_rules(rules), list(xis), list(algorithms)
    if unknown := set(parameters) - {name for algorithm in algorithms for name in parameters_of(algorithm)}:
        raise ValueError(f"{' and '.join(algorithms)} have no parameter {' or '.join(sorted(unknown))}")
    jobs = []
    for algorithm, system in itertools.product(algorithms, map(name_of, systems)):
        others = frozen({name: parameters[name] for name in parameters_of(algorithm) if name in parameters})
        check_pair(algorithm, system, others)
        for xi, agent in itertools.product(xis, range(agents)):
            xi = check_number("xi", xi, at_least=0.0) if algorithm in LEARNERS else 0.0
            group = (algorithm, system, xi, iterations, evaluations, seed)
            jobs.append(Job(*group, agent, rules, fresh, bool(record), starts, parameters=others))
    if not jobs:
        raise ValueError("there is nothing to run: give at least one algorithm, one system and one xi")
    return list(dict.fromkeys(jobs))


def has_reference(system: str) -> bool:
    """Return whether an environment's system has a state that SPAQL-TS can steer to."""
    known = system_of(make_env(system))
    return known is not None and known.reference is not None


def parameters_of(algorithm: str) -> list[str]:
    """Return the names of the parameters of an algorithm that a grid does not set by itself."""
    if algorithm not in ALGORITHMS:
        return []
    own = inspect.signature(ALGORITHMS[algorithm]).parameters
    return [name for name in (*own, *Shared.__annotations__) if name not in OF_THE_GRID]


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
    if algorithm not in (known := (*ALGORITHMS, *provenance.TRPO)):
        raise ValueError(f"algorithm must be one of {', '.join(known)}, not {algorithm!r}")
    env = make_env(system)
    if algorithm == "SPAQL-TS" and "reference" not in dict(parameters) and not has_reference(system):
        raise ValueError(f"SPAQL-TS needs a reference state, and {system} has none: give reference=[...]")
    if parameters:
        make_agent(algorithm, system, 0.0, **dict(parameters))
    if algorithm in provenance.TRPO:
        if compiled_world(env, space_of(env)) is None or (limit := episode_limit(env)) is None:
            raise ValueError(f"TRPO runs on registered systems whose episodes end, and {system} is none")
        settings_of(algorithm, system, limit)
