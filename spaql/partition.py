"""Balls in flat arrays: which are relevant to a state, which is the best, and how one splits.

The balls of a partition tile the standard state-action space.  A ball is the product of a *cell* of states (a dyadic
cube) and an interval of actions (a dyadic box, or a run of a discrete action list).  The cells form a tree over the
state space alone, in which node 0 is the root; every ball hangs on the cell that is its shadow.  A state lies in one
cell of each depth, so RELEVANT(x) is what hangs on the cells between the root and the leaf that holds x.  A ball that
splits is taken off its cell: its domain (eqn:domain) is then empty, that of any other ball is the ball itself.

Each leaf cell knows the best of its relevant balls.  That is the greedy policy, kept up to date: an update touches
only the cells below the ball that changed.  A rollout step is one descent, and reading the leaves reads the policy.

AQL keeps one partition for every time step: a forest, in which cell h is the root of time step h.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spaql.compiling import cached_jit, python_or_jit
from spaql.files import check_array

# No ball, or no cell.  Loops ask for `> NONE`, not for `!= NONE`: so the compiler knows that what follows is not a
# negative index, which would count from an array's end.  That saves up to a tenth of a rollout's time.
NONE = -1

BALL = np.dtype(
    [
        ("q", np.float64),  # the estimate Q(B)
        ("rank", np.float64),  # of equal estimates the ball with the higher rank wins
        ("visits", np.int64),  # n(B)
        ("cell", np.int32),  # its shadow on the state space
        ("next", np.int32),  # the next unsplit ball on the same cell
    ],
    align=True,
)
CELL = np.dtype(
    {
        "names": (
            "children",  # the first of its 2^d halves' cells, which stand in a row; NONE for a leaf
            "best",  # the best ball relevant to the whole cell: hanging here or on a cell above
            "own",  # the best ball hanging here
            "first",  # the first unsplit ball hanging here, whose `next` leads to the others
            "parent",
            "depth",  # a cell of depth n, and so its balls, has radius 2^-n
        ),
        "formats": (np.int32,) * 6,
        "itemsize": 32,  # a power of two, so that no multiplication finds a cell: it saves 3 to 6 % of a run's time
    },
    align=True,
)
# Plain Python, too, reads the fields of an `np.record` as attributes.
BALL, CELL = np.dtype((np.record, BALL)), np.dtype((np.record, CELL))
BITS = 31  # states are located with this many binary digits after the point: the greatest depth


class Partition(NamedTuple):
    """A partition, or the forest of AQL's; `counts` holds how many balls, cells, arms and splits there are."""

    balls: np.ndarray
    low: np.ndarray  # lower bounds of each ball's actions, one row per ball
    high: np.ndarray  # upper bounds; for discrete actions the index after the last
    cells: np.ndarray
    counts: np.ndarray
    axes: tuple[int, ...]  # (0, 1, ..., d - 1) of the state space: a tuple, so that compiled code knows its length

    # Python alone calls these.

    def estimates(self) -> np.ndarray:
        """Return the estimates of all balls."""
        return self.balls["q"][: self.counts[BALLS]]

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        return {f"{name}_{field}": array for field, array in copy(self)._asdict().items() if field != "axes"}

    def restored(self, arrays: dict[str, np.ndarray], name: str) -> "Partition":
        """Return the partition of a file, checked, in the place of the one that an agent begins with."""
        balls, cells = (arrays[f"{name}_{field}"].size for field in ("balls", "cells"))
        actions = (balls, self.low.shape[1]), self.low.min(), self.high.max()
        checked = {
            "balls": check_array(arrays, f"{name}_balls", BALL, (balls,)),
            "low": check_array(arrays, f"{name}_low", float, *actions),
            "high": check_array(arrays, f"{name}_high", float, *actions),
            "cells": check_array(arrays, f"{name}_cells", CELL, (cells,)),
            "counts": check_array(arrays, f"{name}_counts", np.int64, self.counts.shape),
        }
        p = Partition(**checked, axes=self.axes)
        if not is_sound(p, len(self.cells), discrete=self.low[0, 0] == 0.0):  # an interval begins at -1
            raise ValueError(f"its {name} partition does not hold together, or belongs to another environment")
        return p


