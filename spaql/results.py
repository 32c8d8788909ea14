"""Records on disk: one .npz file an agent, under a name made of the job's parameters.

A file holds the numbers, their digest, the fingerprint of the code that computed them, and where they come from.  What
is stored and matches is loaded; a file of other code is stale; a damaged one is set aside.
"""

import contextlib
import datetime
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
from pathlib import Path

import numpy as np

from spaql import files
from spaql.compiling import SOURCES, fingerprint
from spaql.files import check_array
from spaql.jobs import Job, Record
from spaql.learning import HISTORY, RULES, Rules

FORMAT, VERSION = "stored record", 1
TRPO = ("TRPO", "TRPO tuned")  # the algorithms of spaql.trpo, which is not imported unless needed
# Of the code this process runs, even if the files change while it does.
_CODE = fingerprint((*SOURCES, "agents", "jobs"))
_TRPO_CODE = fingerprint(("compiling", "systems", "jobs", "trpo"))


class Stale(Exception):
    """A stored record was computed by other code."""


class Damaged(Exception):
    """A stored record is not what was written."""


def repository() -> Path | None:
    """Return the repository this package runs from, or None if it is installed elsewhere."""
    root = Path(__file__).parents[1]
    return root if (root / "results").is_dir() and (root / "notebooks").is_dir() else None


def default_store() -> Path:
    """Return the folder of the stored results: the repository's, or one in the current folder."""
    return (repository() or Path()) / "results"


def code(job: Job) -> str:
    """Return the fingerprint of the code that determines the numbers of a job."""
    return _TRPO_CODE if job.algorithm in TRPO else _CODE


def path_of(store: Path, job: Job) -> Path:
    """Return where a job's record is kept: readable, and different for jobs that differ in anything."""
    parameters = json.dumps([*job._replace(agent=0, rules=list(job.rules))])
    rules = next((name for name, known in RULES.items() if known == job.rules), "mixed")
    every = hashlib.sha256(parameters.encode()).hexdigest()[:8]
    folder = f"xi{job.xi:g}_K{job.iterations}_N{job.evaluations}_{rules}_{every}"
    return Path(store) / job.system.rpartition("/")[2] / job.algorithm / folder / f"{job.agent:03d}.npz"


@functools.cache
def provenance() -> dict:
    """Return where the numbers of this process come from: versions, commit, machine in words."""
    packages = ("spaql", "numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")
    root = Path(__file__).parents[1]
    try:
        options = {"cwd": root, "capture_output": True, "text": True, "check": True}
        commit = subprocess.run(["git", "rev-parse", "HEAD"], **options).stdout.strip()
        changes = subprocess.run(["git", "status", "--porcelain", "--", "spaql"], **options).stdout.strip()
        commit += " with changes" if changes else ""
    except (OSError, subprocess.CalledProcessError):
        commit = "unknown"
    versions = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return {
        "versions": {"python": platform.python_version()} | versions,
        "commit": commit,
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    }


def save(store: Path, record: Record, source: dict | None = None) -> Path:
    """Write a record where `load` finds it; `source` is the provenance of another process that computed it."""
    path = path_of(store, record.job)
    path.parent.mkdir(parents=True, exist_ok=True)
    date = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    header = {
        "format": FORMAT,
        "version": VERSION,
        "job": record.job._asdict() | {"rules": record.job.rules._asdict()},
        "digest": record.digest(),
        "wall": record.wall,
        "provenance": {"code": code(record.job)} | (source or provenance()) | {"date": date},
    }
    arrays = {f"episode_{name}": array for name, array in record.episode.items()}
    # A row a column: it packs better than an entry an iteration, and every count is exact as a float.
    arrays["history"] = np.array([record.history[name] for name in HISTORY.names], float)
    files.write(path, header, arrays | {"fresh": record.fresh, "rewards": record.rewards})
    return path


def read(path: Path) -> tuple[Record, dict]:
    """Return a stored record and its header, whatever code computed it, or raise `Damaged`."""
    try:
        header, arrays = files.read(path, FORMAT, VERSION)
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


def load(store: Path, job: Job) -> Record:
    """Return the stored record of this job and code, or raise FileNotFoundError, `Stale` or `Damaged`."""
    path = path_of(store, job)
    record, header = read(path)
    if record.job != job:
        raise Damaged(f"{path} holds another job: {record.job}")
    computed = header["provenance"]["code"]
    if computed != code(job):
        raise Stale(f"{path} was computed by code {computed}, this is {code(job)}")
    return record


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that it can be looked at and computed again; return its new name."""
    aside = path.with_name(f"{path.name}.damaged")
    with contextlib.suppress(FileNotFoundError):  # another process was faster
        path.replace(aside)
    return aside
