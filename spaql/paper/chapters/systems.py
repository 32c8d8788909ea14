"""Chapter 10: six systems, and decision trees in the place of tile coding."""

import dataclasses
import functools
from collections.abc import Iterable

import numpy as np

from spaql.agent import Agent
from spaql.paper.engine.algorithms import untrained
from spaql.paper.engine.job import FRESH, SEED, Job, seeds
from spaql.paper.engine.study import SIX, declare, make_jobs
from spaql.paper.engine.training import CHECKPOINT, Trained
from spaql.policies.play import evaluate
from spaql.rules import HISTORY

LEAVES = (16, 32, 64)
SIMPLIFIED = 5  # agents whose trees are searched for smaller ones, which takes about a minute each

# ---------------------------------------------------------------------------------------------------------------------
# Trees in the place of policies


@declare("trees", "trees in the place of policies")
def tree_jobs(
    systems: Iterable[str] = SIX,
    agents: int = 20,
    leaves: Iterable[int] = LEAVES,
    simplified: int = SIMPLIFIED,
    iterations: int = 100,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return TileQ's and SPAQL-R's policies, trees that imitate TileQ's, and the smallest trees that a search finds."""
    size = {"iterations": iterations, "evaluations": 1, "seed": seed, "fresh": fresh}
    jobs = []
    for system in systems:
        for count in (0, *leaves):  # 0 is the policy itself
            jobs += make_jobs("Tree", system, agents=agents, of="TileQ", leaves=count, **size)
        jobs += make_jobs("Tree", system, agents=min(agents, simplified), of="TileQ", leaves=0, simplified=True, **size)
        jobs += make_jobs("Tree", system, agents=agents, of="SPAQL-R", leaves=0, **size)
    return sorted(jobs, key=lambda job: ("simplified" in dict(job.parameters), job.agent))  # as `taught` likes them


def compute(job: Job) -> Trained:
    """Return what a policy or the tree in its place earns; all of one agent play the same fresh episodes.

    Its arms are its leaves; its samples are those of training and of the tree's own episodes.
    """
    given = dict(job.parameters)
    teacher = dataclasses.replace(job, algorithm=given["of"], parameters=())
    agent = taught(teacher)
    policy, samples = agent.policy, job.iterations * CHECKPOINT
    draw = int(seeds(teacher)[1].spawn(3)[2].generate_state(1)[0])
    if given.get("simplified"):
        policy = policy.simplify(seconds=600, proposals=50, seed=draw, progress_bar=False).smallest.tree
    elif given["leaves"]:
        policy = policy.tree(given["leaves"], seed=draw)
        samples += policy.report.samples
    elif given["of"] == "SPAQL-R":
        policy = policy.tree()
    history = np.zeros(1, HISTORY)
    history["arms"] = getattr(policy, "leaves", agent.arms)
    history["steps"] = samples
    earned = evaluate(policy, job.system, job.fresh, seeds(teacher)[1].spawn(2)[1])
    history["rewards"] = history["evaluations"] = earned.mean()
    return Trained(history, earned)


@functools.lru_cache(1)
def taught(job: Job) -> Agent:
    """Return the trained agent of a job."""
    return untrained(job).learn(samples=job.iterations * CHECKPOINT)
