"""SPAQL-R: SPAQL, repaired.  One partition of the states, refined where the visits are, and the right target.

Like SPAQL it learns on one partition that it refines itself; its policy is that partition, a decision tree.  New are:

- values are discounted, and a terminal state is worth nothing: so an action's worth depends on what follows it;
- there is one agent, never reset and never selected by its rollouts;
- every step is learned from many times, and a target follows its episode for several steps (see `spaql.replay`);
- the learning rate is constant, so that an estimate can follow its targets, which change as the policy does;
- the actions are a fixed set, by default the ends of their range, so that only states are divided;
- a cell is halved across one axis, not across all of them at once, and an angle is seen, not its cosine and sine.

A *cell* c is a box of the standard space, and has an estimate Q(c, a) for each action: that of all its states.
Learning moves it towards a target G,

    Q(c, a) ← Q(c, a) + α (G - Q(c, a)).

A cell that has had `visits` visits is halved across the axis along which it takes the largest share of the range of all
states seen so far; only its part within that range is measured, and halved.  Remembered steps that are learned from
again do not count as visits.  Both halves inherit its estimates, and count their visits anew.
"""

import math
from typing import Any, NamedTuple, Unpack

import gymnasium as gym
import numpy as np

from spaql import rules
from spaql.compiling import cached_jit, python_or_jit
from spaql.files import check_array
from spaql.partition import NONE, lengthened
from spaql.policies.exact_tree import Branches, boxes
from spaql.policies.policy import TreePolicy
from spaql.policies.tree import LEAF
from spaql.replay import ReplayAgent, Replaying

ROWS = ("child", "axis", "border", "q", "best", "visits")  # of a tree: the arrays that have a row for each node
NARROWEST = 2.0**-20  # a cell must be wider than this share of all states seen for it to be cut


class SPAQLR(ReplayAgent):
    """SPAQL, repaired: its policy is its partition of the states, a decision tree.

    Parameters
    ----------
    env, seed, env_seed, horizon, bounds
        As for `AQL`.
    slopes, discount, initial, alpha, epsilon, decay, replays, steps, actions, angles
        As for `TileQ`.
    visits
        The number of visits after which a cell is halved.

    Examples
    --------
    >>> agent = SPAQLR("Pendulum-v1", seed=0).learn(samples=40_000)
    >>> agent.policy.tree()
    """

    algorithm = rules.SPAQL_R
    _policy = TreePolicy

    def __init__(self, env: str | gym.Env, *, visits: int = 10, **shared: Unpack[Replaying]):
        super().__init__(env, {"visits": visits}, **shared)

    def _representation(self) -> "CellTree":
        given = self.parameters
        return one_cell(len(self._space.centre), self._choices(), given["initial"], given["alpha"], given["visits"])


# The representation: a binary tree in flat arrays, whose leaves are the cells.  Functions take the arrays and the
# number of a row: compiled code counts references to whatever it takes out of a tuple or an array.


