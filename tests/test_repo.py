"""The files around the package: they agree with each other, and what they print runs."""

import contextlib
import json
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OLDEST = "3.11.0"
PIN = r"[\w.-]+==[\w.]+(?: ; [^\\\n]+)? \\\n(?:    --hash=sha256:[0-9a-f]{64} \\\n)*    --hash=sha256:[0-9a-f]{64}\n"


def pins(text):
    """Read a lock: exact pins with their hashes, and nothing else below the line that says what wrote it."""
    header, _, body = text.partition("\n")
    assert header.startswith("# Written by `make lock`.")
    found = re.findall(PIN, body)
    assert "".join(found) == body, "something is not an exact pin with hashes"
    requirements = [Requirement(pin.partition(" \\\n")[0]) for pin in found]
    names = [canonicalize_name(requirement.name) for requirement in requirements]
    assert len(set(names)) == len(names), "something has two pins"
    return {
        name: str(requirement.specifier).removeprefix("==")
        for name, requirement in zip(names, requirements, strict=True)
    }


def locked(*names):
    """Every pin of these locks: no two of them name the same package."""
    found = [pins((ROOT / name).read_text(encoding="utf-8")) for name in names]
    together = {name: version for each in found for name, version in each.items()}
    assert len(together) == sum(map(len, found)), "a package is in two locks"
    return together


BOOK, TESTS, TRPO = "requirements.lock", "requirements-test.lock", "requirements-trpo.lock"


def torch():
    return Requirement((ROOT / "requirements-torch.txt").read_text(encoding="utf-8").strip())


def demands(*extras):
    """Everything pyproject.toml asks for with these extras, those they include too."""
    for text in PROJECT["project"]["dependencies"]:
        yield Requirement(text)
    for extra in extras:
        for requirement in map(Requirement, PROJECT["project"]["optional-dependencies"][extra]):
            if requirement.name == "spaql":
                yield from demands(*requirement.extras)
            else:
                yield requirement


def unmet(requirements, versions):
    return [
        str(requirement)
        for requirement in requirements
        if canonicalize_name(requirement.name) not in versions
        or not requirement.specifier.contains(versions[canonicalize_name(requirement.name)])
    ]


def test_a_lock_without_hashes_or_with_a_range_is_noticed():
    header, hashed = "# Written by `make lock`. For this test.\n", "    --hash=sha256:" + 64 * "0" + "\n"
    assert pins(f"{header}a==1 \\\n{hashed}b.c==2.post3 ; os_name == 'nt' \\\n{hashed}") == {
        "a": "1",
        "b-c": "2.post3",
    }
    two = f"{header}a==1 \\\n{hashed}A==2 \\\n{hashed}"
    for text in (f"{header}a==1\n", f"{header}a>=1 \\\n{hashed}", f"{header}--index-url b\na==1 \\\n{hashed}", two):
        with pytest.raises(AssertionError, match=r"not an exact pin|two pins"):
            pins(text)


def test_the_locks_satisfy_pyproject():
    assert set(PROJECT["project"]["optional-dependencies"]) == {"paper", "cluster", "trpo", "notebooks", "book", "test"}
    build = [Requirement(text) for text in PROJECT["build-system"]["requires"]]
    assert unmet([*demands("paper", "book"), *build], locked(BOOK)) == []
    assert unmet(demands("paper", "book", "cluster", "test"), locked(BOOK, TESTS)) == []
    assert {"optuna", "tensorboardx"} <= locked(TESTS).keys(), "the page on one's own problem is run with them"
    [exact] = torch().specifier
    assert exact.operator == "=="
    assert unmet(demands("trpo"), {**locked(BOOK, TESTS, TRPO), "torch": exact.version}) == []
    assert unmet(demands("trpo"), locked(BOOK, TESTS)) == ["sb3-contrib>=2.7", "torch>=2.3"]


def test_no_lock_names_torch_or_cuda():
    assert [name for name in locked(BOOK, TESTS, TRPO) if re.match(r"torch|triton|nvidia|cuda", name)] == []
    assert not {"stable-baselines3", "sb3-contrib"} & locked(BOOK, TESTS).keys(), "these need torch"


@pytest.mark.long
def test_what_is_installed_fits_together():
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def too_new(required):
    """Of the distributions with these Requires-Python, those that the oldest Python we admit could not install."""
    return [name for name, python in required.items() if not SpecifierSet(python).contains(OLDEST)]


def test_the_oldest_python_can_install_every_pin():
    assert SpecifierSet(PROJECT["project"]["requires-python"]).contains(OLDEST)
    assert too_new({"soupsieve": ">=3.11.5", "numpy": ">=3.11", "tqdm": ""}) == ["soupsieve"]
    required = {}
    for name, version in locked(BOOK, TESTS, TRPO).items():
        with contextlib.suppress(metadata.PackageNotFoundError):  # those of other systems, other Pythons, and TRPO's
            found = metadata.distribution(name)
            assert found.version == version, f"{name} is not the lock's: make venv"
            required[name] = found.metadata.get("Requires-Python") or ""
    assert len(required) > 100
    assert too_new(required) == []


