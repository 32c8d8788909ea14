"""What systems and algorithms are called and how they look: the one table behind every figure and table of the book.

The systems' names are the registry's (`spaql.systems`); the algorithms' colours, lines and markers stand here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
