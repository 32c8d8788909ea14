"""Extremely randomised regression trees (Geurts, Ernst, Wehenkel 2006), compiled.

A node with at least `least` examples is cut in two: of one random cut along each axis, uniform between the least and
the greatest value in the node, the one that explains most of the variance.  A leaf's value is the mean of its examples.
"""

from typing import NamedTuple

import numpy as np

from spaql.compiling import entry, inlined


class Forest(NamedTuple):
    """Trees as arrays, one row per tree: node 0 is the root, and the second half of a node stands behind its first."""

    axis: np.ndarray
    cut: np.ndarray
    child: np.ndarray  # the first half, or 0 at a leaf
    value: np.ndarray


def new_forest(trees: int, examples: int) -> Forest:
    """Return room for a forest over so many examples."""
    size = trees, max(1, 2 * examples)
    return Forest(np.zeros(size, np.int32), np.zeros(size), np.zeros(size, np.int32), np.zeros(size))


@inlined
def explained(x, y, order, low, high, axis, cut):
    """How much of the sum of squares a cut explains, but for a constant."""
    left, right, count = 0.0, 0.0, 0
    for place in range(low, high):
        example = order[place]
        if x[example, axis] < cut:
            left += y[example]
            count += 1
        else:
            right += y[example]
    if count == 0 or count == high - low:
        return -np.inf
    return left * left / count + right * right / (high - low - count)


@entry
def fit(forest, x, y, least, rng):
    """Grow the trees on examples, one row of `x` each."""
    count, axes = x.shape
    order, first, last = np.empty(count, np.int64), np.empty(2 * count, np.int64), np.empty(2 * count, np.int64)
    for tree in range(len(forest.axis)):
        for place in range(count):
            order[place] = place
        first[0], last[0], nodes, node = 0, count, 1, 0
        while node < nodes:
            low, high = first[node], last[node]
            best, axis, cut = -np.inf, 0, 0.0
            if high - low >= least:
                for i in range(axes):
                    lowest, highest = np.inf, -np.inf
                    for place in range(low, high):
                        lowest, highest = min(lowest, x[order[place], i]), max(highest, x[order[place], i])
                    drawn = lowest + (highest - lowest) * rng.random()
                    score = explained(x, y, order, low, high, i, drawn)
                    if score > best:
                        best, axis, cut = score, i, drawn
            forest.child[tree, node] = 0
            if best > -np.inf:
                middle = low
                for place in range(low, high):
                    if x[order[place], axis] < cut:
                        order[place], order[middle] = order[middle], order[place]
                        middle += 1
                forest.axis[tree, node], forest.cut[tree, node], forest.child[tree, node] = axis, cut, nodes
                first[nodes], last[nodes], first[nodes + 1], last[nodes + 1] = low, middle, middle, high
                nodes += 2
            else:
                total = 0.0
                for place in range(low, high):
                    total += y[order[place]]
                forest.value[tree, node] = total / (high - low)
            node += 1


@inlined
def predict_one(forest, x):
    """The mean over the trees at one point."""
    total = 0.0
    for tree in range(len(forest.axis)):
        node = 0
        while forest.child[tree, node] > 0:
            node = forest.child[tree, node] + (0 if x[forest.axis[tree, node]] < forest.cut[tree, node] else 1)
        total += forest.value[tree, node]
    return total / len(forest.axis)


@entry
def predict(forest, x, found):
    """Write the mean over the trees at each row of `x`."""
    for i in range(len(x)):
        found[i] = predict_one(forest, x[i])
