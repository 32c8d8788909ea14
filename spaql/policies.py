"""Policies a person can read: the greedy policy as a table of state cells and as a decision tree.

The leaf cells of a partition tile the state space, and each knows its best ball: together they are the greedy policy.
Joined where neighbours agree, they make the table; asked for one variable at a time, the tree.
"""

import functools
import itertools
import logging
import os
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spaql import learning, results
from spaql.agents import Agent
from spaql.compiling import entry
from spaql.jobs import ALGORITHMS, Job, seeds
from spaql.partition import BALLS, CELLS, NONE, locate
from spaql.simplifying import Simplified, simplify
from spaql.systems import Space, standardise
from spaql.trees import LEAF, Tree, Variables, signed, variables_of

log = logging.getLogger(__name__)


class Policy:
    """The greedy policy of an agent, for one time step if it depends on time; `policy_of` makes it.

    It stays what it is when the agent goes on learning.  It takes every observation as mapped to the standard space;
    the released program does not map the first of an episode (see `Rules`), so with that rule the agent itself may act
    otherwise there.
    """

    def __init__(self, agent: Agent, h: int | None):
        best = agent._best
        self.env = agent.env
        self.h = h
        self.variables: Variables = variables_of(agent.env, agent._space)
        self._space: Space = agent._space
        self._root = h or 0
        self._horizon = agent._learner.H
        self._balls = best.balls[: best.counts[BALLS]].copy()
        self._low, self._high = best.low[: best.counts[BALLS]].copy(), best.high[: best.counts[BALLS]].copy()
        self._cells = best.cells[: best.counts[CELLS]].copy()

    def __repr__(self) -> str:
        return f"Policy({len(self.cells().best)} cells of {', '.join(self.variables.observed)})"

    def cells(self) -> "Cells":
        """Return the leaf cells of the state space, each with its best ball, not joined."""
        dimensions = len(self._space.centre)
        low, high, best = [], [], []
        stack = [(self._root, np.full(dimensions, -1.0), 2.0)]
        while stack:
            cell, corner, width = stack.pop()
            children = self._cells["children"][cell]
            if children == NONE:
                low.append(corner)
                high.append(corner + width)
                best.append(self._cells["best"][cell])
                continue
            for half in reversed(range(2**dimensions)):
                upper = (half >> np.arange(dimensions)) & 1
                stack.append((children + half, corner + upper * width / 2, width / 2))
        return Cells(np.array(low), np.array(high), np.array(best))

    def find(self, observations: ArrayLike) -> pd.DataFrame:
        """Return a row an observation: its cell (a number that says no more), its depth, and the best ball's data.

        The columns are `cell`, `depth`, `action` (the middle one, in its unit; of the first dimension), `q`, `visits`.
        """
        points = np.ascontiguousarray(observations, float).reshape(-1, len(self._space.centre))
        cells = np.empty(len(points), np.int64)
        find_cells(self._cells, tuple(range(points.shape[1])), self._root, self._space, points, cells)
        best = self._cells["best"][cells]
        centre = self._actions(self._intervals(deterministic=True))
        frame = {"cell": cells, "depth": self._cells["depth"][cells]}
        frame["action"] = np.array(next(v for k, v in centre.items() if k.startswith("centre")))[best]
        return pd.DataFrame(frame | {name: self._balls[name][best] for name in ("q", "visits")})

    def table(self, merge: bool = True, deterministic: bool = False) -> pd.DataFrame:
        """Return a row a state cell, in the system's own units.

        Parameters
        ----------
        merge
            Join neighbours that do the same and together are a box.
        deterministic
            Take only the middle action of a ball, as `predict(deterministic=True)` does, which joins more.

        Returns
        -------
        frame
            For each variable v of the observation the bounds `v_low` (which belongs to the cell) and `v_high` (which
            does not, unless it is the end of the space).  For continuous actions `low`, `high` and `centre` of the
            interval the policy draws from; for discrete ones `actions`, the numbers it draws from, and `centre`, all
            in words in `label`.  `q` and `visits` are the best ball's Q(B) and n(B), which includes the visits it
            inherited; of joined cells q is the mean by volume in the standard space, visits the sum over their balls,
            and `cells` their number.  `frame.attrs["units"]` holds the units.
        """
        cells = self.cells()
        intervals = self._intervals(deterministic)[cells.best]
        groups = join(cells, intervals) if merge else [[i] for i in range(len(cells.best))]
        volume = np.prod(cells.high - cells.low, axis=1)
        first = np.array([group[0] for group in groups])
        frame = {}
        for i, name in enumerate(self.variables.observed):
            frame[f"{name}_low"] = self._unmap(i, np.array([cells.low[group, i].min() for group in groups]))
            frame[f"{name}_high"] = self._unmap(i, np.array([cells.high[group, i].max() for group in groups]))
        frame |= self._actions(intervals[first])
        q = self._balls["q"][cells.best]
        frame["q"] = [np.average(q[group], weights=volume[group]) for group in groups]
        frame["visits"] = [int(self._balls["visits"][np.unique(cells.best[group])].sum()) for group in groups]
        frame["cells"] = [len(group) for group in groups]
        result = pd.DataFrame(frame)
        observed = zip(self.variables.observed, self.variables.units, strict=True)
        units = {f"{name}_{end}": unit for name, unit in observed for end in ("low", "high")}
        result.attrs["units"] = units | dict.fromkeys(("low", "high", "centre"), self.variables.action_unit)
        return result

    def tree(self, deterministic: bool = True) -> Tree:
        """Return the exact decision tree: its action is the policy's on every observation.

        Every threshold is the least float whose image in the standard space lies in the upper half of a cell, so the
        tree and the partition agree to the last bit.  Each cell asks its variables in the order that needs the fewest
        leaves, and what both answers agree on is not asked.

        Parameters
        ----------
        deterministic
            Leaves hold one action, the middle one of the best ball; False keeps all the actions the policy draws from.
        """
        intervals = self._intervals(deterministic)[self._cells["best"]]
        branches, leaves = make_tree(self, [interval.tobytes() for interval in intervals])
        actions = np.zeros((len(branches.feature), *intervals.shape[1:]))
        at = branches.feature == LEAF
        actions[at] = [np.frombuffer(leaf).reshape(intervals.shape[1:]) for leaf in leaves]
        return Tree(*branches, actions[:, 0], actions[:, 1], self.variables)

    def cell_tree(self) -> tuple["Branches", pd.DataFrame]:
        """Return a tree that leads to the cells themselves, none joined, and a row a leaf in the order of the leaves.

        The columns are `low`, `high` and `centre` of the best ball's actions, in the standard space, `q` and `visits`.
        """
        branches, cells = make_tree(self, list(range(len(self._cells))))
        best = self._cells["best"][cells]
        low, high = self._low[best, 0], self._high[best, 0]
        centre = self._intervals(deterministic=True)[best, 0, 0]
        ball = self._balls[best]
        return branches, pd.DataFrame(
            {"low": low, "high": high, "centre": centre, "q": ball["q"], "visits": ball["visits"]}
        )

    def simplify(self, **options: Any) -> Simplified:
        """Return the smallest tree found that keeps the policy's return; see `spaql.simplifying.simplify`."""
        if self.h is not None:
            raise ValueError("a policy of one time step has no return of its own: simplify one that is for all of them")
        return simplify(self.tree(), self.env, **{"horizon": self._horizon} | options)

    # -----------------------------------------------------------------------------------------------------------------

    def _intervals(self, deterministic: bool) -> np.ndarray:
        """Each ball's actions in the standard space, as rows of lower and upper bounds."""
        low, high = self._low, self._high
        if deterministic:
            middle = (low + high) / 2
            low, high = (np.floor(middle), np.floor(middle) + 1) if self._space.actions else (middle, middle)
        return np.stack((low, high), axis=1)

    def _actions(self, intervals: np.ndarray) -> dict[str, Any]:
        """The table's columns that say what a cell does."""
        low, high = intervals[:, 0], intervals[:, 1]
        names = self.variables
        if names.box is None:
            runs = [range(int(a), int(b)) for a, b in zip(low[:, 0], high[:, 0], strict=True)]
            return {
                "actions": [tuple(i + names.start for i in run) for run in runs],
                "label": [" or ".join(signed(names.choices[i], names.action_unit) for i in run) for run in runs],
                "centre": [names.choices[int((run.start + run.stop) / 2)] for run in runs],
            }
        centre, half = np.array(self._space.action_centre), np.array(self._space.action_half)
        ends = {"low": low, "high": high, "centre": (low + high) / 2}
        columns = {}
        for name, bound in ends.items():
            for i in range(len(half)):
                columns[name if len(half) == 1 else f"{name}_{i}"] = centre[i] + half[i] * bound[:, i]
        return columns

    def _unmap(self, axis: int, standard: np.ndarray) -> np.ndarray:
        """Return the observed variable for values of a coordinate of the standard space."""
        if np.isfinite(self._space.half[axis]):
            return self._space.centre[axis] + self._space.half[axis] * standard
        with np.errstate(divide="ignore"):  # φ_m reaches ±1 at infinity; arctanh is its inverse
            return np.arctanh(standard) / self._space.slope[axis]


