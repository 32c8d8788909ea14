"""Kept machine code: nobody else's, and made of the code as it is."""

import collections
import enum
import importlib
import math
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.extending import overload

from spaql import compiling
from spaql.interrupts import deferred_interrupts


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no owners of files")
def test_the_folder_is_private_or_another_one_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    private_folder = compiling.private_folder.__wrapped__
    first = private_folder("package")
    assert first.parent == tmp_path / "package" / "__pycache__"
    first.chmod(0o720)  # others may write to it
    assert private_folder("package").parent == tmp_path / "cache" / "spaql"
    first.chmod(0o700)
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    assert private_folder("package") is None


def test_a_user_without_a_home_has_the_packages_own_folder(tmp_path, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(compiling.Path, "home", nowhere)
    assert compiling.private_folder.__wrapped__("package").parent == tmp_path / "__pycache__"


def test_an_edit_in_any_module_of_the_package_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path)
    module = tmp_path / "deep" / "tiles.py"
    module.parent.mkdir()
    module.write_text("shift = 2 * i + 1", encoding="utf-8")
    before = compiling.package_digest()
    assert compiling.package_digest() == before
    module.write_text("shift = 2 * i + 3", encoding="utf-8")
    assert compiling.package_digest() != before


PLANT = {
    "kit/__init__.py": "",
    "kit/gains.py": "GAIN = 0.1\n",
    "kit/pumps.py": "from . import gains\n\n\ndef flow(x):\n    return gains.GAIN * x\n",
    "plant.py": "import importlib\nimport numpy as np\nfrom kit import pumps\n\n"
    "late = importlib.import_module('kit.late')\n\n\ndef step(x):\n    return np.sqrt(pumps.flow(x)) + late.loss(x)\n",
    "kit/late.py": "def loss(x):\n    return x in (1, 2)\n",
}


def test_machine_code_is_of_what_was_imported_and_an_edit_makes_it_anew(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "kit").mkdir()

    def made_of(**edits):
        for name, text in PLANT.items():
            old, new = edits.get(Path(name).stem, ("", ""))
            (tmp_path / name).write_text(text.replace(old, new, 1), encoding="utf-8")
        for name in ("plant", "kit", "kit.pumps", "kit.gains", "kit.late"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return compiling.reachable_code(importlib.import_module("plant").step)

    before = made_of()
    assert len(before) < 2000  # NumPy's code is no part of it
    (tmp_path / "kit" / "gains.py").write_text("GAIN = 0.2\n", encoding="utf-8")  # which this process has not seen
    assert compiling.reachable_code(sys.modules["plant"].step) == before
    assert made_of(plant=("", "# a remark\n")) == before
    edits = {"gains": ("0.1", "0.2"), "pumps": ("*", "+"), "late": ("(1, 2)", "(1, 3)"), "plant": ("+", "-")}
    for name, edit in edits.items():
        assert made_of(**{name: edit}) != before


def abs_of(x):
    return abs(x)


GAINS = [2.0, np.float32(2.0), "slow", "fast", (2.0, 3.0), np.array([2.0, 3.0]), np.array([2.0, 4.0])]
GAINS += [(np.zeros(2), np.zeros(3)), (np.zeros(2), np.ones(3)), ("slow", 1, (2, 3)), ("slow", 1, (2, 4))]
GAINS += [math.sin, math.cos, min, max, np.tanh, np.arctan, np.float64, np.float32, [np.float32]]
GAINS += [numba.njit(error_model=model)(abs_of) for model in ("numpy", "python")]
GAINS += [numba.njit(f"float64({kind})")(abs_of) for kind in ("float32", "float64")]
GAINS += [collections.namedtuple("Gains", names)(2.0, 3.0) for names in ("up down", "down up")]


def test_values_that_machine_code_takes_are_part_of_its_key():
    def step_of(gain):
        def heat(x):
            return gain[0] * x

        return lambda x: heat(x)

    made = [compiling.reachable_code(step_of(gain)) for gain in GAINS]
    assert len(set(made)) == len(made)
    assert compiling.reachable_code(step_of(GAINS[-1])) == made[-1]


def test_machine_code_is_neither_kept_nor_used_once_what_it_reads_has_changed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "rated.py").write_text("RATE = 0.5\n\n\ndef rated(x):\n    return RATE * x\n", encoding="utf-8")
    rated = importlib.import_module("rated")
    folder = tmp_path / f"kept-{compiling.digest_of(rated.rated)}"
    folder.mkdir()
    one = compiling.compile_when_called(rated.rated, folder, (rated.rated,))
    assert (one(2), len(list(folder.glob("*.nbc")))) == (1.0, 1)
    rated.RATE = 0.25
    assert (one(2.0), len(list(folder.glob("*.nbc")))) == (0.5, 1)  # of another type, so compiled now
    assert compiling.compile_when_called(rated.rated, folder, (rated.rated,))(2) == 0.5
    rated.RATE = 0.5  # what was compiled meanwhile is still in memory
    assert (one(np.float32(2)), len(list(folder.glob("*.nbc")))) == (1.0, 1)


__LOSS, GAP, COIL = 0.1, numba.vectorize(lambda x: 2 * x), enum.Enum("COIL", {"TURNS": 3})


def test_enums_vectorised_functions_and_names_with_underscores_are_part_of_machine_code(monkeypatch):
    others = {"__LOSS": 0.2, "GAP": numba.vectorize(lambda x: 3 * x), "COIL": enum.Enum("COIL", {"TURNS": 4})}
    made = {compiling.reachable_code(lambda x: __LOSS * COIL.TURNS.value + GAP(x))}
    for name, value in others.items():
        monkeypatch.setitem(globals(), name, value)
        made.add(compiling.reachable_code(lambda x: __LOSS * COIL.TURNS.value + GAP(x)))
    assert len(made) == 4


def interrupt():
    """Ctrl-C, while a function that calls this is compiled."""


@overload(interrupt)
def _interrupt():
    os.kill(os.getpid(), signal.SIGINT)
    return lambda: None


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_ctrl_c_waits_until_nothing_is_lost():
    came = []

    def work():
        with deferred_interrupts() as check:
            os.kill(os.getpid(), signal.SIGINT)
            came.append(ThreadPoolExecutor(1).submit(check).result() or "undisturbed")  # nor is another thread

    with pytest.raises(KeyboardInterrupt):
        work()
    assert came == ["undisturbed"]


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_ctrl_c_does_not_wait_for_machine_code_that_is_being_made():
    @compiling.cached_jit
    def interrupted():
        interrupt()

    with deferred_interrupts(), pytest.raises(KeyboardInterrupt):
        interrupted()


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_ctrl_c_that_has_come_is_raised_before_machine_code_is_made():
    with deferred_interrupts():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            compiling.cached_jit(lambda: pytest.fail("is compiled"))()
