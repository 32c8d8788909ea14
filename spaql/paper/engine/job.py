"""One agent of a study: all that determines its numbers, and the seeds that follow from it."""

import dataclasses
import json
import zlib

import numpy as np

import spaql.paper.chapters.small_systems  # noqa: F401  (systems that jobs name, in whatever process they run)
from spaql.rules import RULES, Rules

SEED = 2020  # the root seed of the paper's runs
FRESH = 1000  # episodes a trained agent is evaluated on afresh


@dataclasses.dataclass(frozen=True)
class Job:
    """An agent to train and evaluate.  Nothing else determines its numbers but the code.

    Of algorithms that count samples (see `algorithms.Algorithm`) `iterations` are thousands of samples, and
    `evaluations` the fresh episodes that the policy plays after each thousand.
    """

    algorithm: str
    system: str
    xi: float
    iterations: int
    evaluations: int
    seed: int  # the root seed of the study
    agent: int  # the agent's place among those that share everything above
    rules: Rules = RULES["paper"]
    fresh: int = FRESH
    starts: str = "independent"  # or "shared": all agents of a group begin their episodes in the same states
    parameters: tuple = ()  # others of the agent, as pairs of name and value, in the order of their names
    study: str = dataclasses.field(default="", compare=False)  # where it is stored

    def group(self) -> "Job":
        """Return the first of those that differ from this one in their agent alone."""
        return dataclasses.replace(self, agent=0)


def frozen(parameters):
    """Return parameters as a job holds them: sorted, and with tuples for lists."""

    def fixed(value):
        return tuple(map(fixed, value)) if isinstance(value, list | tuple | np.ndarray) else value

    return tuple(sorted((name, fixed(value)) for name, value in parameters.items()))


FIELDS = {field.name: field.name for field in dataclasses.fields(Job) if field.name != "study"}
FIELDS |= {"evaluations": "N", "fresh": "fresh_episodes"}  # whose columns have other names


def columns_of(job: Job) -> dict:
    """Return a job as the columns of its row."""
    row = {column: getattr(job, field) for field, column in FIELDS.items()}
    return row | {"xi": float(job.xi), "rules": rules_text(job.rules), "parameters": json.dumps(dict(job.parameters))}


def job_of(row, study: str = "") -> Job:
    """Return the job of a row."""
    fields = {field: row[column] for field, column in FIELDS.items()}
    rules = fields["rules"]
    fields["rules"] = RULES.get(rules) or Rules(**dict(part.split("=") for part in rules.split(", ")))
    fields["parameters"] = frozen(json.loads(fields["parameters"]))
    return Job(**fields, study=study or row.get("study", ""))


def rules_text(rules: Rules) -> str:
    """Return "paper", "released", or what differs from the paper's rules."""
    for name, known in RULES.items():
        if rules == known:
            return name
    return ", ".join(f"{name}={rule}" for name, rule in rules._asdict().items() if rule != Rules._field_defaults[name])


def cell_of(job: Job) -> int:
    """Return a number for the algorithm, system and ξ of a job."""
    return zlib.crc32(f"{job.algorithm} {job.system} {float(job.xi)!r}".encode())


def seeds(job: Job) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """Return the seeds for an agent's learning (which spawns its environment's) and evaluation, whatever else runs."""
    learning, evaluation = np.random.SeedSequence(job.seed, spawn_key=(cell_of(job), job.agent)).spawn(2)
    return learning, evaluation


def seed_of_group(job: Job) -> int:
    """Return a seed that all agents of a group share, so that agents share start states."""
    return int(np.random.SeedSequence(job.seed, spawn_key=(cell_of(job),)).generate_state(1)[0])
