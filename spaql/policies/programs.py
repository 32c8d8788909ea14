"""Decision trees as programs for a controller: Python, C in double and single precision, Structured Text, JSON.

Each acts as the tree does.  An input outside its range counts as the end of the range, as for the agent, because no
question of the tree lies beyond it.  NaN is for the caller to catch.
"""

import datetime
import importlib.metadata
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spaql.checks import check_name
from spaql.policies.export import check_tree, mark, walk
from spaql.policies.tree import LEAF, NUMBERED, Tree, counted
from spaql.spaces import PLAIN, pairs_of

DEEPEST = 90  # questions in a row: Python indents no more than 100 times


def export_python(tree: Tree, name: str = "policy", about: str = "") -> str:
    """Return the source of a Python function of the observed variables that needs nothing else.

    Parameters
    ----------
    tree
        The policy.
    name
        Of the function.
    about
        What the header says besides system, units and ranges: who made it, for what.

    Returns
    -------
    source
        The function returns the number of a discrete action, a continuous one in its unit, or a tuple of several.
    """
    if check_tree(tree).depth > DEEPEST:
        raise ValueError(f"Python indents no more than 100 times, and this tree has depth {tree.depth}")

    def leaf(values: list[str]) -> str:
        return f"return {values[0]}" if len(values) == 1 else f"return ({', '.join(values)})"

    body = _body(tree, name, "if {variable} < {threshold}:", "else:", "", leaf, double, "  # {}")
    said = '"""' + "\n    ".join([*_head(tree, about), '"""'])
    turned = [f"    {angle} = atan2({sine}, {cosine})" for angle, cosine, sine in _angles(tree)]
    if turned:
        turned = ["    from math import atan2", "", *turned]
    return "\n".join([f"def {name}({', '.join(tree.variables.observed)}):", f"    {said}", *turned, *body]) + "\n"


def export_c(tree: Tree, name: str = "policy", about: str = "", precision: str = "double") -> str:
    """Return the source of a C function of the observed variables that needs nothing else.

    Parameters
    ----------
    tree, name, about
        As for `export_python`.
    precision
        "double", or "single": inputs, thresholds and actions are floats.  Every threshold is rounded up to the next
        float, so for inputs that are floats, as Gymnasium's are, both decide the same.  A double that is rounded on
        its way in moves by at most 6e-8 of its size, and an angle that is computed from cosine and sine by a few times
        that.

    Returns
    -------
    source
        The function returns the action as in Python; several actuators are written to its last argument, an array.
    """
    if precision not in ("double", "single"):
        raise ValueError(f"precision must be 'double' or 'single', not {precision!r}")
    names, single = check_tree(tree).variables, precision == "single"
    kind, several = ("float" if single else "double"), len(names.actions) > 1
    arguments = [f"{kind} {variable}" for variable in names.observed]
    returned = "void" if several else "int" if names.box is None else kind
    if several:
        if "action" in names.observed:
            raise ValueError("'action' is the array that the C function writes: give the observation another name")
        arguments.append(f"{kind} action[{len(names.actions)}]")

    def leaf(values: list[str]) -> str:
        return " ".join(f"action[{i}] = {v};" for i, v in enumerate(values)) if several else f"return {values[0]};"

    body = _body(
        tree,
        name,
        "if ({variable} < {threshold}) {{",
        "}} else {{",
        "}}",
        leaf,
        single_c if single else double,
        "  /* {} */",
    )
    # A variable the tree never asks for is no mistake: compilers need not warn of it.
    angles = _angles(tree)
    used = {names.observed[i] for i in tree.feature if i != LEAF} | {sine for _, _, sine in angles}
    unused = [f"    (void){variable};" for variable in names.observed if variable not in used]
    turn = "atan2f" if single else "atan2"
    turned = [f"    const {kind} {angle} = {turn}({sine}, {cosine});" for angle, cosine, sine in angles]
    places = [f"action[{i}], " for i in range(len(names.actions))] if several else [""]
    head = ["/* " + "\n * ".join(_head(tree, about, places)).replace("*/", "* /"), " */"]
    head += ["#include <math.h>", ""] if angles else []
    return "\n".join([*head, f"{returned} {name}({', '.join(arguments)})", "{", *turned, *unused, *body, "}"]) + "\n"


