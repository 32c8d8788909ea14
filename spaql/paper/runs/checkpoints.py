"""SPAQL-R agents with a look at the policy after every thousand samples: fresh episodes, which training never sees."""

import time

import numpy as np

from spaql.algorithms import SPAQLR
from spaql.paper.runs.job import Job, Record, seeds
from spaql.paper.runs.repaired_settings import CHECKPOINT, REPAIRED
from spaql.rules import HISTORY


def untrained_repaired(job: Job) -> SPAQLR:
    """Return the agent of a job before it learns."""
    return SPAQLR(job.system, seed=seeds(job)[0], **REPAIRED[job.algorithm])


def compute_checkpoints(job: Job) -> Record:
    """Train an agent of SPAQL-R or of a variant; an iteration of its history is `CHECKPOINT` samples.

    A history's `rewards` is the mean return of `job.evaluations` fresh episodes under the greedy policy as it is then.
    """
    before = time.perf_counter()
    looks, last = seeds(job)[1].spawn(2)
    agent = untrained_repaired(job)
    history = np.zeros(job.iterations, HISTORY)
    for row, seed in zip(history, looks.spawn(job.iterations), strict=True):
        row["tau"] = agent.learn(samples=CHECKPOINT).history.tau[-1]
        row["rewards"] = row["evaluations"] = agent.evaluate(job.evaluations, seed=seed).mean()
        row["arms"] = row["trainee_arms"] = agent.arms
        row["steps"] = CHECKPOINT
    rewards = agent.evaluate(job.fresh, seed=last)
    return Record(
        job=job,
        history=history,
        fresh=np.array([rewards.mean(), rewards.std()]),
        rewards=np.zeros(0, np.float32),
        episode={},
        wall=time.perf_counter() - before,
    )
