"""The paper's claims as data: the rows of claims.toml, and its results tables."""

import fnmatch
import functools
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE = "holds", "differs", "inconclusive", "not comparable"


@functools.cache
def load_claims() -> tuple[dict[str, Any], ...]:
    """Return the claims, as they stand in claims.toml."""
    return tuple(tomllib.loads((Path(__file__).with_name("claims.toml")).read_text(encoding="utf-8"))["claim"])


def paper_results() -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return the paper's two results tables: by system, algorithm and column the mean and the half-interval."""
    tables: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for claim in load_claims():
        if claim["kind"] == "number":
            _, system, algorithm = claim["group"].split(", ")
            cell = tables.setdefault(system, {}).setdefault(algorithm, {})
            cell[claim["column"]] = claim["paper"], claim["half"]
    return tables


def deviations() -> pd.DataFrame:
    """Return every place where we differ from the paper, with the ids of the claims it can affect.

    Returns
    -------
    frame
        Columns id, topic, `paper` (what it says, or its program does), `ours`, `reason`, `affects`, a list of ids, and
        `patterns`, the same as it is written.
    """
    path = Path(__file__).with_name("deviations.toml")
    frame = pd.DataFrame(tomllib.loads(path.read_text(encoding="utf-8"))["deviation"])
    frame["patterns"] = frame.affects
    frame["affects"] = frame.affects.map(matching)
    return frame


def matching(patterns: Iterable[str]) -> list[str]:
    """Return the ids of the claims that match any of these patterns, in the claims' order; each must match one."""
    ids = [claim["id"] for claim in load_claims()]
    for pattern in patterns:
        if not fnmatch.filter(ids, pattern):
            raise ValueError(f"no claim has an id like {pattern!r}")
    return [name for name in ids if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
