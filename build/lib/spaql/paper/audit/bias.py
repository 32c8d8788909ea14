"""Selection bias: what is reported beside what the same policies earn on fresh episodes."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from spaql.paper.audit.ablation import RULE_NAMES
from spaql.paper.audit.groups import gather, spell
from spaql.paper.runs.job import Record
from spaql.paper.statistics import SOLVED, selection_bias
from spaql.policies.interval import paper_interval

KEPT_BEST = ("SPAQL", "SPAQL-TS")  # the algorithms whose reported number is the best so far


def best_against_fresh(records: Iterable[Record]) -> pd.DataFrame:
    """Return what SPAQL and SPAQL-TS report, what the same policies earn on fresh episodes, and the bias.

    A row a system, algorithm and N of the text's rules; on CartPole also how many agents solve it by either number.
    """
    rows = []
    for job, group in gather(records).items():
        if job.algorithm not in KEPT_BEST or RULE_NAMES[job.rules] != "paper":
            continue
        solved = {"solved": np.sum(group.rewards >= SOLVED), "solved_fresh": np.sum(group.fresh >= SOLVED)}
        rows.append(
            {"system": job.system, "algorithm": job.algorithm, "xi": job.xi, "N": job.evaluations}
            | {"iterations": job.iterations, "agents": len(group.rewards)}
            | spell("reported", paper_interval(group.rewards))
            | spell("fresh", paper_interval(group.fresh))
            | spell("bias", selection_bias(group.rewards, group.fresh))
            | (solved if job.system == "CartPole-v0" else dict.fromkeys(solved, np.nan))
        )
    frame = pd.DataFrame(rows)
    return frame.sort_values(["system", "algorithm", "iterations", "N"], ignore_index=True)


def surviving(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the claims, of a frame of `claims.verdicts`, that fresh episodes can judge too, with both verdicts."""
    judged = frame[~frame.fresh_verdict.isin(("", "not comparable"))]
    found = judged[["id", "statement", "ours", "verdict", "fresh", "fresh_verdict"]].reset_index(drop=True)
    return found.assign(survives=found.verdict == found.fresh_verdict)
