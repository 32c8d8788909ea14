"""What the chapters say beside their figures and tables: sentences with the numbers of the runs they show.

Every function takes frames of agents and returns Markdown.  Words that a number decides ("more", "no difference") are
chosen by that number, so that the sentences are true of other parameters, too.
"""

import numpy as np
import pandas as pd

from spaql.paper.labels import listed, number, plus_minus
from spaql.paper.statistics import student_interval
from spaql.systems import title


def reached_within(levels: pd.DataFrame, system: str, level: float) -> str:
    """Say within how many samples half of each algorithm's agents reach a level of a system.

    `levels` is from `spaql.paper.audit.repaired.samples_to_levels`.
    """
    here = levels[(levels.system == system) & (levels.level == level)].sort_values("first", kind="stable")
    finite = np.isfinite(here["first"])
    reached = zip(here.algorithm[finite], here["first"][finite], strict=True)
    there = [f"{samples:,.0f} ({name})" for name, samples in reached]
    never = here.algorithm[~finite].tolist()
    words = f"Samples within which half of the agents reach {number(level, 0)} on {title(system)}"
    missed = f"; with {listed(never)} fewer than half ever do" if never else ""
    return f"{words}: {listed(there)}{missed}."


def alone(values: np.ndarray) -> str:
    """Return a mean that stands beside no number of the paper, with Student's half-interval, as text."""
    found = student_interval(values)
    return plus_minus(found.mean, found.high - found.mean, 1)


def ends_beside(ends: pd.DataFrame, system: str) -> str:
    """Say what each algorithm's policies earn on fresh episodes at the end of training, and after how many samples.

    `ends` is from `spaql.paper.audit.repaired.ends`.
    """
    parts = []
    for name, group in ends[ends.system == system].groupby("algorithm", sort=False):
        parts.append((group.fresh.mean(), f"{name} {alone(group.fresh)} ({group.samples.mean() / 1000:,.0f})"))
    told = listed([words for _, words in sorted(parts, reverse=True)])
    return f"{title(system)}, rewards on fresh episodes at the end, with thousands of samples: {told}."
