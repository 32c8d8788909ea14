"""Decision trees as text, as sentences, and as programs for a controller: Python, C, Structured Text, JSON.

Each program acts as the tree does.  An input outside its range counts as the end of the range, as for the agent,
because no question of the tree lies beyond it.  NaN is for the caller to catch.
"""

import datetime
import importlib.metadata
import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from spaql.checks import check_name
from spaql.policies.tree import LEAF, NUMBERED, Tree, counted
from spaql.spaces import PLAIN, pairs_of


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
    """Return a comment if no visit has reached a leaf, so that nothing supports its action."""
    return comment.format("no visit") if tree.visits is not None and tree.visits[node] == 0 else ""


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


# ---------------------------------------------------------------------------------------------------------------------
# Programs


def export_python(tree: Tree, name: str = "policy", about: str = "") -> str:
    """Return the source of a Python function of the observed variables that needs nothing else.

    It returns the number of a discrete action, a continuous one in its unit, or a tuple of several.

    Parameters
    ----------
    tree
        The policy.
    name
        Of the function.
    about
        What the header says besides system, units and ranges: who made it, for what.
    """

    def leaf(values: list[str]) -> str:
        return f"return {values[0]}" if len(values) == 1 else f"return ({', '.join(values)})"

    body = _body(check_tree(tree), name, "if {} < {}:", "else:", "", leaf, double, "  # {}")
    head = "\n    ".join([*_head(tree, about), '"""'])
    lines = [f"def {name}({', '.join(tree.variables.observed)}):", f'    """{head}']
    if angles := _angles(tree):
        lines += ["    from math import atan2", ""]
        lines += [f"    {angle} = atan2({sine}, {cosine})" for angle, cosine, sine in angles]
    return "\n".join([*lines, *body]) + "\n"


def export_c(tree: Tree, name: str = "policy", about: str = "", precision: str = "double") -> str:
    """Return the source of a C function of the observed variables that needs nothing else.

    It returns the action as in Python; several actuators are written to its last argument, an array.

    Parameters
    ----------
    tree, name, about
        As for `export_python`.
    precision
        "double", or "single": inputs, thresholds and actions are floats.  Every threshold is rounded up to the next
        float, so for inputs that are floats, as Gymnasium's are, both decide the same.
    """
    if precision not in ("double", "single"):
        raise ValueError(f"precision must be 'double' or 'single', not {precision!r}")
    names, single = check_tree(tree).variables, precision == "single"
    kind, several = ("float" if single else "double"), len(names.actions) > 1
    arguments = [f"{kind} {variable}" for variable in names.observed]
    arguments += [f"{kind} action[{len(names.actions)}]"] if several else []
    returned = "void" if several else "int" if names.box is None else kind

    def leaf(values: list[str]) -> str:
        return " ".join(f"action[{i}] = {v};" for i, v in enumerate(values)) if several else f"return {values[0]};"

    write = single_c if single else double
    body = _body(tree, name, "if ({} < {}) {{", "}} else {{", "}}", leaf, write, "  /* {} */")
    angles, turn = _angles(tree), "atan2f" if single else "atan2"
    turned = [f"    const {kind} {angle} = {turn}({sine}, {cosine});" for angle, cosine, sine in angles]
    # A variable the tree never asks for is no mistake: compilers need not warn of it.
    used = {names.observed[i] for i in tree.feature if i != LEAF} | {sine for _, _, sine in angles}
    unused = [f"    (void){variable};" for variable in names.observed if variable not in used]
    head = ["/* " + "\n * ".join(_head(tree, about)).replace("*/", "* /"), " */"]
    head += ["#include <math.h>", ""] if angles else []
    return "\n".join([*head, f"{returned} {name}({', '.join(arguments)})", "{", *turned, *unused, *body, "}"]) + "\n"


def export_structured_text(tree: Tree, name: str = "policy", about: str = "") -> str:
    """Return the policy in IEC 61131-3 Structured Text, for a programmable logic controller.

    It is a FUNCTION, or a FUNCTION_BLOCK with one output for each actuator if there are several.  Parameters are those
    of `export_python`.
    """
    names, angles = check_tree(tree).variables, _angles(tree)
    several = len(names.actions) > 1
    outputs = names.actions if several else (name,)

    def leaf(values: list[str]) -> str:
        return " ".join(f"{output} := {value};" for output, value in zip(outputs, values, strict=True))

    def declare(kind: str, variables: Any) -> list[str]:
        return [kind, *(f"    {variable} : LREAL;" for variable in variables), "END_VAR"] if variables else []

    body = _body(tree, name, "IF {} < {} THEN", "ELSE", "END_IF;", leaf, structured, "  (* {} *)")
    kind, returned = ("FUNCTION_BLOCK", "") if several else ("FUNCTION", " : INT" if names.box is None else " : LREAL")
    lines = [
        *("(* " + "\n   ".join(_head(tree, about)).replace("*)", "* )"), "*)"),
        f"{kind} {name}{returned}",
        *declare("VAR_INPUT", names.observed),
        *declare("VAR_OUTPUT", outputs if several else ()),
        *declare("VAR", [angle for angle, _, _ in angles]),
        *(f"    {angle} := ATAN2({sine}, {cosine});" for angle, cosine, sine in angles),
        *body,
        f"END_{kind}",
    ]
    return "\n".join(lines) + "\n"


