"""Chapter 7: agents trained again, small trees, random trees, and the longer drawings.

The explorer shows the same agents and trees.
"""

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence

import gymnasium as gym
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.colors import BoundaryNorm, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from spaql.agent import Agent
from spaql.paper.engine.algorithms import retrain
from spaql.paper.engine.job import job_of
from spaql.paper.engine.store import best
from spaql.paper.engine.style import (
    BAND,
    FONT,
    OTHERS,
    STYLES,
    WIDTH,
    in_brackets,
    legend_above,
    name_panel,
    new_figure,
)
from spaql.policies import Policy, Simplified, Size, Tree
from spaql.policies.export import signed
from spaql.policies.interval import Interval
from spaql.policies.play import first_states, run_policy
from spaql.policies.tree import LEAF, Variables
from spaql.systems import Variable, make_env, solved_at, system_of

SEARCH = {"leaves": 24, "proposals": 100, "seed": 0}  # of the small trees that the book shows
SIGNED = LinearSegmentedColormap.from_list("signed", ["#0b3c7d", "#7fb2e5", "#f4f4f4", "#fdb863", "#e66101"])


def best_agent(agents: pd.DataFrame, system: str, algorithm: str) -> Agent:
    """Return the agent of an algorithm that reported the highest reward, trained again."""
    return retrain(job_of(best(agents.query("system == @system and algorithm == @algorithm"))))


def small_tree(policy: Policy, system: str, **options: int) -> Simplified:
    """Return smaller trees that earn as much as a policy, or that solve the system.

    The search ends long before its time is up, so it finds the same trees on every machine.
    """
    target = solved_at(system) if "CartPole" in system else None
    return policy.simplify(target=target, seconds=3600, progress_bar=False, **SEARCH | options)


def random_trees(variables: Variables, leaves: int, count: int, seed: int = 0) -> Iterator[Tree]:
    """Yield trees with random questions and actions: thresholds lie where episodes usually are."""
    rng, box = np.random.default_rng(seed), variables.box
    asked = [i for i, name in enumerate(variables.asked) if name]
    ends = np.array([variable.ends for variable in known_variables(variables)])
    for _ in range(count):
        nodes = 2 * leaves - 1
        feature, threshold, left, right = (
            np.full(nodes, LEAF),
            np.zeros(nodes),
            np.full(nodes, LEAF),
            np.full(nodes, LEAF),
        )
        for made in range(1, nodes, 2):
            node = rng.choice(np.flatnonzero(feature[:made] == LEAF))
            feature[node], left[node], right[node] = rng.choice(asked), made, made + 1
            threshold[node] = rng.uniform(*ends[feature[node]]) / 2
        low = (
            rng.integers(len(variables.choices), size=nodes).astype(float) if box is None else rng.uniform(-1, 1, nodes)
        )
        yield Tree(feature, threshold, left, right, low[:, None], variables)


def known_variables(variables: Variables) -> Sequence[Variable]:
    """Return the observed variables of a system, with their usual ends."""
    return system_of(make_env(variables.system)).observed


def best_random_tree(variables: Variables, leaves: int, count: int, episodes: int = 100, seed: int = 0) -> Tree:
    """Return the best of some random trees on the same episodes: what a search without any policy finds."""
    env, rng = make_env(variables.system), np.random.default_rng(seed)
    starts = first_states(env, variables.space, rng, episodes)
    trees = random_trees(variables, leaves, count, seed)
    return max(trees, key=lambda tree: run_policy(tree, env, starts, rng).rewards.mean())


def lengths(system: str, factors: Sequence[float]) -> dict[str, gym.Env]:
    """Return a system with poles of other lengths, by the factor."""
    found = {}
    for factor in factors:
        env = copy.deepcopy(make_env(system))
        system_of(env).vary(env, length=factor)
        found[f"{factor:g}"] = env
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Drawings


def trade_off(curves: Mapping[str, Sequence[Size]], network: tuple[int, Interval]) -> Figure:
    """Show what the best tree of at most so many leaves returns, by algorithm; the last of each is the policy itself.

    A horizontal line is TRPO's network: how many weights it has, and what it earns with its interval.
    """
    figure, grid = new_figure(height=2.4)
    axes = grid[0, 0]
    for name, sizes in curves.items():
        style = STYLES[name]
        best_so_far = itertools.accumulate(sizes[:-1], lambda best, size: max(best, size, key=lambda one: one.mean))
        mean, low, high = np.array([size[1:4] for size in best_so_far]).T
        leaves = [size.leaves for size in sizes]
        axes.plot(leaves[:-1], mean, color=style.colour, linestyle=style.line, marker=style.marker, markersize=4,
                  label=f"trees from {name}")  # fmt: skip
        axes.fill_between(leaves[:-1], low, high, color=style.colour, alpha=BAND, linewidth=0)
        axes.plot(leaves[-1], sizes[-1].mean, style.marker, color=style.colour, markersize=12, markeredgecolor="black",
                  label=f"{name}, exact tree", zorder=4)  # fmt: skip
    weights, earned = network
    axes.axhline(
        earned.mean, color=STYLES["TRPO"].colour, linestyle=STYLES["TRPO"].line, label=f"TRPO, {weights:,} weights"
    )
    axes.axhspan(earned.low, earned.high, color=STYLES["TRPO"].colour, alpha=BAND, linewidth=0)
    axes.set(xscale="log", xlabel="leaves of the tree", ylabel="mean return")
    axes.xaxis.set_major_formatter("{x:,.0f}")
    legend_above(figure, axes)
    return figure


