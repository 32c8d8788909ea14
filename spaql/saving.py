"""Saved agents: one .npz file each, checked before compiled code follows the indices in it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from spaql import archive
from spaql.archive import check_array
from spaql.checks import check_integer
from spaql.partition import NONE, Partition, copy, split
from spaql.rules import HISTORY, STATUS, Rules

if TYPE_CHECKING:
    from spaql.agent import Agent

FORMAT, VERSION = "saved agent", 1
RNG = np.random.default_rng(0)  # split() asks for one; without random ties it draws nothing
STORED = Partition._fields[:-1]  # of a partition; the axes are the environment's


def save(agent: "Agent", path: str | os.PathLike) -> None:
    """Write an agent as it is after its last full iteration."""
    state = agent._backup or agent._state()
    header = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": type(agent).__name__,
        "env_id": agent.env_id,
        "parameters": agent.parameters,
        "rules": agent.rules._asdict(),
        "seed": {"entropy": agent.seed.entropy, "spawn_key": list(agent.seed.spawn_key)},
        "env_seed": agent.env_seed,
        "streams": state.streams,
        "played": state.played,
    }
    arrays = {"status": state.status, "history": state.history}
    partitions = {"trainee": state.trainee} | ({"best": state.best} if agent._keeps_best else {})
    for name, partition in partitions.items():
        arrays |= {f"{name}_{field}": np.asarray(getattr(partition, field)) for field in STORED}
    archive.write(Path(path), header, arrays)


def load(kind: type["Agent"], path: str | os.PathLike, env: gym.Env | None) -> Any:
    """Return a saved agent of a class."""
    header, arrays = archive.read(Path(path), FORMAT, VERSION)
    if header["algorithm"] != kind.__name__:
        raise ValueError(f"{path} holds an agent of class {header['algorithm']}, not {kind.__name__}: "
                         f"load it with {header['algorithm']}.load")  # fmt: skip
    made_for = check_env_id(header["env_id"], kind, path) if env is None else env
    try:
        agent = kind(
            made_for,
            **header["parameters"],
            rules=Rules(**header["rules"]),
            seed=np.random.SeedSequence(header["seed"]["entropy"], spawn_key=tuple(header["seed"]["spawn_key"])),
            env_seed=header["env_seed"],
        )
        discrete = agent._learner.discrete
        trainee = read_partition(arrays, "trainee", agent._best, discrete)
        best = read_partition(arrays, "best", agent._best, discrete) if agent._keeps_best else trainee
        agent._trainee, agent._best = trainee, best
        agent._status, agent._history = (
            check_array(arrays, "status", STATUS, 1),
            check_array(arrays, "history", HISTORY),
        )
        check_status(agent._status, agent._history, agent._keeps_best)
        agent._set_streams(header["streams"])
        agent._played = check_integer("played", header.get("played", 0), at_least=0)  # older files have none
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"{path} is not a sound saved agent for this environment: {error}") from error
    return agent


def check_env_id(env_id: Any, kind: type["Agent"], path: str | os.PathLike) -> str:
    """Return the id of a file's environment, if making it runs nothing but what this process has registered."""
    if env_id is None:
        raise ValueError(f"the agent in {path} was made with an environment, not an id: "
                         f"give load() such an environment, {kind.__name__}.load(path, env)")  # fmt: skip
    if not isinstance(env_id, str) or env_id not in gym.registry:
        raise ValueError(f"the agent in {path} was made for {env_id!r}, which is not registered here, and "
                         f"a file imports nothing: import what registers it, or give load() the environment, "
                         f"{kind.__name__}.load(path, env)")  # fmt: skip
    return env_id


def read_partition(arrays: dict, name: str, like: Partition, discrete: bool) -> Partition:
    """Return a partition of a saved agent, checked: compiled code follows its indices without looking.

    `like` is the partition the agent began with.  A partition is what splits made of that, one after the other, so the
    splits are found and made again: what comes out must be what was read, down to every index and bound.  The
    estimates, ranks and visits may be any numbers that learning can give.
    """
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
        parts = 2 ** len(lows[0])
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

    def alike(found: np.ndarray, expected: np.ndarray) -> bool:
        """Equal balls are as good as each other: which of them is named depends on the order of what happened."""
        if not np.all((found >= NONE) & (found < len(q))) or not np.array_equal(found == NONE, expected == NONE):
            return False
        return np.array_equal(q[found], q[expected]) and np.array_equal(rank[found], rank[expected])

    return alike(p.cells["own"], own) and alike(p.cells["best"], best)


def check_status(status: np.ndarray, history: np.ndarray, keeps_best: bool) -> None:
    """Raise an error if a status is not one between two iterations."""
    row = status[0]
    fresh = row["iteration"] == -1 and row["episode"] == 1 and keeps_best
    if not fresh and not (row["iteration"] >= 0 and row["episode"] == 0):
        raise ValueError("its status is not that of an agent between two iterations")
    if len(history) != max(0, row["iteration"]):
        raise ValueError("its history and its number of iterations disagree")
    for name in ("total", "best"):
        if not np.isfinite(row[name]):
            raise ValueError(f"its status has {name} = {row[name]}")
    for name in ("tau", "u"):  # a temperature may grow beyond all numbers: then every ball is as likely as the others
        if not row[name] > 0:
            raise ValueError(f"its status has {name} = {row[name]}")
    if min(row["steps"], row["evaluation_steps"], row["seen"]) < 0:
        raise ValueError("its status counts below zero")
