"""What each part of the algorithm is worth: the long runs with one part changed, beside the same seeds unchanged."""

import functools
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from spaql.paper.audit.groups import MissingError, spell
from spaql.paper.frames import by_system, finals
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import load_stored
from spaql.paper.statistics import bootstrap_weights, paired_holm, percentile_interval, student_interval
from spaql.paper.studies import CONTROLS, LEARNERS, Control, further_of, parameters_of, study, text_jobs
from spaql.policies.interval import Interval

CONTROL_NAMES = {control: name for name, control in CONTROLS.items()}


CELL = ["system", "algorithm", "N", "control"]  # what names a group of agents
GROUP = [*CELL[:3], "xi", "iterations", "control"]  # what its agents have in common


def control_of(job: Job) -> str:
    """Return the name of the control that a job is run under, or nothing if it is none of them."""
    return CONTROL_NAMES.get(Control(job.rules, job.parameters), "")


def controlled(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per agent that is the text's or a control's, with the name of its control, in order of agents."""
    records = list(records)
    frame = finals(records).assign(control=[control_of(record.job) for record in records])
    return frame[frame.control != ""].sort_values("agent", kind="stable")


def controls_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what each change does to the reward, as reported and on fresh episodes.

    One row per system, algorithm, N, control and quantity ("rewards", "fresh") has the mean under the text's rules and
    under the control, and the difference, agent by agent, with its 95 % interval and the p of the paired test,
    corrected over the whole table.  `share` is how much of the text's gain over Random is left, with a bootstrap
    interval; not a number where the text's own agents do not earn more than Random.
    """
    agents = controlled(records)
    cells = dict(list(agents[agents.algorithm.isin(LEARNERS)].groupby(GROUP, sort=False)))
    pairs = {}
    for (*where, control), cell in cells.items():
        text = cells.get((*where, "text"))
        if control != "text" and text is not None:
            for quantity in ("rewards", "fresh"):  # of the same agents
                pairs[(*where, control), quantity] = cell[quantity], text[quantity][: len(cell)]
    if not pairs:
        raise ValueError("expected agents under the text's rules and under controls, with the same K, N and ξ")
    tests = paired_holm(pairs)
    rows = [
        dict(zip(CELL, (*cell[:3], cell[-1]), strict=True))
        | {"quantity": quantity, "agents": len(one)}
        | spell("text", student_interval(other))
        | spell("changed", student_interval(one))
        | {"difference": tests[cell, quantity].difference, "p_holm": tests[cell, quantity].p_holm}
        | {"low": tests[cell, quantity].low, "high": tests[cell, quantity].high}
        | {"wins": tests[cell, quantity].improvement, "arms": cells[cell].arms.mean()}
        | spell("share", gain_left(one.to_numpy(), other.to_numpy(), random_level(agents, cell[0])))
        for (cell, quantity), (one, other) in pairs.items()
    ]
    frame = pd.DataFrame(rows)
    order = {name: place for place, name in enumerate((*LEARNERS, *CONTROLS))}
    places = frame.assign(place=frame.control.map(order), which=frame.algorithm.map(order))
    return by_system(frame.loc[places.sort_values(["system", "which", "N", "place"], kind="stable").index])


@functools.cache
def stored_effects(store: Path | None = None) -> pd.DataFrame:
    """Return what each control does on fresh episodes, by system, algorithm, N and control, from the stored runs."""
    jobs = study("controls")
    jobs += text_jobs(jobs, parameters_of("long")["agents"])
    jobs += further_of(jobs)
    jobs += [job for job in study("long") if job.algorithm == "Random"]
    records, missing = load_stored(jobs, store or provenance.default_store(), repair=False)
    if missing:
        raise MissingError(f"{len(missing)} agents of the controls or of their comparison are not stored")
    frame = controls_table(records.values())
    return frame[frame.quantity == "fresh"].set_index(["system", "algorithm", "N", "control"]).sort_index()


def random_level(agents: pd.DataFrame, system: str) -> float:
    """Return what Random earns on fresh episodes of a system; `agents` has one row per agent."""
    return float(agents[(agents.algorithm == "Random") & (agents.system == system)].fresh.mean())


def gain_left(changed: np.ndarray, text: np.ndarray, floor: float) -> Interval:
    """Return which share of the text's gain over a floor is left, with the interval of a bootstrap over agents."""
    if not student_interval(text).low > floor:
        return Interval(np.nan, np.nan, np.nan)
    (weights,) = bootstrap_weights(len(text), resamples=2000)
    resampled = (weights @ changed - floor) / (weights @ text - floor)
    return percentile_interval((changed.mean() - floor) / (text.mean() - floor), resampled)


def rollouts_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what SPAQL earns when it keeps its best agent and when it keeps its last, for every N that was run."""
    agents = controlled(records)
    kept = agents[(agents.algorithm == "SPAQL") & agents.control.isin(("text", "last kept"))]
    rows = [
        dict(zip(CELL, (*cell[:3], cell[-1]), strict=True))
        | {"kept": "last" if cell[-1] == "last kept" else "best", "agents": len(group)}
        | spell("rewards", student_interval(group.rewards))
        | spell("fresh", student_interval(group.fresh))
        for cell, group in kept.groupby(GROUP, sort=False)
    ]
    return by_system(pd.DataFrame(rows).sort_values(["system", "kept", "N"]))
