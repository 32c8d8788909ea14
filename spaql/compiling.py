"""How the loops become machine code, and where that is kept between starts.

Two decorators:

- `cached_jit`: Python calls the function as machine code, which is kept for the next start,
- `python_or_jit`: the function is plain Python where Python calls it, and part of the machine code where that does.

`machine_code` compiles a `python_or_jit` function for one system: the whole training loop, say, on the pendulum.
"""

import ast
import contextlib
import functools
import hashlib
import importlib.util
import logging
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.caching import FunctionCache
from numba.extending import intrinsic, overload, register_jitable

log = logging.getLogger(__name__)

# No fast-math anywhere: every operation rounds as IEEE 754 says, so compiled and interpreted runs agree to the last
# bit.  Wrappers that nobody calls take a quarter of the time to compile.
OPTIONS = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
CALLED = OPTIONS | {"no_cpython_wrapper": True}
INLINED = CALLED | {"forceinline": True}

python_or_jit = register_jitable(**INLINED)  # plain Python for Python, machine code inside machine code

either = inlined = python_or_jit  # former names

PACKAGE = Path(__file__).parent
FOREIGN = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]


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


def non_owning(value: Any) -> Any:
    """Return a non-owning view of an array, or of those in a named tuple: the lender must keep them alive meanwhile.

    Compiled code counts references to an array whenever it is handed on, which in the hot loops costs more than what
    they compute.  Of such a view there is nothing to count.
    """
    return value


@intrinsic
def _view(typing_context: Any, value: Any) -> tuple[Any, Callable]:
    """Return the type of a non-owning view, and how to make it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, value, arguments[0])

    return value(value), generate


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return the machine code of a value of some type, without references to the owners of arrays."""
    if isinstance(kind, types.Array):
        view = context.make_array(kind)(context, builder, value)
        view.meminfo = view.parent = cgutils.get_null_value(view.meminfo.type)
        return view._getvalue()
    for i, part in enumerate(kind.types if isinstance(kind, types.BaseTuple) else ()):
        inside = _without_owner(context, builder, part, builder.extract_value(value, i))
        value = builder.insert_value(value, inside, i)
    return value


@overload(non_owning, jit_options=INLINED)
def _non_owning(value):
    return lambda value: _view(value)


def cached_jit(function: Callable) -> Callable:
    """Compile a function that Python calls; its machine code is kept for the next start.

    Compiled code that calls it compiles it as a part of its own, without what only Python needs.
    """
    if numba.config.DISABLE_JIT:
        return function
    compiled = _compiled(function, _folder("package"))

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled(*arguments)

    overload(call, jit_options=CALLED, strict=False)(lambda *arguments: function)
    return call


entry = cached_jit  # the former name


@functools.cache
def machine_code(function: Callable, system: type) -> Callable:
    """Return a `python_or_jit` function compiled for worlds of a system; its machine code is kept, too."""
    typed = getattr(sys.modules.get(system.__module__), "__file__", None) is None  # into an interpreter
    name = f"{system.__module__}.{system.__qualname__}"
    folder = "" if typed else _folder(name, module_sources(system.__module__))
    return _compiled(function, folder, f"{function.__module__}.{function.__name__} for {system.__name__}")


_one_folder = threading.Lock()  # Numba has one setting for where machine code is kept, whichever thread asks


def _compiled(function: Callable, folder: str, subject: str = "") -> Callable:
    """Compile a function when it is called; log it if it has a subject.  Keep its machine code in a folder, if any."""
    compiled = numba.njit(**OPTIONS)(function)
    if numba.config.DISABLE_JIT:
        return compiled
    compile_now = compiled._compiler.compile

    def compile_aloud(*arguments: Any) -> Any:
        since = time.perf_counter()
        if subject:
            log.warning("compiling %s: some ten seconds, once", subject)
        done = compile_now(*arguments)
        if subject:
            log.warning("compiled in %.0f s", time.perf_counter() - since)
        return done

    compiled._compiler.compile = compile_aloud
    if folder:
        with _one_folder, contextlib.suppress(OSError, RuntimeError):  # as of a function that stands in no file
            before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
            try:
                compiled._cache = Cache(function)
            finally:
                numba.config.CACHE_DIR = before
    return compiled


class Cache(FunctionCache):
    """Numba's cache of machine code, in which a damaged or full folder costs time and nothing else."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for these argument types; None if nothing is, or if it cannot be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # a damaged file makes its reader raise anything
            log.warning("machine code in %s cannot be read (%s): it is compiled again", self.cache_path, error)
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep machine code, if there is room for it."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


@functools.cache
def _folder(name: str, sources: bytes = b"") -> str:
    """Return a folder for machine code made of these sources and the package's alone, or "" if there is no safe one.

    Numba unpickles what it finds there, so the folder must be the user's own, where nobody else can write.
    """
    digest = hashlib.sha256(_package_sources() + sources).hexdigest()[:16]
    homes = [PACKAGE / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # not everyone has a home
        homes.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spaql")
    for folder in (home / f"{name}-{digest}" for home in homes):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.stat()
            private = os.name == "nt" or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
            if private and os.access(folder, os.W_OK):
                return str(folder)
    log.warning("there is no private folder to keep machine code in: every start compiles")
    return ""


# Numba looks for changes only in the file of the function that it caches, not in those of the functions that this one
# calls: so there is a folder for each digest of all that can be reached.


@functools.cache
def _package_sources() -> bytes:
    """Return a digest of every module of the package."""
    found = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        found.update(path.read_bytes())
    return found.digest()


def module_sources(name: str) -> bytes:
    """Return the sources of a module and of what it imports, without the package, Python's own and installed ones."""
    found: dict[str, bytes] = {}
    pending = [name]
    while pending:
        module = sys.modules.get(pending.pop())
        path = getattr(module, "__file__", None)
        if module is None or path is None or path in found or not path.endswith(".py"):
            continue
        if not any(Path(path).is_relative_to(place) for place in (PACKAGE, *FOREIGN)):
            found[path] = Path(path).read_bytes()
            pending += imported(module, found[path])
    return b"\0".join(found[path] for path in sorted(found))


def imported(module: ModuleType, source: bytes) -> Iterator[str]:
    """Yield the names of all that a module may import: modules, and what may be a module in a package."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(base, module.__package__) if node.level else base
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


_package_sources()  # as this process runs them: a file that is edited from now on belongs to the next one
