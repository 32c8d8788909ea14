"""The published agents: `agents.parquet`, one row per agent, and `curves/`, the learning curves of some of them.

The columns of the table are the study, the job's fields (N is its `evaluations`, `fresh_episodes` its `fresh`), the
numbers of `outcomes.outcome`, `wall` (seconds), where they come from (`date`, `commit`, and `origin` as JSON), and

- `curves`: what is kept of the agent beside its row, nothing if empty;
- `digest`: of the whole record as it was computed, which `spaql verify` compares with;
- `check`: of what is kept here, which reading compares with.

Files of curves have one row per agent, found by the same `digest`, with lists of one entry per iteration, and `fresh`
with one per fresh episode.

>>> pd.read_parquet("results/agents.parquet").groupby(["study", "system", "algorithm"]).rewards.mean()
"""

import contextlib
import functools
import hashlib
import json
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from spaql import archive
from spaql.paper.runs.errors import DamagedPack
from spaql.paper.runs.job import History, Job, Record, frozen
from spaql.paper.runs.outcomes import COUNTS, OUTCOMES, outcome
from spaql.paper.runs.provenance import default_store
from spaql.rules import HISTORY, RULES, Rules

FORMAT = {"format": "spaql agents", "version": "2"}

JOB = {  # a job's fields, and their columns
    "algorithm": ("algorithm", pa.string()),
    "system": ("system", pa.string()),
    "xi": ("xi", pa.float64()),
    "iterations": ("iterations", pa.int64()),
    "evaluations": ("N", pa.int64()),
    "seed": ("seed", pa.int64()),
    "agent": ("agent", pa.int64()),
    "rules": ("rules", pa.string()),  # "paper", "released", or what differs from the paper's
    "fresh": ("fresh_episodes", pa.int64()),
    "record": ("record", pa.bool_()),
    "starts": ("starts", pa.string()),
    "parameters": ("parameters", pa.string()),  # JSON
    "looks": ("looks", pa.int64()),
    "brief": ("brief", pa.bool_()),
}

CURVES = ("rewards", "arms", "steps", "evaluation_steps")  # of a history that may be kept
END = ("rewards", "arms", "evaluations", "steps", "evaluation_steps")  # of a history that is only kept as its end
FRESH = "fresh"

AGENTS_SCHEMA = pa.schema(
    {"study": pa.string()}
    | dict(JOB.values())
    | {name: pa.int64() if name in COUNTS else pa.float64() for name in OUTCOMES}
    | {"wall": pa.float64(), "date": pa.string(), "commit": pa.string(), "origin": pa.string()}
    | {"curves": pa.string(), "digest": pa.string(), "check": pa.string()},
    metadata=FORMAT,
)

CURVES_SCHEMA = pa.schema(
    {"digest": pa.string(), "algorithm": pa.string(), "xi": pa.float64(), "agent": pa.int64()}
    | {name: pa.list_(pa.from_numpy_dtype(HISTORY[name])) for name in CURVES}
    | {FRESH: pa.list_(pa.float32())},
    metadata=FORMAT,
)

COMPRESSED = {"compression": "zstd", "compression_level": 15, "write_page_checksum": True}


class Stored(NamedTuple):
    """A record and where it comes from."""

    record: Record
    origin: dict[str, Any]


class Entry(NamedTuple):
    """An agent of the table: its row, and its curves by name."""

    row: dict[str, Any]
    curves: dict[str, np.ndarray]


# ---------------------------------------------------------------------------------------------------------------------
# Rows


def rules_text(rules: Rules) -> str:
    """Return rules as the table has them."""
    known = [name for name, choice in RULES.items() if choice == rules]
    changed = {name: choice for name, choice in rules._asdict().items() if choice != Rules._field_defaults[name]}
    return known[0] if known else ", ".join(f"{name}={choice}" for name, choice in changed.items())


@functools.cache
def parse_rules(text: str) -> Rules:
    """Return the rules of a text of the table."""
    return RULES[text] if text in RULES else Rules(**dict(part.split("=") for part in text.split(", ")))


def make_entry(study: str, stored: Stored, curves: Iterable[str]) -> Entry:
    """Return an agent of the table from a whole record; `curves` names what is kept beside the row."""
    record, origin = stored
    job = record.job
    kept = {name: record.rewards if name == FRESH else np.asarray(record.history[name]) for name in curves}
    row = {"study": study} | {column: getattr(job, field) for field, (column, _) in JOB.items()}
    row |= {"rules": rules_text(job.rules), "parameters": json.dumps(dict(job.parameters)) if job.parameters else ""}
    row |= dict(outcome(record))
    row |= {"wall": record.wall, "date": origin.get("date", ""), "commit": origin.get("commit", "")}
    row["origin"] = json.dumps({name: value for name, value in origin.items() if name not in ("date", "commit")})
    row |= {"curves": ", ".join(kept), "digest": record.digest()}
    return Entry(row | {"check": check(job, row, kept)}, kept)


