"""Means with their intervals."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Interval(NamedTuple):
    """An estimate with the ends of its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} [{self.low:.2f}, {self.high:.2f}]"


def numbers(values: ArrayLike, at_least: int = 1) -> np.ndarray:
    """Return values as a one-dimensional array of finite floats, or say what is wrong with them."""
    array = np.asarray(values, float)
    if array.ndim != 1 or array.size < at_least or not np.all(np.isfinite(array)):
        raise ValueError(f"expected at least {at_least} finite numbers in one dimension, not {array!r}")
    return array


def worst_mean(values: ArrayLike, share: float = 0.05) -> float:
    """Return the mean of the worst share of the values, at least of one."""
    values = np.sort(numbers(values))
    return float(values[: max(1, round(share * len(values)))].mean())


def paper_interval(values: ArrayLike) -> Interval:
    """Return the mean with the paper's interval, 1.96 population standard deviations over √n to either side."""
    values = numbers(values)
    mean, half = float(values.mean()), float(1.96 * values.std() / np.sqrt(values.size))
    return Interval(mean, mean - half, mean + half)
