"""Chapter 10: decision trees in the place of tile coding; all else stands in the notebook."""

import dataclasses
import functools

import numpy as np

from spaql.paper.engine.algorithms import CHECKPOINT, Trained, untrained
from spaql.paper.engine.job import FRESH, SEED, seeds
from spaql.paper.engine.study import SIX, declare, make_jobs
from spaql.policies.play import evaluate
from spaql.rules import HISTORY


@declare("trees", "trees that imitate TileQ (chapter 10)")
def tree_jobs(systems=SIX, agents=20, leaves=(16, 32, 64), iterations=100, seed=SEED, fresh=FRESH):
    """Return TileQ's and SPAQL-R's policies, and trees that imitate TileQ's."""
    size = {"agents": agents, "iterations": iterations, "evaluations": 1, "seed": seed, "fresh": fresh}
    jobs = []
    for system in systems:
        for count in (0, *leaves):  # 0 is the policy itself
            jobs += make_jobs("Tree", system, of="TileQ", leaves=count, **size)
        jobs += make_jobs("Tree", system, of="SPAQL-R", leaves=0, **size)
    return sorted(jobs, key=lambda job: job.agent)  # those of one agent follow each other


def compute(job):
    """Return what a policy or the tree in its place earns; all of one agent play the same fresh episodes.

    Its arms are its leaves; its samples are those of training and of the tree's own episodes.
    """
    given = dict(job.parameters)
    teacher = dataclasses.replace(job, algorithm=given["of"], parameters=())
    agent = trained(teacher)
    policy, samples = agent.policy, job.iterations * CHECKPOINT
    _, episodes, draw = seeds(teacher)[1].spawn(3)
    if given["leaves"]:
        policy = policy.tree(given["leaves"], seed=int(draw.generate_state(1)[0]))
        samples += policy.report.samples
    elif given["of"] == "SPAQL-R":
        policy = policy.tree()
    earned = evaluate(policy, job.system, job.fresh, episodes)
    history = np.zeros(1, HISTORY)
    history["arms"], history["steps"] = getattr(policy, "leaves", agent.arms), samples
    history["rewards"] = history["evaluations"] = earned.mean()
    return Trained(history, earned)


@functools.lru_cache(1)
def trained(job):
    """Return the trained agent of a job."""
    return untrained(job).learn(samples=job.iterations * CHECKPOINT)
