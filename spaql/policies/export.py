"""Decision trees as text, as sentences, and for Graphviz, Python and C."""

import sys
from collections.abc import Iterator

from spaql.checks import check_name
from spaql.policies.tree import LEAF, Tree


def in_words(tree: Tree, decimals: int = 2) -> str:
    """Return a small tree as sentences, one for each action: when it is taken."""
    conditions: dict[str, list[str]] = {}
    path: list[str] = []
    for place, node, depth in walk(tree):
        if place == "leaf":
            said = " and ".join(path[:depth])
            conditions.setdefault(describe_action(tree, node, decimals), []).append(said)
        elif place != "end":
            path[depth:] = [describe_question(tree, node, {"<": "<", ">=": "≥"}[place], decimals)]
    action = tree.variables.action
    if tree.leaves == 1:
        return f"The {action} is always {next(iter(conditions))}."
    return " ".join(f"The {action} is {name} if {'; or if '.join(when)}." for name, when in conditions.items())


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


def fixed(number: float, decimals: int) -> str:
    """Return a number with so many decimals, without a minus before zero."""
    text = f"{number:.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def signed(number: float, unit: str) -> str:
    """Return a discrete action: with its sign in its unit, if it has one."""
    return f"{number:+g} {unit}" if number and unit else f"{number:g} {unit}".strip()


def describe_action(tree: Tree, node: int, decimals: int = 2) -> str:
    """Return what a leaf does, in words with the unit."""
    names = tree.variables
    unit = f" {names.action_unit}" if names.action_unit else ""
    if names.box is None:
        run = range(int(tree.low[node, 0]), int(tree.high[node, 0]))
        return " or ".join(signed(names.choices[i], names.action_unit) for i in run)
    parts = []
    for i, (centre, half) in enumerate(zip(names.space.action_centre, names.space.action_half, strict=True)):
        low, high = (fixed(centre + half * bound[node, i], decimals) for bound in (tree.low, tree.high))
        parts.append(f"{low}{unit}" if low == high else f"{low} to {high}{unit}")
    return ", ".join(parts)


def describe_question(tree: Tree, node: int, sign: str, decimals: int = 2) -> str:
    """Return a node's question: variable, sign, threshold and unit."""
    names, feature = tree.variables, tree.feature[node]
    unit = f" {names.units[feature]}" if names.units[feature] else ""
    return f"{names.observed[feature]} {sign} {fixed(tree.threshold[node], decimals)}{unit}"


def export_text(tree: Tree, decimals: int = 2) -> str:
    """Return the tree as text, in the form of scikit-learn's `export_text`."""
    lines = []
    for place, node, depth in walk(tree):
        if place == "leaf":
            lines.append("|   " * depth + f"|--- {tree.variables.action}: {describe_action(tree, node, decimals)}")
        elif place != "end":
            lines.append("|   " * depth + f"|--- {describe_question(tree, node, place.ljust(2), decimals)}")
    return "\n".join(lines) + "\n"


def export_graphviz(tree: Tree, decimals: int = 2) -> str:
    """Return the tree in the language of Graphviz's `dot`: the left branch is where the question's answer is yes."""
    lines = ["digraph Tree {", 'node [shape=box, fontname="helvetica"];', 'edge [fontname="helvetica"];']
    for node in range(len(tree.feature)):
        if tree.feature[node] == LEAF:
            lines.append(f'{node} [label="{describe_action(tree, node, decimals)}", style="rounded"];')
            continue
        lines.append(f'{node} [label="{describe_question(tree, node, "<", decimals)}"];')
        for child, answer in ((tree.left[node], "yes"), (tree.right[node], "no")):
            lines.append(f'{node} -> {child} [label="{answer}"];')
    return "\n".join([*lines, "}"]) + "\n"


def export_python(tree: Tree, name: str = "policy") -> str:
    """Return the source of a Python function of the observed variables that needs nothing else.

    It returns the number of a discrete action, or a continuous one in its unit.
    """
    forms = {"<": "if {variable} < {threshold!r}:", ">=": "else:", "end": "", "leaf": "return {action!r}"}
    arguments = ", ".join(tree.variables.observed)
    return "\n".join([f"def {name}({arguments}):", f'    """{_says(tree)}"""', *_body(tree, name, forms)]) + "\n"


def export_c(tree: Tree, name: str = "policy") -> str:
    """Return the source of a C function of the observed variables that needs nothing else, as `export_python`."""
    forms = {"<": "if ({variable} < {threshold!r}) {{", ">=": "}} else {{", "end": "}}", "leaf": "return {action!r};"}
    names = tree.variables
    kind = "int" if names.box is None else "double"
    arguments = ", ".join(f"double {variable}" for variable in names.observed)
    # A variable the tree never asks for is no mistake: compilers need not warn of it.
    unused = [f"    (void){name};" for i, name in enumerate(names.observed) if i not in tree.feature]
    head = [f"/* {_says(tree)} */", f"{kind} {name}({arguments})", "{", *unused]
    return "\n".join([*head, *_body(tree, name, forms), "}"]) + "\n"


def _body(tree: Tree, name: str, forms: dict[str, str]) -> list[str]:
    """Return the indented lines of a function.

    Thresholds and actions are written with as many digits as it takes to read the same numbers back, but those too
    small for a processor's usual numbers as 0: some processors take them for it anyway.
    """
    check_name("name", name)
    if tree.low.shape[1] > 1:
        raise ValueError("a function returns one number; this tree has actions of more dimensions")
    if tree.depth > 90:
        raise ValueError(f"Python indents no more than 100 times, and this tree has depth {tree.depth}")
    lines = []
    value = tree.value.reshape(len(tree.feature))
    for place, node, depth in walk(tree):
        line = forms[place].format(
            variable=tree.variables.observed[tree.feature[node]],
            threshold=usual(float(tree.threshold[node])),
            action=usual(value[node].item()),
        )
        if line:
            lines.append("    " * (depth + 1) + line)
    return lines


def usual(number: float) -> float:
    """Return a number, or 0 where it is so small that it is denormal."""
    return number if abs(number) >= sys.float_info.min else type(number)(0)


def _says(tree: Tree) -> str:
    """One line on what an exported function takes and returns."""
    names = tree.variables
    units = ", ".join(f"{v} in {u}" if u else v for v, u in zip(names.observed, names.units, strict=True))
    unit = f" in {names.action_unit}" if names.action_unit else ""
    if names.box is None:
        meanings = ", ".join(f"{i + names.start}: {choice:+g}" for i, choice in enumerate(names.choices))
        return f"From {units}: the number of the action ({names.action}{unit} {meanings})."
    return f"From {units}: the {names.action}{unit}."
