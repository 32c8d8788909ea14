"""Whether computations of the same agents agree, bit for bit or in their statistics: `spaql verify`."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from spaql.paper.runs import provenance
from spaql.paper.runs.attestations import bits_expected
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.statistics import welch_holm

COMPARED = 9  # more agents of a group are computed where bits differ, to compare the statistics


class Verdict(NamedTuple):
    """How a sample of the stored agents came out when computed again."""

    family: str  # "spaql" or "trpo"
    platform: str  # the key of this machine
    expected: bool  # whether the bits have to be the same: they were on a machine with this key
    sampled: int
    same_bits: int
    agreement: pd.DataFrame | None  # of the statistics, where bits differ that may

    @property
    def sound(self) -> bool:
        """Whether everything is as it should be."""
        if self.same_bits == self.sampled:
            return True
        return not self.expected and self.agreement is not None and bool(self.agreement.agrees.all())

    def __str__(self) -> str:
        """Return the verdict in words."""
        if self.same_bits == self.sampled:
            return "the same bits"
        if self.expected:
            return "other bits, where they were the same before: the numbers changed"
        return "other bits, the statistics agree" if self.sound else "other bits, and the statistics disagree"

    def entry(self) -> dict[str, Any]:
        """Return the verdict as an attestation has it."""
        return {
            "platform": self.platform,
            "sampled": self.sampled,
            "same_bits": self.same_bits,
            "verdict": str(self),
        }


def stratified(jobs: Iterable[Job], agents: int | None = None, seed: int = 0) -> list[Job]:
    """Return a sample of jobs that is spread evenly over their groups: by default one of each group.

    Parameters
    ----------
    jobs
        To choose from.
    agents
        How many in all; with fewer than there are groups, some groups have none.
    seed
        Of the choice.
    """
    groups: dict[Job, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.group(), []).append(job)
    rng = random.Random(seed)
    shuffled = [rng.sample(group, len(group)) for group in groups.values()]
    rng.shuffle(shuffled)
    turns = [
        group[turn] for turn in range(max(map(len, shuffled), default=0)) for group in shuffled if turn < len(group)
    ]
    return turns[: len(groups) if agents is None else agents]


def verify(
    jobs: Iterable[Job],
    store: Path,
    agents: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress_bar: bool = True,
) -> list[Verdict]:
    """Compute a sample of the stored agents again, and compare: one verdict per family of algorithms.

    On a machine whose platform key has given the stored bits before, they must be the same.  On another one they may
    differ; then more agents of each group that differs are computed, and their statistics must agree.

    Parameters
    ----------
    jobs
        The agents to choose from; those that are not stored do not count.
    store
        The folder of stored results.
    agents, seed
        How many, and of the choice: see `stratified`.
    workers, progress_bar
        See `run`.
    """
    stored, _ = load_stored(list(jobs), store, repair=False)
    found = []
    chosen = stratified(stored, agents, seed)
    for family in dict.fromkeys(map(provenance.family, chosen)):
        sample = [job for job in chosen if provenance.family(job) == family]
        again = {record.job: record for record in run(sample, workers, store=None, progress_bar=progress_bar)}
        different = {job.group() for job in sample if again[job].digest() != stored[job].digest()}
        platform = provenance.platform_key(family)
        expected = bits_expected(store, family, platform)
        compared = None
        if different and not expected:
            more = [
                job
                for group in different
                for job in [job for job in stored if job.group() == group and job not in again][:COMPARED]
            ]
            again |= {record.job: record for record in run(more, workers, store=None, progress_bar=progress_bar)}
            pairs = [job for job in again if job.group() in different]
            compared = agreement([again[job] for job in pairs], [stored[job] for job in pairs])
        same = sum(again[job].digest() == stored[job].digest() for job in sample)
        found.append(Verdict(family, platform, expected, len(sample), same, compared))
    return found


def agreement(ours: Iterable[Record], theirs: Iterable[Record]) -> pd.DataFrame:
    """Compare two computations of the same agents, with one row per group of them that differ only in their seeds.

    On the same machine they are the same bits (`same_bits` counts the agents that are).  On another one the last bit
    of a sine may differ, and with it, sooner or later, everything; the groups must still agree.  Each row has Welch
    tests of the final rewards, the fresh rewards and the arms; `p` is the least of the three after Holm's correction
    for all tests of the frame, and the row `agrees` if it is at least 5 %.
    """
    keys = ["system", "algorithm", "xi", "iterations", "evaluations", "rules", "parameters"]
    pairs = pd.DataFrame(
        [
            {key: getattr(a.job, key) for key in keys}
            | {"rules": ", ".join(a.job.named().get("rules", {"": "paper"}).values())}
            | {"same_bits": a.digest() == b.digest()}
            | {f"{side}_{name}": value for side, r in (("our", a), ("their", b)) for name, value in outcome(r).items()}
            for a, b in zip(ours, theirs, strict=True)
        ]
    )
    cells = pairs.groupby(keys, sort=False, dropna=False)
    names = ("rewards", "fresh", "arms")
    tests = welch_holm(
        {(*cell, name): (group[f"our_{name}"], group[f"their_{name}"]) for cell, group in cells for name in names}
    )
    frame = cells.agg(agents=("same_bits", "size"), same_bits=("same_bits", "sum"))
    frame["p"] = [min(tests[*cell, name].p_holm for name in names) for cell in frame.index]
    frame["agrees"] = frame.p >= 0.05
    return frame.reset_index()


def outcome(record: Record) -> dict[str, float]:
    """Return what an agent is judged by."""
    last = record.history[-1]
    return {"rewards": float(last["rewards"]), "fresh": float(record.fresh[0]), "arms": float(last["arms"])}
