"""Figures that several chapters share: learning curves beside the paper's ends, episodes, and decision trees."""

import itertools

import gymnasium as gym
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from spaql.paper.claims.load import paper_results
from spaql.paper.engine import style
from spaql.paper.engine.algorithms import record_episode, train
from spaql.paper.engine.job import job_of
from spaql.paper.engine.store import best
from spaql.paper.engine.style import number
from spaql.policies.export import describe_action, describe_question
from spaql.policies.interval import paper_interval
from spaql.policies.tree import LEAF, Tree, variables_of
from spaql.systems import episode_limit, make_env, system_called, system_of

FAINT = 0.16  # opacity of single agents behind their mean


def curve(axes: Axes, algorithm: str, x, values: np.ndarray, agents: bool = True) -> None:
    """Draw the mean over agents (one row of `values` per agent) with the paper's interval, the agents behind it."""
    x, look, few, shown = np.asarray(x), style.STYLES[algorithm], style.thin(len(x), 60), style.thin(len(x))
    if agents:
        axes.plot(x[few], values[:, few].T, color=look.colour, alpha=FAINT * min(1, 20 / len(values)), linewidth=0.5)
    mean, low, high = np.transpose([paper_interval(values[:, place]) for place in shown])
    axes.fill_between(x[shown], low, high, color=look.colour, alpha=style.BAND, linewidth=0)
    axes.plot(x[shown], mean, color=look.colour, linestyle=look.line, label=algorithm, zorder=3)


def draw_paper_ends(axes: Axes, system: str, names, column: str, last: float) -> None:
    """Draw what the paper's tables say of the end of training: a dashed line with its interval, ending in a diamond."""
    paper = paper_results().get(system, {})
    for name in names:
        if column in paper.get(name, {}):
            (value, half), colour = paper[name][column], style.STYLES[name].colour
            x = np.array([0.72, 1.03]) * last
            axes.fill_between(x, value - half, value + half, color=colour, alpha=0.25, linewidth=0, zorder=2)
            axes.plot(x, [value, value], color=colour, linestyle=(0, (3, 2)), linewidth=1.1, zorder=4)
            axes.plot(x[1:], [value], color=colour, marker="D", markersize=4, zorder=5)
    if paper:
        axes.plot([], [], color="#444444", linestyle=(0, (3, 2)), marker="D", markersize=4, label="the paper's end")


def learning_curves(histories: pd.DataFrame) -> Figure:
    """Show rewards and arms against training iterations (the paper's Figures 2, 4 and 7), with the paper's ends."""
    (system,) = histories.system.unique()
    names = style.present(histories)
    figure, grid = style.new_figure(2, height=2.1, sharex=True)
    for axes, column, label in zip(grid[:, 0], ("rewards", "arms"), ("cumulative reward", "arms"), strict=True):
        for name in names:
            if (name, column) != ("Random", "arms"):  # which has none
                own = histories[histories.algorithm == name]
                values = own.pivot(index="agent", columns="iteration", values=column)
                curve(axes, name, values.columns, values.to_numpy())
        draw_paper_ends(axes, system, names, column, histories.iteration.max())
        axes.set_ylabel(label)
    grid[1, 0].set(xlabel="training iteration", yscale="log")
    style.legend_above(figure, grid[0, 0])
    return figure


# Episodes


