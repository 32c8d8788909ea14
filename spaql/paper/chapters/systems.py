"""Chapter 10: six systems, and decision trees in the place of tile coding."""

import dataclasses
import functools
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from spaql.agent import Agent
from spaql.paper.engine.algorithms import CHECKPOINT, Trained, untrained
from spaql.paper.engine.job import FRESH, SEED, Job, job_of, seeds
from spaql.paper.engine.outcomes import samples_behind
from spaql.paper.engine.statistics import student_interval, summarise, welch
from spaql.paper.engine.study import SIX, declare, make_jobs
from spaql.policies.play import evaluate
from spaql.rules import HISTORY
from spaql.systems import episode_limit, make_env

LEAVES = (16, 32, 64)

# ---------------------------------------------------------------------------------------------------------------------
# Trees in the place of policies


@declare("trees", "trees in the place of policies")
def tree_jobs(
    systems: Iterable[str] = SIX,
    agents: int = 20,
    leaves: Iterable[int] = LEAVES,
    iterations: int = 100,
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return TileQ's and SPAQL-R's policies, and trees that imitate TileQ's."""
    size = {"iterations": iterations, "evaluations": 1, "seed": seed, "fresh": fresh}
    jobs = []
    for system in systems:
        for count in (0, *leaves):  # 0 is the policy itself
            jobs += make_jobs("Tree", system, agents=agents, of="TileQ", leaves=count, **size)
        jobs += make_jobs("Tree", system, agents=agents, of="SPAQL-R", leaves=0, **size)
    return sorted(jobs, key=lambda job: job.agent)  # those of one agent follow each other


def compute(job: Job) -> Trained:
    """Return what a policy or the tree in its place earns; all of one agent play the same fresh episodes.

    Its arms are its leaves; its samples are those of training and of the tree's own episodes.
    """
    given = dict(job.parameters)
    teacher = dataclasses.replace(job, algorithm=given["of"], parameters=())
    agent = taught(teacher)
    policy, samples = agent.policy, job.iterations * CHECKPOINT
    draw = int(seeds(teacher)[1].spawn(3)[2].generate_state(1)[0])
    if given["leaves"]:
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


def losses(trees: pd.DataFrame, floor: pd.Series) -> pd.DataFrame:
    """Return by system and leaves what share of TileQ's gain over Random its trees lose, in per cent of the means."""
    mine = trees[(trees.kind == "TileQ") | (trees.kind == "tree")]
    means = mine.groupby(["system", "size"]).fresh.mean().unstack()
    teacher = means.pop(0)
    return means.rsub(teacher, axis=0).div(teacher - floor.reindex(teacher.index), axis=0) * 100


def kinds(trees: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the study of trees with what each is, and the leaves that a tree was asked for."""
    given = trees.parameters.map(json.loads)
    sizes = [parameters["leaves"] for parameters in given]
    kind = ["tree" if size else parameters["of"] for size, parameters in zip(sizes, given, strict=True)]
    return trees.assign(kind=kind, size=sizes)


# ---------------------------------------------------------------------------------------------------------------------
# Who is ahead, and when

NETWORKS = ("SAC", "DQN", "PPO")
COUNTS = (2_000, 5_000, 10_000, 20_000, 40_000)  # samples on the way


def returns_at(agents: pd.DataFrame, count: int) -> pd.Series:
    """Return what the policies of some agents earn after so many samples: on fresh episodes once they have ended."""
    return pd.Series([reward_at(row, count) for row in agents.to_dict("records")], agents.index, float)


def reward_at(row: Mapping[str, Any], count: int) -> float:
    """Return what one agent's policy earns after so many samples."""
    taken = np.cumsum(row["curve_steps"])
    place = np.searchsorted(taken, count, side="right") - 1
    return row["fresh"] if count >= taken[-1] else row["curve_rewards"][place] if place >= 0 else np.nan


def samples_until(agents: pd.DataFrame, level: float) -> float:
    """Return after how many samples the median agent's policy first is at a level; infinite if it never is."""
    first = []
    for row in agents.to_dict("records"):
        there = np.flatnonzero(row["curve_rewards"] >= level)
        behind = samples_behind(job_of(row), {"steps": row["curve_steps"], "rewards": row["curve_rewards"]})
        first.append(behind[there[0]] if there.size else np.inf)
    return float(np.median(first)) if np.isfinite(first).mean() >= 0.5 else np.inf


def duels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return TileQ and SPAQL-R against Sarsa(λ) and the best network: one row per system and number of samples."""
    rows = []
    for system, here in frame.groupby("system", sort=False):
        for count in (*COUNTS, np.inf):
            known = {name: returns_at(group, count).dropna() for name, group in here.groupby("algorithm")}
            known = {name: each for name, each in known.items() if len(each) > 1}
            best = max((n for n in NETWORKS if n in known), key=lambda n: known[n].mean(), default=None)
            for ours, theirs in itertools.product(("TileQ", "SPAQL-R"), ("Sarsa(λ)", best)):
                if theirs in known:
                    found = welch(known[ours], known[theirs])
                    verdict = "tie" if found.p >= 0.05 else "win" if found.difference > 0 else "loss"
                    rival = theirs if theirs == "Sarsa(λ)" else "the best network"
                    rows.append((system, count, ours, rival, theirs, found.difference, verdict))
    return pd.DataFrame(rows, columns=["system", "samples", "learner", "rival", "who", "lead", "verdict"])


def at_the_end(found: pd.DataFrame) -> pd.DataFrame:
    """Return how many duels each learner wins, loses and ties at the end of training."""
    last = found[np.isinf(found.samples)]
    counts = pd.crosstab([last.learner, last.rival], last.verdict)
    return counts.reindex(columns=["win", "loss", "tie"], fill_value=0).reset_index()


# ---------------------------------------------------------------------------------------------------------------------
# Where they end, and how they get there

ROWS = ("limit", "limit, two actions", "TileQ", "SPAQL-R", "Sarsa(λ)", *NETWORKS, "Random")
FLOORS = {"Pendulum-v1": -600, "MountainCar-v0": -205, "Acrobot-v1": -510, "MountainCarContinuous-v0": -45}
LEVELS = {"Pendulum-v1": -200.0, "CartPole-v0": 195.0}


def tops(limits: pd.DataFrame) -> dict[str, float]:
    """Return the limit of each system; CartPole's is its number of steps."""
    known = limits[limits.parameters == "{}"].set_index("system").fresh.to_dict()
    return {system: known.get(system, episode_limit(make_env(system))) for system in SIX}


def ends(frame: pd.DataFrame, limits: pd.DataFrame) -> pd.DataFrame:
    """Return the mean return on fresh episodes of each algorithm on each system, and of the limits."""
    found = summarise(frame.assign(mean=frame.fresh), ["system", "algorithm"], mean=student_interval)
    rows = [{"system": system, "algorithm": "limit", "mean": top} for system, top in tops(limits).items()]
    two = limits[limits.parameters.str.contains('"actions"')]
    rows += [
        {"system": s, "algorithm": "limit, two actions", "mean": top}
        for s, top in zip(two.system, two.fresh, strict=True)
    ]
    return pd.concat([found, pd.DataFrame(rows)], ignore_index=True)


def best_network(frame: pd.DataFrame, system: str) -> str:
    """Return the network that ends best on a system."""
    here = frame[(frame.system == system) & frame.algorithm.isin(NETWORKS)]
    return here.groupby("algorithm").fresh.mean().idxmax()


def curves(frame: pd.DataFrame, lines: Mapping[str, Sequence[str]], counts: Iterable[int]) -> pd.DataFrame:
    """Return the mean return of some algorithms after so many samples, as long as they train."""
    rows = []
    for system, names in lines.items():
        for name in names:
            mine = frame[(frame.system == system) & (frame.algorithm == name)]
            last = mine.samples.min()
            rows += [(system, name, n, returns_at(mine, n).mean()) for n in counts if n <= last]
    return pd.DataFrame(rows, columns=["system", "algorithm", "samples", "reward"])


def needs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how many samples the median agent needs for −200 on Pendulum and 195 on CartPole."""
    groups = frame[frame.system.isin(LEVELS) & (frame.algorithm != "Random")].groupby(["system", "algorithm"])
    rows = [(*key, LEVELS[key[0]], samples_until(here, LEVELS[key[0]])) for key, here in groups]
    return pd.DataFrame(rows, columns=["system", "algorithm", "level", "samples"])
