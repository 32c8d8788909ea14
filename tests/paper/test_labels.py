"""One table of names: nothing outside spaql/systems asks which system it has before it."""

import ast
import math
from pathlib import Path

import numpy as np
import pytest

import spaql
from spaql.paper import labels
from spaql.paper.figures.learning import marked
from spaql.systems import REGISTRY, Variable

PACKAGE = Path(spaql.__file__).parent
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if PACKAGE / "systems" not in path.parents)
OURS = [system for system in REGISTRY.values() if system.describe.__module__.startswith("spaql.systems.")]
NAMES = [system.name for system in OURS]


def names_a_system(node):
    """Whether anything within a piece of code names a system: a text, a variable, an attribute."""
    words = (
        getattr(part, "value", None)
        if isinstance(part, ast.Constant)
        else getattr(part, "id", getattr(part, "attr", ""))
        for part in ast.walk(node)
    )
    return any(
        name.lower() in word.lower().replace("_", "") for word in words if isinstance(word, str) for name in NAMES
    )


def questions(tree):
    """Yield what a module asks: comparisons, conditions, cases, and how a text begins or ends."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield node
        elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            yield node.test
        elif isinstance(node, ast.comprehension):
            yield from node.ifs
        elif isinstance(node, ast.match_case):
            yield node.pattern
            if node.guard:
                yield node.guard
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if called in {"startswith", "endswith", "isinstance", "issubclass", "removeprefix", "removesuffix"}:
                yield node
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.value, ast.Dict):
            yield node.value  # {"CartPole": …}[name], {"CartPole": …}.get(name)


def asked_in(text):
    """The lines of a module that ask which system it is."""
    return sorted({node.lineno for node in questions(ast.parse(text)) if names_a_system(node)})


# Modules about particular systems: their optimum, the numbers of the book's sentences, and the curves that are kept.
PARTICULAR = {"paper/audit/foresight.py", "paper/audit/optimum.py", "paper/book/numbers.py", "paper/published.py"}


def test_no_module_asks_which_system_it_is():
    found = {path.relative_to(PACKAGE).as_posix(): asked_in(path.read_text(encoding="utf-8")) for path in MODULES}
    assert {name: lines for name, lines in found.items() if lines and name not in PARTICULAR} == {}, (
        "ask the registry, or declare data"
    )


@pytest.mark.parametrize(
    "text",
    [
        'if job.system == "CartPole-v0": pass',
        'x = 1 if "Pendulum" in job.system else 2',
        'y = [r for r in records if r.system.startswith("spaql/PendulumDiscrete")]',
        "if is_pendulum: pass",
        "z = isinstance(env, MountainCarEnv)",
        'match name:\n    case "CartPole": pass',
        'w = {"CartPole": 1}.get(name)',
        'v = {"x": "Pendulum"}[name]',
        "u = frame.system == CARTPOLE",
        "while mountain_car: pass",
    ],
)
def test_such_a_question_is_seen(text):
    assert asked_in(text) == [1] or asked_in(text) == [2]


def test_data_is_no_question():
    assert asked_in('SYSTEMS = ("CartPole-v0", "Pendulum-v1")\nXIS = {"CartPole-v0": 20}\nxi = XIS[system]') == []


def test_the_names_are_the_registrys():
    for system in OURS:
        for env_id, title in system.titles.items():
            assert labels.SYSTEM_NAMES[env_id] == title
            assert labels.system_name(env_id) == system.name
    assert labels.variant("Pendulum-v1") == ""
    assert labels.variant("spaql/PendulumDiscrete-v1") == "five torques"
    assert labels.variant("spaql/Pendulum-v0") == "v0"
    assert (labels.system_name("Drift-v0"), labels.variant("Drift-v0")) == ("Drift-v0", "")


def test_axes_say_what_a_variable_is():
    said = {system.name: labels.axis_label(system.state[system.telling[0]]) for system in OURS}
    assert said["Acrobot"] == "angle of the first link θ₁ (rad)"
    assert said["MountainCar"] == "position x"
    assert labels.axis_label(Variable("observation_0")) == "observation_0"
    assert labels.formulas(["x", "x_dot", "theta", "theta_dot"])["theta_dot"] == r"$\dot\theta$"
    assert labels.formulas(["observation_0"]) == {}


def test_marks_come_again_on_every_turn():
    angle = Variable("angle", marks=(0.0, 1.0), period=2 * math.pi)
    assert sorted(marked(angle, -0.5, 7.5)) == pytest.approx([0, 1, 2 * math.pi, 2 * math.pi + 1])
    assert np.array_equal(marked(Variable("x", marks=(0.5,)), -1.2, 0.6), [0.5])