def check(job: Job, row: Mapping[str, Any], curves: Mapping[str, np.ndarray]) -> str:
    """Return a digest of what is kept of an agent."""
    words = [row[name] for name in ("date", "commit", "origin", "curves", "digest")]
    found = hashlib.sha256(json.dumps([job.named(), words], sort_keys=True).encode())
    found.update(np.array([row[name] for name in (*OUTCOMES, "wall")], float).tobytes())
    for array in curves.values():
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def job_of(row: Mapping[str, Any]) -> Job:
    """Return the job of a row."""
    fields = {field: row[column] for field, (column, _) in JOB.items()}
    fields["rules"] = parse_rules(fields["rules"])
    fields["parameters"] = frozen(json.loads(fields["parameters"] or "{}"))
    return Job(**fields)


def origin_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return where the numbers of a row come from."""
    return json.loads(row["origin"]) | {name: row[name] for name in ("commit", "date") if row[name]}


def record_of(job: Job, entry: Entry) -> Record:
    """Return what is stored of an agent as a record."""
    row, curves = entry
    kept = [name for name in CURVES if name in curves]
    if kept:
        history = np.empty(len(curves[kept[0]]), [(name, HISTORY[name]) for name in kept])
        for name in kept:
            history[name] = curves[name]
    else:
        history = np.array([tuple(row[name] for name in END)], [(name, HISTORY[name]) for name in END])
    numbers = {name: row[name] for name in OUTCOMES}
    fresh = [numbers[name] for name in ("fresh", "fresh_std", "fresh_deterministic", "fresh_deterministic_std")]
    return Record(
        job,
        history.view(History),
        np.array([number for number in fresh if not np.isnan(number)]),
        curves.get(FRESH, np.zeros(0, np.float32)),
        {},
        row["wall"],
        numbers,
        row["digest"],
    )


# ---------------------------------------------------------------------------------------------------------------------
# Reading


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


def open_parquet(path: Path) -> pq.ParquetFile:
    """Return a file of this format."""
    file = pq.ParquetFile(path, page_checksum_verification=True)
    metadata = file.schema_arrow.metadata or {}
    found = {name: metadata.get(name.encode(), b"nothing").decode() for name in FORMAT}
    if found != FORMAT:
        file.close()
        raise ValueError(f"it says {found}, expected {FORMAT}")
    return file


def version_of(path: Path) -> tuple[int, ...]:
    """Return what tells one version of a file from another."""
    found = path.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def load_agents(store: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return the table of agents: one row per published agent of every study, see this module.

    Parameters
    ----------
    store
        The folder of stored results; the repository's if not given.

    Examples
    --------
    >>> agents = load_agents()
    >>> agents[agents.study == "long"].groupby(["system", "algorithm"])[["rewards", "fresh", "arms"]].mean()
    """
    path = agents_path(Path(store) if store else default_store())
    with reading(path), open_parquet(path) as file:
        return file.read().to_pandas()


def agents_path(store: Path) -> Path:
    """Return where the table of agents of a store is."""
    return Path(store) / "agents.parquet"


def curves_path(store: Path, row: Mapping[str, Any]) -> Path:
    """Return where the curves of an agent are: one file per study and system."""
    return Path(store) / "curves" / f"{row['study']}-{short_name(row['system'])}.parquet"


def short_name(system: str) -> str:
    """Return the name of a system without its namespace, as folders and files have it."""
    return system.rpartition("/")[2].replace(":", "-")


class Agents(NamedTuple):
    """The table of agents as it is read: where each job stands, and the columns."""

    places: dict[Job, int]
    columns: dict[str, Any]

    def row(self, job: Job) -> dict[str, Any]:
        """Return the row of a job."""
        place = self.places[job]
        return {name: column[place] for name, column in self.columns.items()}


def read_agents(store: Path) -> Agents:
    """Return the table of a store, read once unless the file changes; an empty one if there is none."""
    path = agents_path(store)
    try:
        return _read_agents(path, version_of(path))
    except FileNotFoundError:
        return Agents({}, {})


@functools.lru_cache(8)
def _read_agents(path: Path, version: tuple[int, ...]) -> Agents:
    with reading(path), open_parquet(path) as file:
        table = file.read(AGENTS_SCHEMA.names)
        columns = {
            name: table.column(name).to_numpy().tolist() if name in OUTCOMES else table.column(name).to_pylist()
            for name in table.column_names
        }
        names = [column for column, _ in JOB.values()]
        jobs = zip(*(columns[name] for name in names), strict=True)
        return Agents({job_of(dict(zip(names, job, strict=True))): i for i, job in enumerate(jobs)}, columns)


