"""What is run: the paper's studies and the audit's, as data, and the agents they consist of."""

import functools
import itertools
from collections.abc import Iterable
from typing import Any

import gymnasium as gym

from spaql.checks import check_integer, check_number
from spaql.paper.runs import provenance
from spaql.paper.runs.job import ALGORITHMS, FRESH, Job
from spaql.rules import RULES, Rules, check_rules
from spaql.systems import make_env, system_of

SEED = 2020  # the root seed of the paper's runs


XIS = (0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160)

LEARNERS = ("AQL", "SPAQL", "SPAQL-TS")

XI_STUDY = {  # the effect of ξ: every learner with every ξ
    "systems": ("Pendulum-v1", "spaql/PendulumScaled-v1", "CartPole-v0"),
    "xis": XIS,
    "iterations": 100,
    "evaluations": {"Pendulum-v1": 20, "spaql/PendulumScaled-v1": 20, "CartPole-v0": 20},
    "agents": 20,
}

LONG_RUNS = {  # the ξ found best for each learner; the text names none for the discrete Pendulum, which gets Pendulum's
    "systems": ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"),
    "xis": {
        "Pendulum-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
        "spaql/PendulumDiscrete-v1": {"AQL": 20, "SPAQL": 4, "SPAQL-TS": 0.4},
        "CartPole-v0": {"AQL": 120, "SPAQL": 20, "SPAQL-TS": 20},
    },
    "iterations": 2000,
    "evaluations": {"Pendulum-v1": 20, "spaql/PendulumDiscrete-v1": 20, "CartPole-v0": 100},
    "agents": 20,
}

TRPO_RUNS = {  # an iteration of TRPO is 4,000 samples; N does not apply
    "systems": ("Pendulum-v1", "CartPole-v0"),
    "iterations": 100,
    "evaluations": {"Pendulum-v1": 1, "CartPole-v0": 1},
    "agents": 20,
}

# The text's rules with one of the released program's, by the name of the rule; and both whole sets.
SWITCHES = {
    name: RULES["paper"]._replace(**{name: released}) for name, released in RULES["released"]._asdict().items()
} | RULES

# The rules that an algorithm has no use for.
UNUSED = {"AQL": {"distance", "heating", "reset", "normalisation"}, "SPAQL": {"distance"}, "SPAQL-TS": set()}

ABLATION = {  # the long runs under other rules (each alone, then all), with another N, and the ξ study's 0 on CartPole
    "parts": (
        {"systems": ("Pendulum-v1", "CartPole-v0"), "rules": (*Rules._fields, "released")},
        {"systems": ("CartPole-v0",), "rules": ("ties", "released"), "xi": 0, "iterations": 100, "evaluations": 20},
        {"systems": ("CartPole-v0",), "rules": ("released",), "evaluations": 20},
        {"systems": ("CartPole-v0",), "rules": ("paper",), "learners": ("SPAQL", "SPAQL-TS"), "evaluations": 20},
        {"systems": ("CartPole-v0",), "rules": ("paper",), "learners": ("SPAQL",), "evaluations": 5},
        {"systems": ("Pendulum-v1",), "rules": ("paper",), "learners": ("SPAQL",), "evaluations": 5},
        {"systems": ("Pendulum-v1",), "rules": ("paper",), "learners": ("SPAQL",), "evaluations": 100},
        {"systems": ("spaql/Pendulum-v0",), "rules": ("released",)},
    ),
    "like": {"spaql/Pendulum-v0": "Pendulum-v1"},  # whose ξ and N it gets
    "iterations": 2000,
    "agents": 20,
}

# What a smaller scale replaces.
SCALES: dict[str, dict[str, dict[str, Any]]] = {
    "paper": {"xi": {}, "long": {}, "trpo": {}, "ablation": {}},
    "quick": {
        "xi": {"agents": 10},
        "long": {"agents": 10, "iterations": 1000},
        "trpo": {"agents": 2, "iterations": 5},
        "ablation": {"agents": 10, "iterations": 1000},
    },
    "smoke": {
        "xi": {"agents": 2, "iterations": 4, "xis": (0, 4, 160), "fresh": 20},
        "long": {"agents": 2, "iterations": 10, "fresh": 20},
        "trpo": {"agents": 2, "iterations": 1, "fresh": 20},
        "ablation": {"agents": 2, "iterations": 10, "fresh": 20},
    },
}


