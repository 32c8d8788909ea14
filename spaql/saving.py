"""Saved agents: one .npz file each, checked before compiled code follows the indices in it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

from spaql import archive
from spaql.archive import check_array
from spaql.checks import check_integer, shown
from spaql.partition import ARMS, NONE, Partition, copy, split
from spaql.rules import HISTORY, SPAQL_R, STATUS, TILE_Q, Learner, evaluates_first, keeps_best
from spaql.state import State

FORMAT, VERSION = "saved agent", 1
CELLS = ("child", "axis", "border", "q", "best", "visits", "seen", "nodes")  # of SPAQL-R
FORMER = ("least", "most", "slope", "low", "high", "depth")  # of those before this one
RNG = np.random.default_rng(0)  # split() asks for one; without random ties it draws nothing
STORED = Partition._fields[:-1]  # of a partition; the axes are the environment's
ARRAYS = {
    *("status", "history", "trainee_weights", "memory_taken", "memory_extremes", "memory_rewards", "memory_weights"),
    *(f"{name}_{field}" for name in ("trainee", "best") for field in (*STORED, *CELLS, *FORMER)),
    *(f"memory_{name}" for name in ("x", "y", "action", "reward", "end")),
}
HEADER = {"algorithm", "env_id", "parameters", "rules", "seed", "env_seed", "streams"}
MOST_VISITS = 2**53  # of a ball: beyond, numbers are not exact, and more than any learning gives


def write(path: str | os.PathLike, header: dict, state: State, learner: Learner) -> None:
    """Write an agent: what makes it, in the header, and its state."""
    header = {"format": FORMAT, "version": VERSION} | header | {"streams": state.streams, "played": state.played}
    arrays = {"status": state.status, "history": state.history}
    partitions = {"trainee": state.trainee} | ({"best": state.best} if keeps_best(learner) else {})
    for name, partition in partitions.items():
        arrays |= partition_arrays(partition, name)
    if state.memory is not None:
        arrays |= state.memory.arrays()
    archive.write(Path(path), header, arrays)


def read(path: str | os.PathLike, algorithm: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of an agent of some class."""
    header, arrays = archive.read(Path(path), FORMAT, VERSION, ARRAYS)
    if missing := sorted(HEADER - header.keys()):
        raise ValueError(f"{path} is no sound saved agent: its header does not say {', '.join(missing)}")
    found = str(header["algorithm"])[:40]
    if found != algorithm:
        raise ValueError(f"{path} holds an agent of class {found}, not {algorithm}: load it with {found}.load")
    if algorithm == "SPAQLR" and "trainee_nodes" not in arrays:
        raise ValueError(f"{path} holds an agent of an earlier SPAQL-R, which learned something else: train it again, "
                         "TileQ(...).learn(samples=...) for what it earned, or SPAQLR(...), and save it")  # fmt: skip
    return header, arrays


def partition_arrays(partition: Any, name: str) -> dict[str, np.ndarray]:
    """Return what a file keeps of a partition."""
    if not isinstance(partition, Partition):
        return partition.arrays(name)
    return {f"{name}_{field}": np.asarray(getattr(partition, field)) for field in STORED}


def unpack(header: dict, arrays: dict, new: State, learner: Learner, memory: int) -> State:
    """Return the state that a file holds, checked; `new` is that of the agent before it has learned anything.

    `memory` is the most transitions that an agent may remember.
    """
    trainee = read_partition(arrays, "trainee", new.best, learner.discrete)
    best = read_partition(arrays, "best", new.best, learner.discrete) if keeps_best(learner) else trainee
    status, history = check_array(arrays, "status", STATUS, 1), check_array(arrays, "history", HISTORY)
    check_status(status, history, learner)
    played = check_integer("played", header.get("played", 0), at_least=-1)  # older files have none
    arms = best.counts[ARMS] if isinstance(best, Partition) else best.arms()
    check_history(history, status, int(arms), learner, again=played != 0)
    remembered = None if new.memory is None else new.memory.restored(arrays, memory, len(new.best.actions))
    if remembered is not None and remembered.taken[0] != history["steps"].sum():
        raise ValueError("its memory and its history have taken different numbers of samples")
    return State(trainee, best, status, history, header["streams"], played, remembered)


