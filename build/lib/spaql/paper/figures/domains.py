"""The drawings of the paper's appendix: the domain of a ball."""

from collections.abc import Iterable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

from spaql.paper.figures.style import name_panel, new_figure

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
