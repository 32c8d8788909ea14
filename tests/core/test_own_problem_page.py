"""The book's page on a problem of one's own: its files, written and run as printed, one after the other."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "book" / "own_problem.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:python|c)\n(?:#|/\*) ([\w.]+)(?:, continued)?(?: \*/)?\n(.*?)```", PAGE, re.DOTALL)
ASKED = {"with_tensorboard.py": "tensorboardX", "with_wandb.py": "wandb", "with_optuna.py": "optuna"}


PRINTS = r"```python\n# ([\w.]+)\n(?:(?!```).)*```\n\nIt prints[^\n]*:\n\n```text\n(.*?)```"
SHOWN = dict(re.findall(PRINTS, PAGE, re.DOTALL))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder in which the page is followed: what each of its programs printed, and said, by name."""
    return tmp_path_factory.mktemp("room"), {}


def test_the_page_has_its_files():
    names = [name for name, _ in BLOCKS]
    assert names.count("room.py") == 2
    assert len(BLOCKS) == PAGE.count("```python") + PAGE.count("```c\n") == len(set(names)) + 1


@pytest.mark.parametrize("place", range(len(BLOCKS)), ids=[f"{i}-{name}" for i, (name, _) in enumerate(BLOCKS)])
def test_each_block_runs_as_printed(folder, place):
    where, printed = folder
    name, text = BLOCKS[place]
    with (where / name).open("a", encoding="utf-8") as file:
        file.write(text)
    if name in ("room.py", "loop.c"):
        return
    if name in ASKED and importlib.util.find_spec(ASKED[name]) is None and "NEED_RECIPES" not in os.environ:
        pytest.skip(f"{ASKED[name]} is not installed")
    done = subprocess.run([sys.executable, name], cwd=where, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    printed[name] = done.stdout, done.stderr


def said(folder, name):
    if name not in folder[1]:
        pytest.skip(f"{name} has not run: run this whole file")
    return folder[1][name]


def test_what_programs_print_is_shown_below_them(folder):
    assert set(SHOWN) == {"first.py", "repaired.py", "luck.py", "spread.py", "exported.py"}
    for name, text in SHOWN.items():
        assert text in said(folder, name)[0], name


def test_the_blind_agent_is_told_and_the_other_is_better(folder):
    lines = said(folder, "first.py")[0].splitlines()
    assert lines[0].startswith("nearly all observations fall into one cell")
    shares = [float(re.search(r"([\d.]+) of Random's", line).group(1)) for line in lines[1:3]]
    assert shares[1] < 0.5 < shares[0]
    assert all(" in 288 steps" in line for line in lines[1:3])
    assert lines[3].endswith("interpreted")


def test_spaql_r_needs_fewer_samples_and_wins_twice_of_three(folder):
    found = re.findall(r"SPAQL(R?): ([\d,]+) samples, (-\d+) on fresh", said(folder, "repaired.py")[0])
    pairs = list(zip(found[::2], found[1::2], strict=True))
    assert [int(ours[2]) > int(theirs[2]) for ours, theirs in pairs] == [True, True, False]
    for ours, theirs in pairs:
        assert (ours[0], theirs[0]) == ("R", "")
        assert int(ours[1].replace(",", "")) * 10 < int(theirs[1].replace(",", ""))


def test_the_text_repeats_the_numbers_that_are_printed(folder):
    best, fresh = re.search(r"best mean (\S+), (\S+) on", said(folder, "first.py")[0]).groups()
    assert f"The *best mean*, −{-float(best):.0f}, is" in PAGE
    assert f"On 100 fresh episodes the same agent earns −{-float(fresh):.0f}." in PAGE
    few, more = re.findall(r"a mean of N returns (\d+), (\d+) of", said(folder, "spread.py")[0])
    assert few[1] == "7"
    assert "It fails in seven of the 100 fresh episodes." in PAGE
    assert f"The standard deviation of its means of ten, {few[0]}, is" in PAGE
    assert more[1] == "0"
    assert f"the standard deviation of its means of twenty is {more[0]}." in PAGE


def test_the_exported_agent_is_the_compiled_one(folder):
    where, _ = folder
    said(folder, "exported.py")
    blocks = dict(BLOCKS)
    assert 'save("room_compiled.npz")' in blocks["compiled.py"]
    assert 'load("room_compiled.npz")' in blocks["exported.py"]
    assert (where / "room.npz").read_bytes() != (where / "room_compiled.npz").read_bytes()


def test_few_rollouts_claim_more_than_they_keep(folder):
    found = [
        [float(number) for number in re.search(r"best mean (\S+), (\S+) on", line).groups()]
        for line in said(folder, "luck.py")[0].splitlines()
    ]
    excess = [best - fresh for best, fresh in found]
    assert excess[0] > excess[2]


def test_the_log_and_the_checkpoint_are_there(folder):
    lines = said(folder, "watched.py")[0].splitlines()
    assert lines[0].startswith("iteration,rewards,arms")
    assert "10 iterations" in lines[1] or "iterations" in lines[1]


def test_the_grid_has_its_groups(folder):
    assert "SPAQL" in said(folder, "grid.py")[0]


def test_the_machine_code_gives_the_same_bits_and_the_log_names_the_wrapper(folder):
    printed, errors = said(folder, "compiled.py")
    assert printed.startswith("True False True\n")
    assert "its wrapper Hidden hides it" in errors


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_exported_function_keeps_the_room_warm(folder):
    where, _ = folder
    assert "power" in said(folder, "exported.py")[0]
    command = re.search(r"```\n(cc .*)\n\./thermostat\n```", PAGE).group(1)
    subprocess.run(command.split(), cwd=where, check=True)
    shown = subprocess.run([where / "thermostat"], capture_output=True, text=True, check=True).stdout
    assert float(shown.split()[0]) < 1.5
    assert f"```text\n{shown}```" in PAGE