# Words of IEC 61131-3 that no variable may have, in any case of letters, of those that a system might use; the names
# of types and of standard functions are among them.
RESERVED = {
    *("abs", "acos", "action", "add", "asin", "atan", "atan2", "cos", "delete", "div", "dt", "en", "eno", "exp"),
    *("find", "insert", "left", "len", "limit", "ln", "log", "max", "mid", "min", "move", "mul", "mux", "replace"),
    *("right", "rol", "ror", "sel", "shl", "shr", "sin", "sqrt", "sub", "tan", "trunc", "dint", "sint", "uint", "ton"),
    *("and", "array", "at", "bool", "by", "byte", "case", "constant", "date", "do", "else", "elsif", "end", "exit"),
    *("false", "for", "function", "if", "int", "lreal", "mod", "not", "of", "on", "or", "program", "real", "repeat"),
    *("retain", "return", "step", "string", "struct", "task", "then", "time", "to", "true", "type", "until", "var"),
    *("while", "with", "word", "xor"),
}


def export_structured_text(tree: Tree, name: str = "policy", about: str = "") -> str:
    """Return the policy in IEC 61131-3 Structured Text, for a programmable logic controller.

    Parameters
    ----------
    tree, name, about
        As for `export_python`.

    Returns
    -------
    source
        A FUNCTION, or a FUNCTION_BLOCK with one output for each actuator if there are several.
    """
    names = check_tree(tree).variables
    outputs = names.actions if len(names.actions) > 1 else (name,)
    angles = _angles(tree)
    words = [*names.observed, *(angle for angle, _, _ in angles), *outputs, *({name} - set(outputs))]
    if used := [word for word in words if word.lower() in RESERVED]:
        raise ValueError(
            f"{used[0]!r} is a word of Structured Text: give the variable another name (saved agents load with it)"
        )
    if len({word.lower() for word in words}) < len(words):
        raise ValueError(f"Structured Text does not tell capitals from small letters: {', '.join(words)} must differ")
    kind = "INT" if names.box is None else "LREAL"

    def leaf(values: list[str]) -> str:
        return " ".join(f"{output} := {value};" for output, value in zip(outputs, values, strict=True))

    body = _body(tree, name, "IF {variable} < {threshold} THEN", "ELSE", "END_IF;", leaf, structured, "  (* {} *)")
    head = ["(* " + "\n   ".join(_head(tree, about)).replace("*)", "* )"), "*)"]
    inputs = ["VAR_INPUT", *(f"    {variable} : LREAL;" for variable in names.observed), "END_VAR"]
    if angles:  # ATAN2 came with the third edition of the standard
        body = [*(f"    {angle} := ATAN2({sine}, {cosine});" for angle, cosine, sine in angles), *body]
        inputs += ["VAR", *(f"    {angle} : LREAL;" for angle, _, _ in angles), "END_VAR"]
    if len(outputs) == 1:
        lines = [*head, f"FUNCTION {name} : {kind}", *inputs, *body, "END_FUNCTION"]
    else:
        written = ["VAR_OUTPUT", *(f"    {output} : LREAL;" for output in outputs), "END_VAR"]
        lines = [*head, f"FUNCTION_BLOCK {name}", *inputs, *written, *body, "END_FUNCTION_BLOCK"]
    return "\n".join(lines) + "\n"


def export_json(tree: Tree, about: str = "") -> str:
    """Return the policy as JSON.

    Parameters
    ----------
    tree, about
        As for `export_python`.

    Returns
    -------
    text
        An object with `observations` and `actions` (names, units, and bounds or what discrete actions do) and `nodes`,
        of which the first is the root.  A leaf has an `action`, a list of numbers, and the number of its `visits`, if
        that is known.  At any other node: if number `observation` of what is observed is below the `threshold`, node
        `left` comes next, else `right`.  Where there is a `sine`, the angle counts: atan2 of the observations `sine`
        and `observation`.
    """
    names = check_tree(tree).variables
    actions: list[dict[str, Any]]
    if names.box is None:
        what = {"name": names.action, "unit": names.action_unit, "first": names.start}
        actions = [what if names.actions == (NUMBERED,) else what | {"choices": list(names.choices)}]
    else:
        ends = np.ravel(names.box.low).tolist(), np.ravel(names.box.high).tolist()
        rows = zip(names.actions, names.action_units, *ends, strict=True)
        actions = [dict(zip(("name", "unit", "low", "high"), row, strict=True)) for row in rows]
    nodes: list[dict[str, Any]] = []
    for node, values in enumerate(_values(tree)):
        if tree.feature[node] == LEAF:
            known = {} if tree.visits is None else {"visits": int(tree.visits[node])}
            nodes.append({"action": values} | known)
        else:
            question: dict[str, Any] = {
                "observation": int(tree.feature[node]),
                "threshold": float(tree.threshold[node]),
            }
            if (sine := names.space.sine[question["observation"]]) >= 0:
                question["sine"] = sine
            nodes.append(question | {"left": int(tree.left[node]), "right": int(tree.right[node])})
    observations = [
        {"name": name, "unit": unit, "low": low, "high": high}
        for name, unit, (low, high) in zip(names.observed, names.units, _ranges(tree), strict=True)
    ]
    said = {"format": "spaql tree", "version": 1, "about": _head(tree, about), "system": names.system}
    return json.dumps(said | {"observations": observations, "actions": actions, "nodes": nodes}, indent=1) + "\n"


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


