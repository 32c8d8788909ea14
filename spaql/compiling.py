"""How the hot loops are compiled, and where the machine code is kept between starts.

A compiled function is one of four kinds:

- `inner` and `inlined` ones are called by compiled functions,
- `entry` ones are called by Python, and their machine code is kept for the next start,
- `either` ones are plain Python where Python calls them, and part of the machine code where that does.

`machine_code` compiles an `either` function for one system: the whole training loop, say, on the pendulum.
"""

import contextlib
import functools
import glob
import hashlib
import logging
import os
import shutil
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, ClassVar

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic, overload, register_jitable

try:
    import fcntl
except ImportError:  # Windows has no such locks: two processes may compile the same function
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger(__name__)

# No fast-math anywhere: every operation rounds as IEEE 754 says, so compiled and interpreted runs agree to the last
# bit.  Nothing here is called from C, and compiling what that would need takes a tenth of the time.
OPTIONS = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
INLINED = OPTIONS | {"forceinline": True}

inner = numba.njit(**OPTIONS)
"""Compile a function that compiled functions call."""

inlined = numba.njit(**INLINED)
"""Compile a small function into the compiled functions that call it."""

either = register_jitable(**INLINED)
"""Leave a function plain Python for Python, and compile it into the compiled functions that call it."""

PACKAGE = Path(__file__).parent


def records(count: int, dtype: np.dtype) -> np.ndarray:
    """Return an array of empty records, in the form in which the kernels read their fields as attributes.

    Machine code does so with any array; plain Python, with Numba switched off, needs a record array.
    """
    empty = np.zeros(count, dtype)
    return empty.view(np.recarray) if numba.config.DISABLE_JIT else empty


def lengthened(array: np.ndarray, more: int) -> np.ndarray:
    """Return a copy of an array with room for more rows.

    Machine code copies them one by one: NumPy's `concatenate` takes much longer to compile.
    """
    return np.concatenate((array, np.empty((more, *array.shape[1:]), array.dtype))).view(type(array))


@overload(lengthened, jit_options=OPTIONS)
def _overload_lengthened(array, more):
    def records_copied(array, more):
        longer = np.empty(len(array) + more, array.dtype)
        for i in range(len(array)):
            longer[i] = array[i]
        return longer

    def rows_copied(array, more):
        longer = np.empty((len(array) + more, array.shape[1]), array.dtype)
        for i in range(len(array)):
            for j in range(array.shape[1]):
                longer[i, j] = array[i, j]
        return longer

    return records_copied if array.ndim == 1 else rows_copied


def borrowed(array: Any) -> Any:
    """Return an array without a share in keeping it alive, which whoever lends it does for as long as it is used.

    Compiled code counts references to an array whenever it is handed on.  In the hot loops that costs more than what
    they compute; of a borrowed array there is nothing to count.  Of a named tuple all arrays are borrowed.
    """
    return array


@intrinsic
def _borrow(typing_context: Any, array: Any) -> tuple[Any, Callable]:
    """Return the type of a borrowed array, and how to make it: without the reference to its owner."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _lend(context, builder, array, arguments[0])

    return array(array), generate


def _lend(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the machine code of a borrowed value of some type."""
    if isinstance(kind, types.Array):
        lent = context.make_array(kind)(context, builder, value)
        lent.meminfo = lent.parent = cgutils.get_null_value(lent.meminfo.type)
        return lent._getvalue()
    for i, part in enumerate(kind.types if isinstance(kind, types.BaseTuple) else ()):
        value = builder.insert_value(value, _lend(context, builder, part, builder.extract_value(value, i)), i)
    return value


@overload(borrowed, jit_options=INLINED)
def _borrowed(array):
    return lambda array: _borrow(array)


def entry(function: Callable) -> Callable:
    """Compile a function that Python calls; its machine code is kept for the next start."""
    return _cached(function, _folder("package"))


@functools.cache
def machine_code(function: Callable, system: type) -> Callable:
    """Return an `either` function compiled for worlds of a system, whose machine code is kept for the next start."""
    folder = _folder(f"{system.__module__}.{system.__qualname__}", _source_of(system))
    return _cached(function, folder, f"{function.__module__}.{function.__name__} for {system.__name__}")


class Spent:
    """How many seconds of this process went into compiling what takes so long that it is said."""

    seconds = 0.0
    until = 0.0  # the end of the last of it: threads that wait for each other are not counted twice

    def add(self, since: float) -> float:
        """Add the time since then, and return how long that was."""
        now = time.perf_counter()
        self.seconds += now - max(since, self.until)
        self.until = now
        return now - since


spent = Spent()


PATIENCE = 120.0  # seconds to wait for another process


