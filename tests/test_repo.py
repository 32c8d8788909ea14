"""The files around the package: they agree with each other, and what they print runs."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from spaql.compiling import fingerprint
from spaql.paper.bench import markdown

ROOT = Path(__file__).parents[1]


def lock():
    lines = (ROOT / "requirements.lock").read_text().split()
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", line) for line in lines), "every line is an exact pin"
    return {name.lower().replace("_", "-"): version for name, version in (line.split("==") for line in lines)}


def test_the_conda_environment_has_the_locks_pins():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert pip == (ROOT / "requirements.lock").read_text().split()


def test_the_lock_satisfies_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    pins = lock()
    optional = [requirement for group in project["optional-dependencies"].values() for requirement in group]
    for requirement in map(Requirement, project["dependencies"] + optional):
        assert requirement.specifier.contains(pins[requirement.name]), requirement
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    python = next(entry.split("=")[1] for entry in environment if str(entry).startswith("python="))
    assert python in project["requires-python"]


def test_the_readmes_examples_run_as_printed(tmp_path):
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(examples) == 4
    for example in examples:
        done = subprocess.run(
            [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
    first = subprocess.run([sys.executable, "-c", examples[0]], cwd=tmp_path, capture_output=True, text=True)
    assert first.stdout.splitlines()[-1] == "True"


def test_the_readme_has_the_last_bench():
    kept = json.loads((ROOT / "results" / "bench.json").read_text())
    assert len(kept["rows"]) > 10
    assert markdown(kept["rows"]) in (ROOT / "README.md").read_text()


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)\)", (ROOT / "README.md").read_text())
    assert "book/glance.svg" in links
    for link in links:
        assert link.startswith(("https://", "_build/")) or (ROOT / link).is_file(), link


def test_the_equations_the_readme_points_to_are_there():
    sources = "".join(
        (ROOT / "spaql" / f"{name}.py").read_text() for name in ("learning", "partition", "systems", "agents")
    )
    table = (ROOT / "README.md").read_text().split("## Where the paper's equations are")[1].split("## ")[0]
    functions = [
        name
        for row in table.splitlines()
        if row.startswith("|")
        for name in re.findall(r"`(\w+)`", row.rpartition(" | ")[2])
    ]
    assert len(functions) > 10
    for name in functions:
        assert f"def {name}(" in sources or f"class {name}:" in sources, name


def test_importing_the_package_imports_neither_torch_nor_a_plotting_library():
    code = "import sys, spaql; print([m for m in ('torch', 'matplotlib', 'stable_baselines3') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"


def test_the_fingerprint_sees_code_and_nothing_else(tmp_path):
    def of(text):
        (tmp_path / "module.py").write_text(text)
        return fingerprint(("module",), tmp_path)

    first = of('"""Doc."""\n\n\ndef f(x):\n    """Do."""\n    return x + 1\n')
    assert of("def f(x: int) -> int:  # why\n    'Something else.'\n    return (x +\n        1)\n") == first
    assert of("def f(x):\n    return x + 2\n") != first


def test_the_command_line():
    spaql = [sys.executable, "-c", "from spaql.cli import main; main()"]
    assert subprocess.run([*spaql, "--version"], capture_output=True, text=True).stdout.strip() == "0.1.0"
    wrong = subprocess.run([*spaql, "benhc"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "bench" in wrong.stderr
