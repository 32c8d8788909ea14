"""One function a figure, one style: data in, a matplotlib figure out.

Every algorithm has one colour, one line and one marker in every figure of the book; they stay apart in grey and for
colour-blind readers.  Figures are as wide as a column of text, with their panels one below the other, so that they can
be read on a phone; their background is white, also on a dark page.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from matplotlib_inline.backend_inline import set_matplotlib_formats

from spaql.experiments import LEARNERS
from spaql.jobs import Record
from spaql.results import TRPO
from spaql.statistics import paper_interval
from spaql.systems import TORQUES


class Style(NamedTuple):
    """How an algorithm looks."""

    colour: str
    line: str | tuple
    marker: str


STYLES = {
    "Random": Style("#8c8c8c", (0, (1, 1.2)), "x"),
    "AQL": Style("#0072b2", (0, (5, 1.5)), "s"),
    "SPAQL": Style("#e69f00", "-", "o"),
    "SPAQL-TS": Style("#00664b", (0, (6, 1.5, 1, 1.5)), "^"),
    "TRPO": Style("#1a1a1a", (0, (3, 1, 1, 1, 1, 1)), "D"),
    "TRPO tuned": Style("#cc79a7", (0, (2, 1)), "v"),
}
SYSTEM_NAMES = {
    "Pendulum-v1": "Pendulum",
    "spaql/PendulumScaled-v1": "Pendulum, rewards scaled to [0, 1]",
    "spaql/PendulumDiscrete-v1": "Pendulum, five torques",
    "spaql/Pendulum-v0": "Pendulum-v0",
    "CartPole-v0": "CartPole",
}
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


def new_figure(rows: int = 1, columns: int = 1, height: float = 2.5, **options) -> tuple[Figure, np.ndarray]:
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


def curve(axes: Axes, algorithm: str, x: np.ndarray, values: np.ndarray, label: bool = True) -> None:
    """Draw the mean over agents (a row each) with the paper's interval."""
    style = STYLES[algorithm]
    mean, half = values.mean(axis=0), 1.96 * values.std(axis=0) / np.sqrt(len(values))
    keep = thin(len(x))
    axes.plot(
        x[keep], mean[keep], color=style.colour, linestyle=style.line, label=algorithm if label else None, zorder=3
    )
    axes.fill_between(x[keep], (mean - half)[keep], (mean + half)[keep], color=style.colour, alpha=BAND, linewidth=0)


def by_agent(frame: pd.DataFrame, algorithm: str, column: str) -> np.ndarray:
    """Return a column of an algorithm's histories, a row an agent."""
    chosen = frame[frame.algorithm == algorithm]
    return chosen.pivot(index="agent", columns="iteration", values=column).to_numpy()


# ---------------------------------------------------------------------------------------------------------------------
# The paper's figures


def xi_effect(finals: pd.DataFrame) -> Figure:
    """Show the reward at the end of training against ξ, a panel a system (the paper's Figures 1 and 6).

    Dots are means over agents with the paper's interval; a horizontal line and its band are the mean and the standard
    deviation of an algorithm's dots; the dotted line is Random.

    Parameters
    ----------
    finals
        From `experiments.finals`, of one or more systems.
    """
    systems = list(dict.fromkeys(finals.system))
    figure, grid = new_figure(len(systems), height=2.9)
    for axes, system in zip(grid[:, 0], systems, strict=True):
        here = finals[finals.system == system]
        xis = sorted(here[here.algorithm != "Random"].xi.unique())
        learners = [name for name in present(here) if name != "Random"]
        for place, name in enumerate(learners):
            style, mine = STYLES[name], here[here.algorithm == name]
            means = [paper_interval(mine[mine.xi == xi].rewards) for xi in xis]
            x = np.arange(len(xis)) + 0.18 * (place - (len(learners) - 1) / 2)
            y = np.array([interval.mean for interval in means])
            bars = [y - [interval.low for interval in means], [interval.high for interval in means] - y]
            axes.errorbar(
                x, y, bars, color=style.colour, marker=style.marker, ms=5, linestyle="", capsize=2, label=name
            )
            axes.axhline(y.mean(), color=style.colour, linestyle=style.line, linewidth=1)
            axes.axhspan(y.mean() - y.std(), y.mean() + y.std(), color=style.colour, alpha=0.10, linewidth=0)
        baseline = here[here.algorithm == "Random"]
        if len(baseline):
            style = STYLES["Random"]
            axes.axhline(baseline.rewards.mean(), color=style.colour, linestyle=style.line, label="Random")
        axes.set_xticks(range(len(xis)), [f"{xi:g}" for xi in xis])
        axes.grid(visible=False, axis="x")
        axes.set(ylabel="cumulative reward", xlabel="ξ (not to scale)")
        name_panel(axes, SYSTEM_NAMES.get(system, system))
    legend_above(figure, grid[0, 0])
    return figure


