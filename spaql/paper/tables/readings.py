"""Readings of the experiment: tables and sentences about which of them fits the paper's numbers."""

from collections.abc import Mapping, Sequence

import pandas as pd

from spaql.paper.audit.claims import paper_results
from spaql.paper.audit.readings import EVERY, TEXT
from spaql.paper.frames import finals
from spaql.paper.runs.job import Record
from spaql.paper.studies import LEARNERS, READINGS_STUDY, Reading
from spaql.paper.tables.table import Table, number, p_value, plus_minus, spread
from spaql.systems import title

FAR = 2.0  # standard errors from which a number is called unexplained

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
            | {"χ²": f"**{number(row.chi2, 1)}**", "p": p_value(row.p).removeprefix("p ").removeprefix("= ")}
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


def unexplained(frame: pd.DataFrame, reading: str) -> str:
    """Return which numbers a reading leaves unexplained, farthest first, as the end of a sentence."""
    rows = frame[(frame.reading == reading) & (frame.distance.abs() >= FAR)]
    ordered = rows.reindex(rows.distance.abs().sort_values(ascending=False).index)
    return "; ".join(
        f"*{row.label}*, where the paper has {shown_as(row.kind, row.paper)} and the reading gives "
        f"{shown_as(row.kind, row.predicted).removeprefix('about ')} ({number(row.distance, 1)})"
        for row in ordered.itertuples()
    )


def answer(frame: pd.DataFrame, joint: pd.DataFrame) -> str:
    """Return which reading fits best, how well, and what it leaves unexplained."""
    judged = joint[joint.missing == ""]
    best, text = judged.iloc[0], judged.set_index("reading").loc[TEXT]
    sentences = [
        f"Of {len(judged)} readings, *{best.reading}* ({reading_words(best.reading)}) fits the paper's numbers best: "
        f"{joint_words(best)}; the text's own has {joint_words(text)}."
    ]
    if len(judged) > 1:
        second = judged.iloc[1]
        sentences.append(
            f"Next comes *{second.reading}* ({reading_words(second.reading)}), whose log-likelihood is "
            f"{number(second.behind, 1)} less; that of *{TEXT}* is {number(text.behind, 1)} less."
        )
    far = unexplained(frame, best.reading)
    sentences.append(
        f"At {FAR:g} standard errors or more from the best reading, and so unexplained by it: {far}."
        if far
        else f"No number is {FAR:g} standard errors or more from the best reading."
    )
    if absent := not_judged(joint):
        sentences.append(absent)
    return " ".join(sentences)


def joint_words(row: pd.Series) -> str:
    """Return a reading's chi-square in words."""
    return f"χ² = {number(row.chi2, 1)} with {row.degrees:.0f} degrees of freedom ({p_value(row.p)})"


def aql_against_random(frame: pd.DataFrame, shown: list[str]) -> str:
    """Say by how much AQL exceeds Random in the paper and under some readings."""
    means = frame[frame.kind == "mean"].set_index(["label", "reading"])

    def lead(column: str, reading: str) -> str:
        return number(means[column]["AQL: rewards", reading] - means[column]["Random: rewards", reading], 0)

    found = " and ".join(f"{lead('predicted', name)} under *{name}*" for name in dict.fromkeys(shown))
    return (
        f"AQL's lead over Random follows from two of these numbers and is not counted again. In the paper it is "
        f"{lead('paper', shown[0])}; it is {found}."
    )


def runs_table(runs: Mapping[str, Sequence[Record]], caption: str, name: str) -> Table:
    """Return what the agents ended with on each pendulum under each reading, beside the paper's numbers."""
    ends = {}
    for reading, records in runs.items():
        roots = sorted({record.job.seed for record in records})
        ends[reading] = [finals(record for record in records if record.job.seed == root) for root in roots]
    rows = []
    for kind, algorithms in READINGS_STUDY.kinds.items():
        learners = [algorithm for algorithm in algorithms if algorithm in LEARNERS]
        system = Reading().system(kind)
        if paper := paper_results().get(system, {}):
            numbers = {learner: plus_minus(*paper[learner]["rewards"], 1) for learner in learners}
            rows.append({"system": title(system), "reading": "the paper"} | numbers)
        for reading, frames in ends.items():
            for place, frame in enumerate(frames, start=1):
                # Agents that share their starts say nothing of other sequences, so these are not pooled.
                sequence = f" (starts {place})" if len(frames) > 1 else ""
                here = frame[frame.system == EVERY[reading].system(kind)]
                numbers = {learner: spread(here.rewards[here.algorithm == learner], 1) for learner in learners}
                rows.append({"system": title(system), "reading": reading + sequence} | numbers)
    return Table(pd.DataFrame(rows).fillna(""), caption, name)
