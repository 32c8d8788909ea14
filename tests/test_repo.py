"""The files around the package: they agree with each other, and what they print runs."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


def pins(name):
    lines = re.findall(r"^[\w.-]+==[^\\\n]+", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return {canonicalize_name(pin.name): pin.specifier for pin in map(Requirement, lines)}


def demands(*extras):
    texts = [*PROJECT["dependencies"], *(t for extra in extras for t in PROJECT["optional-dependencies"][extra])]
    return [found for found in map(Requirement, texts) if found.name != "spaql"]


def test_the_lock_has_what_pyproject_asks_for_and_hashes():
    lock, wanted = pins("requirements.lock"), demands("many", "paper", "book", "cluster", "test")
    for requirement in wanted:
        [version] = [one.version for one in lock[canonicalize_name(requirement.name)]]
        assert requirement.specifier.contains(version), requirement
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert len(re.split(r"==[^\n]+\\\n +--hash", text)) == len(lock) + 1
    assert not {"torch", "scikit-learn"} & lock.keys()
    trpo = pins("requirements-trpo.txt")
    assert all(canonicalize_name(requirement.name) in trpo for requirement in demands("trpo")[len(demands()) :])


def test_the_algorithms_need_nothing_of_the_paper_and_import_nothing_heavy():
    heavy = ("torch", "matplotlib", "pandas", "pyarrow", "joblib", "spaql.paper")
    code = f"import sys, spaql, spaql.policies; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    for path in (ROOT / "spaql").rglob("*.py"):
        if "paper" not in path.parts and path.name != "__main__.py":
            assert "spaql.paper" not in path.read_text(encoding="utf-8"), path


@pytest.mark.long
def test_a_wheel_holds_the_library_alone_and_its_command_says_so(tmp_path):
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT]
    subprocess.run(build, check=True)
    [wheel] = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, tmp_path / "there"], check=True)
    assert not (tmp_path / "there" / "spaql" / "paper").exists()
    run = {"capture_output": True, "text": True, "cwd": tmp_path / "there"}
    subprocess.run([sys.executable, "-c", "from spaql import AQL; AQL('CartPole-v0', xi=1)"], **run, check=True)
    alone = "import sys; sys.meta_path[:] = [found for found in sys.meta_path if 'Editable' not in repr(found)]; "
    refused = subprocess.run([sys.executable, "-c", alone + "from spaql.__main__ import main; main()"], **run)
    assert refused.returncode == 1
    assert "clone" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_notebooks_are_clean_sources_with_the_common_parameters():
    for number, path in enumerate(NOTEBOOKS, 1):
        cells = nbformat.read(path, as_version=4).cells
        assert cells[0].source.startswith(f"# {number} · "), path
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells), path
        [declared] = [cell.source for cell in cells if "parameters" in cell.metadata.get("tags", [])]
        for name in ("agents", "iterations", "evaluations", "seed", "workers"):
            assert re.search(rf"^{name}: \w+ = .*  # .+", declared, re.MULTILINE), (path, name)
    assert len(NOTEBOOKS) == 11


@pytest.mark.parametrize("example", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_the_readmes_examples_run_as_printed(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(example, {})
