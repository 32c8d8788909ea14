"""Checks of numbers and seeds that users give, with errors that say what was expected."""

import importlib
import keyword
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

C_KEYWORDS = (
    *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
    *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
    *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
)


def check_name(what: str, name: Any) -> str:
    """Return a name that exported Python and C can have, or say what is wrong with it."""
    fits = isinstance(name, str) and name.isidentifier() and name.isascii()
    if not fits or keyword.iskeyword(name) or name in C_KEYWORDS:
        raise ValueError(f"{what} must be a name that programs in Python and C can have, as x_dot, not {name!r}")
    return name


def load(package: str) -> Any:
    """Return a package that not every use needs, or say how to get it."""
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"this needs {error.name}: pip install {error.name}", name=error.name) from None


Seed = int | np.random.SeedSequence | None
MOST = 10**9  # of anything that is counted, unless said otherwise: more would take years, or all memory


def check_number(
    name: str, number: Any, at_least: float = -math.inf, above: float = -math.inf, at_most: float = math.inf
) -> float:
    """Return a finite number within bounds as a float, or say what is wrong with it."""
    bound = f" above {above:g}" if above > -math.inf else f" of at least {at_least:g}" if at_least > -math.inf else ""
    bound += f" and at most {at_most:g}" if at_most < math.inf else ""
    if not isinstance(number, numbers.Real) or isinstance(number, bool) or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number{bound}, not {shown(number)}")
    if number < at_least or number <= above or not number <= at_most:
        raise ValueError(f"{name} must be a number{bound}, not {number!r}")
    return float(number)


def check_integer(name: str, number: Any, at_least: int = 1, at_most: int | None = MOST) -> int:
    """Return a whole number as an int, 1e4 as well as 10_000, or say what is wrong with it."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, numbers.Integral) or isinstance(number, bool) or number < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, not {shown(number)}")
    if at_most is not None and int(number) > at_most:
        raise ValueError(f"{name} must be a whole number of at most {at_most:,}, not {shown(number)}")
    return int(number)


def shown(given: Any) -> str:
    """Return how a message shows what was given: whole, unless it would fill the screen."""
    text = repr(given)
    return text if len(text) <= 200 else f"{text[:200]}…"


def check_seed(seed: Any, key: Sequence[int] = ()) -> np.random.SeedSequence:
    """Return the seed sequence of a seed; one of another entropy than a whole number would take long to spread."""
    if isinstance(seed, np.random.SeedSequence):
        seed, key = seed.entropy, seed.spawn_key
    if seed is not None:
        seed = check_integer("seed", seed, at_least=0, at_most=2**128 - 1)
    if len(key) > 100:
        raise ValueError(f"the spawn key of a seed has {len(key)} numbers; expected at most 100")
    return np.random.SeedSequence(seed, spawn_key=tuple(key))
