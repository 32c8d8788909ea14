"""Groups of agents that differ in nothing but their seeds: what a claim is about."""

import dataclasses
import functools
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from spaql.paper.engine import store
from spaql.paper.engine.job import Job, job_of
from spaql.paper.engine.outcomes import batches
from spaql.paper.engine.provenance import results
from spaql.paper.engine.study import published

AGENTS = 20  # behind each of the paper's numbers
STUDIES = ("xi", "long", "trpo")  # of the text's experiment
CHANGED = ("ablation", "readings")  # which have agents for them as well, under other rules and readings

Key = tuple[str, str, str, float]  # study, system, algorithm, ξ
Groups = Mapping[Key, pd.DataFrame]  # one row per agent, as the engine stores them


class MissingError(LookupError):
    """Results that a claim needs are not stored."""


@functools.cache
def jobs_of(study: str) -> dict[Key, list[Job]]:
    """Return the published agents of a study, group by group."""
    found: dict[Key, list[Job]] = {}
    for job in published(study):
        found.setdefault((study, job.system, job.algorithm, job.xi), []).append(job)
    return found


def load_groups(studies: Iterable[str] = STUDIES) -> Groups:
    """Return the groups of published agents of which every agent is stored."""
    return stored_groups({key: jobs for study in studies for key, jobs in jobs_of(study).items()})


def stored_groups(wanted: Mapping[Key, list[Job]]) -> dict[Key, pd.DataFrame]:
    """Return those of these groups of which every agent is stored, whichever study it was run for."""
    files = dict.fromkeys((*(key[0] for key in wanted), *CHANGED))
    jobs = {job for group in wanted.values() for job in group}
    found = store.find([dataclasses.replace(job, study=file) for job in jobs for file in files], [results()])
    return {
        key: pd.DataFrame([found[job] for job in sorted(group, key=lambda job: job.agent)])
        for key, group in wanted.items()
        if all(job in found for job in group)
    }


def select(groups: Groups, name: str) -> list[pd.DataFrame]:
    """Return the groups that a claim calls "study, system, algorithm[, ξ]", or raise `MissingError`."""
    study, system, algorithm, *xis = name.split(", ")
    wanted = {key for key in jobs_of(study) if key[1:3] == (system, algorithm)}
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


def values_of(group: pd.DataFrame, column: str) -> np.ndarray:
    """Return one number per agent, or raise `MissingError`."""
    if column not in group or group[column].isna().any():
        raise MissingError(f"results missing: these agents were stored without {column!r}")
    return group[column].to_numpy(float)


def pooled(groups: Groups, name: str, column: str) -> np.ndarray:
    """Return one number per agent, of all groups of a name."""
    return np.concatenate([values_of(group, column) for group in select(groups, name)])


def curves_of(group: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the agents' rewards, one row per agent, and after how many batches the policies behind them were there."""
    if "curve_rewards" not in group or group.curve_rewards.isna().any():
        raise MissingError("results missing: of some of these agents only the end is stored, and not their curves")
    first = group.iloc[0]
    history = {name: first[f"curve_{name}"] for name in ("rewards", "steps") if f"curve_{name}" in group}
    return np.stack(group.curve_rewards.to_list()), batches(job_of(first), history)
