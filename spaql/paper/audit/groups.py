"""Groups of agents that differ in nothing but their seeds: what a claim is about."""

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spaql.paper.audit.longer import load_longer
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import paper_jobs
from spaql.policies.interval import Interval
from spaql.systems import make_env, system_of

AGENTS = 20  # behind each of the paper's numbers

BATCH, EARLY = 200, 200  # samples in a batch of the paper's comparison, and batches up to which SPAQL leads in it

BUDGET = 400_000  # samples each algorithm trains on, as the paper counts them
EQUAL = 100_000  # samples at which all are compared on other systems, everything counted

KEPT_BEST = ("SPAQL", "SPAQL-TS")  # whose reported number is the best so far, chosen by their rollouts


class MissingError(LookupError):
    """Results that a claim needs are not stored."""


class Group(NamedTuple):
    """What a group of agents ended with, one number per agent, and its learning curves."""

    rewards: np.ndarray  # as the paper reports them: the best so far for SPAQL and SPAQL-TS
    fresh: np.ndarray  # the policy kept, on fresh episodes
    arms: np.ndarray
    curves: np.ndarray  # rewards, one row per agent
    batches: np.ndarray  # of 200 samples, after which the policy of each column of the curves was there
    more: Mapping[str, np.ndarray] = {}  # other numbers, see `other_columns`

    def column(self, name: str) -> np.ndarray:
        """Return one number per agent: a field, a mean over the curve's "early" or "late" part, or one of `more`."""
        if name in ("early", "late") and not self.batches.size:
            raise MissingError(
                f"results missing: of some of these agents only the end is stored, not what {name!r} needs"
            )
        if name == "early":
            return self.curves[:, (self.batches > 0) & (self.batches <= EARLY)].mean(axis=1)
        if name == "late":
            return self.curves[:, self.batches > 0.75 * self.batches[-1]].mean(axis=1)
        if name in self._fields:
            return getattr(self, name)
        if name not in self.more:
            raise MissingError(f"results missing: these agents were stored without what {name!r} needs")
        return self.more[name]


Key = tuple[str, str, str, float]  # study, system, algorithm, ξ


def make_group(records: Iterable[Record]) -> Group:
    """Return what these agents ended with; they differ in nothing but their seeds.

    There are no curves, nor numbers made of them, if only the end is kept of one of them.
    """
    records = sorted(records, key=lambda record: record.job.agent)
    brief = any(record.job.brief for record in records)
    # Looks at agents come after samples, not iterations, so that curves differ in length.
    shortest = 0 if brief else min(len(record.history) for record in records)
    return Group(
        rewards=np.array([record.history["rewards"][-1] for record in records]),
        fresh=np.array([record.fresh[0] for record in records]),
        arms=np.array([record.history["arms"][-1] for record in records], float),
        curves=np.array([record.history["rewards"][:shortest] for record in records]),
        batches=batches_of(records[0])[:shortest],
        more={} if brief else other_columns(records),
    )


def batches_of(record: Record) -> np.ndarray:
    """Return after how many batches of 200 samples the policies behind an agent's rewards were there.

    The paper counts an iteration of its algorithms as one batch, even where the pole falls sooner, and their rewards
    are those of the policy after it.  TRPO's are those of the episodes that it learned from, so of the policy before.
    """
    if record.job.algorithm not in provenance.TRPO:
        return np.arange(1, len(record.history) + 1)
    return before_update(record.history["steps"]) / BATCH


def before_update(steps: np.ndarray) -> np.ndarray:
    """Return how many samples were taken before each iteration began."""
    return np.cumsum(steps) - steps


# ---------------------------------------------------------------------------------------------------------------------
# What some claims ask beyond rewards and arms

FALLEN, HELD = 20, 200  # steps after which, as the paper says, a pole has fallen, or was held to the end
CONTROLLED = -500.0  # a pendulum that earns this stands for most of an episode
NEAR_UP, NEAR_POLE = 0.5, 0.1  # rad from upright: a pendulum that stands, a pole that is kept, as the paper says