def policy_of(agent: Agent, h: int | None = None) -> Policy:
    """Return the greedy policy of an agent.

    Parameters
    ----------
    agent
        SPAQL, SPAQLTS, Random, or AQL.
    h
        The time step, from 0, for AQL alone, which has a policy for each.

    Examples
    --------
    >>> policy = policy_of(SPAQLTS("CartPole-v0", xi=20, seed=0).learn(200, 100))
    >>> policy.table()
    >>> print(export_text(policy.simplify(target=195).tree))
    """
    if agent.algorithm != learning.AQL:
        if h is not None:
            raise ValueError(f"the policy of {type(agent).__name__} does not depend on time: leave h out")
        return Policy(agent, None)
    if not isinstance(h, int | np.integer) or not 0 <= h < agent._learner.H:
        raise ValueError(f"AQL has a policy for each time step: give h, one of 0 to {agent._learner.H - 1}, not {h!r}")
    return Policy(agent, int(h))


def snapshots(agent: Agent, iterations: Iterable[int], evaluations: int = 20) -> list[tuple[int, Policy]]:
    """Train an agent that does not depend on time and return its policy after each of these numbers of iterations."""
    found = []
    for goal in sorted(set(iterations)):
        missing = goal - len(agent.history)
        if missing < 0:
            raise ValueError(f"the agent has had {len(agent.history)} iterations already, more than {goal}")
        if missing:
            agent.learn(missing, evaluations)
        found.append((goal, policy_of(agent)))
    return found


