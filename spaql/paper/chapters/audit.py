"""Verdicts as a figure, and what the released program's rules change (chapter 6)."""

import functools
import re

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spaql.paper.claims.judge import EQUALITIES, ORDERS
from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED
from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.job import rules_text
from spaql.paper.engine.statistics import paired_holm
from spaql.paper.engine.study import LONG_N, LONG_XI, SWITCHES
from spaql.paper.engine.style import STYLES, legend_above, name_panel, new_figure
from spaql.systems import title

# Every verdict has a shape and a colour; the colours stay apart in grey.
MARKS = {HOLDS: ("o", "#00664b"), DIFFERS: ("X", "#d55e00"), UNDECIDED: ("D", "#5a6168"), NOT_JUDGED: ("_", "#8c8c8c")}

RULE_NAMES = {rules_text(rules): name for name, rules in SWITCHES.items()}


def forest(frame: pd.DataFrame) -> Figure:
    """Show the orders and equalities of the paper's tables: the place of a mark decides its verdict.

    Above are orders, divided by the difference that the paper's tables give: what is above zero holds.  Below are
    equalities, in units of the margin: what is inside holds, and what differs leaves out zero.
    """
    known = frame[np.isfinite(frame.paper_half) & np.isfinite(frame.ours)]
    orders, equal = known[known.kind.isin(ORDERS)], known[known.kind.isin(EQUALITIES)]
    figure, grid = new_figure(
        2, height=0.14 * len(known) + 0.7, gridspec_kw={"height_ratios": [len(orders), len(equal)]}
    )
    draw_claims(grid[0, 0], orders, ("ours", "low", "high"), orders.paper)
    draw_claims(grid[1, 0], equal, ("apart", "apart_low", "apart_high"), equal.margin)
    grid[0, 0].axvline(1, color="#777777", linestyle=":", linewidth=1.4)
    grid[0, 0].set_xlabel("our difference divided by the paper's")
    grid[1, 0].axvspan(-1, 1, color="#e8e8e8", zorder=0)
    grid[1, 0].set_xlabel("our number minus the paper's, in margins")
    name_panel(grid[0, 0], "one is better than another")
    name_panel(grid[1, 0], "numbers, and two that are level")
    for verdict in dict.fromkeys(known.verdict):
        marker, colour = MARKS[verdict]
        grid[0, 0].plot([], [], color=colour, marker=marker, linestyle="", label=verdict)
    legend_above(figure, grid[0, 0])
    return figure


def draw_claims(axes: Axes, rows: pd.DataFrame, columns: tuple[str, ...], unit: pd.Series) -> None:
    """Draw claims below each other, each with its interval in the shape and colour of its verdict."""
    for place, (at, row) in enumerate(rows.iterrows()):
        (marker, colour), (mean, low, high) = MARKS[row.verdict], sorted_by(row, columns, unit[at])
        axes.errorbar(mean, place, xerr=[[mean - low], [high - mean]], color=colour, marker=marker, ms=6, capsize=2,
                      linestyle="", zorder=3)  # fmt: skip
    axes.axvline(0, color="#555555", linewidth=1, zorder=1)
    axes.set_yticks(range(len(rows)), [claim_label(statement) for statement in rows.statement])
    axes.set(ylim=(len(rows) - 0.5, -0.5))


def sorted_by(row: pd.Series, columns: tuple[str, ...], unit: float) -> tuple[float, float, float]:
    """Return a claim's estimate and the ends of its interval in a unit, which may be negative."""
    mean, *ends = (row[column] / unit for column in columns)
    return mean, min(ends), max(ends)


def claim_label(statement: str) -> str:
    """Return a claim's statement as a label in few words."""
    short = {" at the end of training": "", " is better than ": " above ", "is no better than": "not above",
             "SPAQL and SPAQL-TS need fewer arms than AQL": "fewer arms than AQL", " on ": ", ",
             "Reward of ": "reward, ", "Arms of ": "arms, ", " and Random": ""}  # fmt: skip
    return functools.reduce(lambda text, pair: text.replace(*pair), short.items(), re.sub(r" \(.*\)", "", statement))


# ---------------------------------------------------------------------------------------------------------------------
# The released program's rules


def rule_effects(agents: pd.DataFrame) -> pd.DataFrame:
    """Return what each rule of the released program, alone and all together, changes in the long runs.

    One row per system, algorithm, rule and quantity: the mean difference from the text's rules, agent by agent (agents
    of the same place share their seeds), with its 95 % interval and the p of the paired test, corrected over the table.
    """
    agents = agents.assign(rule=agents.rules.map(RULE_NAMES))
    long = pd.Series([LONG_XI.get(s, {}).get(a) for s, a in zip(agents.system, agents.algorithm, strict=True)])
    agents = agents[(agents.xi.to_numpy() == long.to_numpy(float)) & (agents.system.map(LONG_N) == agents.N)]
    cells = dict(list(agents.sort_values("agent").groupby(["system", "algorithm", "rule"], sort=False)))
    pairs = {
        (system, algorithm, rule, quantity): (cell[quantity], cells[system, algorithm, "paper"][quantity])
        for (system, algorithm, rule), cell in cells.items()
        if rule != "paper"
        for quantity in ("rewards", "fresh", "arms")
    }
    tests = paired_holm(pairs)
    names = ("system", "algorithm", "rule", "quantity")
    columns = ("difference", "low", "high", "p_holm")
    return pd.DataFrame(
        [dict(zip(names, key, strict=True)) | {c: getattr(test, c) for c in columns} for key, test in tests.items()]
    )


def draw_effects(effects: pd.DataFrame, label: str) -> Figure:
    """Show effects of rules with their intervals: a panel for each system, a row for each rule, a mark an algorithm."""
    rules = [rule for rule in SWITCHES if rule in set(effects.rule)]
    figure, grid = new_figure(1, effects.system.nunique(), height=0.55 * len(rules) + 0.6, sharey=True)
    for axes, (system, here) in zip(grid[0], effects.groupby("system", sort=False), strict=True):
        for shift, name in zip((-0.22, 0, 0.22), LEARNERS, strict=True):
            mine, style = here[here.algorithm == name], STYLES[name]
            axes.errorbar(mine.difference, [rules.index(rule) + shift for rule in mine.rule], linestyle="", capsize=2,
                          xerr=[mine.difference - mine.low, mine.high - mine.difference], marker=style.marker, ms=5,
                          color=style.colour, label=name)  # fmt: skip
        axes.axvline(0, color="#555555", linewidth=1, zorder=1)
        axes.set_xlabel(label)
        name_panel(axes, title(system))
    names = ["all rules" if rule == "released" else rule.replace("_", " ") for rule in rules]
    grid[0, 0].set_yticks(range(len(rules)), names)
    grid[0, 0].set_ylim(len(rules) - 0.5, -0.5)
    legend_above(figure, grid[0, 0])
    return figure
