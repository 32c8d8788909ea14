"""Fitted Q iteration with extremely randomised trees (Ernst, Geurts, Wehenkel 2005), on a batch that grows.

Every 2,000 samples, all transitions so far are learnt from several times: for each action, trees are grown on
r + γ max_a Q(y, a), with the Q of the time before.  Exploration is SPAQL-R's.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spaql.compiling import either, inlined
from spaql.paper.baselines import extra_trees
from spaql.paper.baselines.agent import Baseline
from spaql.paper.baselines.extra_trees import new_forest, predict, predict_one
from spaql.paper.baselines.tiles import places_of
from spaql.systems import ENDED, reset, room, step

BATCH = 2000  # samples between two fits


class Fit(NamedTuple):
    """The parameters."""

    sweeps: int = 20  # iterations of each fit
    trees: int = 20  # for each action
    least: int = 10  # examples that a node needs to be cut
    gamma: float = 0.99  # the discount
    epsilon: float = 0.1  # the least share of random actions,
    decay: float = 5000.0  # and the samples in which it falls, as SPAQL-R's


@inlined
def features(places, x, z):
    """Write the variables of an observation to `z`: an angle for its cosine and sine."""
    for i in range(len(places)):
        first, second = places[i, 0], places[i, 1]
        z[i] = x[first] if second < 0 else math.atan2(x[second], x[first]) / math.pi


@inlined
def best_of(forests, z):
    """The best action at a point; the first of equals."""
    best, highest = 0, -np.inf
    for a in range(len(forests)):
        q = predict_one(forests[a], z)
        if q > highest:
            best, highest = a, q
    return best


@either
def play_forests(
    world, starts, limit, most, epsilon, places, forests, actions, x, y, action, reward, end, returns, rng
):
    """Play episodes, or until `most` samples are taken, which are written down; return how many."""
    state, seen, act = room(world), np.empty(len(world.space.centre)), np.empty(actions.shape[1])
    z, taken = np.empty(len(places)), 0
    for episode in range(len(starts)):
        reset(world, state, starts[episode], seen)
        features(places, seen, z)
        total, h, over = 0.0, 0, 0
        while h < limit and taken < most and not over:
            a = int(rng.random() * len(actions)) if rng.random() < epsilon else best_of(forests, z)
            act[:] = actions[a]
            at = taken % len(x)
            x[at] = z
            earned, over = step(world, state, act, seen)
            features(places, seen, z)
            y[at], action[at], reward[at], end[at] = z, a, earned, over == ENDED
            total += earned
            h += 1
            taken += 1
        returns[episode] = total
    return taken


class FittedQ(Baseline):
    """Fitted Q iteration; beside the parameters of `Baseline` it takes those of `Fit`."""

    def __init__(self, env: Any, seed: Any = None, actions: int = 2, **given: Any):
        super().__init__(env, seed, actions)
        self.given, self.places = Fit(**given), places_of(self.env)
        self.forests = tuple(new_forest(1, 1) for _ in self.actions)
        self.taken: list[tuple[np.ndarray, ...]] = []

    def learn(self, samples: int) -> "FittedQ":
        """Take so many samples more, and learn from them; whole batches only."""
        if samples % BATCH:
            raise ValueError(f"samples must be a multiple of the batch, {BATCH}, not {samples}")
        for _ in range(samples // BATCH):
            share = max(self.given.epsilon, math.exp(-len(self.taken) * BATCH / self.given.decay))
            room_for = self._room(BATCH)
            starts = self.world.starts(BATCH)
            self._run(starts, BATCH, share, room_for, np.empty(len(starts)), self.rng)
            self.taken.append(room_for)
            self._fit()
        return self

    def _room(self, count: int) -> tuple[np.ndarray, ...]:
        dimensions = len(self.places)
        return (np.zeros((count, dimensions)), np.zeros((count, dimensions)), np.zeros(count, np.int64),
                np.zeros(count), np.zeros(count, bool))  # fmt: skip

    def _run(self, starts: np.ndarray, most: int, share: float, written: tuple, returns: np.ndarray, rng: Any) -> int:
        return self.world.call(play_forests, starts, self.limit, most, share, self.places, self.forests, self.actions,
                               *written, returns, rng)  # fmt: skip

    def _fit(self) -> None:
        x, y, action, reward, end = (np.concatenate(parts) for parts in zip(*self.taken, strict=True))
        rows = [np.flatnonzero(action == a) for a in range(len(self.actions))]
        for _ in range(self.given.sweeps):
            values = np.empty((len(self.actions), len(y)))
            for forest, found in zip(self.forests, values, strict=True):
                predict(forest, y, found)
            target = reward + self.given.gamma * np.where(end, 0.0, values.max(axis=0))
            grown = []
            for own in rows:
                forest = new_forest(self.given.trees, len(own))
                extra_trees.fit(forest, x[own], target[own], self.given.least, self.rng)
                grown.append(forest)
            self.forests = tuple(grown)

    def play(self, starts: np.ndarray) -> np.ndarray:
        """Return the returns of episodes from these starts under the greedy policy."""
        returns = np.empty(len(starts))
        self._run(starts, len(starts) * self.limit, 0.0, self._room(1), returns, np.random.default_rng(0))
        return returns
