"""Whether two computations of the same agents agree, bit for bit or in their statistics."""

from collections.abc import Iterable

import pandas as pd

from spaql.paper.runs.job import Record
from spaql.paper.statistics import welch_holm


def agreement(ours: Iterable[Record], theirs: Iterable[Record]) -> pd.DataFrame:
    """Compare two computations of the same agents, a row a group of them that differ in nothing but their seeds.

    On the same machine they are the same bits (`same_bits` counts the agents that are).  On another one the last bit
    of a sine may differ, and with it, sooner or later, everything; the groups must still agree.  Each row has Welch
    tests of the final rewards, the fresh rewards and the arms; `p` is the least of the three after Holm's correction
    for all tests of the frame, and the row `agrees` if it is at least 5 %.
    """
    keys = ["system", "algorithm", "xi", "iterations", "evaluations"]
    pairs = pd.DataFrame(
        [
            {key: getattr(a.job, key) for key in keys}
            | {"same_bits": a.digest() == b.digest()}
            | {f"{side}_{name}": value for side, r in (("our", a), ("their", b)) for name, value in outcome(r).items()}
            for a, b in zip(ours, theirs, strict=True)
        ]
    )
    cells = pairs.groupby(keys, sort=False)
    names = ("rewards", "fresh", "arms")
    tests = welch_holm(
        {(*cell, name): (group[f"our_{name}"], group[f"their_{name}"]) for cell, group in cells for name in names}
    )
    frame = cells.agg(agents=("same_bits", "size"), same_bits=("same_bits", "sum"))
    frame["p"] = [min(tests[*cell, name].p_holm for name in names) for cell in frame.index]
    frame["agrees"] = frame.p >= 0.05
    return frame.reset_index()


def outcome(record: Record) -> dict[str, float]:
    """Return what an agent is judged by."""
    last = record.history[-1]
    return {"rewards": float(last["rewards"]), "fresh": float(record.fresh[0]), "arms": float(last["arms"])}