@entry
def find_cells(cells, axes, root, space, points, found):
    """Write the leaf cell of each observation."""
    x = np.empty(len(axes))
    for i in range(len(points)):
        standardise(space, points[i], x)
        found[i] = locate(cells, axes, root, x)


class Cells(NamedTuple):
    """Leaf cells: corners in the standard space, a row a cell, and the best ball of each."""

    low: np.ndarray
    high: np.ndarray
    best: np.ndarray


def join(cells: Cells, intervals: np.ndarray) -> list[list[int]]:
    """Return groups of cells with the same actions whose unions are boxes.

    Neighbours along one axis are joined, then along the next, and so on until nothing changes; which axis comes first
    makes a difference, so each does, and the fewest groups are kept.
    """
    dimensions = cells.low.shape[1]
    starts = [
        (tuple(zip(low, high, strict=True)), interval.tobytes(), [i])
        for i, (low, high, interval) in enumerate(zip(cells.low, cells.high, intervals, strict=True))
    ]
    found = []
    for first in range(dimensions):
        boxes, before = starts, None
        while before is None or len(boxes) < before:
            before = len(boxes)
            for step in range(dimensions):
                boxes = join_along((first + step) % dimensions, boxes)
        found.append([members for _, _, members in boxes])
    return min(found, key=len)


def join_along(axis: int, boxes: list[tuple]) -> list[tuple]:
    """Join the boxes that touch along an axis, have the same other sides and do the same."""
    rows: dict[tuple, list] = {}
    for sides, action, members in boxes:
        rows.setdefault((sides[:axis], sides[axis + 1 :], action), []).append((sides[axis], members))
    joined = []
    for (before, after, action), row in rows.items():
        row.sort(key=lambda entry: entry[0])
        runs = [row[0]]
        for (low, high), members in row[1:]:
            (start, end), together = runs[-1]
            if end == low:
                runs[-1] = ((start, high), together + members)
            else:
                runs.append(((low, high), members))
        joined += [((*before, side, *after), action, members) for side, members in runs]
    return joined