def _values(tree: Tree) -> list[list]:
    """Return the action of each node as plain numbers."""
    return tree.value.reshape(len(tree.feature), -1).tolist()


def _body(
    tree: Tree,
    name: str,
    below: str,
    otherwise: str,
    end: str,
    leaf: Callable,
    write: Callable[[float], str],
    comment: str,
) -> list[str]:
    """Return the indented lines of a program, in the words of its language."""
    check_name("name", name)
    forms, values, lines = {"<": below, ">=": otherwise, "end": end}, _values(tree), []
    for place, node, depth in walk(tree):
        if place == "leaf":
            line = leaf([write(value) for value in values[node]]) + mark(tree, node, comment)
        else:
            variable = tree.variables.asked[tree.feature[node]]
            line = forms[place].format(variable=variable, threshold=write(float(tree.threshold[node])))
        if line:
            lines.append("    " * (depth + 1) + line)
    return lines


def _ranges(tree: Tree) -> list[tuple[float | None, float | None]]:
    """Return the least and the greatest value of each observed variable, None where there is none."""
    space = tree.variables.space
    ends = zip(space.centre, space.half, strict=True)
    ranges: list[tuple[float | None, float | None]] = []
    ranges += [(c - h, c + h) if math.isfinite(h) else (None, None) for c, h in ends]
    return [(-1.0, 1.0) if sine != PLAIN else ends for sine, ends in zip(space.sine, ranges, strict=True)]


def _angles(tree: Tree) -> list[tuple[str, str, str]]:
    """Return the names of the angles that a tree asks for, and of their cosines and sines."""
    names = tree.variables
    pairs = [(cosine, sine) for cosine, sine in pairs_of(names.space) if cosine in tree.feature]
    return [(names.asked[cosine], names.observed[cosine], names.observed[sine]) for cosine, sine in pairs]


def _head(tree: Tree, about: str, places: Sequence[str] = ()) -> list[str]:
    """Return what a program says of itself: what it is, who made it and when, inputs, units, ranges and outputs.

    `places` say where the numbers of an action are, if not in variables of their names.
    """
    names = tree.variables
    version = importlib.metadata.version("spaql")
    date = datetime.date.today().isoformat()
    lines = [f"A policy for {names.system}: a decision tree with {counted(tree.leaves)}.  spaql {version}, {date}."]
    lines += about.splitlines()
    for name, unit, (low, high), sine in zip(names.observed, names.units, _ranges(tree), names.space.sine, strict=True):
        reach = "any number" if low is None else f"{low:g} to {high:g}; beyond, as at the end"
        reach = reach if sine == PLAIN else "cosine or sine of an angle, which alone counts"
        lines.append(f"in   {name}{f' in {unit}' if unit else ''}: {reach}")
    if names.box is not None:
        ends = np.ravel(names.box.low).tolist(), np.ravel(names.box.high).tolist()
        places = places or [""] * len(names.actions)
        for place, name, unit, low, high in zip(places, names.actions, names.action_units, *ends, strict=True):
            lines.append(f"out  {place}{name}{f' in {unit}' if unit else ''}: {low:g} to {high:g}")
        return lines
    if names.actions == (NUMBERED,):
        return [*lines, f"out  the number of the action, {names.start} to {names.start + names.space.actions - 1}"]
    meanings = ", ".join(f"{i + names.start}: {choice:+g}" for i, choice in enumerate(names.choices))
    unit = f" in {names.action_unit}" if names.action_unit else ""
    return [*lines, f"out  the number of the action; {names.action}{unit} {meanings}"]
