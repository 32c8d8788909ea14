"""Policies a person can read: the greedy policy as a table of state cells and as a decision tree.

The leaf cells of a partition tile the state space, and each knows its best ball: together they are the greedy policy.
Joined where neighbours agree, they make the table; asked for one variable at a time, the tree.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from spaql.checks import load
from spaql.compiling import entry
from spaql.partition import NONE, Partition, locate
from spaql.policies.exact_tree import Branches, make_bisected, make_tree
from spaql.policies.export import signed
from spaql.policies.imitate import imitate
from spaql.policies.play import evaluate
from spaql.policies.simplify import Simplified, simplify
from spaql.policies.tree import LEAF, Tree, Variables, variables_of
from spaql.spaces import Space, pairs_of, standardise, to_box
from spaql.spaqlr import CellTree, leaf_below

if TYPE_CHECKING:
    import pandas as pd


class Greedy:
    """What all policies offer: actions, returns, trees that imitate them, and the search for the smallest."""

    h: int | None = None  # the time step, if the policy depends on it
    env: gym.Env
    variables: Variables
    _space: Space
    _horizon: int

    def predict(
        self, observation: ArrayLike, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """Return the action for an observation or an array of them, and None: Stable-Baselines3's protocol.

        It is the middle one where a ball has several, whatever the other arguments.
        """
        observation = np.asarray(observation, float)
        points = np.ascontiguousarray(observation.reshape(-1, len(self._space.centre)))
        if np.isnan(points).any():
            raise ValueError("the observation contains NaN; expected numbers")
        actions = self._choose(points)
        if self.variables.box is None:
            actions = actions[:, 0].astype(np.int64) + self.variables.start
        else:
            actions = to_box(self.variables.box, self._space, actions)
        return (actions[0] if observation.shape == self.env.observation_space.shape else actions), None

    def _choose(self, points: np.ndarray) -> np.ndarray:
        """Return the actions for observations, in the standard space."""
        raise NotImplementedError

    def evaluate(self, episodes: int = 1000, seed: Any = None, **options: Any) -> Any:
        """Return the sums of rewards of episodes; see `spaql.policies.evaluate`, for other environments too."""
        return evaluate(self, self.env, episodes, seed, **{"horizon": self._horizon} | options)

    def simplify(
        self,
        target: float | None = None,
        leaves: int | None = None,
        *,
        seconds: float = 60.0,
        episodes: int = 100,
        proposals: int = 200,
        fresh: int = 1000,
        seed: int | np.random.SeedSequence = 0,
        progress_bar: bool = True,
    ) -> Simplified:
        """Return the smallest tree found that keeps the return, and the best; see `spaql.policies.simplify`."""
        if self.h is not None:
            raise ValueError("a policy of one time step has no return of its own: simplify one that is for all of them")
        return simplify(
            self,
            self.env,
            target,
            leaves,
            seconds=seconds,
            episodes=episodes,
            proposals=proposals,
            fresh=fresh,
            seed=seed,
            horizon=self._horizon,
            progress_bar=progress_bar,
        )

    def _imitated(self, leaves: int, rounds: int, episodes: int, seed: int) -> Tree:
        if self.h is not None:
            raise ValueError(
                "a policy of one time step plays no episodes of its own: imitate one that is for all steps"
            )
        return imitate(self, self.env, leaves, rounds=rounds, episodes=episodes, seed=seed, horizon=self._horizon)


class ValuePolicy(Greedy):
    """The greedy policy of action values that are no partition: of tiles, or of a network.

    Parameters
    ----------
    values
        Returns Q for points of the standard space, (n, d): an array of (n, len(actions)).  Preferences will do.
    actions
        The actions to choose from, in the standard space, one row each; numbers from 0 for discrete ones.
    space
        The map to the standard space.
    env, horizon
        The system, and the greatest length of its episodes.

    Examples
    --------
    >>> tree = TileQ("Pendulum-v1", seed=0).learn(samples=100_000).policy.tree(leaves=64)
    >>> print(tree.report)  # what tree and policy earn, and how often they agree
    """

    def __init__(
        self, values: Callable[[np.ndarray], np.ndarray], actions: np.ndarray, space: Space, env: gym.Env, horizon: int
    ):
        self.env = env
        self.variables = variables_of(env, space)
        self._space, self._horizon = space, horizon
        self._values, self._actions = values, np.atleast_2d(np.asarray(actions, float))

    def __repr__(self) -> str:
        return f"ValuePolicy({len(self._actions)} actions, {', '.join(filter(None, self.variables.asked))})"

    def values(self, observations: ArrayLike) -> np.ndarray:
        """Return Q of each action, a row for each observation."""
        points = np.array(observations, float).reshape(-1, len(self._space.centre))
        standardise_all(self._space, points)
        return np.asarray(self._values(points))

    def stakes(self, observations: np.ndarray) -> np.ndarray:
        """Return how much the choice of an action matters in each state: Q of the best minus Q of the worst."""
        return np.ptp(self.values(observations), axis=1)

    def _choose(self, points: np.ndarray) -> np.ndarray:
        return self._actions[self.values(points).argmax(axis=1)]

    def tree(self, leaves: int = 64, *, rounds: int = 5, episodes: int = 100, seed: int = 0) -> Tree:
        """Return a tree of at most so many leaves that imitates the policy; see `spaql.policies.imitate`."""
        return self._imitated(leaves, rounds, episodes, seed)


class Policy(Greedy):
    """The greedy policy of a partition, for the time step `h` if it depends on time; `agent.policy` makes it.

    It stays what it is when the agent goes on learning.  It takes every observation as mapped to the standard space;
    the released program does not map the first of an episode (see `Rules`), so with that rule the agent itself may act
    otherwise there.
    """

    def __init__(self, partition: Any, space: Space, env: gym.Env, horizon: int, h: int | None = None):
        self.env = env
        self.h = h
        self.variables: Variables = variables_of(env, space)
        self._space = space
        self._root = h or 0
        self._horizon = horizon
        self._take(partition)

    def _take(self, partition: Any) -> None:
        """Keep a partition, a copy without spare room: its cells, and of each the best ball."""
        balls, self._low, self._high, self._cells = partition[:4]
        self._q, self._visits = balls["q"], balls["visits"]
        self._best, self._depth = self._cells["best"], self._cells["depth"]

    def __repr__(self) -> str:
        return f"Policy({len(self.cells().best)} cells of {', '.join(filter(None, self.variables.asked))})"

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
                best.append(self._best[cell])
                continue
            for half in reversed(range(2**dimensions)):
                upper = (half >> np.arange(dimensions)) & 1
                stack.append((children + half, corner + upper * width / 2, width / 2))
        return Cells(np.array(low), np.array(high), np.array(best))

    def find(self, observations: ArrayLike) -> "pd.DataFrame":
        """Return one row per observation: its cell (a number that says no more), its depth, and the best ball's data.

        The columns are `cell`, `depth`, `action` (the middle one, in its unit), `q`, `visits`.  Of several actuators
        `action` is the first one's, and each has a column with its name, `centre_NAME`.
        """
        pd = load("pandas", "paper")

        points = np.ascontiguousarray(observations, float).reshape(-1, len(self._space.centre))
        cells = np.empty(len(points), np.int64)
        self._find(points, cells)
        best = self._best[cells]
        centre = self._actions(self._intervals(deterministic=True))
        frame = {"cell": cells, "depth": self._depth[cells]}
        middle = {name: np.array(values)[best] for name, values in centre.items() if name.startswith("centre")}
        frame["action"] = next(iter(middle.values()))
        several = middle if len(middle) > 1 else {}
        return pd.DataFrame(frame | {"q": self._q[best], "visits": self._visits[best]} | several)

    def _find(self, points: np.ndarray, cells: np.ndarray) -> None:
        """Write the leaf cell of each observation."""
        find_cells(self._cells, tuple(range(points.shape[1])), self._root, self._space, points, cells)

    def table(self, merge: bool = True, deterministic: bool = False) -> "pd.DataFrame":
        """Return one row per state cell, in the system's own units.

        Parameters
        ----------
        merge
            Join neighbours that do the same and together are a box.
        deterministic
            Take only the middle action of a ball, as `predict(deterministic=True)` does, which joins more.

        Returns
        -------
        frame
            For each variable v that is observed (or an angle in the place of its cosine and sine) the bounds `v_low`,
            which belongs to the cell, and `v_high`, which does not, unless it is the end of the space.  For continuous
            actions `low`, `high` and `centre` of the interval the policy draws from; for discrete ones `actions`, the
            numbers it draws from, and `centre`, all in words in `label`.  `q` and `visits` are the best ball's Q(B)
            and n(B), which includes the visits it inherited; of joined cells q is the mean by volume in the standard
            space, visits the sum over their balls, and `cells` their number.  Nothing supports a row of 0 visits.
            `frame.attrs["units"]` holds the units.
        """
        pd = load("pandas", "paper")

        cells = self.cells()
        intervals = self._intervals(deterministic)[cells.best]
        groups = join(cells, intervals) if merge else [[i] for i in range(len(cells.best))]
        volume = np.prod(cells.high - cells.low, axis=1)
        first = np.array([group[0] for group in groups])
        low = self._unmap(np.array([cells.low[group].min(axis=0) for group in groups]))
        high = self._unmap(np.array([cells.high[group].max(axis=0) for group in groups]))
        frame: dict[str, Any] = {}
        names = {i: name for i, name in enumerate(self.variables.asked) if name}
        for i, name in names.items():
            frame[f"{name}_low"] = low[:, i]
            frame[f"{name}_high"] = high[:, i]
        frame |= self._actions(intervals[first])
        q = self._q[cells.best]
        frame["q"] = [np.average(q[group], weights=volume[group]) for group in groups]
        frame["visits"] = [int(self._visits[np.unique(cells.best[group])].sum()) for group in groups]
        frame["cells"] = [len(group) for group in groups]
        result = pd.DataFrame(frame)
        units = {f"{name}_{end}": self.variables.asked_units[i] for i, name in names.items() for end in ("low", "high")}
        actions = zip(self.variables.actions, self.variables.action_units, strict=True)
        for name, unit in actions:
            ending = "" if len(self.variables.actions) == 1 else f"_{name}"
            units |= dict.fromkeys((f"{end}{ending}" for end in ("low", "high", "centre")), unit)
        result.attrs["units"] = units
        return result

    def _choose(self, points: np.ndarray) -> np.ndarray:
        cells = np.empty(len(points), np.int64)
        self._find(points, cells)
        return self._intervals(deterministic=True)[self._best[cells], 0]

    def tree(
        self,
        leaves: int | None = None,
        *,
        deterministic: bool = True,
        rounds: int = 5,
        episodes: int = 100,
        seed: int = 0,
    ) -> Tree:
        """Return the exact decision tree, whose action is the policy's on every observation, or a small imitation.

        Every threshold is the least float whose image in the standard space lies in the upper half of a cell, so the
        tree and the partition agree to the last bit.  Each cell asks its variables in the order that needs the fewest
        leaves, and what both answers agree on is not asked.

        Parameters
        ----------
        leaves
            If given, a tree of at most so many leaves that imitates the policy; see `spaql.policies.imitate`.
        deterministic
            Leaves hold one action, the middle one of the best ball; False keeps all the actions the policy draws from.
        rounds, episodes, seed
            For an imitation.
        """
        if leaves is not None:
            return self._imitated(leaves, rounds, episodes, seed)
        intervals = self._intervals(deterministic)[self._best]
        branches, labels = self._make_tree([interval.tobytes() for interval in intervals])
        actions = np.zeros((len(branches.feature), *intervals.shape[1:]))
        at = branches.feature == LEAF
        actions[at] = [np.frombuffer(leaf).reshape(intervals.shape[1:]) for leaf in labels]
        tree = Tree(*branches, actions[:, 0], actions[:, 1], self.variables)
        cells = self.cells()
        points = self._unmap((cells.low + cells.high) / 2)
        for cosine, sine in pairs_of(self._space):
            angle = points[:, cosine].copy()
            points[:, cosine], points[:, sine] = np.cos(angle), np.sin(angle)
        leaf, ball = np.unique((tree.apply(points), cells.best), axis=1)  # several cells may share a ball
        visits = np.bincount(leaf, self._visits[ball], len(tree.feature))
        return tree._replace(visits=visits.astype(np.int64))

    def cell_tree(self) -> tuple[Branches, dict[str, np.ndarray]]:
        """Return a tree that leads to the cells themselves, none joined, and arrays with a row for each leaf.

        They are `low`, `high` and `centre` of the best ball's actions, in the standard space, `q` and `visits`.
        """
        branches, cells = self._make_tree(list(range(len(self._best))))
        best = self._best[cells]
        centre = self._intervals(deterministic=True)[best, 0]
        rows = {"low": self._low[best], "high": self._high[best], "centre": centre}
        return branches, rows | {"q": self._q[best], "visits": self._visits[best]}

    # -----------------------------------------------------------------------------------------------------------------

    def _make_tree(self, labels: Sequence[Hashable]) -> tuple[Branches, list]:
        """Return the tree that leads every state to the label of its leaf cell, and the labels of its leaves."""
        return make_tree(self._space, self._cells["children"], self._root, labels)

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
                columns[name if len(half) == 1 else f"{name}_{names.actions[i]}"] = centre[i] + half[i] * bound[:, i]
        return columns

    def _unmap(self, points: np.ndarray) -> np.ndarray:
        """Return the observed variables, with angles, for points of the standard space."""
        centre, half, slope = map(np.array, self._space[:3])
        with np.errstate(divide="ignore", invalid="ignore"):  # φ_m reaches ±1 at infinity; arctanh is its inverse
            return np.where(np.isfinite(half), centre + half * points, np.arctanh(points) / slope)


class TreePolicy(Policy):
    """The greedy policy of SPAQL-R: its cells are the leaves of a binary tree, and each has one action."""

    def _take(self, partition: CellTree) -> None:
        every = np.arange(len(partition.child))
        self._tree, self._best, self._depth = partition, every, np.zeros(len(every), int)
        for cell in np.flatnonzero(partition.child != NONE):  # a cell comes before its halves
            self._depth[partition.child[cell] : partition.child[cell] + 2] = self._depth[cell] + 1
        self._low = partition.actions[partition.best]
        self._high = self._low + 1.0 if self._space.actions else self._low
        self._q, self._visits = partition.q[every, partition.best], partition.visits

    def stakes(self, observations: np.ndarray) -> np.ndarray:
        """Return how much the choice of an action matters in each state: Q of the best minus Q of the worst."""
        cells = np.empty(len(observations), np.int64)
        self._find(np.ascontiguousarray(observations, float), cells)
        return np.ptp(self._tree.q[cells], axis=1)

    def cells(self) -> "Cells":
        """Return the leaf cells of the state space, each with the place of its action, not joined."""
        child, axis, border, low, high, best = *self._tree[:3], [], [], []
        whole = np.ones(len(self._space.centre))
        stack = [(0, -whole, whole)]
        while stack:
            cell, least, most = stack.pop()
            if child[cell] == NONE:
                low.append(least)
                high.append(most)
                best.append(cell)
                continue
            end, begin = most.copy(), least.copy()
            end[axis[cell]] = begin[axis[cell]] = border[cell]
            stack += [(child[cell] + 1, begin, most), (child[cell], least, end)]
        return Cells(np.array(low), np.array(high), np.array(best))

    def _find(self, points: np.ndarray, cells: np.ndarray) -> None:
        find_leaves_of_cells(self._tree, self._space, points, cells)

    def _make_tree(self, labels: Sequence[Hashable]) -> tuple[Branches, list]:
        return make_bisected(self._space, self._tree, labels)


class Policies:
    """The greedy policies of an AQL agent, one for each time step: `policies[h]` is that of step h, from 0."""

    def __init__(self, partition: Partition, space: Space, env: gym.Env, horizon: int):
        self._parts = partition, space, env, horizon

    def __len__(self) -> int:
        return self._parts[-1]

    def __getitem__(self, h: int) -> Policy:
        if not isinstance(h, int | np.integer) or not 0 <= h < len(self):
            raise IndexError(f"AQL has a policy for each time step: give one of 0 to {len(self) - 1}, not {h!r}")
        return Policy(*self._parts, int(h))

    def __repr__(self) -> str:
        return f"Policies({len(self)} time steps)"


@entry
def find_cells(cells, axes, root, space, points, found):
    """Write the leaf cell of each observation."""
    x = np.empty(len(axes))
    for i in range(len(points)):
        standardise(space, points[i], x)
        found[i] = locate(cells, axes, root, x)


@entry
def find_leaves_of_cells(tree, space, points, found):
    """Write the leaf of a tree of cells for each observation."""
    x = np.empty((1, points.shape[1]))
    for i in range(len(points)):
        standardise(space, points[i], x[0])
        found[i] = leaf_below(tree.child, tree.axis, tree.border, 0, x, 0)


class Cells(NamedTuple):
    """Leaf cells: corners in the standard space, one row per cell, and the best ball of each."""

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


@entry
def standardise_all(space, points):
    """Map observations to the standard space, in place."""
    for i in range(len(points)):
        standardise(space, points[i], points[i])
