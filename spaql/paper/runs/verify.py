"""Whether computations of the same agents agree, bit for bit or in their statistics: `spaql verify`."""

import contextlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from spaql.paper.runs import provenance
from spaql.paper.runs.attestations import bits_expected
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.outcomes import outcome
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.statistics import welch_holm
from spaql.progress import progress

AT_ONCE = 64  # agents between two entries in the journal
COMPARED = 9  # more agents of a group are computed where bits differ, to compare the statistics


class Verdict(NamedTuple):
    """How a sample of the stored agents came out when computed again."""

    family: str  # "spaql" or "trpo"
    platform: str  # the key of this machine
    expected: bool  # whether the bits have to be the same: they were on a machine with this key
    stored: int  # agents of these studies
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
            "stored": self.stored,
            "sampled": self.sampled,
            "same_bits": self.same_bits,
            "verdict": str(self),
        }


def stratified(jobs: Iterable[Job], agents: int | None = None, seed: int = 0) -> list[Job]:
    """Return a sample of so many jobs that is spread evenly over their groups: by default one of each group."""
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
    journal: Path | None = None,
) -> list[Verdict]:
    """Compute a sample of the stored agents again, and compare: one verdict per family of algorithms.

    On a machine whose platform key has given the stored bits before, they must be the same.  On another one they may
    differ; then more agents of each group that differs are computed, and their statistics must agree.  The sample is
    `stratified`; jobs that are not stored do not count.  An interrupted verification with a `journal`, a file of the
    digests so far, goes on where it was.
    """
    stored, _ = load_stored(list(jobs), store, repair=False)
    chosen = stratified(stored, agents, seed)
    again = digests_of(chosen, workers, progress_bar, journal)
    found = []
    for family in dict.fromkeys(map(provenance.family, chosen)):
        sample = [job for job in chosen if provenance.family(job) == family]
        different = {job.group() for job in sample if again[job] != stored[job].digest()}
        platform = provenance.platform_key(family)
        expected = bits_expected(store, family, platform)
        compared = None
        if different and not expected:
            pairs = [job for group in different for job in compared_of(group, sample, stored)]
            ours = run(pairs, workers, store=None, progress_bar=progress_bar)
            compared = agreement(ours, [stored[job] for job in pairs])
        same = sum(again[job] == stored[job].digest() for job in sample)
        count = sum(provenance.family(job) == family for job in stored)
        found.append(Verdict(family, platform, expected, count, len(sample), same, compared))
    return found


def compared_of(group: Job, sample: Iterable[Job], stored: Iterable[Job]) -> list[Job]:
    """Return the agents of a group that its statistics are compared by: those of the sample first."""
    first = [job for job in sample if job.group() == group]
    others = [job for job in stored if job.group() == group and job not in set(first)]
    return [*first, *others][: COMPARED + 1]


def digests_of(jobs: list[Job], workers: int | None, progress_bar: bool, journal: Path | None) -> dict[Job, str]:
    """Return the digests of agents that are computed again, a few at a time; those in the journal are not."""
    found = read_journal(journal, jobs)
    missing = [job for job in jobs if job not in found]
    with progress(len(jobs), "agents verified", unit="agent", shown=progress_bar) as bar:
        bar.update(len(found))
        for part in (missing[i : i + AT_ONCE] for i in range(0, len(missing), AT_ONCE)):
            computed = {record.job: record.digest() for record in run(part, workers, store=None, progress_bar=False)}
            if journal is not None:
                journal.parent.mkdir(parents=True, exist_ok=True)
                with journal.open("a", encoding="utf-8") as file:
                    file.writelines(json.dumps([job.identity(), digest]) + "\n" for job, digest in computed.items())
            found |= computed
            bar.update(len(part))
    return found


def read_journal(journal: Path | None, jobs: Iterable[Job]) -> dict[Job, str]:
    """Return the digests that a journal has of these jobs; a line that a kill cut off does not count."""
    if journal is None or not journal.is_file():
        return {}
    known: dict[str, str] = {}
    for line in journal.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError, TypeError):
            known |= dict([json.loads(line)])
    return {job: known[job.identity()] for job in jobs if job.identity() in known}


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
            | {f"{side}_{name}": value for side, r in (("our", a), ("their", b)) for name, value in judged(r).items()}
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


def judged(record: Record) -> dict[str, float]:
    """Return what an agent is judged by."""
    found = outcome(record)
    return {name: float(found[name]) for name in ("rewards", "fresh", "arms")}
