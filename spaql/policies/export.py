"""Decision trees as text, and as programs for a controller: Python, C, Structured Text, JSON.

Each program acts as the tree does.  An input outside its range counts as the end of the range, as for the agent,
because no question of the tree lies beyond it.  NaN is for the caller to catch.
"""

import datetime
import importlib.metadata
import itertools
import json
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from spaql.checks import check_name
from spaql.policies.tree import LEAF, NUMBERED, Tree, Variables, counted
from spaql.spaces import PLAIN, pairs_of


def check_tree(tree: Any, name: str = "policy") -> Tree:
    """Return a tree, or say what to give instead, of it or of a program's name."""
    check_name("name", name)
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


def fixed(number: float, reach: float) -> str:
    """Return a number with two decimals, more if its range is below one; no minus before zero."""
    decimals = 2 + math.ceil(-math.log10(min(reach, 1.0)))
    text = f"{number:.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def signed(number: float, unit: str) -> str:
    """Return a discrete action: with its sign in its unit, if it has one."""
    return f"{number:+g} {unit}" if number and unit else f"{number:g} {unit}".strip()


def describe_action(tree: Tree, node: int) -> str:
    """Return what a leaf does, in words with the unit."""
    names = tree.variables
    if names.box is None:
        return signed(names.choices[int(tree.action[node, 0])], names.action_unit)
    parts = []
    for i, (centre, half) in enumerate(zip(names.space.action_centre, names.space.action_half, strict=True)):
        number = fixed(centre + half * tree.action[node, i], half)
        name = names.actions[i] if len(names.actions) > 1 else ""
        parts.append(" ".join(filter(None, (name, number, names.action_units[i]))))
    return ", ".join(parts)


def describe_question(tree: Tree, node: int, sign: str) -> str:
    """Return a node's question: variable, sign, threshold and unit."""
    names, feature = tree.variables, tree.feature[node]
    unit = f" {names.asked_units[feature]}" if names.asked_units[feature] else ""
    return f"{names.asked[feature]} {sign} {fixed(tree.threshold[node], names.space.half[feature])}{unit}"


def export_text(tree: Tree) -> str:
    """Return the tree as text, in the form of scikit-learn's `export_text`."""
    lines, several = [], len(check_tree(tree).variables.actions) > 1  # which are named one by one
    for place, node, depth in walk(tree):
        if place == "leaf":
            said = describe_action(tree, node)
            said = said if several else f"{tree.variables.action}: {said}"
            lines.append("|   " * depth + f"|--- {said}{mark(tree, node, '  ({})')}")
        elif place != "end":
            lines.append("|   " * depth + f"|--- {describe_question(tree, node, place.ljust(2))}")
    return "\n".join(lines) + "\n"


# Programs


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


class Language(NamedTuple):
    """How a language writes what programs consist of."""

    below: str  # what comes before a node's left part, before its right part, and after
    otherwise: str
    end: str
    angle: str
    comment: str
    number: Callable[[float], str] = double


PYTHON = Language("if {} < {}:", "else:", "", "{} = atan2({}, {})", "  # {}")
C = Language("if ({} < {}) {{", "}} else {{", "}}", "const double {} = atan2({}, {});", "  /* {} */")
SINGLE_C = C._replace(angle="const float {} = atan2f({}, {});", number=single_c)
STRUCTURED_TEXT = Language("IF {} < {} THEN", "ELSE", "END_IF;", "{} := ATAN2({}, {});", "  (* {} *)", structured)


def write_body(tree: Tree, language: Language, leaf: str) -> list[str]:
    """Return the indented lines of a program; `leaf` is how it gives the numbers of an action."""
    values = tree.value.reshape(len(tree.feature), -1)
    lines = ["    " + language.angle.format(angle, sine, cosine) for angle, cosine, sine in angles_of(tree)]
    forms = {"<": language.below, ">=": language.otherwise, "end": language.end}
    for place, node, depth in walk(tree):
        if place == "leaf":
            line = leaf.format(*map(language.number, values[node].tolist())) + mark(tree, node, language.comment)
        else:
            asked = tree.variables.asked[tree.feature[node]]
            line = forms[place].format(asked, language.number(float(tree.threshold[node])))
        lines += ["    " * (depth + 1) + line] if line else []
    return lines


