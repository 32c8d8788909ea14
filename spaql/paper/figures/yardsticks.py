"""The figure of six systems: what each algorithm's policy earns against samples, between Random and the limit."""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from spaql.paper.audit.repaired import AHEAD, at_samples
from spaql.paper.figures.style import FONT, legend_above, name_panel, new_figure
from spaql.paper.labels import STYLES, Style
from spaql.paper.runs.algorithms import SAME
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import samples_behind
from spaql.paper.runs.provenance import SB3
from spaql.paper.studies import SIX
from spaql.systems import title

NETWORKS = {name: STYLES[name] for name in SB3}
LINES = {
    AHEAD: Style("#5916ca", "-", ""),
    SAME: Style("#d55e00", "-", ""),
    "Tiles, replayed": Style("#d55e00", (0, (6, 1.2)), ""),
    "Tiles, slower": Style("#d55e00", (0, (4, 1.2, 1, 1.2)), ""),
    "Grid, replayed": Style("#d55e00", (0, (1, 1)), ""),
    "Sarsa(λ)": Style("#0072b2", (0, (4, 1.2, 1, 1.2)), ""),
    "Sarsa(λ), slower": Style("#0072b2", (0, (1, 1)), ""),
    "Fitted Q": Style("#007a55", (0, (2, 1)), ""),
} | NETWORKS
LEVELS = {"Limit": (0, ()), "By hand": (0, (4, 3))}  # and how their lines are broken
LEAST = {"Pendulum-v1": -600, "MountainCar-v0": -205, "Acrobot-v1": -510, "MountainCarContinuous-v0": -45}


def dimensions_panels(frame: pd.DataFrame, most: int) -> Figure:
    """Show samples and seconds until the level is reached, medians over agents, against the number of dimensions.

    `frame` is kept by `spaql.paper.audit.dimensions`; a line ends where most agents miss the level within
    `most` samples, or where there is no room for what they would learn.
    """
    figure, (row,) = new_figure(1, 2, height=2.6)
    reached = frame.assign(**{name: frame[name].where(frame.reached, np.inf) for name in ("samples", "seconds")})
    row[0].axhline(most, color="#1a1a1a", linewidth=0.9)
    for axes, quantity in zip(row, ("samples", "seconds"), strict=True):
        for algorithm, style in LINES.items():
            medians = reached[reached.algorithm == algorithm].groupby("dimensions")[quantity].median()
            medians = medians[np.isfinite(medians)]
            if len(medians):
                axes.plot(medians.index, medians, color=style.colour, linestyle=style.line, marker="o", markersize=4,
                          label=algorithm)  # fmt: skip
        axes.set(yscale="log", xticks=sorted(set(frame.dimensions)), xlabel="dimensions")
        axes.set_ylim(bottom=10.0 ** np.floor(np.log10(frame[quantity].min())))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        name_panel(axes, quantity)
    legend_above(figure, *row)
    return figure


def six_panels(records: Iterable[Record], returns: pd.DataFrame) -> Figure:
    """Show mean returns against samples on six systems, with the limit and the rule by hand as horizontal lines.

    `returns` is from `spaql.paper.audit.yardsticks.returns`.
    """
    records = list(records)
    figure, grid = new_figure(3, 2, height=2.1, sharex=True)
    for axes, system in zip(grid.flat, SIX, strict=True):
        for algorithm, style in LINES.items():
            group = [r for r in records if (r.job.system, r.job.algorithm) == (system, algorithm)]
            if not group:
                continue
            first, last = (pick(samples_behind(r)[place] for r in group) for pick, place in ((max, 0), (min, -1)))
            counts = np.geomspace(max(1000, first), last, 100).astype(int)
            mean = np.mean([at_samples(record, counts) for record in group], axis=0)
            thick = 2.4 if algorithm == AHEAD else 0.9 if algorithm in NETWORKS else 1.5
            axes.plot(counts, mean, color=style.colour, linestyle=style.line, linewidth=thick, label=algorithm)
        for name, dashes in LEVELS.items():
            at = returns[(returns.system == system) & (returns.algorithm == name)]["mean"]
            for level in at:
                axes.axhline(level, color="#1a1a1a", linewidth=0.9, linestyle=dashes, label=name, zorder=1)
        axes.set(xscale="log", xlim=(1000, 100_000))
        axes.set_ylim(bottom=LEAST.get(system))
        name_panel(axes, title(system))
    for axes in grid[:, 0]:
        axes.set_ylabel("return")
    figure.supxlabel("samples", fontsize=FONT)
    legend_above(figure, *grid.flat)
    return figure
