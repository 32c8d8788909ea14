"""Baselines as agents of a study: what `runs.training` does for SPAQL-R."""

from typing import Any

import numpy as np

from spaql.paper.baselines.agent import Baseline
from spaql.paper.baselines.by_hand import ByHand
from spaql.paper.baselines.fitted import FittedQ
from spaql.paper.baselines.linear import RandomLinear
from spaql.paper.baselines.replayed import Replayed
from spaql.paper.baselines.sarsa import SarsaLambda
from spaql.paper.runs.algorithms import SAME
from spaql.paper.runs.job import Job, Record, moments, seeds
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.rules import HISTORY

# The settings are those that the search chose (see `search`).
BASELINES: dict[str, tuple[type[Baseline], dict[str, Any]]] = {
    "By hand": (ByHand, {}),
    "Random linear": (RandomLinear, {}),
    "Sarsa(λ)": (
        SarsaLambda,
        {
            "tilings": 32,
            "bins": 6,
            "alpha": 1.0,
            "lam": 0.9,
            "gamma": 0.99,
            "epsilon": 0.0,
            "decay": 500.0,
            "actions": 2,
        },
    ),
    "Sarsa(λ), slower": (  # of the settings that were tried twice, those that end best; so below
        SarsaLambda,
        {
            "tilings": 64,
            "bins": 8,
            "alpha": 1.0,
            "lam": 0.9,
            "gamma": 0.995,
            "epsilon": 0.0,
            "decay": 2000.0,
            "actions": 3,
        },
    ),
    "Tiles, replayed": (
        Replayed,
        {
            "tilings": 32,
            "bins": 8,
            "alpha": 0.2,
            "common": 0.99,
            "gamma": 0.995,
            "epsilon": 0.1,
            "decay": 2000.0,
            "replays": 16,
            "steps": 50,
            "actions": 2,
        },
    ),
    "Tiles, slower": (
        Replayed,
        {
            "tilings": 16,
            "bins": 10,
            "alpha": 0.05,
            "common": 0.98,
            "gamma": 0.995,
            "epsilon": 0.05,
            "decay": 5000.0,
            "replays": 8,
            "steps": 50,
            "actions": 2,
        },
    ),
    "Grid, replayed": (
        Replayed,
        {
            "tilings": 1,
            "bins": 16,
            "alpha": 0.1,
            "common": 0.9,
            "gamma": 0.98,
            "epsilon": 0.05,
            "decay": 5000.0,
            "replays": 32,
            "steps": 5,
            "actions": 2,
        },
    ),
    "Fitted Q": (
        FittedQ,
        {"trees": 20, "least": 2, "sweeps": 20, "gamma": 0.98, "epsilon": 0.3, "decay": 20000.0, "actions": 2},
    ),
}
BASELINES[SAME] = (Replayed, BASELINES["Tiles, replayed"][1] | {"common": 0.95})  # β = 0.05; the others are SPAQL-R's


def compute(job: Job) -> Record:
    """Train a baseline; a history's `rewards` is the mean return of fresh episodes every so many samples."""
    made, settings = BASELINES[job.algorithm]
    learning, evaluation = seeds(job)
    agent = made(job.system, learning, **settings | dict(job.parameters))
    looks, last = evaluation.spawn(2)
    rows = []
    for seed in looks.spawn(job.iterations):
        row = np.zeros(1, HISTORY)
        agent.learn(CHECKPOINT)
        row["rewards"] = row["evaluations"] = agent.evaluate(job.evaluations, seed).mean()
        row["steps"] = CHECKPOINT if made.learns else 0
        rows.append(row)
    return Record(job, np.concatenate(rows), moments(agent.evaluate(job.fresh, last)))
