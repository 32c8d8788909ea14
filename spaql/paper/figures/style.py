"""The theme that all figures of the book share: seaborn's, with our palette; panels and legends."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats
from numpy.typing import ArrayLike

from spaql.paper.labels import STYLES
from spaql.policies.interval import paper_interval

WIDTH = 6.2  # inches: on a phone, where a figure is 350 pixels wide, its text is then 9 pixels high
FONT = 11.5  # of all text

PALETTE = {name: style.colour for name, style in STYLES.items()}

SETTINGS = sns.axes_style("whitegrid") | {
    "figure.facecolor": "white",
    "figure.constrained_layout.use": True,
    "font.size": FONT,
    "axes.labelsize": FONT,
    "axes.titlesize": FONT,
    "xtick.labelsize": FONT,
    "ytick.labelsize": FONT,
    "legend.fontsize": FONT,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#333333",
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "xtick.bottom": True,
    "ytick.left": True,
    "text.color": "#1a1a1a",
    "axes.labelcolor": "#1a1a1a",
    "xtick.color": "#1a1a1a",
    "ytick.color": "#1a1a1a",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.02,
    "svg.hashsalt": "spaql",  # the same figure gives the same file
    "font.sans-serif": ["DejaVu Sans"],  # matplotlib's own, so the same on every machine
}

BAND = 0.18  # opacity of intervals
FAINT = 0.16  # of single agents behind their mean


def use_svg() -> None:
    """Let notebooks show figures as vector graphics, in the book's theme."""
    sns.set_theme(style="whitegrid", palette=list(PALETTE.values()), rc=SETTINGS)
    set_matplotlib_formats("svg", metadata={"Date": None})


def new_figure(rows: int = 1, columns: int = 1, height: float = 2.5, **options: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure in the book's theme and the array of its axes; `height` is a row's, in inches."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height * rows + 0.4), squeeze=False, **options)
    plt.close(figure)  # a notebook shows the figure that a cell returns, and only once
    return figure, axes


def paper_ends(values: ArrayLike) -> tuple[float, float]:
    """Return the ends of the paper's interval, as seaborn asks for them."""
    interval = paper_interval(np.asarray(values, float))
    return float(interval.low), float(interval.high)


def name_panel(axes: Axes, name: str, weight: str = "bold") -> None:
    """Write a panel's name above its upper left corner."""
    axes.set_title(name.replace("-", "−") if weight == "normal" else name, loc="left", fontsize=FONT, fontweight=weight)


def label_column(column: np.ndarray, text: str) -> None:
    """Write one label beside all panels of a column, halfway down."""
    place, rest = divmod(len(column) - 1, 2)
    column[place].set_ylabel(text, y=-0.15 if rest else 0.5)


def legend_above(figure: Figure, *panels: Axes) -> None:
    """Put the legend of what is drawn in some panels above all of them, where it hides nothing."""
    found = {label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    widest = max(map(len, found))
    columns = min(len(found), 2 if widest > 18 else 3 if len(found) > 4 else 4)
    figure.legend(found.values(), found, loc="outside upper center", ncols=columns, frameon=False, handlelength=2.6,
                  fontsize=FONT)  # fmt: skip
