"""Records on disk: published ones in the table of agents, those of work in progress in one .npz file per agent.

A stored record holds the numbers, their digest and where they come from.  What is stored and has the numerics version
of this code is loaded; anything else is stale; a damaged .npz file is set aside, and a damaged table is an error that
says what to do.  `spaql pack` puts finished .npz files into the table.
"""

import contextlib
import datetime
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from spaql import archive
from spaql.archive import check_array
from spaql.paper.runs import table
from spaql.paper.runs.errors import Damaged, Stale, reading
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.provenance import numerics, origin_of
from spaql.paper.runs.table import Stored, short_name
from spaql.rules import COLUMNS, HISTORY, RULES

FORMAT, VERSION = "stored record", 2


def record_path(store: Path, job: Job) -> Path:
    """Return where a job's own file is: readable, and different for jobs that differ in anything."""
    rules = next((name for name, known in RULES.items() if known == job.rules), "mixed")
    every = hashlib.sha256(job.group().identity().encode()).hexdigest()[:8]
    folder = f"xi{job.xi:g}_K{job.iterations}_N{job.evaluations}_{rules}_{every}"
    return Path(store) / short_name(job.system) / job.algorithm / folder / f"{job.agent:03d}.npz"


def save_record(store: Path, record: Record, origin: dict[str, Any] | None = None) -> Path:
    """Write a record to its own file; `origin` is given if another process computed it."""
    path = record_path(store, record.job)
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "job": record.job.named(),
        "record_digest": record.digest(),
        "wall": record.wall,
        "provenance": (origin or origin_of(record.job)) | {"date": date},
    }
    arrays = {f"episode_{name}": array for name, array in record.episode.items()}
    # One row per column: it packs better than one entry per iteration, and every count is exact as a float.
    arrays["history"] = np.array([record.history[name] for name in COLUMNS], float)
    arrays |= {"fresh": record.fresh, "rewards": record.rewards}
    with contextlib.suppress(FileNotFoundError):
        path.parent.mkdir(parents=True, exist_ok=True)
        archive.write(path, header, arrays)
        return path
    # A process that packs has removed the empty folder meanwhile.
    path.parent.mkdir(parents=True, exist_ok=True)
    archive.write(path, header, arrays)
    return path


def read_record(path: Path) -> Stored:
    """Return what an agent's own file holds, whatever code computed it, or raise `Damaged`."""
    with reading(path):
        header, arrays = archive.read(path, FORMAT, VERSION)
        job = Job.parse(header["job"])
        columns = check_array(arrays, "history", float, len(COLUMNS))
        history = np.zeros(columns.shape[1], HISTORY)
        for name, column in zip(COLUMNS, columns, strict=True):
            history[name] = column
        start = "episode_"
        episode = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        record = Record(job, history, arrays["fresh"], arrays["rewards"], episode, header["wall"])
        if record.digest() != header["record_digest"]:
            raise ValueError("its checksum does not match")
        return Stored(record, header["provenance"])


def load_record(store: Path, job: Job, packed: dict[Job, Stored] | None = None) -> Record:
    """Return the stored record of this job and code, or raise FileNotFoundError, `Stale` or `Damaged`.

    `packed` is what `table.read_jobs` returned for many jobs, which is faster than to read one by one.
    """
    packed = table.read_jobs(store, [job]) if packed is None else packed
    if job in packed and is_current(job, packed[job].origin):
        return packed[job].record
    path = record_path(store, job)
    try:
        record, origin = read_record(path)
    except FileNotFoundError:
        found = table.read_jobs(store, [job]).get(job)  # it may have been packed meanwhile
        if found is None:
            raise
        record, origin = found
    if record.job != job:
        raise Damaged(f"{path} holds another job: {record.job}")
    if not is_current(job, origin):
        raise Stale(
            f"agent {job.agent} of {job.algorithm} on {job.system} in {store} has numbers of version "
            f"{origin.get('numerics', 1)}, this code computes version {numerics(job)}"
        )
    return record


def is_current(job: Job, origin: dict[str, Any]) -> bool:
    """Return whether a record has the version of the numbers that this code computes; the first said no version."""
    return origin.get("numerics", 1) == numerics(job)


def load_origin(store: Path, job: Job) -> dict[str, Any]:
    """Return where the stored record of this job and code comes from, or raise FileNotFoundError or `Damaged`."""
    agents = table.read_agents(store)
    if job in agents.places and is_current(job, origin := table.origin_of(agents.row(job))):
        return origin
    stored = read_record(record_path(store, job))
    if not is_current(job, stored.origin):
        raise FileNotFoundError(f"{job} is not stored in {store} with these numbers")
    return stored.origin


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that it can be looked at and computed again; return its new name."""
    aside = path.with_name(f"{path.name}.damaged")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        path.replace(aside)
    return aside
