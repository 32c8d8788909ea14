"""Saved agents: one .npz file each, checked before compiled code follows the indices in it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from spaql import archive
from spaql.archive import check_array
from spaql.partition import BALLS, CELLS, NONE, Partition
from spaql.rules import HISTORY, STATUS, Rules

if TYPE_CHECKING:
    from spaql.agent import Agent

FORMAT, VERSION = "saved agent", 1
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
    }
    arrays = {"status": state.status, "history": state.history}
    for name, partition in (("trainee", state.trainee), ("best", state.best)):
        arrays |= {f"{name}_{field}": getattr(partition, field) for field in STORED}
    archive.write(Path(path), header, arrays)


def load(kind: type["Agent"], path: str | os.PathLike, env: gym.Env | None) -> Any:
    """Return a saved agent of a class."""
    header, arrays = archive.read(Path(path), FORMAT, VERSION)
    if header["algorithm"] != kind.__name__:
        raise ValueError(f"{path} holds an agent of class {header['algorithm']}, not {kind.__name__}: "
                         f"load it with {header['algorithm']}.load")  # fmt: skip
    if env is None:
        env = check_env_id(header["env_id"], kind, path)
    try:
        agent = kind(
            env,
            **header["parameters"],
            rules=Rules(**header["rules"]),
            seed=np.random.SeedSequence(header["seed"]["entropy"], spawn_key=tuple(header["seed"]["spawn_key"])),
            env_seed=header["env_seed"],
        )
        trainee, best = (read_partition(arrays, name, agent._best) for name in ("trainee", "best"))
        agent._trainee, agent._best = trainee, (best if agent._keeps_best else trainee)
        agent._status, agent._history = (
            check_array(arrays, "status", STATUS, 1),
            check_array(arrays, "history", HISTORY),
        )
        if len(agent._history) != max(0, agent._status["iteration"][0]):
            raise ValueError("its history and its number of iterations disagree")
        agent._set_streams(header["streams"])
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


def read_partition(arrays: dict, name: str, like: Partition) -> Partition:
    """Return a partition of a saved agent, checked: compiled code follows its indices without looking."""
    read = Partition(
        *(check_array(arrays, f"{name}_{field}", getattr(like, field).dtype) for field in STORED), like.axes
    )
    balls, cells = len(read.balls), len(read.cells)
    halves = 2 ** len(like.axes)
    sound = (
        read.low.shape == read.high.shape == (balls, like.low.shape[1])
        and read.counts.shape == like.counts.shape
        and read.counts[BALLS] == balls
        and read.counts[CELLS] == cells
        and min(balls, cells) >= len(like.cells)
    )
    if sound:
        children, parent = read.cells["children"], read.cells["parent"]
        sound = (
            np.all((children == NONE) | ((children > np.arange(cells)) & (children + halves <= cells)))
            and np.all((parent >= NONE) & (parent < np.arange(cells)))
            and all(np.all((read.cells[field] >= NONE) & (read.cells[field] < balls)) for field in ("own", "first"))
            and np.all((read.cells["best"] >= np.where(children == NONE, 0, NONE)) & (read.cells["best"] < balls))
            and np.all((read.balls["cell"] >= 0) & (read.balls["cell"] < cells))
            and np.all((read.balls["next"] >= NONE) & (read.balls["next"] < np.arange(balls)))
            and np.all(np.isfinite(read.balls["q"]))
            and np.all(read.low < read.high)
            # the whole action space of this environment, which roots and all they split into cover
            and np.array_equal(read.low[: len(like.low)], like.low)
            and np.array_equal(read.high[: len(like.high)], like.high)
        )
    if not sound:
        raise ValueError(f"its {name} partition does not hold together, or belongs to another action space")
    return read
