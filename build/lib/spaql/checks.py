"""Checks of numbers and seeds that users give, with errors that say what was expected."""

import math
import numbers
from typing import Any

import numpy as np


def check_number(name: str, number: Any, at_least: float = -math.inf, above: float = -math.inf) -> float:
    """Return a finite number within bounds as a float, or say what is wrong with it."""
    bound = f" above {above:g}" if above > -math.inf else f" of at least {at_least:g}"
    if not isinstance(number, numbers.Real) or isinstance(number, bool) or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number{bound}, not {number!r}")
    if number < at_least or number <= above:
        raise ValueError(f"{name} must be a number{bound}, not {number!r}")
    return float(number)


def check_integer(name: str, number: Any, at_least: int = 1) -> int:
    """Return a whole number as an int, or say what is wrong with it."""
    if not isinstance(number, numbers.Integral) or isinstance(number, bool) or number < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, not {number!r}")
    return int(number)


def check_seed(seed: Any) -> np.random.SeedSequence:
    """Return the seed sequence of a seed."""
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    if seed is not None:
        seed = check_integer("seed", seed, at_least=0)
    return np.random.SeedSequence(seed)
