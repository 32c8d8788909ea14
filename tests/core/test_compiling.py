"""Kept machine code: nobody else's, made of the sources as they are, and worth some time but never a failure."""

import logging
import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from spaql import compiling
from spaql.interrupts import deferred_interrupts


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """A package folder and a cache folder of this test's own, which no other test has looked for."""
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("_folder", "_package_sources"):
        monkeypatch.setattr(compiling, name, getattr(compiling, name).__wrapped__)
    (tmp_path / "package").mkdir()
    return tmp_path / "package" / "__pycache__", tmp_path / "cache" / "spaql"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no owners of files")
def test_the_folder_is_private_or_another_one_is_taken(homes, monkeypatch):
    first = Path(compiling._folder("package"))
    assert first.parent == homes[0]
    first.chmod(0o720)  # others may write to it
    assert Path(compiling._folder("package")).parent == homes[1]
    first.chmod(0o700)
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    assert compiling._folder("package") == ""


def test_an_edit_in_any_module_of_the_package_is_noticed(homes, tmp_path):
    module = tmp_path / "package" / "deep" / "tiles.py"
    module.parent.mkdir()
    module.write_text("shift = 2 * i + 1", encoding="utf-8")
    before = compiling._folder("package")
    assert compiling._folder("package") == before
    module.write_text("shift = 2 * i + 3", encoding="utf-8")
    assert compiling._folder("package") != before


def test_an_edit_in_what_a_users_module_imports_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "kit").mkdir()
    files = {"kit/__init__.py": "", "kit/gains.py": "GAIN = 0.1\n", "kit/pumps.py": "from .gains import GAIN\n"}
    files |= {"basin.py": "import numpy\nfrom kit import pumps\n", "beside.py": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import basin  # noqa: F401

    before = compiling.module_sources("basin")
    assert len(before) < 200  # neither NumPy's sources nor what stands beside
    for name in ("kit/gains.py", "kit/pumps.py", "basin.py"):
        (tmp_path / name).write_text(files[name] + "# changed\n", encoding="utf-8")
        assert compiling.module_sources("basin") != before
        (tmp_path / name).write_text(files[name], encoding="utf-8")
    assert compiling.module_sources("basin") == before
    for name in ("basin", "kit", "kit.pumps", "kit.gains"):
        del sys.modules[name]


def doubled(x):
    return 2 * x + 1


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [lambda whole: whole[: len(whole) // 2], lambda whole: b"\x93" * 500])
def test_damaged_machine_code_is_compiled_again(tmp_path, caplog, kind, damage):
    def hits():
        compiled = compiling._compiled(doubled, str(tmp_path))
        assert compiled(3) == 7
        return sum(compiled.stats.cache_hits.values())

    assert (hits(), hits()) == (0, 1)
    [file] = tmp_path.rglob(f"*.{kind}")
    file.write_bytes(damage(file.read_bytes()))
    with caplog.at_level(logging.WARNING, "spaql.compiling"):
        assert hits() == 0
    assert "cannot be read" in caplog.text
    assert hits() == 1


def test_a_function_is_the_same_for_python_and_for_machine_code(tmp_path):
    @compiling.python_or_jit
    def squared(x):
        return x * x

    @compiling.cached_jit
    def summed(numbers, start=1.0):
        for x in numbers:
            start += squared(x)
        return start

    @compiling.cached_jit
    def twice(numbers):
        return summed(numbers) + summed(numbers, 0.0)

    assert twice(np.arange(4.0)) == 29.0
    assert summed(np.arange(4.0)) == 15.0
    assert squared(3.0) == 9.0


@pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")
def test_ctrl_c_waits_until_nothing_is_lost():
    came = []

    def work():
        with deferred_interrupts():
            os.kill(os.getpid(), signal.SIGINT)
            came.append("undisturbed")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert came == ["undisturbed"]