def read_curves(path: Path) -> dict[str, dict[str, np.ndarray]]:
    """Return the curves of the agents of a file by their digests, read once unless the file changes."""
    return _read_curves(path, version_of(path))


@functools.lru_cache(64)
def _read_curves(path: Path, version: tuple[int, ...]) -> dict[str, dict[str, np.ndarray]]:
    with reading(path), open_parquet(path) as file:
        table = file.read(use_threads=False)
        columns = {name: table.column(name).combine_chunks() for name in (*CURVES, FRESH)}
        return {
            digest: {name: column[i].values.to_numpy() for name, column in columns.items() if column[i].is_valid}
            for i, digest in enumerate(table.column("digest").to_pylist())
        }


def read_entries(store: Path, jobs: Iterable[Job]) -> dict[Job, Entry]:
    """Return those of these agents that a store's table has, checked against their digests."""
    agents = read_agents(store)
    wanted = {job: agents.row(job) for job in jobs if job in agents.places}
    curves: dict[str, dict[str, np.ndarray]] = {}
    for path in {curves_path(store, row) for row in wanted.values() if row["curves"]}:
        try:
            curves |= read_curves(path)
        except FileNotFoundError as error:
            raise DamagedPack(f"{path} is missing; take it from the repository again") from error
    found = {}
    for job, row in wanted.items():
        kept = curves.get(row["digest"], {})
        kept = {name: kept[name] for name in row["curves"].split(", ") if name in kept}
        if check(job, row, kept) != row["check"]:
            beside = f", here or in {curves_path(store, row)}" if row["curves"] else ""
            with reading(agents_path(store)):
                raise ValueError(f"the checksum of agent {job.agent} of {job.algorithm} does not match{beside}")
        found[job] = Entry(row, kept)
    return found


def read_jobs(store: Path, jobs: Iterable[Job]) -> dict[Job, Stored]:
    """Return what a store's table has of these agents, or raise `DamagedPack`."""
    return {
        job: Stored(record_of(job, entry), origin_of(entry.row)) for job, entry in read_entries(store, jobs).items()
    }


# ---------------------------------------------------------------------------------------------------------------------
# Writing


def write_table(store: Path, entries: Mapping[Job, Entry]) -> list[Path]:
    """Write the table of a store, and the files of curves that change; return what was written.

    Curves come first, and keep what the table had before, so that whenever this is interrupted the table finds its own.
    A file replaces an older one only when it is complete and found to hold what it should.
    """
    before = set(read_agents(store).columns.get("digest", ()))
    order = sorted(entries, key=lambda job: (entries[job].row["study"], job.group().identity(), job.agent))
    files: dict[Path, list[Job]] = {}
    for job in order:
        if entries[job].row["curves"]:
            files.setdefault(curves_path(store, entries[job].row), []).append(job)
    written = []
    for path, jobs in files.items():
        known = read_curves(path) if path.exists() else {}
        own = {entries[job].row["digest"]: curves_row(entries[job]) for job in jobs}
        if own.keys() <= known.keys():
            continue
        others = [{"digest": one} | known[one] for one in known if one in before and one not in own]
        write_file(path, CURVES_SCHEMA, [*own.values(), *others])
        written.append(path)
    path = agents_path(store)
    rows = [
        {name: None if value != value else value for name, value in entries[job].row.items()}  # no NaN in the file
        for job in order
    ]
    write_file(path, AGENTS_SCHEMA, rows)
    return [*written, path]


def curves_row(entry: Entry) -> dict[str, Any]:
    """Return the row of an agent in a file of curves."""
    return {name: entry.row[name] for name in ("digest", "algorithm", "xi", "agent")} | entry.curves


def layout(schema: pa.Schema) -> dict[str, Any]:
    """Return how columns are written so that a file is small: texts that repeat once, the bytes of numbers by place."""
    lists = [f"{field.name}.list.element" for field in schema if pa.types.is_list(field.type)]
    numbers = [field.name for field in schema if pa.types.is_floating(field.type)]
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    return {
        "use_dictionary": [name for name in texts if name not in ("digest", "check")],
        "column_encoding": dict.fromkeys([*lists, *numbers], "BYTE_STREAM_SPLIT"),
    }


def write_file(path: Path, schema: pa.Schema, rows: list[dict]) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{archive.PREFIX}{os.getpid()}-{secrets.token_hex(4)}{archive.SUFFIX}")
    table = pa.Table.from_pylist(rows, schema)
    try:
        with temporary.open("xb") as file:
            pq.write_table(table, file, **COMPRESSED, **layout(schema))
            file.flush()
            os.fsync(file.fileno())
        with open_parquet(temporary) as written:
            if not written.read().equals(table):
                raise RuntimeError(f"what was written to {path} is not what was to be stored; nothing is changed")
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make sure that a new name in a folder outlasts a power cut, where folders can be asked for it."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
