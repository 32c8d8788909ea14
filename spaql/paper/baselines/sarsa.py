"""Sarsa(λ) with tile coding and replacing traces, as in Sutton and Barto's book (1998, section 8.4)."""

import math
from typing import Any, NamedTuple

import numpy as np

from spaql.compiling import either, inlined
from spaql.paper.baselines.tiles import OnTiles, greedy
from spaql.replay import share_of_random
from spaql.systems import ENDED, reset, room, step
from spaql.tileq import active, sum_of

LEAST = 0.01  # traces below this are forgotten


class Sarsa(NamedTuple):
    """The parameters."""

    alpha: float = 0.5  # the learning rate, of all tiles of a state together
    lam: float = 0.9  # λ, the decay of traces
    gamma: float = 1.0  # the discount
    epsilon: float = 0.0  # the least share of random actions: estimates of zero explore where rewards are negative
    decay: float = 0.0  # after how many samples that share has fallen from 1 to 1/e; 0 if it is ε from the start


def traces_kept(given: Sarsa) -> int:
    """Return how many steps back a trace reaches."""
    fade = given.gamma * given.lam
    return 1 if fade <= LEAST else 1 + min(1000, int(math.log(LEAST) / math.log(fade))) if fade < 1 else 1000


@inlined
def explore(weights, tiles, given, t, actions, rng):
    """The place of the action after t samples: a random one, or the best."""
    share = given.epsilon if given.decay == 0.0 else share_of_random(given, t)
    return int(rng.random() * actions) if rng.random() < share else greedy(weights, tiles, 0)[0]


@either
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
    return episode


class SarsaLambda(OnTiles):
    """Sarsa(λ) with tile coding; beside the parameters of `OnTiles` it takes those of `Sarsa`."""

    def __init__(self, env: Any, seed: Any = None, actions: int = 2, tilings: int = 16, bins: int = 8, **given: Any):
        super().__init__(env, seed, actions, tilings, bins)
        self.given, self.taken, self.stamp = Sarsa(**given), 0, np.full(self.weights.shape, -1)

    def learn(self, samples: int) -> "SarsaLambda":
        """Take so many samples more, and learn from them."""
        starts, back = self.world.starts(samples), traces_kept(self.given)
        self.world.call(train_sarsa, starts, self.limit, self.taken, self.taken + samples, self.tiles, self.given,
                        self.weights, self.stamp, self.actions, back, self.rng)  # fmt: skip
        self.taken += samples
        return self
