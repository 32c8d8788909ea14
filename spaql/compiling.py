"""How the hot loops are compiled, and where the machine code is kept between starts."""

import ast
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numba

# The modules whose code determines the numbers: they are compiled together.
SOURCES = ("partition", "systems", "learning")


def fingerprint(sources: tuple[str, ...] = SOURCES, folder: Path = Path(__file__).parent) -> str:
    """Return a hash of what modules compute.

    Code changes it; comments, docstrings, formatting, type hints and the wording of errors do not.
    """
    digest = hashlib.sha256()
    for name in sources:
        tree = ast.parse((folder / f"{name}.py").read_text(encoding="utf-8"))
        digest.update(ast.dump(_Essence().visit(tree)).encode())
    return digest.hexdigest()[:16]


class _Essence(ast.NodeTransformer):
    """Leaves of a program what determines its results."""

    def visit(self, node):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.Raise):
            return ast.Raise()
        return self.generic_visit(node)


def _cache_folder() -> str:
    """Return a folder of this version of the sources alone.

    Numba looks for changes only in the file of the function it caches, not in those of the functions it calls; a
    folder for each fingerprint makes sure that a change in one module is never answered with old machine code of
    another.
    """
    homes = (
        Path(__file__).parent / "__pycache__",
        Path.home() / ".cache" / "spaql",
        Path(tempfile.gettempdir()) / "spaql",
    )
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


def entry(function: Callable, **options) -> Callable:
    """Compile a function that Python calls; its machine code is kept for the next start."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, _FOLDER
    try:
        return numba.njit(error_model="numpy", nogil=True, cache=bool(_FOLDER), **options)(function)
    finally:
        numba.config.CACHE_DIR = before
