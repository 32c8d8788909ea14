"""The house: which wing may import which, and that the algorithms install alone."""

import ast
import graphlib
import importlib.metadata
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spaql"
CORE = ("gymnasium", "numba", "numpy", "tqdm")  # what the algorithms need
SCRIPT = """
import sys
import numpy as np
from spaql import AQL, SPAQLTS, Random
from spaql.policies import export_c, export_text
agent = SPAQLTS("CartPole-v0", xi=20, seed=0).learn(20, 5)
observation, _ = agent.env.reset(seed=2)
action, _ = agent.predict(observation, deterministic=True)
agent.save("agent.npz")
again = SPAQLTS.load("agent.npz")
assert again.predict(observation, deterministic=True)[0] == action
assert np.array_equal(agent.learn(5, 5).history, again.learn(5, 5).history)
found = agent.policy.simplify(leaves=3, proposals=2, episodes=5, fresh=10)
print(export_text(found.tree), export_c(agent.policy.tree()), sep="\\n")
AQL("Pendulum-v1", xi=1, seed=0, horizon=5).learn(2, 1).policy[0].tree()
"""


FILES = sorted(PACKAGE.rglob("*.py"))


def name_of(path):
    """The name of a file's module."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports(path, everywhere):
    """The modules that a file imports: everywhere in it, or only those that it needs to be imported itself."""
    tree, modules = ast.parse(path.read_text(encoding="utf-8")), set(map(name_of, FILES))
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in modules else node.module for name in names)


def test_the_core_imports_nothing_of_the_paper_no_more_than_it_needs_and_in_no_circle():
    core = {name_of(path): path for path in FILES if path.relative_to(PACKAGE).parts[0] != "paper"}
    imported = {module: set(imports(path, everywhere=True)) for module, path in core.items()}
    assert not any(name.startswith("spaql.paper") for names in imported.values() for name in names)
    graph = {module: names & core.keys() - {module} for module, names in imported.items()}
    list(graphlib.TopologicalSorter(graph).static_order())  # which raises an error that shows a circle
    needed = {name.split(".")[0] for path in core.values() for name in imports(path, everywhere=False)}
    assert needed - sys.stdlib_module_names - {"spaql"} == set(CORE)


# Of a system's file, which `register` hands to the compiler.
KERNELS = ("reset_model", "step_model", "begin", "step", "observe")
COMPILED = {"inner", "inlined", "either", "entry", "overload"}


def is_function(node):
    return isinstance(node, ast.FunctionDef)


def is_compiled(function):
    marks = (getattr(mark, "func", mark) for mark in function.decorator_list)
    return bool(COMPILED & {getattr(mark, "id", "") for mark in marks})


def test_every_function_says_its_types_but_kernels():
    """What is compiled has the types that the compiler finds; mypy asks for all types where nothing is compiled."""
    for path in FILES:
        functions = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if is_function(node)]
        compiled = {id(inside) for outside in functions if is_compiled(outside) for inside in ast.walk(outside)}
        for function in functions:
            ours = path.parent == PACKAGE / "systems" and not function.returns and function.name in KERNELS
            if ours or id(function) in compiled:
                continue
            given = function.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            untyped = [one.arg for one in named if one.annotation is None and one.arg not in ("self", "cls")]
            assert not untyped, (path, function.name, untyped)
            assert function.returns or function.name == "__init__", (path, function.name)


def test_importing_the_algorithms_imports_nothing_heavy():
    heavy = ("torch", "matplotlib", "stable_baselines3", "pandas", "pyarrow")  # numba imports scipy where it is
    code = f"import sys, spaql, spaql.policies; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def requirements(names):
    """The distributions that these need here, and what those need in their turn."""
    found, waiting = {}, list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = importlib.metadata.distribution(name)
            needed = map(Requirement, found[name].requires or [])
            waiting += [one.name for one in needed if one.marker is None or one.marker.evaluate({"extra": ""})]
    return found


@pytest.mark.long
def test_the_wheel_works_with_what_the_algorithms_need_alone(tmp_path):
    """A new environment with the wheel, and of this environment's packages only those that pyproject.toml requires."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        tmp_path,
        ROOT,
    ]
    subprocess.run(command, check=True)
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    here = Path(sysconfig.get_path("purelib"))
    there = next((tmp_path / "env").rglob("site-packages"))
    for distribution in requirements(CORE).values():
        tops = {file.parts[0] for file in distribution.files if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            if not (there / top).exists():
                (there / top).symlink_to(here / top)
    (wheel,) = tmp_path.glob("spaql-*.whl")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True)
    # As plain Python: machine code is the same wherever it is installed, and takes a minute to compile.
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([python, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, env=plain)
    assert done.returncode == 0, done.stderr
    assert "int policy(double x, double x_dot, double theta, double theta_dot)" in done.stdout
    missing = subprocess.run([python, "-c", "import pandas"], capture_output=True)
    assert missing.returncode != 0
