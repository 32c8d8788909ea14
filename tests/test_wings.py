"""The house: which wing may import which, and that the algorithms install alone."""

import ast
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


def wing(module):
    """Core is 0, policies are 1, the paper is 2: a wing imports only its own and lower ones."""
    parts = module.split(".")
    return {"policies": 1, "paper": 2}.get(parts[1] if len(parts) > 1 else "", 0)


def imports(path):
    """The modules that a file imports when it is imported, not those that its functions or its type hints import."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


FILES = sorted(PACKAGE.rglob("*.py"))
KERNELS = (
    "reset_model",
    "step_model",
    "begin",
    "step",
    "observe",
)  # of a system's file, which `register` hands to the compiler


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_wings_import_downwards_only(path):
    module = ".".join(("spaql", *path.relative_to(PACKAGE).with_suffix("").parts))
    for imported in imports(path):
        if imported.split(".")[0] == "spaql":
            assert wing(imported) <= wing(module), imported
        elif wing(module) < 2 and imported.split(".")[0] not in sys.stdlib_module_names:
            assert imported.split(".")[0] in CORE, imported


def functions(path):
    """The functions and methods of a file."""
    return [n for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.FunctionDef)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_every_function_says_its_types_but_kernels(path):
    """What is compiled has the types that the compiler finds; mypy asks for all types where nothing is compiled."""
    compiled = {"inner", "inlined", "either", "entry", "overload"}
    for function in functions(path):
        marks = (getattr(mark, "func", mark) for mark in function.decorator_list)
        if compiled & {getattr(mark, "id", "") for mark in marks}:
            continue
        if path.parent == PACKAGE / "systems" and not function.returns and function.name in KERNELS:
            continue
        given = function.args
        named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
        untyped = [one.arg for one in named if one.annotation is None and one.arg not in ("self", "cls")]
        assert not untyped, f"{function.name}: {untyped}"
        assert function.returns or function.name == "__init__", function.name


def test_a_name_means_one_thing():
    """No two modules define a public function of the same name; the systems share the names of their protocol."""
    found = {}
    for path in FILES:
        place = "spaql/systems" if path.parent == PACKAGE / "systems" else str(path.relative_to(PACKAGE))
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(place)
    assert {name: places for name, places in found.items() if len(places) > 1} == {}


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


@pytest.mark.slow
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
