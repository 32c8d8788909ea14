"""What is run: every study as a function that returns its agents, in one registry.

The defaults of a function's parameters are the published run.  `study("long", agents=5)` changes what is given and
nothing else; smaller scales are such changes too, and stand beside each study.
"""

import dataclasses
import functools
import inspect
import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import gymnasium as gym

from spaql.paper.baselines.limit import GRIDS
from spaql.paper.runs import provenance
from spaql.paper.runs.algorithms import SAME, TEXTBOOK
from spaql.paper.runs.dummies import DUMMIES
from spaql.paper.runs.grid import LEARNERS, make_jobs
from spaql.paper.runs.grid import parameters_of as own_parameters
from spaql.paper.runs.job import FRESH, SEED, Job, frozen
from spaql.paper.runs.network_settings import SAMPLES as TRPO_SAMPLES
from spaql.paper.runs.network_settings import SB3_SAMPLES
from spaql.paper.runs.repaired_settings import CHECKPOINT, REPAIRED
from spaql.rules import DIFFERENCES, RULES, Rules
from spaql.systems import horizon_of, make_env
from spaql.systems.registry import system_called


class Study(NamedTuple):
    """A function that returns the agents of a study, and what is different at each scale: its parameters by name."""

    title: str
    jobs: Callable[..., list[Job]]
    scales: Mapping[str, Mapping[str, Any]]


SCALES = ("paper", "quick", "smoke")
QUICK, SMOKE = {"agents": 10, "iterations": 1000}, {"agents": 2, "iterations": 10, "fresh": 20}  # of long runs
TINY = {"agents": 2, "iterations": 2, "evaluations": 5, "fresh": 20}  # where an iteration is a thousand samples
STUDIES: dict[str, Study] = {}


def declare(name: str, title: str, quick: Mapping[str, Any], smoke: Mapping[str, Any]) -> Callable:
    """Return a decorator that adds a function to the studies."""

    def add(jobs: Callable[..., list[Job]]) -> Callable[..., list[Job]]:
        STUDIES[name] = Study(title, jobs, dict(zip(SCALES, ({}, quick, smoke), strict=True)))
        return jobs

    return add


def study(name: str, scale: str = "paper", **changed: Any) -> list[Job]:
    """Return the agents of a study: the published ones, or those of a smaller scale, or with something else changed.

    Parameters
    ----------
    name
        One of `STUDIES`.
    scale
        "paper", "quick" or "smoke".
    **changed
        Parameters of the study that are different, as ``agents=5`` (see `parameters_of`).

    Examples
    --------
    >>> len(study("long", systems=["CartPole-v0"], agents=5))
    20
    """
    known = parameters_of(name, scale)
    if unknown := changed.keys() - known.keys():
        raise ValueError(f"study {name!r} has no parameter {', '.join(sorted(unknown))}: it has {', '.join(known)}")
    return STUDIES[name].jobs(**known | changed) if changed else list(declared_jobs(name, scale))


def parameters_of(name: str, scale: str = "paper") -> dict[str, Any]:
    """Return the parameters of a study at a scale, by name."""
    if name not in STUDIES:
        raise ValueError(f"study must be one of {', '.join(STUDIES)}, not {name!r}")
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    defaults = {key: value.default for key, value in inspect.signature(STUDIES[name].jobs).parameters.items()}
    return defaults | dict(STUDIES[name].scales[scale])


def some(
    name: str, system: str, agents: int, iterations: int, evaluations: int, seed: int, xi: float = 0.0, **others: Any
) -> list[Job]:
    """Return so many agents of an algorithm on a system, none if that is 0; see `make_jobs`."""
    return make_jobs([name], [system], [xi], agents, iterations, evaluations, seed, **others) if agents else []


@functools.cache
def declared_jobs(name: str, scale: str) -> tuple[Job, ...]:
    """Return the agents of a study at a scale; they are asked for often, and made once."""
    return tuple(STUDIES[name].jobs(**parameters_of(name, scale)))


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


@declare("xi", "effect of ξ", {"agents": 10}, {"agents": 2, "iterations": 4, "xis": (0, 4, 160), "fresh": 20})
def xi_runs(
    systems: Iterable[str] = ("Pendulum-v1", "spaql/PendulumScaled-v1", "CartPole-v0"),
    algorithms: Iterable[str] = ("Random", *LEARNERS),
    xis: Iterable[float] = XIS,
    agents: int = 20,
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    rules: str = "paper",
    fresh: int = FRESH,
) -> list[Job]:
    """Return the effect of ξ: every learner with every ξ, beside Random."""
    size = agents, iterations, evaluations, seed, rules, fresh
    return [job for system in systems for name in algorithms for job in make_jobs([name], [system], xis, *size)]


