"""The figures of what is learned: frames of `spaql.paper.audit` in, a matplotlib figure out."""

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spaql.paper.figures.style import FONT, legend_above, name_panel, new_figure
from spaql.paper.labels import STYLES
from spaql.paper.studies import CONTROLS, LEARNERS
from spaql.systems import title

LAST = replace(STYLES["SPAQL"], line=(0, (1.5, 1)), marker="X")  # SPAQL without its choice of the best


def control_rewards(frame: pd.DataFrame, floors: dict[str, float]) -> Figure:
    """Show what is earned on fresh episodes under every control, beside the text's level and Random's.

    `frame` is from `controls_table`, with one N per system and algorithm; `floors` are what Random earns.
    """
    fresh = frame[frame.quantity == "fresh"]
    systems = list(dict.fromkeys(fresh.system))
    shown = [[name for name in CONTROLS if name in set(fresh[fresh.system == system].control)] for system in systems]
    heights = [0.27 * len(names) + 0.75 for names in shown]
    ratios = {"height_ratios": heights}
    figure, grid = new_figure(len(systems), height=sum(heights) / len(systems), gridspec_kw=ratios)
    for axes, system, names in zip(grid[:, 0], systems, shown, strict=True):
        here = fresh[fresh.system == system]
        learners = [name for name in LEARNERS if name in set(here.algorithm)]
        axes.axvline(floors[system], color=STYLES["Random"].colour, linestyle=STYLES["Random"].line, label="Random")
        for place, algorithm in enumerate(learners):
            mine, style = here[here.algorithm == algorithm], STYLES[algorithm]
            shift = 0.2 * (place - (len(learners) - 1) / 2)
            y = [names.index(control) + shift for control in mine.control]
            bars = [mine.changed - mine.changed_low, mine.changed_high - mine.changed]
            axes.axvspan(mine.text_low.iloc[0], mine.text_high.iloc[0], color=style.colour, alpha=0.18, linewidth=0)
            axes.axvline(mine.text.iloc[0], color=style.colour, linestyle=style.line, linewidth=1)
            axes.errorbar(mine.changed, y, xerr=bars, color=style.colour, marker=style.marker, ms=5, linestyle="",
                          capsize=2, label=algorithm)  # fmt: skip
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")
        name_panel(axes, title(system))
    grid[-1, 0].set_xlabel("reward on fresh episodes")
    legend_above(figure, grid[0, 0])
    return figure


def kept_against_rollouts(frame: pd.DataFrame) -> Figure:
    """Show what SPAQL earns on fresh episodes against N, keeping its best agent and keeping its last.

    A system with a single N has no panel, if there are others.
    """
    counted = frame.groupby("system", sort=False).N.nunique()
    systems = list(counted.index[counted > 1]) or list(counted.index)
    figure, grid = new_figure(1, len(systems), height=2.6)
    for axes, system in zip(grid[0], systems, strict=True):
        for kept, style in (("best", STYLES["SPAQL"]), ("last", LAST)):
            mine = frame[(frame.system == system) & (frame.kept == kept)].sort_values("N")
            bars = [mine.fresh - mine.fresh_low, mine.fresh_high - mine.fresh]
            axes.errorbar(mine.N, mine.fresh, yerr=bars, color=style.colour, linestyle=style.line, marker=style.marker,
                          capsize=2, label=f"{kept} agent kept")  # fmt: skip
        axes.set(xscale="log")
        counts = sorted(set(frame[frame.system == system].N))
        axes.set_xticks(counts, list(map(str, counts)))
        axes.minorticks_off()
        name_panel(axes, title(system).replace(", ", ",\n"))
    grid[0, 0].set_ylabel("reward on fresh episodes")
    figure.supxlabel("rollouts after each iteration (N)", fontsize=FONT)
    legend_above(figure, grid[0, 0])
    return figure


def calibration(frame: pd.DataFrame) -> Figure:
    """Show the estimates of the balls that a policy visits most against the returns from them, for one agent each.

    A row has one pair of scales, and the line on which an estimate is what is earned.
    """
    shown = frame[frame.points.notna()] if "points" in frame else frame.iloc[:0]
    systems, learners = list(dict.fromkeys(shown.system)), [name for name in LEARNERS if name in set(shown.algorithm)]
    figure, grid = new_figure(len(systems), len(learners), height=2.2, sharex="row", sharey="row")
    for _, row in shown.iterrows():
        axes = grid[systems.index(row.system), learners.index(row.algorithm)]
        style = STYLES[row.algorithm]
        q, returned, visits = (list(column) for column in zip(*row.points, strict=True))
        most = max(visits)
        axes.scatter(q, returned, s=[4 + 40 * count / most for count in visits], color=style.colour, alpha=0.6,
                     marker=style.marker, linewidth=0)  # fmt: skip
    for axes in grid.flat:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        axes.set(xlim=(left, right), ylim=(low, max(high, right)))  # so that the whole line is seen where Q is positive
        axes.axline((0, 0), slope=1, color="#555555", linewidth=0.8, zorder=1)
        axes.xaxis.set_major_locator(MaxNLocator(3, min_n_ticks=2))
    for axes, algorithm in zip(grid[0], learners, strict=True):
        name_panel(axes, algorithm)
    for axes in grid[-1]:
        axes.set_xlabel("estimate Q")
    for axes, system in zip(grid[:, 0], systems, strict=True):
        axes.set_ylabel(title(system).replace(", ", ",\n", 1) + "\nreturn")
    return figure


REGRETS = {  # whose regret is drawn, and how
    "AQL": STYLES["AQL"],
    "SPAQL": STYLES["SPAQL"],
    "SPAQL, last kept": LAST,
}


def regret(frame: pd.DataFrame) -> Figure:
    """Show the regret of the greedy policies so far on the two-step process, beside the line of the myopic policy."""
    drawn = frame[frame.regret.notna()]
    systems = list(dict.fromkeys(drawn.system))
    figure, grid = new_figure(1, len(systems), height=3.0, sharey=True)
    for axes, system in zip(grid[0], systems, strict=True):
        for _, row in drawn[(drawn.system == system) & drawn.method.isin(list(REGRETS))].iterrows():
            style, mean, half = REGRETS[row.method], np.array(row.regret), np.array(row.half)
            axes.plot(row.iteration, mean, color=style.colour, linestyle=style.line, label=row.method)
            axes.fill_between(row.iteration, mean - half, mean + half, color=style.colour, alpha=0.2, linewidth=0)
        last = row.iteration[-1]
        axes.plot([0, last], [0, last * (row.best - row.myopic)], color="#333333", linewidth=0.8, zorder=1,
                  linestyle=(0, (1, 2)), label="myopic, as proved")  # fmt: skip
        axes.set(xlabel="training episodes")
        name_panel(axes, title(system))
    grid[0, 0].set_ylabel("regret so far")
    legend_above(figure, grid[0, 0])
    return figure
