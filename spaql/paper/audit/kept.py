"""Files of `results` that hold what was measured once, because that takes long: rows, and where they come from."""

import json
import os
from pathlib import Path
from typing import Any

import pandas as pd

from spaql.paper.runs.provenance import default_store, provenance


def path_of(name: str, store: str | os.PathLike | None = None) -> Path:
    """Return where such a file is."""
    return Path(store or default_store()) / f"{name}.json"


def write_kept(name: str, store: str | os.PathLike | None = None, **parts: Any) -> Path:
    """Write the parts of a file, with where they come from."""
    path = path_of(name, store)
    path.write_text(json.dumps({"provenance": provenance()} | parts, indent=1) + "\n", encoding="utf-8")
    return path


def load_kept(name: str, store: str | os.PathLike | None = None, part: str = "rows") -> pd.DataFrame:
    """Return a part of a file that is a list of rows."""
    return pd.DataFrame(json.loads(path_of(name, store).read_text(encoding="utf-8"))[part])
