"""CartPole's policies on episodes longer than they were trained for: whether the pole goes on standing.

The paper says of an episode that ends with the pole leaning that in more steps it would likely be driven back.  Records
hold no partitions, so the agents of the long runs are trained again, which takes seconds each, and what their policies
do in 500 and 2,000 steps is kept in `results/longer.json`, which `python -m spaql.paper.audit.longer` makes
again; so is how long the small tree of the home page lasts.
"""

import os
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.paper.audit.kept import load_kept, path_of, write_kept
from spaql.paper.frames import best
from spaql.paper.runs.job import seeds
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import run
from spaql.paper.runs.stored_trees import PUBLISHED, simplified
from spaql.paper.studies import study
from spaql.policies.play import evaluate
from spaql.systems import solved_at

SYSTEM, ALGORITHMS, HORIZON = "CartPole-v0", ("SPAQL", "SPAQL-TS"), 200
LENGTHS = (500, 2000)  # steps
FOREVER = 10_000  # steps that the small tree gets
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


def compute_small() -> dict[str, Any]:
    """Return in how many steps the small tree of the best SPAQL-TS agent lets the pole fall: the median."""
    job = best(run(job for job in study("long") if (job.system, job.algorithm) == (SYSTEM, "SPAQL-TS"))).job
    tree = simplified(job, retrain(job).policy, [default_store()], target=solved_at(SYSTEM), **PUBLISHED).tree
    env = gym.make(SYSTEM, max_episode_steps=FOREVER)
    returns = evaluate(tree, env, EPISODES, seed=1, horizon=FOREVER)
    return {"leaves": tree.leaves, "median": float(np.median(returns)), "longest": float(returns.max())}


def load_longer(store: str | os.PathLike | None = None) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """Return the shares of a store, by system and algorithm: arrays with one number per agent; none if not stored."""
    if not path_of("longer", store).is_file():
        return {}
    groups = load_kept("longer", store).set_index("agent").groupby(["system", "algorithm"])
    return {key: {name: group[name].to_numpy() for name in group.filter(like="reach_")} for key, group in groups}


if __name__ == "__main__":
    write_kept("longer", episodes=EPISODES, small=[compute_small()], rows=compute_longer())