def export_json(tree: Tree, about: str = "") -> str:
    """Return the policy as JSON.

    It has `observations` and `actions` (names, units, and bounds or what discrete actions do) and `nodes`, of which the
    first is the root.  A leaf has an `action`, a list of numbers, and the number of its `visits`, if that is known.  At
    any other node: if number `observation` of what is observed is below the `threshold`, node `left` comes next, else
    `right`.  Where there is a `sine`, the angle counts: atan2 of the observations `sine` and `observation`.
    """
    names = check_tree(tree).variables
    keys = "name", "unit", "low", "high"
    actions = [dict(zip(keys, row, strict=True)) for row in _outputs(tree)]
    if names.box is None:
        actions = [{"name": names.action, "unit": names.action_unit, "first": names.start, "choices": names.choices}]
    values, nodes = tree.value.reshape(len(tree.feature), -1).tolist(), []
    for node, feature in enumerate(tree.feature.tolist()):
        if feature == LEAF:
            known = {} if tree.visits is None else {"visits": int(tree.visits[node])}
            nodes.append({"action": values[node]} | known)
        else:
            sine = names.space.sine[feature]
            question = {"observation": feature} | ({"sine": sine} if sine >= 0 else {})
            ways = {"left": int(tree.left[node]), "right": int(tree.right[node])}
            nodes.append(question | {"threshold": float(tree.threshold[node])} | ways)
    policy = {
        "format": "spaql tree",
        "version": 1,
        "about": _head(tree, about),
        "system": names.system,
        "observations": [dict(zip(keys, row, strict=True)) for row in _inputs(tree)],
        "actions": actions,
        "nodes": nodes,
    }
    return json.dumps(policy, indent=1) + "\n"


# ---------------------------------------------------------------------------------------------------------------------


def double(number: float) -> str:
    """Return a number with all its digits, or 0 where it is denormal: some processors take it for 0 anyway."""
    return repr(number if abs(number) >= np.finfo(float).tiny else type(number)(0))


def single_c(number: float) -> str:
    """Return the least float that is not below a number, for C."""
    if isinstance(number, int):
        return repr(number)
    rounded = np.float32(np.clip(number, -np.finfo(np.float32).max, np.finfo(np.float32).max))
    if float(rounded) < number and rounded < np.finfo(np.float32).max:
        rounded = np.nextafter(rounded, np.float32(math.inf))
    return f"{rounded if abs(rounded) >= np.finfo(np.float32).tiny else np.float32(0)}f"


def structured(number: float) -> str:
    """Return a number as Structured Text writes it: a point before any exponent."""
    mantissa, e, exponent = double(number).partition("e")
    return f"{mantissa if '.' in mantissa else f'{mantissa}.0'}E{exponent}" if e else mantissa


def _body(tree, name, below, otherwise, end, leaf, write, comment):
    """Return the indented lines of a program, in the words of its language."""
    check_name("name", name)
    forms, values, lines = {"<": below, ">=": otherwise, "end": end}, tree.value.reshape(len(tree.feature), -1), []
    for place, node, depth in walk(tree):
        if place == "leaf":
            line = leaf([write(value) for value in values[node].tolist()]) + mark(tree, node, comment)
        else:
            line = forms[place].format(tree.variables.asked[tree.feature[node]], write(float(tree.threshold[node])))
        if line:
            lines.append("    " * (depth + 1) + line)
    return lines


def _angles(tree: Tree) -> list[tuple[str, str, str]]:
    """Return the names of the angles that a tree asks for, and of their cosines and sines."""
    names = tree.variables
    pairs = [(cosine, sine) for cosine, sine in pairs_of(names.space) if cosine in tree.feature]
    return [(names.asked[cosine], names.observed[cosine], names.observed[sine]) for cosine, sine in pairs]


def _inputs(tree: Tree) -> list[tuple]:
    """Return name, unit and ends of each observed variable; the ends are None where there are none."""
    names, rows = tree.variables, []
    for i, (centre, half, sine) in enumerate(zip(names.space.centre, names.space.half, names.space.sine, strict=True)):
        ends = (-1.0, 1.0) if sine != PLAIN else (centre - half, centre + half) if half < math.inf else (None, None)
        rows.append((names.observed[i], names.units[i], *ends))
    return rows


def _outputs(tree: Tree) -> list[tuple]:
    """Return name, unit and ends of each continuous action; nothing of discrete ones."""
    names, space = tree.variables, tree.variables.space
    rows = zip(names.actions, names.action_units, space.action_centre, space.action_half, strict=True)
    return (
        [] if names.box is None else [(name, unit, centre - half, centre + half) for name, unit, centre, half in rows]
    )


def _head(tree: Tree, about: str) -> list[str]:
    """Return what a program says of itself: what it is, who made it and when, inputs, units, ranges and outputs."""
    names = tree.variables
    made = f"spaql {importlib.metadata.version('spaql')}, {datetime.date.today().isoformat()}"
    lines = [f"A policy for {names.system}: a decision tree with {counted(tree.leaves)}.  {made}.", *about.splitlines()]
    for (name, unit, low, high), sine in zip(_inputs(tree), names.space.sine, strict=True):
        reach = "any number" if low is None else f"{low:g} to {high:g}; beyond, as at the end"
        reach = reach if sine == PLAIN else "cosine or sine of an angle, which alone counts"
        lines.append(f"in   {_with_unit(name, unit)}: {reach}")
    outputs = [f"{_with_unit(name, unit)}: {low:g} to {high:g}" for name, unit, low, high in _outputs(tree)]
    if names.actions == (NUMBERED,):
        outputs = [f"the number of the action, {names.start} to {names.start + names.space.actions - 1}"]
    elif names.box is None:
        meanings = ", ".join(f"{i + names.start}: {choice:+g}" for i, choice in enumerate(names.choices))
        outputs = [f"the number of the action; {_with_unit(names.action, names.action_unit)} {meanings}"]
    return [*lines, *(f"out  {output}" for output in outputs)]


def _with_unit(name: str, unit: str) -> str:
    return f"{name} in {unit}" if unit else name
