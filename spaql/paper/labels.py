"""What systems and algorithms are called, how they look, and how numbers are printed, in every figure and table.

The systems' names are the registry's (`spaql.systems`); the algorithms' colours, lines and markers stand here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spaql.policies.interval import Interval, paper_interval
from spaql.systems import REGISTRY, Variable, system_called, title


@dataclass(frozen=True)
class Style:
    """How an algorithm, or another line of a figure, looks."""

    colour: str
    line: str | tuple
    marker: str


STYLES = {
    "Random": Style("#939393", (0, (1, 1.2)), "x"),
    "AQL": Style("#3467d2", (0, (5, 1.5)), "s"),
    "SPAQL": Style("#d08000", "-", "o"),
    "SPAQL-TS": Style("#005e43", (0, (6, 1.5, 1, 1.5)), "^"),
    "SPAQL-R": Style("#5916ca", (0, (12, 1.5)), "*"),
    "TRPO": Style("#1a1a1a", (0, (3, 1, 1, 1, 1, 1)), "D"),
    "TRPO tuned": Style("#c22c16", (0, (2, 1)), "v"),
    "SAC": Style("#10a1bf", (0, (2, 2.5)), "P"),
    "DQN": Style("#641b0c", (0, (6, 1.2, 6, 1.2, 1, 1.2)), "X"),
    "PPO": Style("#a97952", (0, (5, 1, 1, 1, 1, 1, 1, 1)), "h"),
}

OTHERS = (  # styles of what is no algorithm of the book's
    Style("#aa4499", "-", "P"),
    Style("#56b4e9", (0, (4, 1.2, 1, 1.2, 1, 1.2)), "X"),
    Style("#d55e00", (0, (1.5, 1)), "*"),
    Style("#b8860b", (0, (8, 2)), "h"),
)

ORDER = ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0")  # of the paper's systems in the book

SYSTEM_NAMES = {env_id: title(env_id) for system in REGISTRY.values() for env_id in system.titles}


def system_name(env_id: str) -> str:
    """Return the name of the system that an environment is a variant of; its id if no system knows it."""
    system = system_called(env_id)
    return env_id if system is None else system.name


def variant(env_id: str) -> str:
    """Return what an environment's title adds to the name of its system: "five torques", or nothing."""
    return title(env_id).removeprefix(system_name(env_id)).lstrip(",- ").strip("()")


def formulas(observed: Sequence[str]) -> dict[str, str]:
    """Return the symbols of observed variables by name, of the system that observes just these."""
    systems = (s for s in REGISTRY.values() if [variable.name for variable in s.observed] == list(observed))
    return {variable.name: variable.formula for system in systems for variable in system.observed}


def axis_label(variable: Variable) -> str:
    """Return what an axis says of a variable: its name, symbol and unit, "pole angle θ (rad)"."""
    return " ".join(filter(None, (variable.words or variable.name, variable.symbol, in_brackets(variable.unit))))


def in_brackets(unit: str) -> str:
    """Return a unit in brackets, or nothing if there is none."""
    return f"({unit})" if unit else ""


def present(frame: pd.DataFrame) -> list[str]:
    """Return the algorithms of a frame, in the order every figure has them in."""
    there = set(frame.algorithm.unique())
    return [name for name in STYLES if name in there]


def thin(count: int, points: int = 160) -> np.ndarray:
    """Return which of many points of a curve to draw: the first ones, the last one, and evenly in between."""
    return np.unique(np.concatenate((np.arange(min(count, 20)), np.linspace(0, count - 1, points).astype(int))))


# ---------------------------------------------------------------------------------------------------------------------
# Numbers as text


def listed(parts: Sequence[str]) -> str:
    """Return parts of a sentence as one: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else "none"


def number(value: float, digits: int = 2) -> str:
    """Return a number as text, with a proper minus sign, none before a zero, and thousands apart."""
    return f"{value:z,.{digits}f}".replace("-", "−")


def plus_minus(mean: float, half: float, digits: int = 2) -> str:
    """Return a mean and its half-interval as text."""
    return f"{number(mean, digits)} ± {number(half, digits)}"


def spread(values: ArrayLike, digits: int = 2) -> str:
    """Return the mean of values with the paper's interval, as text."""
    interval = paper_interval(values)
    return plus_minus(interval.mean, interval.high - interval.mean, digits)


def between(interval: Interval, digits: int = 1) -> str:
    """Return a mean with the ends of its interval, as text."""
    return f"{number(interval.mean, digits)} [{number(interval.low, digits)}, {number(interval.high, digits)}]"


def p_value(p: float) -> str:
    """Return a p-value as text."""
    if math.isnan(p):
        return ""
    if p < 1e-15:
        return "p <\u00a010⁻¹⁵"  # not broken at the end of a line
    if p >= 0.001:
        return f"p = {p:.3f}"
    mantissa, exponent = f"{p:.0e}".split("e")
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"p = {mantissa}\u00a0·\u00a010{power}"


def small(p: float) -> str:
    """Return a p-value in few characters."""
    return p_value(p).removeprefix("p").removeprefix(" = ").strip()
