"""What the paper sets and never varies: the long runs with one setting changed, or with dummy observations."""

import functools

import pandas as pd

from spaql.paper.audit.groups import MissingError
from spaql.paper.frames import finals
from spaql.paper.runs.dummies import DUMMIES
from spaql.paper.runs.job import Job
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.runner import load_stored
from spaql.paper.statistics import student_interval, summarise, welch_holm
from spaql.paper.studies import BOTH, LEARNERS, LONG_XI, Control, parameters_of, settings_of, study

UNCHANGED = "the paper's"


def setting_of(job: Job) -> tuple[str, str]:
    """Return the system that a job of these is compared on, and the name of what is changed."""
    if job.system in DUMMIES:
        count = 1 + DUMMIES.index(job.system)
        return "Pendulum-v1", f"{count} dumm{'y' if count == 1 else 'ies'}"
    if job.algorithm not in LEARNERS:
        return job.system, UNCHANGED
    known = settings_of(job.algorithm, job.system, job.iterations)
    changed = float(job.xi), Control(job.rules, job.parameters)
    return job.system, next((name for name, one in known.items() if one == changed), UNCHANGED)


def unchanged_jobs() -> list[Job]:
    """Return the agents with the paper's settings that the others are compared with, and Random's."""
    size = {name: parameters_of("settings")[name] for name in ("iterations", "evaluations")}
    found = [job for job in study("long") if job.algorithm == "Random" and job.system in BOTH]
    for job in (job for name in ("long", "ablation", "controls", "further") for job in study(name)):
        long = LONG_XI.get(job.system, {}).get(job.algorithm), Control(), *size.values()
        if job.system in BOTH and (job.xi, Control(job.rules, job.parameters), job.iterations, job.evaluations) == long:
            found.append(job)
    return found


@functools.cache
def stored_settings() -> pd.DataFrame:
    """Return what is earned on fresh episodes, by system, setting and algorithm, beside the paper's settings.

    `p_holm` is of Welch's test against the paper's settings, corrected over all.
    """
    records, missing = load_stored([*unchanged_jobs(), *study("settings")], default_store(), repair=False)
    if missing:
        raise MissingError(f"{len(missing)} agents of the settings or of their comparison are not stored")
    frame = finals(records.values())
    frame[["where", "setting"]] = [setting_of(job) for job in records]
    cells = {key: cell.fresh for key, cell in frame.groupby(["where", "setting", "algorithm"], sort=False)}
    tests = welch_holm(
        {key: (fresh, cells[key[0], UNCHANGED, key[2]]) for key, fresh in cells.items() if key[1] != UNCHANGED}
    )
    found = summarise(frame.drop(columns="system"), ["where", "setting", "algorithm"], fresh=student_interval)
    p = pd.Series({key: test.p_holm for key, test in tests.items()}, name="p_holm")
    return found.join(p, on=["where", "setting", "algorithm"]).rename(columns={"where": "system"})
