"""The tables of SPAQL-R: frames of `spaql.paper.audit.repaired` in, tables of the book out."""

from collections.abc import Iterable

import pandas as pd

from spaql.agent import Agent
from spaql.paper.labels import between, plus_minus
from spaql.paper.tables.table import Table
from spaql.policies.simplify import Simplified
from spaql.systems import title


def ladder_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what each rung from SPAQL to SPAQL-R earns on each system, and after how many samples."""
    rows: dict[str, dict[str, str]] = {}
    for found in frame.itertuples(index=False):
        row = rows.setdefault(found.rung, {"one change more": found.rung})
        row[title(found.system)] = plus_minus(found.reward, found.reward_high - found.reward, 1)
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
