"""What the estimates of trained agents hold: how far they follow the visits alone, and whether they predict returns.

Records hold no partitions, so agents of the stored runs are trained again, which takes seconds each, and what is
measured in their partitions and under their policies is kept in `results/learned.json`.
`python -m spaql.paper.audit.learned` makes the file again.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from spaql.agent import Agent
from spaql.compiling import either
from spaql.paper.audit.kept import load_kept, measured, write_kept
from spaql.paper.frames import by_system
from spaql.paper.runs.job import Job, seeds
from spaql.paper.runs.retrain import retrain
from spaql.paper.studies import LEARNERS, study
from spaql.partition import BALLS, CELLS, NONE, Partition, best_ball, draw_action
from spaql.rules import AQL
from spaql.systems import CompiledWorld, reset, room, step

EPISODES = 500
LEAST = 10  # visits of the policy by which the return from a ball is known well enough
LENGTHS = (200, 500, 2000)  # steps that a pole is asked to stand for
POINTS = 60  # balls of the first agent of a group that are kept for a picture
POLES = ("CartPole-v0",)
SCALED = {  # ξ of the study's agents with rewards from 0 to 1
    ("spaql/PendulumScaled-v1", algorithm): xi for algorithm, xi in (("AQL", 160.0), ("SPAQL", 10.0), ("SPAQL-TS", 0.0))
}


@either
def trace_episodes(world, starts, p, learner, limit, rng, steps, ends, chosen, rewards):
    """Play an episode from each row of `starts` with the greedy policy, for at most `limit` steps, and write it down.

    For each episode: the number of steps and the last state; for each step: the ball and the reward.
    """
    state, x, action = room(world), np.empty(len(p.axes)), np.empty(p.low.shape[1])
    for i in range(len(starts)):
        h = 0
        over = False
        reset(world, state, starts[i], x)
        while h < limit and not over:
            root = min(h, learner.H - 1) if learner.algorithm == AQL else 0
            ball = best_ball(p.cells, p.axes, root, x)
            draw_action(p.low, p.high, ball, world.space, rng, action)
            reward, over = step(world, state, action, x)
            chosen[i, h] = ball
            rewards[i, h] = reward
            h += 1
        steps[i] = h
        ends[i] = state


class Trace(NamedTuple):
    """Episodes under a policy, one row per episode; after an episode's end rewards are zero and balls NONE."""

    steps: np.ndarray
    ends: np.ndarray  # the last states
    chosen: np.ndarray
    rewards: np.ndarray


def play_on(agent: Agent, limit: int, episodes: int, seed: np.random.SeedSequence) -> Trace:
    """Play episodes of up to `limit` steps with the policy that an agent kept, longer than its horizon if need be."""
    streams = seed.spawn(2)
    world = agent._make_world(int(streams[1].generate_state(1)[0]))
    if not isinstance(world, CompiledWorld):
        raise TypeError(f"only registered systems can be traced, not {agent.env}")
    starts = world.starts(episodes)
    steps, ends = np.zeros(episodes, np.int64), np.zeros((episodes, world.system.numbers))
    chosen, rewards = np.full((episodes, limit), NONE), np.zeros((episodes, limit))
    rng = np.random.default_rng(streams[0])
    world.call(trace_episodes, starts, agent._best, agent._learner, limit, rng, steps, ends, chosen, rewards)
    return Trace(steps, ends, chosen, rewards)


def whole_balls(p: Partition) -> np.ndarray:
    """Return the balls of a partition that are not split."""
    ball = p.cells["first"][: p.counts[CELLS]]
    found = []
    while (ball := ball[ball != NONE]).size:
        found.append(ball)
        ball = p.balls["next"][ball]
    return np.concatenate(found)


def law_of_visits(H: int, xi: float, most: int) -> np.ndarray:
    """Return Q after 0, 1, ..., `most` visits if every reward is 1 and every value H (eqn:qval_update)."""
    law = [float(H)]
    for v in range(1, most + 1):
        alpha = (H + 1.0) / (H + v)
        law.append((1.0 - alpha) * law[-1] + alpha * (1.0 + float(H) + xi / v**0.5))
    return np.array(law)


def held(agent: Agent) -> dict[str, float]:
    """Return what an agent's estimates hold.

    `at_H` is the share of cells whose value is H; `law` the largest distance of an estimate from the law of visits;
    `rank_visits` the rank correlation of estimates and visits.
    """
    p, learner = agent._best, agent._learner
    balls = p.balls[: p.counts[BALLS]]
    cells = p.cells[: p.counts[CELLS]]
    whole = balls[whole_balls(p)]
    values = np.minimum(learner.H, balls["q"][cells["best"][cells["children"] == NONE]])
    law = law_of_visits(learner.H, learner.xi, int(whole["visits"].max()))
    return {
        "balls": len(whole),
        "at_H": float(np.mean(values == learner.H)),
        "law": float(np.abs(whole["q"] - law[whole["visits"]]).max()),
        "rank_visits": rank_correlation(whole["q"], whole["visits"]),
    }


def rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return Spearman's rank correlation; NaN if one of both does not vary."""
    if len(first) < 3 or np.ptp(first) == 0.0 or np.ptp(second) == 0.0:
        return float("nan")
    return float(stats.spearmanr(first, second).statistic)


