"""Many records in one Parquet file: one row per agent, lists for what has one entry per iteration, episode or step.

Columns are the job's fields by name, `history_*` (see `spaql.rules.HISTORY`), `fresh_moments` and `fresh_rewards` of
the fresh episodes, `episode_*` of the recorded one, `digest`, `wall` (seconds) and `origin` (JSON, as written by the
process that computed the agent).  The agents of a group stand together in a row group of the file, so that one of them
is read without the others.
"""

import contextlib
import functools
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from spaql import archive
from spaql.paper.runs.errors import DamagedPack
from spaql.paper.runs.job import Job, Record
from spaql.rules import COLUMNS, HISTORY, Rules

FORMAT = {"format": "spaql records", "version": "1"}

JOB = {
    "algorithm": pa.string(),
    "system": pa.string(),
    "xi": pa.float64(),
    "iterations": pa.int64(),
    "evaluations": pa.int64(),
    "seed": pa.int64(),
    "agent": pa.int64(),
    "rules": pa.struct([(name, pa.string()) for name in Rules._fields]),
    "fresh": pa.int64(),
    "record": pa.bool_(),
    "starts": pa.string(),
    "parameters": pa.string(),  # JSON
    "looks": pa.int64(),
    "brief": pa.bool_(),
}

HISTORIES = {f"history_{name}": pa.list_(pa.from_numpy_dtype(HISTORY[name])) for name in COLUMNS}

EPISODE = {
    "episode_states": pa.list_(pa.list_(pa.float64())),
    "episode_actions": pa.list_(pa.float64()),
    "episode_rewards": pa.list_(pa.float64()),
}

SCHEMA = pa.schema(
    JOB
    | HISTORIES
    | {"fresh_moments": pa.list_(pa.float64()), "fresh_rewards": pa.list_(pa.float32())}
    | EPISODE
    | {"digest": pa.string(), "wall": pa.float64(), "origin": pa.string()},
    metadata=FORMAT,
)

LISTS = [field.name for field in SCHEMA if pa.types.is_list(field.type)]

LEVEL = 15  # of the compression


class Stored(NamedTuple):
    """A record and where it comes from."""

    record: Record
    origin: dict[str, Any]


class Contents(NamedTuple):
    """What a file holds, without the numbers."""

    rows: dict[Job, int]
    origins: list[str]
    starts: np.ndarray  # the first row of each row group


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say what to do about a file that is not what was written."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        if isinstance(error, OSError) and error.errno:  # the system's word, not the reader's
            raise
        raise DamagedPack(
            f"{path} is damaged ({error}); take it from the repository again (git checkout -- {path.name}, in its "
            f"folder), or move it away, and its agents are computed again"
        ) from error


def contents(path: Path) -> Contents:
    """Return what a file holds; it is read once unless it changes."""
    found = path.stat()
    return _contents(path, (found.st_ino, found.st_mtime_ns, found.st_size))


@functools.lru_cache(64)
def _contents(path: Path, version: tuple[int, ...]) -> Contents:
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        check_format(file)
        table = file.read([*(name for name in JOB if name in file.schema_arrow.names), "origin"])
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        origins = table.column("origin").to_pylist()
        jobs = [Job.parse(row) for row in table.drop_columns(["origin"]).to_pylist()]
        return Contents({job: i for i, job in enumerate(jobs)}, origins, np.cumsum([0, *sizes]))


def check_format(file: pq.ParquetFile) -> None:
    """Raise an error if a file holds something else than records of this version."""
    metadata = file.schema_arrow.metadata or {}
    found = {name: metadata.get(name.encode(), b"nothing").decode() for name in FORMAT}
    if found != FORMAT:
        raise ValueError(f"it says {found}, expected {FORMAT}")


def read_jobs(path: Path, jobs: Iterable[Job]) -> dict[Job, Stored]:
    """Return those of these jobs' records that a file holds; each is checked against its digest."""
    known = contents(path)
    wanted = {known.rows[job]: job for job in jobs if job in known.rows}
    if not wanted:
        return {}
    parts = sorted(set((np.searchsorted(known.starts, list(wanted), side="right") - 1).tolist()))
    columns = [name for name in SCHEMA.names if name not in JOB]
    found = {}
    with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        for part in parts:  # one by one, which needs fewer copies
            rows = range(*known.starts[part : part + 2])
            table = file.read_row_group(part, columns, use_threads=False)
            for stored in decode(table, [wanted.get(row) for row in rows]):
                found[stored.record.job] = stored
    return found