def paper_jobs(study: str, scale: str = "paper", seed: int = SEED) -> list[Job]:
    """Return the agents of the paper's study "xi", "long" (both with the Random baseline), "trpo" or "ablation"."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {', '.join(SCALES)}, not {scale!r}")
    declared = {"xi": XI_STUDY, "long": LONG_RUNS, "trpo": TRPO_RUNS, "ablation": ABLATION}
    if study not in declared:
        raise ValueError(f"study must be one of {', '.join(declared)}, not {study!r}")
    plan = {"fresh": FRESH} | declared[study] | SCALES[scale][study]
    if study == "ablation":
        return ablation_jobs(plan, seed)
    jobs = []
    for system in plan["systems"]:
        if study == "xi":
            cells = [("Random", 0), *itertools.product(LEARNERS, plan["xis"])]
        elif study == "long":
            cells = [("Random", 0), *plan["xis"][system].items()]
        else:
            cells = [(algorithm, 0) for algorithm in provenance.TRPO]
        for algorithm, xi in cells:
            jobs += make_jobs(
                [algorithm],
                [system],
                [xi],
                plan["agents"],
                plan["iterations"],
                plan["evaluations"][system],
                seed,
                fresh=plan["fresh"],
                record=study != "xi",
            )
    return jobs


def ablation_jobs(plan: dict[str, Any], seed: int) -> list[Job]:
    """Return the agents of the ablation, part by part."""
    jobs = []
    for part in plan["parts"]:
        for system, algorithm, rules in itertools.product(
            part["systems"], part.get("learners", LEARNERS), part["rules"]
        ):
            if rules in UNUSED[algorithm]:
                continue
            long = plan["like"].get(system, system)
            jobs += make_jobs(
                [algorithm],
                [system],
                [part.get("xi", LONG_RUNS["xis"][long][algorithm])],
                plan["agents"],
                min(part.get("iterations", plan["iterations"]), plan["iterations"]),
                part.get("evaluations", LONG_RUNS["evaluations"][long]),
                seed,
                SWITCHES[rules],
                plan["fresh"],
            )
    return jobs


def scale_of(jobs: Iterable[Job]) -> str:
    """Return the scale at which these are whole groups of the paper's runs (with any root seed), or "custom"."""

    def groups(jobs: Iterable[Job]) -> dict[Job, set[int]]:
        found: dict[Job, set[int]] = {}
        for job in jobs:
            found.setdefault(job._replace(agent=0, seed=SEED), set()).add(job.agent)
        return found

    given = groups(jobs)
    for scale in SCALES:
        declared = groups(job for study in SCALES[scale] for job in paper_jobs(study, scale))
        if all(agents == declared.get(group) for group, agents in given.items()):
            return scale
    return "custom"


def make_jobs(
    algorithms: Iterable[str],
    systems: Iterable[str],
    xis: Iterable[float],
    agents: int,
    iterations: int,
    evaluations: int,
    seed: int = SEED,
    rules: str | Rules = "paper",
    fresh: int = FRESH,
    record: bool = False,
) -> list[Job]:
    """Return the agents of a grid: every algorithm on every system with every ξ (Random once for all ξ)."""
    for name, given in (("algorithms", algorithms), ("systems", systems), ("xis", xis)):
        if isinstance(given, str):
            raise ValueError(f"{name} must be a list, not the text {given!r}")
    check_integer("agents", agents)
    seed = check_integer("seed", seed, at_least=0)
    iterations, evaluations = check_integer("iterations", iterations), check_integer("evaluations", evaluations)
    fresh = check_integer("fresh", fresh)
    rules, xis = check_rules(rules), list(xis)
    jobs = []
    for algorithm, system in itertools.product(algorithms, systems):
        check_pair(algorithm, system)
        for xi, agent in itertools.product(xis, range(agents)):
            xi = check_number("xi", xi, at_least=0.0) if algorithm in LEARNERS else 0.0
            jobs.append(Job(algorithm, system, xi, iterations, evaluations, seed, agent, rules, fresh, bool(record)))
    if not jobs:
        raise ValueError("there is nothing to run: give at least one algorithm, one system and one xi")
    return list(dict.fromkeys(jobs))


def has_reference(system: str) -> bool:
    """Return whether an environment's system has a state that SPAQL-TS can steer to."""
    known = system_of(make_env(system))
    return known is not None and known.reference is not None


@functools.cache
def check_pair(algorithm: str, system: str) -> None:
    """Raise an error here and now if an algorithm is unknown or cannot run on a system."""
    gym.spec(system)
    if algorithm not in (known := (*ALGORITHMS, *provenance.TRPO)):
        raise ValueError(f"algorithm must be one of {', '.join(known)}, not {algorithm!r}")
    if algorithm == "SPAQL-TS" and not has_reference(system):
        raise ValueError(f"SPAQL-TS needs a reference state, and a grid has none for {system}: train SPAQLTS itself")
    if algorithm in provenance.TRPO and system not in TRPO_RUNS["systems"]:
        raise ValueError(f"TRPO runs on {' and '.join(TRPO_RUNS['systems'])}, not on {system}")
