"""Cells of states in flat arrays: a binary tree whose leaves, the *cells*, hold an advantage of each action.

A cell is a box of the standard space.  The best action is the same in all of it: the greedy policy is a decision tree.
"""

from typing import NamedTuple

import numpy as np

from spaql.compiling import entry, inlined

NONE = -1  # no node
NARROWEST = 2.0**-20  # a cell must be wider than this share of all states seen for it to be cut


class Bisection(NamedTuple):
    """A tree of cells, in which node 0 is the root and both halves of a cell stand side by side.

    The arrays have spare room; `nodes` says how many rows are in use.
    """

    child: np.ndarray  # the lower half of a cell, which the upper one follows; NONE for a leaf
    axis: np.ndarray  # across which a cell was cut
    border: np.ndarray  # where: a state on it belongs to the upper half
    depth: np.ndarray  # cuts between the root and a cell
    q: np.ndarray  # A(c, a), one row per node
    best: np.ndarray  # argmax A(c, a), the first of equals
    visits: np.ndarray  # by action
    nodes: np.ndarray  # one number
    seen: np.ndarray  # corners of the box of all states seen so far
    actions: np.ndarray  # the actions to choose from, in the standard space, one row per action

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        return {f"{name}_{field}": getattr(self, field) for field in (*ROWS, "seen")}

    def restored(self, arrays: dict[str, np.ndarray], name: str) -> "Bisection":
        """Return the tree of a file, checked: compiled code follows its indices without looking."""
        from spaql.files import MOST_VISITS, check_array

        nodes = len(arrays[f"{name}_child"])
        found = {}
        for field in ROWS:
            expected = getattr(self, field)
            found[field] = check_array(arrays, f"{name}_{field}", expected.dtype, nodes)
            if found[field].shape[1:] != expected.shape[1:]:
                raise ValueError(f"its {name} partition belongs to another environment")
        seen = check_array(arrays, f"{name}_seen", self.seen.dtype, len(self.seen))
        if seen.shape != self.seen.shape:
            raise ValueError(f"its {name} partition belongs to another environment")
        tree = Bisection(**found, nodes=np.array([nodes]), seen=seen, actions=self.actions)
        cells = np.flatnonzero(tree.child != NONE)
        children = tree.child[cells]
        # Each cut has added two nodes, after those that were there.
        whole = np.array_equal(np.sort(children), np.arange(1, nodes, 2)) and nodes % 2 == 1
        axes = np.all((tree.axis >= 0) & (tree.axis < seen.shape[1]))
        whole = whole and bool(np.all(children > cells) and axes and tree.depth[0] == 0)
        for half in (children, children + 1) if whole else ():
            whole = whole and np.array_equal(tree.depth[half], tree.depth[cells] + 1)
        if not whole:
            raise ValueError(f"its {name} partition does not hold together")
        sound = np.isfinite(tree.q).all() and np.all(np.abs(tree.border) <= 1.0)
        sound = sound and np.all((tree.visits >= 0) & (tree.visits <= MOST_VISITS))
        none = np.array_equal(seen, self.seen) and nodes == 1
        sound = sound and bool(none or np.all((seen[0] >= -1.0) & (seen[0] <= seen[1]) & (seen[1] <= 1.0)))
        if not sound:
            raise ValueError(f"its {name} partition has estimates, visits or boxes that no learning gives")
        if not np.array_equal(tree.q.argmax(axis=1), tree.best):  # the first of equals
            raise ValueError(f"its {name} partition does not know its best actions")
        return tree


ROWS = Bisection._fields[:-3]  # the arrays that have a row for each node


def first_cell(reach: np.ndarray, actions: np.ndarray, q: float) -> Bisection:
    """Return a tree of one cell with the estimate `q` for each action; states up to `reach` count as seen."""
    count = len(actions)
    return Bisection(
        child=np.full(1, NONE, np.int32),
        axis=np.zeros(1, np.int32),
        border=np.zeros(1),
        depth=np.zeros(1, np.int32),
        q=np.full((1, count), q),
        best=np.zeros(1, np.int32),
        visits=np.zeros((1, count), np.int64),
        nodes=np.ones(1, np.int64),
        seen=np.stack((-reach, reach)),
        actions=actions,
    )


def with_nodes(tree: Bisection, rows: int) -> Bisection:
    """Return a copy with room for so many nodes, or without the spare room beyond them."""
    used = min(rows, int(tree.nodes[0]))
    copied = {name: np.zeros((rows, *getattr(tree, name).shape[1:]), getattr(tree, name).dtype) for name in ROWS}
    for name, array in copied.items():
        array[:used] = getattr(tree, name)[:used]
    return Bisection(**copied, nodes=tree.nodes.copy(), seen=tree.seen.copy(), actions=tree.actions)


def copy(tree: Bisection) -> Bisection:
    """Return a copy that shares nothing with the original but the actions, and has no spare room."""
    return with_nodes(tree, int(tree.nodes[0]))


def leaves_of(tree: Bisection) -> int:
    """Return the number of cells."""
    return (int(tree.nodes[0]) + 1) // 2


# These take the arrays and the number of a row: compiled code counts references to whatever it takes out of a tuple or
# an array.


@inlined
def leaf_below(child, axis, border, node, states, at):
    """The leaf that holds a state, looked for below a node that holds it."""
    below = child[node]
    while below > NONE:
        node = below + 1 if states[at, axis[node]] >= border[node] else below
        below = child[node]
    return node


@inlined
def first_best(q, cell):
    """The best action of a cell, the first of equals."""
    best = 0
    for a in range(1, q.shape[1]):
        if q[cell, a] > q[cell, best]:
            best = a
    return best


@entry
def box_around(tree, states, at):
    """Corners of the leaf that holds a state, as far as states were seen."""
    box = tree.seen.copy()
    node = 0
    while tree.child[node] > NONE:
        i = tree.axis[node]
        upper = states[at, i] >= tree.border[node]
        box[0 if upper else 1, i] = tree.border[node]
        node = tree.child[node] + upper
    return box


@entry
def cut(tree, cell, across, border):
    """Halve a leaf; both halves inherit its estimates and its visits.  There must be room for them."""
    first = tree.nodes[0]
    tree.nodes[0] += 2
    tree.child[cell], tree.axis[cell], tree.border[cell] = first, across, border
    for half in range(first, first + 2):
        tree.child[half], tree.depth[half], tree.best[half] = NONE, tree.depth[cell] + 1, tree.best[cell]
        for a in range(tree.q.shape[1]):
            tree.q[half, a], tree.visits[half, a] = tree.q[cell, a], tree.visits[cell, a]


@inlined
def widest(box, seen):
    """Across which axis a box is widest, as a share of all states seen; no axis if it is a point."""
    across, most = NONE, NARROWEST
    for i in range(box.shape[1]):
        width = box[1, i] - box[0, i]
        if width > most * (seen[1, i] - seen[0, i]):
            across, most = i, width / (seen[1, i] - seen[0, i])
    return across
