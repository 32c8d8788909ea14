"""Whether stored agents come out the same when they are computed again: `spaql verify`."""

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from spaql.paper.engine import store
from spaql.paper.engine.algorithms import ALGORITHMS
from spaql.paper.engine.job import Job, job_of
from spaql.paper.engine.outcomes import NUMBERS
from spaql.paper.engine.provenance import platform_key, results
from spaql.paper.engine.run import run
from spaql.paper.engine.statistics import welch_holm

COMPARED = ("rewards", "fresh", "arms")  # by which agents of other machines are compared
AGENTS = 10  # of each group, where bits may differ


def verify(
    studies: Iterable[str], agents: int | None = None, seed: int = 0, workers: int = 0, progress_bar: bool = True
) -> pd.DataFrame:
    """Compute a sample of the published agents again; return one row for each, with what `verdict` says of it.

    The sample is spread evenly over the groups of agents, by default one of each.  On a machine with the platform key
    of the stored row every number and curve must be the same.  Elsewhere the last bit of a sine may differ, and with
    it, sooner or later, everything: then ten agents of the group are computed, whose means must agree (Welch's test,
    Holm's correction).
    """
    stored: dict[Job, dict[str, Any]] = {}
    for study in studies:
        stored |= store.find([job_of(row, study) for row in store.read(study, lists=False).to_dict("records")],
                             [results()])  # fmt: skip
    chosen = stratified(stored, agents, seed)
    again = run(chosen, workers, stored=False, progress_bar=progress_bar).to_dict("records")
    rows = []
    for job, row in zip(chosen, again, strict=True):
        different = differences(stored[job], row)
        same_platform = stored[job]["platform"] == platform_key(ALGORITHMS[job.algorithm].family)
        if not different:
            verdict = "the same bits"
        elif same_platform:
            verdict = f"differs in {', '.join(different)}"
        else:
            verdict = compare_means(job, stored, workers, progress_bar)
        named = {name: getattr(job, name) for name in ("study", "system", "algorithm", "xi", "agent")}
        rows.append(named | {"sound": not different or verdict == "the means agree", "verdict": verdict})
    return pd.DataFrame(rows)


def stratified(jobs: Iterable[Job], agents: int | None, seed: int) -> list[Job]:
    """Return a sample of so many jobs that is spread evenly over their groups: by default one of each group."""
    groups: dict[Job, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(), []).append(job)
    rng = random.Random(seed)
    shuffled = [rng.sample(group, len(group)) for group in groups.values()]
    rng.shuffle(shuffled)
    longest = max(map(len, shuffled), default=0)
    turns = [group[turn] for turn in range(longest) for group in shuffled if turn < len(group)]
    return turns[: len(groups) if agents is None else agents]


def differences(stored: dict[str, Any], again: dict[str, Any]) -> list[str]:
    """Return the numbers and curves of a stored row that are others now; what is not stored is not compared."""
    different = []
    for name in (*NUMBERS, *store.LISTS):
        kept = stored.get(name)
        if kept is None or (np.isscalar(kept) and np.isnan(kept)):
            continue
        if not np.array_equal(kept, again.get(name, np.nan)):
            different.append(name)
    return different


def compare_means(job: Job, stored: dict[Job, dict[str, Any]], workers: int, progress_bar: bool) -> str:
    """Say whether the means of a group of agents agree with what is stored."""
    group = [other for other in stored if other.group() == job.group()][:AGENTS]
    ours = run(group, workers, stored=False, progress_bar=progress_bar)
    theirs = pd.DataFrame([stored[other] for other in group])
    if len(group) < 2:
        return "another platform, and too few agents to compare means"
    tests = welch_holm({name: (ours[name], theirs[name]) for name in COMPARED})
    apart = [name for name, test in tests.items() if test.p_holm < 0.05]
    return f"the means of {', '.join(apart)} differ" if apart else "the means agree"
