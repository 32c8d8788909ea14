"""Files: arrays with a header in one .npz file, and saved agents.

Files are written whole or not at all.  Reading them runs nothing (no pickle, no import), unpacks no more than is sane,
and checks what compiled code relies on, so that a damaged or forged file neither crashes nor hangs the process.
"""

import contextlib
import json
import os
import secrets
import zipfile
from collections.abc import Iterator
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

LARGEST = 2**31  # bytes an archive may unpack to
SMALL, RATIO = 2**26, 100  # bytes that any may unpack to; a larger one at most to so many times its own size


def write(path: Path, header: dict, arrays: dict[str, np.ndarray]) -> None:
    """Write a file that replaces an older one only when complete.

    A link is followed.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a folder or a device, not a file that could be replaced: give another name")
    arrays = {name: repack_fields(array) for name, array in arrays.items()}  # without padding between records
    packed = arrays | {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    temporary = target.with_name(f".spaql-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with deferred_interrupts() as check_interrupts:
        try:
            with temporary.open("xb") as file:
                np.savez_compressed(file, **packed)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            check_interrupts()
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def read(path: Path, form: str, version: int) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of a file of some format; raise ValueError if it is not such a file.

    A small file can hold a lot of zeros: nothing is unpacked before its directory says how much there is.
    """
    try:
        with zipfile.ZipFile(path) as file:
            size = sum(entry.file_size for entry in file.infolist())
        if size > min(LARGEST, max(SMALL, RATIO * path.stat().st_size)):
            raise ValueError(f"it would unpack to {size:,} bytes")
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").tobytes())
        found = header["format"], header["version"]
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:  # there is no end to what a damaged archive makes its readers raise
        reason = "it is no .npz archive" if isinstance(error, zipfile.BadZipFile) else error
        raise ValueError(f"{path} is damaged or not a {form} ({reason})") from error
    if found[0] != form:
        raise ValueError(f"{path} is not a {form}, but a {shown(found[0])}")
    if found[1] != version:
        raise ValueError(f"{path} has format version {shown(found[1])}, this package reads version {version}: "
                         "use the version of spaql that wrote it")  # fmt: skip
    return header, arrays


def check_array(arrays: dict[str, np.ndarray], name: str, dtype: Any, length: int | None = None) -> np.ndarray:
    """Return an array of a file if it has the type and length it should have."""
    array, expected = arrays[name], repack_fields(np.dtype(dtype))
    if array.dtype != expected or (length is not None and (array.ndim == 0 or len(array) != length)):
        raise ValueError(f"its array {name} is {array.dtype} of shape {array.shape}, expected {expected}")
    # Archives forget how records are aligned and spaced; compiled code takes arrays of another layout as another type.
    found = np.empty(array.shape, dtype) if np.dtype(dtype).names is None else records(len(array), dtype)
    found[...] = array
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Agents.  What an agent learns in is a `Partition`, or has methods of its own, `arrays(name)` and
# `restored(arrays, name)`, as a memory has `arrays()` and `restored(arrays, size, actions)`.

FORMAT, VERSION = "saved agent", 1
HEADER = {"algorithm", "env_id", "parameters", "rules", "seed", "env_seed", "streams"}
STORED = Partition._fields[:-1]  # of a partition; the axes are the environment's
MOST_VISITS = 2**53  # of a ball: beyond, numbers are not exact, and more than any learning gives


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
    header = {"format": FORMAT, "version": VERSION} | header | {"streams": state.streams, "played": state.played}
    write(Path(path), header, state_arrays(state, learner))


def read_agent(path: str | os.PathLike, algorithm: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of an agent of some class."""
    header, arrays = read(Path(path), FORMAT, VERSION)
    if missing := sorted(HEADER - header.keys()):
        raise ValueError(f"{path} is no sound saved agent: its header does not say {', '.join(missing)}")
    found = str(header["algorithm"])[:40]
    if found != algorithm:
        raise ValueError(f"{path} holds an agent of class {found}, not {algorithm}: load it with {found}.load")
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