def learning_curves(histories: pd.DataFrame) -> Figure:
    """Show rewards and arms against training iterations, means with the paper's interval (Figures 2, 4 and 7)."""
    figure, grid = new_figure(2, height=2.5, sharex=True)
    top, bottom = grid[:, 0]
    for name in present(histories):
        rewards = by_agent(histories, name, "rewards")
        x = np.arange(1, rewards.shape[1] + 1)
        curve(top, name, x, rewards)
        if name != "Random":
            curve(bottom, name, x, by_agent(histories, name, "arms"))
    top.set_ylabel("cumulative reward")
    bottom.set(ylabel="arms", xlabel="training iteration", yscale="log")
    legend_above(figure, top)
    return figure


def batches(histories: pd.DataFrame, arms: bool = True) -> Figure:
    """Show rewards (and arms) against batches of 200 samples (Figures 9 and 10).

    As in the paper an iteration of SPAQL counts as one batch, also if its episode ended early.
    """
    figure, grid = new_figure(2 if arms else 1, height=2.5 if arms else 3.0, sharex=True)
    top, bottom = grid[0, 0], grid[-1, 0]
    for name in present(histories):
        rewards = by_agent(histories, name, "rewards")
        sampled = histories[(histories.algorithm == name) & (histories.agent == 0)].steps.to_numpy()
        x = np.cumsum(sampled) / 200 if name in TRPO else np.arange(1, rewards.shape[1] + 1)
        curve(top, name, x, rewards)
        if arms and name in LEARNERS:
            curve(bottom, name, x, by_agent(histories, name, "arms"))
    top.set_ylabel("cumulative reward")
    if arms:
        bottom.set(ylabel="arms", yscale="log")
    bottom.set_xlabel("batches of 200 samples")
    legend_above(figure, top)
    return figure


def episodes(records: Mapping[str, Record]) -> Figure:
    """Show the angle and the action along a recorded episode, a row a policy (Figures 3, 5 and 8)."""
    pendulum = "Pendulum" in next(iter(records.values())).job.system
    figure, grid = new_figure(len(records), 2, height=1.5, sharex=True, sharey="col")
    for (left, right), (name, record) in zip(grid, records.items(), strict=True):
        style = STYLES[name]
        angle = record.episode["states"][:, 0 if pendulum else 2]
        action = record.episode["actions"]
        if record.job.system.startswith("spaql/PendulumDiscrete"):
            action = np.take(TORQUES, action.astype(int))
        elif not pendulum:
            action = np.where(action == 1, 10.0, -10.0)
        left.plot(angle, color=style.colour, linewidth=1.4)
        right.step(range(len(action)), action, color=style.colour, linewidth=0.7, where="post")
        name_panel(left, name)
        name_panel(right, f"return {record.episode['rewards'].sum():.0f}", "normal")
    for axes in grid[:, 0]:
        low, high = axes.get_ylim()
        if pendulum:
            turns = np.arange(np.ceil(low / (2 * np.pi)), np.floor(high / (2 * np.pi)) + 1) * 2 * np.pi
        else:
            turns = np.array([-0.2095, 0.0, 0.2095])
        axes.hlines(turns, 0, 200, color="#b8860b", linestyle="--", linewidth=0.9, zorder=1)
    middle = len(grid) // 2
    grid[middle, 0].set_ylabel("pendulum angle θ (rad)" if pendulum else "pole angle θ (rad)")
    grid[middle, 1].set_ylabel("torque u (Nm)" if pendulum else "force u (N)")
    for axes in grid[-1]:
        axes.set_xlabel("time step t")
    return figure


