"""Beside `learn`: checkpoints, the best agent so far, a log that spreadsheets and pandas read, learning curves."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spaql.agent import Agent
from spaql.checks import check_integer, load
from spaql.rules import COLUMNS, SPAQL_R, TILE_Q


def checkpoint(path: str | os.PathLike, every: int = 100) -> Callable[[Agent], None]:
    """Return a callback that saves the agent after every so many iterations, each time over the last file.

    Examples
    --------
    >>> agent.learn(2000, callback=checkpoint("agent.npz", every=100))
    >>> SPAQL.load("agent.npz").learn(1000)  # goes on where the file was written
    """
    every = check_integer("every", every)

    def save(agent: Agent) -> None:
        if len(agent.history) % every == 0:
            agent.save(path)

    return save


def keep_best(
    path: str | os.PathLike, every: int = 10, episodes: int = 100, seed: int = 0, by: str = "mean"
) -> Callable[[Agent], None]:
    """Return a callback that evaluates the agent now and then, and keeps the best one so far in a file.

    All are evaluated on the same episodes, apart from those it learns from.  A run that was interrupted goes on with
    the file it has.  The best mean of many is too high: what the agent earns, other episodes say.

    Parameters
    ----------
    path
        The file, as of `agent.save`.
    every
        Iterations between two evaluations.
    episodes, seed
        Of each evaluation.
    by
        Which agent is better: the one with the higher "mean", or, as with "worst 5 %", the one whose worst 5 % of
        episodes have the higher mean.

    Examples
    --------
    >>> SPAQLR("Pendulum-v1", seed=0).learn(samples=40_000, callback=keep_best("best.npz"))
    >>> SPAQLR.load("best.npz").evaluate(1000, seed=1).mean()  # another seed than `keep_best` has
    """
    every, episodes = check_integer("every", every), check_integer("episodes", episodes)
    share = check_share(by)
    best: list[float] = []

    def score(agent: Agent) -> float:
        returns = np.sort(agent.evaluate(episodes, seed))
        return float(returns[: max(1, round(share * episodes))].mean())

    def before(agent: Agent) -> None:
        """Refuse another run's file before hours of training."""
        if best or not Path(path).exists():
            return
        kept = type(agent).load(path, agent.env)
        if any(getattr(kept, name) != getattr(agent, name) for name in ("parameters", "rules", "env_seed")):
            raise ValueError(f"{path} holds the best of another run, {kept!r}: give another path, or remove it")
        best.append(score(kept))

    def keep(agent: Agent) -> None:
        if len(agent.history) % every:
            return
        now = score(agent)
        if not best or now > best[0]:
            agent.save(path)
            best[:] = [now]

    keep.before = before  # type: ignore[attr-defined]  # `learn` calls it
    return keep


def check_share(by: str) -> float:
    """Return which share of the episodes, the worst ones, counts."""
    if by == "mean":
        return 1.0
    try:
        percent = float(by.removeprefix("worst ").removesuffix("%")) if by.startswith("worst ") else 0.0
    except ValueError:
        percent = 0.0
    if not 0.0 < percent <= 100.0:
        raise ValueError(f"by must be 'mean' or a share of the episodes like 'worst 5 %', not {by!r}")
    return percent / 100.0


def log_csv(path: str | os.PathLike) -> Callable[[Agent], None]:
    """Return a callback that appends a line to a CSV file after every iteration: its number, and its history.

    A run that goes on from a checkpoint comes to iterations that the file has already: they are not repeated.
    """
    known: dict[str, str] = {}  # the lines of the file, by their iterations

    def write(agent: Agent) -> None:
        if not known:
            known.update(read_log(Path(path)))
        number = str(len(agent.history))
        line = ",".join(map(str, (number, *agent.history[-1].tolist())))
        if number not in known:
            with Path(path).open("a", newline="", encoding="utf-8") as file:
                file.write(line + "\n")
        if known.setdefault(number, line) != line:
            raise ValueError(f"iteration {number} in {path} is of another run: give another path, or remove that file")

    return write


def read_log(path: Path) -> dict[str, str]:
    """Return the lines of a log by their iterations; one that was cut off, or has no head yet, is put right."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
    whole = [line for line in lines if line.endswith("\n")]
    if not whole or whole != lines:
        path.write_text("".join(whole) or ",".join(("iteration", *COLUMNS)) + "\n", encoding="utf-8", newline="")
    return {line.partition(",")[0]: line.rstrip() for line in whole}


def plot_learning(*agents: Agent, window: int = 10) -> Any:
    """Return a figure of what agents earned against the samples they took, those of rollouts counted.

    A point is a row of `history.rewards`; where that is a single training episode, the mean of the last `window`.
    """
    pyplot = load("matplotlib.pyplot", "paper")
    figure, axes = pyplot.subplots(layout="constrained")
    pyplot.close(figure)  # a notebook shows what is returned, and would show an open figure once more
    for agent in agents:
        history = agent.history
        single = agent.algorithm in (SPAQL_R, TILE_Q) and not history.evaluation_steps.any()
        sums = np.cumsum([0.0, *history.rewards])
        last = np.arange(1, len(sums))
        first = np.maximum(0, last - window) if single else last - 1
        samples = np.cumsum(history.steps + history.evaluation_steps)
        axes.plot(samples, (sums[last] - sums[first]) / (last - first), label=repr(agent))
    axes.set(xlabel="samples", ylabel="return")
    figure.legend(loc="outside upper left", fontsize="small")
    return figure
