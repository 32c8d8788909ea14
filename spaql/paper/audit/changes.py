"""What a change does: groups of agents beside those that differ from them in this change alone, seed by seed."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from spaql.paper.frames import by_system
from spaql.paper.statistics import bootstrap_weights, paired_holm, percentile_interval, spell, student_interval
from spaql.paper.studies import LEARNERS
from spaql.policies.interval import Interval

GROUP = ["system", "algorithm", "N", "xi", "iterations"]  # what agents and those they are compared with have in common


def compare_changes(
    agents: pd.DataFrame, change: str, names: Iterable[str], quantities: Iterable[str], floors: Mapping[str, float]
) -> pd.DataFrame:
    """Return what each change does to the quantities of agents.

    The column `change` has one of `names`, of which the first is no change.  One row per group, change and quantity has
    the mean without (`text`) and with it (`changed`), and the difference, agent by agent, with its 95 % interval and
    the p of the paired test, corrected over the whole table.  `share` is how much of the text's gain over a floor, by
    system, is left, with a bootstrap interval; not a number where there is no gain.
    """
    text, *_ = names
    cells = dict(list(agents.sort_values("agent", kind="stable").groupby([*GROUP, change], sort=False)))
    pairs = {
        (*where, name, quantity): (cell[quantity], cells[*where, text][quantity][: len(cell)])  # of the same agents
        for (*where, name), cell in cells.items()
        if name != text and (*where, text) in cells
        for quantity in quantities
    }
    if not pairs:
        raise ValueError(f"expected agents under the text's rules and under {change}s, with the same K, N and ξ")
    tests = paired_holm(pairs)
    rows = [
        dict(zip((*GROUP, change, "quantity"), key, strict=True))
        | {"agents": len(one), "arms": cells[key[:-1]].arms.mean()}
        | spell("text", student_interval(other))
        | spell("changed", student_interval(one))
        | {name: getattr(tests[key], name) for name in ("difference", "low", "high", "p_holm", "improvement")}
        | spell("share", gain_left(one.to_numpy(), other.to_numpy(), floors.get(key[0], np.nan)))
        for key, (one, other) in pairs.items()
    ]
    columns = ["system", "algorithm", "N", change]
    return by_system(pd.DataFrame(rows).sort_values(columns, kind="stable", key=in_order((*LEARNERS, *names))))


def in_order(names: Iterable[str]) -> Any:
    """Return a sort key that puts names in their order and leaves other columns as they are."""
    places = {name: place for place, name in enumerate(names)}
    return lambda column: column.map(places) if column.isin(places).all() else column


def gain_left(changed: np.ndarray, text: np.ndarray, floor: float) -> Interval:
    """Return which share of the text's gain over a floor is left, with the interval of a bootstrap over agents."""
    if not student_interval(text).low > floor:
        return Interval(np.nan, np.nan, np.nan)
    (weights,) = bootstrap_weights(len(text), resamples=2000)
    resampled = (weights @ changed - floor) / (weights @ text - floor)
    return percentile_interval((changed.mean() - floor) / (text.mean() - floor), resampled)
