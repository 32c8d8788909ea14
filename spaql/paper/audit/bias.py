"""Selection bias: what is reported beside what the same policies earn on fresh episodes."""

from collections.abc import Iterable

import pandas as pd

from spaql.paper.audit.ablation import ruled
from spaql.paper.claims.load import NOT_JUDGED
from spaql.paper.audit.groups import KEPT_BEST
from spaql.paper.frames import by_system, solves
from spaql.paper.runs.job import Record
from spaql.paper.statistics import bootstrap_interval, student_interval, summarise


def best_against_fresh(records: Iterable[Record]) -> pd.DataFrame:
    """Return what SPAQL and SPAQL-TS report, what the same policies earn on fresh episodes, and the bias.

    There is one row per system, algorithm and N of the text's rules.  Where Gymnasium's registry says from which return
    a system counts as solved, it also has how many agents solve it by either number.
    """
    agents = ruled(records)
    mine = agents[agents.algorithm.isin(KEPT_BEST) & (agents.rule == "paper")]
    mine = mine.assign(reported=mine.rewards, bias=mine.rewards - mine.fresh)
    mine = mine.assign(solved=solves(mine, "rewards"), solved_fresh=solves(mine, "fresh"))
    by = ["system", "algorithm", "xi", "N", "iterations"]
    found = summarise(mine, by, reported=bootstrap_interval, fresh=bootstrap_interval, bias=student_interval)
    found = found.join(mine.groupby(by)[["solved", "solved_fresh"]].sum(min_count=1), on=by)
    return by_system(found.sort_values(["system", "algorithm", "iterations", "N"]))


def surviving(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the claims, of a frame of `judge.verdicts`, that fresh episodes can judge too, with both verdicts."""
    judged = frame[~frame.fresh_verdict.isin(("", NOT_JUDGED))]
    found = judged[["id", "statement", "ours", "verdict", "fresh", "fresh_verdict"]].reset_index(drop=True)
    return found.assign(survives=found.verdict == found.fresh_verdict)
