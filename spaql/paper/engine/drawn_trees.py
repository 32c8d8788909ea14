"""Decision trees as drawings."""

import numpy as np
from matplotlib.figure import Figure

from spaql.paper.engine.style import FONT, WIDTH
from spaql.policies.export import describe_action, describe_question
from spaql.policies.tree import LEAF, Tree
from spaql.systems import system_called


def draw_tree(tree: Tree, decimals: int = 2) -> Figure:
    """Return the tree as a drawing: below a question is its answer yes on the left, no on the right.

    A tree with more leaves than fit beside each other grows to the right instead, its answer yes above and no below.
    """
    place, system = place_nodes(tree), system_called(tree.variables.system)
    known = (*system.observed, *system.state) if system else ()
    symbols = {variable.name: variable.formula for variable in known}
    sideways = 1.2 * tree.leaves > WIDTH
    if sideways:
        place, size = place[:, ::-1], (max(WIDTH, 1.55 * (tree.depth + 1)), 0.4 + 0.42 * tree.leaves)
    else:
        size = (WIDTH, 0.4 + 0.7 * (tree.depth + 1))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    box = {"boxstyle": "round,pad=0.35", "edgecolor": "black", "linewidth": 1.0}
    for node, (across, down) in enumerate(place):
        leaf = tree.feature[node] == LEAF
        if leaf:
            text = describe_action(tree, node, decimals)
        else:
            name, _, rest = describe_question(tree, node, "<", decimals).partition(" ")
            text = f"{symbols.get(name) or name} {rest}?"
            for child, answer in ((tree.left[node], "yes"), (tree.right[node], "no")):
                to = place[child]
                axes.plot([across, to[0]], [-down, -to[1]], color="0.5", linewidth=1.2, zorder=1)
                # Between two boxes, of which a question's is the wider one.
                along = 0.57 if sideways and tree.feature[child] == LEAF else 0.5
                x, y = across + along * (to[0] - across), down + along * (to[1] - down)
                axes.text(x, -y, answer, fontsize=FONT, ha="center", va="center", color="0.25", zorder=2,
                          bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"})  # fmt: skip
        box["facecolor"] = "0.88" if leaf else "white"
        axes.text(across, -down, text.replace("-", "−"), fontsize=FONT, ha="center", va="center", bbox=box, zorder=3)
    ends = (tree.depth, tree.leaves - 1) if sideways else (max(tree.leaves - 1, 0), tree.depth)
    axes.set_xlim(-0.5, max(ends[0] + 0.5, 0.5))
    axes.set_ylim(-ends[1] - 0.5, 0.5)
    return figure


def place_nodes(tree: Tree) -> np.ndarray:
    """Return the place of each node: leaves side by side, a question in the middle above its answers."""
    place = np.zeros((len(tree.feature), 2))
    leaves = 0

    def put(node: int, depth: int) -> None:
        nonlocal leaves
        place[node, 1] = depth
        if tree.feature[node] == LEAF:
            place[node, 0] = leaves
            leaves += 1
            return
        put(tree.left[node], depth + 1)
        put(tree.right[node], depth + 1)
        place[node, 0] = (place[tree.left[node], 0] + place[tree.right[node], 0]) / 2

    put(0, 0)
    return place
