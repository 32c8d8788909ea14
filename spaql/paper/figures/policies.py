"""Pictures of policies: maps over two state variables, closed loops, drawn trees, and returns.

Actions have a sign, and a scale from blue over a neutral zero to orange, whose ends differ in grey; all other
quantities have a scale that runs from dark to light without turning back.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, Colormap, LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure, FigureBase
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike

from spaql.paper.figures.style import BAND, FONT, WIDTH, legend_above, name_panel, new_figure
from spaql.paper.labels import OTHERS, STYLES, Style, formulas, in_brackets
from spaql.policies.export import describe_action, describe_question, signed
from spaql.policies.interval import Interval
from spaql.policies.policy import Policy
from spaql.policies.simplify import Size
from spaql.policies.tree import LEAF, Tree
from spaql.systems import Variable, system_of

COLOURS = colormaps["cividis"]
SIGNED = LinearSegmentedColormap.from_list("signed", ["#0b3c7d", "#7fb2e5", "#f4f4f4", "#fdb863", "#e66101"])

# What maps show besides actions.
OTHER = {"q": "Q of the best ball", "visits": "visits of the best ball", "depth": "splits"}


def policy_map(
    policy: Policy,
    x: str,
    y: str,
    at: Mapping[str, float] | None = None,
    what: str = "action",
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Return a map of the policy over two state variables: a slice through the partition.

    Parameters
    ----------
    policy
        Of an agent.
    x, y
        Two of the variables `policy.variables.observed`, or an angle of the state, which stands for its cosine and
        its sine together.
    at
        The values of the others; if not given, those of the system's reference state, or zero if it has none.
    what
        "action", "q", "visits", or "depth": how often the balls have been split.  Of several actuators "action" is the
        first; the name of another shows that one.  Lines are the borders of the cells.
    limits
        (lowest, highest) of a variable, instead of where episodes usually are.

    Examples
    --------
    >>> policy_map(policy, "theta", "theta_dot", what="visits")
    """
    figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
    axes = figure.add_subplot()
    draw_map(axes, policy, x, y, at, what, limits)
    return figure


