"""Kept machine code: nobody else's, and made of the sources as they are."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

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


def test_an_edit_in_what_a_users_module_imports_is_noticed(tmp_path, monkeypatch):
    (tmp_path / "kit").mkdir()
    files = {"kit/__init__.py": "", "kit/gains.py": "GAIN = 0.1\n", "kit/pumps.py": "from .gains import GAIN\n"}
    files |= {"basin.py": "import numpy\nfrom kit import pumps\n", "beside.py": ""}
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import basin  # noqa: F401

    before = compiling.reachable_sources("basin")
    assert len(before) < 200  # neither NumPy's sources nor what stands beside
    for name in ("kit/gains.py", "kit/pumps.py", "basin.py"):
        (tmp_path / name).write_text(files[name] + "# changed\n", encoding="utf-8")
        assert compiling.reachable_sources("basin") != before
        (tmp_path / name).write_text(files[name], encoding="utf-8")
    assert compiling.reachable_sources("basin") == before
    monkeypatch.setattr(compiling, "FOREIGN", [*compiling.FOREIGN, tmp_path / "kit"])  # as if it were installed
    before = compiling.reachable_sources("basin")
    os.utime(tmp_path / "kit" / "pumps.py", ns=(1, 1))  # and again
    assert compiling.reachable_sources("basin") != before
    for name in ("basin", "kit", "kit.pumps", "kit.gains"):
        del sys.modules[name]


def test_values_that_machine_code_takes_are_part_of_its_key():
    def heat_of(gain):
        return lambda x: gain * x

    assert compiling.numbers_of(heat_of(0.1)) != compiling.numbers_of(heat_of(0.2))
    assert compiling.numbers_of("slow") != compiling.numbers_of("fast")


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