@contextlib.contextmanager
def errors_of(path: str | os.PathLike, env_id: Any) -> Iterator[None]:
    """Say of which file an error is, and what helps."""
    try:
        yield
    except (gym.error.Error, ImportError) as error:
        raise ValueError(f"the agent in {path} was made for {env_id!r}, which cannot be made here ({error}): install "
                         "what it needs, or give load() an environment of your own, load(path, env=...)"
                         ) from error  # fmt: skip
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
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


def read_partition(arrays: dict, name: str, like: Any, discrete: bool) -> Any:
    """Return a partition of a saved agent, checked: compiled code follows its indices without looking.

    `like` is the partition the agent began with.  A partition is what splits made of that, one after the other, so the
    splits are found and made again: what comes out must be what was read, down to every index and bound.  The
    estimates, ranks and visits may be any numbers that learning can give.
    """
    if not isinstance(like, Partition):
        return like.restored(arrays, name)
    read = Partition(
        balls=check_array(arrays, f"{name}_balls", like.balls.dtype),
        low=check_array(arrays, f"{name}_low", like.low.dtype),
        high=check_array(arrays, f"{name}_high", like.high.dtype),
        cells=check_array(arrays, f"{name}_cells", like.cells.dtype),
        counts=check_array(arrays, f"{name}_counts", like.counts.dtype, len(like.counts)),
        axes=like.axes,
    )
    made = copy(like)
    if read.low.shape == read.high.shape == (len(read.balls), like.low.shape[1]):
        with contextlib.suppress(LookupError):
            for ball in find_splits(read, like, discrete):
                made = split(made, ball, discrete, False, RNG)
    made = copy(made)
    same = all(
        np.array_equal(getattr(made, field), getattr(read, field)) for field in ("low", "high", "counts")
    ) and all(
        np.array_equal(getattr(made, field)[column], getattr(read, field)[column])
        for field, columns in (("balls", ("cell", "next")), ("cells", ("children", "first", "parent", "depth")))
        for column in columns
    )
    if not same:
        raise ValueError(f"its {name} partition does not hold together, or belongs to another action space")
    numbers = np.isfinite(read.balls["q"]) & np.isfinite(read.balls["rank"]) & (read.balls["visits"] >= 0)
    numbers &= read.balls["visits"] <= MOST_VISITS
    if not np.all(numbers):
        raise ValueError(f"its {name} partition has estimates or visits that no learning gives")
    if not knows_its_best(read):
        raise ValueError(f"its {name} partition does not know its best balls")
    return read


def find_splits(p: Partition, first: Partition, discrete: bool) -> Iterator[int]:
    """Yield the balls that were split, in the order in which it happened; raise LookupError if that cannot have been.

    Each split has added a run of balls: for every half of its cell in turn the parts of its actions.  So the next run
    says which cell it was, and its first parts say which of that cell's balls.
    """
    halves, begin, end, known = 2 ** len(p.axes), len(first.balls), len(p.balls), len(p.cells)
    cells, parents = p.balls["cell"].tolist(), p.cells["parent"].tolist()
    lows, highs = (list(map(tuple, bounds.tolist())) for bounds in (p.low, p.high))
    place = {(cells[i], lows[i], highs[i]): i for i in range(begin)}
    while begin < end:
        cell = cells[begin]
        if not 0 <= cell < known:
            raise LookupError(cell)
        parts = 1 if lows[begin] == highs[begin] else 2 ** len(lows[0])
        if discrete:  # one action is not divided
            parts = 2 if begin + 1 < end and cells[begin + 1] == cell else 1
        low, high = (tuple(map(end_of, *bounds[begin : begin + parts])) if parts > 1 else bounds[begin]
                     for end_of, bounds in ((min, lows), (max, highs)))  # fmt: skip
        yield place.pop((parents[cell], low, high))
        for i in range(begin, min(begin + halves * parts, end)):
            place[cells[i], lows[i], highs[i]] = i
        begin += halves * parts


