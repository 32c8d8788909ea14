"""Tables of the book: frames in, something that a notebook, the book and a terminal can show out."""

import base64
import re

import numpy as np
import pandas as pd
from IPython.display import Markdown

from spaql.paper.claims.load import paper_results
from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.statistics import summarise, welch
from spaql.paper.engine.style import between, plus_minus, present, small, spread, thin
from spaql.policies.interval import Interval, paper_interval

LINE = 115  # characters that a row of a table has room for if its cells do not wrap


class Table:
    """A frame with a caption: a numbered table in the book, an HTML table in Jupyter, text in a terminal.

    A `note` is a paragraph below it; `words` says that cells are sentences, not numbers.
    """

    def __init__(self, frame: pd.DataFrame, caption: str, name: str, note: str = "", words: bool = False):
        self.frame, self.caption, self.name, self.note, self.words = frame, caption, name, note, words

    def _repr_mimebundle_(self, include=None, exclude=None):
        html = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", self.frame.to_html(index=False, border=0))
        return {
            "text/markdown": self.myst(),
            "text/html": html.replace("<thead>", f"<caption>{self.caption}</caption><thead>", 1)
            + f"<p>{self.note}</p>",
            "text/plain": f"{self.caption}\n{self.frame.to_string(index=False)}\n{self.note}",
        }

    def myst(self) -> str:
        """Return the table as the book reads it."""
        sides = ["right" if is_numeric(self.frame[name]) else "left" for name in self.frame]
        rows = unbroken(self.frame.to_markdown(index=False, disable_numparse=True, colalign=sides))
        kind = "words" if self.words else "numbers"
        columns = self.frame.shape[1]
        wide = sum(self.frame[name].map(str).map(len).max() for name in self.frame) > LINE and not self.words
        if columns >= (7 if self.words else 8) or wide:  # set smaller
            kind += " many"
        if columns >= 12:
            kind += " most"
        bare = self.frame.map(lambda cell: re.sub(r"\*\*|`|<[^<>]+>", "", cell) if isinstance(cell, str) else cell)
        data = csv_link(bare, self.name.removeprefix("tab-"), "This table (CSV)")
        table = f"```{{table}} {self.caption}\n:name: {self.name}\n:class: {kind}\n\n{rows}\n```"
        return "\n\n".join(filter(None, (table, self.note, data))) + "\n"


class Folded:
    """A long table that the book folds away below a line."""

    def __init__(self, table: Table, line: str):
        self.table, self.line = table, line

    def _repr_mimebundle_(self, include=None, exclude=None):
        shown = self.table._repr_mimebundle_()
        return shown | {"text/markdown": f"`````{{dropdown}} {self.line}\n{shown['text/markdown']}\n`````\n"}


def csv_link(frame: pd.DataFrame, name: str, words: str) -> str:
    """Return a link that holds a frame as a CSV file itself, so that it works from a disk, too."""
    held = base64.b64encode(frame.to_csv(index=False, float_format="%.6g").encode()).decode()
    return f'<a class="data" download="{name}.csv" href="data:text/csv;base64,{held}">{words}</a>'


def download(frame: pd.DataFrame, name: str, of: str = "figure") -> Markdown:
    """Return a link to a frame as a CSV file: the data of this figure, or of something else."""
    return Markdown(csv_link(frame, name, f"The data of this {of} (CSV)"))


def badge(verdict: str, direction: str = "") -> str:
    """Return a verdict in the book's colour for it, with where it lies."""
    kind = verdict if verdict in ("holds", "differs") else "open"
    return f'<span class="badge badge-{kind}">{verdict}</span>{bracketed(direction)}'


def bracketed(word: str) -> str:
    """Return a word in brackets after a space, or nothing if there is none."""
    return f" ({word})" if word else ""


def is_numeric(column: pd.Series) -> bool:
    """Return whether the cells of a column are numbers as text, with or without intervals; some may be empty.

    "13 of 20" is one, and so is "about 100"; a list of numbers is none.
    """
    cells = [str(cell) for cell in column if str(cell).strip(" –") not in ("", "never", "none")]
    numbers = [re.sub(r"^(?:about|batch) |(?<=\d) of (?=\d)|\[[^\]]*\]", "", cell) for cell in cells]
    return bool(cells) and not any(", " in number or any(map(str.isalpha, number)) for number in numbers)


