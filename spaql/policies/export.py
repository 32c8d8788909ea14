"""Decision trees as text, as sentences, and for Graphviz; `spaql.policies.programs` has them as programs."""

import math
from collections.abc import Iterator
from typing import Any

from spaql.policies.tree import LEAF, Tree


def in_words(tree: Tree, decimals: int = 2) -> str:
    """Return a small tree as sentences: for each action when it is taken."""
    conditions: dict[str, list[str]] = {}
    path: list[str] = []
    for place, node, depth in walk(check_tree(tree)):
        if place == "leaf":
            said = " and ".join(path[:depth])
            conditions.setdefault(describe_action(tree, node, decimals), []).append(said)
        elif place != "end":
            path[depth:] = [describe_question(tree, node, {"<": "<", ">=": "≥"}[place], decimals)]
    names = tree.variables.actions
    what = f"The {names[0]} is" if len(names) == 1 else "The action is"
    if tree.leaves == 1:
        return f"{what} always {next(iter(conditions))}."
    return " ".join(f"{what} {name} if {'; or if '.join(when)}." for name, when in conditions.items())


def check_tree(tree: Any) -> Tree:
    """Return a tree, or say what to give instead."""
    if not isinstance(tree, Tree):
        raise TypeError(f"expected a tree, not {tree!r}: give agent.policy.tree(), or the tree that simplify found")
    return tree


def mark(tree: Tree, node: int, comment: str) -> str:
    """Return a comment if no visit has reached a leaf."""
    return comment.format("no visit") if tree.unvisited(node) else ""


def walk(tree: Tree, node: int = 0, depth: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield (place, node, depth): places "<" before a node's left part, ">=" before its right, "end" after; "leaf"."""
    if tree.feature[node] == LEAF:
        yield "leaf", node, depth
        return
    yield "<", node, depth
    yield from walk(tree, tree.left[node], depth + 1)
    yield ">=", node, depth
    yield from walk(tree, tree.right[node], depth + 1)
    yield "end", node, depth


def fixed(number: float, decimals: int, reach: float = 1.0) -> str:
    """Return a number with so many decimals, more if its range is below a hundredth; no minus before zero."""
    decimals += math.ceil(-math.log10(reach)) if reach < 0.01 else 0
    text = f"{number:.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def signed(number: float, unit: str) -> str:
    """Return a discrete action: with its sign in its unit, if it has one."""
    return f"{number:+g} {unit}" if number and unit else f"{number:g} {unit}".strip()


def describe_action(tree: Tree, node: int, decimals: int = 2) -> str:
    """Return what a leaf does, in words with the unit."""
    names = tree.variables
    if names.box is None:
        return signed(names.choices[int(tree.action[node, 0])], names.action_unit)
    parts = []
    for i, (centre, half) in enumerate(zip(names.space.action_centre, names.space.action_half, strict=True)):
        number = fixed(centre + half * tree.action[node, i], decimals, half)
        name = names.actions[i] if len(names.actions) > 1 else ""
        parts.append(" ".join(filter(None, (name, number, names.action_units[i]))))
    return ", ".join(parts)


def describe_question(tree: Tree, node: int, sign: str, decimals: int = 2) -> str:
    """Return a node's question: variable, sign, threshold and unit."""
    names, feature = tree.variables, tree.feature[node]
    unit = f" {names.asked_units[feature]}" if names.asked_units[feature] else ""
    return f"{names.asked[feature]} {sign} {fixed(tree.threshold[node], decimals, names.space.half[feature])}{unit}"


def export_text(tree: Tree, decimals: int = 2) -> str:
    """Return the tree as text, in the form of scikit-learn's `export_text`."""
    lines, several = [], len(check_tree(tree).variables.actions) > 1  # which are named one by one
    for place, node, depth in walk(tree):
        if place == "leaf":
            said = describe_action(tree, node, decimals)
            said = said if several else f"{tree.variables.action}: {said}"
            lines.append("|   " * depth + f"|--- {said}{mark(tree, node, '  ({})')}")
        elif place != "end":
            lines.append("|   " * depth + f"|--- {describe_question(tree, node, place.ljust(2), decimals)}")
    return "\n".join(lines) + "\n"


def export_graphviz(tree: Tree, decimals: int = 2) -> str:
    """Return the tree in the language of Graphviz's `dot`: the left branch is where the question's answer is yes.

    Leaves that have seen no state are dashed.
    """
    lines = ["digraph Tree {", 'node [shape=box, fontname="helvetica"];', 'edge [fontname="helvetica"];']
    for node in range(len(check_tree(tree).feature)):
        if tree.feature[node] == LEAF:
            style = "rounded,dashed" if tree.unvisited(node) else "rounded"
            lines.append(f'{node} [label="{describe_action(tree, node, decimals)}", style="{style}"];')
            continue
        lines.append(f'{node} [label="{describe_question(tree, node, "<", decimals)}"];')
        for child, answer in ((tree.left[node], "yes"), (tree.right[node], "no")):
            lines.append(f'{node} -> {child} [label="{answer}"];')
    return "\n".join([*lines, "}"]) + "\n"