def robustness_curves(frame: pd.DataFrame) -> Figure:
    """Show the returns of policies on poles of other lengths and under noise, side by side.

    The grey line is the system the policies were made for.
    """
    figure, grid = new_figure(1, 2, height=2.3, sharey=True)
    usual, noisy = frame.change == "usual", frame.change == "noise"
    panels = {
        "Length": frame[~noisy].assign(value=frame.change.where(~usual, "1")[~noisy].astype(float)),
        "Noise": frame[usual | noisy].assign(value=frame.noise),
    }
    for axes, (name, rows) in zip(grid[0], panels.items(), strict=True):
        styles = iter(OTHERS)
        for policy, mine in rows.groupby("policy", sort=False):
            style, mine = STYLES.get(policy.partition(",")[0]) or next(styles), mine.sort_values("value")
            look = {"color": style.colour, "linestyle": style.line, "marker": style.marker, "markersize": 5}
            axes.plot(mine.value, mine["mean"], label=policy, **look)
            axes.fill_between(mine.value, mine.low, mine.high, color=style.colour, alpha=BAND, linewidth=0)
        values = sorted(rows.value.unique())
        axes.set_xscale(
            *(["log"] if name == "Length" else ["symlog"]), **({} if name == "Length" else {"linthresh": values[1]})
        )
        axes.axvline(1.0 if name == "Length" else 0.0, color="0.6", linewidth=1.0, zorder=1)
        axes.set_xticks(values[::2], [f"{value:g}" for value in values[::2]])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("times the usual" if name == "Length" else "standard deviation")
        name_panel(axes, name)
    grid[0, 0].set_ylabel("mean return")
    legend_above(figure, grid[0, 0])
    return figure


def policy_map(policy: Policy, x: str, y: str, at: Mapping[str, float] | None = None, points: int = 480) -> Figure:
    """Return a map of the action over two state variables: a slice through the partition, with borders of cells.

    Parameters
    ----------
    policy
        Of an agent of SPAQL's family.
    x, y
        Two of the variables `policy.variables.observed`, or an angle of the state, which stands for its cosine and
        its sine together.
    at
        The values of the others; those of the system's reference, or zero, if not given.
    points
        Of the picture, in each direction.
    """
    system, names = system_of(policy.env), policy.variables
    angles = system.angles if system else {}
    known = {name: Variable(name) for name in names.observed}
    if system is not None:
        known = {variable.name: variable for variable in (*system.observed, *system.state)}
    if wrong := [name for name in (x, y, *(at or {})) if name not in angles and name not in names.observed]:
        raise ValueError(f"a map is over two of {', '.join([*angles, *names.observed])}, not {', '.join(wrong)}")
    across, up = (np.linspace(*known[name].ends, points + 1) for name in (x, y))
    columns, rows = np.meshgrid((across[1:] + across[:-1]) / 2, (up[1:] + up[:-1]) / 2)
    usual = system.reference if system and system.reference else (0.0,) * len(names.observed)
    values = dict(zip(names.observed, usual, strict=True)) | dict(at or {}) | {x: columns, y: rows}
    for name, (cosine, sine) in angles.items():
        if name in values:
            values |= {cosine: np.cos(values[name]), sine: np.sin(values[name])}
    seen = np.stack([np.broadcast_to(values[name], columns.shape).ravel() for name in names.observed], axis=1)
    found = policy.find(seen)
    figure, axes = Figure(figsize=(WIDTH, 3.4), layout="constrained"), None
    axes = figure.add_subplot()
    extent = (across[0], across[-1], up[0], up[-1])
    shown = axes.imshow(
        found.action.to_numpy(float).reshape(columns.shape), origin="lower", extent=extent, aspect="auto", cmap=SIGNED,
        norm=colour_scale(names), interpolation="nearest",
    )  # fmt: skip
    cells = found.cell.to_numpy().reshape(columns.shape)
    axes.add_collection(LineCollection(border_lines(cells, across, up), colors="black", linewidths=0.7))
    labels = (f"{known[name].formula or name} {in_brackets(known[name].unit)}".rstrip() for name in (x, y))
    axes.set(xlim=extent[:2], ylim=extent[2:], **dict(zip(("xlabel", "ylabel"), labels, strict=True)))
    axes.xaxis.label.set_fontsize(FONT)
    axes.yaxis.label.set_fontsize(FONT)
    axes.tick_params(labelsize=FONT)
    axes.grid(visible=False)
    if names.box is None:
        handles = [Patch(facecolor=shown.to_rgba(choice), edgecolor="black", label=signed(choice, names.action_unit)
                         .replace("-", "−")) for choice in names.choices]  # fmt: skip
        figure.legend(handles=handles, loc="outside upper center", ncols=5, fontsize=FONT, frameon=False)
    else:
        bar = figure.colorbar(shown, ax=axes)
        bar.set_label(f"{names.actions[0]} {in_brackets(names.action_units[0])}".rstrip(), fontsize=FONT)
        bar.ax.tick_params(labelsize=FONT)
    return figure


def colour_scale(names: Variables) -> Normalize:
    """Return where the colours of actions lie, a zero in the middle."""
    if names.box is None:
        steps = np.array(names.choices)
        return BoundaryNorm([steps[0] - 1, *(steps[1:] + steps[:-1]) / 2, steps[-1] + 1], 256)
    most = float(np.abs([names.box.low, names.box.high]).max())
    return Normalize(-most, most)


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
