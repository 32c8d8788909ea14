"""Beside `learn`: checkpoints, a log that spreadsheets and pandas read, and the policies on the way."""

import csv
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from spaql.agent import Agent
from spaql.checks import check_integer
from spaql.policies.policy import Policy
from spaql.rules import COLUMNS


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


def log_csv(path: str | os.PathLike) -> Callable[[Agent], None]:
    """Return a callback that appends a line to a CSV file after every iteration: its number, and its history."""

    def write(agent: Agent) -> None:
        fresh = not Path(path).exists()
        with Path(path).open("a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if fresh:
                writer.writerow(("iteration", *COLUMNS))
            writer.writerow((len(agent.history), *agent.history[-1].tolist()))

    return write


def snapshots(agent: Agent, iterations: Iterable[int], evaluations: int = 20) -> list[tuple[int, Policy]]:
    """Train an agent that does not depend on time and return its policy after each of these numbers of iterations."""
    found = []
    for goal in sorted(set(iterations)):
        missing = goal - len(agent.history)
        if missing < 0:
            raise ValueError(f"the agent has had {len(agent.history)} iterations already, more than {goal}")
        if missing:
            agent.learn(missing, evaluations)
        found.append((goal, agent.policy))
    return found
