"""What each part of the algorithm is worth: the long runs with one part changed, beside the same seeds unchanged."""

import functools
from collections.abc import Iterable

import pandas as pd

from spaql.paper.audit.changes import GROUP, compare_changes
from spaql.paper.audit.groups import MissingError
from spaql.paper.frames import by_system, finals
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.runner import load_stored
from spaql.paper.statistics import student_interval, summarise
from spaql.paper.studies import CONTROLS, LEARNERS, Control, further_of, parameters_of, study, text_jobs

CONTROL_NAMES = {control: name for name, control in CONTROLS.items()}


def control_of(job: Job) -> str:
    """Return the name of the control that a job is run under, or nothing if it is none of them."""
    return CONTROL_NAMES.get(Control(job.rules, job.parameters), "")


def controlled(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per agent that is the text's or a control's, with the name of its control."""
    records = list(records)
    frame = finals(records).assign(control=[control_of(record.job) for record in records])
    return frame[frame.control != ""]


def random_levels(agents: pd.DataFrame) -> dict[str, float]:
    """Return what Random earns on fresh episodes of each system; `agents` has one row per agent."""
    return agents[agents.algorithm == "Random"].groupby("system").fresh.mean().to_dict()


def controls_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what each control does to the reward, as reported and on fresh episodes (see `compare_changes`)."""
    agents = controlled(records)
    learners = agents[agents.algorithm.isin(LEARNERS)]
    return compare_changes(learners, "control", CONTROLS, ("rewards", "fresh"), random_levels(agents))


@functools.cache
def stored_effects() -> pd.DataFrame:
    """Return what each control does on fresh episodes, by system, algorithm, N and control, from the stored runs."""
    jobs = study("controls")
    jobs += text_jobs(jobs, parameters_of("long")["agents"])
    jobs += further_of(jobs)
    jobs += [job for job in study("long") if job.algorithm == "Random"]
    records, missing = load_stored(jobs, provenance.default_store(), repair=False)
    if missing:
        raise MissingError(f"{len(missing)} agents of the controls or of their comparison are not stored")
    frame = controls_table(records.values())
    return frame[frame.quantity == "fresh"].set_index(["system", "algorithm", "N", "control"]).sort_index()


def rollouts_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what SPAQL earns when it keeps its best agent and when it keeps its last, for every N that was run."""
    agents = controlled(records)
    agents["kept"] = agents.control.map({"text": "best", "last kept": "last"})
    spaql = agents[(agents.algorithm == "SPAQL") & agents.kept.notna()]
    found = summarise(spaql, [*GROUP, "kept"], rewards=student_interval, fresh=student_interval)
    return by_system(found.sort_values(["system", "kept", "N"]))
