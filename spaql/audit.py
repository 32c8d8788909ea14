"""The audit's data: selection bias, the released program's rules, the Random row, a fairer comparison, deviations.

Functions of records (see `spaql.experiments.run`) that return frames; nothing here trains or plots.
"""

import fnmatch
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from spaql import results
from spaql.agents import make_env
from spaql.claims import AGENTS, Group, count_reached, first_crossing, load_claims, make_group, summary_p
from spaql.compiling import entry
from spaql.experiments import ABLATION, LEARNERS, LONG_RUNS, SWITCHES, XI_STUDY, histories
from spaql.jobs import Job, Record
from spaql.statistics import (
    SOLVED,
    Interval,
    bootstrap_weights,
    paper_interval,
    percentile_interval,
    probability_of_improvement,
    samples_to_reach,
    selection_bias,
    welch_holm,
)
from spaql.systems import compile_system, draw_starts, make_space, pendulum_reset, pendulum_step

RULE_NAMES = {rules: name for name, rules in SWITCHES.items()}
KEPT_BEST = ("SPAQL", "SPAQL-TS")  # the algorithms whose reported number is the best so far
THRESHOLDS = {"Pendulum-v1": (-900.0, -700.0, -500.0, -200.0), "CartPole-v0": (100.0, 150.0, 190.0, SOLVED)}
BUDGET = 400_000  # samples each algorithm trains on


def spell(name: str, found: Interval) -> dict[str, float]:
    """Return the columns of an interval: its name, and the name with the ends."""
    return {name: found.mean, f"{name}_low": found.low, f"{name}_high": found.high}


def gather(records: Iterable[Record]) -> dict[Job, Group]:
    """Return groups of agents that differ in nothing but their seeds, by the job of the first, as if unrecorded."""
    cells: dict[Job, list[Record]] = {}
    for record in records:
        cells.setdefault(record.job._replace(agent=0, record=False), []).append(record)
    return {job: make_group(cell) for job, cell in cells.items()}


def is_long(job: Job) -> bool:
    """Return whether a job has the ξ and N of the paper's long runs, whatever its rules."""
    xis, evaluations = LONG_RUNS["xis"].get(job.system, {}), LONG_RUNS["evaluations"].get(job.system)
    return xis.get(job.algorithm) == job.xi and job.evaluations == evaluations


# ---------------------------------------------------------------------------------------------------------------------
# Best so far against fresh


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


# ---------------------------------------------------------------------------------------------------------------------
# Text against released program


