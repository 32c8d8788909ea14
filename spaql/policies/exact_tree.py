"""A policy's partition as a decision tree that acts as it does on every observation, to the last bit."""

import functools
import itertools
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from spaql.partition import NONE
from spaql.policies.tree import LEAF
from spaql.spaces import Space, scaled
from spaql.spaqlr import CellTree


def least_above(space: Space, axis: int, border: float) -> float:
    """Return the least float whose image under `standardise` is at or above a border of the standard space.

    The map never decreases (the sigmoid, as far as the C library's exp does not), so bisection finds it: over the
    floats themselves, numbered in their order.
    """
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
    """The questions of a tree, see `Tree`."""

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray


def make_tree(space: Space, children: np.ndarray, root: int, labels: Sequence[Hashable]) -> tuple[Branches, list]:
    """Return the tree that leads every state to the label of its leaf cell, and the labels in the order of the leaves.

    `children` holds the first child of every cell, of which `root` is the first.
    """
    axes = range(len(space.centre))
    numbered = Numbered()

    def convert(cell: int, centre: tuple[float, ...], radius: float) -> int:
        if children[cell] == NONE:
            return numbered.leaf(labels[cell])
        halves = []
        for half in range(2 ** len(axes)):
            signs = (1 if half >> axis & 1 else -1 for axis in axes)
            corner = tuple(c + sign * radius / 2 for c, sign in zip(centre, signs, strict=True))
            halves.append(convert(children[cell] + half, corner, radius / 2))
        # The smallest tree of each part of the cell that some of its borders cut out: first the halves themselves, then
        # pairs of what differs in one axis only, up to the whole.
        trees = {tuple(half >> axis & 1 for axis in axes): node for half, node in enumerate(halves)}
        for part, cuts in parts_of_cell(len(axes)):
            options = (numbered.ask(axis, centre[axis], trees[lower], trees[upper]) for axis, lower, upper in cuts)
            trees[part] = min(options, key=numbered.sizes.__getitem__)
        return trees[part]

    root = convert(root, (0.0,) * len(axes), 1.0)
    return lay_out(space, {n: node for node, n in numbered.numbers.items()}, root)


def make_bisected(space: Space, cells: CellTree, labels: Sequence[Hashable]) -> tuple[Branches, list]:
    """Return the same of a tree of cells: its own questions, but for those whose answers make no difference."""
    numbered = Numbered()
    node_of: dict[int, int] = {}
    for cell in reversed(range(len(cells.child))):  # the halves of a cell come after it
        child = int(cells.child[cell])
        if child == NONE:
            node_of[cell] = numbered.leaf(labels[cell])
        else:
            halves = node_of[child], node_of[child + 1]
            node_of[cell] = numbered.ask(int(cells.axis[cell]), float(cells.border[cell]), *halves)
    return lay_out(space, {n: node for node, n in numbered.numbers.items()}, node_of[0])


class Numbered:
    """Nodes, numbered by what they are, a leaf by its label and a question by variable, border and children.

    Parts that decide the same have the same number, wherever they are.
    """

    def __init__(self) -> None:
        self.numbers: dict[tuple, int] = {}
        self.sizes: list[int] = []  # leaves of each node

    def number(self, node: tuple, size: int) -> int:
        """Return the number of a node that has so many leaves."""
        if node not in self.numbers:
            self.numbers[node] = len(self.sizes)
            self.sizes.append(size)
        return self.numbers[node]

    def leaf(self, label: Hashable) -> int:
        """Return the number of a leaf."""
        return self.number((label,), 1)

    def ask(self, axis: int, border: float, left: int, right: int) -> int:
        """Return the number of a question, or of its answers if both are the same."""
        return left if left == right else self.number((axis, border, left, right), self.sizes[left] + self.sizes[right])


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
