"""Sarsa(λ) with tile coding and replacing traces, as in Sutton and Barto's book (1998, section 8.4)."""

import itertools
import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from spaql.compiling import python_or_jit
from spaql.paper.engine.algorithms import CHECKPOINT, Trained
from spaql.paper.engine.job import Job, seeds
from spaql.replay import share_of_random
from spaql.rules import HISTORY
from spaql.systems import ENDED, compiled_world, episode_limit, make_env, reset, room, space_of, step
from spaql.systems.environments import angles_of
from spaql.tileq import PLAIN, Tiles, active, count_of, sum_of

LEAST = 0.01  # traces below this are forgotten
TILINGS, BINS, ACTIONS = 32, 6, 2  # the best of 144 random settings on relatives of the six systems, as are Sarsa's


class Sarsa(NamedTuple):
    """The parameters."""

    alpha: float = 1.0  # the learning rate, of all tiles of a state together
    lam: float = 0.9  # λ, the decay of traces
    gamma: float = 0.99  # the discount
    epsilon: float = 0.0  # the least share of random actions: estimates of zero explore where rewards are negative
    decay: float = 500.0  # after how many samples that share has fallen from 1 to 1/e


def traces_kept(given: Sarsa) -> int:
    """Return how many steps back a trace reaches."""
    fade = given.gamma * given.lam
    return 1 if fade <= LEAST else 1 + min(1000, int(math.log(LEAST) / math.log(fade))) if fade < 1 else 1000


@python_or_jit
def greedy(weights, found, row):
    """The best action in the state with the tiles of a row, the first of equals."""
    best, highest = 0, sum_of(weights, found, row, 0)
    for a in range(1, weights.shape[1]):
        q = sum_of(weights, found, row, a)
        if q > highest:
            best, highest = a, q
    return best


@python_or_jit
def explore(weights, tiles, given, t, actions, rng):
    """The place of the action after t samples: a random one, or the best."""
    return int(rng.random() * actions) if rng.random() < share_of_random(given, t) else greedy(weights, tiles, 0)


@python_or_jit
def train_sarsa(world, starts, limit, before, samples, tiles, given, weights, stamp, actions, back, rng):
    """Learn from sample `before` until `samples` are taken in all; the last episode is cut off there.

    `back` is how many steps traces reach back; `weights` are Q's, one row per tile and one column per action, and
    `stamp` is after which sample each was last changed: of two traces the newer one counts.
    """
    state, x, action = room(world), np.empty(len(world.space.centre)), np.empty(actions.shape[1])
    found = np.empty((back, tiles.tilings), np.int64)  # the tiles of the last steps, a ring
    taken = np.empty(back, np.int64)  # their actions
    after = np.empty((1, tiles.tilings), np.int64)
    fade, rate = given.gamma * given.lam, given.alpha / tiles.tilings
    t, episode = before, 0
    while t < samples:
        reset(world, state, starts[episode], x)
        episode += 1
        active(tiles, x, after, 0)
        a = explore(weights, after, given, t, len(actions), rng)
        h, over = 0, 0
        while h < limit and t < samples and not over:
            here = h % back
            found[here], taken[here] = after[0], a
            q = sum_of(weights, after, 0, a)
            action[:] = actions[a]
            reward, over = step(world, state, action, x)
            active(tiles, x, after, 0)
            t += 1
            a = explore(weights, after, given, t, len(actions), rng)
            error = reward - q
            if over != ENDED:
                error += given.gamma * sum_of(weights, after, 0, a)
            trace = 1.0
            for k in range(min(h + 1, back)):
                past = (h - k) % back
                for i in range(tiles.tilings):
                    tile = found[past, i]
                    if stamp[tile, taken[past]] != t:
                        stamp[tile, taken[past]] = t
                        weights[tile, taken[past]] += rate * error * trace
                trace *= fade
            h += 1


@python_or_jit
def play_tiles(world, starts, limit, tiles, weights, actions, returns):
    """Play an episode from each start with the greedy policy."""
    state, x, action = room(world), np.empty(len(world.space.centre)), np.empty(actions.shape[1])
    found = np.empty((1, tiles.tilings), np.int64)
    for episode in range(len(starts)):
        reset(world, state, starts[episode], x)
        total, h, over = 0.0, 0, 0
        while h < limit and not over:
            active(tiles, x, found, 0)
            action[:] = actions[greedy(weights, found, 0)]
            reward, over = step(world, state, action, x)
            total += reward
            h += 1
        returns[episode] = total


def places_of(env: gym.Env) -> np.ndarray:
    """Return where the variables of an environment stand in its observation, with angles for cosines and sines."""
    angles = angles_of(env)
    used = {place for pair in angles for place in pair}
    rest = [(place, PLAIN) for place in range(env.observation_space.shape[0]) if place not in used]
    return np.array([*angles, *rest], np.int64)


def compute(job: Job) -> Trained:
    """Train an agent; its history's `rewards` is the mean return of fresh episodes after every thousand samples."""
    learning, evaluation = seeds(job)
    own, of_env = learning.spawn(2)
    env = make_env(job.system)
    space, limit = space_of(env, 1.0), episode_limit(env)
    world = compiled_world(env, space, int(of_env.generate_state(1)[0]))
    if world is None or limit is None:
        raise ValueError(f"Sarsa(λ) needs a registered system whose episodes end, and {job.system} is none")
    rng, tiles, given = np.random.default_rng(own), Tiles(TILINGS, BINS, places_of(env)), Sarsa()
    levels = np.linspace(-1.0, 1.0, ACTIONS)
    choices = np.array(list(itertools.product(levels, repeat=len(space.action_half))))
    actions = np.arange(float(space.actions)).reshape(-1, 1) if space.actions else choices
    weights = np.zeros((count_of(tiles), len(actions)))
    stamp = np.full(weights.shape, -1)

    def evaluate(episodes: int, seed: np.random.SeedSequence) -> np.ndarray:
        returns = np.empty(episodes)
        starts = world.draw(np.random.default_rng(seed), episodes)
        world.call(play_tiles, starts, limit, tiles, weights, actions, returns)
        return returns

    checkpoints, last = evaluation.spawn(2)
    history = np.zeros(job.iterations, HISTORY)
    for i, (row, seed) in enumerate(zip(history, checkpoints.spawn(job.iterations), strict=True)):
        world.call(train_sarsa, world.starts(CHECKPOINT), limit, i * CHECKPOINT, (i + 1) * CHECKPOINT, tiles, given,
                   weights, stamp, actions, traces_kept(given), rng)  # fmt: skip
        row["rewards"] = row["evaluations"] = evaluate(job.evaluations, seed).mean()
        row["steps"] = CHECKPOINT
    return Trained(history, evaluate(job.fresh, last))