def ablation_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return the effect of each rule of the released program, alone and all together, on the long runs.

    A row a system, algorithm, rule and quantity ("rewards", "fresh", "arms"): the mean under the text's rules, the
    mean under the rule, the difference with its 95 % interval, Welch's p corrected over the whole table, and whether
    the rule changed nothing at all in any agent.
    """
    groups = {job: group for job, group in gather(records).items() if is_long(job)}
    text = {job: group for job, group in groups.items() if RULE_NAMES[job.rules] == "paper"}
    pairs, cells = {}, {}
    for job, group in groups.items():
        base = job._replace(rules=SWITCHES["paper"])
        if job == base or base not in text:
            continue
        for quantity in ("rewards", "fresh", "arms"):
            key = job.system, job.algorithm, RULE_NAMES[job.rules], quantity
            pairs[key] = group.column(quantity), text[base].column(quantity)
            cells[key] = np.array_equal(group.curves, text[base].curves)
    tests = welch_holm(pairs)
    if not pairs:
        raise ValueError("expected agents under the text's rules and under others, with the same K, N and ξ")
    frame = pd.DataFrame(
        [
            dict(zip(("system", "algorithm", "rule", "quantity"), key, strict=True))
            | {"text": other.mean(), "released": one.mean()}
            | {"difference": tests[key].difference, "low": tests[key].low, "high": tests[key].high}
            | {"p_holm": tests[key].p_holm, "same": cells[key]}
            for key, (one, other) in pairs.items()
        ]
    )
    ordered = {name: place for place, name in enumerate((*LEARNERS, *SWITCHES))}
    return frame.sort_values(["system", "algorithm", "rule"], kind="stable", ignore_index=True, key=in_order(ordered))


def in_order(places: dict[str, int]) -> Any:
    """Return a sort key that puts what has a place there and leaves other columns as they are."""
    return lambda column: column.map(places) if column.isin(places).all() else column


def xi_zero(records: Iterable[Record]) -> pd.DataFrame:
    """Return how the learners end the ξ study on CartPole with ξ = 0, under the rules that were run."""
    rows = [
        {"algorithm": job.algorithm, "rules": RULE_NAMES[job.rules]}
        | spell("rewards", paper_interval(group.rewards))
        | spell("fresh", paper_interval(group.fresh))
        for job, group in gather(records).items()
        if (job.system, job.xi, job.algorithm in LEARNERS) == ("CartPole-v0", 0.0, True)
        and job.iterations <= XI_STUDY["iterations"]
    ]
    ordered = {name: place for place, name in enumerate(LEARNERS)} | {"paper": 0, "ties": 1, "released": 2}
    return pd.DataFrame(rows).sort_values(["algorithm", "rules"], ignore_index=True, key=in_order(ordered))


def explanations(records: Iterable[Record]) -> pd.DataFrame:
    """Return the paper's numbers and counts next to ours under both whole sets of rules, every system and N run.

    A row a claim and variant: the paper's value, ours with its interval, and two p-values, neither corrected: small
    ones rule a variant out, large ones leave it in.  `p` is that of the claim's own test.  `p_shared`, for numbers,
    takes the paper's agents to share their starts, so that their mean is known no better than one agent's: it asks
    whether the paper's value could be one more of ours.
    """
    groups = gather(records)
    rows = []
    for claim in (claim for claim in load_claims() if claim["kind"] in ("number", "count")):
        _, system, algorithm = claim["group"].split(", ")
        for job, group in groups.items():
            rules = RULE_NAMES[job.rules]
            alike = ABLATION["like"].get(job.system, job.system), job.algorithm
            xi = LONG_RUNS["xis"][system].get(algorithm, 0)
            if rules not in ("paper", "released") or alike != (system, algorithm) or job.xi != xi:
                continue
            values = group.column(claim.get("column", "rewards"))
            if claim["kind"] == "number":
                ours, shared = paper_interval(values), one_more(values, claim["paper"])
                p = summary_p(claim["paper"], claim["half"], ours.mean, ours.high - ours.mean, values.size)
            else:
                ours, _, (p,), *_ = count_reached(claim, values)
                shared = np.nan
            rows.append(
                {"id": claim["id"], "rules": rules, "system": job.system, "N": job.evaluations}
                | {"paper": claim["paper"], "half": claim.get("half", np.nan)}
                | spell("ours", ours)
                | {"p": p, "p_shared": shared}
            )
    return pd.DataFrame(rows)


def one_more(values: np.ndarray, value: float) -> float:
    """Return the p of a value as one more draw of what these were drawn from, by Student's prediction interval."""
    spread = values.std(ddof=1) * np.sqrt(1 + 1 / values.size)
    return float(2 * stats.t.sf(abs(value - values.mean()) / spread, values.size - 1)) if spread else float("nan")


def crossings(records: Iterable[Record]) -> pd.DataFrame:
    """Return the batch after which TRPO's mean curve first is not below SPAQL's or SPAQL-TS's, under their rules.

    `lead` is how far those are ahead before: the difference of the mean rewards over the first 200 batches.
    """
    groups = gather(records)
    rows = []
    for job, group in groups.items():
        rules = RULE_NAMES[job.rules]
        if job.algorithm not in KEPT_BEST or rules not in ("paper", "released"):
            continue
        for trpo, baseline in groups.items():
            if trpo.algorithm in results.TRPO and trpo.system == job.system:
                found = spell("lead", early_lead(group, baseline)) | spell("batch", first_crossing(baseline, group))
                names = {"system": job.system, "baseline": trpo.algorithm, "algorithm": job.algorithm, "rules": rules}
                rows.append(names | found)
    columns = ["system", "baseline", "algorithm", "rules"]
    columns += [f"{name}{end}" for name in ("lead", "batch") for end in ("", "_low", "_high")]
    return pd.DataFrame(rows, columns=columns).sort_values(columns[:4], ignore_index=True)


def early_lead(one: Group, other: Group) -> Interval:
    """Return by how much the mean reward of a group exceeds another's over the first 200 batches, by bootstrap."""
    rng = np.random.default_rng(0)
    first, second = one.column("early"), other.column("early")
    resampled = bootstrap_weights(rng, first.size) @ first - bootstrap_weights(rng, second.size) @ second
    return percentile_interval(first.mean() - second.mean(), resampled)


