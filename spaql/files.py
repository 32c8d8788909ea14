"""Files: arrays with a header in one .npz file, and saved agents.

Files are written whole or not at all.  Reading them runs nothing (no pickle, no import), unpacks no more than is sane,
and checks what compiled code relies on, so that a damaged or forged file neither crashes nor hangs the process.
"""

import contextlib
import errno
import hashlib
import json
import math
import os
import secrets
import time
import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.lib.recfunctions import repack_fields

from spaql.checks import check_integer, shown
from spaql.compiling import records
from spaql.interrupts import deferred_interrupts
from spaql.partition import ARMS, BALLS, BITS, CELLS, NONE, SPLITS, Partition
from spaql.rules import HISTORY, STATUS, Learner, evaluates_first
from spaql.state import State

PREFIX, SUFFIX = ".spaql-", ".tmp"  # of files being written
ABANDONED = 24 * 3600  # seconds after which such a file is abandoned
LARGEST = 2**31  # bytes an archive may unpack to
SMALL, RATIO = 2**26, 100  # bytes that any may unpack to; a larger one at most to so many times its own size
LONGEST = 2**20  # bytes of a header


def write(path: Path, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a file that replaces an older one only when complete.

    A link is followed, and the file gets the mode that the user's umask asks for, as with other programs.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a folder or a device, not a file that could be replaced: give another name")
    arrays = {name: repack_fields(array) for name, array in arrays.items()}  # without padding between records
    header = header | {"checksum": checksum(arrays)}
    packed = arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    temporary = target.with_name(f"{PREFIX}{os.getpid()}-{secrets.token_hex(4)}{SUFFIX}")
    with deferred_interrupts() as check_interrupts:
        try:
            with os.fdopen(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666), "wb") as file:
                np.savez_compressed(file, **packed)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            check_interrupts()
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def checksum(arrays: dict[str, np.ndarray]) -> str:
    """Return a hash of arrays and their names."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        found.update(f"{name} {arrays[name].dtype.descr} {arrays[name].shape}".encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()


def read(
    path: Path, form: str, version: int, expected: Collection[str] | None = None
) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of a file of some format; raise ValueError if it is not such a file.

    With `expected` it refuses other arrays before they are unpacked, and a file without a checksum.
    """
    try:
        with zipfile.ZipFile(path) as file:
            entries = check_entries(path, file, expected)
            arrays = {name: read_entry(file, entry) for name, entry in entries.items()}
        header = json.loads(arrays.pop("header").tobytes())
        found = header["format"], header["version"]
        if header.get("checksum", checksum(arrays) if expected is None else None) != checksum(arrays):
            raise ValueError("its checksum does not match" if "checksum" in header else "it has no checksum")
    except OSError as error:
        if error.errno != errno.EINVAL:  # which is how an archive that points outside itself shows
            raise
        raise ValueError(f"{path} is damaged or not a {form} ({error})") from error
    except Exception as error:  # there is no end to what a damaged archive makes its readers raise
        reason = "it is no .npz archive" if isinstance(error, zipfile.BadZipFile) else error
        raise ValueError(f"{path} is damaged or not a {form} ({reason})") from error
    if found[0] != form:
        raise ValueError(f"{path} is not a {form}, but a {shown(found[0])}")
    if found[1] != version:
        raise ValueError(f"{path} has format version {shown(found[1])}, this package reads version {version}: "
                         "use the version of spaql that wrote it")  # fmt: skip
    return header, arrays


def check_entries(path: Path, file: zipfile.ZipFile, expected: Collection[str] | None) -> dict[str, zipfile.ZipInfo]:
    """Return an archive's entries by the names of their arrays, if it can be unpacked without harm.

    A small file can hold a lot of zeros: nothing is unpacked before its directory says how much there is.
    """
    entries = {entry.filename.removesuffix(".npy"): entry for entry in file.infolist()}
    if len(entries) < len(file.infolist()):
        raise ValueError("it has two arrays of one name")
    if expected is not None and (unknown := entries.keys() - set(expected) - {"header"}):
        raise ValueError(f"it has an array {shown(min(unknown))}, which is not expected")
    size, limit = sum(entry.file_size for entry in entries.values()), max(SMALL, RATIO * path.stat().st_size)
    if size > min(limit, LARGEST) or entries["header"].file_size > LONGEST:
        raise ValueError(f"it would unpack to {size:,} bytes, or its header is longer than {LONGEST:,}")
    return entries


