"""Stored studies computed again: a sample to compare (`spaql verify`), or all of them (`spaql reproduce`)."""

import random
import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from spaql.checks import check_integer
from spaql.paper import ROOT
from spaql.paper.engine import store
from spaql.paper.engine.algorithms import ALGORITHMS
from spaql.paper.engine.job import Job, job_of
from spaql.paper.engine.outcomes import UNUSED
from spaql.paper.engine.provenance import ORIGIN, commit, platform_key, results
from spaql.paper.engine.run import run
from spaql.paper.engine.statistics import welch, with_holm
from spaql.paper.engine.study import STUDIES, study

COMPARED = ("rewards", "fresh", "arms")  # by which agents of other machines are compared
AGENTS = 10  # of each group, where bits may differ


def chosen(names: Iterable[str]) -> list[str]:
    """Return studies by name; if none are named, all that can be computed with the packages that are installed."""
    names = list(dict.fromkeys(names))
    if unknown := [name for name in names if name not in STUDIES]:
        raise ValueError(f"there is no study {unknown[0][:40]!r}: they are {', '.join(STUDIES)}")
    needs = {name: {need for job in study(name) for need in ALGORITHMS[job.algorithm].needs} for name in STUDIES}
    return names or [name for name in STUDIES if all(map(find_spec, needs[name]))]


def verify(studies: Iterable[str], agents: int | None = None, workers=0, progress_bar=True) -> pd.DataFrame:
    """Compute a sample of the published agents again; return one row for each, with what `verdict` says of it.

    On a machine with the platform key of the stored row every number and curve must be the same.  Elsewhere the last
    bit of a sine may differ, and with it, sooner or later, everything: then ten agents of the group are computed, whose
    means must agree (Welch's test, Holm's correction).
    """
    stored, agents = {}, agents if agents is None else check_integer("agents", agents)
    for name in studies:
        jobs = [job_of(row, name) for row in store.read(name, lists=False).to_dict("records")]
        stored |= store.find(jobs, [results()])
    sample = stratified(stored, agents)
    again = run(sample, workers, stored=False, progress_bar=progress_bar).to_dict("records")
    rows = []
    for job, row in zip(sample, again, strict=True):
        different = differences(stored[job], row)
        if not different:
            verdict = "the same bits"
        elif stored[job]["platform"] == platform_key(ALGORITHMS[job.algorithm].family):
            verdict = f"differs in {', '.join(different)}"
        else:
            verdict = compare_means(job, stored, workers, progress_bar)
        named = {name: getattr(job, name) for name in ("study", "system", "algorithm", "xi", "agent")}
        rows.append(named | {"sound": not different or verdict == "the means agree", "verdict": verdict})
    return pd.DataFrame(rows)


def stratified(jobs: Iterable[Job], agents: int | None) -> list[Job]:
    """Return a sample of so many jobs that is spread evenly over their groups: by default one of each group."""
    groups: dict[Job, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(), []).append(job)
    rng = random.Random(0)
    shuffled = [rng.sample(group, len(group)) for group in groups.values()]
    rng.shuffle(shuffled)
    turns = sorted((turn, place) for place, group in enumerate(shuffled) for turn in range(len(group)))
    return [shuffled[place][turn] for turn, place in turns[: len(groups) if agents is None else agents]]


def differences(stored: dict, again: dict) -> list[str]:
    """Return the numbers and curves of a stored row that are others now; what is not stored is not compared."""
    different = []
    for name in {*stored, *COMPARED} - {"wall", *ORIGIN, *UNUSED}:
        known = np.asarray(stored.get(name, np.nan))
        missing = pd.isna(known).all() and (name not in COMPARED or pd.isna(again.get(name)))
        if not missing and not np.array_equal(known, again[name]):
            different.append(name)
    return different


def compare_means(job: Job, stored: dict[Job, dict], workers: int, progress_bar: bool) -> str:
    """Say whether the means of a group of agents agree with what is stored."""
    group = [other for other in stored if other.group() == job.group()][:AGENTS]
    if len(group) < 2:
        return "another platform, and too few agents to compare means"
    ours = run(group, workers, stored=False, progress_bar=progress_bar)
    theirs = pd.DataFrame([stored[other] for other in group])
    tests = with_holm(welch, {name: (ours[name], theirs[name]) for name in COMPARED})
    apart = [name for name, test in tests.items() if test.p_holm < 0.05]
    return f"the means of {', '.join(apart)} differ" if apart else "the means agree"


def reproduce(name: str, into: Path | None = None, workers: int = 0, scheduler: str | None = None) -> str:
    """Compute all agents of a study, write them to its file in a folder, and compare them with what is stored.

    What is computed is kept in `_build/reproduced` until the study is complete: a call that was killed goes on there,
    if the code is the same.  The study's file is then replaced, and no other.
    """
    into = results() if into is None else into
    if not into.is_dir():
        raise NotADirectoryError(f"there is no folder {into}")
    jobs = study(name)
    before = store.find(jobs, [results()])
    parts = ROOT / "_build" / "reproduced" / f"{name}-{commit().replace(' ', '-')}"
    frame = run(jobs, workers, scheduler, folder=parts)
    rows = zip(jobs, frame.to_dict("records"), strict=True)
    same = sum(job in before and not differences(before[job], row) for job, row in rows)
    unpublished = set(store.LISTS) - set(STUDIES[name].lists)
    store.write_file(into / f"{name}.parquet", frame.drop(columns=unpublished, errors="ignore"))
    shutil.rmtree(parts, ignore_errors=True)
    return f"{name}: {len(frame):,} agents in {into}; {same:,} of them have the bits of those stored before"
