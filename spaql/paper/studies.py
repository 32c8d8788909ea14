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
from spaql.paper.runs.repaired_settings import CHECKPOINT, REPAIRED
from spaql.paper.runs.sb3_settings import SAMPLES as SB3_SAMPLES
from spaql.paper.runs.trpo_settings import SAMPLES as TRPO_SAMPLES
from spaql.paper.runs.trpo_settings import settings_of
from spaql.rules import DIFFERENCES, RULES, Rules, check_rules
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
    apart: int = 0  # what the root seed is raised by, for agents that choose a parameter of others

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Checkpointed:
    """Agents whose policies play fresh episodes after every thousand samples, an iteration here (see `CHECKPOINT`)."""

    cells: Mapping[tuple[str, str], int]  # by algorithm and system: for how many iterations
    agents: int
    iterations: int = 100  # at most
    evaluations: int = 100  # fresh episodes at each checkpoint
    fresh: int = FRESH


@dataclasses.dataclass(frozen=True, kw_only=True)
class OtherSystems:
    """Everyone on systems that the paper does not have, with looks at the policies on the way (see `Job.looks`).

    The paper's algorithms and SPAQL-R train on as many samples as TRPO.  SPAQL and SPAQL-TS take those of their
    rollouts on top, so that their histories pass the same number of samples, all counted, much earlier.
    """

    systems: tuple[str, ...]
    xis: Mapping[str, Mapping[str, float]]  # by system and learner
    iterations: int  # samples of training, in thousands
    tuned_iterations: int  # the same of TRPO with published settings
    evaluations: int  # N
    looks: int  # fresh episodes at each look
    agents: int
    trpo_agents: int  # which take minutes each
    trpo_tuned_agents: int
    fresh: int = FRESH


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
# The repaired algorithm, and what a user would pick today

BOTH = ("Pendulum-v1", "CartPole-v0")

# Variants that would be another one, or SPAQL-R itself: Pendulum never ends, and CartPole has two actions.
NO_CHANGE = {
    ("SPAQL-R, no end", "Pendulum-v1"),
    ("SPAQL-R, rung 2", "Pendulum-v1"),
    ("SPAQL-R, five actions", "CartPole-v0"),
}

REPAIRED_RUNS = Checkpointed(cells={("SPAQL-R", system): 100 for system in BOTH}, agents=100)

VARIANT_RUNS = Checkpointed(  # with one repair taken back, as a fixed grid, or with one repair more at a time
    cells={
        (name, system): 40
        for name in REPAIRED
        for system in BOTH
        if name != "SPAQL-R" and (name, system) not in NO_CHANGE
    },
    agents=20,
)

