"""Policies as programs: each plays against the agent, compiled or interpreted by something that is not ours."""

import ctypes
import json
import math
import re
import shutil
import subprocess

import gymnasium as gym
import numpy as np
import pytest

from spaql import SPAQL, SPAQLR
from spaql.policies import export_c, export_json, export_python, export_structured_text, export_text
from spaql.systems import make_env
from tests.conftest import Opaque
from tests.policies.test_policies import Plane, borders, random_observations

AGENTS = {  # five torques, a torque, a force, two actuators without and with a twin, and an angle
    "spaql/PendulumDiscrete-v1": lambda: SPAQL("spaql/PendulumDiscrete-v1", xi=4, seed=1).learn(100, 5),
    "Pendulum-v1": lambda: SPAQL("Pendulum-v1", xi=4, seed=1).learn(100, 5),
    "CartPole-v0": lambda: SPAQL("CartPole-v0", xi=4, seed=1).learn(100, 5),
    "two actuators": lambda: SPAQL(gym.wrappers.TimeLimit(Plane(), 20), xi=1, seed=0).learn(30, 1),
    "Tanks-v0": lambda: SPAQLR(Opaque(make_env("Tanks-v0")), seed=0).learn(samples=4000),  # to compile less
    "an angle": lambda: SPAQLR(Opaque(make_env("Pendulum-v1")), seed=1).learn(samples=4000),
}


@pytest.fixture(scope="module", params=AGENTS)
def case(request):
    """An agent, its tree, and observations on and around the tree's borders, as float32 has them."""
    agent = AGENTS[request.param]()
    tree = agent.policy.tree()
    if request.param == "two actuators":
        points = np.random.default_rng(0).normal(size=(3000, 4))
    elif request.param == "an angle":
        points = random_observations("Pendulum-v1", 3000)
    else:
        points = np.concatenate((random_observations(tree.variables.system, 3000), borders(tree, count=2)))
    points = points.astype(np.float32)
    points[np.abs(points) < np.finfo(np.float32).tiny] = 0.0
    return agent, tree, points.astype(float)


def taken(agent, observations):
    """What an agent does, a row of numbers for each observation."""
    return np.reshape(agent.predict(observations, deterministic=True)[0], (len(observations), -1)).tolist()


def in_python(source):
    """The function that a source in Python defines, with nothing at hand."""
    names = {"__builtins__": {"__import__": __import__} if "import" in source else {}}
    exec(source, names)
    return names["act"]


def from_structured_text(source):
    """A program in the subset of Structured Text that exports use, as a Python function of the inputs."""
    source = re.sub(r"\(\*.*?\*\)", "", source, flags=re.DOTALL)
    kind, name = re.search(r"(FUNCTION|FUNCTION_BLOCK) (\w+)", source).groups()
    sections = dict(re.findall(r"(VAR_\w+)(.*?)END_VAR", source, re.DOTALL))
    inputs, outputs = (re.findall(r"(\w+) : LREAL;", sections.get(f"VAR_{way}", "")) for way in ("INPUT", "OUTPUT"))
    lines, indent = [f"def act({', '.join(inputs)}):"], 1
    for line in source.rpartition("END_VAR")[2].rpartition(f"END_{kind}")[0].split("\n"):
        line = line.strip()
        number = r"-?\d+(?:\.\d+(?:E[+-]?\d+)?)?"
        if question := re.fullmatch(rf"IF (\w+) < ({number}) THEN", line):
            lines.append("    " * indent + f"if {question[1]} < {question[2]}:")
            indent += 1
        elif line == "ELSE":
            lines.append("    " * (indent - 1) + "else:")
        elif line == "END_IF;":
            indent -= 1
        elif turned := re.fullmatch(r"(\w+) := ATAN2\((\w+), (\w+)\);", line):
            lines += ["    from math import atan2", "    {} = atan2({}, {})".format(*turned.groups())]
        elif line:
            assert re.fullmatch(rf"(\w+ := {number}; ?)+", line), line
            lines.append("    " * indent + line.replace(":=", "="))
    lines.append(f"    return ({', '.join(outputs or [name])},)")
    return in_python("\n".join(lines))


