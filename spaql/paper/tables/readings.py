"""Readings of the experiment: tables and sentences about which of them fits the paper's numbers."""

from collections.abc import Mapping, Sequence

import pandas as pd

from spaql.paper.audit.readings import EVERY
from spaql.paper.frames import finals
from spaql.paper.labels import number, small, spread
from spaql.paper.runs.job import Record
from spaql.paper.studies import KINDS, LEARNERS, Reading
from spaql.paper.tables.results import printed
from spaql.paper.tables.table import Table
from spaql.systems import title

CHANGES = {  # a field of a reading, its value where it is not the text's, and that in words
    "torque": (1, "half the torque"),
    "starts": ("shared", "shared starts"),
    "rules": ("released", "the program's rules"),
    "dynamics": ("v0", "the old dynamics"),
}


def reading_words(name: str) -> str:
    """Return what a reading changes in the text's experiment, in words."""
    reading = EVERY[name]
    changes = [words for field, (value, words) in CHANGES.items() if getattr(reading, field) == value]
    return ", ".join(changes) or "as the text says"


def readings_table(joint: pd.DataFrame, caption: str, name: str) -> Table:
    """Return the readings, best first, with the joint measure, and chi-square of each algorithm's numbers alone."""
    rows = []
    for _, row in joint[joint.missing == ""].iterrows():
        rows.append(
            {"reading": row.reading, "what was run": reading_words(row.reading), "root seeds": f"{row.roots:.0f}"}
            | {"log L behind the best": number(row.behind, 1)}
            | {"χ²": f"**{number(row.chi2, 1)}**", "p": small(row.p)}
            | {"χ², without Random": number(row.without_random, 1)}
            | {f"χ², {algorithm}": number(row[algorithm], 1) for algorithm in (*LEARNERS, "Random")}
        )
    return Table(pd.DataFrame(rows), caption, name, not_judged(joint))


def not_judged(joint: pd.DataFrame) -> str:
    """Say which readings are not judged, and why; nothing if all are."""
    absent = joint[joint.missing != ""]
    names = "; ".join(f"*{row.reading}* ({row.missing})" for row in absent.itertuples())
    return f"Not judged, because runs are missing: {names}." if names else ""


def shown_as(kind: str, value: float) -> str:
    """Return a number of some kind as text, with one digit less than the paper prints."""
    text = number(value, 1 if kind in ("mean", "half") else 0)
    return {"half": f"± {text}", "gain": f"about {text}", "crossing": f"batch {text}"}.get(kind, text)


def predictions_table(frame: pd.DataFrame, shown: list[str], caption: str, name: str) -> Table:
    """Return the paper's numbers beside what some readings predict, with the distance in standard errors."""
    rows = []
    for label, lines in frame.groupby("label", sort=False):
        found = lines.set_index("reading")
        rows.append({"": label, "paper": shown_as(found.kind.iloc[0], found.paper.iloc[0])})
        for reading in dict.fromkeys(shown):
            row = found.loc[reading]
            text = f"{shown_as(row.kind, row.predicted)} ({number(row.distance, 1)})"
            rows[-1] |= {reading: text.removeprefix("about ")}
    return Table(pd.DataFrame(rows), caption, name)


def runs_table(runs: Mapping[str, Sequence[Record]], caption: str, name: str) -> Table:
    """Return what the agents ended with on each pendulum under each reading, beside the paper's numbers."""
    ends = {}
    for reading, records in runs.items():
        roots = sorted({record.job.seed for record in records})
        ends[reading] = [finals(record for record in records if record.job.seed == root) for root in roots]
    rows = []
    for kind, algorithms in KINDS.items():
        learners = [algorithm for algorithm in algorithms if algorithm in LEARNERS]
        system = Reading().system(kind)
        paper = {learner: printed(system, learner, "rewards", 1) for learner in learners}
        if any(paper.values()):
            rows.append({"system": title(system), "reading": "the paper"} | paper)
        for reading, frames in ends.items():
            for place, frame in enumerate(frames, start=1):
                # Agents that share their starts say nothing of other sequences, so these are not pooled.
                sequence = f" (starts {place})" if len(frames) > 1 else ""
                here = frame[frame.system == EVERY[reading].system(kind)]
                numbers = {learner: spread(here.rewards[here.algorithm == learner], 1) for learner in learners}
                rows.append({"system": title(system), "reading": reading + sequence} | numbers)
    return Table(pd.DataFrame(rows).fillna(""), caption, name)
