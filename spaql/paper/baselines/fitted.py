"""Fitted Q iteration (Ernst, Geurts, Wehenkel 2005) with scikit-learn's extremely randomised trees, on a growing batch.

Whenever the batch has grown by a quarter, all its transitions are learnt from several times: for each action, trees are
grown on r + γ max_a Q(y, a), with the Q of the time before.  Exploration is SPAQL-R's.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spaql.compiling import either, inlined
from spaql.paper.baselines.agent import Baseline
from spaql.paper.baselines.tiles import places_of
from spaql.replay import share_of_random
from spaql.systems import ENDED, reset, room, step

GROWTH = 1.25  # of the batch between two fits
AT_ONCE = 1000  # samples, after which the batch may have grown enough


class Fit(NamedTuple):
    """The parameters."""

    sweeps: int = 10  # iterations of each fit
    trees: int = 20  # for each action
    least: int = 5  # examples of a leaf
    gamma: float = 0.99  # the discount
    epsilon: float = 0.1  # the least share of random actions,
    decay: float = 5000.0  # and the samples in which it falls, as SPAQL-R's


class Forest(NamedTuple):
    """Trees as one array for each property of their nodes, for compiled code."""

    roots: np.ndarray
    axis: np.ndarray
    cut: np.ndarray
    left: np.ndarray
    right: np.ndarray  # equal to `left` at a leaf
    value: np.ndarray


def flatten(model: Any) -> Forest:
    """Return the trees of scikit-learn's forest behind each other."""
    trees = [each.tree_ for each in model.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    join = np.concatenate
    return Forest(
        roots,
        join([tree.feature for tree in trees]),
        join([tree.threshold for tree in trees]),
        join([tree.children_left + root for tree, root in zip(trees, roots, strict=True)]),
        join([tree.children_right + root for tree, root in zip(trees, roots, strict=True)]),
        join([tree.value[:, 0, 0] for tree in trees]),
    )


NOTHING = Forest(*(np.zeros(1, kind) for kind in (int, int, float, int, int, float)))  # before the first fit


@inlined
def predict(forest, z):
    """The mean over the trees at a point."""
    total = 0.0
    for node in forest.roots:
        while forest.left[node] != forest.right[node]:
            node = forest.left[node] if z[forest.axis[node]] <= forest.cut[node] else forest.right[node]
        total += forest.value[node]
    return total / len(forest.roots)


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
        q = predict(forests[a], z)
        if q > highest:
            best, highest = a, q
    return best


@either
def play_forests(
    world, starts, limit, most, epsilon, places, forests, actions, x, y, action, reward, end, returns, rng
):
    """Play episodes, or until `most` samples are taken, which are written down; return how many."""
    state, seen, act = room(world), np.empty(len(world.space.centre)), np.empty(actions.shape[1])
    z, taken = np.empty(len(places), np.float32), 0
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
        self.models: list[Any] = []
        self.forests = (NOTHING,) * len(self.actions)
        self.batch = self._room(0)
        self.fitted = 0  # samples of the last fit

    def learn(self, samples: int) -> "FittedQ":
        """Take so many samples more, and learn from them whenever the batch has grown by a quarter."""
        last = len(self.batch[0]) + samples
        while (taken := len(self.batch[0])) < last:
            share = share_of_random(self.given, taken)
            count = min(AT_ONCE, last - taken)
            more = self._room(count)
            self._run(self.world.starts(count), count, share, more, np.empty(count), self.rng)
            self.batch = tuple(map(np.concatenate, zip(self.batch, more, strict=True)))
            tried = len(np.unique(self.batch[2])) == len(self.actions)
            if tried and taken + count >= GROWTH * self.fitted:
                self._fit()
                self.fitted = taken + count
        return self

    def _room(self, count: int) -> tuple[np.ndarray, ...]:
        dimensions = len(self.places)
        return (np.zeros((count, dimensions), np.float32), np.zeros((count, dimensions), np.float32),
                np.zeros(count, np.int64), np.zeros(count), np.zeros(count, bool))  # fmt: skip

    def _run(self, starts: np.ndarray, most: int, share: float, written: tuple, returns: np.ndarray, rng: Any) -> int:
        return self.world.call(play_forests, starts, self.limit, most, share, self.places, self.forests, self.actions,
                               *written, returns, rng)  # fmt: skip

    def _fit(self) -> None:
        from sklearn.ensemble import ExtraTreesRegressor

        x, y, action, reward, end = self.batch
        rows = [np.flatnonzero(action == a) for a in range(len(self.actions))]
        for _ in range(self.given.sweeps):
            ahead = np.max([model.predict(y) for model in self.models], axis=0) if self.models else 0.0
            target = reward + self.given.gamma * np.where(end, 0.0, ahead)
            self.models = [
                ExtraTreesRegressor(
                    self.given.trees, min_samples_leaf=self.given.least, random_state=int(self.rng.integers(2**31))
                ).fit(x[own], target[own])
                for own in rows
            ]
        self.forests = tuple(map(flatten, self.models))

    def play(self, starts: np.ndarray) -> np.ndarray:
        """Return the returns of episodes from these starts under the greedy policy."""
        returns = np.empty(len(starts))
        self._run(starts, len(starts) * self.limit, 0.0, self._room(1), returns, np.random.default_rng(0))
        return returns
