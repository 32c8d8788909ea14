"""The tables of what is learned: frames of `spaql.paper.audit` in, tables of the book out."""

import numpy as np
import pandas as pd

from spaql.paper.audit.learned import LENGTHS
from spaql.paper.frames import by_algorithm
from spaql.paper.labels import between, number, plus_minus, small
from spaql.paper.statistics import student_interval
from spaql.paper.tables.audit import interval_of
from spaql.paper.tables.table import Table
from spaql.policies.interval import Interval, clipped
from spaql.systems import title


def control_effects(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what every control changes, reported and on fresh episodes, below the algorithm without any change."""
    rows: list[dict[str, str]] = []
    for (system, algorithm, control), cell in frame.groupby(["system", "algorithm", "control"], sort=False):
        both = {row.quantity: row for _, row in cell.iterrows()}
        fresh = both["fresh"]
        named = {"system and algorithm": f"{title(system)}, {algorithm}"}
        if not rows or rows[-1]["system and algorithm"] != named["system and algorithm"]:
            reported = number(both["rewards"].text, 0)
            rows.append(named | {"change": "none", "reported": reported, "fresh": interval_of(fresh, "text", 0)})
        rows.append(
            named
            | {"change": control}
            | {"reported": number(both["rewards"].changed, 0)}
            | {"fresh": interval_of(fresh, "changed", 0)}
            | {"difference": between(Interval(fresh.difference, fresh.low, fresh.high), 0)}
            | {"p (Holm)": small(fresh.p_holm), "gain that is left": percent(fresh)}
        )
    return Table(pd.DataFrame(rows).fillna(""), caption, name)


def percent(row: pd.Series) -> str:
    """Return which share of a gain is left, with its interval, as text; a dash where there is no gain."""
    if np.isnan(row.share):
        return "–"
    return f"{between(Interval(100 * row.share, 100 * row.share_low, 100 * row.share_high), 0)} %"


def by_group(frame: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """Return the rows of each system and algorithm, in the book's order."""
    return list(by_algorithm(frame).groupby(["system", "algorithm"], sort=False))


def held_table(frame: pd.DataFrame, law: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how much of the estimates the visits alone explain, in the long runs and in the study of ξ."""
    groups = by_algorithm(frame).groupby(["system", "algorithm"], sort=False)
    long = groups.agg(agents=("law", "size"), least=("at_H", "min"), at_H=("at_H", "mean"), law=("law", "max"))
    long["rank"] = [between(student_interval(cell.rank_visits), 2) for _, cell in groups]
    long, law = long.reset_index(), law.assign(least=law.at_H, rank="")
    both = pd.concat(
        [long.assign(where=long.system.map(title)), law.assign(where=law.system.map(title) + ", study of ξ")]
    )
    rows = [
        {
            "system": group.where,
            "algorithm": group.algorithm,
            "agents": str(group.agents),
            "proof": "holds" if group.least == 1 else "does not apply",
            "cells with V = H": f"{100 * group.at_H:.1f} %",
            "largest distance from the function of visits": number(group.law, 1 if group.law else 0),
            "rank correlation with visits": group.rank,
        }
        for group in both.itertuples()
    ]
    return Table(pd.DataFrame(rows), caption, name)


def prediction_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return how well estimates predict returns."""
    rows = [
        {
            "system": title(system),
            "algorithm": algorithm,
            "rank correlation": between(student_interval(cell.rho.dropna()), 2) if cell.rho.notna().any() else "",
            "mean Q": number(cell.mean_q.mean(), 1),
            "mean return": number(cell.mean_return.mean(), 1),
            "slope": number(cell.slope.median(), 2),
        }
        for (system, algorithm), cell in by_group(frame)
    ]
    return Table(pd.DataFrame(rows), caption, name)


def lasting_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return for how long the pole stands, and why episodes end."""
    rows = []
    for (_, algorithm), cell in by_group(frame[frame.cart.notna() & (frame.algorithm != "AQL")]):
        reached = {f"{length:,} steps": share(cell[f"reach_{length}"]) for length in LENGTHS}
        failed = cell.cart_later + cell.pole_later
        rows.append(
            {"algorithm": algorithm}
            | reached
            | {"ends after 200 steps": share(failed), "of these the cart left": share(cell.cart_later / failed)}
        )
    return Table(pd.DataFrame(rows), caption, name)


def share(values: pd.Series) -> str:
    """Return the mean of shares, one per agent, with its interval, as text."""
    values = values[np.isfinite(values)]
    found = student_interval(100 * values)
    return f"{between(clipped(found, 0.0, 100.0), 0)} %"


def small_table(frame: pd.DataFrame, methods: list[str], caption: str, name: str) -> Table:
    """Return what each method earns on the small problems, beside the optimum and the myopic policy."""
    rows = []
    for system, cell in frame.groupby("system", sort=False):
        found = cell.set_index("method")
        row = {
            "system": title(system),
            "optimum": number(found.best.iloc[0], 2),
            "myopic": number(found.myopic.iloc[0], 2),
        }
        there = [method for method in methods if method in found.index]
        rows.append(row | {method: half_width(found.fresh[method]) for method in there})
    return Table(pd.DataFrame(rows).fillna(""), caption, name)


def half_width(values: pd.Series, digits: int = 2) -> str:
    """Return a mean with the half-width of its 95 % interval."""
    found = student_interval(values)
    return plus_minus(found.mean, found.high - found.mean, digits)


def ends_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what the best and the last agent of a training earn, with and without returns and heat."""
    rows = []
    for (system, algorithm), cell in frame.groupby(["system", "algorithm"], sort=False):
        for end in ("best", "last"):
            row = {"system": title(system), "algorithm": algorithm, "kept": end}
            for each in cell.to_dict("records"):
                heat = "heat" if each["temperature"] == "rises" else "no heat"
                row[f"{'returns' if each['returns'] == 'yes' else 'no returns'}, {heat}"] = half_width(each[end], 0)
            rows.append(row)
    return Table(pd.DataFrame(rows), caption, name)


def ideas_table(frame: pd.DataFrame, effects: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what the ideas earn, beside SPAQL that keeps its best and its last agent: rows of `controls_table`."""
    last = effects[effects.algorithm.eq("SPAQL") & effects.control.eq("last kept") & effects.quantity.eq("fresh")]
    rows = []
    for system, cell in frame.groupby("system", sort=False):
        known = last[last.system == system].iloc[0]
        row = {
            label: plus_minus(known[column], known[f"{column}_high"] - known[column], 0)
            for label, column in (("SPAQL", "text"), ("SPAQL, last kept", "changed"))
        }
        ideas = {idea.idea: half_width(idea.fresh, 0) for idea in cell.itertuples()}
        rows.append({"system": title(system)} | row | ideas)
    return Table(pd.DataFrame(rows), caption, name)


def settings_table(frame: pd.DataFrame, caption: str, name: str) -> Table:
    """Return what is earned with every setting, one column per system and algorithm; bold where it differs."""
    rows: dict[str, dict[str, str]] = {}
    for row in frame[frame.algorithm != "Random"].itertuples():
        text = plus_minus(row.fresh, row.fresh_high - row.fresh, 0)
        cell = f"**{text}**" if row.p_holm < 0.05 else text
        rows.setdefault(row.setting, {"setting": row.setting})[f"{title(row.system)}, {row.algorithm}"] = cell
    return Table(pd.DataFrame(rows.values()).fillna(""), caption, name)
