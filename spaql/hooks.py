"""Beside `learn`: checkpoints, the best agent so far, learning curves."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from spaql import files
from spaql.agent import Agent
from spaql.checks import check_integer, check_number, load
from spaql.policies.interval import worst_mean


def checkpoint(path: str | os.PathLike, every: int = 100) -> Callable[[Agent], None]:
    """Return a callback that saves the agent every few iterations, each time replacing the last file.

    Examples
    --------
    >>> agent.learn(2000, callback=checkpoint("agent.npz", every=100))
    >>> SPAQL.load("agent.npz").learn(1000)  # goes on where the file was written
    """
    every = check_integer("every", every)
    files.target_of(path)  # before hours of training

    def save(agent: Agent) -> None:
        if len(agent.history) % every == 0:
            agent.save(path)

    return save


def keep_best(
    path: str | os.PathLike, every: int = 10, episodes: int = 100, seed: int = 0, worst: float = 1.0
) -> Callable[[Agent], None]:
    """Return a callback that evaluates the agent every few iterations, and keeps the best one so far in a file.

    The episodes are the same each time, and not those of training.  A run that goes on from a checkpoint continues the
    same file; a new run needs a new one.  The best of many means is too high: evaluate the agent on other episodes.

    Parameters
    ----------
    path
        The file, as of `agent.save`.
    every
        Iterations between two evaluations.
    episodes, seed
        Of each evaluation.
    worst
        Decide by the mean of this share of the episodes, the worst ones; 1 takes them all.

    Examples
    --------
    >>> SPAQLR("Pendulum-v1", seed=0).learn(samples=40_000, callback=keep_best("best.npz"))
    >>> SPAQLR.load("best.npz").evaluate(1000, seed=1).mean()  # another seed than `keep_best` has
    """
    every, episodes = check_integer("every", every), check_integer("episodes", episodes)
    check_number("worst", worst, above=0.0, at_most=1.0)
    files.target_of(path)
    best: list[float] = []
    whose: list[Agent] = []

    def score(agent: Agent) -> float:
        return worst_mean(agent.evaluate(episodes, seed), worst)

    def before(agent: Agent) -> None:
        """Refuse another run's file before hours of training."""
        if whose == [agent]:
            return
        known = []
        if Path(path).exists():
            kept = type(agent).load(path, agent.env)
            both = min(len(kept.history), len(agent.history))
            if not both or kept.history[:both].tobytes() != agent.history[:both].tobytes():
                raise ValueError(f"{path} holds the best of another run, {kept!r}: give another path, or remove it")
            known = [score(kept)]
        best[:], whose[:] = known, [agent]

    def keep(agent: Agent) -> None:
        if len(agent.history) % every == 0 and (now := score(agent)) > max(best, default=-np.inf):
            agent.save(path)
            best[:] = [now]

    keep.before = before  # type: ignore[attr-defined]  # `learn` calls it
    return keep


def plot_learning(*agents: Agent, window: int = 10) -> Any:
    """Return a figure of what agents earned against the samples they took, those of rollouts counted.

    A point is a row of `history.rewards`; where that is a single training episode, the mean of the last `window`.
    """
    pyplot, pandas = load("matplotlib.pyplot"), load("pandas")
    figure, axes = pyplot.subplots(layout="constrained")
    pyplot.close(figure)  # a notebook shows what is returned, and would show an open figure once more
    for agent in agents:
        history = agent.history
        size = window if agent._replays and not history.evaluation_steps.any() else 1
        means = pandas.Series(history.rewards).rolling(size, min_periods=1).mean()
        axes.plot(np.cumsum(history.steps + history.evaluation_steps), means, label=repr(agent))
    axes.set(xlabel="samples", ylabel="return")
    figure.legend(loc="outside upper left", fontsize="small")
    return figure
