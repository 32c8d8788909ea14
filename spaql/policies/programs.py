"""Decision trees as programs for a controller: Python, C in double and single precision, Structured Text, JSON.

Each acts as the tree does.  An input outside its range counts as the end of the range, as for the agent, because no
question of the tree lies beyond it.  NaN is for the caller to catch.
"""

import datetime
import importlib.metadata
import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from spaql.checks import check_name
from spaql.policies.export import check_tree, mark, walk
from spaql.policies.tree import LEAF, NUMBERED, Tree, counted
from spaql.spaces import PLAIN, pairs_of


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
    if names.box is None:
        actions = [{"name": names.action, "unit": names.action_unit, "first": names.start, "choices": names.choices}]
    else:
        actions = [dict(zip(keys, row, strict=True)) for row in _outputs(tree)]
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


def _body(
    tree: Tree, name: str, below: str, otherwise: str, end: str, leaf: Callable, write: Callable, comment: str
) -> list[str]:
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
    """Return name, unit and ends of each continuous action."""
    names, box = tree.variables, tree.variables.box
    ends = np.ravel(box.low).tolist(), np.ravel(box.high).tolist()  # type: ignore[union-attr]
    return list(zip(names.actions, names.action_units, *ends, strict=True))


def _head(tree: Tree, about: str) -> list[str]:
    """Return what a program says of itself: what it is, who made it and when, inputs, units, ranges and outputs."""
    names = tree.variables
    made = f"spaql {importlib.metadata.version('spaql')}, {datetime.date.today().isoformat()}"
    lines = [f"A policy for {names.system}: a decision tree with {counted(tree.leaves)}.  {made}.", *about.splitlines()]

    for (name, unit, low, high), sine in zip(_inputs(tree), names.space.sine, strict=True):
        reach = "any number" if low is None else f"{low:g} to {high:g}; beyond, as at the end"
        reach = reach if sine == PLAIN else "cosine or sine of an angle, which alone counts"
        lines.append(f"in   {_with_unit(name, unit)}: {reach}")
    if names.box is not None:
        rows = [f"{_with_unit(name, unit)}: {low:g} to {high:g}" for name, unit, low, high in _outputs(tree)]
        return [*lines, *(f"out  {row}" for row in rows)]
    if names.actions == (NUMBERED,):
        return [*lines, f"out  the number of the action, {names.start} to {names.start + names.space.actions - 1}"]
    meanings = ", ".join(f"{i + names.start}: {choice:+g}" for i, choice in enumerate(names.choices))
    return [*lines, f"out  the number of the action; {_with_unit(names.action, names.action_unit)} {meanings}"]


def _with_unit(name: str, unit: str) -> str:
    return f"{name} in {unit}" if unit else name
