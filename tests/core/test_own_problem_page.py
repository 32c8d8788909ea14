"""The book's page on a problem of one's own: its files, written and run as printed, one after the other."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.policies.test_programs import from_structured_text

PAGE = (Path(__file__).parents[2] / "book" / "own_problem.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:python|c)\n(?:#|/\*) ([\w.]+)(?: \*/)?\n(.*?)```", PAGE, re.DOTALL)
PRINTS = r"```python\n# ([\w.]+)\n(?:(?!```).)*```\n\nIt prints[^\n]*:\n\n```text\n(.*?)```"
SHOWN = dict(re.findall(PRINTS, PAGE, re.DOTALL))

FIVE = ("room.py", "learn.py", "worst.py", "exported.py", "loop.c")  # and the page's recipes, with what they import
RECIPES = {"many.py": "joblib", "watched.py": "matplotlib", "changed.py": "numpy"}
RECIPES |= {"with_tensorboard.py": "tensorboardX", "with_optuna.py": "optuna"}
DRIVER = """
import gymnasium, runpy, sys
for name in sys.argv[1:]:
    print("program", name, flush=True)
    runpy.run_path(name, run_name="__main__")
    del sys.modules["room"], gymnasium.registry["Room-v0"]  # so that the next one must import it, too
"""


def follow(where, blocks):
    """Write blocks to files, run the programs among them in one process, and return what each printed."""
    for name, text in blocks:
        with (where / name).open("a", encoding="utf-8") as file:
            file.write(text)
    names = [name for name, _ in blocks if name not in ("room.py", "loop.c")]
    command = [sys.executable, "-c", DRIVER, *names]
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(part.split("\n", 1) for part in done.stdout.split("program ")[1:])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the page is followed, and what each of its programs printed."""
    where = tmp_path_factory.mktemp("room")
    return where, follow(where, [block for block in BLOCKS if block[0] in FIVE])


@pytest.mark.long
@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_and_prints_as_printed(folder, name):
    pytest.importorskip(RECIPES[name])
    assert SHOWN.get(name, "") in follow(folder[0], [(name, dict(BLOCKS)[name])])[name]
    if name == "watched.py":
        assert len((folder[0] / "room.csv").read_text(encoding="utf-8").splitlines()) == 1 + 25
        assert (folder[0] / "learning.svg").stat().st_size > 0


def test_what_programs_print_is_shown_below_them(folder):
    for name in SHOWN.keys() & FIVE:
        assert SHOWN[name] in folder[1][name], name


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_exported_functions_keep_the_room_warm(folder):
    where, _ = folder
    assert "power" in folder[1]["exported.py"]
    command = re.search(r"```\n(cc .*)\n\./thermostat\n```", PAGE).group(1)
    subprocess.run(command.split(), cwd=where, check=True)
    shown = subprocess.run([where / "thermostat"], capture_output=True, text=True, check=True).stdout
    assert float(shown.split()[0]) < 1.5
    assert f"```text\n{shown}```" in PAGE
    act = from_structured_text((where / "policy.st").read_text(encoding="utf-8"))
    air, wall, deviation = 288.0, 288.0, 0.0
    for _ in range(288):
        to_wall, outwards = 200.0 * (air - wall), 60.0 * (wall - 275.0)
        air += 300.0 * (1000.0 * act(air, wall)[0] - to_wall) / 5e5
        wall += 300.0 * (to_wall - outwards) / 5e6
        deviation += abs(air - 294.0)
    assert shown.startswith(f"{deviation / 288:.2f} K")
