"""`spaql pack`: the agents' own files of a folder of results, put into its Parquet files."""

import contextlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from spaql import archive
from spaql.paper.runs import parquet
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import Job
from spaql.paper.runs.parquet import Stored
from spaql.paper.runs.store import is_current, packed_files, read_record, record_path, short_name
from spaql.paper.studies import study_of
from spaql.progress import progress

try:
    import fcntl
except ImportError:  # Windows has no such locks: there two processes should not pack the same folder at once
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)


class Packed(NamedTuple):
    """What was packed."""

    agents: int  # of which the Parquet files hold the records now, and their own files are gone
    files: list[Path]  # that were written
    left: int  # files that are left alone: damaged ones, and those that contradict what is packed


def pack(store: Path, progress_bar: bool = True) -> Packed:
    """Put finished records into one Parquet file per study and system, and then remove their own files.

    A Parquet file is replaced only when it is complete and every record in it has been read again; only then the
    agents' own files are removed.  Killed at any moment, no record is lost, and the next time completes it.

    Parameters
    ----------
    store
        A folder of stored results.
    progress_bar
        Show how far it is, on standard error.
    """
    store = Path(store)
    agents, left = 0, 0
    files: list[Path] = []
    with only_one(store):
        archive.sweep(store)
        own: dict[Path, list[Path]] = {}
        for path in sorted(store.glob("*/*/*/*.npz")):
            own.setdefault(path.parents[2], []).append(path)
        with progress(sum(map(len, own.values())), "packing", unit="agent", shown=progress_bar) as bar:
            for paths in own.values():
                finished, spoilt = read_finished(store, paths)
                left += spoilt
                for target, mine in finished.items():
                    done, contradictory = add(target, mine)
                    agents, left, files = agents + done, left + contradictory, [*files, target]
                bar.update(len(paths))
    return Packed(agents, files, left)


def read_finished(store: Path, paths: list[Path]) -> tuple[dict[Path, dict[Path, Stored]], int]:
    """Return the sound ones of agents' own files, by the Parquet file of each, and how many others there are."""
    found: dict[Path, dict[Path, Stored]] = {}
    spoilt = 0
    for path in paths:
        try:
            stored = read_record(path)
            if path != record_path(store, stored.record.job):
                raise Damaged(f"{path} holds another job: {stored.record.job}")
        except Damaged as damage:
            log.warning("%s; it is left as it is", damage)
            spoilt += 1
            continue
        found.setdefault(target_of(store, stored.record.job), {})[path] = stored
    return found, spoilt


def target_of(store: Path, job: Job) -> Path:
    """Return the Parquet file for a job: the one that has it already, or that of its study and system."""
    for path in packed_files(store, job.system):
        if job in parquet.contents(path).rows:
            return path
    return store / study_of(job) / f"{short_name(job.system)}.parquet"


def add(target: Path, finished: dict[Path, Stored]) -> tuple[int, int]:
    """Add records to a Parquet file and remove their own files; return how many, and how many contradict the file."""
    packed = parquet.read_jobs(target, list(parquet.contents(target).rows)) if target.exists() else {}
    new, done, contradictory = {}, [], 0
    for path, stored in finished.items():
        job = stored.record.job
        before = packed.get(job)
        if before is None or not is_current(job, before.origin):
            new[job] = stored
        elif before.record.digest() != stored.record.digest():
            log.warning("%s differs from what %s holds; it is left as it is", path, target)
            contradictory += 1
            continue
        done.append(path)
    if new:
        parquet.write_records(target, (packed | new).values())
    for path in done:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in done}:
        with contextlib.suppress(OSError):  # as long as they are empty
            for empty in (folder, *folder.parents[:2]):
                empty.rmdir()
    return len(done), contradictory


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
