"""A table with its caption, and numbers as text."""

import math
import re
from collections.abc import Sequence
from typing import Any

import pandas as pd
from numpy.typing import ArrayLike

from spaql.policies.interval import Interval, clipped, paper_interval
from spaql.systems import possible_returns

LINE = 115  # characters that a row of a table has room for if its cells do not wrap


class Table:
    """A frame with a caption: a numbered table in the book, an HTML table in Jupyter, text in a terminal."""

    def __init__(
        self, frame: pd.DataFrame, caption: str, name: str, note: str = "", words: bool = False, filtered: bool = False
    ):
        self.frame, self.caption, self.name = frame, caption, name
        self.note = note  # a paragraph below it
        self.words = words  # cells are sentences, not numbers
        self.filtered = filtered  # a reader can choose rows, see filter.js

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", self.frame.map(without_badges).to_html(index=False, border=0))
        return {
            "text/markdown": self.myst(),
            "text/html": html.replace("<thead>", f"<caption>{self.caption}</caption><thead>", 1)
            + f"<p>{self.note}</p>",
            "text/plain": f"{self.caption}\n{self.frame.map(without_badges).to_string(index=False)}\n{self.note}",
        }

    def myst(self) -> str:
        """Return the table as the book reads it."""
        sides = ["right" if is_numeric(self.frame[name]) else "left" for name in self.frame]
        rows = unbroken(self.frame.to_markdown(index=False, disable_numparse=True, colalign=sides))
        kind = ("words" if self.words else "numbers") + (" filtered" if self.filtered else "")
        columns = self.frame.shape[1]
        wide = sum(self.frame[name].map(str).map(len).max() for name in self.frame) > LINE and not self.words
        if columns >= (7 if self.words else 8) or wide:  # set smaller
            kind += " many"
        if columns >= 12:
            kind += " most"
        return f"```{{table}} {self.caption}\n:name: {self.name}\n:class: {kind}\n\n{rows}\n```\n\n{self.note}\n"


def badge(verdict: str, direction: str = "") -> str:
    """Return a verdict in the book's colour for it, with where it lies."""
    kind = verdict if verdict in ("holds", "differs", "new") else "open"
    return f'<span class="badge badge-{kind}">{verdict}</span>{bracketed(direction)}'


def bracketed(word: str) -> str:
    """Return a word in brackets after a space, or nothing if there is none."""
    return f" ({word})" if word else ""


def without_badges(cell: Any) -> Any:
    """Return a cell with the plain words of its badges, for where there is no style sheet."""
    return re.sub(r"<span[^>]*>(.*?)</span>|<br>|</?small>", r"\1", cell) if isinstance(cell, str) else cell


def is_numeric(column: pd.Series) -> bool:
    """Return whether the cells of a column are numbers as text, with or without intervals; some may be empty.

    "13 of 20" is one, and so is "about 100"; a list of numbers is none.
    """
    cells = [str(cell) for cell in column if str(cell).strip(" –") not in ("", "never", "none")]
    numbers = [re.sub(r"^(?:about|batch) |(?<=\d) of (?=\d)", "", cell) for cell in cells]
    return bool(cells) and all(
        re.fullmatch(r"[-−+\d\s.,±\[\]%<·⁻⁰¹²³⁴⁵⁶⁷⁸⁹*∞()]+", cell) and ", " not in re.sub(r"\[[^\]]*\]", "", cell)
        for cell in numbers
    )


def unbroken(text: str) -> str:
    """Return a text in which no line ends between the ends of an interval or before a per cent sign."""
    return re.sub(r"(\[[^\s\[\]]+,) (?=[^\s\[\]]+\])|(?<=[\d\]]) (?=%)", lambda found: f"{found[1] or ''}\u00a0", text)


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


def possible(interval: Interval, system: str) -> Interval:
    """Return an interval of a system's returns without what no return can be: Student's may reach beyond."""
    return clipped(interval, *possible_returns(system))


def between(interval: Interval, digits: int = 1) -> str:
    """Return a mean with the ends of its interval, as text."""
    return f"{number(interval.mean, digits)} [{number(interval.low, digits)}, {number(interval.high, digits)}]"


def difference(interval: Interval) -> str:
    """Return a difference with the ends of its interval as text, with more digits the smaller it is."""
    size = abs(interval.mean)
    return between(interval, 2 if size < 1.0 else 1 if size < 1000.0 else 0)


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
