"""The style that all figures of the book share: settings, panels, legends."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats

from spaql.paper.labels import STYLES

WIDTH = 6.4  # inches

SETTINGS = {
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.bbox": "tight",
    "svg.hashsalt": "spaql",  # the same figure gives the same file
}

BAND = 0.18  # opacity of intervals


def use_svg() -> None:
    """Let notebooks show figures as vector graphics, in the book's style."""
    plt.rcParams.update(SETTINGS)
    set_matplotlib_formats("svg", metadata={"Date": None})


def new_figure(rows: int = 1, columns: int = 1, height: float = 2.5, **options: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure in the book's style and the array of its axes; `height` is a row's, in inches."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height * rows + 0.4), squeeze=False, **options)
    plt.close(figure)  # a notebook shows the figure that a cell returns, and only once
    return figure, axes


def name_panel(axes: Axes, name: str, weight: str = "bold") -> None:
    """Write a panel's name above its upper left corner."""
    axes.set_title(name.replace("-", "−") if weight == "normal" else name, loc="left", fontsize=10.5, fontweight=weight)


def legend_above(figure: Figure, axes: Axes) -> None:
    """Put the legend above the panels, where it hides nothing."""
    handles, labels = axes.get_legend_handles_labels()
    widest = max(map(len, labels))
    columns = min(len(labels), 2 if widest > 20 else 3 if len(labels) > 4 else 4)
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, frameon=False, handlelength=2.6)


def present(frame: pd.DataFrame) -> list[str]:
    """Return the algorithms of a frame, in the order every figure has them in."""
    return [name for name in STYLES if name in set(frame.algorithm)]


def thin(count: int, points: int = 300) -> np.ndarray:
    """Return which of many points of a curve to draw: the first ones, the last one, and evenly in between."""
    return np.unique(np.concatenate((np.arange(min(count, 20)), np.linspace(0, count - 1, points).astype(int))))
