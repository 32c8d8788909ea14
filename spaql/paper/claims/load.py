"""The paper's claims as data: the rows of claims.toml, and the paper's results tables."""

import fnmatch
import functools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# What our runs say of a claim: shown to be so, shown to be otherwise, neither, or nothing (they are not stored).
HOLDS, DIFFERS, UNDECIDED, NOT_JUDGED = "holds", "differs", "undecided", "not judged"
VERDICTS = (HOLDS, DIFFERS, UNDECIDED, NOT_JUDGED)


@dataclass(frozen=True)
class Claim:
    """What the paper says, and where; the `kind` says how it is measured and judged, and which fields it needs.

    A group of agents is named "study, system, algorithm" and, in the ξ study, the values of ξ: "all", a number, or
    those above (">0") or, but for 0, below ("<66") one.
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
    margin: float = math.nan  # how far equals may be apart; 10 % of the paper's value if not given
    range: Sequence[float] = (-math.inf, math.inf)  # of values that the claim is read as
    significance: bool = False  # the claim is that no effect is significant, so any that is refutes it
    lasting: bool = True  # a crossing is for good, or else the first one
    systems: Sequence[str] = ()  # on which pairs of algorithms are in the same order
    pairs: Sequence[Sequence[str]] = ()
    why: Mapping[str, str] = field(default_factory=dict)  # we differ, by direction


@functools.cache
def read(name):
    """Return what stands in a TOML file beside this module."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))


@functools.cache
def load_claims() -> tuple[Claim, ...]:
    """Return the claims, as they stand in claims.toml, each with what its place says of all."""
    shared, claims = read("claims.toml")["why"], []
    for place in read("claims.toml")["place"]:
        alike = {name: value for name, value in place.items() if name not in ("name", "claim")}
        for row in place["claim"]:
            why = {way: shared.get(text, text) for way, text in row.get("why", {}).items()}
            claims.append(Claim(**{"place": place["name"]} | alike | row | {"why": why}))
    return tuple(claims)


def paper_results() -> dict[str, dict[str, dict[str, tuple[float, float]]]]:
    """Return the paper's two results tables: by system, algorithm and column the mean and the half-interval."""
    tables = {}
    for claim in load_claims():
        if claim.kind == "number":
            _, system, algorithm = claim.group.split(", ")
            tables.setdefault(system, {}).setdefault(algorithm, {})[claim.column] = claim.paper, claim.half
    return tables


def matching(*patterns: str) -> list[str]:
    """Return the ids of the claims that match any of these patterns, in the claims' order; each must match one."""
    ids = [claim.id for claim in load_claims()]
    for pattern in patterns:
        if not fnmatch.filter(ids, pattern):
            raise ValueError(f"no claim has an id like {pattern!r}")
    return [name for name in ids if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