def other_columns(records: list[Record]) -> dict[str, np.ndarray]:
    """Return further numbers, one per agent: samples, how a curve rises, fresh episodes, and a recorded one.

    `training` is how many samples an agent trained on; `early_all` the mean reward over the first 200 batches if the
    rollouts that choose an agent are counted as samples, `equal_all` over the first 500, `budget_all` over all 2,000;
    `progress` the rise of a curve from its first quarter to its last, `rise_late` the share of its rise in its second
    half.  Of fresh episodes, `better` is the mean of that of TRPO's two policies that its agents do better with;
    `held`, `fallen` and `controlled` are shares.  Of the recorded one, `steady` is for how many of its last steps it
    stays upright, `stands` whether for the last quarter, `kept` the share of its steps near upright.
    """
    found = {
        "training": np.array([record.history["steps"].sum() for record in records], float),
        "early_all": np.array([mean_of_everything(record, EARLY) for record in records]),
        "equal_all": np.array([mean_of_everything(record, EQUAL // BATCH) for record in records]),
        "budget_all": np.array([mean_of_everything(record, BUDGET // BATCH) for record in records]),
        "progress": np.array([risen(record.history["rewards"]) for record in records]),
        "rise_late": np.array([rise_late(record.history["rewards"]) for record in records]),
        "better": better_policies(records),
    }
    if all(record.rewards.size for record in records):
        returns = [record.rewards for record in records]
        found["held"] = np.array([np.mean(given >= HELD) for given in returns])
        found["fallen"] = np.array([np.mean(given <= FALLEN) for given in returns])
        found["controlled"] = np.array([np.mean(given >= CONTROLLED) for given in returns])
        tilts = [tilt(record) for record in records]
        found["steady"] = np.array([steps_at_end(given <= NEAR_UP) for given in tilts], float)
        found["stands"] = (found["steady"] >= HELD / 4).astype(float)
        found["kept"] = np.array([np.mean(given <= NEAR_POLE) for given in tilts])
    return found


def mean_of_everything(record: Record, batches: int) -> float:
    """Return the mean reward over so many batches, all samples counted that the algorithm needs.

    At every 20th batch it is the reward of the newest policy that its samples suffice for; before the first, that of
    the first.
    """
    steps, rollouts = record.history["steps"], record.history["evaluation_steps"]
    if record.job.algorithm in provenance.TRPO:
        spent = before_update(steps)
    else:
        spent = np.cumsum(steps + (rollouts if record.job.algorithm in KEPT_BEST else 0))
    at = np.searchsorted(spent, np.arange(20, batches + 1, 20) * BATCH, side="right") - 1
    return float(record.history["rewards"][np.maximum(at, 0)].mean())


def better_policies(records: Iterable[Record]) -> np.ndarray:
    """Return what each agent's policy earns on fresh episodes at the end.

    TRPO has two, with its noise and without.  One of them counts for all agents of a system and setting, the one that
    earns more in the mean: the better one of each agent would be chosen by the episodes that it is judged by.
    """
    records = list(records)
    ends = np.array([record.fresh[:3:2] if record.job.algorithm in provenance.TRPO else (record.fresh[0],) * 2
                     for record in records])  # fmt: skip
    cells = np.array([f"{record.job.algorithm} on {record.job.system}" for record in records])
    found = np.empty(len(records))
    for cell in np.unique(cells):
        mine = ends[cells == cell]
        found[cells == cell] = mine[:, mine.mean(axis=0).argmax()]
    return found


def risen(rewards: np.ndarray) -> float:
    """Return by how much the mean of a curve's last quarter exceeds that of its first."""
    quarter = max(1, len(rewards) // 4)
    return float(rewards[-quarter:].mean() - rewards[:quarter].mean())


def rise_late(rewards: np.ndarray) -> float:
    """Return the share of a curve's rise that comes in its second half."""
    rise = rewards[-1] - rewards[0]
    return float((rewards[-1] - rewards[len(rewards) // 2 - 1]) / rise) if rise else 0.0


def tilt(record: Record) -> np.ndarray:
    """Return how far the most telling variable of a recorded episode is from zero, on its shortest way round."""
    place, period = telling(record.job.system)
    values = record.episode["states"][:, place]
    return np.abs((values + period / 2) % period - period / 2 if period else values)


@functools.cache
def telling(env_id: str) -> tuple[int, float]:
    """Return the place in the state of an environment's most telling variable, and the period of that."""
    system = system_of(make_env(env_id))
    if system is None:
        raise ValueError(f"{env_id} is not registered")
    place = system.telling[0]
    return place, system.state[place].period


def steps_at_end(inside: np.ndarray) -> int:
    """Return for how many steps at the end of an episode something was so."""
    outside = np.flatnonzero(~inside)
    return len(inside) - (outside[-1] + 1 if outside.size else 0)


# ---------------------------------------------------------------------------------------------------------------------
# Groups by name


def load_groups(store: str | os.PathLike | None = None, studies: Iterable[str] = ("xi", "long", "trpo")) -> dict:
    """Return the groups of agents of the paper's studies of which every agent is stored, at the paper's scale."""
    store = Path(store) if store else provenance.default_store()
    groups: dict[Key, Group] = {}
    for study in studies:
        wanted: dict[Key, list] = {}
        for job in paper_jobs(study):
            wanted.setdefault((study, job.system, job.algorithm, job.xi), []).append(job)
        records, _ = load_stored([job for jobs in wanted.values() for job in jobs], store, repair=False)
        for key, jobs in wanted.items():
            if all(job in records for job in jobs):
                groups[key] = make_group(records[job] for job in jobs)
    for (system, algorithm), columns in load_longer(store).items():
        for key in (key for key in groups if key[:3] == ("long", system, algorithm)):
            groups[key] = groups[key]._replace(more={**groups[key].more, **columns})
    return groups


def with_further(groups: Mapping[Key, Group], store: str | os.PathLike | None = None) -> dict[Key, Group]:
    """Return these groups, with the further agents (see `Further`) of those of which all are stored."""
    store = Path(store) if store else provenance.default_store()
    keys = {
        dataclasses.replace(job.group(), record=False, brief=True): (study, job.system, job.algorithm, job.xi)
        for study in ("xi", "long")
        for job in paper_jobs(study)
    }
    wanted: dict[Key, list[Job]] = {}
    for job in paper_jobs("further"):
        if (key := keys.get(job.group())) is not None and key in groups:
            wanted.setdefault(key, []).append(job)
    records, _ = load_stored([job for jobs in wanted.values() for job in jobs], store, repair=False)
    more = {key: jobs for key, jobs in wanted.items() if all(job in records for job in jobs)}
    return dict(groups) | {
        key: together(groups[key], make_group(records[job] for job in jobs)) for key, jobs in more.items()
    }


def together(one: Group, other: Group) -> Group:
    """Return two groups as one, with what both ended with; of some agents nothing else may be known."""
    rewards, fresh, arms = (np.concatenate(pair) for pair in zip(one[:3], other[:3], strict=True))
    return Group(rewards, fresh, arms, curves=np.zeros((rewards.size, 0)), batches=np.zeros(0))


def select(groups: Mapping[Key, Group], name: str) -> list[Group]:
    """Return the groups that a claim calls "study, system, algorithm[, ξ]", or raise `MissingError`."""
    study, system, algorithm, *xis = name.split(", ")
    wanted = {key for key in expected_keys() if key[:3] == (study, system, algorithm)}
    if xis:
        wanted = {key for key in wanted if fits(key[3], xis[0])}
    if not wanted:
        raise ValueError(f"no study of the paper has a group {name!r}")
    if absent := wanted - set(groups):
        raise MissingError(f"results missing: {len(absent)} of {len(wanted)} groups of {name} are not stored")
    return [groups[key] for key in sorted(wanted)]


def fits(xi: float, asked: str) -> bool:
    """Return whether a ξ is one of those asked for: "all", a number, "<" (but not 0) or ">" a number."""
    if asked == "all":
        return True
    if asked[0] in "<>":
        return 0 < xi < float(asked[1:]) if asked[0] == "<" else xi > float(asked[1:])
    return xi == float(asked)


@functools.cache
def expected_keys() -> frozenset[Key]:
    """Return the keys of all groups of the studies that are judged."""
    studies = ("xi", "long", "trpo", "repaired", "systems")
    return frozenset((study, job.system, job.algorithm, job.xi) for study in studies for job in paper_jobs(study))


def pooled(groups: Mapping[Key, Group], name: str, column: str) -> np.ndarray:
    """Return one number per agent, of all groups of a name."""
    return np.concatenate([group.column(column) for group in select(groups, name)])


def spell(name: str, found: Interval) -> dict[str, float]:
    """Return the columns of an interval: its name, and the name with the ends."""
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def grouped(records: Iterable[Record]) -> dict[Job, Group]:
    """Return groups of agents that differ in nothing but their seeds, whatever is kept of them.

    They go by the job of the first, as if unrecorded and with all of its history.
    """
    cells: dict[Job, list[Record]] = {}
    for record in records:
        cells.setdefault(dataclasses.replace(record.job, agent=0, record=False, brief=False), []).append(record)
    return {job: make_group(cell) for job, cell in cells.items()}
