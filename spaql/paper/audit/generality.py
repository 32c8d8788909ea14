"""Whether the conclusions travel: each of generality.toml on each system, judged as the claims are.

A cell is a claim of the audit's kinds "order" or "mean" (see `judge`), from whole groups of stored agents.  It holds or
differs if that is shown at the 5 % level after Holm's correction over the systems of the same conclusion.  On the
paper's systems these are its long runs, TRPO's and SPAQL-R's; on the others the agents of `OTHER_SYSTEMS`.
"""

import dataclasses
import functools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from spaql.paper.claims.load import Claim
from spaql.paper.audit.groups import Group, Key, better_policies, load_groups
from spaql.paper.audit.judge import Judged, decide, measure
from spaql.paper.frames import finals, solves
from spaql.paper.runs.job import Record
from spaql.paper.runs.provenance import TRPO
from spaql.paper.studies import BOTH, OTHER_SYSTEMS
from spaql.systems import solved_at, without_goal

SYSTEMS = (*BOTH, *OTHER_SYSTEMS)

NOT_ASKED = "does not apply"  # nothing says when the task is solved

STUDIES = {"SPAQL-R": "repaired"} | dict.fromkeys(TRPO, "trpo")  # of the paper's systems; the long runs for the others


@dataclasses.dataclass(frozen=True)
class Conclusion:
    """What should be so on every system; generality.toml says what the fields mean."""

    id: str
    statement: str
    whose: str  # the paper's, or ours
    ahead: str
    column: str
    below: Sequence[str] = ()
    said: Sequence[str] = ()  # of which systems the paper says so


@functools.cache
def load_conclusions() -> tuple[Conclusion, ...]:
    """Return the conclusions, as they stand in generality.toml."""
    text = Path(__file__).with_name("generality.toml").read_text(encoding="utf-8")
    return tuple(Conclusion(**row) for row in tomllib.loads(text)["conclusion"])


def group_name(system: str, algorithm: str) -> str:
    """Return what a claim calls the agents of an algorithm on a system."""
    study = STUDIES.get(algorithm, "long") if system in BOTH else "systems"
    return f"{study}, {system}, {algorithm}"


def asked_of(conclusion: Conclusion, system: str) -> Claim | None:
    """Return a conclusion as a claim on one system, or None if it cannot be asked there."""
    claim = Claim(
        id=f"{conclusion.id}, {system}",
        place=conclusion.id,
        statement=conclusion.statement,
        kind="order",
        group=group_name(system, conclusion.ahead),
        below=[group_name(system, name) for name in conclusion.below],
        column=conclusion.column,
    )
    if conclusion.below:
        return claim
    threshold = solved_at(system)
    return None if threshold is None else dataclasses.replace(claim, kind="mean", range=(threshold, np.inf))


def generality() -> pd.DataFrame:
    """Return every conclusion on every system with its verdict, one row per cell, from stored results.

    `said` is whether the paper says so of this system; `ours` with `low` and `high` the difference
    from the nearest of those that should be below, or the mean return, with its 95 % interval; p-values are corrected.
    """
    return judge_cells(load_groups(studies=("long", "trpo", "repaired", "systems")))


def judge_cells(groups: Mapping[Key, Group]) -> pd.DataFrame:
    """Return the frame of `generality` from these groups."""
    cells = [(one, system, asked_of(one, system)) for one in load_conclusions() for system in SYSTEMS]
    stored = {", ".join(key[:3]) for key in groups}
    claims = [claim for _, _, claim in cells if claim is not None and {claim.group, *claim.below} <= stored]
    judged = decide(claims, measure(claims, groups))
    rows = []
    for conclusion, system, claim in cells:
        found = judged.get(claim.id, Judged(None)) if claim else None
        ours = found.found.ours if found and found.found else (np.nan,) * 3
        rows.append(
            {name: getattr(conclusion, name) for name in ("id", "statement", "whose")}
            | {"system": system, "said": system in conclusion.said}
            | dict(zip(("ours", "low", "high"), ours, strict=True))
            | {"p_for": found.p_for if found else np.nan, "p_against": found.p_against if found else np.nan}
            | {"verdict": found.verdict if found else NOT_ASKED}
        )
    return pd.DataFrame(rows)


def goal_counts(records: Iterable[Record]) -> pd.DataFrame:
    """Return how many agents of each algorithm end with a policy that comes to the goal, and how many solve it."""
    records = list(records)
    frame = finals(records).assign(fresh=better_policies(records), agents=1)
    frame = frame.assign(reach=frame.fresh > frame.system.map(without_goal), solve=solves(frame, "fresh") == 1)
    return frame.groupby(["system", "algorithm"], sort=False)[["agents", "reach", "solve"]].sum().reset_index()
