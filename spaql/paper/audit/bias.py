"""Selection bias: what is reported beside what the same policies earn on fresh episodes."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from spaql.paper.audit.ablation import RULE_NAMES
from spaql.paper.audit.claims import NOT_JUDGED
from spaql.paper.audit.groups import KEPT_BEST, grouped, spell
from spaql.paper.frames import by_system
from spaql.paper.runs.job import Record
from spaql.paper.statistics import bootstrap_interval, selection_bias
from spaql.systems import solved_at


def best_against_fresh(records: Iterable[Record]) -> pd.DataFrame:
    """Return what SPAQL and SPAQL-TS report, what the same policies earn on fresh episodes, and the bias.

    There is one row per system, algorithm and N of the text's rules.  Where Gymnasium's registry says from which return
    a system counts as solved, it also has how many agents solve it by either number.
    """
    rows = []
    for job, group in grouped(records).items():
        if job.algorithm not in KEPT_BEST or RULE_NAMES[job.rules] != "paper":
            continue
        rows.append(
            {"system": job.system, "algorithm": job.algorithm, "xi": job.xi, "N": job.evaluations}
            | {"iterations": job.iterations, "agents": len(group.rewards)}
            | spell("reported", bootstrap_interval(group.rewards))
            | spell("fresh", bootstrap_interval(group.fresh))
            | spell("bias", selection_bias(group.rewards, group.fresh))
            | {"solved": count_solved(job.system, group.rewards), "solved_fresh": count_solved(job.system, group.fresh)}
        )
    frame = pd.DataFrame(rows)
    return by_system(frame.sort_values(["system", "algorithm", "iterations", "N"]))


def count_solved(system: str, returns: np.ndarray) -> float:
    """Return how many of these mean returns solve a system, or NaN if nothing says when it is solved."""
    threshold = solved_at(system)
    return float("nan") if threshold is None else float(np.sum(returns >= threshold))


def surviving(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the claims, of a frame of `judge.verdicts`, that fresh episodes can judge too, with both verdicts."""
    judged = frame[~frame.fresh_verdict.isin(("", NOT_JUDGED))]
    found = judged[["id", "statement", "ours", "verdict", "fresh", "fresh_verdict"]].reset_index(drop=True)
    return found.assign(survives=found.verdict == found.fresh_verdict)
