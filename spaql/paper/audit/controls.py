"""What each part of the algorithm is worth: the long runs with one part changed, beside the same seeds unchanged."""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from spaql.paper.audit.groups import Group, MissingError, grouped, spell
from spaql.paper.frames import by_system
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import load_stored
from spaql.paper.statistics import bootstrap_weights, paired_holm, percentile_interval, student_interval
from spaql.paper.studies import CONTROLS, LEARNERS, LONG_RUNS, Control, further_of, paper_jobs, text_jobs
from spaql.policies.interval import Interval

CONTROL_NAMES = {control: name for name, control in CONTROLS.items()}


class Cell(NamedTuple):
    """Which agents a row is about."""

    system: str
    algorithm: str
    N: int
    control: str


def control_of(job: Job) -> str:
    """Return the name of the control that a job is run under, or nothing if it is none of them."""
    return CONTROL_NAMES.get(Control(job.rules, job.parameters), "")


def control_cells(records: Iterable[Record]) -> dict[Cell, Group]:
    """Return the groups of agents of these records that are the text's or a control's."""
    named = {Cell(job.system, job.algorithm, job.evaluations, control_of(job)): group
             for job, group in grouped(records).items()}  # fmt: skip
    return {cell: group for cell, group in named.items() if cell.control}


def controls_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what each change does to the reward, as reported and on fresh episodes.

    One row per system, algorithm, N, control and quantity ("rewards", "fresh") has the mean under the text's rules and
    under the control, and the difference, agent by agent, with its 95 % interval and the p of the paired test,
    corrected over the whole table.  `share` is how much of the text's gain over Random is left, with a bootstrap
    interval; not a number where the text's own agents do not earn more than Random.
    """
    cells = control_cells(records)
    pairs = {}
    for cell, group in cells.items():
        text = cells.get(cell._replace(control="text"))
        if cell.algorithm not in LEARNERS or cell.control == "text" or text is None:
            continue
        for quantity in ("rewards", "fresh"):
            one, other = group.column(quantity), text.column(quantity)
            pairs[cell, quantity] = one, other[: len(one)]  # the same agents
    if not pairs:
        raise ValueError("expected agents under the text's rules and under controls, with the same K, N and ξ")
    tests = paired_holm(pairs)
    floors = {system: random_level(cells, system) for system in {cell.system for cell, _ in pairs}}
    rows = [
        cell._asdict()
        | {"quantity": quantity, "agents": len(one)}
        | spell("text", student_interval(other))
        | spell("changed", student_interval(one))
        | {"difference": tests[cell, quantity].difference, "p_holm": tests[cell, quantity].p_holm}
        | {"low": tests[cell, quantity].low, "high": tests[cell, quantity].high}
        | {"wins": tests[cell, quantity].improvement, "arms": cells[cell].arms.mean()}
        | spell("share", gain_left(one, other, floors[cell.system]))
        for (cell, quantity), (one, other) in pairs.items()
    ]
    frame = pd.DataFrame(rows)
    order = {name: place for place, name in enumerate((*LEARNERS, *CONTROLS))}
    places = frame.assign(place=frame.control.map(order), which=frame.algorithm.map(order))
    return by_system(frame.loc[places.sort_values(["system", "which", "N", "place"], kind="stable").index])


@functools.cache
def stored_effects(store: Path | None = None) -> pd.DataFrame:
    """Return what each control does on fresh episodes, by system, algorithm, N and control, from the stored runs."""
    jobs = paper_jobs("controls")
    jobs += text_jobs(jobs, LONG_RUNS.agents)
    jobs += further_of(jobs)
    jobs += [job for job in paper_jobs("long") if job.algorithm == "Random"]
    records, missing = load_stored(jobs, store or provenance.default_store(), repair=False)
    if missing:
        raise MissingError(f"{len(missing)} agents of the controls or of their comparison are not stored")
    frame = controls_table(records.values())
    return frame[frame.quantity == "fresh"].set_index(["system", "algorithm", "N", "control"]).sort_index()


def random_level(cells: dict[Cell, Group], system: str) -> float:
    """Return what Random earns on fresh episodes of a system."""
    levels = [group.fresh for cell, group in cells.items() if (cell.system, cell.algorithm) == (system, "Random")]
    return float(np.concatenate(levels).mean()) if levels else float("nan")


def gain_left(changed: np.ndarray, text: np.ndarray, floor: float) -> Interval:
    """Return which share of the text's gain over a floor is left, with the interval of a bootstrap over agents."""
    if not student_interval(text).low > floor:
        return Interval(np.nan, np.nan, np.nan)
    (weights,) = bootstrap_weights(len(text), resamples=2000)
    resampled = (weights @ changed - floor) / (weights @ text - floor)
    return percentile_interval((changed.mean() - floor) / (text.mean() - floor), resampled)


def rollouts_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what SPAQL earns when it keeps its best agent and when it keeps its last, for every N that was run."""
    rows = [
        cell._asdict()
        | {"kept": "last" if cell.control == "last kept" else "best", "agents": len(group.fresh)}
        | spell("rewards", student_interval(group.rewards))
        | spell("fresh", student_interval(group.fresh))
        for cell, group in control_cells(records).items()
        if cell.algorithm == "SPAQL" and cell.control in ("text", "last kept")
    ]
    return by_system(pd.DataFrame(rows).sort_values(["system", "kept", "N"]))
