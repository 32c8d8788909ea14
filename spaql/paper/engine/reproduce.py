"""Studies computed anew, whatever is stored: `spaql reproduce`."""

import shutil
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path

from spaql.paper.engine import store
from spaql.paper.engine.algorithms import ALGORITHMS
from spaql.paper.engine.provenance import clone, commit, results
from spaql.paper.engine.run import run
from spaql.paper.engine.study import STUDIES, study
from spaql.paper.engine.verify import differences


def chosen(names: Iterable[str]) -> list[str]:
    """Return studies by name; if none are named, all that can be computed with the packages that are installed."""
    names = list(dict.fromkeys(names))
    if unknown := [name for name in names if name not in STUDIES]:
        raise ValueError(f"there is no study {unknown[0][:40]!r}: they are {', '.join(STUDIES)}")
    needs = {name: {need for job in study(name) for need in ALGORITHMS[job.algorithm].needs} for name in STUDIES}
    return names or [name for name in STUDIES if all(map(find_spec, needs[name]))]


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
    parts = clone() / "_build" / "reproduced" / f"{name}-{commit().replace(' ', '-')}"
    frame = run(jobs, workers, scheduler, folder=parts)
    same = sum(
        job in before and not differences(before[job], row)
        for job, row in zip(jobs, frame.to_dict("records"), strict=True)
    )
    unpublished = store.LISTS.keys() - set(STUDIES[name].lists)
    store.write_file(into / f"{name}.parquet", frame.drop(columns=unpublished, errors="ignore"))
    shutil.rmtree(parts, ignore_errors=True)
    return f"{name}: {len(frame):,} agents in {into}; {same:,} of them have the bits of those stored before"
