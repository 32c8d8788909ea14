"""What is published of the runs, and `spaql pack`, which puts finished agents' own files into the table of agents."""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spaql import archive
from spaql.paper.runs import table
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import Job
from spaql.paper.runs.store import is_current, read_record, record_path
from spaql.paper.runs.table import CURVES, FRESH, Entry, Stored
from spaql.paper.studies import study_of
from spaql.progress import progress
from spaql.rules import RULES

try:
    import fcntl
except ImportError:  # Windows has no such locks: there two processes should not pack the same folder at once
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

# What is kept beside an agent's row, if it is not all curves: what figures draw and verdicts compare.
KEPT: dict[str, tuple[str, ...]] = {
    "long": (*CURVES, FRESH),
    "trpo": (*CURVES, FRESH),
    "other": (*CURVES, FRESH),
    "readings": ("rewards",),
    "ablation": ("rewards",),
    **dict.fromkeys(("xi", "systems-xi", "controls", "settings", "further", "limit"), ()),
}


def curves_of(study: str, job: Job) -> tuple[str, ...]:
    """Return what is kept of an agent beside its row of the table.

    Readings are compared by the long runs of Pendulum with continuous torques, some of which are the ablation's.
    """
    kept = () if job.brief else KEPT.get(study, CURVES)
    if kept == ("rewards",):
        pendulum = "Pendulum" in job.system and "Discrete" not in job.system
        if not pendulum or job.iterations <= 100 or job.rules not in (RULES["paper"], RULES["released"]):
            return ()
    return tuple(name for name in kept if name != FRESH or job.record)


class Packed(NamedTuple):
    """What was packed."""

    agents: int  # that are in the table now, and their own files are gone
    files: list[Path]  # that were written
    left: int  # files that are left alone: damaged ones, and those that contradict the table


def pack(store: Path, progress_bar: bool = True) -> Packed:
    """Put finished records into the table of agents, and then remove their own files.

    A file is replaced only when the new one is complete and was read again; only then the agents' own files are
    removed.  Killed at any moment, no record is lost, and the next time completes it.  Of a history only what
    `curves_of` names outlasts this; the digest of all of it is kept.
    """
    store = Path(store)
    with only_one(store):
        archive.sweep(store)
        paths = sorted(store.glob("*/*/*/*.npz"))
        if not paths:
            return Packed(0, [], 0)
        agents = table.read_agents(store)
        entries = table.read_entries(store, agents.places)
        new: dict[Job, Entry] = {}
        done: list[Path] = []
        with progress(len(paths), "packing", unit="agent", shown=progress_bar) as bar:
            for path in paths:
                bar.update()
                try:
                    stored = read_own(store, path)
                    job = stored.record.job
                    before = entries.get(job)
                    if before is None or not is_current(job, table.origin_of(before.row)):
                        new[job] = make_entry(stored)
                    elif before.row["digest"] != stored.record.digest():
                        raise Damaged(f"{path} differs from what {table.agents_path(store)} holds")
                    done.append(path)
                except Damaged as damage:
                    log.warning("%s; it is left as it is", damage)
        files = table.write_table(store, entries | new) if new else []
        remove(done)
    return Packed(len(done), files, len(paths) - len(done))


def read_own(store: Path, path: Path) -> Stored:
    """Return the record of an agent's own file, or raise `Damaged`."""
    stored = read_record(path)
    if path != record_path(store, stored.record.job):
        raise Damaged(f"{path} holds another job: {stored.record.job}")
    return stored


def make_entry(stored: Stored) -> Entry:
    """Return what is published of an agent."""
    study = study_of(stored.record.job)
    return table.make_entry(study, stored, curves_of(study, stored.record.job))


def remove(paths: list[Path]) -> None:
    """Remove files, and the folders that are empty then."""
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths}:
        with contextlib.suppress(OSError):
            for empty in (folder, *folder.parents[:2]):
                empty.rmdir()


@contextlib.contextmanager
def only_one(store: Path) -> Iterator[None]:
    """Let no two processes pack a folder at the same time: one would undo what the other has done."""
    if fcntl is None:
        yield
        return
    handle = os.open(store, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise RuntimeError(f"another process is packing {store}: wait until it has finished") from error
    finally:
        os.close(handle)  # which ends the lock, as the end of the process does