def phase_portrait(
    policy: Policy,
    paths: Sequence[np.ndarray],
    x: str,
    y: str,
    at: Mapping[str, float] | None = None,
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> Figure:
    """Return closed-loop paths over the policy map; `spaql.policies.trajectories` makes the data.

    A ring marks where a path begins, a cross where it ends.
    """
    figure = Figure(figsize=(WIDTH, 3.8), layout="constrained")
    axes = figure.add_subplot()
    draw_map(axes, policy, x, y, at, "action", limits, borders=False)
    period = variables(policy)[x].period
    for path, line in zip(paths, itertools.cycle(("-", (0, (6, 2)), (0, (1.5, 1.2)))), strict=False):
        across, up = (values_of(policy, path, name) for name in (x, y))
        # Where an angle goes round from one side of the map to the other the pen is lifted.
        breaks = np.flatnonzero(np.abs(np.diff(across)) > period / 2) + 1 if period else np.zeros(0, int)
        for piece in zip(np.split(across, breaks), np.split(up, breaks), strict=True):
            axes.plot(*piece, color="white", linewidth=2.6, alpha=0.8)
            axes.plot(*piece, color="black", linewidth=1.1, linestyle=line)
        # The ring is larger than the cross, lest it be hidden where a path ends at its start.
        axes.plot(across[0], up[0], "o", color="white", markeredgecolor="black", markeredgewidth=2, markersize=11,
                  clip_on=False)  # fmt: skip
        axes.plot(across[-1], up[-1], "X", color="black", markeredgecolor="white", markersize=9, clip_on=False)
    return figure


def draw_tree(tree: Tree, decimals: int = 2) -> Figure:
    """Return the tree as a drawing: below a question is its answer yes on the left, no on the right.

    A tree with more leaves than fit beside each other grows to the right instead, its answer yes above and no below.
    """
    place, symbols = place_nodes(tree), formulas(tree.variables.asked)
    sideways = 1.2 * tree.leaves > WIDTH
    if sideways:
        place, size = place[:, ::-1], (max(WIDTH, 1.8 * (tree.depth + 1)), 0.4 + 0.42 * tree.leaves)
    else:
        size = (WIDTH, 0.4 + 0.7 * (tree.depth + 1))
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    box = {"boxstyle": "round,pad=0.35", "edgecolor": "black", "linewidth": 1.0}
    for node, (across, down) in enumerate(place):
        leaf = tree.feature[node] == LEAF
        if leaf:
            text = describe_action(tree, node, decimals).replace("-", "−")
        else:
            text = symbolic(describe_question(tree, node, "<", decimals), symbols) + "?"
            for child, answer in ((tree.left[node], "yes"), (tree.right[node], "no")):
                to = place[child]
                axes.plot([across, to[0]], [-down, -to[1]], color="0.5", linewidth=1.2, zorder=1)
                # Between two boxes, of which a question's is the wider one.
                along = 0.57 if sideways and tree.feature[child] == LEAF else 0.5
                x, y = across + along * (to[0] - across), down + along * (to[1] - down)
                axes.text(x, -y, answer, fontsize=FONT, ha="center", va="center", color="0.25",
                          bbox={"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"},
                          zorder=2)  # fmt: skip
        box["facecolor"] = "0.88" if leaf else "white"
        axes.text(across, -down, text, fontsize=FONT, ha="center", va="center", bbox=dict(box), zorder=3)
    ends = (tree.depth, tree.leaves - 1) if sideways else (max(tree.leaves - 1, 0), tree.depth)
    axes.set_xlim(-0.5, max(ends[0] + 0.5, 0.5))
    axes.set_ylim(-ends[1] - 0.5, 0.5)
    return figure


def trade_off(curves: Mapping[str, Sequence[Size]], network: tuple[int, Interval] | None = None) -> Figure:
    """Show the return of trees against their size, by algorithm; the last of each is the full policy, a large marker.

    Of TRPO's network it is known how many weights it has and what it earns: a horizontal line with its interval.
    """
    figure, grid = new_figure(height=2.4)
    axes = grid[0, 0]
    for (name, sizes), style in zip(curves.items(), styles_of(curves), strict=True):
        leaves, mean, low, high = np.array([size[:4] for size in sizes]).T
        draw_line(axes, style, leaves, mean, low, high, name)
        axes.plot(leaves[-1], mean[-1], style.marker, color=style.colour, markersize=12, markeredgecolor="black",
                  label=f"{name}, full policy", zorder=4)  # fmt: skip
    if network is not None:
        weights, earned = network
        style = STYLES["TRPO"]
        axes.axhline(earned.mean, color=style.colour, linestyle=style.line, label=f"TRPO, {weights:,} weights")
        axes.axhspan(earned.low, earned.high, color=style.colour, alpha=BAND, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("leaves of the tree")
    axes.set_ylabel("mean return")
    legend_above(figure, axes)
    return figure


def robustness_curves(frame: pd.DataFrame) -> Figure:
    """Show the returns of policies under changed mass and length and under noise, side by side.

    `spaql.paper.audit.robustness` makes the data.  The grey line is the system the policies were made for.  A change
    that changes no policy's return by one has no panel.
    """
    changes = [change for change, rows in frame.groupby("change", sort=False) if np.ptp(rows["mean"]) >= 1]
    names = list(dict.fromkeys(frame.policy))
    figure, grid = new_figure(1, len(changes), height=2.3, sharey=True)
    for axes, change in zip(grid[0], changes, strict=True):
        here = frame[frame.change == change]
        for name, style in zip(names, styles_of(names), strict=True):
            rows = here[here.policy == name].sort_values("value")
            draw_line(axes, style, rows["value"], rows["mean"], rows["low"], rows["high"], name)
        values = sorted(here.value.unique())
        if change == "noise":  # from none, over powers of ten
            axes.set_xscale("symlog", linthresh=min((value for value in values if value > 0), default=1.0))
            name_panel(axes, "Noise")
            axes.set_xlabel("standard deviation")
        else:
            axes.set_xscale("log")
            name_panel(axes, change.capitalize())
            axes.set_xlabel("times the usual")
        axes.axvline(0.0 if change == "noise" else 1.0, color="0.6", linewidth=1.0, zorder=1)
        axes.set_xticks(values[::2], [f"{value:g}" for value in values[::2]])  # more would not fit
        axes.set_xticks([], minor=True)
    grid[0, 0].set_ylabel("mean return")
    legend_above(figure, grid[0, 0])
    return figure


def styles_of(names: Iterable[str]) -> list[Style]:
    """Return a style for each name: an algorithm's own ("TRPO, 1,282 weights"), or one that no algorithm has."""
    algorithm = {name: name.partition(",")[0] for name in names}
    others = [name for name in algorithm if algorithm[name] not in STYLES]
    if len(others) > len(OTHERS):
        raise ValueError(f"there are styles for {len(OTHERS)} lines that are not an algorithm's, not for {others}")
    own = dict(zip(others, OTHERS, strict=False))
    return [own[name] if name in own else STYLES[algorithm[name]] for name in algorithm]


def draw_line(
    axes: Axes, style: Style, x: ArrayLike, mean: ArrayLike, low: ArrayLike, high: ArrayLike, name: str
) -> None:
    """Draw means with their intervals."""
    axes.plot(x, mean, color=style.colour, linestyle=style.line, marker=style.marker, markersize=5, label=name)
    axes.fill_between(x, low, high, color=style.colour, alpha=BAND, linewidth=0)


def place_nodes(tree: Tree) -> np.ndarray:
    """Return the place of each node: leaves side by side, a question in the middle above its answers."""
    place = np.zeros((len(tree.feature), 2))
    leaves = 0

    def put(node: int, depth: int) -> None:
        nonlocal leaves
        place[node, 1] = depth
        if tree.feature[node] == LEAF:
            place[node, 0] = leaves
            leaves += 1
            return
        put(tree.left[node], depth + 1)
        put(tree.right[node], depth + 1)
        place[node, 0] = (place[tree.left[node], 0] + place[tree.right[node], 0]) / 2

    put(0, 0)
    return place


def symbolic(question: str, symbols: Mapping[str, str]) -> str:
    """Return a question with the symbol of its variable."""
    name, _, rest = question.partition(" ")
    return f"{symbols.get(name, name)} {rest}".replace("-", "−")


def angles(policy: Policy) -> Mapping[str, tuple[str, str]]:
    """Return the angles of the system's state that are seen as cosine and sine, with the names of these."""
    system = system_of(policy.env)
    return system.angles if system else {}


def variables(policy: Policy) -> dict[str, Variable]:
    """Return by name the variables that a map can be drawn over: the observed ones, and angles that they are of."""
    system = system_of(policy.env)
    if system is None:
        return {name: Variable(name) for name in policy.variables.observed}
    seen_through = [variable for variable in system.state if variable.name in system.angles]
    return {variable.name: variable for variable in (*system.observed, *seen_through)}


def values_of(policy: Policy, observations: np.ndarray, name: str) -> np.ndarray:
    """Return a variable's values along observations: observed, or the angle of an observed cosine and sine."""
    observed = policy.variables.observed
    if name in observed:
        return observations[:, observed.index(name)]
    cosine, sine = (observations[:, observed.index(part)] for part in angles(policy)[name])
    return np.arctan2(sine, cosine)


def label(policy: Policy, name: str) -> str:
    """Return a variable's symbol with its unit, for an axis."""
    variable = variables(policy)[name]
    return f"{variable.formula or name} {in_brackets(variable.unit)}".rstrip()


def check_axes(policy: Policy, x: str, y: str, at: Mapping[str, float]) -> None:
    """Raise an error if a map cannot be drawn over these variables."""
    known = variables(policy)
    for name in (x, y, *at):
        if name not in known:
            raise ValueError(f"a state variable is one of {', '.join(known)}, not {name!r}")
    if x == y:
        raise ValueError(f"a map needs two different variables, not {x!r} twice")


def observations_at(
    policy: Policy, x: str, y: str, across: np.ndarray, up: np.ndarray, at: Mapping[str, float]
) -> np.ndarray:
    """Return the observations of points of a map, one row per point."""
    names, system = policy.variables.observed, system_of(policy.env)
    usual = system.reference if system and system.reference else (0.0,) * len(names)
    values: dict[str, Any] = dict(zip(names, usual, strict=True)) | dict(at) | {x: across, y: up}
    for name, (cosine, sine) in angles(policy).items():
        if name in values:
            values |= {cosine: np.cos(values[name]), sine: np.sin(values[name])}
    return np.stack([np.broadcast_to(values[name], across.shape) for name in names], axis=1)


def grid_points(across: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the middle of each field of a grid with these edges, row by row: how far across, and how far up."""
    columns, rows = np.meshgrid((across[1:] + across[:-1]) / 2, (up[1:] + up[:-1]) / 2)
    return columns.ravel(), rows.ravel()


def draw_map(
    axes: Axes,
    policy: Policy,
    x: str,
    y: str,
    at: Mapping[str, float] | None,
    what: str,
    limits: Mapping[str, tuple[float, float]] | None,
    borders: bool = True,
    points: int = 480,
) -> None:
    """Draw a map with the meaning of its colours; `points` is its resolution."""
    known = ["action", *OTHER, *policy.variables.actions]
    if what not in known:
        raise ValueError(f"what must be one of {', '.join(known)}, not {what!r}")
    check_axes(policy, x, y, at or {})
    usual = {name: variable.ends for name, variable in variables(policy).items()} | dict(limits or {})
    ends = [np.linspace(*usual[name], points + 1) for name in (x, y)]
    across, up = grid_points(*ends)
    frame = policy.find(observations_at(policy, x, y, across, up, at or {}))
    column = next(name for name in (what, f"centre_{what}", "action") if name in frame)
    values = frame[column].to_numpy(float)
    scale = colour_scale(policy, values, what)
    colours = colours_of(policy, what)
    shown = ScalarMappable(scale, colours)
    picture = values.reshape(points, points)
    extent = (ends[0][0], ends[0][-1], ends[1][0], ends[1][-1])
    axes.imshow(picture, origin="lower", extent=extent, aspect="auto", cmap=colours, norm=scale,
                interpolation="nearest")  # fmt: skip
    if borders:
        lines = border_lines(frame["cell"].to_numpy().reshape(points, points), *ends)
        axes.add_collection(LineCollection(lines, colors="black", linewidths=0.7))
    axes.grid(visible=False)
    axes.set_xlim(extent[:2])
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.set_ylim(extent[2:])
    axes.set_xlabel(label(policy, x), fontsize=FONT)
    axes.set_ylabel(label(policy, y), fontsize=FONT)
    axes.tick_params(labelsize=FONT)
    add_key(axes.figure, axes, policy, shown, what)


def colours_of(policy: Policy, what: str) -> Colormap:
    """Return the colours of a quantity: of actions with both signs those with a neutral middle."""
    if what in OTHER:
        return COLOURS
    lowest, highest = action_ends(policy, what)
    return SIGNED if lowest < 0 < highest else COLOURS


def place_of(policy: Policy, what: str) -> int:
    """Return which number of an action is asked for: by its name, or the first."""
    return policy.variables.actions.index(what) if what in policy.variables.actions else 0


def action_ends(policy: Policy, what: str) -> tuple[float, float]:
    """Return the lowest and the highest action."""
    names, place = policy.variables, place_of(policy, what)
    if names.box is None:
        return float(min(names.choices)), float(max(names.choices))
    centre, half = names.space.action_centre[place], names.space.action_half[place]
    return float(centre - half), float(centre + half)


def colour_scale(policy: Policy, values: np.ndarray, what: str) -> Normalize:
    """Return where the colours of a quantity lie: the same for all maps of a system's actions."""
    names = policy.variables
    if what not in OTHER and names.box is None:
        steps = np.array(names.choices)
        middles = (steps[1:] + steps[:-1]) / 2
        edges = np.concatenate(([steps[0] - 1], middles, [steps[-1] + 1]))
        return BoundaryNorm(edges, 256)
    if what not in OTHER:
        lowest, highest = action_ends(policy, what)
        most = max(-lowest, highest)
        return Normalize(-most, most) if lowest < 0 < highest else Normalize(lowest, highest)
    if what == "visits":
        return LogNorm(1, max(2, values.max()))
    if what == "depth":
        edges = np.arange(values.min(), values.max() + 2) - 0.5
        return BoundaryNorm(edges, 256) if len(edges) > 2 else Normalize(0, 1)
    return Normalize(values.min(), values.max())


def add_key(figure: FigureBase, axes: Any, policy: Policy, shown: ScalarMappable, what: str) -> None:
    """Say what the colours mean: a legend for a few actions, a bar for numbers."""
    names, place = policy.variables, place_of(policy, what)
    if what not in OTHER and names.box is None:
        patches = [
            Patch(facecolor=colour, edgecolor="black", label=signed(choice, names.action_unit).replace("-", "−"))
            for choice, colour in zip(names.choices, shown.to_rgba(np.array(names.choices)), strict=True)
        ]
        figure.legend(handles=patches, loc="outside upper center", ncols=5, fontsize=FONT, frameon=False)
        return
    bar = figure.colorbar(shown, ax=axes)
    action = f"{names.actions[place]} {in_brackets(names.action_units[place])}".rstrip()
    bar.set_label(OTHER.get(what, action), fontsize=FONT)
    bar.ax.tick_params(labelsize=FONT)
    if what == "depth" and isinstance(shown.norm, BoundaryNorm):
        edges = shown.norm.boundaries
        bar.set_ticks((edges[1:] + edges[:-1]) / 2)


def border_lines(cells: np.ndarray, across: np.ndarray, up: np.ndarray) -> list[list[tuple[float, float]]]:
    """Return the lines between the points of a grid that lie in different cells, as long as they go on."""
    lines = []
    for flip, field, along, beside in ((False, cells, up, across), (True, cells.T, across, up)):
        differs = field[:, 1:] != field[:, :-1]
        for j in np.flatnonzero(differs.any(axis=0)):
            changes = np.flatnonzero(np.diff(np.concatenate(([0], differs[:, j].astype(int), [0]))))
            for first, last in zip(changes[::2], changes[1::2], strict=True):
                ends = [(beside[j + 1], along[first]), (beside[j + 1], along[last])]
                lines.append([(b, a) for a, b in ends] if flip else ends)
    return lines
