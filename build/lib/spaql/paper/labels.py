"""What systems and algorithms are called and how they look in every figure and table of the book."""

from typing import NamedTuple

from spaql.systems import REGISTRY


class Style(NamedTuple):
    """How an algorithm looks."""

    colour: str
    line: str | tuple
    marker: str


STYLES = {
    "Random": Style("#8c8c8c", (0, (1, 1.2)), "x"),
    "AQL": Style("#0072b2", (0, (5, 1.5)), "s"),
    "SPAQL": Style("#e69f00", "-", "o"),
    "SPAQL-TS": Style("#00664b", (0, (6, 1.5, 1, 1.5)), "^"),
    "TRPO": Style("#1a1a1a", (0, (3, 1, 1, 1, 1, 1)), "D"),
    "TRPO tuned": Style("#cc79a7", (0, (2, 1)), "v"),
}

SYSTEM_NAMES = {name: title for system in REGISTRY.values() for name, title in system.titles.items()}
