"""Records on disk: one .npz file an agent, under a name made of the job's parameters.

A file holds the numbers, their digest, the fingerprint of the code that computed them, and where they come from.  What
is stored and matches is loaded; a file of other code is stale; a damaged one is set aside.
"""

import contextlib
import datetime
import hashlib
import json
from pathlib import Path

import numpy as np

from spaql import archive
from spaql.archive import check_array
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.provenance import numerics, provenance
from spaql.rules import HISTORY, RULES, Rules

FORMAT, VERSION = "stored record", 1


class Stale(Exception):
    """A stored record was computed by other code."""


class Damaged(Exception):
    """A stored record is not what was written."""


def record_path(store: Path, job: Job) -> Path:
    """Return where a job's record is kept: readable, and different for jobs that differ in anything."""
    parameters = json.dumps([*job._replace(agent=0, rules=list(job.rules))])
    rules = next((name for name, known in RULES.items() if known == job.rules), "mixed")
    every = hashlib.sha256(parameters.encode()).hexdigest()[:8]
    folder = f"xi{job.xi:g}_K{job.iterations}_N{job.evaluations}_{rules}_{every}"
    return Path(store) / job.system.rpartition("/")[2] / job.algorithm / folder / f"{job.agent:03d}.npz"


def save_record(store: Path, record: Record, source: dict | None = None) -> Path:
    """Write a record where `load` finds it; `source` is the provenance of another process that computed it."""
    path = record_path(store, record.job)
    path.parent.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "job": record.job._asdict() | {"rules": record.job.rules._asdict()},
        "digest": record.digest(),
        "wall": record.wall,
        "provenance": {"numerics": numerics(record.job)} | (source or provenance()) | {"date": date},
    }
    arrays = {f"episode_{name}": array for name, array in record.episode.items()}
    # A row a column: it packs better than an entry an iteration, and every count is exact as a float.
    arrays["history"] = np.array([record.history[name] for name in HISTORY.names], float)
    archive.write(path, header, arrays | {"fresh": record.fresh, "rewards": record.rewards})
    return path


def read_record(path: Path) -> tuple[Record, dict]:
    """Return a stored record and its header, whatever code computed it, or raise `Damaged`."""
    try:
        header, arrays = archive.read(path, FORMAT, VERSION)
        job = Job(**header["job"] | {"rules": Rules(**header["job"]["rules"])})
        columns = check_array(arrays, "history", float, len(HISTORY.names))
        history = np.zeros(columns.shape[1], HISTORY)
        for name, column in zip(HISTORY.names, columns, strict=True):
            history[name] = column
        start = "episode_"
        episode = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        record = Record(job, history, arrays["fresh"], arrays["rewards"], episode, header["wall"])
        if record.digest() != header["digest"]:
            raise ValueError("its checksum does not match")
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise Damaged(f"{path} is damaged: {error}") from error
    return record, header


def load_record(store: Path, job: Job) -> Record:
    """Return the stored record of this job and code, or raise FileNotFoundError, `Stale` or `Damaged`."""
    path = record_path(store, job)
    record, header = read_record(path)
    if record.job != job:
        raise Damaged(f"{path} holds another job: {record.job}")
    computed = header["provenance"].get("numerics", 1)
    if computed != numerics(job):
        raise Stale(f"{path} has numbers of version {computed}, this code computes version {numerics(job)}")
    return record


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that it can be looked at and computed again; return its new name."""
    aside = path.with_name(f"{path.name}.damaged")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        path.replace(aside)
    return aside
