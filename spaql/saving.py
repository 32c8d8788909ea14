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
from spaql.bisection import ROWS, Bisection
from spaql.checks import check_integer, shown
from spaql.memory import with_room
from spaql.partition import ARMS, NONE, Partition, copy, split
from spaql.replay import GOES_ON, KEPT, TAKEN, TERMINAL, Memory
from spaql.rules import HISTORY, SPAQL_R, STATUS, Learner, evaluates_first, keeps_best
from spaql.state import State

FORMAT, VERSION = "saved agent", 1
FORMER = ("least", "most", "slope", "low", "high")  # of partitions of the SPAQL-R before this one
RNG = np.random.default_rng(0)  # split() asks for one; without random ties it draws nothing
STORED = Partition._fields[:-1]  # of a partition; the axes are the environment's
ARRAYS = {
    *("status", "history", "memory_taken", "memory_rewards", "memory_weights"),
    *(f"{name}_{field}" for name in ("trainee", "best") for field in (*STORED, *ROWS, "seen", *FORMER)),
    *(f"memory_{name}" for name in KEPT),
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
        arrays |= memory_arrays(state.memory)
    archive.write(Path(path), header, arrays)


def read(path: str | os.PathLike, algorithm: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Return the header and the arrays of an agent of some class."""
    header, arrays = archive.read(Path(path), FORMAT, VERSION, ARRAYS)
    if missing := sorted(HEADER - header.keys()):
        raise ValueError(f"{path} is no sound saved agent: its header does not say {', '.join(missing)}")
    found = str(header["algorithm"])[:40]
    if found != algorithm:
        raise ValueError(f"{path} holds an agent of class {found}, not {algorithm}: load it with {found}.load")
    before = arrays.keys() & {"trainee_balls", "trainee_least", "trainee_slope"}
    if algorithm == "SPAQLR" and (before or arrays.get("memory_weights", np.empty((0, 0))).ndim == 1):
        raise ValueError(f"{path} holds an agent of an earlier SPAQL-R, which learned something else: "
                         "train it again, SPAQLR(...).learn(samples=...), and save it")  # fmt: skip
    return header, arrays


def partition_arrays(partition: Partition | Bisection, name: str) -> dict[str, np.ndarray]:
    """Return what a file keeps of a partition."""
    fields = (*ROWS, "seen") if isinstance(partition, Bisection) else STORED
    return {f"{name}_{field}": np.asarray(getattr(partition, field)) for field in fields}


def unpack(header: dict, arrays: dict, new: State, learner: Learner, memory: int) -> State:
    """Return the state that a file holds, checked; `new` is that of the agent before it has learned anything.

    `memory` is the most transitions that an agent may remember.
    """
    trainee = read_partition(arrays, "trainee", new.best, learner.discrete)
    best = read_partition(arrays, "best", new.best, learner.discrete) if keeps_best(learner) else trainee
    status, history = check_array(arrays, "status", STATUS, 1), check_array(arrays, "history", HISTORY)
    check_status(status, history, learner)
    played = check_integer("played", header.get("played", 0), at_least=-1)  # older files have none
    arms = best.q.size - best.nodes[0] // 2 * len(best.actions) if isinstance(best, Bisection) else best.counts[ARMS]
    check_history(history, status, int(arms), learner, again=played != 0)
    remembered = None if new.memory is None else read_memory(arrays, new.memory, memory, len(new.best.actions))
    if remembered is not None and remembered.counts[TAKEN] != history["steps"].sum():
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


def memory_arrays(memory: Memory) -> dict[str, np.ndarray]:
    """Return what a file keeps of a memory."""
    kept = min(int(memory.counts[TAKEN]), len(memory.reward))
    arrays = {f"memory_{name}": getattr(memory, name)[:kept] for name in KEPT}
    return arrays | {"memory_taken": memory.counts[[TAKEN]], "memory_rewards": memory.rewards,
                     "memory_weights": memory.weights}  # fmt: skip


def read_memory(arrays: dict, memory: Memory, size: int, actions: int) -> Memory:
    """Return an empty memory filled with what a file has kept, checked; `size` is the most it may hold."""
    taken = int(check_array(arrays, "memory_taken", np.int64, 1)[0])
    kept = min(taken, size)
    if kept != len(arrays["memory_reward"]):
        raise ValueError("its memory is not as long as it says")
    memory = with_room(memory, kept, size)
    for name in KEPT:
        into = getattr(memory, name)
        read = check_array(arrays, f"memory_{name}", into.dtype, kept)
        if read.shape[1:] != into.shape[1:] or not np.all(np.isfinite(read)):
            raise ValueError(f"its memory has a wrong {name}")
        into[:kept] = read
    inside = all(np.all(np.abs(states) <= 1.0) for states in (memory.x, memory.y))
    known = np.all((memory.action >= 0) & (memory.action < actions))
    rewards = check_array(arrays, "memory_rewards", float, 2)
    met = memory.reward.min(initial=0.0), memory.reward.max(initial=0.0)
    forgot = taken > kept  # whatever rewards there were before
    known &= bool(np.isfinite(rewards).all() and rewards[0] <= met[0] and met[1] <= rewards[1])
    known &= forgot or tuple(rewards) == met
    weights = check_array(arrays, "memory_weights", float, len(memory.weights))
    known &= weights.shape == memory.weights.shape and bool(np.isfinite(weights).all())
    if taken < 0 or not inside or not known or not np.all((memory.end >= GOES_ON) & (memory.end <= TERMINAL)):
        raise ValueError("its memory holds what no learning gives")
    memory.counts[TAKEN], memory.rewards[:], memory.weights[:] = taken, rewards, weights
    return memory


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


def read_tree(arrays: dict, name: str, like: Bisection) -> Bisection:
    """Return a tree of cells of a saved agent, checked: compiled code follows its indices without looking."""
    nodes = len(arrays[f"{name}_child"])
    found = {}
    for field in ROWS:
        expected = getattr(like, field)
        found[field] = check_array(arrays, f"{name}_{field}", expected.dtype, nodes)
        if found[field].shape[1:] != expected.shape[1:]:
            raise ValueError(f"its {name} partition belongs to another environment")
    seen = check_array(arrays, f"{name}_seen", like.seen.dtype, len(like.seen))
    if seen.shape != like.seen.shape:
        raise ValueError(f"its {name} partition belongs to another environment")
    tree = Bisection(**found, nodes=np.array([nodes]), seen=seen, actions=like.actions)
    cells = np.flatnonzero(tree.child != NONE)
    children = tree.child[cells]
    # Each cut has added two nodes, after those that were there.
    whole = np.array_equal(np.sort(children), np.arange(1, nodes, 2)) and nodes % 2 == 1
    axes = np.all((tree.axis >= 0) & (tree.axis < seen.shape[1]))
    whole = whole and bool(np.all(children > cells) and axes and tree.depth[0] == 0)
    for half in (children, children + 1) if whole else ():
        whole = whole and np.array_equal(tree.depth[half], tree.depth[cells] + 1)
    if not whole:
        raise ValueError(f"its {name} partition does not hold together")
    sound = np.isfinite(tree.q).all() and np.all(np.abs(tree.border) <= 1.0)
    sound = sound and np.all((tree.visits >= 0) & (tree.visits <= MOST_VISITS))
    none = np.array_equal(seen, like.seen) and nodes == 1
    sound = sound and bool(none or np.all((seen[0] >= -1.0) & (seen[0] <= seen[1]) & (seen[1] <= 1.0)))
    if not sound:
        raise ValueError(f"its {name} partition has estimates, visits or boxes that no learning gives")
    if not np.array_equal(tree.q.argmax(axis=1), tree.best):  # the first of equals
        raise ValueError(f"its {name} partition does not know its best actions")
    return tree


def read_partition(arrays: dict, name: str, like: Any, discrete: bool) -> Any:
    """Return a partition of a saved agent, checked: compiled code follows its indices without looking.

    `like` is the partition the agent began with.  A partition is what splits made of that, one after the other, so the
    splits are found and made again: what comes out must be what was read, down to every index and bound.  The
    estimates, ranks and visits may be any numbers that learning can give.
    """
    if isinstance(like, Bisection):
        return read_tree(arrays, name, like)
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
    # A temperature may grow beyond all numbers: then every ball is as likely as the others.  What SPAQL-R has in its
    # place, a share of random actions, may have become zero.
    cold = row["tau"] == 0 and learner.algorithm == SPAQL_R
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
