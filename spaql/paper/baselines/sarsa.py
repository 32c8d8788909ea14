"""Sarsa(λ) with tile coding and replacing traces, as in Sutton and Barto's book (1998, section 8.4).

Its tiles are TileQ's (see `spaql.tileq`), its learning is its own.
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.compiling import python_or_jit
from spaql.paper.engine.algorithms import CHECKPOINT, Trained
from spaql.paper.engine.job import seeds
from spaql.replay import follow_all, share_of_random
from spaql.rules import HISTORY
from spaql.systems import ENDED, compiled_world, episode_limit
from spaql.tileq import TileQ, sum_of

LEAST = 0.01  # traces below this are forgotten
TILINGS, BINS, ACTIONS = 32, 6, 2  # the best of 144 random settings on relatives of the six systems, as are Sarsa's


class Sarsa(NamedTuple):
    """The parameters."""

    limit: int  # steps of an episode
    alpha: float = 1.0  # the learning rate, of all tiles of a state together
    lam: float = 0.9  # λ, the decay of traces
    gamma: float = 0.99  # the discount
    epsilon: float = 0.0  # the least share of random actions: estimates of zero explore where rewards are negative
    decay: float = 500.0  # after how many samples that share has fallen from 1 to 1/e


@python_or_jit
def explore(what, given, t, x, codes, rng):
    """The place of the action after t samples: a random one, or the best."""
    if rng.random() < share_of_random(given, t):
        return int(rng.random() * len(what.actions))
    return int(what.greedy(x, codes, 0)[0])


@python_or_jit
def train_sarsa(world, starts, before, samples, what, given, stamp, rng):
    """Learn from sample `before` until `samples` are taken in all; the last episode is cut off there.

    `what` holds Q's weights, one row per tile and one column per action; `stamp` is after which sample each was last
    changed: of two traces the newer one counts.
    """
    fade, rate = given.gamma * given.lam, given.alpha / what.width
    back = 1 + int(math.log(LEAST) / math.log(fade))  # steps that traces reach back
    state, x, action = world.room(), np.empty((1, len(world.space.centre))), np.empty(what.actions.shape[1])
    found = np.empty((back, what.width), np.int32)  # the tiles of the last steps, a ring
    taken = np.empty(back, np.int64)  # their actions
    after = np.empty((1, what.width), np.int32)
    t, episode = before, 0
    while t < samples:
        world.reset(state, starts[episode], x[0])
        episode += 1
        what.place(x, after, 0)
        a = explore(what, given, t, x, after, rng)
        h, over = 0, 0
        while h < given.limit and t < samples and not over:
            here = h % back
            found[here], taken[here] = after[0], a
            q = sum_of(what.weights, after, 0, a)
            action[:] = what.actions[a]
            reward, over = world.step(state, action, x[0])
            what.place(x, after, 0)
            t += 1
            a = explore(what, given, t, x, after, rng)
            error = reward - q
            if over != ENDED:
                error += given.gamma * sum_of(what.weights, after, 0, a)
            trace = 1.0
            for k in range(min(h + 1, back)):
                past = (h - k) % back
                for tile in found[past]:
                    if stamp[tile, taken[past]] != t:
                        stamp[tile, taken[past]] = t
                        what.weights[tile, taken[past]] += rate * error * trace
                trace *= fade
            h += 1


def compute(job):
    """Train an agent; its history's `rewards` is the mean return of fresh episodes after every thousand samples."""
    learning, evaluation = seeds(job)
    own, of_env = learning.spawn(2)
    tiled = TileQ(job.system, tilings=TILINGS, bins=BINS, actions=ACTIONS, alpha=Sarsa._field_defaults["alpha"])
    world = compiled_world(tiled.env, tiled._space, int(of_env.generate_state(1)[0]))
    rng, given, what = np.random.default_rng(own), Sarsa(episode_limit(tiled.env)), tiled._representation()
    stamp = np.full(what.weights.shape, -1)

    def evaluate(episodes, seed):
        returns, steps = np.empty(episodes), np.empty(episodes, np.int64)
        starts = world.draw(np.random.default_rng(seed), episodes)
        world.call(follow_all, starts, what, given, True, rng, returns, steps)
        return returns

    checkpoints, last = evaluation.spawn(2)
    history = np.zeros(job.iterations, HISTORY)
    for i, (row, seed) in enumerate(zip(history, checkpoints.spawn(job.iterations), strict=True)):
        before, starts = i * CHECKPOINT, world.starts(CHECKPOINT)
        world.call(train_sarsa, starts, before, before + CHECKPOINT, what, given, stamp, rng)
        row["rewards"] = row["evaluations"] = evaluate(job.evaluations, seed).mean()
        row["steps"] = CHECKPOINT
    return Trained(history, evaluate(job.fresh, last))
