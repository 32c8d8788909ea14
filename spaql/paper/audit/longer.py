"""CartPole's policies on episodes longer than they were trained for: whether the pole goes on standing.

The paper says of an episode that ends with the pole leaning that in more steps it would likely be driven back.  Records
hold no partitions, so the agents of the long runs are trained again, which takes seconds each, and what their policies
do in 500 and 2,000 steps is kept in `results/longer.json`, which `write_longer` makes again.
"""

import os
from pathlib import Path

import gymnasium as gym
import numpy as np

from spaql.paper.audit.kept import load_kept, path_of, write_kept
from spaql.paper.runs.job import seeds
from spaql.paper.runs.retrain import retrain
from spaql.paper.studies import study
from spaql.policies.play import evaluate

SYSTEM, ALGORITHMS, HORIZON = "CartPole-v0", ("SPAQL", "SPAQL-TS"), 200
LENGTHS = (500, 2000)  # steps
EPISODES = 1000


def lasting(returns: np.ndarray) -> dict[str, float]:
    """Return the share of episodes that reach the old horizon, and of these the share that reach each length."""
    reached = returns >= HORIZON
    shares = {
        f"reach_{length}": float(np.mean(returns[reached] >= length)) if reached.any() else float("nan")
        for length in LENGTHS
    }
    return {f"reach_{HORIZON}": float(np.mean(reached))} | shares


def compute_longer() -> list[dict]:
    """Train the agents again and play long episodes with each: one row per agent."""
    rows = []
    for job in study("long"):
        if job.system != SYSTEM or job.algorithm not in ALGORITHMS:
            continue
        env = gym.make(SYSTEM, max_episode_steps=max(LENGTHS))
        tree = retrain(job).policy.tree(deterministic=False)
        _, stream = seeds(job)
        returns = evaluate(tree, env, EPISODES, stream.spawn(3)[2], deterministic=False, horizon=max(LENGTHS))
        rows.append({"system": job.system, "algorithm": job.algorithm, "agent": job.agent} | lasting(returns))
    return rows


def write_longer(store: str | os.PathLike | None = None) -> Path:
    """Compute and write the file, with where it comes from."""
    return write_kept("longer", store, episodes=EPISODES, rows=compute_longer())


def load_longer(store: str | os.PathLike | None = None) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """Return the shares of a store, by system and algorithm: arrays with one number per agent; none if not stored."""
    if not path_of("longer", store).is_file():
        return {}
    groups = load_kept("longer", store).set_index("agent").groupby(["system", "algorithm"])
    return {key: {name: group[name].to_numpy() for name in group.filter(like="reach_")} for key, group in groups}