def decode(table: pa.Table, jobs: list[Job | None]) -> Iterator[Stored]:
    """Yield the record of each row that a job is given for."""
    columns = {name: Lists(table.column(name)) for name in LISTS}
    shared = columns["history_rewards"].offsets
    history = np.empty(len(columns["history_rewards"].values), HISTORY)
    for name in COLUMNS:
        history[name] = columns[f"history_{name}"].values
    digests, walls, origins = (table.column(name).to_pylist() for name in ("digest", "wall", "origin"))
    for i, job in enumerate(jobs):
        if job is None:
            continue
        episode = {name.removeprefix("episode_"): columns[name][i] for name in EPISODE} if job.record else {}
        record = Record(
            job,
            history[shared[i] : shared[i + 1]],
            columns["fresh_moments"][i],
            columns["fresh_rewards"][i],
            episode,
            walls[i],
        )
        if record.digest() != digests[i]:
            raise ValueError(f"the checksum of agent {job.agent} of {job.algorithm} does not match")
        yield Stored(record, json.loads(origins[i]))


class Lists:
    """A column of lists of numbers, or of lists of equally long lists: an array for each row."""

    def __init__(self, column: pa.ChunkedArray):
        lists = column.combine_chunks()
        lists = lists.chunk(0) if isinstance(lists, pa.ChunkedArray) else lists
        self.offsets, inner, self.width = lists.offsets.to_numpy(), lists.values, None
        if pa.types.is_list(inner.type):
            ends = inner.offsets.to_numpy()
            # Every state of a file's system has as many numbers as the others.
            self.width = int(ends[1] - ends[0]) if len(inner) else 0
            if not np.array_equal(np.diff(ends), np.full(len(inner), self.width)):
                raise ValueError("its states differ in length")
            inner = inner.values
        self.values = inner.to_numpy()

    def __getitem__(self, i: int) -> np.ndarray:
        start, end = self.offsets[i : i + 2]
        if self.width is None:
            return self.values[start:end]
        return self.values[start * self.width : end * self.width].reshape(end - start, self.width)


def encode(stored: Iterable[Stored]) -> pa.Table:
    """Return a table with one row per record."""
    rows = []
    for record, origin in stored:
        job = record.job
        row: dict[str, Any] = {name: getattr(job, name) for name in JOB} | {"rules": job.rules._asdict()}
        row["parameters"] = json.dumps(dict(job.parameters)) if job.parameters else None
        row |= {f"history_{name}": record.history[name] for name in COLUMNS}
        row |= {"fresh_moments": record.fresh, "fresh_rewards": record.rewards}
        row |= dict.fromkeys(EPISODE)
        row |= {f"episode_{name}": list(array) for name, array in record.episode.items()}
        rows.append(row | {"digest": record.digest(), "wall": record.wall, "origin": json.dumps(origin)})
    return pa.Table.from_pylist(rows, SCHEMA)


def write_records(path: Path, stored: Iterable[Stored]) -> None:
    """Write a file that replaces an older one only when it is complete and found to hold every record."""
    stored = sorted(stored, key=lambda entry: (group_order(entry.record.job), entry.record.job.agent))
    groups: dict[str, list[Stored]] = {}
    for entry in stored:
        groups.setdefault(group_order(entry.record.job), []).append(entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{archive.PREFIX}{os.getpid()}-{secrets.token_hex(4)}{archive.SUFFIX}")
    try:
        with temporary.open("xb") as file:
            with pq.ParquetWriter(
                file, SCHEMA, compression="zstd", compression_level=LEVEL, write_page_checksum=True, **layout(stored)
            ) as writer:
                for group in groups.values():
                    writer.write_table(encode(group))
            file.flush()
            os.fsync(file.fileno())
        wanted = {entry.record.job: entry.record.digest() for group in groups.values() for entry in group}
        found = {job: entry.record.digest() for job, entry in read_jobs(temporary, wanted).items()}
        if found != wanted:
            raise RuntimeError(f"what was written to {path} is not what was to be stored; nothing is changed")
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def layout(stored: Iterable[Stored]) -> dict[str, Any]:
    """Return how the columns are written so that the file is small, which depends on whether mean rewards repeat.

    Those of CartPole do, and so do temperatures; a dictionary makes them small.  What does not repeat, and counts, are
    made small by putting their first bytes together, then their second ones.
    """
    evaluations = np.concatenate([entry.record.history["evaluations"] for entry in stored])
    repeating = ["history_tau"]
    if 2 * len(np.unique(evaluations)) < len(evaluations):
        repeating += ["history_rewards", "history_evaluations"]
    split = {element(name): "BYTE_STREAM_SPLIT" for name in LISTS if name not in repeating}
    words = ["algorithm", "system", "origin", *(f"rules.{name}" for name in Rules._fields)]
    return {"use_dictionary": [*words, *map(element, repeating)], "column_encoding": split}


def element(name: str) -> str:
    """Return the full name of the numbers in a column of lists."""
    return name + ".list.element" * (2 if name == "episode_states" else 1)


def group_order(job: Job) -> str:
    """Return a text by which the groups of a file are sorted."""
    return job.group().identity()


def sync_folder(folder: Path) -> None:
    """Make sure that a new name in a folder outlasts a power cut, where folders can be asked for it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
