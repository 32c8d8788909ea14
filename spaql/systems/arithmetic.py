"""Squares and angles as NumPy computes them, to the last bit, but faster."""

import math

import numpy as np
from numba import types
from numba.extending import overload

from spaql.compiling import INLINED, python_or_jit

# The C library's own: LLVM's `pow`, which it takes for cheap, costs a run on the pendulum a fifth of its time.
_pow = types.ExternalFunction("pow", types.float64(types.float64, types.float64))
_powf = types.ExternalFunction("powf", types.float32(types.float32, types.float32))


def power(y: float, exponent: float) -> float:
    """Return y to a power, by the C library's pow()."""
    return math.pow(y, exponent)


def power32(y: np.float32, exponent: np.float32) -> np.float32:
    """Return a float32 to a power, by the C library's powf()."""
    return np.float32(y) ** np.float32(exponent)


overload(power, jit_options=INLINED)(lambda y, exponent: lambda y, exponent: _pow(y, exponent))
overload(power32, jit_options=INLINED)(lambda y, exponent: lambda y, exponent: _powf(y, exponent))


@python_or_jit
def square(y, two):
    """Return pow(y, 2), as NumPy squares its scalars; `two` is an argument, lest the compiler make it y * y."""
    # Where the exact square is far from the middle between two floats, every sound pow() rounds it to y * y, and the
    # slow call is not needed.  Dekker's exact error of the product: y * y = product + error.
    product = y * y
    scaled = 134217729.0 * y
    high = scaled - (scaled - y)
    low = y - high
    error = ((high * high - product) + 2.0 * high * low) + low * low
    if product + 1.125 * error == product:  # more than 0.05 of a unit in the last place away from the middle
        return product
    return power(y, two)


@python_or_jit
def square32(y, two):
    """`square` for a float32, for which only exact squares spare the call."""
    product = np.float64(y) * np.float64(y)
    if np.float32(product) == product:
        return np.float32(product)
    return power32(y, np.float32(two))


@python_or_jit
def principal(theta):
    """The angle in [-π, π): (θ + π) mod 2π - π, without the slow fmod() where a subtraction gives the same bits."""
    angle = theta + math.pi
    if angle >= 2 * math.pi:
        angle = angle - 2 * math.pi if angle < 4 * math.pi else angle % (2 * math.pi)
    elif angle < 0.0:
        angle = angle + 2 * math.pi if angle > -2 * math.pi else angle % (2 * math.pi)
    return angle - math.pi