# ---------------------------------------------------------------------------------------------------------------------
# The Random row


@entry
def random_means(system, starts, rng, x, lowest, means):
    """Write each agent's mean reward under uniform actions from [lowest, 1]; `starts` is agent, episode, state."""
    state, action = np.empty(3), np.empty(1)
    for agent in range(starts.shape[0]):
        total = 0.0
        for episode in range(starts.shape[1]):
            pendulum_reset(system, state, starts[agent, episode], x)
            for _ in range(200):
                action[0] = lowest + (1.0 - lowest) * rng.random()
                total += pendulum_step(system, state, action, x)[0]
        means[agent] = total / starts.shape[1]


def random_row(
    replications: int = 500, seed: int = 0, system: str = "Pendulum-v1", evaluations: int = 20
) -> pd.DataFrame:
    """Return what the paper's Random row would be under four hypotheses, a row a replication of the experiment.

    The torque is uniform over all of [-2, 2] Nm ("two-way", the text) or over [0, 2] ("one-way", the released program);
    the 20 agents start from states of their own ("independent") or all from the same ("shared", the program).

    Parameters
    ----------
    replications
        How often to repeat the experiment of 20 agents under each hypothesis.
    seed
        Of the random numbers.
    system
        A Gymnasium id of a pendulum.
    evaluations
        Rollouts (N) of each agent.

    Returns
    -------
    frame
        Columns torque, starts, replication, mean and half (the paper's half-interval).
    """
    env = make_env(system)
    space = make_space(env)
    compiled, x, means = compile_system(env, space), np.empty(len(space.centre)), np.empty(AGENTS)
    rows = []
    for child, (torque, shared) in zip(
        np.random.SeedSequence(seed).spawn(4),
        ((torque, shared) for torque in ("two-way", "one-way") for shared in (False, True)),
        strict=True,
    ):
        rng = np.random.default_rng(child)
        for replication in range(replications):
            starts = draw_starts(compiled, rng, evaluations if shared else AGENTS * evaluations)
            starts = np.ascontiguousarray(np.broadcast_to(starts.reshape(-1, evaluations, 2), (AGENTS, evaluations, 2)))
            random_means(compiled, starts, rng, x, 0.0 if torque == "one-way" else -1.0, means)
            found = paper_interval(means)
            rows.append(
                (torque, "shared" if shared else "independent", replication, found.mean, found.high - found.mean)
            )
    return pd.DataFrame(rows, columns=["torque", "starts", "replication", "mean", "half"])


def random_fit(frame: pd.DataFrame) -> pd.DataFrame:
    """Return how well each hypothesis of `random_row` fits the paper's Random row.

    Columns: the mean and half-interval expected, with the central 95 % of the replications; and the share of
    replications at least as far from the middle as the paper's value (`mean_fits`, `half_fits`).
    """
    claim = next(claim for claim in load_claims() if claim["id"] == "pendulum-rewards-random")
    rows = []
    for (torque, starts), cell in frame.groupby(["torque", "starts"], sort=False):
        row = {"torque": torque, "starts": starts}
        for name, paper in (("mean", claim["paper"]), ("half", claim["half"])):
            row |= spell(name, percentile_interval(cell[name].mean(), cell[name]))
            below = np.mean(cell[name] <= paper)
            row[f"{name}_fits"] = 2 * min(below, 1 - below)
        rows.append(row)
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------------------------------------
# A fairer comparison


def compared(records: Iterable[Record]) -> list[Record]:
    """Return the records of the comparison with TRPO: its own, and the long runs of the text on the same systems."""
    return [
        record
        for record in records
        if record.job.system in THRESHOLDS
        and RULE_NAMES[record.job.rules] == "paper"
        and (is_long(record.job) or record.job.algorithm in results.TRPO)
    ]