@declare("long", "long runs", QUICK, SMOKE)
def long_runs(
    systems: Iterable[str] = LONG_SYSTEMS,
    algorithms: Iterable[str] = ("Random", *LEARNERS),
    xis: Mapping[str, Mapping[str, float]] = LONG_XI,
    agents: int = 20,
    iterations: int = 2000,
    evaluations: Mapping[str, int] = LONG_N,
    seed: int = SEED,
    rules: str = "paper",
    fresh: int = FRESH,
) -> list[Job]:
    """Return the long runs: every learner with one ξ for each system, beside Random."""
    jobs = []
    for system, name in itertools.product(systems, algorithms):
        size, xi = (agents, iterations, evaluations[system], seed), xis[system].get(name, 0)
        jobs += some(name, system, *size, xi, rules=rules, fresh=fresh, record=True)
    return jobs


@declare("trpo", "TRPO", {"agents": 2, "iterations": 5}, {"agents": 2, "iterations": 1, "fresh": 20})
def trpo_runs(
    systems: Iterable[str] = BOTH,
    algorithms: Iterable[str] = provenance.TRPO,
    agents: int = 20,
    iterations: int = 100,  # of 4,000 samples; N does not apply
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the TRPO baselines, none if `agents` is 0."""
    return [
        job
        for system, name in itertools.product(systems, algorithms)
        for job in some(name, system, agents, iterations, 1, seed, fresh=fresh, record=True)
    ]


# ---------------------------------------------------------------------------------------------------------------------
# What the audit adds: the long runs with something changed

# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {name: RULES["paper"]._replace(**{name: getattr(RULES["released"], name)}) for name in DIFFERENCES} | RULES

# The rules that an algorithm has no use for.
UNUSED: dict[str, set[str]] = {
    "AQL": {"distance", "heating", "reset", "normalisation"},
    "SPAQL": {"distance"},
    "SPAQL-TS": set(),
}


class Control(NamedTuple):
    """One change of the algorithm; the defaults are the text's."""

    rules: Rules = RULES["paper"]
    parameters: tuple[tuple[str, Any], ...] = ()  # of the agents, by name


# The algorithms with one part taken away.  The greatest possible return, another first estimate to think of, is H on
# CartPole and 0 on Pendulum.
CONTROLS = {
    "text": Control(),
    "reward deleted": Control(Rules(reward="deleted")),
    "Q from visits": Control(Rules(estimate="visits")),
    "Q fixed": Control(Rules(estimate="fixed")),
    "random partitions": Control(Rules(partition="random")),
    "never reset": Control(Rules(reset="never")),
    "last kept": Control(Rules(kept="last")),
    "Q fixed, last kept": Control(Rules(estimate="fixed", kept="last")),
    "reward deleted, last kept": Control(Rules(reward="deleted", kept="last")),
    "zero at the end": Control(Rules(termination="zero")),
    "zero at the end, last kept": Control(Rules(termination="zero", kept="last")),
    "Q from 0": Control(parameters=(("initial", 0.0),)),
    "discount 0.99": Control(parameters=(("discount", 0.99),)),
}
NO_END = tuple(name for name, control in CONTROLS.items() if control.rules.termination == "ignored")  # for Pendulum
FOR_AQL = ("reward deleted", "Q from visits", "Q fixed", "Q from 0", "discount 0.99")  # which keeps no best agent
PENDULUMS = ("Pendulum-v1", "spaql/PendulumDiscrete-v1")


class Part(NamedTuple):
    """Long runs of some learners with some changes, by their names in `SWITCHES` or `CONTROLS`."""

    systems: tuple[str, ...]
    changes: tuple[str, ...]
    learners: tuple[str, ...] = LEARNERS
    xi: float | None = None  # the long runs' if not given; N and K are the study's
    evaluations: int | None = None
    iterations: int | None = None


ABLATION_PARTS = (  # each rule alone, then all; with another N; and the ξ study's 0 on CartPole
    Part(BOTH, (*DIFFERENCES, "released")),
    Part(("CartPole-v0",), ("ties", "released"), xi=0, iterations=100, evaluations=20),
    Part(("CartPole-v0",), ("released",), evaluations=20),
    Part(("CartPole-v0",), ("paper",), ("SPAQL", "SPAQL-TS"), evaluations=20),
    Part(("CartPole-v0",), ("paper",), ("SPAQL",), evaluations=5),
    Part(("Pendulum-v1",), ("paper",), ("SPAQL",), evaluations=5),
    Part(("Pendulum-v1",), ("paper",), ("SPAQL",), evaluations=100),
    Part(("spaql/Pendulum-v0",), ("released",)),
)
LIKE = {"spaql/Pendulum-v0": "Pendulum-v1"}  # a system that the long runs lack, and the one whose ξ and N it gets

CONTROL_PARTS = (
    Part(("CartPole-v0",), tuple(CONTROLS)[1:], ("SPAQL", "SPAQL-TS")),
    Part(PENDULUMS, NO_END[1:], ("SPAQL", "SPAQL-TS")),
    Part(("CartPole-v0",), ("text", *FOR_AQL, "zero at the end"), ("AQL",)),
    Part(PENDULUMS, FOR_AQL, ("AQL",)),
    Part(BOTH, ("text", "last kept"), ("SPAQL",), evaluations=1),
    Part(BOTH, ("last kept",), ("SPAQL",), evaluations=5),
    Part(BOTH, ("last kept",), ("SPAQL",), evaluations=100),
)


def changed_runs(
    parts: Iterable[Part], agents: int, iterations: int, evaluations: Mapping[str, int], seed: int, fresh: int
) -> list[Job]:
    """Return the agents of some parts, with the N of each system where a part has none of its own."""
    jobs = []
    for part in parts:
        for system, name, change in itertools.product(part.systems, part.learners, part.changes):
            if change in UNUSED[name]:
                continue
            long = LIKE.get(system, system)
            xi = LONG_XI[long][name] if part.xi is None else part.xi
            most = min(part.iterations or iterations, iterations)
            control = CONTROLS[change] if change in CONTROLS else Control(SWITCHES[change])
            size = agents, most, part.evaluations or evaluations[long], seed
            jobs += some(name, system, *size, xi=xi, rules=control.rules, fresh=fresh, **dict(control.parameters))
    return jobs


@declare("ablation", "ablation", QUICK, SMOKE)
def ablation_runs(
    agents: int = 20,
    iterations: int = 2000,
    seed: int = SEED,
    fresh: int = FRESH,
    parts: Iterable[Part] = ABLATION_PARTS,
) -> list[Job]:
    """Return the long runs with other rules or another N."""
    return changed_runs(parts, agents, iterations, LONG_N, seed, fresh)


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
    recorded: bool = False  # whether an episode of each agent is kept, by which claims about episodes are judged

    def system(self, kind: str) -> str:
        """Return the id of a kind of pendulum, as "Pendulum" or "PendulumDiscrete", in this reading."""
        name = f"{kind}{'Half' if self.torque == 1 else ''}-{self.dynamics}"
        return name if name in gym.registry else f"spaql/{name}"

    def random_system(self, kind: str) -> str:
        """Return the id of the pendulum that Random has in this reading: its torques are never halved."""
        way = "OneWay" if self.random == "one way" else ""
        return dataclasses.replace(self, torque=2).system(f"{kind}{way}")


# Random's row is a question of its own, which its mean and its interval answer (see audit/random_baseline.py): all
# readings but the text's have the program's Random.
READINGS = {
    name: dataclasses.replace(reading, random="one way")
    for name, reading in {
        "torque": Reading(torque=1),
        "torque, starts": Reading(torque=1, starts="shared", recorded=True),
        "torque, starts, rules": Reading(torque=1, starts="shared", rules="released", recorded=True),
        "torque, starts, dynamics": Reading(torque=1, starts="shared", dynamics="v0"),
        "torque, rules": Reading(torque=1, rules="released", recorded=True),
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


@declare("readings", "readings", QUICK | {"roots": 1}, SMOKE | {"xi_iterations": 4, "roots": 1})
def readings_runs(
    agents: int = 20,
    iterations: int = 2000,
    xi_iterations: int = 100,
    roots: int = 2,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the long runs on Pendulum, and its study of ξ, under readings, but for those that the ablation has."""
    jobs = []
    systems = [Reading().system(kind) for kind in XI_KINDS]
    for name, reading in READINGS.items():
        jobs += reading_runs(reading, agents, iterations, roots=roots, seed=seed, fresh=fresh)
        if name in XI_READINGS:
            text = xi_runs(systems, agents=agents, iterations=xi_iterations, seed=seed, fresh=fresh)
            jobs += [under_reading(job, reading, seed) for job in text]
    known = set(ablation_runs(seed=seed))
    return [job for job in dict.fromkeys(jobs) if job not in known]


def reading_runs(
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
        text += long_runs([system], algorithms, LONG_XI, agents, iterations, {system: evaluations}, seed, fresh=fresh)
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
        record=job.record and reading.recorded and root == SEED,
    )


# ---------------------------------------------------------------------------------------------------------------------
# What is learned, and more agents for our own questions


@declare("controls", "controls", QUICK, SMOKE)
def control_runs(
    agents: int = 10,
    iterations: int = 2000,
    evaluations: int = 20,
    seed: int = SEED,
    fresh: int = FRESH,
    parts: Iterable[Part] = CONTROL_PARTS,
) -> list[Job]:
    """Return the long runs with one part of the algorithm changed.

    What they are compared with, the text's rules, other studies have, but for N = 1.
    """
    return changed_runs(parts, agents, iterations, dict.fromkeys(LONG_SYSTEMS, evaluations), seed, fresh)


# What the paper sets and never varies, each alone: the parameters of an algorithm and their other values.
VARIED: dict[str, tuple[Any, ...]] = {"tau_min": (0.001, 0.1), "u": (1.2, 4.0), "d": (0.5, 1.0), "lam": (0.6, 2.4)}
STEEPER = (10.0, 100.0)  # slopes of the sigmoids, in multiples of the paper's


def xi_of_theory(H: int, K: int, p_fail: float = 0.1, L: float = 0.0) -> float:
    """Return the ξ of eqn:conf_radius, with d_max = 1 in the standard space; without the term of L a lower bound."""
    return 2.0 * math.sqrt(H**3 * math.log(4 * H * K / p_fail)) + 4.0 * L


def settings_of(algorithm: str, system: str, iterations: int) -> dict[str, tuple[float, Control]]:
    """Return what is set otherwise than in the paper, one thing at a time: a name, ξ and the change."""
    known, long = system_called(system), LONG_XI[system][algorithm]
    found = {
        f"{name} = {value:g}": (long, Control(parameters=((name, value),)))
        for name, values in VARIED.items()
        for value in values
        if name in own_parameters(algorithm)
    }
    slopes = known.slopes if known else None
    for factor in STEEPER if slopes else ():
        steeper = tuple(factor * slope for slope in slopes or ())
        found[f"slopes × {factor:g}"] = long, Control(parameters=(("slopes", steeper),))
    return found | {"ξ of theory": (xi_of_theory(horizon_of(make_env(system)), iterations), Control())}


@declare("settings", "settings", QUICK | {"dummies": 3}, SMOKE | {"dummies": 2, "few": 2})
def setting_runs(
    agents: int = 100,
    dummies: int = 10,  # agents with dummy observations
    few: int = 3,  # of AQL, which these make slow
    iterations: int = 2000,
    evaluations: int = 20,
    samples: int = 40,  # thousands, of SPAQL-R
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the long runs with another setting than the paper's, or with dummy observations; only ends are kept."""
    size = iterations, evaluations, seed
    jobs = []
    for system, name in itertools.product(BOTH, LEARNERS):
        for xi, control in settings_of(name, system, iterations).values():
            changed = dict(control.parameters)
            jobs += some(name, system, agents, *size, xi=xi, rules=control.rules, fresh=fresh, **changed)
    for system, name in itertools.product(DUMMIES[:3], ("Random", *LEARNERS)):
        several = few if name == "AQL" else dummies
        jobs += some(name, system, several, *size, xi=LONG_XI["Pendulum-v1"].get(name, 0), fresh=fresh)
    jobs = [dataclasses.replace(job, brief=True) for job in jobs]
    for system in ("Pendulum-v1", *DUMMIES[:3]):
        jobs += some("SPAQL-R", system, dummies, samples, evaluations, seed, fresh=fresh)
    return jobs


@declare("further", "further agents", {"agents": 20, "of": "quick"}, {"agents": 3, "of": "smoke"})
def further_runs(agents: int = 100, of: str = "paper", seed: int = SEED) -> list[Job]:
    """Return more agents of the ablation and of the controls, and of the text's runs that both are compared with.

    They are for our own questions, which the paper's number of agents leaves open.  They bring each group to so many,
    and of each only the end is kept.
    """
    own = study("ablation", of, seed=seed) + study("controls", of, seed=seed)
    groups: dict[Job, int] = {}
    for job in own + text_jobs(own, parameters_of("ablation", of)["agents"]):
        groups[job.group()] = max(groups.get(job.group(), 0), job.agent + 1)
    return [
        dataclasses.replace(group, agent=agent, record=False, brief=True)
        for group, known in groups.items()
        for agent in range(known, agents)
    ]


def is_long(job: Job) -> bool:
    """Return whether a job has the ξ and N of the paper's long runs, whatever its rules."""
    return LONG_XI.get(job.system, {}).get(job.algorithm) == job.xi and job.evaluations == LONG_N.get(job.system)


def text_jobs(jobs: Iterable[Job], agents: int) -> list[Job]:
    """Return the agents under the text's rules that these are compared with, so many of each group.

    They are the long runs' where N is the paper's; groups that are among the given jobs are left out, and so are those
    of systems that the paper does not have.
    """
    jobs, text = list(jobs), Control()
    groups = {
        dataclasses.replace(job.group(), record=is_long(job), rules=text.rules, parameters=text.parameters)
        for job in jobs
        if job.system in LONG_SYSTEMS
    }
    wanted = sorted(groups - {job.group() for job in jobs}, key=Job.identity)
    return [dataclasses.replace(group, agent=agent) for group in wanted for agent in range(agents)]


def further_of(jobs: Iterable[Job]) -> list[Job]:
    """Return the further agents of the groups of these, if they are published ones."""
    jobs = list(jobs)
    groups = {dataclasses.replace(job.group(), record=False) for job in jobs} if is_published(jobs) else set()
    return [job for job in study("further") if dataclasses.replace(job.group(), brief=False) in groups]


# ---------------------------------------------------------------------------------------------------------------------
# The repaired algorithm, and what a user would pick today.  An iteration is a thousand samples (see `CHECKPOINT`),
# after which the policy plays `evaluations` fresh episodes.

# Variants that would be another one, or SPAQL-R itself: Pendulum never ends; CartPole has no angles and two actions.
NO_CHANGE = {
    ("SPAQL-R, no end", "Pendulum-v1"),
    ("SPAQL-R, rung 2", "Pendulum-v1"),
    ("SPAQL-R, no angles", "CartPole-v0"),
    ("SPAQL-R, rung 7", "CartPole-v0"),
    ("SPAQL-R, five actions", "CartPole-v0"),
}


@declare("repaired", "SPAQL-R", {"agents": 10, "iterations": 40}, TINY | {"iterations": 3})
def repaired_runs(
    agents: int = 100, iterations: int = 100, evaluations: int = 100, seed: int = SEED, fresh: int = FRESH
) -> list[Job]:
    """Return the agents of SPAQL-R."""
    return make_jobs(["SPAQL-R"], BOTH, [0], agents, iterations, evaluations, seed, fresh=fresh)


@declare("variants", "variants of SPAQL-R", {"agents": 3, "iterations": 20}, TINY)
def variant_runs(
    agents: int = 10, iterations: int = 40, evaluations: int = 100, seed: int = SEED, fresh: int = FRESH
) -> list[Job]:
    """Return SPAQL-R with one change taken back, or with one change more at a time."""
    return [
        job
        for name, system in itertools.product(REPAIRED, BOTH)
        if name != "SPAQL-R" and (name, system) not in NO_CHANGE
        for job in some(name, system, agents, iterations, evaluations, seed, fresh=fresh)
    ]


@declare("sb3", "SAC, PPO and DQN", {"agents": 2, "iterations": 5}, TINY | {"iterations": 1})
def sb3_runs(
    agents: int = 20, iterations: int = 100, evaluations: int = 100, seed: int = SEED, fresh: int = FRESH
) -> list[Job]:
    """Return SAC, DQN and PPO for as many samples as rl-baselines3-zoo gives them, or fewer; none if `agents` is 0."""
    return network_jobs(BOTH, dict.fromkeys(provenance.SB3, agents), iterations, evaluations, seed, fresh)


def network_jobs(
    systems: Iterable[str], agents: Mapping[str, int], iterations: int, evaluations: int, seed: int, fresh: int
) -> list[Job]:
    """Return so many agents of each of Stable-Baselines3's algorithms on some systems."""
    jobs = []
    for (name, system), samples in SB3_SAMPLES.items():
        if system in systems:
            most = min(samples // CHECKPOINT, iterations)
            jobs += some(name, system, agents[name], most, evaluations, seed, fresh=fresh)
    return jobs


# ---------------------------------------------------------------------------------------------------------------------
# The rest of classic control

OTHER_XI: dict[str, dict[str, float]] = {  # of the learners, chosen by the study of ξ below
    "MountainCar-v0": {"AQL": 0, "SPAQL": 0, "SPAQL-TS": 120},
    "MountainCarContinuous-v0": {"AQL": 0, "SPAQL": 0, "SPAQL-TS": 20},
    "Acrobot-v1": {"AQL": 20, "SPAQL": 0.4, "SPAQL-TS": 120},
    "CartPole-v1": {"AQL": 4, "SPAQL": 0.4, "SPAQL-TS": 20},
}
OTHER_SYSTEMS = tuple(OTHER_XI)


@declare(
    "systems-xi",
    "ξ on other systems",
    {"agents": 1, "iterations": 50},
    {"agents": 1, "iterations": 2, "xis": (0, 4), "fresh": 20},
)
def other_xi_runs(
    xis: Iterable[float] = (0, 0.4, 4, 20, 120),
    agents: int = 5,
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    fresh: int = 200,
) -> list[Job]:
    """Return the study of ξ on other systems, on a root seed of its own since it chooses a parameter of others."""
    apart = seed + 1
    return xi_runs(OTHER_SYSTEMS, ("Random", *LEARNERS), xis, agents, iterations, evaluations, apart, fresh=fresh)


@declare(
    "systems",
    "other systems",
    {"agents": 5, "repaired_agents": 5, "trpo_agents": 0, "trpo_tuned_agents": 0, "iterations": 40},
    SMOKE | {"repaired_agents": 2, "trpo_agents": 0, "trpo_tuned_agents": 0, "iterations": 8, "looks": 5},
)
def other_runs(
    agents: int = 20,
    repaired_agents: int = 100,  # of SPAQL-R
    iterations: int = 100,  # samples of training, in thousands
    evaluations: int = 20,  # N
    looks: int = 20,  # fresh episodes at each look at a policy on the way (see `Job.looks`)
    trpo_agents: int = 20,  # which take minutes each
    trpo_tuned_agents: int = 20,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return Random, the learners, SPAQL-R and TRPO on systems that the paper does not have.

    The paper's algorithms and SPAQL-R train on as many samples as TRPO.  SPAQL and SPAQL-TS take those of their
    rollouts on top, so that their histories pass the same number of samples, all counted, much earlier.
    """
    jobs = []
    for system in OTHER_SYSTEMS:
        jobs += some("Random", system, agents, 1, evaluations, seed, fresh=fresh)
        for name, xi in OTHER_XI[system].items():
            jobs += some(name, system, agents, iterations, evaluations, seed, xi=xi, fresh=fresh, looks=looks)
        jobs += some("SPAQL-R", system, repaired_agents, iterations, looks, seed, fresh=fresh)
        # Of TRPO tuned rl-baselines3-zoo has 100 thousand samples, or 50, which are no whole number of its batches.
        baselines = {"TRPO": (trpo_agents, iterations), "TRPO tuned": (trpo_tuned_agents, 104 * iterations // 100)}
        for name, (several, thousands) in baselines.items():
            jobs += some(name, system, several, thousands * CHECKPOINT // TRPO_SAMPLES, 1, seed, fresh=fresh)
    return jobs


ONE: dict[str, Any] = {"dqn_agents": 1, "sac_agents": 1, "ppo_agents": 1}


@declare(
    "networks",
    "SAC, PPO and DQN on other systems",
    ONE | {"iterations": 5},
    ONE | {"iterations": 1, "evaluations": 5, "fresh": 20},
)
def network_runs(
    dqn_agents: int = 10,
    sac_agents: int = 5,
    ppo_agents: int = 10,
    iterations: int = 100,
    evaluations: int = 20,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return SAC, DQN and PPO on systems that the paper does not have."""
    several = {"DQN": dqn_agents, "SAC": sac_agents, "PPO": ppo_agents}
    return network_jobs(OTHER_SYSTEMS, several, iterations, evaluations, seed, fresh)


# ---------------------------------------------------------------------------------------------------------------------
# The limit, the textbook and networks, on the systems of both

SIX = (*BOTH, *OTHER_SYSTEMS)
MANY = 10_000  # fresh episodes where there is one policy, no group of agents


@declare("limit", "the limit", {}, {"systems": ("MountainCar-v0",), "fresh": 20})
def limit_runs(systems: Iterable[str] = tuple(GRIDS), seed: int = SEED, fresh: int = MANY) -> list[Job]:
    """Return dynamic programming on each grid, on half of it, and with two actions where they are continuous.

    A policy that looks several steps ahead plays fewer episodes.
    """
    jobs = []
    for system in systems:
        episodes = min(fresh, FRESH) if "depth" in GRIDS[system] else fresh
        (whole,) = some("Limit", system, 1, 1, 1, seed, fresh=episodes)
        half = tuple((count + 1) // 2 for count in GRIDS[system]["nodes"])
        changes: list[dict[str, Any]] = [{}, {"nodes": half}]
        changes += [{"actions": 2}] if "actions" in GRIDS[system] else []
        jobs += [dataclasses.replace(whole, parameters=frozen(change)) for change in changes]
    return jobs


@declare("textbook", "the textbook", {"agents": 3, "fitted_agents": 0, "iterations": 20}, TINY | {"fitted_agents": 0})
def textbook_runs(
    systems: Iterable[str] = SIX,
    agents: int = 20,
    iterations: int = 100,
    fitted_agents: int = 5,  # which take a minute each,
    fitted_iterations: int = 20,  # and many more with more samples
    fitted_evaluations: int = 20,  # or episodes
    evaluations: int = 100,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return rules by hand, which learn nothing, and the textbook's algorithms."""
    fitted = fitted_agents, min(fitted_iterations, iterations), min(fitted_evaluations, evaluations)
    sizes = {"By hand": (1, 1, 1), "Fitted Q": fitted}
    jobs = []
    for system, name in itertools.product(systems, (*TEXTBOOK, SAME)):
        episodes = MANY if name == "By hand" else fresh
        jobs += some(name, system, *sizes.get(name, (agents, iterations, evaluations)), seed, fresh=episodes)
    return jobs


SIX_STATES = ("spaql/Quadrotor-v0", "spaql/TwoPoles-v0")
SIX_STATE_LEARNERS = ("Random", "By hand", "SPAQL-R", SAME, "Tiles, replayed", "PPO")


@declare("six-states", "six states", {"agents": 3, "networks": 0, "iterations": 20}, TINY | {"networks": 0})
def six_state_runs(
    systems: Iterable[str] = SIX_STATES,
    agents: int = 20,
    networks: int = 3,  # agents of PPO, which take ten minutes each
    iterations: int = 200,
    evaluations: int = 20,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return SPAQL-R beside its yardsticks on systems with six states; a fixed grid of them would be too large."""
    sizes = {"Random": (agents, 1), "By hand": (1, 1), "PPO": (networks, iterations)}
    return [
        job
        for system, name in itertools.product(systems, SIX_STATE_LEARNERS)
        for job in some(name, system, *sizes.get(name, (agents, iterations)), evaluations, seed, fresh=fresh)
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Questions to the registry


@functools.cache
def published_groups() -> dict[Job, set[Job]]:
    """Return the agents of every published group, by its first job."""
    groups: dict[Job, set[Job]] = {}
    for job in (job for name in STUDIES for job in study(name)):
        groups.setdefault(job.group(), set()).add(job)
    return groups


def is_published(jobs: Iterable[Job]) -> bool:
    """Return whether these agents are whole groups of the published runs, and nothing else."""
    jobs = set(jobs)
    groups = {job.group() for job in jobs}
    return jobs == {job for group in groups for job in published_groups().get(group, ())}


@functools.cache
def studies_of_groups() -> dict[Job, str]:
    """Return the study of every declared group of agents at any scale, by its first job with the paper's root seed."""
    return {
        dataclasses.replace(job, agent=0, seed=SEED): name
        for scale, name in itertools.product(SCALES, STUDIES)
        for job in study(name, scale)
    }


def study_of(job: Job) -> str:
    """Return the study that an agent is part of at some scale, with any root seed, or "other"."""
    return studies_of_groups().get(dataclasses.replace(job, agent=0, seed=SEED), "other")