def read_entry(file: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Return an array of an archive, if the entry is as long as it says of itself."""
    with file.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
        shape, fortran, dtype = reader(stream)
        if dtype.hasobject:
            raise ValueError("it holds Python objects, which are never read")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size != entry.file_size - stream.tell():
            raise ValueError(f"its array {entry.filename} is not as long as it says")
        array = np.frombuffer(stream.read(), dtype, math.prod(shape))
    return array.reshape(shape, order="F" if fortran else "C").copy()


def check_array(arrays: dict[str, np.ndarray], name: str, dtype: Any, length: int | None = None) -> np.ndarray:
    """Return an array of a file if it has the type and length it should have."""
    array, expected = arrays[name], repack_fields(np.dtype(dtype))
    if array.dtype != expected or (length is not None and (array.ndim == 0 or len(array) != length)):
        raise ValueError(f"its array {name} is {array.dtype} of shape {array.shape}, expected {expected}")
    # Archives forget how records are aligned and spaced; compiled code takes arrays of another layout as another type.
    found = np.empty(array.shape, dtype) if np.dtype(dtype).names is None else records(len(array), dtype)
    found[...] = array
    return found


def sweep(folder: Path) -> None:
    """Remove what killed processes have left half-written."""
    for file in Path(folder).rglob(f"{PREFIX}*{SUFFIX}"):
        with contextlib.suppress(OSError):  # another process was faster, or the folder is not ours to change
            if time.time() - file.stat().st_mtime > ABANDONED:
                file.unlink()


# ---------------------------------------------------------------------------------------------------------------------
# Agents.  What an agent learns in is a `Partition`, or has methods of its own, `arrays(name)` and
# `restored(arrays, name)`, as a memory has `arrays()` and `restored(arrays, size, actions)`.

FORMAT, VERSION = "saved agent", 1
HEADER = {"algorithm", "env_id", "parameters", "rules", "seed", "env_seed", "streams"}
STORED = Partition._fields[:-1]  # of a partition; the axes are the environment's
MOST_VISITS = 2**53  # of a ball: beyond, numbers are not exact, and more than any learning gives
PCG64 = {"state": 2**128, "inc": 2**128, "has_uint32": 2, "uinteger": 2**32}  # fields of such a stream, and their ends
LONGEST_KEY = 16  # of a seed that was spawned


def partition_arrays(partition: Any, name: str) -> dict[str, np.ndarray]:
    """Return what a file keeps of a partition, or of what an agent learns in instead."""
    if not isinstance(partition, Partition):
        return partition.arrays(name)
    return {f"{name}_{field}": np.asarray(getattr(partition, field)) for field in STORED}


def state_arrays(state: State, learner: Learner) -> dict[str, np.ndarray]:
    """Return what a file keeps of an agent's state."""
    arrays = {"status": state.status, "history": state.history} | partition_arrays(state.trainee, "trainee")
    arrays |= partition_arrays(state.best, "best") if evaluates_first(learner) else {}
    return arrays | (state.memory.arrays() if state.memory is not None else {})


def write_agent(path: str | os.PathLike, header: dict, state: State, learner: Learner) -> None:
    """Write an agent: what makes it, in the header, and its state."""
    check_kept_seed(header["seed"])
    header = {"format": FORMAT, "version": VERSION} | header | {"streams": state.streams, "played": state.played}
    write(Path(path), header, state_arrays(state, learner))


def read_agent(path: str | os.PathLike, algorithm: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of an agent of some class."""
    header, arrays = read(Path(path), FORMAT, VERSION)
    if missing := sorted({*HEADER, "checksum"} - header.keys()):
        raise ValueError(f"{path} is no sound saved agent: its header does not say {', '.join(missing)}")
    found = str(header["algorithm"])[:40]
    if found != algorithm:
        raise ValueError(f"{path} holds an agent of class {found}, not {algorithm}: load it with {found}.load")
    with errors_of(path, header["env_id"]):
        check_kept_seed(header["seed"])
        for name, stream in header["streams"].items():
            check_stream(name, stream)
    return header, arrays


@contextlib.contextmanager
def errors_of(path: str | os.PathLike, env_id: Any) -> Iterator[None]:
    """Add the path and a hint to errors."""
    try:
        yield
    except (gym.error.Error, ImportError) as error:
        raise ValueError(f"the agent in {path} was made for {env_id!r}, which cannot be made here ({error}): install "
                         "what it needs, or give load() an environment of your own, load(path, env=...)"
                         ) from error  # fmt: skip
    except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"{path} is not a sound saved agent for this environment: {error}") from error


def check_env_id(env_id: Any, path: str | os.PathLike) -> str:
    """Return the id of a file's environment, if making it runs nothing but what this process has registered."""
    if env_id is None:
        raise ValueError(f"the agent in {path} was made with an environment, not an id: "
                         "give load() such an environment, load(path, env=...)")  # fmt: skip
    if not isinstance(env_id, str) or env_id not in gym.registry:
        raise ValueError(f"the agent in {path} was made for {shown(env_id)}, which is not registered here, and "
                         "a file imports nothing: import what registers it, or give load() the environment, "
                         "load(path, env=...)")  # fmt: skip
    return env_id


def check_kept_seed(seed: dict) -> None:
    """Raise an error unless a seed is one that NumPy draws or a user gives: others may take hours to be mixed."""
    check_integer("entropy of a saved seed", seed["entropy"], at_least=0, at_most=2**128 - 1)
    if len(seed["spawn_key"]) > LONGEST_KEY:
        raise ValueError(f"the seed of a saved agent may have been spawned {LONGEST_KEY} times, not more")
    for number in seed["spawn_key"]:
        check_integer("spawn_key of a saved seed", number, at_least=0, at_most=2**64)


def check_stream(name: str, stream: Any) -> None:
    """Raise an error unless a stream is PCG64's, or an environment's that there is none of."""
    if name == "environment" and not stream:
        return
    if stream["bit_generator"] != "PCG64" or stream["state"].keys() | stream.keys() != {*PCG64, "bit_generator"}:
        raise ValueError(f"its stream of the {name} is not PCG64's")
    for field, number in (stream | stream["state"]).items():
        if field in PCG64 and not isinstance(number, dict):
            check_integer(f"{field} of the {name}'s stream", number, at_least=0, at_most=PCG64[field] - 1)


def restore(header: dict, arrays: dict, new: State, learner: Learner, memory: int) -> State:
    """Return the state that a file holds, checked; `new` is that of the agent before it has learned anything.

    `memory` is the most transitions that an agent may remember.
    """
    if different := arrays.keys() ^ state_arrays(new, learner).keys():
        raise ValueError(f"it was written by another version of spaql, whose agents are not the same "
                         f"({', '.join(sorted(different)[:3])}): train the agent again")  # fmt: skip
    trainee = read_partition(arrays, "trainee", new.trainee, learner.discrete)
    best = read_partition(arrays, "best", new.best, learner.discrete) if evaluates_first(learner) else trainee
    status, history = check_array(arrays, "status", STATUS, 1), check_array(arrays, "history", HISTORY)
    check_progress(status, history, learner)
    played = check_integer("played", header.get("played", 0), at_least=-1)  # older files have none
    remembered = None if new.memory is None else new.memory.restored(arrays, memory, len(new.best.actions))
    return State(trainee, best, status, history, header["streams"], played, remembered)


def check_progress(status: np.ndarray, history: np.ndarray, learner: Learner) -> None:
    """Raise an error unless status and history are those of an agent between two iterations."""
    row = status[0]
    fresh = row["iteration"] == -1 and row["episode"] == 1 and evaluates_first(learner)
    between = fresh or (row["iteration"] >= 0 and row["episode"] == 0)
    if not between or history.ndim != 1 or len(history) != max(0, row["iteration"]):
        raise ValueError("its history and its number of iterations disagree")
    # A temperature may grow beyond all numbers: then every ball is as likely as the others.
    finite = np.isfinite([row["total"], row["best"], row["u"]]).all() and row["tau"] >= 0 and row["u"] > 0
    counts = min(row["steps"], row["evaluation_steps"], row["seen"]) >= 0
    sound = np.isfinite(history["rewards"]) & np.isfinite(history["evaluations"]) & (history["tau"] >= 0)
    sound &= (history["steps"] >= 1) & (history["steps"] <= learner.H) & (history["arms"] >= 1)
    sound &= (history["trainee_arms"] >= 1) & (history["evaluation_steps"] >= 0)
    if not finite or not counts or not sound.all():
        raise ValueError("its status or its history has numbers that no learning gives")


def read_partition(arrays: dict, name: str, like: Any, discrete: bool) -> Any:
    """Return a partition of a saved agent, checked: compiled code follows its indices without looking.

    `like` is the partition that the agent began with.
    """
    if not isinstance(like, Partition):
        return like.restored(arrays, name)
    found = {field: check_array(arrays, f"{name}_{field}", getattr(like, field).dtype) for field in STORED}
    p = Partition(**found, axes=like.axes)
    if not is_sound(p, like, discrete):
        raise ValueError(f"its {name} partition does not hold together, or belongs to another environment")
    return p


def is_sound(p: Partition, like: Partition, discrete: bool) -> bool:
    """Return whether indices are in range, without cycles, and numbers are finite and such as learning gives."""
    balls, cells, roots, halves = p.balls, p.cells, len(like.cells), 2 ** len(p.axes)
    count, places = len(balls), np.arange(len(cells))
    if p.low.shape != p.high.shape or p.low.shape != (count, like.low.shape[1]) or p.counts.shape != like.counts.shape:
        return False
    # Cells: each inner one has its halves in a row, after itself.
    inner = np.flatnonzero(cells["children"] != NONE)
    first = cells["children"][inner].astype(np.int64)
    below = (first[:, None] + np.arange(halves)).ravel()
    if not np.array_equal(np.sort(below), places[roots:]) or np.any(first <= inner):
        return False
    above = np.repeat(inner, halves)
    sound = bool(np.all(cells["parent"][below] == above) and np.all(cells["parent"][:roots] == NONE))
    sound &= np.array_equal(cells["depth"][below], cells["depth"][above] + 1) and not np.any(cells["depth"][:roots])
    sound &= bool(cells["depth"].max() <= BITS)
    # Balls: each leads to an older one of its cell.
    following, cell = balls["next"], balls["cell"]
    linked = np.flatnonzero(following != NONE)
    if not sound or np.any((following < NONE) | (following >= np.arange(count))) or np.any(cell >= len(cells)):
        return False
    if np.any(cell < 0) or np.any(cell[following[linked]] != cell[linked]):
        return False
    heads = cells["first"]
    named = np.flatnonzero(heads != NONE)
    if np.any((heads < NONE) | (heads >= count)) or np.any(cell[heads[named]] != named):
        return False
    whole = np.zeros(count + 1, bool)  # balls that were not split; the last place is that of NONE
    ball = heads[named]
    while ball.size:
        whole[ball] = True
        ball = following[ball]
        ball = ball[ball != NONE]
    # Which is the best one: a whole ball of this cell, or of one above it.
    own, best = cells["own"], cells["best"]
    if np.any((own < NONE) | (own >= count) | (best < NONE) | (best >= count)):
        return False
    sound = np.array_equal(own != NONE, heads != NONE)
    sound &= bool(np.all(whole[own[named]] & (cell[own[named]] == named)))
    inherited = np.flatnonzero(best != own)
    upper = cells["parent"][inherited]
    sound &= bool(np.all((upper != NONE) & (best[inherited] == best[upper])))
    sound &= bool(np.all(best[cells["children"] == NONE] != NONE))
    # Numbers.
    low, high = (np.floor(p.low), np.floor(p.high)) if discrete else (p.low, p.high)
    sound &= bool(np.all((low == p.low) & (high == p.high) & (low >= like.low.min()) & (high <= like.high.max())))
    sound &= bool(np.all(low < high if discrete else low <= high))
    sound &= bool(np.all(np.isfinite(balls["q"]) & np.isfinite(balls["rank"])))
    sound &= bool(np.all((balls["visits"] >= 0) & (balls["visits"] <= MOST_VISITS)))
    counted = {BALLS: count, CELLS: len(cells), ARMS: whole.sum(), SPLITS: count - whole.sum()}
    return bool(sound and all(p.counts[which] == number for which, number in counted.items()))
