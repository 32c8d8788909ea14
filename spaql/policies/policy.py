"""Policies a person can read: the greedy policy of an agent as a table of state cells and as a decision tree."""

import functools
import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from spaql.checks import load
from spaql.partition import NONE
from spaql.policies.exact_tree import Branches, boxes, make_tree
from spaql.policies.export import signed
from spaql.policies.imitate import imitate
from spaql.policies.play import evaluate
from spaql.policies.simplify import simplify
from spaql.policies.tree import LEAF, Tree, leaves_of, turned, variables_of
from spaql.spaces import Space, rows_of, standardised


class Greedy:
    """What all policies share: predict, evaluate and simplify."""

    h: int | None = None  # the time step, if the policy depends on it

    def __init__(self, space: Space, env: gym.Env, horizon: int):
        self.env, self.horizon = env, horizon
        self.variables = variables_of(env, space)
        self._space = space

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.variables.system}: {', '.join(filter(None, self.variables.asked))})"

    def predict(
        self, observation: ArrayLike, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """Return the action for an observation or several, the middle one of a ball; Stable-Baselines3's protocol."""
        rows, single = rows_of(observation, self.env.observation_space.shape)
        actions = self.variables.given(self._choose(rows))
        return (actions[0] if single else actions), None

    _choose: Callable[[np.ndarray], np.ndarray]  # the actions for observations, in the standard space

    def evaluate(self, episodes: int = 1000, seed: Any = None, **options: Any) -> Any:
        """Return the returns of episodes; see `spaql.policies.evaluate`, for other environments too."""
        return evaluate(self, self.env, episodes, seed, **{"horizon": self.horizon} | options)

    simplify = simplify


class ValuePolicy(Greedy):
    """The greedy policy of TileQ, whose tiles are no partition.

    Examples
    --------
    >>> tree = TileQ("Pendulum-v1", seed=0).learn(samples=100_000).policy.tree(leaves=64)
    >>> print(tree.report)  # what tree and policy earn, and how often they agree
    """

    def __init__(self, tiles: Any, space: Space, env: gym.Env, horizon: int):
        super().__init__(space, env, horizon)
        self._tiles = tiles

    def values(self, observations: ArrayLike) -> np.ndarray:
        """Return Q of each action, a row for each observation."""
        rows, _ = rows_of(observations, self.env.observation_space.shape)
        return self._tiles.values(standardised(self._space, rows))

    def _choose(self, points: np.ndarray) -> np.ndarray:
        return self._tiles.actions[self.values(points).argmax(axis=1)]

    tree = imitate


class Policy(Greedy):
    """The greedy policy of a partition, for the time step `h` if it depends on time; `agent.policy` makes it.

    It stays what it is when the agent goes on learning.  It takes every observation as mapped to the standard space;
    the released program does not map the first of an episode (see `Rules`), so with that rule the agent itself may act
    otherwise there.
    """

    def __init__(self, partition: Any, space: Space, env: gym.Env, horizon: int, h: int | None = None):
        super().__init__(space, env, horizon)
        self.h, self._root = h, h or 0
        self._take(partition)
        middle = (self._low + self._high) / 2
        self._centre = np.floor(middle) if space.actions else middle

    def _take(self, partition: Any) -> None:
        """Keep the cells of a partition, and its balls with their actions."""
        balls, self._low, self._high, self._cells = partition[:4]
        self._q, self._visits, self._best = balls["q"], balls["visits"], self._cells["best"]
        self._centres: dict[int, tuple[float, ...]] = {}  # of cells, from the root on

    def _find(self, observations: ArrayLike) -> np.ndarray:
        """Return the leaf cell of each observation."""
        branches, cells = self._single
        rows, _ = rows_of(observations, self.env.observation_space.shape)
        rank = np.cumsum(branches.feature == LEAF) - 1
        return np.array(cells)[rank[leaves_of(*branches[:4], turned(self._space, rows))]]

    def _choose(self, points: np.ndarray) -> np.ndarray:
        return self._centre[self._best[self._find(points)]]

    def table(self) -> Any:
        """Return one row per state cell, in the system's own units; cells that do the same are joined.

        Returns
        -------
        frame
            For each variable v that is observed (or an angle in the place of its cosine and sine) the bounds `v_low`,
            which belongs to the cell, and `v_high`, which does not, unless it is the end of the space.  For continuous
            actions `low`, `high` and `centre` of the interval the policy draws from; for discrete ones `actions`, the
            numbers it draws from, and `centre`, all in words in `label`.  `q` and `visits` are the best ball's Q(B)
            and n(B), which includes the visits it inherited; of joined cells q is the mean, visits the sum over their
            balls, and `cells` their number.  A row with 0 visits was never trained.
        """
        pd = load("pandas")
        intervals = np.concatenate((self._low, self._high), axis=1)[self._best]
        branches, best, at, visits = self._leaves([interval.tobytes() for interval in intervals])
        low, high = self._unmap(boxes(branches, len(self._space.centre)))
        leaves, first, counts = np.unique(at, return_index=True, return_counts=True)
        frame: dict[str, Any] = {}
        for i, name in enumerate(self.variables.asked):
            if name:
                frame |= {f"{name}_low": low[:, i], f"{name}_high": high[:, i]}
        frame |= self._actions(best[first])
        q = np.bincount(at, self._q[best])[leaves] / counts
        return pd.DataFrame(frame | {"q": q, "visits": visits[leaves], "cells": counts})

    def tree(self, leaves: int | None = None, **options: Any) -> Tree:
        """Return the exact decision tree, whose action is the policy's on every observation, or a small imitation.

        Every threshold is the least float whose image in the standard space lies in the upper half of a cell, so the
        tree and the partition agree to the last bit.  Each cell asks its variables in the order that needs the fewest
        leaves, and what both answers agree on is not asked.  Leaves hold the middle action of the best ball.

        Parameters
        ----------
        leaves
            If given, return a tree of at most this many leaves that imitates the policy.
        options
            Of the imitation, as `rounds`, `episodes` and `seed`; see `spaql.policies.imitate`.
        """
        if leaves is not None or options:
            return imitate(self, 64 if leaves is None else leaves, **options)
        branches, best, at, visits = self._leaves([action.tobytes() for action in self._centre[self._best]])
        actions = np.zeros((len(branches.feature), self._centre.shape[1]))
        actions[at] = self._centre[best]
        return Tree(*branches[:4], actions, self.variables, visits)

    def cell_tree(self) -> tuple[Branches, dict[str, np.ndarray]]:
        """Return a tree that leads to the cells, none joined, and each leaf's middle action, Q and visits."""
        branches, cells = self._single
        best = self._best[cells]
        return branches, {"centre": self._centre[best], "q": self._q[best], "visits": self._visits[best]}

    # -----------------------------------------------------------------------------------------------------------------

    def _leaves(self, labels: Sequence[Hashable]) -> tuple[Branches, np.ndarray, np.ndarray, np.ndarray]:
        """Return the tree that leads to the labels of cells, the ball and the leaf of each, and the visits of nodes."""
        branches, _ = make_tree(self._space, self._split, self._root, labels)
        single, cells = self._single
        centres = np.mean(boxes(single, len(self._space.centre)), axis=0)
        at = leaves_of(branches.feature, branches.border, branches.left, branches.right, centres)
        best = self._best[cells]
        leaf, ball = np.unique((at, best), axis=1)  # several cells may share a ball
        visits = np.bincount(leaf, self._visits[ball], len(branches.feature)).astype(np.int64)
        return branches, best, at, visits

    @functools.cached_property
    def _single(self) -> tuple[Branches, list]:
        """The tree that leads every state to its leaf cell, and the cells of its leaves."""
        return make_tree(self._space, self._split, self._root, range(len(self._best)))

    def _split(self, cell: int) -> tuple[dict[int, float], int] | None:
        """Return the borders that cut a cell, by axis, and its first child; None of a leaf."""
        child = int(self._cells["children"][cell])
        if child == NONE:
            return None
        centre = self._centres.setdefault(cell, (0.0,) * len(self._space.centre))
        quarter = 0.5 ** (int(self._cells["depth"][cell]) + 1)
        for half, sides in enumerate(itertools.product((-quarter, quarter), repeat=len(centre))):
            self._centres[child + half] = tuple(map(sum, zip(centre, sides[::-1], strict=True)))
        return dict(enumerate(centre)), child

    def _actions(self, balls: np.ndarray) -> dict[str, Any]:
        """The table's columns that say what balls do."""
        low, high, names, space = self._low[balls], self._high[balls], self.variables, self._space
        if names.box is None:
            runs = [range(int(a), int(b)) for a, b in zip(low[:, 0], high[:, 0], strict=True)]
            return {
                "actions": [tuple(i + names.start for i in run) for run in runs],
                "label": [" or ".join(signed(names.choices[i], names.action_unit) for i in run) for run in runs],
                "centre": [names.choices[run[len(run) // 2]] for run in runs],
            }
        columns = {}
        for end, bound in {"low": low, "high": high, "centre": self._centre[balls]}.items():
            for name, values in zip(names.actions, (space.action_centre + space.action_half * bound).T, strict=True):
                columns[end if len(names.actions) == 1 else f"{end}_{name}"] = values
        return columns

    def _unmap(self, points: Any) -> np.ndarray:
        """Return the observed variables, with angles, for points of the standard space."""
        centre, half, slope = map(np.array, self._space[:3])
        with np.errstate(divide="ignore", invalid="ignore"):  # φ_m reaches ±1 at infinity; arctanh is its inverse
            return np.where(np.isfinite(half), centre + half * points, np.arctanh(points) / slope)


class TreePolicy(Policy):
    """The greedy policy of SPAQL-R: its cells are the leaves of a binary tree, and each has one action."""

    def _take(self, partition: Any) -> None:
        self._tree = partition = partition.trimmed()
        self._best = np.arange(len(partition.child))
        self._low = partition.actions[partition.best]
        self._high = self._low + 1.0 if self._space.actions else self._low
        self._q, self._visits = partition.q[self._best, partition.best], partition.visits

    def values(self, observations: ArrayLike) -> np.ndarray:
        """Return Q of each action, a row for each observation."""
        return self._tree.q[self._find(observations)]

    def _split(self, cell: int) -> tuple[dict[int, float], int] | None:
        child = int(self._tree.child[cell])
        return None if child == NONE else ({int(self._tree.axis[cell]): float(self._tree.border[cell])}, child)


class Policies:
    """The greedy policies of an AQL agent, one for each time step: `policies[h]` is that of step h, from 0."""

    def __init__(self, partition: Any, space: Space, env: gym.Env, horizon: int):
        self._parts = partition, space, env, horizon

    def __len__(self) -> int:
        return self._parts[-1]

    def __getitem__(self, h: int) -> Policy:
        return Policy(*self._parts, range(len(self))[h])

    def __repr__(self) -> str:
        return f"Policies({len(self)} time steps)"
