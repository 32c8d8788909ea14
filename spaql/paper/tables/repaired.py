"""The tables of SPAQL-R: frames of `spaql.paper.audit.repaired` in, tables of the book out."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from spaql.agent import Agent
from spaql.paper.audit.repaired import load_search
from spaql.paper.frames import by_algorithm
from spaql.paper.labels import between, difference, number, plus_minus, small
from spaql.paper.tables.table import Table
from spaql.policies.interval import Interval
from spaql.policies.simplify import Simplified
from spaql.systems import title


def counts_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the mean reward of each algorithm after some numbers of samples, system by system."""
    rows = []
    for (system, algorithm), cell in by_algorithm(frame).groupby(["system", "algorithm"], sort=False):
        row = {"system": title(system), "algorithm": algorithm}
        row |= {f"{count:,}": "" for count in sorted(set(frame.samples))}
        for found in cell.itertuples(index=False):
            row[f"{found.samples:,}"] = with_half(found.mean, found.mean_high)
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def with_half(mean: float, high: float) -> str:
    """Return a mean reward with its half-interval as text."""
    return plus_minus(mean, high - mean, 1)


def levels_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return after how many samples each algorithm reaches each level of one system, and from where on it stays."""
    rows = []
    for algorithm, cell in by_algorithm(frame).groupby("algorithm", sort=False):
        row = {"algorithm": algorithm, "agents": str(cell.agents.max())}
        for found in cell.itertuples(index=False):
            row[f"{number(found.level, 0)}, first"] = thousands(found.first)
            row[f"{number(found.level, 0)}, stays"] = thousands(found.stays)
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def ladder_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what each rung from SPAQL to SPAQL-R earns on each system, and after how many samples."""
    rows: dict[str, dict[str, str]] = {}
    for found in frame.itertuples(index=False):
        row = rows.setdefault(found.rung, {"one change more": found.rung})
        row[title(found.system)] = with_half(found.reward, found.reward_high)
        row[f"{title(found.system)}, samples"] = f"{found.samples:,.0f}"
    return Table(pd.DataFrame(list(rows.values())).fillna("–"), caption, name)


def best_trees_table(rows: Iterable[tuple[str, Agent, Simplified]], caption: str, name: str) -> Table:
    """Return how large the policies of agents are, and what their exact and their small trees earn."""
    found = [
        {
            "system": title(system),
            "cells": f"{len(agent.policy.cells().best):,}",
            "leaves, exact": f"{simple.full.leaves:,}",
            "return": between(simple.full_fresh),
            "leaves, small": f"{simple.tree.leaves:,}",
            "its return": between(simple.fresh),
        }
        for system, agent, simple in rows
    ]
    return Table(pd.DataFrame(found), caption, name)


def thousands(samples: float) -> str:
    """Return a number of samples in thousands, or a dash for never."""
    digits = 1 if samples < 10_000 else 0
    return f"{samples / 1000:,.{digits}f}" if np.isfinite(samples) else "–"


def against_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how SPAQL-R's ends compare with the others'."""
    rows = [
        {
            "system": title(row.system),
            "against": row.algorithm,
            "their samples": f"{row.samples:,.0f}",
            "SPAQL-R": number(row.ours, 1),
            "theirs": number(row.theirs, 1),
            "difference": difference(Interval(row.difference, row.low, row.high)),
            "p (Welch)": small(row.p),
            "probability of improvement": between(Interval(row.wins, row.wins_low, row.wins_high), 2),
        }
        for row in by_algorithm(frame).itertuples(index=False)
    ]
    return Table(pd.DataFrame(rows), caption, name)


def search_table(caption: str, name: str) -> Table:
    """Return what was tried to find SPAQL-R's defaults, by system: trials, agents, and the best of them."""
    frame = pd.DataFrame(load_search()["trials"])
    frame["end"] = frame.rewards.str[-1]
    rows = [
        {"system": title(system), "trials": str(len(cell)), "agents": str(cell.agents.sum())}
        | {"median of the ends": number(cell.end.median(), 1), "best end": number(cell.end.max(), 1)}
        for system, cell in frame.groupby("system", sort=False)
    ]
    return Table(pd.DataFrame(rows), caption, name)