BALLS, CELLS, ARMS, SPLITS = range(4)  # places in `counts`


def new_partition(roots: int, dimensions: int, low: ArrayLike, high: ArrayLike, q: float) -> Partition:
    """Return a forest of `roots` trees of one ball each, with actions between `low` and `high` and the estimate `q`."""
    balls, cells = np.zeros(roots, BALL), np.zeros(roots, CELL)
    every = np.arange(roots)
    balls["q"], balls["cell"], balls["next"] = q, every, NONE
    cells["children"] = cells["parent"] = NONE
    cells["best"] = cells["own"] = cells["first"] = every
    lows, highs = (np.tile(np.asarray(bound, float), (roots, 1)) for bound in (low, high))
    return Partition(balls, lows, highs, cells, np.array([roots, roots, roots, 0]), tuple(range(dimensions)))


@python_or_jit
def copy(p):
    """Return a copy that shares nothing with the original, without its spare room."""
    balls, cells = p.counts[BALLS], p.counts[CELLS]
    low, high = p.low[:balls].copy(), p.high[:balls].copy()
    return Partition(p.balls[:balls].copy(), low, high, p.cells[:cells].copy(), p.counts.copy(), p.axes)


@python_or_jit
def restore(p, earlier):
    """Make a partition what an earlier one was, for which there must be room."""
    for i in range(earlier.counts[BALLS]):
        p.balls[i] = earlier.balls[i]
        for j in range(p.low.shape[1]):
            p.low[i, j], p.high[i, j] = earlier.low[i, j], earlier.high[i, j]
    for i in range(earlier.counts[CELLS]):
        p.cells[i] = earlier.cells[i]
    for i in range(len(p.counts)):
        p.counts[i] = earlier.counts[i]


@python_or_jit
def digits(coordinate):
    """The binary digits of a coordinate, of which the first says in which half of [-1, 1] it is."""
    return min(int(math.floor(coordinate * 2.0**BITS)) + 2**BITS, 2 ** (BITS + 1) - 1)


@python_or_jit
def locate(cells, axes, root, x):
    """The leaf cell that holds the state `x`; a point on a border belongs to the upper half."""
    cell = root
    children = cells[cell].children
    shift = BITS
    while children > NONE:
        half = 0
        for i in range(len(axes)):  # the compiler takes the digits out of the loop
            half |= ((digits(x[i]) >> shift) & 1) << i
        cell = children + half
        children = cells[cell].children
        shift -= 1
    return cell


@cached_jit
def best_ball(cells, axes, root, x):
    """The ball argmax Q(B) over RELEVANT(x): the selection rule."""
    return cells[locate(cells, axes, root, x)].best


# Of a space the compiler knows how many numbers an action has; of an index without a sign it knows that it does not
# count from the end.  A rollout waits for its action at every step, so each of the two saves some per cent of its time.


@python_or_jit
def draw_action(lows, highs, ball, space, central, rng, action):
    """Draw an action uniformly within a ball, or take the `central` one."""
    row = np.uintp(ball)
    for i in range(len(space.action_half)):
        low, width = lows[row, i], highs[row, i] - lows[row, i]
        if space.actions > 0 and width == 1.0:
            action[i] = low
            continue
        action[i] = low + width * (0.5 if central else rng.random())
        if space.actions > 0:
            action[i] = math.floor(action[i])


# Compiled code counts references whenever it takes an array out of a tuple, so the functions below, which a training
# step calls many times, are handed the arrays.


@python_or_jit
def winner(balls, ball, other):
    """The winner of the argmax among two balls, either of which may be NONE."""
    if ball == NONE:
        return other
    if other == NONE:
        return ball
    q, q_other = balls[ball].q, balls[other].q
    if q_other > q or (q_other == q and balls[other].rank > balls[ball].rank):
        return other
    return ball