# ---------------------------------------------------------------------------------------------------------------------
# The exact tree


def least_above(space: Space, axis: int, border: float) -> float:
    """Return the least float whose image under `standardise` is at or above a border of the standard space.

    The map never decreases (the sigmoid, as far as the C library's exp does not), so bisection finds it: over the
    floats themselves, numbered in their order.
    """
    observation, x = np.zeros(len(space.centre)), np.zeros(len(space.centre))
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


def make_tree(policy: Policy, labels: Sequence[Hashable]) -> tuple[Branches, list]:
    """Return the tree that leads every state to the label of its leaf cell, and the labels in the order of the leaves.

    Nodes are numbered by what they are, a leaf by its label and a question by variable, border and children: parts
    that decide the same have the same number, wherever they are.
    """
    axes = range(len(policy._space.centre))
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
        children = policy._cells["children"][cell]
        if children == NONE:
            return number((labels[cell],), 1)
        halves = []
        for half in range(2 ** len(axes)):
            signs = (1 if half >> axis & 1 else -1 for axis in axes)
            corner = tuple(c + sign * radius / 2 for c, sign in zip(centre, signs, strict=True))
            halves.append(convert(children + half, corner, radius / 2))
        # The smallest tree of each part of the cell that some of its borders cut out: first the halves themselves, then
        # pairs of what differs in one axis only, up to the whole.
        trees = {tuple(half >> axis & 1 for axis in axes): node for half, node in enumerate(halves)}
        for part, cuts in parts_of_cell(len(axes)):
            options = (ask(axis, centre[axis], trees[lower], trees[upper]) for axis, lower, upper in cuts)
            trees[part] = min(options, key=sizes.__getitem__)
        return trees[part]

    root = convert(policy._root, (0.0,) * len(axes), 1.0)
    return lay_out(policy._space, {n: node for node, n in numbers.items()}, root)


@functools.cache
def parts_of_cell(dimensions: int) -> list[tuple[tuple, list[tuple]]]:
    """Return the parts of a cell that are not single halves, the whole last, each with the ways to cut it in two.

    A part is named by 0 (lower), 1 (upper) or None (both) for each axis, a way to cut by the axis and the two names.
    There are 3^d parts; in more than six dimensions only those are used that cut the axes in their order.
    """
    if dimensions <= 6:
        every = itertools.product((0, 1, None), repeat=dimensions)
    else:
        cut = (itertools.product((0, 1), repeat=count) for count in range(dimensions + 1))
        every = (name + (None,) * (dimensions - len(name)) for names in cut for name in names)
    names = sorted(every, key=lambda name: name.count(None))
    known = set(names)
    parts = []
    for name in names:
        ways = [(axis, *((*name[:axis], side, *name[axis + 1 :]) for side in (0, 1))) for axis in range(dimensions)]
        ways = [way for way in ways if name[way[0]] is None and way[1] in known]
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


# ---------------------------------------------------------------------------------------------------------------------
# Agents of stored records


def retrain(job: Job, store: str | os.PathLike | None = "") -> Agent:
    """Return the agent of a job, trained again from its seeds: records hold no partitions, and it takes seconds.

    Parameters
    ----------
    job
        Of one of the paper's algorithms.
    store
        The folder of stored results; the repository's if not given, none if None.  If it has the job's record, the
        agent's history should be the record's bit for bit; a warning says if this machine computes otherwise (the last
        bit of a sine is enough, and then this is another agent of the same kind).
    """
    if job.algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm must be one of {', '.join(ALGORITHMS)}, not {job.algorithm!r}")
    parameters = {} if job.algorithm == "Random" else {"xi": job.xi}
    agent = ALGORITHMS[job.algorithm](job.system, rules=job.rules, seed=seeds(job)[0], **parameters)
    agent.learn(job.iterations, job.evaluations)
    if store is not None:
        try:
            stored = results.load(Path(store) if store else results.default_store(), job)
        except (FileNotFoundError, results.Stale):
            return agent
        if not np.array_equal(stored.history, agent.history):
            log.warning(
                "agent %d of %s on %s is not the stored one to the last bit", job.agent, job.algorithm, job.system
            )
    return agent
