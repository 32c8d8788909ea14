"""Chapter 09: the steps from SPAQL to SPAQL-R, and SPAQL-R with each of its changes taken back."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from spaql.paper.engine.job import FRESH, SEED, Job
from spaql.paper.engine.statistics import student_interval, welch
from spaql.paper.engine.study import BOTH, LONG_XI, declare, make_jobs
from spaql.paper.engine.style import STYLES, name_panel, new_figure, number
from spaql.paper.engine.tables import Table
from spaql.systems import title

DISCOUNT = {"discount": 0.995, "initial": 0.0}
FIRST, LAST, ZERO, DISCOUNTED, CELLS, REPLAY, STEPS, ANGLES = RUNGS = (
    "SPAQL",
    "last policy kept",
    "zero at the end",
    "discount",
    "cells",
    "replay",
    "several steps",
    "SPAQL-R (angles)",
)
FROM_CONTROLS = ("last kept", "zero at the end, last kept")  # rungs that the study of controls has
OF_CELLS: dict[str, dict[str, Any]] = {  # what the rungs with SPAQL-R's cells still lack
    CELLS: {"replays": 0, "steps": 1, "angles": []},
    REPLAY: {"steps": 1, "angles": []},
    STEPS: {"angles": []},
    ANGLES: {},
}
TAKEN_BACK: dict[str, dict[str, Any]] = {  # SPAQL-R without one of its changes
    "nothing": {},
    "replay": {"replays": 0},
    "discount": {"discount": 1.0},
    "few actions": {"actions": 5},
    "several steps": {"steps": 1},
    "angles": {"angles": []},
    "first estimates of 0": {"initial": 200.0},
}
ONLY_PENDULUM = ({"actions": 5}, {"angles": []})  # CartPole has two actions, and no cosine


@declare("ladder", "from SPAQL to SPAQL-R", ("curve_rewards",))
def ladder_jobs(
    systems: Iterable[str] = BOTH,
    agents: int = 10,
    iterations: int = 40,  # thousands of samples of SPAQL-R
    evaluations: int = 20,
    episodes: int = 2000,  # of SPAQL
    seed: int = SEED,
    fresh: int = FRESH,
) -> list[Job]:
    """Return the rungs that no other study has, and SPAQL-R with each change taken back."""
    size = {"agents": agents, "seed": seed, "fresh": fresh}
    jobs = []
    for system in systems:
        control = "last kept" if system == "Pendulum-v1" else "zero at the end, last kept"  # a pendulum has no end
        spaql = {"iterations": episodes, "evaluations": 1, "control": control}
        jobs += make_jobs("SPAQL", system, LONG_XI[system]["SPAQL"], **size, **spaql, **DISCOUNT)
        for changes in (*OF_CELLS.values(), *TAKEN_BACK.values()):
            if system == "Pendulum-v1" or changes not in ONLY_PENDULUM:
                given = {name: value for name, value in changes.items() if system == "Pendulum-v1" or name != "angles"}
                jobs += make_jobs("SPAQL-R", system, iterations=iterations, evaluations=evaluations, **size, **given)
    return jobs


def is_rung(job: Job) -> bool:
    """Return whether an agent of the study of controls stands on a rung."""
    return job.algorithm == "SPAQL" and dict(job.parameters).get("control") in FROM_CONTROLS


def changes_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is changed in an agent, by the parameter's name."""
    return json.loads(row["parameters"])


def rungs_of(row: Mapping[str, Any]) -> list[str]:
    """Return the rungs that an agent stands on: several where a system has no use for a change."""
    changes, pendulum = changes_of(row), row["system"] == "Pendulum-v1"
    if row["algorithm"] == "SPAQL":
        without_end = [LAST, ZERO] if pendulum else [LAST]
        named = {None: [FIRST], "last kept": without_end, "zero at the end, last kept": [ZERO]}
        return [DISCOUNTED] if "discount" in changes else named[changes.get("control")]
    unused = () if pendulum else ("angles",)
    return [r for r, lacks in OF_CELLS.items() if changes == {k: v for k, v in lacks.items() if k not in unused}]


def ladder(agents: pd.DataFrame) -> pd.DataFrame:
    """Return one row per rung and system: return on fresh episodes with its interval, and the samples of learning.

    SPAQL's rollouts choose its policy, so that they count; where the last policy is kept they only report.
    """
    rows = [row | {"rung": rung} for row in agents.to_dict("records") for rung in rungs_of(row)]
    found = []
    for (system, rung), here in pd.DataFrame(rows).groupby(["system", "rung"]):
        mean, low, high = student_interval(here.fresh)
        samples = (here.samples if rung == FIRST else here.steps).mean()
        found.append((system, rung, len(here), samples, mean, low, high))
    columns = ["system", "rung", "agents", "samples", "mean", "low", "high"]
    order = {"rung": RUNGS.index, "system": list(BOTH).index}
    return pd.DataFrame(found, columns=columns).sort_values(
        ["system", "rung"], key=lambda names: names.map(order[names.name]), ignore_index=True
    )


def figure_of(rungs: pd.DataFrame, limits: Mapping[str, float]) -> Figure:
    """Draw the ladder of each system, from SPAQL down to SPAQL-R, beside the limit."""
    figure, (panels,) = new_figure(1, 2, height=3.2, sharey=True)
    for axes, system in zip(panels, limits, strict=True):
        for row in rungs[rungs.system == system].itertuples():
            look = STYLES["SPAQL" if row.rung in (FIRST, LAST, ZERO, DISCOUNTED) else "SPAQL-R"]
            place = RUNGS.index(row.rung)
            axes.plot([row.low, row.high], [place, place], color=look.colour, linewidth=2.2)
            axes.plot(row.mean, place, look.marker, color=look.colour, markersize=10 if look.marker == "*" else 7)
        axes.axvline(limits[system], color="#1a1a1a", linewidth=0.9)
        axes.set(xlabel="return", yticks=range(len(RUNGS)), yticklabels=RUNGS, ylim=(len(RUNGS) - 0.5, -0.5))
        name_panel(axes, title(system))
    return figure


def worth(agents: pd.DataFrame, at: tuple[int, ...] = (10, 40)) -> pd.DataFrame:
    """Return SPAQL-R with each change taken back: mean returns after so many thousand samples, and Welch's p."""
    own = agents[agents.algorithm == "SPAQL-R"]
    rows = []
    for system, here in own.groupby("system", sort=False):
        changes = here.apply(changes_of, axis=1)
        cells = {name: here[[each == taken for each in changes]] for name, taken in TAKEN_BACK.items()}
        for name, mine in cells.items():
            for thousand in at if len(mine) else ():
                returns, whole = (
                    each.fresh if thousand == each.iterations.max() else each.curve_rewards.str[thousand - 1]
                    for each in (mine, cells["nothing"])
                )
                p = welch(returns, whole).p if min(len(mine), len(whole)) > 1 else float("nan")
                rows.append((system, name, thousand, *student_interval(returns), p))
    return pd.DataFrame(rows, columns=["system", "without", "thousands", "mean", "low", "high", "p"])


def worth_table(found: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the changes in rows; bold is what differs from SPAQL-R."""
    rows = {key: {"taken back": key} for key in TAKEN_BACK}
    for row in found.itertuples():
        digits = 0 if row.mean < 0 else 1
        text = number(row.mean, digits)
        head = f"{title(row.system)}, {row.thousands},000"
        rows[row.without][head] = f"**{text}**" if row.p < 0.05 else text
    return Table(pd.DataFrame(rows.values()).fillna("–"), caption, name)
