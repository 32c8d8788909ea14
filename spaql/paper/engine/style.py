"""How algorithms look, how numbers are printed, and the theme of all figures."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib_inline.backend_inline import set_matplotlib_formats
from numpy.typing import ArrayLike

from spaql.policies.interval import Interval, paper_interval
from spaql.systems import Variable


class Style(NamedTuple):
    """How an algorithm, or another line of a figure, looks."""

    colour: str
    line: str | tuple
    marker: str


STYLES = {
    "Random": Style("#939393", (0, (1, 1.2)), "x"),
    "AQL": Style("#3467d2", (0, (5, 1.5)), "s"),
    "SPAQL": Style("#d08000", "-", "o"),
    "SPAQL-TS": Style("#005e43", (0, (6, 1.5, 1, 1.5)), "^"),
    "SPAQL-R": Style("#5916ca", (0, (12, 1.5)), "*"),
    "TileQ": Style("#b41482", (0, (8, 1, 2, 1)), "d"),
    "Sarsa(λ)": Style("#3c0a46", (0, (4, 1.2, 1, 1.2)), "p"),
    "TRPO": Style("#1a1a1a", (0, (3, 1, 1, 1, 1, 1)), "D"),
    "TRPO tuned": Style("#c22c16", (0, (2, 1)), "v"),
    "SAC": Style("#10a1bf", (0, (2, 2.5)), "P"),
    "DQN": Style("#641b0c", (0, (6, 1.2, 6, 1.2, 1, 1.2)), "X"),
    "PPO": Style("#a97952", (0, (5, 1, 1, 1, 1, 1, 1, 1)), "h"),
}

OTHERS = (  # styles of what is no algorithm of the book's
    Style("#aa4499", "-", "P"),
    Style("#56b4e9", (0, (4, 1.2, 1, 1.2, 1, 1.2)), "X"),
    Style("#d55e00", (0, (1.5, 1)), "*"),
    Style("#b8860b", (0, (8, 2)), "h"),
)

PAPER = ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0")  # the paper's systems, in the book's order


def present(frame: pd.DataFrame) -> list[str]:
    """Return the algorithms of a frame, in the order every figure has them in."""
    return [name for name in STYLES if name in set(frame.algorithm)]


def in_order(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows in the book's order of systems and algorithms; those that it does not know come last."""
    places = {name: place for place, name in enumerate((*PAPER, *STYLES))}
    return frame.sort_values(
        ["system", "algorithm"],
        key=lambda names: names.map(places).fillna(len(places)),
        kind="stable",
        ignore_index=True,
    )


def thin(count: int, points: int = 160) -> np.ndarray:
    """Return which of many points of a curve to draw: the first ones, the last one, and evenly in between."""
    return np.unique(np.concatenate((np.arange(min(count, 20)), np.linspace(0, count - 1, points).astype(int))))


# Words and numbers as text


def axis_label(variable: Variable) -> str:
    """Return what an axis says of a variable: its name, symbol and unit, "pole angle θ (rad)"."""
    unit = f"({variable.unit})" if variable.unit else ""
    return " ".join(filter(None, (variable.words or variable.name, variable.symbol, unit)))


def number(value: float, digits: int = 2) -> str:
    """Return a number as text, with a proper minus sign, none before a zero, and thousands apart."""
    return f"{value:z,.{digits}f}".replace("-", "−")


def plus_minus(mean: float, half: float, digits: int = 2) -> str:
    """Return a mean and its half-interval as text."""
    return f"{number(mean, digits)} ± {number(half, digits)}"


def spread(values: ArrayLike, digits: int = 2) -> str:
    """Return the mean of values with the paper's interval, as text."""
    interval = paper_interval(values)
    return plus_minus(interval.mean, interval.high - interval.mean, digits)


def between(interval: Interval, digits: int = 1) -> str:
    """Return a mean with the ends of its interval, as text."""
    return f"{number(interval.mean, digits)} [{number(interval.low, digits)}, {number(interval.high, digits)}]"


def p_value(p: float) -> str:
    """Return a p-value as text, which is not broken at the end of a line."""
    text = small(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}" if text else ""


def small(p: float) -> str:
    """Return a p-value in few characters."""
    if math.isnan(p):
        return ""
    if p < 1e-15:
        return "<\u00a010⁻¹⁵"
    if p >= 0.001:
        return f"{p:.3f}"
    mantissa, exponent = f"{p:.0e}".split("e")
    return f"{mantissa}\u00a0·\u00a010" + str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


# The theme: seaborn's, with our palette

WIDTH = 6.2  # inches: on a phone, where a figure is 350 pixels wide, its text is then 9 pixels high
FONT = 11.5  # of all text

PALETTE = {name: style.colour for name, style in STYLES.items()}

SIZES = ("font.size", "axes.labelsize", "axes.titlesize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
SETTINGS = (
    sns.axes_style("whitegrid")
    | dict.fromkeys(SIZES, FONT)
    | dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), "#1a1a1a")
    | {
        "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#333333",
        "grid.color": "#e3e3e3",
        "grid.linewidth": 0.7,
        "xtick.bottom": True,
        "ytick.left": True,
        "legend.frameon": False,
        "lines.linewidth": 1.6,
        "savefig.bbox": "tight",
        "savefig.pad_inches": 0.02,
        "svg.hashsalt": "spaql",  # the same figure gives the same file
        "font.sans-serif": ["DejaVu Sans"],  # matplotlib's own, so the same on every machine
    }
)

BAND = 0.18  # opacity of intervals


def use_svg() -> None:
    """Let notebooks show figures as vector graphics, in the book's theme."""
    sns.set_theme(style="whitegrid", palette=list(PALETTE.values()), rc=SETTINGS)
    set_matplotlib_formats("svg", metadata={"Date": None})


def new_figure(rows: int = 1, columns: int = 1, height: float = 2.5, **options) -> tuple[Figure, np.ndarray]:
    """Return a figure in the book's theme and the array of its axes; `height` is a row's, in inches."""
    with plt.rc_context(SETTINGS):
        figure, axes = plt.subplots(rows, columns, figsize=(WIDTH, height * rows + 0.4), squeeze=False, **options)
    plt.close(figure)  # a notebook shows the figure that a cell returns, and only once
    return figure, axes


def name_panel(axes: Axes, name: str, weight: str = "bold") -> None:
    """Write a panel's name above its upper left corner."""
    axes.set_title(name.replace("-", "−") if weight == "normal" else name, loc="left", fontsize=FONT, fontweight=weight)


def label_column(column: Sequence[Axes], text: str) -> None:
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