SB3_RUNS = Checkpointed(  # for as many samples as rl-baselines3-zoo gives them
    cells={cell: samples // CHECKPOINT for cell, samples in SB3_SAMPLES.items()},
    agents=20,
)

# ---------------------------------------------------------------------------------------------------------------------
# The rest of classic control

OTHER = ("MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1", "CartPole-v1")

OTHER_XI = XiStudy(  # which chooses the ξ of the runs below, on seeds of its own
    systems=OTHER,
    xis=(0, 0.4, 4, 20, 120),
    iterations=100,
    evaluations=dict.fromkeys(OTHER, 20),
    agents=5,
    fresh=200,
    record=False,
    apart=1,
)

OTHER_SYSTEMS = OtherSystems(
    systems=OTHER,
    xis={
        "MountainCar-v0": {"AQL": 0, "SPAQL": 0, "SPAQL-TS": 120},
        "MountainCarContinuous-v0": {"AQL": 0, "SPAQL": 0, "SPAQL-TS": 20},
        "Acrobot-v1": {"AQL": 20, "SPAQL": 0.4, "SPAQL-TS": 120},
        "CartPole-v1": {"AQL": 4, "SPAQL": 0.4, "SPAQL-TS": 20},
    },
    iterations=100,
    tuned_iterations=104,  # rl-baselines3-zoo has 100, or 50, which are no whole number of its batches
    evaluations=20,
    looks=20,
    agents=20,
    trpo_agents=20,
    trpo_tuned_agents=20,
)

# ---------------------------------------------------------------------------------------------------------------------
# What the audit adds

# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {name: RULES["paper"]._replace(**{name: getattr(RULES["released"], name)}) for name in DIFFERENCES} | RULES

# The rules that an algorithm has no use for.
UNUSED: dict[str, set[str]] = {
    "AQL": {"distance", "heating", "reset", "normalisation"},
    "SPAQL": {"distance"},
    "SPAQL-TS": set(),
}

ABLATION = Ablation(  # each rule alone, then all; with another N; and the ξ study's 0 on CartPole
    parts=(
        Part(("Pendulum-v1", "CartPole-v0"), (*DIFFERENCES, "released")),
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingsStudy:
    """The long runs on Pendulum, and its study of ξ, under readings of the experiment."""

    readings: Mapping[str, Reading]
    kinds: Mapping[str, tuple[str, ...]]  # of pendulums, and who is run on each: those that the paper has numbers of
    xi_readings: tuple[str, ...]  # of which the study of ξ is run, too
    xi_kinds: Mapping[str, tuple[str, ...]]
    iterations: int
    xi_iterations: int
    agents: int
    roots: int  # how many root seeds where starts are shared, so that the luck of one sequence of starts shows
    fresh: int = FRESH


READINGS_STUDY = ReadingsStudy(
    readings=READINGS,
    kinds={"Pendulum": ("Random", *LEARNERS), "PendulumDiscrete": ("SPAQL", "SPAQL-TS")},
    xi_readings=("torque, starts, rules", "torque, starts", "all", "torque, rules"),
    xi_kinds={"Pendulum": ("Random", *LEARNERS), "PendulumScaled": ("Random", *LEARNERS)},
    iterations=2000,
    xi_iterations=100,
    agents=20,
    roots=2,
)

# ---------------------------------------------------------------------------------------------------------------------
# What is learned: the algorithms with one part taken away


@dataclasses.dataclass(frozen=True)
class Control:
    """One change of the algorithm; the defaults are the text's."""

    rules: Rules = RULES["paper"]
    parameters: tuple[tuple[str, Any], ...] = ()  # of the agents, by name


# The greatest possible return, another first estimate to think of, is H on CartPole and 0 on Pendulum.
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


@dataclasses.dataclass(frozen=True)
class ControlPart:
    """Long runs under some controls (see `CONTROLS`)."""

    systems: tuple[str, ...]
    controls: tuple[str, ...]
    learners: tuple[str, ...] = ("SPAQL", "SPAQL-TS")
    evaluations: int = 20  # N


@dataclasses.dataclass(frozen=True, kw_only=True)
class ControlStudy:
    """The long runs with one part of the algorithm changed, part by part.

    What they are compared with, the text's rules, other studies have, but for N = 1.
    """

    parts: tuple[ControlPart, ...]
    iterations: int
    agents: int
    fresh: int = FRESH


CONTROL_STUDY = ControlStudy(
    parts=(
        ControlPart(("CartPole-v0",), tuple(CONTROLS)[1:]),
        ControlPart(("Pendulum-v1", "spaql/PendulumDiscrete-v1"), NO_END[1:]),
        ControlPart(("CartPole-v0",), ("text", *FOR_AQL, "zero at the end"), ("AQL",)),
        ControlPart(("Pendulum-v1", "spaql/PendulumDiscrete-v1"), FOR_AQL, ("AQL",)),
        ControlPart(BOTH, ("text", "last kept"), ("SPAQL",), evaluations=1),
        ControlPart(BOTH, ("last kept",), ("SPAQL",), evaluations=5),
        ControlPart(BOTH, ("last kept",), ("SPAQL",), evaluations=100),
    ),
    iterations=2000,
    agents=10,
)


# ---------------------------------------------------------------------------------------------------------------------
# More agents for our own questions


@dataclasses.dataclass(frozen=True, kw_only=True)
class Further:
    """More agents of the ablation and of the controls, and of the text's runs that both are compared with.

    They are for our own questions, which the paper's number of agents leaves open; of each only the end is kept.
    """

    ablation: Ablation
    controls: ControlStudy
    agents: int  # of each cell, with those of the other studies


FURTHER = Further(ablation=ABLATION, controls=CONTROL_STUDY, agents=100)

# ---------------------------------------------------------------------------------------------------------------------
# The same at smaller scales

Plan = Study | Ablation | ReadingsStudy | ControlStudy | Further | Checkpointed | OtherSystems


QUICK_ABLATION = dataclasses.replace(ABLATION, agents=10, iterations=1000)
SMOKE_ABLATION = dataclasses.replace(ABLATION, agents=2, iterations=10, fresh=20)
QUICK_CONTROLS = dataclasses.replace(CONTROL_STUDY, agents=10, iterations=1000)
SMOKE_CONTROLS = dataclasses.replace(CONTROL_STUDY, agents=2, iterations=10, fresh=20)

SCALES: dict[str, dict[str, Plan]] = {
    "paper": {
        "xi": XI_STUDY,
        "long": LONG_RUNS,
        "trpo": TRPO_RUNS,
        "ablation": ABLATION,
        "readings": READINGS_STUDY,
        "controls": CONTROL_STUDY,
        "further": FURTHER,
        "repaired": REPAIRED_RUNS,
        "variants": VARIANT_RUNS,
        "sb3": SB3_RUNS,
        "systems-xi": OTHER_XI,
        "systems": OTHER_SYSTEMS,
    },
    "quick": {
        "xi": dataclasses.replace(XI_STUDY, agents=10),
        "long": dataclasses.replace(LONG_RUNS, agents=10, iterations=1000),
        "trpo": dataclasses.replace(TRPO_RUNS, agents=2, iterations=5),
        "ablation": QUICK_ABLATION,
        "readings": dataclasses.replace(READINGS_STUDY, agents=10, iterations=1000, roots=1),
        "controls": QUICK_CONTROLS,
        "further": Further(ablation=QUICK_ABLATION, controls=QUICK_CONTROLS, agents=20),
        "repaired": dataclasses.replace(REPAIRED_RUNS, agents=10, iterations=40),
        "variants": dataclasses.replace(VARIANT_RUNS, agents=3, iterations=20),
        "sb3": dataclasses.replace(SB3_RUNS, agents=2, iterations=5),
        "systems-xi": dataclasses.replace(OTHER_XI, agents=1, iterations=50),
        "systems": dataclasses.replace(OTHER_SYSTEMS, agents=5, trpo_agents=2, trpo_tuned_agents=0, iterations=40),
    },
    "smoke": {
        "xi": dataclasses.replace(XI_STUDY, agents=2, iterations=4, xis=(0, 4, 160), fresh=20),
        "long": dataclasses.replace(LONG_RUNS, agents=2, iterations=10, fresh=20),
        "trpo": dataclasses.replace(TRPO_RUNS, agents=2, iterations=1, fresh=20),
        "ablation": SMOKE_ABLATION,
        "readings": dataclasses.replace(READINGS_STUDY, agents=2, iterations=10, xi_iterations=4, roots=1, fresh=20),
        "controls": SMOKE_CONTROLS,
        "further": Further(ablation=SMOKE_ABLATION, controls=SMOKE_CONTROLS, agents=3),
        "repaired": dataclasses.replace(REPAIRED_RUNS, agents=2, iterations=3, evaluations=5, fresh=20),
        "variants": dataclasses.replace(VARIANT_RUNS, agents=2, iterations=2, evaluations=5, fresh=20),
        "sb3": dataclasses.replace(SB3_RUNS, agents=2, iterations=1, evaluations=5, fresh=20),
        "systems-xi": dataclasses.replace(OTHER_XI, agents=1, iterations=2, xis=(0, 4), fresh=20),
        "systems": dataclasses.replace(
            OTHER_SYSTEMS, agents=2, trpo_agents=0, trpo_tuned_agents=0, iterations=8, looks=5, fresh=20
        ),
    },
}


def scale_changes(study: str, scale: str) -> dict[str, Any]:
    """Return what is different in a study at a scale from the paper's: the fields by name."""
    fields = vars(SCALES[scale][study])
    return {name: value for name, value in fields.items() if value != getattr(SCALES["paper"][study], name)}


# ---------------------------------------------------------------------------------------------------------------------
# The agents


def paper_jobs(study: str, scale: str = "paper", seed: int = SEED) -> list[Job]:
    """Return the agents of a study.

    The studies are "xi" and "long" (with the Random baseline), "trpo", "ablation", "readings",
    "controls", "further", "repaired", "variants", "sb3", "systems-xi" and "systems".
    """
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    if study not in SCALES[scale]:
        raise ValueError(f"study must be one of {', '.join(SCALES[scale])}, not {study!r}")
    return list(planned_jobs(study, scale, seed))


@functools.cache
def planned_jobs(study: str, scale: str, seed: int) -> tuple[Job, ...]:
    """Return the agents of a study that is known at a scale; they are asked for often, and made once."""
    plan = SCALES[scale][study]
    if isinstance(plan, Ablation):
        return tuple(ablation_jobs(plan, seed))
    if isinstance(plan, Checkpointed):
        return tuple(checkpointed_jobs(plan, seed))
    if isinstance(plan, OtherSystems):
        return tuple(other_jobs(plan, seed))
    if isinstance(plan, ReadingsStudy):
        known = set(ablation_jobs(ABLATION, seed))  # which has some of them already
        jobs = dict.fromkeys(job for name in plan.readings for job in reading_jobs(plan, name, seed))
        return tuple(job for job in jobs if job not in known)
    if isinstance(plan, ControlStudy):
        return tuple(control_jobs(plan, seed))
    if isinstance(plan, Further):
        return tuple(planned_further(plan, seed))
    return tuple(study_jobs(plan, seed))


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
                seed + study.apart,
                fresh=study.fresh,
                record=study.record,
            )
    return jobs


def checkpointed_jobs(plan: Checkpointed, seed: int) -> list[Job]:
    """Return the agents of a study with checkpoints, cell by cell."""
    jobs = []
    for (algorithm, system), most in plan.cells.items():
        iterations = min(most, plan.iterations)
        jobs += make_jobs([algorithm], [system], [0], plan.agents, iterations, plan.evaluations, seed, fresh=plan.fresh)
    return jobs


def other_jobs(plan: OtherSystems, seed: int) -> list[Job]:
    """Return the agents on other systems: Random, the learners, SPAQL-R and TRPO, system by system."""
    jobs = []
    baselines = {
        "TRPO": (plan.trpo_agents, plan.iterations),
        "TRPO tuned": (plan.trpo_tuned_agents, plan.tuned_iterations),
    }
    for system in plan.systems:
        size = plan.agents, plan.iterations
        jobs += make_jobs(["Random"], [system], [0], plan.agents, 1, plan.evaluations, seed, fresh=plan.fresh)
        for algorithm, xi in plan.xis[system].items():
            jobs += make_jobs([algorithm], [system], [xi], *size, plan.evaluations, seed, "paper", plan.fresh,
                              looks=plan.looks)  # fmt: skip
        jobs += make_jobs(["SPAQL-R"], [system], [0], *size, plan.looks, seed, fresh=plan.fresh)
        for algorithm, (agents, thousands) in baselines.items():
            iterations = thousands * CHECKPOINT // TRPO_SAMPLES
            if agents:
                jobs += make_jobs([algorithm], [system], [0], agents, iterations, 1, seed, fresh=plan.fresh)
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
    reading = plan.readings[name]

    def read(study: Study, kinds: Mapping[str, tuple[str, ...]], iterations: int, roots: int) -> list[Job]:
        systems = {Reading().system(kind): algorithms for kind, algorithms in kinds.items()}
        same = dataclasses.replace(
            study, systems=tuple(systems), agents=plan.agents, iterations=iterations, fresh=plan.fresh
        )
        return [
            under_reading(job, reading, root)
            for root in range(seed, seed + roots)
            for job in study_jobs(same, seed)
            if job.algorithm in systems[job.system]
        ]

    jobs = read(LONG_RUNS, plan.kinds, plan.iterations, plan.roots if reading.starts == "shared" else 1)
    return jobs + (read(XI_STUDY, plan.xi_kinds, plan.xi_iterations, 1) if name in plan.xi_readings else [])


def under_reading(job: Job, reading: Reading, root: int) -> Job:
    """Return the agent that stands under a reading, with a root seed, for one of the text's on a pendulum."""
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


def control_jobs(plan: ControlStudy, seed: int) -> list[Job]:
    """Return the agents of the controls, part by part."""
    jobs = []
    for part in plan.parts:
        for system, algorithm, name in itertools.product(part.systems, part.learners, part.controls):
            control = CONTROLS[name]
            jobs += make_jobs(
                [algorithm],
                [system],
                [LONG_RUNS.xis[system][algorithm]],
                plan.agents,
                plan.iterations,
                part.evaluations,
                seed,
                control.rules,
                plan.fresh,
                **dict(control.parameters),
            )
    return jobs


def is_long(job: Job) -> bool:
    """Return whether a job has the ξ and N of the paper's long runs, whatever its rules."""
    xis, evaluations = LONG_RUNS.xis.get(job.system, {}), LONG_RUNS.evaluations.get(job.system)
    return xis.get(job.algorithm) == job.xi and job.evaluations == evaluations


def text_jobs(jobs: Iterable[Job], agents: int) -> list[Job]:
    """Return the agents under the text's rules that these are compared with, so many of each group.

    They are the long runs' where N is the paper's; groups that are among the given jobs are left out, and so are those
    of systems that the paper does not have.
    """
    jobs, text = list(jobs), Control()
    groups = {
        dataclasses.replace(job.group(), record=is_long(job), rules=text.rules, parameters=text.parameters)
        for job in jobs
        if job.system in LONG_RUNS.systems
    }
    wanted = sorted(groups - {job.group() for job in jobs}, key=Job.identity)
    return [dataclasses.replace(group, agent=agent) for group in wanted for agent in range(agents)]


def further_jobs(jobs: Iterable[Job], agents: int) -> list[Job]:
    """Return what brings each group of these agents to so many; of those only the end is kept."""
    groups: dict[Job, int] = {}
    for job in jobs:
        groups[job.group()] = max(groups.get(job.group(), 0), job.agent + 1)
    return [
        dataclasses.replace(group, agent=agent, record=False, brief=True)
        for group, known in groups.items()
        for agent in range(known, agents)
    ]


def further_of(jobs: Iterable[Job]) -> list[Job]:
    """Return the further agents of the groups of these, if the groups are the published ones."""
    jobs = list(jobs)
    groups = {dataclasses.replace(job.group(), record=False) for job in jobs} if scale_of(jobs) == "paper" else set()
    return [job for job in paper_jobs("further") if dataclasses.replace(job.group(), brief=False) in groups]


def planned_further(plan: Further, seed: int) -> list[Job]:
    """Return the further agents of the ablation and of the controls, and of the text's runs beside them."""
    own = ablation_jobs(plan.ablation, seed) + control_jobs(plan.controls, seed)
    return further_jobs(own + text_jobs(own, plan.ablation.agents), plan.agents)


@functools.cache
def studies_of_groups() -> dict[Job, str]:
    """Return the study of every declared group of agents at any scale, by its first job with the paper's root seed."""
    return {
        dataclasses.replace(job, agent=0, seed=SEED): study
        for scale, studies in SCALES.items()
        for study in studies
        for job in paper_jobs(study, scale)
    }


def study_of(job: Job) -> str:
    """Return the study that an agent is part of at some scale, with any root seed, or "other"."""
    return studies_of_groups().get(dataclasses.replace(job, agent=0, seed=SEED), "other")


def scale_of(jobs: Iterable[Job]) -> str:
    """Return the scale at which these are whole groups of the paper's runs (with any root seed), or "custom"."""
    given = agents_of_groups(jobs)
    for scale in SCALES:
        declared = declared_groups(scale)
        if all(agents == declared.get(group) for group, agents in given.items()):
            return scale
    return "custom"


def agents_of_groups(jobs: Iterable[Job]) -> dict[Job, set[int]]:
    """Return the places of the agents of each group, by its first job with the paper's root seed."""
    found: dict[Job, set[int]] = {}
    for job in jobs:
        found.setdefault(dataclasses.replace(job, agent=0, seed=SEED), set()).add(job.agent)
    return found


@functools.cache
def declared_groups(scale: str) -> dict[Job, set[int]]:
    """Return the agents of every group that is declared at a scale."""
    return agents_of_groups(job for study in SCALES[scale] for job in paper_jobs(study, scale))


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
    fresh, looks = check_integer("fresh", fresh), check_integer("looks", looks, at_least=0)
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
            jobs.append(Job(*group, agent, rules, fresh, bool(record), starts, others, looks))
    if not jobs:
        raise ValueError("there is nothing to run: give at least one algorithm, one system and one xi")
    return list(dict.fromkeys(jobs))


def has_reference(system: str) -> bool:
    """Return whether an environment's system has a state that SPAQL-TS can steer to."""
    known = system_of(make_env(system))
    return known is not None and known.reference is not None


@functools.cache
def parameters_of(algorithm: str) -> tuple[str, ...]:
    """Return the names of the parameters of an algorithm that a grid does not set by itself."""
    if algorithm not in ALGORITHMS:
        return ()
    own = inspect.signature(ALGORITHMS[algorithm]).parameters
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
    if algorithm not in (known := dict.fromkeys((*ALGORITHMS, *REPAIRED, *provenance.NETWORKS))):
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
    if algorithm in provenance.SB3 and (algorithm, system) not in SB3_SAMPLES:
        raise ValueError(f"rl-baselines3-zoo has no settings for {algorithm} on {system} that are known here")
