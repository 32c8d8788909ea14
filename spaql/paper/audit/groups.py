"""Groups of agents that differ in nothing but their seeds: what a claim is about."""

import dataclasses
import functools
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spaql.paper.audit.longer import load_longer
from spaql.paper.frames import finals
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.outcomes import OUTCOMES, batches, outcome
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import study

AGENTS = 20  # behind each of the paper's numbers

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
    more: Mapping[str, np.ndarray] = {}  # other numbers, see `outcomes.outcome`

    def column(self, name: str) -> np.ndarray:
        """Return one number per agent: a field, or one of `more`."""
        if name in self._fields:
            return getattr(self, name)
        if name not in self.more:
            raise MissingError(f"results missing: these agents were stored without what {name!r} needs")
        return self.more[name]


Key = tuple[str, str, str, float]  # study, system, algorithm, ξ


def make_group(records: Iterable[Record]) -> Group:
    """Return what these agents ended with; they differ in nothing but their seeds.

    There are no curves if only the end is kept of one of them.
    """
    records = sorted(records, key=lambda record: record.job.agent)
    # Evaluations of some come after samples, not iterations, so that curves differ in length.
    shortest = 0 if any(record.only_end for record in records) else min(len(record.history) for record in records)
    found = [outcome(record) for record in records]
    columns = {name: np.array([numbers[name] for numbers in found], float) for name in OUTCOMES}
    known = {name: column for name, column in columns.items() if not np.isnan(column).any()}
    return Group(
        rewards=columns["rewards"],
        fresh=columns["fresh"],
        arms=columns["arms"],
        curves=np.array([record.history["rewards"][:shortest] for record in records]),
        batches=batches(records[0])[:shortest] if shortest else np.zeros(0),
        more=known | {"training": columns["steps"], "better": better_policies(records)},
    )


def better_policies(records: Iterable[Record]) -> np.ndarray:
    """Return what each agent's policy earns on fresh episodes at the end.

    TRPO has two, with its noise and without.  One of them counts for all agents of a system and setting, the one that
    earns more in the mean: the better one of each agent would be chosen by the episodes that it is judged by.
    """
    records = list(records)
    found = [outcome(record) for record in records]
    if all(np.isnan(numbers["fresh_deterministic"]) for numbers in found):
        return np.array([numbers["fresh"] for numbers in found])
    frame = finals(records)
    quiet = frame.fresh_deterministic.fillna(frame.fresh)
    means = frame.assign(quiet=quiet).groupby(["system", "algorithm"])[["fresh", "quiet"]].transform("mean")
    return frame.fresh.where(means.fresh >= means.quiet, quiet).to_numpy()


# ---------------------------------------------------------------------------------------------------------------------
# Groups by name


def keyed_jobs(studies: Iterable[str]) -> dict[Key, list[Job]]:
    """Return the agents of studies, group by group."""
    found: dict[Key, list[Job]] = {}
    for name in studies:
        for job in study(name):
            found.setdefault((name, job.system, job.algorithm, job.xi), []).append(job)
    return found


def stored_groups(wanted: Mapping[Key, list[Job]], store: str | os.PathLike | None = None) -> dict[Key, Group]:
    """Return those of these groups of which every agent is stored."""
    jobs = [job for group in wanted.values() for job in group]
    records, _ = load_stored(jobs, Path(store or provenance.default_store()), repair=False)
    return {
        key: make_group(records[job] for job in group)
        for key, group in wanted.items()
        if all(job in records for job in group)
    }


def load_groups(
    store: str | os.PathLike | None = None, studies: Iterable[str] = ("xi", "long", "trpo")
) -> dict[Key, Group]:
    """Return the groups of agents of the paper's studies of which every agent is stored, at the paper's scale."""
    groups = stored_groups(keyed_jobs(studies), store)
    for (system, algorithm), columns in load_longer(store).items():
        for key in (key for key in groups if key[:3] == ("long", system, algorithm)):
            groups[key] = groups[key]._replace(more={**groups[key].more, **columns})
    return groups


def with_further(groups: Mapping[Key, Group], store: str | os.PathLike | None = None) -> dict[Key, Group]:
    """Return these groups, with the further agents (see `study("further")`) of those of which all are stored."""
    keys = {
        dataclasses.replace(jobs[0].group(), record=False, brief=True): key
        for key, jobs in keyed_jobs(("xi", "long")).items()
    }
    wanted: dict[Key, list[Job]] = {}
    for job in study("further"):
        if (key := keys.get(job.group())) is not None and key in groups:
            wanted.setdefault(key, []).append(job)
    more = stored_groups(wanted, store)
    return dict(groups) | {key: together(groups[key], group) for key, group in more.items()}


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
    return frozenset(keyed_jobs(("xi", "long", "trpo", "repaired", "systems")))


def pooled(groups: Mapping[Key, Group], name: str, column: str) -> np.ndarray:
    """Return one number per agent, of all groups of a name."""
    return np.concatenate([group.column(column) for group in select(groups, name)])