def from_json(text):
    """A policy in JSON as a Python function of the inputs."""
    policy = json.loads(text)

    def act(*inputs):
        node = policy["nodes"][0]
        while "action" not in node:
            asked = inputs[node["observation"]]
            asked = math.atan2(inputs[node["sine"]], asked) if "sine" in node else asked
            node = policy["nodes"][node["left" if asked < node["threshold"] else "right"]]
        return node["action"]

    return act


def from_c(source, tree, kind, folder):
    """A C function, compiled without a warning, as a Python function of the inputs."""
    (folder / "act.c").write_text(source, encoding="utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC"]
    subprocess.run(["cc", *strict, "-o", "act.so", "act.c", "-lm"], cwd=folder, check=True)
    function, count = ctypes.CDLL(str(folder / "act.so")).act, len(tree.variables.actions)
    function.argtypes = [kind] * len(tree.variables.observed)
    function.restype = ctypes.c_int if tree.variables.box is None else kind
    if count == 1:
        return lambda *inputs: (function(*inputs),)
    function.argtypes, function.restype = [*function.argtypes, ctypes.POINTER(kind)], None

    def act(*inputs):
        written = (kind * count)()
        function(*inputs, written)
        return list(written)

    return act


READERS = {
    "Python": lambda tree, _: in_python(export_python(tree, "act")),
    "Structured Text": lambda tree, _: from_structured_text(export_structured_text(tree, "act")),
    "JSON": lambda tree, _: from_json(export_json(tree)),
    "C": lambda tree, folder: from_c(export_c(tree, "act"), tree, ctypes.c_double, folder),
    "C, single": lambda tree, folder: from_c(export_c(tree, "act", precision="single"), tree, ctypes.c_float, folder),
}
NO_COMPILER = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.mark.parametrize(
    "reader", [pytest.param(name, marks=NO_COMPILER if name[0] == "C" else ()) for name in READERS]
)
def test_a_program_does_what_the_agent_does(case, reader, tmp_path):
    # Thresholds of single precision are rounded up, so that for floats it decides alike.
    agent, tree, points = case
    act = READERS[reader](tree, tmp_path)
    assert [list(np.ravel(act(*point))) for point in points.tolist()] == taken(agent, points)
    for seed in range(2):  # in closed loop
        observation, over = agent.env.reset(seed=seed)[0], False
        while not over:
            seen = observation.astype(np.float32).astype(float)
            action = np.ravel(act(*seen.tolist())).tolist()
            assert [action] == taken(agent, seen[None])
            given = action[0] if tree.variables.box is None else np.array(action, agent.env.action_space.dtype)
            observation, _, terminated, truncated, _ = agent.env.step(given)
            over = terminated or truncated


def test_what_no_program_can_have_is_refused():
    policy = SPAQL("CartPole-v0", xi=4, seed=1).policy
    for export in (export_c, export_json, export_python, export_structured_text, export_text):
        with pytest.raises(TypeError, match=r"expected a tree, not Policy\(.*policy.tree\(\)"):
            export(policy)
    tree = policy.tree()
    for name in ("1st", "a b", "if", "θ"):
        with pytest.raises(ValueError, match="name"):
            export_python(tree, name)
    for name in ("IF", "THETA"):  # a word of the language, and an observation
        with pytest.raises(ValueError, match=f"has '{name}' already"):
            export_structured_text(tree, name)
    with pytest.raises(ValueError, match="'double' or 'single', not 'half'"):
        export_c(tree, precision="half")


def test_a_header_cannot_end_its_comment(case):
    tree, about = case[1]._replace(visits=None), 'by */ and *) nobody in C:\\new """'
    compile(export_python(tree, about=about), "policy.py", "exec")
    assert export_c(tree, about=about).count("*/") == 1
    assert export_structured_text(tree, about=about).count("*)") == 1