@python_or_jit
def project(balls, cells, halves, top, changed):
    """Find the best ball of a cell again, on which the ball `changed` hangs or hung, and of the cells below it."""
    own = NONE
    ball = cells[top].first
    while ball > NONE:
        own = winner(balls, own, ball)
        ball = balls[ball].next
    cells[top].own = own
    parent = cells[top].parent
    cells[top].best = own if parent == NONE else winner(balls, cells[parent].best, own)
    cell = cells[top].children
    while cell > NONE:  # only where the ball `changed` can make a difference
        best = winner(balls, cells[cells[cell].parent].best, cells[cell].own)
        deeper = best != cells[cell].best or best == changed
        cells[cell].best = best
        if deeper and cells[cell].children != NONE:
            cell = cells[cell].children
        else:
            cell = next_cell(cells, halves, top, cell)


@python_or_jit
def next_cell(cells, halves, top, cell):
    """The cell below `top` that a walk through the tree comes to after everything below `cell`, or NONE at its end."""
    while cell != top:
        parent = cells[cell].parent
        if cell + 1 < cells[parent].children + halves:
            return cell + 1
        cell = parent
    return NONE


@cached_jit
def update(balls, cells, halves, ball, q):
    """Set a ball's estimate, and with it the best balls of the cells below."""
    cell = balls[ball].cell
    own = cells[cell].own
    balls[ball].q = q
    # A ball that was not the best of its cell and is not now makes no difference there, nor to the cells below.
    if ball == own or winner(balls, own, ball) != own:
        project(balls, cells, halves, cell, ball)


@cached_jit
def split(p, ball, discrete, random_ranks, rng):
    """Cover a ball with balls of half its radius, which inherit from it; there must be room for them (`has_room`)."""
    cell = p.balls[ball].cell
    halves = 2 ** len(p.axes)
    if discrete:  # two halves of a list, until the list is one action
        parts = 1 if p.high[ball, 0] - p.low[ball, 0] == 1.0 else 2
    else:  # a single action is not divided
        parts = 1 if p.high[ball, 0] == p.low[ball, 0] else 2 ** p.low.shape[1]
    balls, cells = p.balls, p.cells
    unlink(balls, cells, ball)
    if cells[cell].children == NONE:  # it gets its 2^d halves, in a row
        first = cells[cell].children = p.counts[CELLS]
        p.counts[CELLS] += halves
        for child in range(first, first + halves):
            cells[child].children = cells[child].own = cells[child].first = NONE
            cells[child].best, cells[child].parent = cells[cell].best, cell
            cells[child].depth = cells[cell].depth + 1
    for half in range(halves):
        for part in range(parts):
            new, child = p.counts[BALLS], cells[cell].children + half
            p.counts[BALLS] += 1
            balls[new].q, balls[new].visits, balls[new].cell = balls[ball].q, balls[ball].visits, child
            balls[new].next, cells[child].first = cells[child].first, new
            take_part(p.low, p.high, new, ball, part, parts, discrete)
            if random_ranks:
                balls[new].rank = rng.random()
            else:
                balls[new].rank = balls[ball].rank + math.ldexp(part, -p.low.shape[1] * cells[child].depth)
            cells[child].own = winner(balls, cells[child].own, new)
    p.counts[ARMS] += halves * parts - 1
    p.counts[SPLITS] += 1
    project(balls, cells, halves, cell, ball)


@python_or_jit
def unlink(balls, cells, ball):
    """Take a ball off its cell: its domain is empty from now on."""
    cell, after = balls[ball].cell, balls[ball].next
    if cells[cell].first == ball:
        cells[cell].first = after
        return
    before = cells[cell].first
    while balls[before].next != ball:
        before = balls[before].next
    balls[before].next = after


@python_or_jit
def take_part(lows, highs, new, parent, part, parts, discrete):
    """Give a new ball its part of the actions of the ball `parent`."""
    # Part 0 has the upper half of every continuous action, or the first half of the action list: the order in which the
    # released program lists its children, where the last of equal balls wins the argmax.
    dimensions = lows.shape[1]
    for i in range(dimensions):
        low, high = lows[parent, i], highs[parent, i]
        if parts == 1:
            upper, middle = True, low
        elif discrete:
            upper, middle = part == 1, low + (high - low) // 2
        else:
            upper, middle = (part >> (dimensions - 1 - i)) & 1 == 0, (low + high) / 2
        lows[new, i] = middle if upper else low
        highs[new, i] = high if upper else middle


