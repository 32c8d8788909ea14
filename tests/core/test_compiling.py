"""The folder of machine code: nobody else's, and worth some time but never a failure."""

import logging
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import pytest

from spaql import compiling

MODES = (0o777, 0o720, 0o702)  # of folders that others may write to

owners = pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no owners of files")


@pytest.fixture
def homes(tmp_path, monkeypatch):
    """A package folder and a cache folder of this test's own, which no other test has looked for."""
    monkeypatch.setattr(compiling, "PACKAGE", tmp_path / "package")
    monkeypatch.setattr(compiling, "_sources", lambda: b"")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(compiling, "_folder", compiling._folder.__wrapped__)
    return tmp_path / "package" / "__pycache__", tmp_path / "cache" / "spaql"


@owners
def test_the_folder_of_machine_code_is_the_users_own(homes):
    folder = Path(compiling._folder("package"))
    assert folder.parent == homes[0]
    assert folder.stat().st_mode & 0o777 == 0o700


def test_machine_code_that_no_start_used_for_a_month_is_removed(homes):
    month = 30 * 24 * 3600
    used, other = Path(compiling._folder("package")), Path(compiling._folder("package", b"another version"))
    (other / "code.nbc").touch()
    (homes[0] / "agent.cpython-311.pyc").touch()
    (homes[0] / "somebody's folder").mkdir()
    system = Path(compiling._folder("cartpole.CartPole", b"source"))  # used rarely, and of the same version
    for path in homes[0].iterdir():
        os.utime(path, (0, time.time() - month - 60))
    os.utime(other, (0, time.time() - month + 60))
    compiling._folder("package")
    assert used.exists()  # by this start
    assert other.exists()
    os.utime(other, (0, time.time() - month - 60))
    compiling._folder("package")
    assert {path.name for path in homes[0].iterdir()} == {
        used.name,
        system.name,
        "agent.cpython-311.pyc",
        "somebody's folder",
    }


@owners
def test_a_folder_that_others_may_write_to_is_not_used(homes):
    first = Path(compiling._folder("package"))
    for mode in MODES:
        first.chmod(mode)
        assert Path(compiling._folder("package")).parent == homes[1], oct(mode)
    first.chmod(0o700)
    assert compiling._folder("package") == str(first)


@owners
def test_a_folder_of_somebody_else_is_not_used_and_there_is_none_below_the_temporary_folder(
    homes, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "shared"))
    (tmp_path / "shared").mkdir()
    somebody = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: somebody)
    with caplog.at_level(logging.WARNING):
        assert compiling._folder("package") == ""
    assert "every start compiles" in caplog.text
    assert list((tmp_path / "shared").iterdir()) == []


def test_a_package_folder_that_cannot_be_written_to_is_no_harm(homes):
    homes[0].parent.mkdir()
    homes[0].touch()  # a file where the folder should be: nobody can make it, root neither
    assert Path(compiling._folder("package")).parent == homes[1]


def doubled(x):
    return 2 * x + 1


def compiled(folder, caplog):
    """Use machine code as a new process would; return the warnings."""
    caplog.clear()
    with caplog.at_level(logging.WARNING, "spaql.compiling"):
        found = compiling._cached(doubled, str(folder))
        assert found(3) == 7
    return found, [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", ["cut", "garbage", "empty"])
def test_damaged_machine_code_is_compiled_again_and_that_is_said_once(tmp_path, caplog, kind, damage):
    compiled(tmp_path, caplog)
    [file] = tmp_path.rglob(f"*.{kind}")
    whole = file.read_bytes()
    file.write_bytes({"cut": whole[: len(whole) // 2], "garbage": b"\x93" * 500, "empty": b""}[damage])
    found, said = compiled(tmp_path, caplog)
    assert len(said) == 1
    assert "cannot be read" in said[0]
    assert "it is compiled again" in said[0]
    assert sum(found.stats.cache_hits.values()) == 0
    found, said = compiled(tmp_path, caplog)
    assert said == []
    assert sum(found.stats.cache_hits.values()) == 1


def test_a_full_disk_costs_the_next_start_some_time_and_nothing_else(tmp_path, caplog, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("numba.core.caching.IndexDataCacheFile.save", full)
        _, said = compiled(tmp_path, caplog)
    assert len(said) == 1
    assert "No space left on device" in said[0]
    assert "the next start compiles again" in said[0]
    found, said = compiled(tmp_path, caplog)
    assert said == []
    assert sum(found.stats.cache_misses.values()) == 1


def test_importing_the_package_needs_no_temporary_folder(tmp_path):
    nowhere = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), str(tmp_path / "nowhere"))
    code = """
import tempfile
def none():
    raise FileNotFoundError("there is no temporary folder")
tempfile._get_default_tempdir = none
import spaql
print(len(spaql.SPAQL("CartPole-v0", xi=4, seed=0).learn(2, 1).history))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | nowhere)
    assert (done.returncode, done.stdout.strip()) == (0, "2"), done.stderr


def double(x):
    return 2.0 * x


def test_what_takes_long_to_compile_is_said_with_the_time_it_took(tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        assert compiling._cached(double, str(tmp_path), "doubling for nobody")(2.0) == 4.0
        first, second = [record.getMessage() for record in caplog.records]
        assert first == "compiling doubling for nobody: up to half a minute, once"
        assert second.startswith("compiled in ")
        caplog.clear()
        assert compiling._cached(double, str(tmp_path), "doubling for nobody")(2.0) == 4.0  # kept, so not said
        assert compiling._cached(double, str(tmp_path / "other"))(2.0) == 4.0  # too short to be worth a word
        assert not caplog.records


def test_threads_keep_machine_code_each_in_its_own_folder(monkeypatch, tmp_path):
    class Slow(compiling.Cache):
        def __init__(self, function):
            time.sleep(0.02)  # so that the threads would come between each other
            super().__init__(function)

    def twice(x):
        return 2 * x

    monkeypatch.setattr(compiling, "Cache", Slow)
    folders, before = [str(tmp_path / str(i)) for i in range(8)], numba.config.CACHE_DIR
    with ThreadPoolExecutor(4) as pool:
        compiled = list(pool.map(lambda folder: compiling._cached(twice, folder), folders))
    assert [str(Path(one._cache.cache_path).parent) for one in compiled] == folders
    assert before == numba.config.CACHE_DIR


def test_what_another_process_compiles_is_waited_for(tmp_path):
    code = """
import sys
from spaql import compiling
from tests.core.test_compiling import double
function = compiling._cached(double, sys.argv[1])
assert function(2.0) == 4.0
print(sum(function.stats.cache_misses.values()))
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert sum(int(process.communicate()[0]) for process in both) == 1


def test_compiling_what_python_calls_is_said_once_and_counted(homes, monkeypatch, caplog):
    monkeypatch.setattr(compiling.Cache, "said", False)
    monkeypatch.setattr(compiling, "spent", compiling.Spent())
    functions = [compiling.entry(function) for function in (lambda x: x + 1.0, lambda x: x - 1.0)]
    assert [function(1.0) for function in functions] == [2.0, 0.0]
    assert [record.message for record in caplog.records] == ["compiling what Python calls: up to half a minute, once"]
    assert compiling.spent.seconds > 0.0  # which no progress bar expects again
