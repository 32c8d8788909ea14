"""Agents with looks at the policy while they train: fresh episodes, which training never sees."""

import time

import numpy as np

from spaql.agent import Agent
from spaql.algorithms import SPAQLR
from spaql.paper.runs.job import Job, Record, seeds, untrained
from spaql.paper.runs.repaired_settings import CHECKPOINT, REPAIRED, SPACING
from spaql.rules import HISTORY


def untrained_repaired(job: Job) -> SPAQLR:
    """Return the agent of a job before it learns."""
    return SPAQLR(job.system, seed=seeds(job)[0], **REPAIRED[job.algorithm] | dict(job.parameters))


def compute_checkpoints(job: Job) -> Record:
    """Train an agent with looks at its policy: a history's `rewards` is the mean return of fresh episodes then."""
    before = time.perf_counter()
    agent, history = train_with_looks(job)
    rewards = agent.evaluate(job.fresh, seed=seeds(job)[1].spawn(2)[1])
    return Record(
        job=job,
        history=history,
        fresh=np.array([rewards.mean(), rewards.std()]),
        rewards=np.zeros(0, np.float32),
        episode={},
        wall=time.perf_counter() - before,
    )


def train_with_looks(job: Job) -> tuple[Agent, np.ndarray]:
    """Return a trained agent and its history, a row of which is a look at the policy."""
    looks = seeds(job)[1].spawn(2)[0]
    return train_repaired(job, looks) if job.algorithm in REPAIRED else train_learner(job, looks)


def train_repaired(job: Job, looks: np.random.SeedSequence) -> tuple[Agent, np.ndarray]:
    """Train an agent of SPAQL-R or of a variant; every `CHECKPOINT` samples, a look at it is `evaluations` episodes."""
    agent = untrained_repaired(job)
    history = np.zeros(job.iterations, HISTORY)
    for row, seed in zip(history, looks.spawn(job.iterations), strict=True):
        row["tau"] = agent.learn(samples=CHECKPOINT).history.tau[-1]
        row["rewards"] = row["evaluations"] = agent.evaluate(job.evaluations, seed=seed).mean()
        row["arms"] = row["trainee_arms"] = agent.arms
        row["steps"] = CHECKPOINT
    return agent, history


def train_learner(job: Job, looks: np.random.SeedSequence) -> tuple[Agent, np.ndarray]:
    """Train an agent of the paper's on `iterations` times `CHECKPOINT` samples; each look at it is `looks` episodes.

    N is `job.evaluations`.  From one look to the next all samples, those of the rollouts too, grow by `CHECKPOINT` or
    by the factor `SPACING`.  A row's `evaluations` is what the agent itself reports of the policy that it keeps.
    """
    agent, budget, rows = untrained(job), job.iterations * CHECKPOINT, []
    longest, history = agent.parameters["horizon"], agent.history
    done = trained = taken = 0
    while trained < budget:
        goal = max(taken + CHECKPOINT, int(SPACING * taken))
        while trained < budget and taken < goal:
            # As many iterations at once as come to the look if they are as long as those so far, but no more samples.
            each = taken / len(history) if taken else (job.evaluations + 1) * longest
            blocks = int((goal - taken) / each), (budget - trained) // longest
            history = agent.learn(max(1, min(blocks)), job.evaluations).history
            trained = int(history.steps.sum())
            taken = trained + int(history.evaluation_steps.sum())
        row = history[-1].copy()
        row["rewards"] = agent.evaluate(job.looks, seed=looks.spawn(1)[0]).mean()
        row["evaluations"] = history.rewards[-1]
        row["steps"], row["evaluation_steps"] = history.steps[done:].sum(), history.evaluation_steps[done:].sum()
        rows.append(row)
        done = len(history)
    return agent, np.array(rows, HISTORY)
