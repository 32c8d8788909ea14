"""Stored results: one Parquet file per study, with one row per agent; and what frames of such rows tell.

A row has the columns of its job (`job.FIELDS`), the agent's summary numbers (`outcomes.outcome`), the seconds it took
(`wall`) and where it comes from (`numerics`, `platform`, `date`, `commit`, `origin`).  Where a curve is drawn or
tested, it has lists: `curve_rewards`, `curve_evaluations`, `curve_arms`, `curve_steps` and `curve_evaluation_steps`
with one entry per iteration, and `fresh_rewards` with one per fresh episode.  A study may have more columns; what was
not computed is missing.

Published results are `results/STUDY.parquet`.  What is computed on the way, or with other parameters, is added to a
folder of files of the same form, a few seconds' work each, so that a killed run goes on where it was.
"""

import functools
import secrets
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from spaql.paper.engine.job import Job, job_of
from spaql.paper.engine.outcomes import CURVES
from spaql.paper.engine.provenance import numerics, own_results, results
from spaql.systems import solved_at

LISTS = (*(f"curve_{name}" for name in CURVES), "fresh_rewards")
FORMAT = {"compression": "zstd", "compression_level": 15, "write_page_checksum": True}


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
        raise OSError(
            f"{path} is damaged ({error}): take it from the repository again, or delete it to compute it again"
        ) from error


def write_file(path: Path, frame: pd.DataFrame) -> None:
    """Write rows to a file, whole or not at all."""
    frame = frame.drop(columns="study", errors="ignore").dropna(axis="columns", how="all")
    texts = [name for name in frame if isinstance(frame[name].iloc[0], str)]
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}.tmp")
    try:
        frame.to_parquet(temporary, index=False, use_dictionary=texts, use_byte_stream_split=True, **FORMAT)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def add(rows: list[dict], folder: Path | None = None) -> None:
    """Add rows to the work in progress, a new file for each study."""
    for study, part in pd.DataFrame(rows).groupby("study"):
        write_file((folder or own_results()) / f"{study}.{secrets.token_hex(4)}.parquet", part)


def find(jobs: Iterable[Job], folders: Iterable[Path] | None = None) -> dict[Job, dict]:
    """Return the rows of those of these agents that are stored, with the version of the numbers that this code has.

    Folders that come first win; if none are given, they are those of the published results and of work in progress.
    """
    wanted: dict[str, list[Job]] = {}
    for job in jobs:
        wanted.setdefault(job.study, []).append(job)
    found: dict[Job, dict] = {}
    for folder in folders or (results(), own_results()):
        for study, asked in wanted.items():
            for path in sorted({*folder.glob(f"{study}.parquet"), *folder.glob(f"{study}.*.parquet")}):
                known = rows_of(path, path.stat().st_mtime_ns)
                for job in asked:
                    if job in known and known[job]["numerics"] == numerics(job.algorithm):
                        found.setdefault(job, known[job])
    return found


@functools.lru_cache(64)
def rows_of(path: Path, changed: int) -> dict[Job, dict]:
    """Return the rows of a file by their jobs, read once unless the file changes."""
    return {job_of(row): row for row in read_file(path).to_dict("records")}


def histories(agents: pd.DataFrame) -> pd.DataFrame:
    """Return one row per iteration of an agent, with those of the curves that are stored of all of them."""
    kept = [name for name in CURVES if f"curve_{name}" in agents and agents[f"curve_{name}"].notna().all()]
    lengths = agents[f"curve_{kept[0]}"].map(len)
    frame = agents.loc[agents.index.repeat(lengths), ["algorithm", "system", "xi", "agent"]].reset_index(drop=True)
    frame["iteration"] = np.concatenate([np.arange(1, length + 1) for length in lengths])
    for name in kept:
        frame[name] = np.concatenate(agents[f"curve_{name}"].to_list())
    return frame


def best(agents: pd.DataFrame) -> pd.Series:
    """Return the agent with the highest reward at the end of training."""
    return agents.loc[agents.rewards.idxmax()]


def solves(frame: pd.DataFrame, column: str) -> pd.Series:
    """Return whether a return of each row solves its system, 1 or 0; NaN where nothing says when it is solved."""
    least = frame.system.map(solved_at).astype(float)
    return (frame[column] >= least).astype(float).where(least.notna())
