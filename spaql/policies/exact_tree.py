"""A partition as a decision tree that takes the same action on every observation, to the last bit."""

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from spaql.policies.tree import LEAF
from spaql.spaces import Space, scaled


def least_above(space: Space, axis: int, border: float) -> float:
    """Return the least float whose image under `standardise` is at or above a border of the standard space."""
    # The map never decreases, so bisection finds it: over the floats themselves, numbered in their order.
    largest = int(np.array(np.finfo(float).max).view(np.int64))
    below, above = -largest, largest
    while above - below > 1:
        middle = (below + above) // 2
        if scaled(space, axis, float_of(middle)) >= border:
            above = middle
        else:
            below = middle
    return float_of(above)


def float_of(number: int) -> float:
    """Return the float with this number: the bits of a positive one, or what is that far below zero."""
    return float(np.copysign(np.array(abs(number), np.int64).view(float), number))


class Branches(NamedTuple):
    """The questions of a tree, see `Tree`, with their borders in the standard space."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    border: np.ndarray


def make_tree(
    space: Space, split: Callable[[int], tuple[dict[int, float], int] | None], root: int, labels: Sequence[Hashable]
) -> tuple[Branches, list]:
    """Return the tree that leads every state to the label of its leaf cell, and the labels in its leaves' order."""
    # `split` returns the borders that cut a cell, by axis, and its first child, or None.  Nodes by what they are,
    # a leaf by its label and a question by axis, border and children, and their sizes: parts that decide the same have
    # the same number, wherever they are.
    numbers: dict[tuple, int] = {}
    sizes: list[int] = []

    def number(node: tuple, size: int) -> int:
        if node not in numbers:
            numbers[node] = len(sizes)
            sizes.append(size)
        return numbers[node]

    def convert(cell: int) -> int:
        if (found := split(cell)) is None:
            return number((labels[cell],), 1)
        borders, child = found
        every = itertools.product((0, 1), repeat=len(borders))  # the first axis changes fastest
        halves: dict[tuple, int] = {sides[::-1]: convert(child + half) for half, sides in enumerate(every)}

        @functools.cache
        def smallest(part: tuple[int | None, ...]) -> int:
            """The smallest tree of a part of the cell: along each axis its lower side, its upper, or both (None)."""
            if None not in part:
                return halves[part]
            options: list[int] = []
            for place, (axis, border) in enumerate(borders.items()):
                if part[place] is None and (len(borders) <= 6 or not options):  # of 3^d parts not all are tried
                    lower, upper = (smallest((*part[:place], side, *part[place + 1 :])) for side in (0, 1))
                    size = sizes[lower] + sizes[upper]
                    options.append(lower if lower == upper else number((axis, border, lower, upper), size))
            return min(options, key=sizes.__getitem__)

        return smallest((None,) * len(borders))

    root = convert(root)
    return lay_out(space, list(numbers), root)


def lay_out(space: Space, nodes: list[tuple], root: int) -> tuple[Branches, list]:
    """Return the arrays of a tree of numbered nodes, each node before its left part before its right part."""
    least = functools.cache(functools.partial(least_above, space))
    rows: list[list] = []
    labels = []
    stack = [(root, LEAF)]  # a node, and whose right child it is
    while stack:
        n, parent = stack.pop()
        here = len(rows)
        if parent != LEAF:
            rows[parent][3] = here
        if len(nodes[n]) == 1:
            rows.append([LEAF, 0.0, LEAF, LEAF, 0.0])
            labels.append(nodes[n][0])
            continue
        axis, border, left, right = nodes[n]
        rows.append([axis, least(axis, border), here + 1, LEAF, border])
        stack += [(right, here), (left, LEAF)]
    return Branches(*(np.array(column) for column in zip(*rows, strict=True))), labels


def boxes(branches: Branches, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the leaves' boxes in the standard space, one row for each leaf, in their order."""
    low, high = -np.ones((len(branches.feature), dimensions)), np.ones((len(branches.feature), dimensions))
    for node in np.flatnonzero(branches.feature != LEAF):  # parents come before their children
        axis, left, right = branches.feature[node], branches.left[node], branches.right[node]
        low[[left, right]], high[[left, right]] = low[node], high[node]
        high[left, axis] = low[right, axis] = branches.border[node]
    leaves = branches.feature == LEAF
    return low[leaves], high[leaves]
