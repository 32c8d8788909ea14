"""The paper's row of Random on Pendulum under four hypotheses of how it was computed."""

import numpy as np
import pandas as pd

from spaql.compiling import either
from spaql.paper.claims.load import paper_results
from spaql.paper.audit.groups import AGENTS
from spaql.paper.statistics import percentile_interval, spell
from spaql.policies.interval import paper_interval
from spaql.policies.play import world_of
from spaql.systems import make_env, reset, room, space_of, step

SYSTEM = "Pendulum-v1"  # the one whose row does not fit the text


@either
def random_means(world, starts, rng, lowest, means):
    """Write each agent's mean reward under uniform actions from [lowest, 1]; `starts` is agent, episode, state."""
    state, x, action = room(world), np.empty(len(world.space.centre)), np.empty(1)
    for agent in range(starts.shape[0]):
        total = 0.0
        for episode in range(starts.shape[1]):
            reset(world, state, starts[agent, episode], x)
            for _ in range(200):
                action[0] = lowest + (1.0 - lowest) * rng.random()
                total += step(world, state, action, x)[0]
        means[agent] = total / starts.shape[1]


def random_row(replications: int = 500, seed: int = 0, evaluations: int = 20) -> pd.DataFrame:
    """Return what the paper's Random row would be under four hypotheses, one row per replication.

    The torque is uniform over all of [-2, 2] Nm ("two-way", the text) or over [0, 2] ("one-way", the released program);
    the 20 agents start from states of their own ("independent") or all from the same ("shared", the program).  Each
    agent plays `evaluations` episodes (N); `half` is the paper's half-interval.
    """
    env = make_env(SYSTEM)
    world, means = world_of(env, space_of(env)), np.empty(AGENTS)
    rows = []
    for child, (torque, shared) in zip(
        np.random.SeedSequence(seed).spawn(4),
        ((torque, shared) for torque in ("two-way", "one-way") for shared in (False, True)),
        strict=True,
    ):
        rng = np.random.default_rng(child)
        for replication in range(replications):
            starts = world.draw(rng, evaluations if shared else AGENTS * evaluations)
            starts = starts.reshape(-1, evaluations, starts.shape[1])
            starts = np.ascontiguousarray(np.broadcast_to(starts, (AGENTS, *starts.shape[1:])))
            world.call(random_means, starts, rng, 0.0 if torque == "one-way" else -1.0, means)
            found = paper_interval(means)
            rows.append(
                (torque, "shared" if shared else "independent", replication, found.mean, found.high - found.mean)
            )
    return pd.DataFrame(rows, columns=["torque", "starts", "replication", "mean", "half"])


def random_fit(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how well each hypothesis of `random_row` fits the paper's Random row.

    Columns: the mean and half-interval expected, with the central 95 % of the replications; and the share of
    replications at least as far from the middle as the paper's value (`mean_fits`, `half_fits`).
    """
    paper_mean, paper_half = paper_results()[SYSTEM]["Random"]["rewards"]
    rows = []
    for (torque, starts), cell in frame.groupby(["torque", "starts"], sort=False):
        row = {"torque": torque, "starts": starts}
        for name, paper in (("mean", paper_mean), ("half", paper_half)):
            row |= spell(name, percentile_interval(cell[name].mean(), cell[name]))
            below = np.mean(cell[name] <= paper)
            row[f"{name}_fits"] = 2 * min(below, 1 - below)
        rows.append(row)
    return pd.DataFrame(rows)
