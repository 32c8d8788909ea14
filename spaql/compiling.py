"""How the loops become machine code, and where that is kept between starts.

Of two decorators `cached_jit` is for functions that Python calls as machine code.  A `python_or_jit` function is plain
Python for Python and part of the machine code in machine code: `machine_code` compiles a training loop for one system.
"""

import contextlib
import enum
import functools
import hashlib
import inspect
import logging
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, event, types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic, overload, register_jitable

from spaql.interrupts import deferred_interrupts

log = logging.getLogger(__name__)

# No fast-math anywhere: every operation rounds as IEEE 754 says, so compiled and interpreted runs agree to the last
# bit.  Wrappers that nobody calls take a quarter of the time to compile.
OPTIONS = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}
CALLED = OPTIONS | {"no_cpython_wrapper": True}
INLINED = CALLED | {"forceinline": True}

python_or_jit = register_jitable(**INLINED)


@python_or_jit
def copy_row(array, row, into):
    """Write a row of an array, number by number: an assignment of whole rows compiles for three seconds."""
    for i in range(len(into)):
        into[i] = array[row, i]


def non_owning(value: Any) -> Any:
    """Return a view of an array, or of those in a named tuple, whose references compiled code need not count."""
    return value  # counting costs more than what the hot loops compute; the lender must keep the arrays alive


@intrinsic
def _view(typing_context: Any, value: Any) -> tuple[Any, Callable]:
    """Return the type of a non-owning view, and how to make it."""
    return value(value), lambda context, builder, _, values: _without_owner(context, builder, value, values[0])


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


overload(non_owning, jit_options=INLINED)(lambda value: lambda value: _view(value))


def cached_jit(function: Callable) -> Callable:
    """Compile a function that Python calls, for this start and the next; compiled code takes it as its own part."""
    compiled = compile_when_called(function, private_folder("package"), ())

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled(*arguments)

    overload(call, jit_options=CALLED, strict=False)(lambda *arguments: function)
    return call


@functools.cache
def machine_code(function: Callable, constants: type, parts: tuple[Callable, ...]) -> Callable:
    """Return a `python_or_jit` function compiled for worlds of a system, of which `parts` are its own; it is kept."""
    subject = f"{function.__module__}.{function.__name__} for {constants.__name__}"
    in_file = getattr(sys.modules.get(constants.__module__), "__file__", None)  # not typed in
    made_of = (constants, *parts)
    folder = private_folder(f"{constants.__module__}.{constants.__qualname__}", *made_of) if in_file else None
    return compile_when_called(function, folder, made_of, subject)


class BetweenPasses(event.Listener):
    """Lets Ctrl-C through between two passes of the compiler, which takes long: inside one it would do harm."""

    def __init__(self, check: Callable[[], None]):
        self.check = check

    def on_start(self, event: Any) -> None:
        self.check()

    def on_end(self, event: Any) -> None:
        pass


class Kept(FunctionCache):
    """Machine code in a folder, which is neither used nor added to once something that it is made of has changed."""

    sound: Callable[[], bool]

    def load_overload(self, *arguments: Any) -> Any:
        return super().load_overload(*arguments) if self.sound() else None

    def save_overload(self, *arguments: Any) -> None:
        if self.sound():
            super().save_overload(*arguments)


def compile_when_called(function: Callable, folder: Path | None, made_of: tuple, subject: str = "") -> Callable:
    """Return a function that is compiled when it is called, and kept in a folder; log it if it has a subject."""
    compiled = numba.njit(**OPTIONS)(function)
    compile_now = compiled._compiler.compile

    def compile_aloud(*arguments: Any) -> Any:
        if subject:
            log.warning("compiling %s: some ten seconds, once", subject)
        with deferred_interrupts() as check, event.install_listener("numba:run_pass", BetweenPasses(check)):
            return compile_now(*arguments)

    compiled._compiler.compile = compile_aloud
    if folder is not None:
        with contextlib.suppress(OSError, RuntimeError):  # as of a function that stands in no file
            cache = Kept(function)
            cache.sound = lambda: is_sound(folder, made_of)
            stamp, cache._cache_path = cache._impl.locator.get_source_stamp(), str(folder)
            cache._cache_file = IndexDataCacheFile(cache._cache_path, cache._impl.filename_base, stamp)
            compiled._cache = cache
    return compiled


