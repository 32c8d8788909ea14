"""A table with its caption."""

import base64
import re
from typing import Any

import pandas as pd

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
        frame = self.frame.map(plain)
        # What a reader can choose rows of has a file of its own, with all columns.
        data = "" if self.filtered else csv_link(frame, self.name.removeprefix("tab-"), "This table (CSV)")
        table = f"```{{table}} {self.caption}\n:name: {self.name}\n:class: {kind}\n\n{rows}\n```"
        return "\n\n".join(filter(None, (table, self.note, data))) + "\n"


class Folded:
    """A long table that the book folds away below a line."""

    def __init__(self, table: Table, line: str):
        self.table, self.line = table, line

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        shown = self.table._repr_mimebundle_()
        return shown | {"text/markdown": f"`````{{dropdown}} {self.line}\n{shown['text/markdown']}\n`````\n"}


def csv_link(frame: pd.DataFrame, name: str, words: str) -> str:
    """Return a link that holds a frame as a CSV file itself, so that it works from a disk, too."""
    held = base64.b64encode(frame.to_csv(index=False, float_format="%.6g").encode()).decode()
    return f'<a class="data" download="{name}.csv" href="data:text/csv;base64,{held}">{words}</a>'


def plain(cell: Any) -> Any:
    """Return a cell without marks of Markdown and without badges."""
    return without_badges(cell).replace("**", "").replace("`", "") if isinstance(cell, str) else cell


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