class Cache(FunctionCache):
    """Numba's cache of machine code, in which a damaged or full folder costs time and nothing else."""

    subject = ""  # what is compiled, where that takes so long that it is said
    since = 0.0
    turn: IO | None = None  # a file that is locked while this process compiles
    said: ClassVar[bool] = False  # whether this process has said that it compiles

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for these argument types; None, after a word on it, if it cannot be read."""
        try:
            kept = super().load_overload(sig, target_context)
            if kept is None:
                self.take_turn()
                kept = super().load_overload(sig, target_context)  # by another process, meanwhile
                self.say_compiling() if kept is None else self.end_turn()
            return kept
        except Exception as error:  # a damaged file makes its reader raise anything
            log.warning("machine code in %s cannot be read (%s): it is compiled again", self.cache_path, error)
            for file in Path(self.cache_path).glob("*.nb[ic]"):
                file.unlink(missing_ok=True)
            self.say_compiling()
            return None

    def take_turn(self) -> None:
        """Wait while another process compiles the same function, for as long as that may take."""
        self.end_turn()
        if fcntl is None:
            return
        with contextlib.suppress(OSError):
            self.turn = Path(self.cache_path, f"{self._impl.filename_base}.lock").open("wb")  # noqa: SIM115 (until the end of the turn)
        until = time.monotonic() + PATIENCE
        while self.turn and time.monotonic() < until:
            try:
                return fcntl.flock(self.turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                time.sleep(0.1)

    def end_turn(self) -> None:
        """Let other processes go on."""
        if self.turn:
            self.turn.close()
            self.turn = None

    def say_compiling(self) -> None:
        """Say what is compiled, and how long that takes; of what Python calls, all of it at once."""
        self.since = time.perf_counter()
        if self.subject or not Cache.said:
            log.warning("compiling %s: up to half a minute, once", self.subject or "what Python calls")
        Cache.said = True

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, if there is room for it."""
        seconds = spent.add(self.since)
        if self.subject:
            log.warning("compiled in %.0f s", seconds)
        try:
            super().save_overload(sig, data)
        except OSError as error:
            log.warning("machine code cannot be kept in %s (%s): the next start compiles again", self.cache_path, error)
        finally:
            self.end_turn()


_one_folder = threading.Lock()  # Numba has one setting for where machine code is kept, whichever thread asks


def _cached(function: Callable, folder: str, subject: str = "") -> Callable:
    """Compile a function; its machine code is kept in a folder, if there is one.  It is said if it has a subject."""
    compiled = numba.njit(**OPTIONS)(function)
    if folder and not numba.config.DISABLE_JIT:
        with _one_folder:
            before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
            try:
                compiled._cache = Cache(function)
                compiled._cache.subject = subject
            except (OSError, RuntimeError) as error:  # no place for it: it is compiled at every start
                log.warning("machine code cannot be kept in %s (%s)", folder, error)
            finally:
                numba.config.CACHE_DIR = before
    return compiled


@functools.cache
def _folder(name: str, source: bytes = b"") -> str:
    """Return a folder for machine code of this version of the sources alone, or "" if there is no safe one.

    Numba looks for changes only in the file of the function it caches, not in those of the functions it calls; a
    folder for each hash of all sources makes sure that a change in one module is never answered with old machine code
    of another.  Numba unpickles what it finds there, so the folder must be the user's own, where nobody else can write.
    Folders of the same name for other sources, which no start has used for a month, are removed.
    """
    digest = hashlib.sha256(_sources() + source).hexdigest()[:16]
    homes = [PACKAGE / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # not everyone has a home
        homes.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spaql")
    for home in homes:
        folder = home / f"{name}-{digest}"
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if _is_private(folder) and os.access(folder, os.W_OK):
                _remove_unused(folder)
                return str(folder)
        except OSError:
            continue
    log.warning("there is no folder of your own to keep machine code in: every start compiles for half a minute")
    return ""


MONTH = 30 * 24 * 3600  # seconds


def _remove_unused(folder: Path) -> None:
    """Mark a folder of machine code as used now; remove those for other sources that were not used for a month."""
    with contextlib.suppress(OSError):  # another start may do the same
        os.utime(folder)
        name = folder.name.rpartition("-")[0]
        for other in folder.parent.glob(f"{glob.escape(name)}-{16 * '[0-9a-f]'}"):
            if time.time() - other.stat().st_mtime > MONTH:
                shutil.rmtree(other, ignore_errors=True)


def _is_private(folder: Path) -> bool:
    """Return whether a folder is the user's own and no one else may write to it."""
    if not hasattr(os, "getuid"):  # Windows has no such owners
        return True
    found = folder.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


@functools.cache
def _sources() -> bytes:
    """Return the text that all machine code is made of."""
    kernels = (
        *("compiling", "partition", "rules", "spaces", "updates", "loop", "replay", "tileq", "spaqlr"),
        *("systems/registry", "systems/worlds", "systems/arithmetic"),
        *("policies/tree", "policies/policy", "policies/play"),
    )
    return b"".join((PACKAGE / f"{name}.py").read_bytes() for name in kernels)


def _source_of(system: type) -> bytes:
    """Return the text of the file that a system stands in; nothing if it was typed into an interpreter."""
    path = getattr(sys.modules.get(system.__module__), "__file__", None)
    return Path(path).read_bytes() if path else b""


_sources()  # as this process runs them: a file that is edited from now on belongs to the next one
