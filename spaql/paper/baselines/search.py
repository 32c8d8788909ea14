"""The search for the settings of the textbook's algorithms: one set for all systems, as SPAQL-R has.

The rule, fixed before the first trial: settings are drawn at random from the lists below, as many for each algorithm
as `TRIALS` says.  Each trial trains one agent on every tuning system.  Its score is the mean of (return - worst) /
(best - worst), cut to [0, 1], over systems and checkpoints; the highest score is chosen.
"""

from typing import Any

import numpy as np

from spaql.paper.baselines import tuning

ANCHORS = {  # the worst and the best return, about, of the systems that these are relatives of
    tuning.pendulum: (-1230.0, -140.0),
    tuning.cart_pole: (20.0, 500.0),
    tuning.mountain_car: (-200.0, -100.0),
    tuning.acrobot: (-500.0, -70.0),
}
CHECKPOINTS = (5_000, 10_000, 20_000, 40_000)  # samples
SEED = 4040  # no table's

LISTS: dict[str, dict[str, tuple]] = {
    "Sarsa(λ)": {
        "tilings": (8, 16, 32),
        "bins": (4, 6, 8, 10),
        "alpha": (0.1, 0.2, 0.3, 0.5, 0.8),
        "lam": (0.5, 0.8, 0.9, 0.95),
        "gamma": (0.99, 1.0),
        "epsilon": (0.0, 0.01, 0.05, 0.1),
        "actions": (2, 3),
    },
    "Tiles, replayed": {
        "tilings": (8, 16),
        "bins": (4, 6, 8, 10),
        "alpha": (0.05, 0.1, 0.2, 0.5),
        "steps": (1, 5, 20),
        "replays": (8, 32),
        "epsilon": (0.05, 0.1),
        "actions": (2, 3),
    },
    "Grid, replayed": {
        "tilings": (1,),
        "bins": (8, 12, 16, 20),
        "alpha": (0.05, 0.1, 0.2, 0.5),
        "steps": (1, 5, 20),
        "replays": (8, 32),
        "epsilon": (0.05, 0.1),
        "actions": (2, 3),
    },
    "Fitted Q": {
        "trees": (10, 20, 40),
        "least": (5, 10, 20),
        "sweeps": (10, 20, 40),
        "gamma": (0.98, 0.99),
        "actions": (2, 3),
    },
}
TRIALS = {"Sarsa(λ)": 16, "Tiles, replayed": 16, "Grid, replayed": 16, "Fitted Q": 4}  # the last one is slow


def draw_settings(algorithm: str) -> list[dict[str, Any]]:
    """Return the settings that are tried, no two of them equal."""
    rng = np.random.default_rng([SEED, len(algorithm)])
    found: list[dict[str, Any]] = []
    while len(found) < TRIALS[algorithm]:
        one = {name: options[rng.integers(len(options))] for name, options in LISTS[algorithm].items()}
        if one not in found:
            found.append(one)
    return found


def score(returns: dict[str, np.ndarray]) -> float:
    """Return the score of a trial from its returns by the name of the system, one for each checkpoint."""
    shares = [
        np.clip((returns[make.__name__] - worst) / (best - worst), 0.0, 1.0).mean()
        for make, (worst, best) in ANCHORS.items()
    ]
    return float(np.mean(shares))