def angles_of(tree: Tree) -> list[tuple[str, str, str]]:
    """Return the names of the angles that a tree asks for, and of their cosines and sines."""
    names = tree.variables
    pairs = [(cosine, sine) for cosine, sine in pairs_of(names.space) if cosine in tree.feature]
    return [(names.asked[cosine], names.observed[cosine], names.observed[sine]) for cosine, sine in pairs]


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
    names = check_tree(tree, name).variables
    head = "\n    ".join(header(tree, about)).replace("\\", "\\\\").replace('"""', "'''") + '\n    """'
    lines = [f"def {name}({', '.join(names.observed)}):", f'    """{head}']
    lines += ["    from math import atan2", ""] if angles_of(tree) else []
    leaf = f"return {', '.join('{}' for _ in names.actions)}"
    return "\n".join([*lines, *write_body(tree, PYTHON, leaf)]) + "\n"


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
    names, angles = check_tree(tree, name).variables, angles_of(tree)
    language, kind = (C, "double") if precision == "double" else (SINGLE_C, "float")
    arguments, returned, leaf = list(names.observed), "int" if names.box is None else kind, "return {};"
    if (count := len(names.actions)) > 1:
        arguments, returned = [*arguments, f"action[{count}]"], "void"
        leaf = " ".join(f"action[{i}] = {{}};" for i in range(count))
    # A variable the tree never asks for is no mistake: compilers need not warn of it.
    used = {names.observed[i] for i in tree.feature if i != LEAF} | {sine for _, _, sine in angles}
    lines = [
        *("/* " + "\n * ".join(header(tree, about)).replace("*/", "* /").replace("/*", "/ *"), " */"),
        *(("#include <math.h>", "") if angles else ()),
        f"{returned} {name}({', '.join(f'{kind} {argument}' for argument in arguments)})",
        "{",
        *(f"    (void){variable};" for variable in names.observed if variable not in used),
        *write_body(tree, language, leaf),
        "}",
    ]
    return "\n".join(lines) + "\n"


STRUCTURED_WORDS = """ACTION AND ARRAY AT BOOL BY BYTE CASE CONSTANT DATE DINT DO DT DWORD ELSE ELSIF EXIT FALSE FOR
FUNCTION IF INT LINT LREAL LWORD MOD NOT OF OR PROGRAM REAL REPEAT RETURN SINT STRING STRUCT TASK THEN TIME TO TOD TRUE
TYPE UDINT UINT ULINT UNTIL USINT VAR WHILE WITH WORD WSTRING XOR"""


def export_structured_text(tree: Tree, name: str = "policy", about: str = "") -> str:
    """Return the policy in IEC 61131-3 Structured Text, for a programmable logic controller.

    It is a FUNCTION, or a FUNCTION_BLOCK with one output for each actuator if there are several.  Parameters are those
    of `export_python`.
    """
    names = check_tree(tree, name).variables
    several = len(names.actions) > 1
    kind, returned = ("FUNCTION_BLOCK", "") if several else ("FUNCTION", " : INT" if names.box is None else " : LREAL")
    outputs = names.actions if several else (name,)
    declared = {
        "VAR_INPUT": names.observed,
        "VAR_OUTPUT": outputs if several else (),
        "VAR": [angle for angle, _, _ in angles_of(tree)],
    }
    words = STRUCTURED_WORDS.split()
    for used in map(str.upper, itertools.chain((name,), *declared.values())):
        if used in words:
            raise ValueError(
                f"Structured Text, which ignores case, has {used!r} already: give what it names another name"
            )
        words.append(used)
    lines = ["(* " + "\n   ".join(header(tree, about)).replace("*)", "* )"), "*)", f"{kind} {name}{returned}"]
    for section, variables in declared.items():
        if variables:
            lines += [section, *(f"    {variable} : LREAL;" for variable in variables), "END_VAR"]
    leaf = " ".join(f"{output} := {{}};" for output in outputs)
    return "\n".join([*lines, *write_body(tree, STRUCTURED_TEXT, leaf), f"END_{kind}"]) + "\n"


