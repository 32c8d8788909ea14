"""Tile coding as a decision tree: what it earns, and how many leaves it takes, beside SPAQL-R's exact trees.

`python -m spaql.paper.audit.tile_trees` measures, and keeps what it found in results/tile_trees.json.  A tree is grown
on states that the agent met in training, as its policy would act there at the end; that takes no further samples.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from spaql.paper.audit.kept import load_kept, measured, write_kept
from spaql.paper.audit.leaves import exact_trees, merged
from spaql.paper.audit.repaired import AHEAD
from spaql.paper.baselines.replayed import retrace
from spaql.paper.baselines.seconds import learner_of
from spaql.paper.runs.algorithms import TILES
from spaql.paper.runs.job import Job
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.paper.studies import SIX, study
from spaql.policies.play import first_states, run_tree
from spaql.policies.simplify import ROWS, grow
from spaql.policies.tree import Tree
from spaql.systems import make_env, space_of

CHOSEN = TILES[0]  # by the search
SIZES = (16, 64, 128, 256)  # leaves, at most
SAMPLES = (10_000, 100_000)
AGENTS, FRESH, SEED = 10, 2000, 7171


def of_tiles(job: Job, like: Tree) -> Iterator[dict[str, Any]]:
    """Yield what tiles earn after so many samples, and trees of some sizes in their place."""
    agent, twin = learner_of(job), learner_of(job)  # the twin draws the same starts again
    seen, taken, starts = np.empty((SAMPLES[-1], agent.env.observation_space.shape[0])), 0, starts_of(job)
    for samples in SAMPLES:
        for first in range(taken, samples, CHECKPOINT):
            agent.learn(CHECKPOINT)
            chunk = slice(first, first + CHECKPOINT)
            agent.world.call(retrace, twin.world.starts(CHECKPOINT), agent.actions, agent.kept.action[chunk],
                             agent.kept.end[chunk], seen[chunk])  # fmt: skip
        taken = samples
        yield {"samples": samples, "leaves": np.nan, "return": agent.play(starts).mean()}
        some = np.random.default_rng(SEED).permutation(samples)[:ROWS]
        best = agent.weights[agent.kept.x[some]].sum(axis=1).argmax(axis=1)
        trees = grow(like, seen[some], SIZES[-1], agent.actions[best])
        for size in SIZES:
            tree = trees[min(size, len(trees)) - 1]
            if tree.variables.box is not None:  # leaves have means of actions
                nearest = agent.actions[abs(tree.low - agent.actions.T).argmin(axis=1)]
                tree = tree._replace(low=nearest, high=nearest)
            tree = merged(tree)
            yield {"samples": samples, "size": size, "leaves": tree.leaves, "return": earned(tree, job, starts)}


def of_cells(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the sizes and returns of SPAQL-R's exact trees."""
    starts = starts_of(job)
    for samples, tree in exact_trees(job, SAMPLES):
        yield {"samples": samples, "leaves": tree.leaves, "return": earned(tree, job, starts)}


def starts_of(job: Job) -> np.ndarray:
    """Draw where fresh episodes start: the same for all trees of a number of agent, and for tiles themselves."""
    env = make_env(job.system)
    return first_states(env, space_of(env), np.random.default_rng([SEED, job.agent]), FRESH)


def earned(tree: Tree, job: Job, starts: np.ndarray) -> float:
    """Return the mean return of episodes from these starts."""
    return float(run_tree(tree, make_env(job.system), starts, np.random.default_rng(SEED)).rewards.mean())


def compute_rows() -> Iterator[dict[str, Any]]:
    """Yield all rows of the first agents of each system."""
    jobs = [job for name in ("textbook", "repaired", "systems") for job in study(name) if job.agent < AGENTS]
    for system in SIX:
        like = next(learner_of(job) for job in jobs if (job.algorithm, job.system) == (AHEAD, system)).policy.tree()
        for job in (job for job in jobs if job.system == system and job.algorithm in (AHEAD, CHOSEN)):
            for row in of_cells(job) if job.algorithm == AHEAD else of_tiles(job, like):
                yield {"system": system, "algorithm": job.algorithm, "agent": job.agent} | row


def means() -> pd.DataFrame:
    """Return the means over agents; a tree has the size that it was asked for, and SPAQL-R's exact one none."""
    frame = load_kept("tile_trees")
    by = ["system", "samples", "algorithm", "size"]
    return frame.groupby(by, sort=False, dropna=False)[["leaves", "return"]].mean().reset_index()


def costs() -> pd.Series:
    """Return by how much trees of each size earn less at the end than the tiles in whose place they are, at most."""
    frame = means()
    ended = frame[(frame.samples == SAMPLES[-1]) & (frame.algorithm == CHOSEN)]
    both = ended.merge(ended[ended["size"].isna()], on="system", suffixes=("", "_tiles"))
    return (both.return_tiles - both["return"]).groupby(both["size"]).max()


if __name__ == "__main__":
    count = len(SIX) * AGENTS * len(SAMPLES) * (len(SIZES) + 2)
    found = pd.DataFrame(measured(compute_rows(), count)).round(4).astype(object)
    write_kept("tile_trees", rows=found.where(found.notna(), None).to_dict("records"))