def test_the_conda_environment_takes_the_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]
    assert [entry["pip"] for entry in environment if isinstance(entry, dict)] == [["-r requirements.lock"]]
    [python] = [entry.removeprefix("python=") for entry in environment if str(entry).startswith("python=")]
    assert python in PROJECT["project"]["requires-python"]


def test_the_version_and_the_papers_identifiers_are_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    version = PROJECT["project"]["version"]
    assert cited["version"] == version
    changes = (ROOT / "book" / "changes.md").read_text(encoding="utf-8")
    assert re.findall(r"^## ([\d.]+)", changes, re.MULTILINE)[0] == version
    paper = cited["preferred-citation"]
    assert paper["doi"].endswith(str(paper["start"]))
    references = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    assert paper["identifiers"][0]["value"].removeprefix("10.48550/arXiv.") in references
    assert paper["doi"] in references


def test_the_environments_of_others_install_the_lock():
    container = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    assert "make venv" in container["postCreateCommand"]
    binder = ROOT / ".binder"
    wanted = (binder / "requirements.txt").read_text(encoding="utf-8").split()
    assert wanted[0] == "-r"
    assert (binder / wanted[1]).resolve() == ROOT / "requirements.lock"
    assert "--no-deps" in (binder / "postBuild").read_text(encoding="utf-8")
    assert (binder / "runtime.txt").read_text(encoding="utf-8").strip() == "python-3.11"


def test_the_readme_and_the_workflow_install_the_same_torch():
    line = (
        ".venv/bin/pip install --no-deps -r requirements-torch.txt --index-url https://download.pytorch.org/whl/cpu\n"
    )
    assert line in (ROOT / "README.md").read_text(encoding="utf-8")
    assert line in (ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8")


@pytest.mark.long
def test_without_torch_the_tests_that_need_it_are_skipped():
    """As on most machines: where pip finds no CPU build of torch, none is installed."""
    script = """
import sys, pytest
class WithoutTorch:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name=name)
sys.meta_path.insert(0, WithoutTorch)
sys.exit(pytest.main(sys.argv[1:]))
"""
    files = [f"tests/paper/test_{name}.py" for name in ("trpo", "robustness", "repaired", "evidence")]
    chosen = ["-k", "network_does or trpo or sb3 or torch", "-m", "", "-p", "no:cacheprovider", "-rs"]
    done = subprocess.run([sys.executable, "-c", script, *files, *chosen], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.search(r"SKIPPED \[\d+\] tests/paper/test_trpo.py", done.stdout)
    assert "SKIPPED [2] tests/paper/test_robustness.py" in done.stdout


def test_the_workflow_builds_on_what_the_readme_names():
    build = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))["jobs"]["build"]
    machines = {(entry["os"], entry["python"]) for entry in build["strategy"]["matrix"]["include"]}
    assert {("ubuntu-24.04", "3.11"), ("ubuntu-24.04", "3.14")} <= machines
    assert {"ubuntu-24.04-arm", "macos-15"} <= {name for name, _ in machines}
    uses = [step["uses"] for step in build["steps"] if "uses" in step]
    assert uses
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in uses), "actions are named by commit"


def test_the_workflow_runs_the_recipes_with_all_that_they_name():
    page = (ROOT / "book" / "own_problem.md").read_text(encoding="utf-8")
    [asked] = re.findall(r"`pip install ([\w ]+)`", page)
    steps = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text(encoding="utf-8"))["jobs"]["recipes"]
    commands = "\n".join(step.get("run", "") for step in steps["steps"])
    assert "NEED_RECIPES=1 python -m pytest tests/core/test_own_problem_page.py" in commands
    assert {*asked.split()} <= {*commands.split()}


def test_the_readmes_examples_run_as_printed(tmp_path):
    examples = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert examples
    printed = []
    for example in examples:
        done = subprocess.run(
            [sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert printed[0].splitlines()[-1] == "True"


def test_what_the_readme_links_to_is_there():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert "book/glance.svg" in links
    for link in links:
        assert link.startswith(("https://", "_build/")) or (ROOT / link).is_file(), link


def test_the_equations_that_the_book_points_to_are_there():
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "spaql").glob("*.py"))
    page = (ROOT / "book" / "algorithms.md").read_text(encoding="utf-8")
    table = page.split("## Where the paper's equations are")[1].split("## ")[0]
    functions = [
        name
        for row in table.splitlines()
        if row.startswith("|")
        for name in re.findall(r"`(\w+)`", row.rpartition(" | ")[2])
    ]
    assert len(functions) > 10
    for name in functions:
        assert re.search(rf"^ *(?:def|class) {name}\b", sources, re.MULTILINE), name


def test_the_command_line():
    spaql = [sys.executable, "-c", "from spaql.paper.cli import main; main()"]
    assert subprocess.run([*spaql, "--version"], capture_output=True, text=True).stdout.strip() == metadata.version(
        "spaql"
    )
    wrong = subprocess.run([*spaql, "benhc"], capture_output=True, text=True)
    assert wrong.returncode == 2
    assert "bench" in wrong.stderr