def export_json(tree: Tree, about: str = "") -> str:
    """Return the policy as JSON.

    It has `observations` and `actions` (names, units, and bounds or what discrete actions do) and `nodes`, of which the
    first is the root.  A leaf has an `action`, a list of numbers, and the number of its `visits`, if that is known.  At
    any other node: if number `observation` of what is observed is below the `threshold`, node `left` comes next, else
    `right`.  If a node has a `sine`, compare atan2 of the observations `sine` and `observation` instead.
    """
    names = check_tree(tree).variables
    discrete = {"name": names.action, "unit": names.action_unit, "first": names.start, "choices": names.choices}
    values, nodes = tree.value.reshape(len(tree.feature), -1).tolist(), []
    for node, feature in enumerate(tree.feature.tolist()):
        if feature == LEAF:
            nodes.append({"action": values[node]} | ({} if tree.visits is None else {"visits": int(tree.visits[node])}))
            continue
        sine = names.space.sine[feature]
        question = {"observation": feature} | ({"sine": sine} if sine >= 0 else {})
        ways = {"left": int(tree.left[node]), "right": int(tree.right[node])}
        nodes.append(question | {"threshold": float(tree.threshold[node])} | ways)
    inputs, outputs = ports(names)
    policy = {
        "format": "spaql tree",
        "version": 1,
        "about": header(tree, about),
        "system": names.system,
        "observations": inputs,
        "actions": [discrete] if names.box is None else outputs,
        "nodes": nodes,
    }
    return json.dumps(policy, indent=1) + "\n"


def ports(names: Variables) -> list[list[dict]]:
    """Return name, unit and ends of each observed variable, and of each continuous action; None where it has no end."""

    def row(name, unit, centre, half):
        low, high = (centre - half, centre + half) if half < math.inf else (None, None)
        return {"name": name, "unit": unit, "low": low, "high": high}

    space = names.space  # where an angle is asked for, its ends are in the place of the cosine's
    halves = [half if sine == PLAIN else 1.0 for half, sine in zip(space.half, space.sine, strict=True)]
    inputs = names.observed, names.units, space.centre, halves
    outputs = names.actions, names.action_units, space.action_centre, space.action_half
    return [list(map(row, *columns)) for columns in (inputs, outputs)]


def header(tree: Tree, about: str) -> list[str]:
    """Return what a program says of itself: what it is, who made it and when, inputs, units, ranges and outputs."""
    names = tree.variables
    inputs, outputs = ports(names)
    made = f"spaql {importlib.metadata.version('spaql')}, {datetime.date.today().isoformat()}"
    lines = [f"A policy for {names.system}: a decision tree with {counted(tree.leaves)}.  {made}.", *about.splitlines()]
    for row, sine in zip(inputs, names.space.sine, strict=True):
        reach = "any number" if row["low"] is None else f"{row['low']:g} to {row['high']:g}; beyond, as at the end"
        reach = reach if sine == PLAIN else "cosine or sine of an angle, which alone counts"
        lines.append(f"in   {with_unit(row['name'], row['unit'])}: {reach}")
    if names.box is not None:
        named = [(with_unit(row["name"], row["unit"]), row["low"], row["high"]) for row in outputs]
        return lines + [f"out  {name}: {low:g} to {high:g}" for name, low, high in named]
    if names.actions == (NUMBERED,):
        return [*lines, f"out  the number of the action, {names.start} to {names.start + names.space.actions - 1}"]
    meanings = ", ".join(f"{i + names.start}: {choice:+g}" for i, choice in enumerate(names.choices))
    return [*lines, f"out  the number of the action; {with_unit(names.action, names.action_unit)} {meanings}"]


def with_unit(name: str, unit: str) -> str:
    """Return a name, with its unit if it has one."""
    return f"{name} in {unit}" if unit else name
