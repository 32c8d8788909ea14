"""Policies as programs: each plays against the agent, compiled or interpreted by something that is not ours."""

import json
import math
import re
import shutil
import subprocess
from typing import ClassVar

import gymnasium as gym
import jsonschema
import numpy as np
import pytest

from spaql import SPAQL, SPAQLR
from spaql.policies import export_graphviz, export_text, in_words
from spaql.policies.programs import SCHEMA, export_c, export_json, export_python, export_structured_text
from spaql.policies.tree import LEAF
from tests.policies.test_policies import Plane, borders, random_observations

TREES = {  # five torques, a torque, a force, two actuators, and an angle
    "spaql/PendulumDiscrete-v1": lambda: SPAQL("spaql/PendulumDiscrete-v1", xi=4, seed=1).learn(100, 5),
    "Pendulum-v1": lambda: SPAQL("Pendulum-v1", xi=4, seed=1).learn(100, 5),
    "CartPole-v0": lambda: SPAQL("CartPole-v0", xi=4, seed=1).learn(100, 5),
    "two actuators": lambda: SPAQL(Plane(), xi=1, seed=0, horizon=20).learn(30, 1),
    "an angle": lambda: SPAQLR("Pendulum-v1", seed=1).learn(samples=4000),
}


@pytest.fixture(scope="module", params=TREES)
def case(request):
    """An agent, its tree, and observations on and around its borders, in the form of Gymnasium's: float32."""
    agent = TREES[request.param]()
    tree = agent.policy.tree()
    if request.param == "two actuators":
        points = np.random.default_rng(0).normal(size=(3000, 3))
    elif request.param == "an angle":
        points = random_observations("Pendulum-v1", 3000)
    else:
        points = np.concatenate((random_observations(request.param, 3000), borders(tree, count=2)))
    points = points.astype(np.float32)
    points[np.abs(points) < np.finfo(np.float32).tiny] = 0.0
    expected = np.reshape(agent.predict(points, deterministic=True)[0], (len(points), -1))
    return agent, tree, points.astype(float), expected


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
    """A policy in JSON as a Python function of the inputs; the text must fit its schema."""
    policy = json.loads(text)
    jsonschema.validate(policy, SCHEMA)

    def act(*inputs):
        node = policy["nodes"][0]
        while "action" not in node:
            asked = inputs[node["observation"]]
            asked = math.atan2(inputs[node["sine"]], asked) if "sine" in node else asked
            node = policy["nodes"][node["left" if asked < node["threshold"] else "right"]]
        return node["action"]

    return act


@pytest.mark.parametrize(
    "read",
    [
        lambda tree: in_python(export_python(tree, "act")),
        lambda tree: from_structured_text(export_structured_text(tree, "act")),
        lambda tree: from_json(export_json(tree)),
    ],
    ids=["Python", "Structured Text", "JSON"],
)
def test_a_program_does_what_the_agent_does(case, read):
    _, tree, points, expected = case
    act = read(tree)
    assert [np.ravel(act(*point)).tolist() for point in points.tolist()] == expected.tolist()


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize(("precision", "kind"), [("double", "double"), ("single", "float")])
def test_the_c_function_does_what_the_agent_does(case, precision, kind, tmp_path):
    # Thresholds of single precision are rounded up, so that for floats the two decide alike.
    _, tree, points, expected = case
    inputs = ", ".join(f"o[{i}]" for i in range(points.shape[1]))
    count = expected.shape[1]
    call = f"a[0] = act({inputs});" if count == 1 else f"act({inputs}, a);"
    main = f"""
    #include <stdio.h>
    int main(void) {{
        {kind} o[{points.shape[1]}], a[{count}];
        while (fread(o, sizeof o, 1, stdin) == 1) {{
            {call}
            fwrite(a, sizeof a, 1, stdout);
        }}
        return 0;
    }}
    """
    (tmp_path / "act.c").write_text(export_c(tree, "act", precision=precision) + main, encoding="utf-8")
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    subprocess.run(["cc", *strict, "-o", "act", "act.c", "-lm"], cwd=tmp_path, check=True)
    given = points.astype(np.float32 if precision == "single" else float)
    done = subprocess.run([tmp_path / "act"], input=given.tobytes(), capture_output=True, check=True)
    assert np.array_equal(np.frombuffer(done.stdout, given.dtype).reshape(-1, count), expected)


def test_a_program_plays_an_episode_as_the_agent_does():
    agent = SPAQL("CartPole-v0", xi=4, seed=1).learn(100, 5)
    act = from_structured_text(export_structured_text(agent.policy.tree()))
    observation, _ = agent.env.reset(seed=3)
    over = False
    while not over:
        (action,) = act(*observation.tolist())
        assert action == agent.predict(observation, deterministic=True)[0]
        observation, _, terminated, truncated, _ = agent.env.step(action)
        over = terminated or truncated


@pytest.mark.parametrize(
    "export", [export_c, export_graphviz, export_json, export_python, export_structured_text, export_text, in_words]
)
def test_a_policy_in_the_place_of_its_tree_is_refused(export):
    with pytest.raises(TypeError, match=r"expected a tree, not Policy\(.*policy.tree\(\)"):
        export(SPAQL("CartPole-v0", xi=4, seed=1).policy)


def test_what_no_program_can_have_is_refused():
    agent = SPAQL("CartPole-v0", xi=4, seed=1)
    tree = agent.policy.tree()
    for name in ("1st", "a b", "if", "θ"):
        with pytest.raises(ValueError, match="name"):
            export_python(tree, name)
    with pytest.raises(ValueError, match="'double' or 'single', not 'half'"):
        export_c(tree, precision="half")
    with pytest.raises(ValueError, match="word of Structured Text"):
        export_structured_text(tree, "program")
    clash = tree._replace(variables=tree.variables._replace(observed=("x", "X", "y", "z")))
    with pytest.raises(ValueError, match="capitals"):
        export_structured_text(clash)
    with pytest.raises(ValueError, match="'dt' is a word"):
        export_structured_text(tree._replace(variables=tree.variables._replace(observed=("dt", "x", "y", "z"))))
    plane = SPAQL(Plane(), xi=1, seed=0, horizon=20).policy.tree()
    with pytest.raises(ValueError, match="'action' is the array"):
        export_c(plane._replace(variables=plane.variables._replace(observed=("action", "y", "z"))))


class Turning(gym.Env):
    """An angle as cosine and sine, and a rate whose name is the angle's."""

    metadata: ClassVar = {"observations": {"x": "", "y": "", "angle_0": "rad/s"}}
    observation_space = gym.spaces.Box(-1.0, 1.0, (3,))
    action_space = gym.spaces.Discrete(2)


def test_an_angle_with_the_name_of_an_observation_is_refused_before_training():
    with pytest.raises(ValueError, match="names of their own"):
        SPAQLR(Turning(), angles=[(0, 1)], horizon=10)


def test_a_tree_is_short_to_print(case):
    assert len(repr(case[1])) < 100


def test_a_header_cannot_end_its_comment(case):
    _, tree, _, _ = case
    about = "by */ and *) nobody"
    assert export_c(tree, about=about).count("*/") == 1
    assert export_structured_text(tree, about=about).count("*)") == 1
    assert all(node["action"] for node in json.loads(export_json(tree, about))["nodes"] if "action" in node)
    assert (tree.feature == LEAF).sum() == tree.leaves