def samples_table(records: Iterable[Record], thresholds: dict[str, tuple[float, ...]] = THRESHOLDS) -> pd.DataFrame:
    """Return how many samples the agents need to reach thresholds, counted as the paper does and in full.

    `counted` is "training" or "all", which includes the evaluation rollouts that SPAQL's keep-the-best rule consumes.
    (AQL does not use its rollouts, TRPO has none.)  `reached` is the share of agents that get there at all; `samples`
    the median over agents, infinite if fewer than half do, with its bootstrap interval.
    """
    rng = np.random.default_rng(0)
    rows = []
    for (system, algorithm), cell in histories(compared(records)).groupby(["system", "algorithm"]):
        agents = cell.agent.nunique()
        drawn = rng.integers(agents, size=(9999, agents))
        for threshold in thresholds[system]:
            for counted in ("training", "all"):
                own = counted == "all" and algorithm in KEPT_BEST
                needed = samples_to_reach(cell, threshold, evaluations=own).fillna(np.inf).to_numpy()
                found = percentile_interval(middle(needed), middle(needed[drawn]))
                rows.append(
                    {"system": system, "algorithm": algorithm, "threshold": threshold, "counted": counted}
                    | {"reached": np.isfinite(needed).mean()}
                    | spell("samples", found)
                )
    return pd.DataFrame(rows)


def middle(values: np.ndarray) -> np.ndarray:
    """Return the upper median along the last axis, which is some agent's, so that infinities do no harm."""
    return np.sort(values, axis=-1)[..., values.shape[-1] // 2]


def at_budget(records: Iterable[Record], budget: int = BUDGET) -> pd.DataFrame:
    """Return the reward reported once an agent has spent a budget of samples, training alone or everything counted."""
    rows = []
    for (system, algorithm), cell in histories(compared(records)).groupby(["system", "algorithm"]):
        ordered = cell.sort_values(["agent", "iteration"])
        for counted in ("training", "all"):
            own = counted == "all" and algorithm in KEPT_BEST
            spent = (ordered.steps + (ordered.evaluation_steps if own else 0)).groupby(ordered.agent).cumsum()
            last = ordered[spent <= budget].groupby("agent").last()
            rows.append(
                {"system": system, "algorithm": algorithm, "counted": counted}
                | {"iterations": last.iteration.median(), "agents": len(last)}
                | spell("rewards", paper_interval(last.rewards))
            )
    return pd.DataFrame(rows)


def improvement_table(records: Iterable[Record]) -> pd.DataFrame:
    """Return the probability that an agent of one algorithm beats one of another, with bootstrap intervals.

    By the reported numbers and on fresh episodes; every pair of algorithms on a system once, ties half.
    """
    groups: dict[str, dict[str, Group]] = {}
    for job, group in gather(compared(records)).items():
        groups.setdefault(job.system, {})[job.algorithm] = group
    rows = []
    for system, cells in groups.items():
        names = [name for name in (*results.TRPO, *reversed(LEARNERS), "Random") if name in cells]
        for one, other in ((a, b) for i, a in enumerate(names) for b in names[i + 1 :]):
            for quantity in ("rewards", "fresh"):
                first, second = cells[one].column(quantity), cells[other].column(quantity)
                rng = np.random.default_rng(0)
                wins = (first[:, None] > second) + 0.5 * (first[:, None] == second)
                a, b = bootstrap_weights(rng, first.size), bootstrap_weights(rng, second.size)
                found = percentile_interval(probability_of_improvement(first, second), np.sum(a @ wins * b, axis=1))
                rows.append(
                    {"system": system, "first": one, "second": other, "quantity": quantity}
                    | spell("probability", found)
                )
    return pd.DataFrame(rows)


# ---------------------------------------------------------------------------------------------------------------------
# Where we differ from the paper


def deviations() -> pd.DataFrame:
    """Return every place where we differ from the paper, with the ids of the claims it can affect.

    Returns
    -------
    frame
        Columns id, topic, `paper` (what it says, or its program does), `ours`, `reason`, `affects`, a list of ids, and
        `patterns`, the same as it is written.
    """
    path = Path(__file__).with_name("deviations.toml")
    frame = pd.DataFrame(tomllib.loads(path.read_text(encoding="utf-8"))["deviation"])
    frame["patterns"] = frame.affects
    frame["affects"] = frame.affects.map(matching)
    return frame


def matching(patterns: Iterable[str]) -> list[str]:
    """Return the ids of the claims that match any of these patterns, in the claims' order; each must match one."""
    ids = [claim["id"] for claim in load_claims()]
    for pattern in patterns:
        if not fnmatch.filter(ids, pattern):
            raise ValueError(f"no claim has an id like {pattern!r}")
    return [name for name in ids if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