class CellTree(NamedTuple):
    """A tree of cells, in which node 0 is the root; a state is found again from any node that holds it."""

    child: np.ndarray  # the lower half of a cell, which the upper one follows; NONE for a leaf
    axis: np.ndarray  # across which a cell was halved
    border: np.ndarray  # where: a state on it belongs to the upper half
    q: np.ndarray  # Q(c, a), one row per node
    best: np.ndarray  # argmax_a Q(c, a), the first of equals
    visits: np.ndarray  # since the cell was made
    nodes: np.ndarray  # one number: how many rows are in use
    seen: np.ndarray  # corners of the box of all states seen so far
    actions: np.ndarray  # to choose from, in the standard space, one row per action
    alpha: float  # α
    most: int  # visits of a cell until it is halved
    width: int = 1  # numbers by which a state is found again

    def place(self, states, codes, row):
        """Begin at the root."""
        codes[row, 0] = 0

    def greedy(self, states, codes, row):
        """Return the place of the best action, the first of equals, and its Q."""
        cell = cell_of(self.child, self.axis, self.border, states, codes, row)
        best = self.best[cell]
        return best, self.q[cell, best]

    def visit(self, states, codes, row):
        """Count a visit to a cell, and halve it when it has had enough."""
        cell = cell_of(self.child, self.axis, self.border, states, codes, row)
        self.visits[cell] += 1
        for i in range(states.shape[1]):
            z = states[row, i]
            self.seen[0, i], self.seen[1, i] = min(self.seen[0, i], z), max(self.seen[1, i], z)
        if self.visits[cell] >= self.most:
            halve(self, cell, states, row)

    def learn(self, states, codes, row, action, target):
        """Move Q(c, a) towards a target."""
        cell = cell_of(self.child, self.axis, self.border, states, codes, row)
        self.q[cell, action] += self.alpha * (target - self.q[cell, action])
        best = 0
        for a in range(1, self.q.shape[1]):
            if self.q[cell, a] > self.q[cell, best]:
                best = a
        self.best[cell] = best

    def arms(self):
        """Return the number of estimates: one for each cell and action."""
        return (self.nodes[0] + 1) // 2 * len(self.actions)

    # Python alone calls these.

    def estimates(self) -> np.ndarray:
        """Return the estimates of all nodes."""
        return self.q[: self.nodes[0]]

    def trimmed(self) -> "CellTree":
        """Return the tree without its spare room."""
        rows: dict[str, Any] = {name: getattr(self, name)[: self.nodes[0]] for name in ROWS}
        return self._replace(**rows)

    def with_room(self, steps: int) -> "CellTree":
        """Return a tree with room for what so many steps add: each may halve a cell."""
        held, wanted = len(self.child), int(self.nodes[0]) + 2 * steps
        if held >= wanted:
            return self
        rows: dict[str, Any] = {name: lengthened(getattr(self, name), wanted) for name in ROWS}
        return self._replace(**rows)

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        kept = self.trimmed()._asdict()
        return {f"{name}_{field}": kept[field] for field in (*ROWS, "seen", "nodes")}

    def restored(self, arrays: dict[str, np.ndarray], name: str) -> "CellTree":
        """Return the tree of a file, checked: compiled code follows its indices without looking."""
        nodes, (axes, actions) = len(arrays[f"{name}_child"]), (self.seen.shape[1], self.q.shape[1])
        bounds: dict[str, Any] = {"axis": (0, axes - 1), "best": (0, actions - 1), "visits": (0, math.inf)}
        found: dict[str, Any] = {}
        for field in ROWS:
            like = getattr(self, field)
            shape = nodes, *like.shape[1:]
            found[field] = check_array(arrays, f"{name}_{field}", like.dtype, shape, *bounds.get(field, ()))
        seen = check_array(arrays, f"{name}_seen", float, self.seen.shape, -math.inf, math.inf)
        halved = np.flatnonzero(found["child"] != NONE)
        lower = found["child"][halved]
        # The halves stand in pairs after what was halved, so that there are no cycles.
        if nodes % 2 == 0 or not np.array_equal(np.sort(lower), np.arange(1, nodes, 2)) or np.any(lower <= halved):
            raise ValueError(f"its {name} partition does not hold together")
        feature = np.where(found["child"] == NONE, LEAF, found["axis"])
        branches = Branches(feature, found["border"], found["child"], found["child"] + 1, found["border"])
        if not np.less(*boxes(branches, axes)).all():
            raise ValueError(f"its {name} partition has a cell that no state can be in")
        return self._replace(**found, seen=seen, nodes=np.array([nodes]))


def one_cell(dimensions: int, actions: np.ndarray, q: float, alpha: float, visits: int) -> CellTree:
    """Return a tree of one cell with the estimate `q` for each action."""
    nothing = np.stack((np.full(dimensions, np.inf), np.full(dimensions, -np.inf)))
    child, zeros = np.full(1, NONE, np.int32), np.zeros((2, 1), np.int32)
    estimates, counts = np.full((1, len(actions)), float(q)), (np.zeros(1, np.int64), np.ones(1, np.int64))
    return CellTree(child, zeros[0], np.zeros(1), estimates, zeros[1], *counts, nothing, actions, alpha, visits)


@python_or_jit
def cell_of(child, axis, border, states, codes, row):
    """The cell that holds a state, looked for where it was last."""
    cell = codes[row, 0]
    below = child[cell]
    while below > NONE:
        cell = below + 1 if states[row, axis[cell]] >= border[cell] else below
        below = child[cell]
    codes[row, 0] = cell
    return cell


@cached_jit
def box_around(tree, states, row):
    """Corners of the cell that holds a state, as far as states were seen."""
    box = tree.seen.copy()
    node = 0
    while tree.child[node] > NONE:
        i = tree.axis[node]
        upper = states[row, i] >= tree.border[node]
        box[0 if upper else 1, i] = tree.border[node]
        node = tree.child[node] + upper
    return box


@cached_jit
def halve(tree, cell, states, row):
    """Halve the cell that holds a state, across the axis along which it is widest, if it is more than a point."""
    box = box_around(tree, states, row)
    across, most = NONE, NARROWEST
    for i in range(box.shape[1]):
        width = box[1, i] - box[0, i]
        if width > most * (tree.seen[1, i] - tree.seen[0, i]):
            across, most = i, width / (tree.seen[1, i] - tree.seen[0, i])
    if across == NONE:
        return
    first = tree.nodes[0]
    for half in range(first, first + 2):
        tree.child[half], tree.best[half], tree.visits[half] = NONE, tree.best[cell], 0
        for a in range(tree.q.shape[1]):
            tree.q[half, a] = tree.q[cell, a]
    tree.nodes[0] = first + 2
    tree.axis[cell], tree.border[cell] = across, (box[0, across] + box[1, across]) / 2.0
    tree.child[cell] = first
