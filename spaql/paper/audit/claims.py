"""The paper's claims as data: the rows of claims.toml, and its results tables."""

import dataclasses
import fnmatch
import functools
import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

HOLDS, DIFFERS, INCONCLUSIVE, NOT_COMPARABLE = "holds", "differs", "inconclusive", "not comparable"


@dataclasses.dataclass(frozen=True)
class Claim:
    """What the paper says, and where; the `kind` says how it is measured and judged, and which fields it needs.

    A group of agents is named "study, system, algorithm" and, in the ξ study, the values of ξ: "0", ">0" or "all".
    """

    id: str
    place: str
    statement: str
    kind: str
    group: str = ""  # the agents that it is about
    other: str = ""  # those that they are compared with
    below: Sequence[str] = ()  # several such groups, which should be worse
    floor: str = ""  # the group whose reward is no gain at all
    column: str = "rewards"  # which number of each agent
    paper: float = math.nan  # the paper's value
    half: float = math.nan  # the half-width of its interval
    threshold: float = math.nan  # that agents are counted from
    range: Sequence[float] = (-math.inf, math.inf)  # of values that the claim is read as
    systems: Sequence[str] = ()  # on which pairs of algorithms are in the same order
    pairs: Sequence[Sequence[str]] = ()
    why: Mapping[str, str] = dataclasses.field(default_factory=dict)  # we differ, by direction
    reason: str = ""  # it is not tested


@functools.cache
def load_claims() -> tuple[Claim, ...]:
    """Return the claims, as they stand in claims.toml."""
    text = Path(__file__).with_name("claims.toml").read_text(encoding="utf-8")
    return tuple(Claim(**row) for row in tomllib.loads(text)["claim"])


def paper_results() -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return the paper's two results tables: by system, algorithm and column the mean and the half-interval."""
    tables: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for claim in load_claims():
        if claim.kind == "number":
            _, system, algorithm = claim.group.split(", ")
            cell = tables.setdefault(system, {}).setdefault(algorithm, {})
            cell[claim.column] = claim.paper, claim.half
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
    ids = [claim.id for claim in load_claims()]
    for pattern in patterns:
        if not fnmatch.filter(ids, pattern):
            raise ValueError(f"no claim has an id like {pattern!r}")
    return [name for name in ids if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