def unbroken(text: str) -> str:
    """Return a text in which no line ends between the ends of an interval or before a per cent sign."""
    return re.sub(r"(\[[^\s\[\]]+,) (?=[^\s\[\]]+\])|(?<=[\d\]]) (?=%)", lambda found: f"{found[1] or ''}\u00a0", text)


def curves_frame(histories: pd.DataFrame) -> pd.DataFrame:
    """Return the curves of histories at the iterations that figures draw."""
    last = histories.groupby("algorithm").iteration.transform("max")
    shown = {count: set(thin(int(count)) + 1) for count in last.unique()}
    kept = np.array([i in shown[count] for i, count in zip(histories.iteration, last, strict=True)])
    intervals = dict.fromkeys(("rewards", "arms", "steps"), paper_interval)
    return summarise(histories[kept], ["algorithm", "iteration"], **intervals)


def episodes_frame(played: dict) -> pd.DataFrame:
    """Return episodes as one row per step: the state before it, the action and the reward."""
    parts = []
    for name, episode in played.items():
        states = pd.DataFrame(episode["states"][:-1]).add_prefix("state_").rename_axis("step").reset_index()
        parts.append(states.assign(algorithm=name, action=episode["actions"], reward=episode["rewards"]))
    return pd.concat(parts, ignore_index=True)


# The ends of training, beside the paper's

FEWEST = 10  # agents of each group, from which on bold marks what is not significantly different from the best


def tests_table(frame: pd.DataFrame, pairs, caption: str, name: str) -> Table:
    """Return Welch's test of pairs of algorithms, first minus second, by what is reported and on fresh episodes."""
    rows = []
    for first, second in pairs:
        one, other = (frame[frame.algorithm == algorithm] for algorithm in (first, second))
        if min(len(one), len(other)) < 2:
            continue
        row = {"comparison": f"{first} − {second}", "agents": f"{len(one)}, {len(other)}"}
        for column, head in (("rewards", "reported"), ("fresh", "fresh")):
            found = welch(one[column], other[column])
            row |= {head: between(Interval(found.difference, found.low, found.high)), f"p, {head}": small(found.p)}
        rows.append(row)
    heads = ["comparison", "agents", "reported", "p, reported", "fresh", "p, fresh"]
    return Table(pd.DataFrame(rows, columns=heads), caption, name)


def best_of(groups: dict) -> set[str]:
    """Return the groups in bold, as in Table 5: the best mean, and what Welch's test at 5 % does not tell from it."""
    best = max(groups, key=lambda name: np.mean(groups[name]))
    if min(map(len, groups.values())) < FEWEST:
        return set()  # so few agents tell hardly any two groups apart
    return {name for name, values in groups.items() if name == best or welch(groups[best], values).p >= 0.05}


def in_bold(text: str, bold: bool) -> str:
    """Return a text in bold, if it is to be."""
    return f"**{text}**" if bold else text


def results_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the rewards and arms at the end of training beside the paper's (its Tables 4 and 5), the best in bold."""
    rows = []
    for system, here in frame.groupby("system", sort=False):
        groups = {algorithm: here[here.algorithm == algorithm] for algorithm in present(here)}
        bold = {column: best_of({a: mine[column] for a, mine in groups.items()}) for column in ("rewards", "fresh")}
        for algorithm, mine in groups.items():
            ours = {column: in_bold(spread(mine[column], 1), algorithm in best) for column, best in bold.items()}
            paper = paper_results().get(system, {}).get(algorithm, {})
            rows.append(
                {
                    "algorithm": algorithm,
                    "reward": ours["rewards"],
                    "paper": plus_minus(*paper["rewards"], 1) if "rewards" in paper else "",
                    "fresh": ours["fresh"],
                    "arms": spread(mine.arms, 0) if algorithm in LEARNERS else "",
                    "paper's arms": plus_minus(*paper["arms"], 0) if "arms" in paper else "",
                }
            )
    table = pd.DataFrame(rows)
    empty = [head for head in ("paper", "paper's arms") if not table[head].any()]
    return Table(table.drop(columns=empty), caption, name)
