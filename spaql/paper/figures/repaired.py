"""The figures of SPAQL-R: frames of `spaql.paper.audit.repaired` and records in, a matplotlib figure out."""

import itertools
from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spaql.paper.audit.repaired import AHEAD, LEVELS, RUNGS, at_samples, samples_behind
from spaql.paper.figures.learning import curve
from spaql.paper.figures.style import FONT, legend_above, name_panel, new_figure
from spaql.paper.labels import OTHERS, STYLES, listed
from spaql.paper.runs.job import Record
from spaql.paper.runs.provenance import SB3
from spaql.systems import title


def sample_curves(records: Iterable[Record]) -> Figure:
    """Show the reward of each algorithm's policy against all samples it took, on a logarithmic axis.

    One row per system.  SAC, DQN and PPO have a column of their own if there are any, with SPAQL-R in both.
    """
    records = list(records)
    systems = list(dict.fromkeys(record.job.system for record in records))
    newer = {record.job.algorithm for record in records} & set(SB3)
    columns = [[name for name in STYLES if name not in newer]] + [[AHEAD, *newer]] * bool(newer)
    figure, grid = new_figure(len(systems), len(columns), height=2.7, sharex="col", sharey="row")
    for (row, system), (column, names) in itertools.product(zip(grid, systems, strict=True), enumerate(columns)):
        axes = row[column]
        for algorithm in (name for name in STYLES if name in names):
            group = [r for r in records if (r.job.system, r.job.algorithm) == (system, algorithm)]
            if group:
                curve_by_samples(axes, algorithm, group)
        axes.axhline(LEVELS[system][2], color="#888888", linewidth=0.8, zorder=1)
        axes.set(xscale="log", xlim=(1000, None), ylabel="" if column else "reward")
        rivals = [name for name in names if column and name != AHEAD and name in axes.get_legend_handles_labels()[1]]
        name_panel(axes, title(system) + (f": {listed(sorted(rivals))}" if rivals else ""))
    figure.supxlabel("samples, all that the algorithm needs", fontsize=FONT)
    legend_above(figure, *grid[0], *grid[-1])
    return figure


def curve_by_samples(axes: Axes, algorithm: str, group: list[Record]) -> None:
    """Draw what some agents earn against samples, from where all of them have a policy to where the first one ends."""
    first, last = (pick(samples_behind(r)[place] for r in group) for pick, place in ((max, 0), (min, -1)))
    counts = np.unique(np.geomspace(max(1, first), max(2, first + 1, last), 150).astype(int))
    counts = counts[counts <= last]
    curve(axes, algorithm, counts, np.array([at_samples(record, counts) for record in group]))


def what_is_removed(frame: pd.DataFrame, ladder: pd.DataFrame) -> Figure:
    """Show what SPAQL-R and its variants earn after some numbers of samples, one row per variant, beside SPAQL."""
    systems, names = list(dict.fromkeys(frame.system)), list(dict.fromkeys(frame.algorithm))
    counts = sorted(set(frame.samples))
    figure, grid = new_figure(1, len(systems), height=0.3 * len(names) + 0.6, sharey=True)
    for axes, system in zip(grid[0], systems, strict=True):
        for place, count in enumerate(counts):
            cell, style = frame[(frame.system == system) & (frame.samples == count)], OTHERS[place]
            grey = f"{0.65 * (1 - (place + 1) / len(counts)) + 0.1:.2f}"  # the more samples, the darker
            y = [names.index(name) + 0.2 * (place - (len(counts) - 1) / 2) for name in cell.algorithm]
            bars = [cell["mean"] - cell.mean_low, cell.mean_high - cell["mean"]]
            axes.errorbar(cell["mean"], y, xerr=bars, color=grey, marker=style.marker, ms=5, linestyle="",
                          capsize=2, label=f"{count:,} samples")  # fmt: skip
        there = set(frame.algorithm[frame.system == system])
        for name in (name for name in names if name not in there):  # in order: the same figure gives the same file
            axes.text(0.5, names.index(name), "does not apply", transform=axes.get_yaxis_transform(), ha="center",
                      va="center", style="italic")  # fmt: skip
        below = ladder[(ladder.system == system) & (ladder.rung == RUNGS["SPAQL, text"])]
        for level in below.reward:
            axes.axvline(level, color=STYLES["SPAQL"].colour, linestyle="--", linewidth=1.2, zorder=1, label="SPAQL")
        axes.set(xlabel="reward")
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.grid(visible=False, axis="y")
        name_panel(axes, title(system))
    grid[0, 0].set_yticks(range(len(names)), [name.removeprefix("SPAQL-R, ") for name in names])
    grid[0, 0].set_ylim(len(names) - 0.5, -0.5)
    legend_above(figure, grid[0, 0])
    return figure


TREES = {"learning": "-", "simplified": (0, (4, 1.2)), "imitated": (0, (1, 1))}  # how their lines are broken


def leaves_panels(frame: pd.DataFrame) -> Figure:
    """Show what trees earn against their leaves: SPAQL-R's while it learns, and small trees in the place of policies.

    `frame` is from `spaql.paper.audit.leaves.points`.
    """
    systems = list(dict.fromkeys(frame.system))
    figure, (row,) = new_figure(1, len(systems), height=2.9)
    for axes, system in zip(row, systems, strict=True):
        here = frame[(frame.system == system) & (frame.leaves > 1)]
        for (kind, line), (algorithm, style) in itertools.product(TREES.items(), STYLES.items()):
            group = here[(here.kind == kind) & (here.algorithm == algorithm)]
            if len(group):
                axes.plot(group["leaves"], group["return"], color=style.colour, linestyle=line, marker=style.marker,
                          markersize=4, label=f"{algorithm}, {kind}")  # fmt: skip
        axes.set(xscale="log", xlabel="leaves")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        name_panel(axes, title(system))
    row[0].set_ylabel("return")
    legend_above(figure, *row)
    return figure
