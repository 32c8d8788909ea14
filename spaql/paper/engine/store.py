"""Stored results: one Parquet file per study, with one row per agent.

A row has the columns of its job (`job.FIELDS`), the agent's summary numbers (`outcomes.NUMBERS`), the seconds it took
(`wall`) and where it comes from (`numerics`, `platform`, `date`, `commit`, `origin`).  Where a curve is drawn or
tested, it has lists: `curve_rewards`, `curve_evaluations`, `curve_arms`, `curve_steps` and `curve_evaluation_steps`
with one entry per iteration, and `fresh_rewards` with one per fresh episode.  A study may have more columns; what was
not computed is missing.

Published results are `results/STUDY.parquet`.  What is computed on the way, or with other parameters, is added to a
folder of files of the same form, a few seconds' work each, so that a killed run goes on where it was.

>>> read("long").groupby(["system", "algorithm"]).rewards.mean()
"""

import functools
import os
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from spaql.paper.engine.job import FIELDS, Job, job_of
from spaql.paper.engine.outcomes import COUNTS, CURVES, NUMBERS
from spaql.paper.engine.provenance import numerics, own_results, results

LISTS = {f"curve_{name}": kind for name, kind in CURVES.items()} | {"fresh_rewards": np.float32}
ORIGIN = ("numerics", "platform", "date", "commit", "origin")
TYPES = (
    dict.fromkeys(FIELDS.values(), pa.string())
    | dict.fromkeys(("iterations", "N", "seed", "agent", "fresh_episodes"), pa.int64())
    | {"xi": pa.float64()}
    | dict.fromkeys(NUMBERS, pa.float64())
    | dict.fromkeys(COUNTS, pa.int64())
    | {"wall": pa.float64()}
    | dict.fromkeys(ORIGIN, pa.string())
    | {"numerics": pa.int64()}
    | {name: pa.list_(pa.from_numpy_dtype(kind)) for name, kind in LISTS.items()}
)
COMPRESSED = {"compression": "zstd", "compression_level": 15, "write_page_checksum": True}


class Damaged(Exception):
    """A stored file is not what was written."""


def read(study: str, lists: bool = True) -> pd.DataFrame:
    """Return the published rows of a study; `lists=False` leaves out curves."""
    return read_file(results() / f"{study}.parquet", lists)


def read_file(path: Path, lists: bool = True) -> pd.DataFrame:
    """Return the rows of a file, or say what to do about a damaged one."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
        names = [name for name in file.schema_arrow.names if lists or name not in LISTS]
        return file.read(names).to_pandas().assign(study=path.stem.partition(".")[0])
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Damaged(
            f"{path} is damaged ({error}): take it from the repository again, or delete it to compute it again"
        ) from error


def write_file(path: Path, frame: pd.DataFrame) -> None:
    """Write rows to a file, whole or not at all."""
    frame = frame.drop(columns="study", errors="ignore").dropna(axis="columns", how="all")
    known = [(name, TYPES[name]) for name in TYPES if name in frame]
    inferred = pa.Schema.from_pandas(frame[[name for name in frame if name not in TYPES]], preserve_index=False)
    schema = pa.schema([*known, *((field.name, field.type) for field in inferred)])
    table = pa.Table.from_pandas(frame, schema, preserve_index=False).replace_schema_metadata(None)
    numbers = [f"{field.name}.list.element" if pa.types.is_list(field.type) else field.name for field in schema
               if pa.types.is_floating(field.type) or pa.types.is_list(field.type)]  # fmt: skip
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    encoding = {"use_dictionary": texts, "column_encoding": dict.fromkeys(numbers, "BYTE_STREAM_SPLIT")}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}.tmp")
    try:
        with temporary.open("xb") as file:
            pq.write_table(table, file, **COMPRESSED, **encoding)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def add(rows: list[dict[str, Any]], folder: Path | None = None) -> None:
    """Add rows to the work in progress, a new file for each study."""
    frame = pd.DataFrame(rows)
    for study, part in frame.groupby("study"):
        write_file((folder or own_results()) / f"{study}.{secrets.token_hex(4)}.parquet", part)


def find(jobs: Iterable[Job], folders: Iterable[Path] | None = None) -> dict[Job, dict[str, Any]]:
    """Return the rows of those of these agents that are stored, with the version of the numbers that this code has.

    Folders that come first win; if none are given, they are those of the published results and of work in progress.
    """
    wanted: dict[str, dict[Job, Job]] = {}
    for job in jobs:
        wanted.setdefault(job.study, {})[job] = job
    found: dict[Job, dict[str, Any]] = {}
    for folder in folders or (results(), own_results()):
        for study, asked in wanted.items():
            for path in sorted({*folder.glob(f"{study}.parquet"), *folder.glob(f"{study}.*.parquet")}):
                known = rows_of(path, path.stat().st_mtime_ns)
                for job in asked.keys() & known.keys():
                    if known[job]["numerics"] == numerics(job.algorithm):
                        found.setdefault(job, known[job])
    return found


@functools.lru_cache(64)
def rows_of(path: Path, changed: int) -> Mapping[Job, dict[str, Any]]:
    """Return the rows of a file by their jobs, read once unless the file changes."""
    frame = read_file(path)
    try:
        return {job_of(row): row for row in frame.to_dict("records")}
    except (KeyError, ValueError, TypeError) as error:
        raise Damaged(f"{path} holds no results of this package ({error}): move it away") from error
