"""Numbers in prose: each has a name, comes from a notebook's run, and is compared with it when the book is built.

Prose is written by hand.  A number that comes from a run is followed by its name in an HTML comment, and so is the
verdict on a claim:

    SPAQL earns −485<!--=pendulum.spaql.reported-->, and that it beats AQL holds<!--=claim:pendulum-spaql-aql-->.

A reader of the source, of GitHub or of Jupyter sees the sentence.  A notebook ends with `emit`, which writes its
numbers by name to one file if the book is being built; `spaql numbers --write` puts them into the prose of all pages.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from spaql.paper import ROOT
from spaql.paper.claims.load import paper_results
from spaql.paper.engine.store import solves
from spaql.paper.engine.style import number

SHORT = {"spaql/PendulumDiscrete-v1": "five", "CartPole-v1": "cartpole500", "SPAQL-TS": "ts", "TRPO tuned": "tuned"}

PLAIN = r"[−+]?\d[\d,]*(?:\.\d+)?"
TAG = re.compile(
    rf"(?P<text>{PLAIN}(?: ± {PLAIN})?(?: \[{PLAIN}, {PLAIN}\])?|\[{PLAIN}, {PLAIN}\]|[a-z]+)?"
    r"<!--=(?P<name>[^\s<>]+)-->"
)


def emit(notebook: str, *numbers: dict[str, str]) -> None:
    """Keep the numbers of a notebook for the prose, if this is the build of the book (SPAQL_NUMBERS names a folder)."""
    found = {}
    for some in numbers:
        if twice := found.keys() & some.keys():
            raise ValueError(f"there are two numbers of the same name: {', '.join(sorted(twice))}")
        found |= some
    if folder := os.environ.get("SPAQL_NUMBERS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        text = json.dumps(found, ensure_ascii=False, indent=1)
        Path(folder, f"{notebook}.json").write_text(text, encoding="utf-8")


def cells(template: str, frame: pd.DataFrame, *columns: str, digits: int | None = 0) -> dict[str, str]:
    """Return columns of a frame as numbers, named after what else stands in the row, and `{column}`.

    A negative number of digits rounds, as to thousands; None means as many as the system's returns have.  What is
    infinite is "none", and what is not known has no name.
    """
    found = {}
    for row in frame.to_dict("records"):
        keys = {name: key_of(cell) for name, cell in row.items() if isinstance(cell, str | int | float)}
        for column in (column for column in columns if pd.notna(row[column])):
            shown = (1 if row["system"] == "CartPole-v0" else 0) if digits is None else digits
            text = number(round(row[column], shown), max(shown, 0)) if np.isfinite(row[column]) else "none"
            found[template.format_map(keys | {"column": column})] = text
    return found


def ends(agents: pd.DataFrame) -> dict[str, str]:
    """Return how training ended, by system and algorithm; `times` as many samples are taken with rollouts."""
    frame = agents.assign(reported=agents.rewards, bias=agents.rewards - agents.fresh)
    frame = frame.assign(solved=solves(frame, "rewards"), solved_fresh=solves(frame, "fresh"))
    groups = frame.groupby(["system", "algorithm"], sort=False)
    found = groups[["reported", "fresh", "bias", "arms"]].mean()
    found = found.join(groups[["solved", "solved_fresh", "steps", "evaluation_steps"]].sum(min_count=1))
    found["times"] = 1 + found.evaluation_steps / found.steps
    found["paper"] = [paper_results().get(s, {}).get(a, {}).get("rewards", (np.nan,))[0] for s, a in found.index]
    found, name = found.reset_index(), "{system}.{algorithm}.{column}"
    returns = cells(name, found, "reported", "fresh", "bias", "paper", digits=None)
    return returns | cells(name, found, "arms", "solved", "solved_fresh", "times")


def key_of(cell) -> str:
    """Return what names a row of a frame as part of a number's name: "Q fixed, last kept" is "q-fixed-last-kept"."""
    name = SHORT.get(cell) or (f"{cell:g}" if isinstance(cell, float) else str(cell))
    return re.sub(r"^spaql/|-v\d$|[,()]", "", name).replace(" ", "-").lower()


def load_numbers() -> dict[str, str]:
    """Return the numbers of all notebooks, as the last build of the book left them."""
    found = {}
    for file in (ROOT / "_build" / "numbers").glob("*.json"):
        found |= json.loads(file.read_text(encoding="utf-8"))
    if not found:
        raise FileNotFoundError("there are no numbers yet: make book executes the notebooks, which write them")
    return found


def text_of(name: str, known: dict[str, str]) -> str:
    """Return the text of a tag; of several claims, "claim:ID,ID2", the verdict that they share."""
    ids, dot, kind = name.removeprefix("claim:").partition(".")
    names = [f"claim:{one}{dot}{kind}" for one in ids.split(",")] if name.startswith("claim:") else [name]
    found = {known.get(one) for one in names}
    if None in found or len(found) > 1:
        raise LookupError(f"there is no number {name!r}, or these claims do not share a verdict")
    return found.pop()


def tagged_files() -> list[Path]:
    """Return the files in which prose may have tags."""
    return sorted((ROOT / "book").glob("*.md")) + sorted((ROOT / "notebooks").glob("*.ipynb"))


def rewritten(text: str, known: dict[str, str]) -> str:
    """Return a text with the right number or verdict before each tag."""
    return TAG.sub(lambda tag: f"{text_of(tag['name'], known)}<!--={tag['name']}-->", text)


def write_numbers(known: dict[str, str]) -> Iterator[Path]:
    """Put the right numbers into the prose; yield the files that change."""
    for path in tagged_files():
        text = path.read_text(encoding="utf-8")
        if (right := rewritten(text, known)) != text:
            path.write_text(right, encoding="utf-8")
            yield path
