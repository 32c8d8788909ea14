"""A policy's partition as a decision tree that acts as it does on every observation, to the last bit."""

import functools
import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spaql.partition import NONE
from spaql.policies.tree import LEAF
from spaql.spaces import Space, standardise


def least_above(space: Space, axis: int, border: float) -> float:
    """Return the least float whose image under `standardise` is at or above a border of the standard space.

    The map never decreases (the sigmoid, as far as the C library's exp does not), so bisection finds it: over the
    floats themselves, numbered in their order.
    """
    observation, x = [0.0] * len(space.centre), [0.0] * len(space.centre)
    largest = int(np.array(np.finfo(float).max).view(np.int64))
    below, above = -largest, largest
    while above - below > 1:
        middle = (below + above) // 2
        observation[axis] = float_of(middle)
        standardise(space, observation, x)
        if x[axis] >= border:
            above = middle
        else:
            below = middle
    return float_of(above)


def float_of(number: int) -> float:
    """Return the float with this number: the bits of a positive one, or what is that far below zero."""
    return float(np.copysign(np.array(abs(number), np.int64).view(float), number))


class Branches(NamedTuple):
    """The questions of a tree, see `Tree`."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray


def make_tree(space: Space, children: np.ndarray, root: int, labels: Sequence[Hashable]) -> tuple[Branches, list]:
    """Return the tree that leads every state to the label of its leaf cell, and the labels in the order of the leaves.

    `children` holds the first child of every cell, of which `root` is the first.

    Nodes are numbered by what they are, a leaf by its label and a question by variable, border and children: parts
    that decide the same have the same number, wherever they are.
    """
    axes = range(len(space.centre))
    numbers: dict[tuple, int] = {}
    sizes: list[int] = []  # leaves of each node

    def number(node: tuple, size: int) -> int:
        if node not in numbers:
            numbers[node] = len(sizes)
            sizes.append(size)
        return numbers[node]

    def ask(axis: int, border: float, left: int, right: int) -> int:
        return left if left == right else number((axis, border, left, right), sizes[left] + sizes[right])

    def convert(cell: int, centre: tuple[float, ...], radius: float) -> int:
        if children[cell] == NONE:
            return number((labels[cell],), 1)
        halves = []
        for half in range(2 ** len(axes)):
            signs = (1 if half >> axis & 1 else -1 for axis in axes)
            corner = tuple(c + sign * radius / 2 for c, sign in zip(centre, signs, strict=True))
            halves.append(convert(children[cell] + half, corner, radius / 2))
        # The smallest tree of each part of the cell that some of its borders cut out: first the halves themselves, then
        # pairs of what differs in one axis only, up to the whole.
        trees = {tuple(half >> axis & 1 for axis in axes): node for half, node in enumerate(halves)}
        for part, cuts in parts_of_cell(len(axes)):
            options = (ask(axis, centre[axis], trees[lower], trees[upper]) for axis, lower, upper in cuts)
            trees[part] = min(options, key=sizes.__getitem__)
        return trees[part]

    root = convert(root, (0.0,) * len(axes), 1.0)
    return lay_out(space, {n: node for node, n in numbers.items()}, root)


@functools.cache
def parts_of_cell(dimensions: int) -> list[tuple[tuple, list[tuple]]]:
    """Return the parts of a cell that are not single halves, the whole last, each with the ways to cut it in two.

    A part is named by 0 (lower), 1 (upper) or None (both) for each axis, a way to cut by the axis and the two names.
    There are 3^d parts; in more than six dimensions only those are used that cut the axes in their order.
    """
    every: Iterable[tuple[int | None, ...]]
    if dimensions <= 6:
        every = itertools.product((0, 1, None), repeat=dimensions)
    else:
        cut = (itertools.product((0, 1), repeat=count) for count in range(dimensions + 1))
        every = (name + (None,) * (dimensions - len(name)) for names in cut for name in names)
    names = sorted(every, key=lambda name: name.count(None))
    known = set(names)
    parts = []
    for name in names:
        ways = []
        for axis in range(dimensions):
            lower, upper = ((*name[:axis], side, *name[axis + 1 :]) for side in (0, 1))
            if name[axis] is None and lower in known:
                ways.append((axis, lower, upper))
        if ways:
            parts.append((name, ways))
    return parts


def lay_out(space: Space, nodes: dict[int, tuple], root: int) -> tuple[Branches, list]:
    """Return the arrays of a tree of numbered nodes, each node before its left part before its right part."""
    thresholds: dict[tuple[int, float], float] = {}
    rows: list[list] = []
    labels = []
    stack = [(root, LEAF)]  # a node, and whose right child it is
    while stack:
        n, parent = stack.pop()
        here = len(rows)
        if parent != LEAF:
            rows[parent][3] = here
        if len(nodes[n]) == 1:
            rows.append([LEAF, 0.0, LEAF, LEAF])
            labels.append(nodes[n][0])
            continue
        axis, border, left, right = nodes[n]
        if (axis, border) not in thresholds:
            thresholds[axis, border] = least_above(space, axis, border)
        rows.append([axis, thresholds[axis, border], here + 1, LEAF])
        stack += [(right, here), (left, LEAF)]
    return Branches(*(np.array(column) for column in zip(*rows, strict=True))), labels
