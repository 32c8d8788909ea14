"""Readings of the experiment beside the paper's numbers: frames and tables of chapter 11."""

import dataclasses

import numpy as np
import pandas as pd

from spaql.paper.claims.load import paper_results
from spaql.paper.claims.readings import EVERY, TEXT, paper_numbers, reading_fits
from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.run import run
from spaql.paper.engine.study import KINDS, Reading, published, reading_jobs
from spaql.paper.engine.style import number, plus_minus, small, spread
from spaql.paper.engine.tables import Table
from spaql.systems import title

CHANGES = {  # a field of a reading, its value where it is not the text's, and that in words
    "torque": (1, "half the torque"),
    "starts": ("shared", "shared starts"),
    "rules": ("released", "the program's rules"),
    "dynamics": ("v0", "the old dynamics"),
}


def in_words(name: str) -> str:
    """Return what a reading changes in the text's experiment, in words."""
    changes = [words for field, (value, words) in CHANGES.items() if getattr(EVERY[name], field) == value]
    return ", ".join(changes) or "as the text says"


def distances() -> pd.DataFrame:
    """Return one row per reading and number: what the paper prints, what the reading predicts, and the distance.

    Columns reading, id, label, kind, `paper`, `predicted` (as printed, no logarithm), `error` (a share of the number
    where it is compared by its logarithm) and `distance`, in standard errors.
    """
    return pd.DataFrame(
        [
            {"reading": name, "id": number.claim.id, "label": number.label, "kind": number.kind}
            | {"paper": number.printed}
            | {"predicted": float(np.exp(found.predicted[i]) if number.in_logs else found.predicted[i])}
            | {"error": found.error[i], "distance": found.distance[i]}
            for name, found in reading_fits().items()
            for i, number in enumerate(paper_numbers())
        ]
    )


def joint_fits() -> pd.DataFrame:
    """Return one row per reading, best first: root seeds, chi-square, degrees of freedom, p, and the log-likelihood.

    `behind` is by how much the log-likelihood is less than the best one's.  A column for each algorithm has the
    chi-square of its numbers alone, `without_random` that of all but Random's.
    """
    measures = ("roots", "chi2", "degrees", "p", "log_likelihood", "without_random")
    rows = [
        {"reading": name} | {measure: getattr(found, measure) for measure in measures} | found.parts
        for name, found in reading_fits().items()
    ]
    frame = pd.DataFrame(rows)
    return frame.assign(behind=frame.log_likelihood.max() - frame.log_likelihood)


def readings_table(joint: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the readings, best first, with how well each explains all numbers together."""
    rows = [
        {
            "what was run": in_words(row.reading),
            "χ²": number(row.chi2, 0),
            "p": small(row.p),
            "χ² without Random's row": number(row.without_random, 0),
            "log-likelihood behind the best": number(row.behind, 1),
        }
        for row in joint.itertuples()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def predictions_table(frame: pd.DataFrame, best: str, caption: str, name: str) -> Table:
    """Return the paper's numbers beside what the text and the best reading predict, with the distance of each."""
    rows = []
    for label, lines in frame.groupby("label", sort=False):
        found = lines.set_index("reading")
        row = {"number": label, "paper": printed(found.kind.iloc[0], found.paper.iloc[0])}
        for reading, head in ((TEXT, "the text predicts"), (best, "the best reading predicts")):
            predicted = printed(found.kind[reading], found.predicted[reading]).removeprefix("about ")
            row[head] = f"{predicted} ({number(found.distance[reading], 1)})"
        rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def printed(kind: str, value: float) -> str:
    """Return a number of some kind as text, with one digit less than the paper prints."""
    text = number(value, 1 if kind in ("mean", "half") else 0)
    return {"half": f"± {text}", "gain": f"about {text}", "crossing": f"batch {text}"}.get(kind, text)


def run_readings(
    agents: int, iterations: int, evaluations: int, roots: int, seed: int, fresh: int, workers: int
) -> pd.DataFrame:
    """Return the agents of all readings, one row per agent and reading."""
    stored = {job: study for study in ("readings", "ablation", "long") for job in published(study)}
    jobs = [
        (name, dataclasses.replace(job, study=stored.get(job, "readings")))
        for name, reading in EVERY.items()
        for job in reading_jobs(reading, agents, iterations, evaluations, roots, seed, fresh)
    ]
    return run([job for _, job in jobs], workers).assign(reading=[name for name, _ in jobs])


def runs_table(runs: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what the learners ended with on each pendulum under each reading, beside the paper's numbers."""
    rows = []
    for kind, algorithms in KINDS.items():
        learners = [algorithm for algorithm in algorithms if algorithm in LEARNERS]
        system = Reading().system(kind)
        if system in paper_results():
            table = paper_results()[system]
            paper = {learner: plus_minus(*table[learner]["rewards"], 1) for learner in learners}
            rows.append({"system": title(system), "what was run": "in the paper"} | paper)
        # Agents that share their starts say nothing of other sequences, so root seeds are not pooled.
        for (reading, seed), here in runs.groupby(["reading", "seed"], sort=False):
            here = here[here.system == EVERY[reading].system(kind)]
            sequence = f" (starts {seed - runs.seed.min() + 1})" if EVERY[reading].starts == "shared" else ""
            ends = {learner: spread(here.rewards[here.algorithm == learner], 1) for learner in learners}
            rows.append({"system": title(system), "what was run": in_words(reading) + sequence} | ends)
    return Table(pd.DataFrame(rows).fillna(""), caption, name)
