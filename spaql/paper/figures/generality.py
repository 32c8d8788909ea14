"""The figures of other systems: records in, a matplotlib figure out."""

from collections.abc import Iterable

import numpy as np
from matplotlib.figure import Figure

from spaql.paper.figures.repaired import curve_by_samples
from spaql.paper.figures.style import legend_above, new_figure
from spaql.paper.labels import STYLES
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import EQUAL
from spaql.systems import solved_at


def system_curves(records: Iterable[Record], system: str) -> Figure:
    """Show what each algorithm's policy earns on a system against all samples it took, on a logarithmic axis.

    Grey lines are the return from which the task counts as solved, and the samples at which all are compared.
    """
    mine = [record for record in records if record.job.system == system]
    figure, grid = new_figure(height=3.2)
    axes = grid[0, 0]
    for algorithm in STYLES:
        group = [record for record in mine if record.job.algorithm == algorithm]
        if algorithm == "Random" and group:
            style, mean = STYLES[algorithm], np.mean([record.fresh[0] for record in group])
            axes.axhline(mean, color=style.colour, linestyle=style.line, label=algorithm)
        elif group:
            curve_by_samples(axes, algorithm, group)
    threshold = solved_at(system)
    if threshold is not None:
        axes.axhline(threshold, color="#888888", linewidth=0.8, zorder=1)
    axes.axvline(EQUAL, color="#888888", linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlim=(1000, None), ylabel="return", xlabel="samples, all that the algorithm needs")
    legend_above(figure, axes)
    return figure