# Where machine code is kept.  Numba looks for changes only in the file of the function that it keeps, not in those of
# the functions that this one calls: so there is a folder for each digest of all that it can reach.

PACKAGE = Path(__file__).parent
COVERED = {"spaql", "numba", "numpy", "scipy", "gymnasium"}  # packages whose code is not followed


def package_digest() -> bytes:
    """Return a digest of every module of the package."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(PACKAGE.rglob("*.py")))).digest()


CHANGED: set[Path] = set()  # see `is_sound`
PACKAGE_DIGEST = package_digest()  # as this process runs them: a file that is edited later belongs to the next one


@functools.cache
def private_folder(name: str, *parts: Any) -> Path | None:
    """Return a folder for what is compiled from the package and from parts of a user's; None if no folder is safe."""
    # Numba unpickles what it finds there, so the folder must be the user's own, where nobody else can write.
    digest = digest_of(*parts)
    homes = [PACKAGE / "__pycache__"]
    with contextlib.suppress(RuntimeError):  # not everyone has a home
        homes.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spaql")
    for folder in (home / f"{name}-{digest}" for home in homes):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = folder.stat()
            private = os.name == "nt" or (found.st_uid == os.getuid() and not found.st_mode & 0o022)
            if private and os.access(folder, os.W_OK):
                return folder
    log.warning("there is no private folder to keep machine code in: every start compiles")
    return None


def digest_of(*parts: Any) -> str:
    """Return a digest of the package and of all that parts of a user's can reach, as they are now."""
    return hashlib.sha256(PACKAGE_DIGEST + reachable_code(*parts)).hexdigest()[:16]


def is_sound(folder: Path, made_of: tuple) -> bool:
    """Return whether what machine code in a folder is made of has never been seen to change in this process."""
    if not folder.name.endswith(digest_of(*made_of)):
        CHANGED.add(folder)  # for good: functions that were compiled meanwhile stay in memory
    return folder not in CHANGED


def reachable_code(*parts: Any) -> bytes:
    """Return what machine code of some functions is made of: their code, and the code and the values that they name."""
    # Of what this process holds, not of files, which may have been edited since they were imported.
    found: list[Any] = []
    followed = set()  # functions, classes and modules, which may name each other

    def follow(part: Any, names: frozenset[str]) -> None:
        jitted = getattr(part, "_dispatcher", part)  # of a vectorised function
        if hasattr(jitted, "py_func"):
            part = jitted.py_func
            typed = [] if getattr(jitted, "_can_compile", True) else [str(one) for one in jitted.signatures]
            found.append((sorted(jitted.targetoptions.items()), typed))
        part = part.value if isinstance(part, enum.Enum) else part
        if isinstance(part, (tuple, list, frozenset)):
            found.append((len(part), getattr(part, "_fields", ())))
            for one in sorted(part, key=repr) if isinstance(part, frozenset) else part:
                follow(one, names)
        elif isinstance(part, (np.ndarray, np.generic)):
            found.append((part.dtype.str, part.shape, part.tobytes()))
        elif isinstance(part, (str, bytes, int, float, complex)):
            found.append(part)
        elif inspect.iscode(part):
            found.append((part.co_code, part.co_names, part.co_varnames))
            follow(part.co_consts, names)
        elif inspect.isfunction(part) or inspect.isclass(part) or inspect.ismodule(part):
            where = getattr(part, "__module__", None) or part.__name__  # of a module its own name
            if where.partition(".")[0] in COVERED:
                found.append((where, part.__name__))
                return
            if (part, names) in followed:
                return
            followed.add((part, names))
            if inspect.isfunction(part):
                names = frozenset(names_in(part.__code__))
                closure = inspect.getclosurevars(part).nonlocals.values()
                follow([part.__code__, *closure, *(part.__defaults__ or ())], names)
            known = part.__globals__ if inspect.isfunction(part) else vars(part)
            for name in sorted(known if inspect.isclass(part) else names & known.keys()):
                if not (inspect.isclass(part) and name.startswith("__") and name.endswith("__")):
                    follow(known[name], names)
        else:  # as math.sin, and NumPy's functions: which one it is
            found.append((type(part).__name__, getattr(part, "__name__", "")))

    follow(parts, frozenset())
    return repr(found).encode()


def names_in(code: CodeType) -> Iterator[str]:
    """Return the names that code uses, and the code within it."""
    yield from code.co_names
    for inside in filter(inspect.iscode, code.co_consts):
        yield from names_in(inside)
