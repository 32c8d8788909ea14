"""How much ξ matters (chapter 1)."""

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.engine.statistics import holm


def effects(agents: pd.DataFrame) -> pd.DataFrame:
    """Return how much ξ matters to each learner on each system.

    `spread` is the standard deviation of the mean rewards over ξ, `chance` about what it would be if ξ made no
    difference: the typical standard error of one of the means.  `p` is that of a Kruskal-Wallis test of the agents at
    all ξ, and `p_holm` corrected over all cases.
    """
    rows = []
    learners = agents[agents.algorithm != "Random"]
    for (system, algorithm), group in learners.groupby(["system", "algorithm"], sort=False):
        by_xi = group.groupby("xi").rewards
        means, errors = by_xi.mean(), by_xi.std(ddof=0) / np.sqrt(by_xi.size())
        several = len(means) > 1 and group.rewards.nunique() > 1
        p = stats.kruskal(*(rewards for _, rewards in by_xi)).pvalue if several else 1.0
        rows.append(
            {"system": system, "algorithm": algorithm, "mean": means.mean(), "spread": means.std(ddof=0)}
            | {"chance": errors.median(), "p": p, "best_xi": means.idxmax(), "best": means.max()}
        )
    frame = pd.DataFrame(rows)
    return frame.assign(p_holm=holm(frame.p)) if rows else frame
