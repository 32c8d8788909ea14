"""The picture of the readings: how far each of the paper's numbers is from what each reading predicts."""

import numpy as np
import pandas as pd
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from spaql.paper.figures.style import new_figure

# From the paper's number far below the prediction to far above it: blue and orange stay apart for everyone.
COLOURS = LinearSegmentedColormap.from_list("distance", ["#0072b2", "#8fc3e3", "#ffffff", "#f2b48a", "#d55e00"])
CLIP = 6.0  # standard errors from which the colour does not change


def reading_distances(frame: pd.DataFrame, joint: pd.DataFrame) -> Figure:
    """Show numbers × readings, best first, each with its distance in standard errors; chi-square is below."""
    order = [name for name in joint.reading if name in set(frame.reading)]
    labels = frame.label.drop_duplicates()
    cells = frame.pivot(index="label", columns="reading", values="distance").loc[labels, order].to_numpy()
    figure, grid = new_figure(1, height=0.27 * len(labels) + 2.4)
    axes = grid[0, 0]
    image = axes.imshow(cells, COLOURS, vmin=-CLIP, vmax=CLIP, aspect="auto")
    for (y, x), value in np.ndenumerate(cells):
        colour = "white" if abs(value) > 0.75 * CLIP else "black"
        axes.text(
            x, y, f"{round(value, 1) + 0.0:.1f}".replace("-", "−"), ha="center", va="center", fontsize=7.5, color=colour
        )
    chi2 = joint.set_index("reading").chi2
    for x, name in enumerate(order):
        axes.text(x, len(labels) - 0.1, f"{chi2[name]:.0f}", ha="center", va="center", fontsize=9, fontweight="bold")
    axes.text(-0.62, len(labels) - 0.1, "χ²", ha="right", va="center", fontsize=9, fontweight="bold")
    axes.set_yticks(range(len(labels)), labels, fontsize=8.5)
    axes.set_xticks(range(len(order)), order, rotation=50, ha="left", rotation_mode="anchor")
    axes.tick_params(axis="x", labelsize=8.5, labeltop=True, labelbottom=False, top=False, bottom=False)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(labels) + 0.3, -0.5)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", shrink=0.6, aspect=40, pad=0.02, extend="both")
    bar.set_label("paper minus reading, in standard errors", fontsize=9)
    bar.ax.tick_params(labelsize=8.5)
    return figure
