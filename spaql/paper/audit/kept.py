"""Files of `results` that hold what was measured once, because that takes long: rows, and where they come from."""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from spaql.paper.runs.provenance import default_store, provenance
from spaql.progress import progress


def path_of(name: str, store: str | os.PathLike | None = None) -> Path:
    """Return where such a file is."""
    return Path(store or default_store()) / f"{name}.json"


def write_kept(name: str, **parts: Any) -> None:
    """Write the parts of a file, with where they come from."""
    path_of(name).write_text(json.dumps({"provenance": provenance()} | parts, indent=1) + "\n", encoding="utf-8")


def write_cells(name: str, rows: Iterable[dict[str, Any]], count: int, keys: list[str]) -> None:
    """Take so many rows, one per agent, as they are measured; write one per cell, with lists of what agents earn."""
    frame = pd.DataFrame(measured(rows, count)).sort_values("agent", kind="stable").round(4)
    earned = [column for column in frame if column not in (*keys, "agent")]
    cells = frame.groupby(keys, sort=False)[earned].agg(list).reset_index()
    write_kept(name, cells=cells.to_dict("records"))


def measured(rows: Iterable[dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Take so many rows as they are measured, and show how far it is."""
    found = []
    with progress(count, "measuring", "agent") as bar:
        for row in rows:
            found.append(row)
            bar.update()
    return found


def load_kept(name: str, store: str | os.PathLike | None = None, part: str = "rows") -> pd.DataFrame:
    """Return a part of a file that is a list of rows."""
    return pd.DataFrame(json.loads(path_of(name, store).read_text(encoding="utf-8"))[part])