def knows_its_best(p: Partition) -> bool:
    """Return whether every cell names the best of the balls that hang on it, and of those relevant to it."""
    live, owner = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    cell = np.flatnonzero(p.cells["first"] != NONE)
    ball = p.cells["first"][cell]
    while ball.size:
        live.append(ball)
        owner.append(cell)
        after = p.balls["next"][ball]
        cell, ball = cell[after != NONE], after[after != NONE]
    ball, cell = np.concatenate(live), np.concatenate(owner)
    q, rank = p.balls["q"], p.balls["rank"]
    order = np.lexsort((rank[ball], q[ball], cell))
    own = np.full(len(p.cells), NONE, np.int64)
    own[cell[order]] = ball[order]  # the last, which is the best, stays
    parents, keys = p.cells["parent"].tolist(), list(zip(q.tolist(), rank.tolist(), strict=True))
    named = own.tolist()  # the best ball of each cell's own, then of those above it, too
    for i in np.argsort(p.cells["depth"], kind="stable").tolist():  # parents before their children
        above = NONE if parents[i] == NONE else named[parents[i]]
        if above != NONE and (named[i] == NONE or keys[above] >= keys[named[i]]):
            named[i] = above
    best = np.array(named)

    home = np.full(len(q), NONE, np.int64)  # the cell on which a ball hangs
    home[ball] = cell

    def alike(found: np.ndarray, expected: np.ndarray, inherited: bool) -> bool:
        """Equal balls are as good as each other: which of them is named depends on the order of what happened."""
        if not np.all((found >= NONE) & (found < len(q))) or not np.array_equal(found == NONE, expected == NONE):
            return False
        for i in np.flatnonzero(found != expected).tolist():
            at = i
            while inherited and at not in (NONE, home[found[i]]):
                at = parents[at]
            if at == NONE or at != home[found[i]]:
                return False
        return np.array_equal(q[found], q[expected]) and np.array_equal(rank[found], rank[expected])

    return alike(p.cells["own"], own, inherited=False) and alike(p.cells["best"], best, inherited=True)


def check_status(status: np.ndarray, history: np.ndarray, learner: Learner) -> None:
    """Raise an error if a status is not one between two iterations."""
    row = status[0]
    fresh = row["iteration"] == -1 and row["episode"] == 1 and evaluates_first(learner)
    if not fresh and not (row["iteration"] >= 0 and row["episode"] == 0):
        raise ValueError("its status is not that of an agent between two iterations")
    if len(history) != max(0, row["iteration"]):
        raise ValueError("its history and its number of iterations disagree")
    for name in ("total", "best"):
        if not np.isfinite(row[name]):
            raise ValueError(f"its status has {name} = {row[name]}")
    # A temperature may grow beyond all numbers: then every ball is as likely as the others.  What TileQ and SPAQL-R
    # have in its place, a share of random actions, may have become zero.
    cold = row["tau"] == 0 and learner.algorithm in (SPAQL_R, TILE_Q)
    if not (row["tau"] > 0 or cold) or not row["u"] > 0:
        raise ValueError(f"its status has tau = {row['tau']} and u = {row['u']}")
    if min(row["steps"], row["evaluation_steps"], row["seen"]) < 0:
        raise ValueError("its status counts below zero")


def check_history(history: np.ndarray, status: np.ndarray, arms: int, learner: Learner, again: bool) -> None:
    """Raise an error if a history is not one that this learner can have had, with a best agent evaluated `again`."""
    sound = np.isfinite(history["rewards"]) & np.isfinite(history["evaluations"]) & (history["tau"] >= 0)
    sound &= (history["steps"] >= 1) & (history["steps"] <= learner.H) & (history["evaluation_steps"] >= 0)
    sound &= (history["arms"] >= 1) & (history["trainee_arms"] >= 1)
    if keeps_best(learner):
        best = np.maximum(history["rewards"][:-1], history["evaluations"][1:])
        sound[:1] &= again | (history["rewards"][:1] >= history["evaluations"][:1])
        sound[1:] &= again | (history["rewards"][1:] == best)
    else:
        sound &= (history["rewards"] == history["evaluations"]) & (history["arms"] == history["trainee_arms"])
    if not evaluates_first(learner):  # its partition only grows
        sound[1:] &= np.diff(history["arms"]) >= 0
    if not sound.all():
        raise ValueError(f"its history is not one of learning: row {np.argmin(sound)} is {history[np.argmin(sound)]}")
    if len(history) and (history["rewards"][-1] != status["best"][0] or history["arms"][-1] != arms):
        raise ValueError("its history does not end where the agent is")