def returns_of_balls(agent: Agent, played: Trace) -> pd.DataFrame:
    """Return the estimate of each ball that the policy visited often enough beside the mean return from it.

    The return is that of the next H steps, or what is left of them before the episode ends; for AQL, whose estimates
    are for one time step, up to the horizon.
    """
    H = agent._learner.H
    earned = np.concatenate((np.zeros((len(played.rewards), 1)), played.rewards.cumsum(axis=1)), axis=1)
    last = np.full(H, H) if agent.algorithm == AQL else np.arange(H) + H
    ahead = earned[:, np.minimum(last, earned.shape[1] - 1)] - earned[:, :H]
    visited = played.chosen[:, :H] != NONE
    frame = pd.DataFrame({"ball": played.chosen[:, :H][visited], "returned": ahead[visited]})
    found = frame.groupby("ball").returned.agg(["mean", "size"]).reset_index()
    found = found[found["size"] >= LEAST].rename(columns={"mean": "returned", "size": "visits"})
    return found.assign(q=agent._best.balls["q"][found.ball])[["q", "returned", "visits"]]


def predicted(found: pd.DataFrame) -> dict[str, float]:
    """Return how well estimates predict returns, of a frame of `returns_of_balls`.

    `rho` is their rank correlation over balls, `slope` how much the return changes with the estimate, weighted by
    visits, and the means are over visits.
    """
    weights = found.visits / found.visits.sum()
    q, returned = (float((weights * found[name]).sum()) for name in ("q", "returned"))
    spread = float((weights * (found.q - q) ** 2).sum())
    slope = float((weights * (found.q - q) * (found.returned - returned)).sum()) / spread if spread else float("nan")
    return {
        "visited": len(found),
        "rho": rank_correlation(found.q.to_numpy(), found.returned.to_numpy()),
        "slope": slope,
        "mean_q": q,
        "mean_return": returned,
    }


def lasted(agent: Agent, played: Trace) -> dict[str, float]:
    """Return how long the pole stood and why episodes ended: the shares that reach each length, and the causes.

    `cart` and `pole` are the shares of all episodes in which the cart left the track and the pole fell.  Nothing is
    said of systems without a track.
    """
    world = agent._make_world(0)
    constants = world.model.constants if isinstance(world, CompiledWorld) else None
    if constants is None or not hasattr(constants, "max_angle"):
        return {}
    reached = {f"reach_{length}": float(np.mean(played.steps >= length)) for length in LENGTHS}
    left = np.abs(played.ends[:, 0]) > constants.max_position
    fell = np.abs(played.ends[:, 2]) > constants.max_angle
    later = played.steps > LENGTHS[0]
    return reached | {
        "cart": float(np.mean(left)),
        "pole": float(np.mean(fell & ~left)),
        "cart_later": float(np.mean(left & later)),
        "pole_later": float(np.mean(fell & ~left & later)),
    }


def jobs_to_measure() -> list[Job]:
    """Return the agents that are trained again: of the long runs, and of the study of ξ with rewards from 0 to 1."""
    long = [job for job in study("long") if job.algorithm in LEARNERS]
    return long + [job for job in study("xi") if SCALED.get((job.system, job.algorithm)) == job.xi]


def jobs_of_the_law() -> list[Job]:
    """Return all agents of the study of ξ that the proof is about.

    These are SPAQL's where rewards are never negative, and AQL's where no training episode reaches the horizon.
    """
    proved = {("CartPole-v0", "AQL"), ("CartPole-v0", "SPAQL"), ("spaql/PendulumScaled-v1", "SPAQL")}
    return [job for job in study("xi") if (job.system, job.algorithm) in proved]


def measure_agent(job: Job) -> dict[str, Any]:
    """Train an agent again and measure what its estimates hold: a row of the file."""
    agent = retrain(job)
    H = agent._learner.H
    _, stream = seeds(job)
    limit = H if agent.algorithm == AQL else max(LENGTHS) if job.system in POLES else 2 * H
    played = play_on(agent, limit, EPISODES, stream.spawn(4)[3])
    found = returns_of_balls(agent, played)
    row = {"system": job.system, "algorithm": job.algorithm, "agent": job.agent, "iterations": job.iterations}
    row |= held(agent) | predicted(found) | lasted(agent, played)
    if job.agent == 0:
        most = found.nlargest(POINTS, "visits")
        row["points"] = most[["q", "returned", "visits"]].round(3).to_numpy().tolist()
    return row


def measure_law(job: Job) -> dict[str, Any]:
    """Train an agent again and measure how far its estimates follow the law of visits, and nothing else."""
    found = held(retrain(job))
    return {"system": job.system, "algorithm": job.algorithm, "xi": job.xi} | {
        key: found[key] for key in ("at_H", "law")
    }


def load_learned(part: str = "rows") -> pd.DataFrame:
    """Return a part of the stored file: "rows", one per agent, or "law", one for each group of the study of ξ."""
    return by_system(load_kept("learned", part=part))


if __name__ == "__main__":
    with ThreadPoolExecutor(os.cpu_count()) as pool:  # training is machine code, and threads do not wait
        jobs, lawful = jobs_to_measure(), jobs_of_the_law()
        rows = measured(pool.map(measure_agent, jobs), len(jobs))
        laws = measured(pool.map(measure_law, lawful), len(lawful))
    groups = pd.DataFrame(laws).groupby(["system", "algorithm"], as_index=False)
    law = groups.agg(agents=("law", "size"), values=("xi", "nunique"), at_H=("at_H", "min"), law=("law", "max"))
    write_kept("learned", episodes=EPISODES, rows=rows, law=law.to_dict("records"))
