"""Groups of agents that differ in nothing but their seeds: what a claim is about."""

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import paper_jobs
from spaql.policies.interval import Interval

AGENTS = 20  # behind each of the paper's numbers

BATCH, EARLY = 200, 200  # samples in a batch of the paper's comparison, and batches up to which SPAQL leads in it


class Group(NamedTuple):
    """What a group of agents ended with, one number per agent, and its learning curves."""

    rewards: np.ndarray  # as the paper reports them: the best so far for SPAQL and SPAQL-TS
    fresh: np.ndarray  # the policy kept, on fresh episodes
    arms: np.ndarray
    curves: np.ndarray  # rewards, one row per agent
    batches: np.ndarray  # of 200 samples, after which each column of the curves was reached

    def column(self, name: str) -> np.ndarray:
        """Return one number per agent: a field, or the mean of the curve over its "early" or "late" part."""
        if name == "early":
            return self.curves[:, self.batches <= EARLY].mean(axis=1)
        if name == "late":
            return self.curves[:, self.batches > 0.75 * self.batches[-1]].mean(axis=1)
        return getattr(self, name)


Key = tuple[str, str, str, float]  # study, system, algorithm, ξ


class MissingError(LookupError):
    """Results that a claim needs are not stored."""


def make_group(records: Iterable[Record]) -> Group:
    """Return what these agents ended with; they differ in nothing but their seeds."""
    records = sorted(records, key=lambda record: record.job.agent)
    job, history = records[0].job, records[0].history
    # The paper counts an iteration of the others as 200 samples, even where the pole falls sooner.
    batches = (
        np.cumsum(history["steps"]) / BATCH if job.algorithm in provenance.TRPO else np.arange(1, len(history) + 1)
    )
    return Group(
        rewards=np.array([record.history["rewards"][-1] for record in records]),
        fresh=np.array([record.fresh[0] for record in records]),
        arms=np.array([record.history["arms"][-1] for record in records], float),
        curves=np.array([record.history["rewards"] for record in records]),
        batches=batches,
    )


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
    return groups


def select(groups: Mapping[Key, Group], name: str) -> list[Group]:
    """Return the groups that a claim calls "study, system, algorithm[, ξ]", or raise `MissingError`."""
    study, system, algorithm, *xis = name.split(", ")
    wanted = {key for key in expected_keys() if key[:3] == (study, system, algorithm)}
    if xis and xis[0] != "all":
        wanted = {key for key in wanted if (key[3] > 0 if xis[0] == ">0" else key[3] == float(xis[0]))}
    if not wanted:
        raise ValueError(f"no study of the paper has a group {name!r}")
    if absent := wanted - set(groups):
        raise MissingError(f"results missing: {len(absent)} of {len(wanted)} groups of {name} are not stored")
    return [groups[key] for key in sorted(wanted)]


@functools.cache
def expected_keys() -> frozenset[Key]:
    """Return the keys of all groups that the paper's studies declare."""
    return frozenset(
        (study, job.system, job.algorithm, job.xi) for study in ("xi", "long", "trpo") for job in paper_jobs(study)
    )


def pooled(groups: Mapping[Key, Group], name: str, column: str) -> np.ndarray:
    """Return one number per agent, of all groups of a name."""
    return np.concatenate([group.column(column) for group in select(groups, name)])


def spell(name: str, found: Interval) -> dict[str, float]:
    """Return the columns of an interval: its name, and the name with the ends."""
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def grouped(records: Iterable[Record]) -> dict[Job, Group]:
    """Return groups of agents that differ in nothing but their seeds, by the job of the first, as if unrecorded."""
    cells: dict[Job, list[Record]] = {}
    for record in records:
        cells.setdefault(dataclasses.replace(record.job, agent=0, record=False), []).append(record)
    return {job: make_group(cell) for job, cell in cells.items()}
