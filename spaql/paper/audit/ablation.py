"""The text's rules against the released program's, one at a time and all together."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.audit.changes import GROUP, compare_changes, in_order
from spaql.paper.claims.load import load_claims
from spaql.paper.audit.measures import count_reached, summary_p, two_sided
from spaql.paper.frames import finals
from spaql.paper.runs.job import Record
from spaql.paper.statistics import bootstrap_interval, spell, summarise
from spaql.paper.studies import LEARNERS, LIKE, LONG_XI, SWITCHES, is_long, parameters_of, study
from spaql.policies.interval import paper_interval

RULE_NAMES = {rules: name for name, rules in SWITCHES.items()}


def ruled(records: Iterable[Record]) -> pd.DataFrame:
    """Return one row per agent, with the name of its rules."""
    records = list(records)
    return finals(records).assign(rule=[RULE_NAMES[record.job.rules] for record in records])


def ablation_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return what each rule of the released program, alone and all together, does on the long runs.

    Beside the columns of `compare_changes`, `same` says whether the rule changed none of the numbers of any agent.
    """
    agents = ruled(record for record in records if is_long(record.job))
    found = compare_changes(agents, "rule", ("paper", *SWITCHES), ("rewards", "fresh", "arms"), {})
    unmoved = (found.low == 0) & (found.high == 0)
    return found.assign(same=unmoved.groupby([found[name] for name in (*GROUP, "rule")]).transform("all"))


def xi_zero(records: Iterable[Record]) -> pd.DataFrame:
    """Return how the learners end the ξ study with ξ = 0, where the ablation repeats it, under each set of rules."""
    systems = {job.system for job in study("ablation") if job.xi == 0.0}
    agents = ruled(records).rename(columns={"rule": "rules"})
    zero = agents[agents.system.isin(systems) & (agents.xi == 0) & agents.algorithm.isin(LEARNERS)]
    short = zero[zero.iterations <= parameters_of("xi")["iterations"]]
    found = summarise(short, ["algorithm", "rules"], rewards=bootstrap_interval, fresh=bootstrap_interval)
    ordered = in_order((*LEARNERS, "paper", "ties", "released"))
    return found.drop(columns="agents").sort_values(["algorithm", "rules"], ignore_index=True, key=ordered)


def explanations(records: Iterable[Record]) -> pd.DataFrame:
    """Return the paper's numbers and counts next to ours under both whole sets of rules, every system and N run.

    One row per claim and variant has the paper's value, ours with its interval, and two p-values, neither corrected:
    small ones rule a variant out, large ones leave it in.  `p` is that of the claim's own test.  `p_shared`, for
    numbers, takes the paper's agents to share their starts, so that their mean is known no better than one agent's: it
    asks whether the paper's value could be one more of ours.
    """
    agents = ruled(records)
    agents = agents[agents.rule.isin(("paper", "released"))].assign(like=agents.system.map(lambda s: LIKE.get(s, s)))
    rows = []
    for claim in (claim for claim in load_claims() if claim.kind in ("number", "count")):
        _, like, algorithm = claim.group.split(", ")
        mine = agents[(agents.like == like) & (agents.algorithm == algorithm)]
        mine = mine[mine.xi == LONG_XI[like].get(algorithm, 0)]
        for (system, rules, N, _), cell in mine.groupby(["system", "rule", "N", "iterations"], sort=False):
            values = cell[claim.column].to_numpy(float)
            if claim.kind == "number":
                ours, shared = paper_interval(values), one_more(values, claim.paper)
                p = summary_p(claim.paper, claim.half, ours.mean, ours.high - ours.mean, values.size)
            else:
                counted = count_reached(claim, values)
                ours, p, shared = counted.ours, two_sided(counted.tails[0]), np.nan
            rows.append(
                {"id": claim.id, "rules": rules, "system": system, "N": N}
                | {"paper": claim.paper, "half": claim.half}
                | spell("ours", ours)
                | {"p": p, "p_shared": shared}
            )
    return pd.DataFrame(rows)


def one_more(values: np.ndarray, value: float) -> float:
    """Return the p of a value as one more draw of what these were drawn from, by Student's prediction interval."""
    spread = values.std(ddof=1) * np.sqrt(1 + 1 / values.size)
    return float(2 * stats.t.sf(abs(value - values.mean()) / spread, values.size - 1)) if spread else float("nan")