@python_or_jit
def has_room(p, splits):
    """Whether there is room for so many splits; Python makes it, since code that makes arrays takes long to compile."""
    cells = splits * 2 ** len(p.axes)
    balls = cells * 2 ** p.low.shape[1]
    return p.counts[BALLS] + balls <= len(p.balls) and p.counts[CELLS] + cells <= len(p.cells)


def with_room(p: Partition, splits: int) -> Partition:
    """Return a partition with room for so many splits: itself, or a copy at least twice as large."""
    if has_room(p, splits):
        return p
    cells = max(splits * 2 ** len(p.axes), len(p.cells))
    balls = max(cells * 2 ** p.low.shape[1], len(p.balls))
    p = copy(p)  # what is used of it
    low, high = lengthened(p.low, balls), lengthened(p.high, balls)
    return p._replace(balls=lengthened(p.balls, balls), low=low, high=high, cells=lengthened(p.cells, cells))


def lengthened(array: np.ndarray, rows: int) -> np.ndarray:
    """Return a copy of an array, with so many more rows, of zeros."""
    longer = np.zeros((len(array) + rows, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


# Partitions of files, whose indices compiled code would follow without looking


def is_sound(p: Partition, roots: int, discrete: bool) -> bool:
    """Return whether indices are in range and without cycles, and numbers such as learning gives."""
    balls, cells, halves = p.balls, p.cells, 2 ** len(p.axes)
    count, room = len(balls), len(cells)
    inner, heads, linked = (np.flatnonzero(each != NONE) for each in (cells["children"], cells["first"], balls["next"]))
    # The halves of each inner cell stand in a row, after itself.
    above = np.repeat(inner, halves)
    below = np.repeat(cells["children"][inner], halves) + np.tile(np.arange(halves), len(inner))
    in_range = (
        room >= roots and np.array_equal(np.sort(below), np.arange(roots, room)) and np.all(below > above),
        *(np.all((cells[name] >= NONE) & (cells[name] < count)) for name in ("first", "own", "best")),
        np.all((balls["next"] >= NONE) & (balls["next"] < np.arange(count))),  # an older one: no cycles
        np.all((balls["cell"] >= 0) & (balls["cell"] < room)),
    )
    if not all(in_range):
        return False
    parent, depth = np.full(room, NONE), np.zeros(room, int)
    parent[below], depth[below] = above, cells["depth"][above] + 1
    whole = np.zeros(count, bool)  # balls that were not split
    following = cells["first"][heads]
    while following.size:
        whole[following] = True
        following = balls["next"][following]
        following = following[following != NONE]
    own, inherited = cells["own"][heads], np.flatnonzero(cells["best"] != cells["own"])
    sound = (
        np.array_equal(cells["parent"], parent) and np.array_equal(cells["depth"], depth) and depth.max() <= BITS,
        np.all(balls["cell"][balls["next"][linked]] == balls["cell"][linked]),
        np.all(balls["cell"][cells["first"][heads]] == heads),
        # The best ball is a whole one of this cell, or of one above it.
        np.array_equal(cells["own"] != NONE, cells["first"] != NONE),
        np.all(whole[own] & (balls["cell"][own] == heads)),
        np.all((parent[inherited] != NONE) & (cells["best"][inherited] == cells["best"][parent[inherited]])),
        np.all(cells["best"][cells["children"] == NONE] != NONE),
        np.all(p.low < p.high) if discrete else np.all(p.low <= p.high),
        not discrete or (np.array_equal(p.low, np.floor(p.low)) and np.array_equal(p.high, np.floor(p.high))),
        np.isfinite(balls["q"]).all() and np.isfinite(balls["rank"]).all(),
        np.all((balls["visits"] >= 0) & (balls["visits"] <= 2**53)),
        p.counts.tolist() == [count, room, whole.sum(), count - whole.sum()],
    )
    return all(sound)
