"""One agent of an experiment: what determines its numbers, and the numbers."""

import dataclasses
import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from spaql.rules import RULES, Rules

SEED = 2020  # the root seed of the paper's runs
FRESH = 1000  # episodes a trained agent is evaluated on afresh
BY_EPISODES = -1  # looks of an agent whose `iterations` are episodes, where they are thousand samples otherwise


@dataclasses.dataclass(frozen=True)
class Job:
    """An agent to train and evaluate.  Nothing else determines its numbers but the code.

    A job is written by the names of its fields, without those that have their defaults, so that a field or a rule that
    comes later with a default leaves every stored identity and digest as it is.
    """

    algorithm: str
    system: str
    xi: float
    iterations: int
    evaluations: int
    seed: int  # the root seed of the experiment
    agent: int  # the agent's place among those that share everything above
    rules: Rules = RULES["paper"]
    fresh: int = FRESH
    record: bool = False  # keep an episode and the fresh rewards
    starts: str = "independent"  # or "shared": all agents of a group begin their episodes in the same states
    parameters: tuple[tuple[str, Any], ...] = ()  # others of the agent, by name, in the order of their names
    looks: int = 0  # fresh episodes at each look at the policy while it trains; then `iterations` are thousand samples
    brief: bool = False  # keep the training as a single entry of the history: how it ended, and the samples it took

    def named(self) -> dict[str, Any]:
        """Return the fields by name as plain data, without those that have their defaults."""
        found = {
            field.name: getattr(self, field.name)
            for field in dataclasses.fields(self)
            if getattr(self, field.name) != field.default
        }
        if "rules" in found:
            found["rules"] = {
                name: choice for name, choice in self.rules._asdict().items() if choice != Rules._field_defaults[name]
            }
        if "parameters" in found:
            found["parameters"] = dict(self.parameters)
        return found | {"xi": float(self.xi)}

    def identity(self) -> str:
        """Return a text that two jobs share if and only if they are equal: canonical JSON of their fields."""
        return json.dumps(self.named(), sort_keys=True)

    @classmethod
    def parse(cls, named: dict[str, Any]) -> "Job":
        """Return the job of fields by name."""
        parameters = frozen(named.get("parameters", {}))
        return cls(**named | {"rules": Rules(**named.get("rules", {})), "parameters": parameters})

    def group(self) -> "Job":
        """Return the first job of those that differ from this one in their agent alone."""
        return dataclasses.replace(self, agent=0)


def frozen(parameters: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return parameters as a job holds them: sorted, and with tuples for lists."""

    def fixed(value: Any) -> Any:
        return tuple(map(fixed, value)) if isinstance(value, list | tuple | np.ndarray) else value

    return tuple(sorted((name, fixed(value)) for name, value in parameters.items()))


class History(np.ndarray):
    """A history of which only some columns are stored, or only its end."""

    def __getitem__(self, key: Any) -> Any:
        """Return a column or a row; of a column that is not stored say how to get it."""
        if isinstance(key, str) and key not in (self.dtype.names or ()):
            kept = ", ".join(self.dtype.names or ())
            raise LookupError(
                f"{key!r} of this agent's history is not stored, only {kept}: run([job], store=None) computes it again"
            )
        found = super().__getitem__(key)
        return np.asarray(found) if isinstance(key, str) else found


class Record(NamedTuple):
    """What an agent produced, or what is stored of it."""

    job: Job
    history: np.ndarray  # one entry per iteration, see `Agent.history`; if stored without it, one for how it ended
    fresh: np.ndarray  # mean and standard deviation of the rewards of fresh episodes under the policy kept
    rewards: np.ndarray = np.zeros(0, np.float32)  # of each of those episodes, if the job records
    episode: Mapping[str, np.ndarray] = {}  # states, actions and rewards of one more, likewise
    wall: float = 0.0  # seconds it took
    row: Mapping[str, float] | None = None  # of the table of agents, if it comes from there: see `outcomes.outcome`
    whole: str = ""  # the digest of all that was computed, if only a part of it is stored

    @property
    def only_end(self) -> bool:
        """Whether of the training only its end is kept."""
        return self.job.brief or (self.row is not None and len(self.history) < self.row["rows"])

    def digest(self) -> str:
        """Return a hash of the job and the numbers: two runs agree bit for bit if and only if their digests do."""
        if self.whole:
            return self.whole
        digest = hashlib.sha256(self.job.identity().encode())
        for array in (self.history, self.fresh, self.rewards, *(self.episode[key] for key in sorted(self.episode))):
            digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return digest.hexdigest()


def moments(returns: np.ndarray) -> np.ndarray:
    """Return the mean and the standard deviation of fresh episodes, as a record has them."""
    return np.array([returns.mean(), returns.std()])


def cell_of(job: Job) -> int:
    """Return a number for the algorithm, system and ξ of a job."""
    return zlib.crc32(f"{job.algorithm} {job.system} {float(job.xi)!r}".encode())


def seeds(job: Job) -> tuple[np.random.SeedSequence, np.random.SeedSequence]:
    """Return the seeds for an agent's learning (which spawns its environment's) and for its fresh evaluation.

    The root seed has a child for each algorithm, system and ξ, which has a child for each agent: independent streams,
    that do not depend on what else an experiment runs.
    """
    learning, evaluation = np.random.SeedSequence(job.seed, spawn_key=(cell_of(job), job.agent)).spawn(2)
    return learning, evaluation


def seed_of_group(job: Job) -> int:
    """Return a seed that all agents of a group share, for starts that they share."""
    return int(np.random.SeedSequence(job.seed, spawn_key=(cell_of(job),)).generate_state(1)[0])
