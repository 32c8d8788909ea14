"""Chapter 10: six systems, and decision trees in the place of tile coding; the tables stand in the notebook."""

import dataclasses
import functools
import itertools
import json

import numpy as np
import pandas as pd

from spaql.paper.engine.algorithms import CHECKPOINT, Trained, untrained
from spaql.paper.engine.job import FRESH, SEED, seeds
from spaql.paper.engine.statistics import welch
from spaql.paper.engine.study import SIX, declare, make_jobs
from spaql.policies.play import evaluate
from spaql.rules import HISTORY

# ---------------------------------------------------------------------------------------------------------------------
# Trees in the place of policies


@declare("trees", "trees in the place of policies")
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


def kinds(trees):
    """Return the rows of the study of trees with what each is, and the leaves that a tree was asked for."""
    given = trees.parameters.map(json.loads)
    return trees.assign(
        kind=["tree" if parameters["leaves"] else parameters["of"] for parameters in given],
        size=[parameters["leaves"] for parameters in given],
    )


def losses(trees, floor):
    """Return by system and leaves what share of TileQ's gain over Random its trees lose, in per cent of the means."""
    means = trees[trees.kind != "SPAQL-R"].groupby(["system", "size"]).fresh.mean().unstack()
    teacher = means.pop(0)
    return means.rsub(teacher, axis=0).div(teacher - floor.reindex(teacher.index), axis=0) * 100


# ---------------------------------------------------------------------------------------------------------------------
# Six systems: who is ahead, and when

NETWORKS = ("SAC", "DQN", "PPO")


def returns_at(agents, count):
    """Return what the policies of some agents earn after so many samples: on fresh episodes once they have ended."""
    found = []
    for steps, rewards, fresh in zip(agents.curve_steps, agents.curve_rewards, agents.fresh, strict=True):
        taken = np.cumsum(steps)
        place = np.searchsorted(taken, count, side="right") - 1
        found.append(fresh if count >= taken[-1] else rewards[place] if place >= 0 else np.nan)
    return pd.Series(found, agents.index, float)


def duels(frame):
    """Return TileQ and SPAQL-R against Sarsa(λ) and the best network: one row per system and number of samples."""
    rows = []
    for system, here in frame.groupby("system", sort=False):
        for count in (2_000, 5_000, 10_000, 20_000, 40_000, np.inf):
            known = {name: returns_at(group, count).dropna() for name, group in here.groupby("algorithm")}
            known = {name: each for name, each in known.items() if len(each) > 1}
            best = max((n for n in NETWORKS if n in known), key=lambda n: known[n].mean(), default=None)
            rivals = {"Sarsa(λ)": "Sarsa(λ)", "the best network": best}
            for ours, (rival, theirs) in itertools.product(("TileQ", "SPAQL-R"), rivals.items()):
                if theirs in known:
                    found = welch(known[ours], known[theirs])
                    verdict = "tie" if found.p >= 0.05 else "win" if found.difference > 0 else "loss"
                    rows.append((system, count, ours, rival, verdict))
    return pd.DataFrame(rows, columns=["system", "samples", "learner", "rival", "verdict"])