def best_episodes(agents: pd.DataFrame, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Return an episode of the best agent of each algorithm, trained again, all from the start that the seed draws."""
    rows = {name: best(agents[agents.algorithm == name]) for name in style.present(agents)}
    start = np.random.SeedSequence(seed)
    return {name: record_episode(train(job_of(row))[0], row.system, start) for name, row in rows.items()}


def episodes(played: dict[str, dict[str, np.ndarray]], env_id: str) -> Figure:
    """Show the most telling state variable and the action along episodes, one row per policy (Figures 3, 5 and 8).

    A discrete action is drawn thin, with its mean over ten steps on top, since many policies switch often.
    """
    env = make_env(env_id)
    system = system_of(env)
    place = system.telling[0]
    variable = system.state[place]
    figure, grid = style.new_figure(len(played), 2, height=1.3, sharex=True, sharey="col")
    for (left, right), (name, episode) in zip(grid, played.items(), strict=True):
        colour, action = style.STYLES[name].colour, in_units(env, episode["actions"])
        left.plot(episode["states"][:, place], color=colour, linewidth=1.4)
        if isinstance(env.action_space, gym.spaces.Discrete):
            right.step(range(len(action)), action, color=colour, linewidth=0.5, alpha=0.45, where="post")
            action = pd.Series(action).rolling(10, center=True, min_periods=1).mean()
        right.plot(action, color=colour, linewidth=1.4)
        style.name_panel(left, name)
        style.name_panel(right, f"return {number(episode['rewards'].sum(), 0)}", "normal")
    for axes in grid[:, 0]:
        marks = np.array(variable.marks)
        if variable.period:  # on every turn again
            low, high = axes.get_ylim()
            turns = np.arange(np.floor(low / variable.period), np.ceil(high / variable.period) + 1) * variable.period
            marks = np.add.outer(marks, turns).ravel()
            marks = marks[(low <= marks) & (marks <= high)]
            tick_turns(axes, variable.period)
        axes.hlines(marks, 0, episode_limit(env), color="#666666", linestyle="--", linewidth=0.9, zorder=1)
    style.label_column(grid[:, 0], style.axis_label(variable))
    style.label_column(grid[:, 1], style.axis_label(system.actions[0]))
    for axes in grid[-1]:
        axes.set_xlabel("time step t")
    return figure


def in_units(env: gym.Env, actions: np.ndarray) -> np.ndarray:
    """Return the actions of an environment in the unit of its system's action."""
    names = variables_of(env)
    return actions if names.box is not None else np.take(names.choices, actions.astype(int) - names.start)


def tick_turns(axes: Axes, period: float) -> None:
    """Mark the angles of an axis by multiples of π: every half turn, or every turn where there are many."""
    low, high = axes.get_ylim()
    axes.yaxis.set_major_locator(MultipleLocator(period / 2 if high - low < 2 * period else period))
    names = {0: "0", 1: "π", -1: "−π"}
    axes.yaxis.set_major_formatter(lambda angle, _: names.get(half := round(angle / np.pi), f"{number(half, 0)}π"))


# Decision trees


def draw_tree(tree: Tree) -> Figure:
    """Return the tree as a drawing that grows to the right: above a question's branches is its answer yes, below no."""
    place, system = place_nodes(tree), system_called(tree.variables.system)
    known = (*system.observed, *system.state) if system else ()
    symbols = {variable.name: variable.formula for variable in known}
    figure = Figure(figsize=(max(style.WIDTH, 1.75 * (tree.depth + 1)), 0.4 + 0.42 * tree.leaves), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    text_style = {"fontsize": style.FONT, "ha": "center", "va": "center"}
    for node, (across, down) in enumerate(place):
        leaf = tree.feature[node] == LEAF
        if leaf:
            text = describe_action(tree, node)
        else:
            name, _, rest = describe_question(tree, node, "<").partition(" ")
            text = f"{symbols.get(name) or name} {rest}?"
            for child, answer in ((tree.left[node], "yes"), (tree.right[node], "no")):
                to = place[child]
                axes.plot([across, to[0]], [-down, -to[1]], color="0.5", linewidth=1.2, zorder=1)
                # Between two boxes, of which a question's is the wider one.
                along = 0.57 if tree.feature[child] == LEAF else 0.5
                x, y = across + along * (to[0] - across), down + along * (to[1] - down)
                box = {"boxstyle": "square,pad=0.1", "facecolor": "white", "edgecolor": "none"}
                axes.text(x, -y, answer, color="0.25", zorder=2, bbox=box, **text_style)
        box = {"boxstyle": "round,pad=0.35", "edgecolor": "black", "facecolor": "0.88" if leaf else "white"}
        axes.text(across, -down, text.replace("-", "−"), zorder=3, bbox=box, **text_style)
    right, bottom = place.max(axis=0)
    axes.set(xlim=(-0.5, max(right + 0.5, 0.5)), ylim=(-bottom - 0.5, 0.5))
    return figure


def place_nodes(tree: Tree) -> np.ndarray:
    """Return the place of each node: leaves below each other, a question halfway between its answers, to the left."""
    place, leaves = np.zeros((len(tree.feature), 2)), itertools.count()

    def put(node, depth):
        children = tree.left[node], tree.right[node]
        down = next(leaves) if tree.feature[node] == LEAF else sum(put(child, depth + 1) for child in children) / 2
        place[node] = depth, down
        return down

    put(0, 0)
    return place
