"""The text's rules against the released program's, one at a time and all together."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.audit.claims import load_claims
from spaql.paper.audit.groups import grouped, spell
from spaql.paper.audit.measures import count_reached, summary_p, two_sided
from spaql.paper.frames import by_system
from spaql.paper.runs.job import Record
from spaql.paper.statistics import bootstrap_interval, paired_holm
from spaql.paper.studies import LEARNERS, LIKE, LONG_XI, SWITCHES, is_long, parameters_of, study
from spaql.policies.interval import paper_interval

RULE_NAMES = {rules: name for name, rules in SWITCHES.items()}

CELL = ["system", "algorithm", "rule", "quantity"]  # what names a row of `ablation_table`


def ablation_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return the effect of each rule of the released program, alone and all together, on the long runs.

    One row per system, algorithm, rule and quantity ("rewards", "fresh", "arms") has the mean under the text's rules,
    the mean under the rule, the difference with its 95 % interval, the p of the paired test (agents of the same place
    share their seeds) corrected over the whole table, and whether the rule changed none of these numbers in any agent.
    """
    groups = {job: group for job, group in grouped(records).items() if is_long(job)}
    text = {job: group for job, group in groups.items() if RULE_NAMES[job.rules] == "paper"}
    pairs, same = {}, {}
    quantities = ("rewards", "fresh", "arms")
    for job, group in groups.items():
        base = dataclasses.replace(job, rules=SWITCHES["paper"])
        if job == base or base not in text:
            continue
        found = {name: (group.column(name), text[base].column(name)) for name in quantities}
        unchanged = all(np.array_equal(one, other) for one, other in found.values())
        for quantity in quantities:
            key = job.system, job.algorithm, RULE_NAMES[job.rules], quantity
            pairs[key], same[key] = found[quantity], unchanged
    tests = paired_holm(pairs)
    if not pairs:
        raise ValueError("expected agents under the text's rules and under others, with the same K, N and ξ")
    frame = pd.DataFrame(
        [
            dict(zip(CELL, key, strict=True))
            | {"text": other.mean(), "released": one.mean()}
            | {"difference": tests[key].difference, "low": tests[key].low, "high": tests[key].high}
            | {"p_holm": tests[key].p_holm, "same": same[key]}
            for key, (one, other) in pairs.items()
        ]
    )
    ordered = {name: place for place, name in enumerate((*LEARNERS, *SWITCHES))}
    return by_system(frame.sort_values(["system", "algorithm", "rule"], kind="stable", key=in_order(ordered)))


def in_order(places: dict[str, int]) -> Any:
    """Return a sort key that puts what has a place there and leaves other columns as they are."""
    return lambda column: column.map(places) if column.isin(places).all() else column


def xi_zero(records: Iterable[Record]) -> pd.DataFrame:
    """Return how the learners end the ξ study with ξ = 0, where the ablation repeats it, under each set of rules."""
    systems = {job.system for job in study("ablation") if job.xi == 0.0}
    rows: list[dict[str, Any]] = [
        {"algorithm": job.algorithm, "rules": RULE_NAMES[job.rules]}
        | spell("rewards", bootstrap_interval(group.rewards))
        | spell("fresh", bootstrap_interval(group.fresh))
        for job, group in grouped(records).items()
        if job.system in systems
        and job.xi == 0.0
        and job.algorithm in LEARNERS
        and job.iterations <= parameters_of("xi")["iterations"]
    ]
    ordered = {name: place for place, name in enumerate(LEARNERS)} | {"paper": 0, "ties": 1, "released": 2}
    return pd.DataFrame(rows).sort_values(["algorithm", "rules"], ignore_index=True, key=in_order(ordered))


def explanations(records: Iterable[Record]) -> pd.DataFrame:
    """Return the paper's numbers and counts next to ours under both whole sets of rules, every system and N run.

    One row per claim and variant has the paper's value, ours with its interval, and two p-values, neither corrected:
    small ones rule a variant out, large ones leave it in.  `p` is that of the claim's own test.  `p_shared`, for
    numbers, takes the paper's agents to share their starts, so that their mean is known no better than one agent's: it
    asks whether the paper's value could be one more of ours.
    """
    groups = grouped(records)
    rows = []
    for claim in (claim for claim in load_claims() if claim.kind in ("number", "count")):
        _, system, algorithm = claim.group.split(", ")
        for job, group in groups.items():
            rules = RULE_NAMES[job.rules]
            alike = LIKE.get(job.system, job.system), job.algorithm
            xi = LONG_XI[system].get(algorithm, 0)
            if rules not in ("paper", "released") or alike != (system, algorithm) or job.xi != xi:
                continue
            values = group.column(claim.column)
            if claim.kind == "number":
                ours, shared = paper_interval(values), one_more(values, claim.paper)
                p = summary_p(claim.paper, claim.half, ours.mean, ours.high - ours.mean, values.size)
            else:
                counted = count_reached(claim, values)
                ours, p, shared = counted.ours, two_sided(counted.tails[0]), np.nan
            rows.append(
                {"id": claim.id, "rules": rules, "system": job.system, "N": job.evaluations}
                | {"paper": claim.paper, "half": claim.half}
                | spell("ours", ours)
                | {"p": p, "p_shared": shared}
            )
    return pd.DataFrame(rows)


def one_more(values: np.ndarray, value: float) -> float:
    """Return the p of a value as one more draw of what these were drawn from, by Student's prediction interval."""
    spread = values.std(ddof=1) * np.sqrt(1 + 1 / values.size)
    return float(2 * stats.t.sf(abs(value - values.mean()) / spread, values.size - 1)) if spread else float("nan")