# ---------------------------------------------------------------------------------------------------------------------
# The domain of a ball (the paper's appendix)

YELLOW, BLUE, RED = "#f0d96b", "#56a0d3", "#d1495b"


def seven(centre: Sequence[float], radius: float) -> list[tuple[float, float]]:
    """Return the centres of seven discs of half the radius that cover a disc: one in its middle, six around it."""
    angles = np.arange(6) * np.pi / 3
    around = radius * np.sqrt(3) / 2
    return [tuple(centre), *((centre[0] + around * np.cos(a), centre[1] + around * np.sin(a)) for a in angles)]


def discs(axes: Axes, centres: Iterable, radius: float, colour: str, opacity: float, edge: str = "#333333") -> None:
    """Draw discs."""
    for centre in centres:
        axes.add_patch(Circle(centre, radius, facecolor=(colour, opacity), edgecolor=edge, linewidth=0.9))


def domain_figure(titles: tuple[str, str]) -> tuple[Figure, Axes, Axes]:
    """Return a figure with two empty drawings side by side."""
    figure, grid = new_figure(1, 2, height=3.0)
    for axes, title in zip(grid[0], titles, strict=True):
        axes.set(xlim=(-1.65, 1.65), ylim=(-1.45, 1.45), aspect="equal")
        name_panel(axes, title, "normal")
        axes.axis("off")
    return figure, *grid[0]


def domain_covering() -> Figure:
    """Draw the first ball and a covering of it by balls of half its radius (Figure 11)."""
    figure, left, right = domain_figure(("the first ball", "covered: its domain is empty"))
    discs(left, [(0, 0)], 1, YELLOW, 1)
    discs(right, [(0, 0)], 1, YELLOW, 1)
    discs(right, seven((0, 0), 1), 0.5, BLUE, 0.55)
    return figure


def domain_neighbours() -> Figure:
    """Draw a covering of one of the balls, and what is left of its neighbours' domains (Figure 12)."""
    figure, left, right = domain_figure(("one ball covered anew", "domains of its neighbours"))
    blue = seven((0, 0), 1)
    covered = blue[1]  # the rightmost
    red = seven(covered, 0.5)
    discs(left, [(0, 0)], 1, YELLOW, 1)
    discs(left, blue, 0.5, BLUE, 0.55)
    discs(left, red, 0.25, RED, 0.75)
    near = [centre for centre in blue if 0 < np.hypot(*np.subtract(centre, covered)) < 1]
    discs(right, [centre for centre in blue if centre not in near], 0.5, BLUE, 0.12, edge="#999999")
    discs(right, near, 0.5, BLUE, 1)
    discs(right, red, 0.25, "#f6dfe2", 1, edge=RED)
    return figure


def domain_disjoint() -> Figure:
    """Draw the case of this book: under the infinity norm balls are boxes, and a covering is a tiling (Figure 13)."""
    figure, left, right = domain_figure(("the first ball", "covered: four disjoint balls"))
    for axes, colour in ((left, YELLOW), (right, BLUE)):
        axes.add_patch(Rectangle((-1, -1), 2, 2, facecolor=colour, edgecolor="#333333"))
    right.plot([-1, 1], [0, 0], color="#333333", linewidth=0.9)
    right.plot([0, 0], [-1, 1], color="#333333", linewidth=0.9)
    return figure
