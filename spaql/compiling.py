"""How the hot loops are compiled, and where the machine code is kept between starts."""

import ast
import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numba

# The modules whose code determines the numbers: they are compiled together.
SOURCES = ("compiling", "partition", "systems", "learning")


def fingerprint(sources: tuple[str, ...] = SOURCES, folder: Path = Path(__file__).parent) -> str:
    """Return a hash of what modules compute, the same with every version of Python.

    Code changes it; comments, docstrings, formatting, type hints and the wording of errors do not.
    """
    digest = hashlib.sha256()
    for name in sources:
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        digest.update(repr(_essence(tree)).encode())
    return digest.hexdigest()[:16]


def _essence(node: object) -> object:
    """Return what of a syntax tree determines the program's results, as nested tuples."""
    if isinstance(node, list):
        return tuple(map(_essence, node))
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
        fields["body"] = fields["body"][1:]
    if isinstance(node, ast.Raise):
        fields = {}
    # Newer Pythons have more fields, which are empty in code that older ones understand.
    kept = {k: v for k, v in fields.items() if k not in ("annotation", "returns", "kind") and v not in (None, [])}
    return type(node).__name__, tuple((key, _essence(value)) for key, value in kept.items())


def _cache_folder() -> str:
    """Return a folder of this version of the sources alone.

    Numba looks for changes only in the file of the function it caches, not in those of the functions it calls; a
    folder for each fingerprint makes sure that a change in one module is never answered with old machine code of
    another.
    """
    homes = [Path(__file__).parent / "__pycache__", Path(tempfile.gettempdir()) / "spaql"]
    with contextlib.suppress(RuntimeError):  # not everyone has a home
        homes.insert(1, Path.home() / ".cache" / "spaql")
    for home in homes:
        folder = home / f"compiled-{fingerprint()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return str(folder)
    return ""


_FOLDER = _cache_folder()


# No fast-math anywhere: every operation rounds as IEEE 754 says, so compiled and interpreted runs agree to the last
# bit.
inner = numba.njit(error_model="numpy", nogil=True)
"""Compile a function that compiled functions call."""

inlined = numba.njit(error_model="numpy", nogil=True, forceinline=True)
"""Compile a small function into the compiled functions that call it."""


def entry(function: Callable) -> Callable:
    """Compile a function that Python calls; its machine code is kept for the next start."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _FOLDER
    try:
        return numba.njit(error_model="numpy", nogil=True, cache=bool(_FOLDER))(function)
    finally:
        numba.config.CACHE_DIR = before
