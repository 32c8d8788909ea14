"""Figures that several chapters share: learning curves beside the paper's ends, and episodes."""

from collections.abc import Iterable, Mapping

import gymnasium as gym
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from numpy.typing import ArrayLike

from spaql.paper.claims.load import paper_results
from spaql.paper.engine.frames import best
from spaql.paper.engine.job import job_of
from spaql.paper.engine.style import (
    BAND,
    FAINT,
    STYLES,
    axis_label,
    label_column,
    legend_above,
    name_panel,
    new_figure,
    number,
    present,
    thin,
)
from spaql.paper.engine.training import record_episode, retrain
from spaql.policies.interval import paper_interval
from spaql.policies.tree import variables_of
from spaql.systems import Variable, episode_limit, make_env, system_of


def by_agent(histories: pd.DataFrame, algorithm: str, column: str) -> np.ndarray:
    """Return a column of an algorithm's histories, one row per agent."""
    chosen = histories[histories.algorithm == algorithm]
    return chosen.pivot(index="agent", columns="iteration", values=column).to_numpy()


def curve(axes: Axes, algorithm: str, x: ArrayLike, values: np.ndarray, agents: bool = True) -> None:
    """Draw the mean over agents (one row of `values` per agent) with the paper's interval, the agents behind it."""
    x, style, few, shown = np.asarray(x), STYLES[algorithm], thin(len(x), 60), thin(len(x))
    if agents:
        axes.plot(x[few], values[:, few].T, color=style.colour, alpha=FAINT * min(1, 20 / len(values)), linewidth=0.5)
    means = [paper_interval(values[:, place]) for place in shown]
    axes.fill_between(x[shown], [mean.low for mean in means], [mean.high for mean in means],
                      color=style.colour, alpha=BAND, linewidth=0)  # fmt: skip
    axes.plot(x[shown], [mean.mean for mean in means], color=style.colour, linestyle=style.line, label=algorithm,
              zorder=3)  # fmt: skip


def draw_paper_ends(axes: Axes, system: str, names: Iterable[str], column: str, last: float) -> None:
    """Draw what the paper's tables say of the end of training: a dashed line with its interval, ending in a diamond."""
    paper = paper_results().get(system, {})
    for name in names:
        if column in paper.get(name, {}):
            (value, half), colour = paper[name][column], STYLES[name].colour
            x = np.array([0.72, 1.03]) * last
            axes.fill_between(x, value - half, value + half, color=colour, alpha=0.25, linewidth=0, zorder=2)
            axes.plot(x, [value, value], color=colour, linestyle=(0, (3, 2)), linewidth=1.1, zorder=4)
            axes.plot(x[1:], [value], color=colour, marker="D", markersize=4, zorder=5)
    if paper:
        axes.plot([], [], color="#444444", linestyle=(0, (3, 2)), marker="D", markersize=4, label="the paper's end")


def learning_curves(histories: pd.DataFrame) -> Figure:
    """Show rewards and arms against training iterations (the paper's Figures 2, 4 and 7), with the paper's ends."""
    (system,) = histories.system.unique()
    names = present(histories)
    figure, grid = new_figure(2, height=2.1, sharex=True)
    for axes, column, label in zip(grid[:, 0], ("rewards", "arms"), ("cumulative reward", "arms"), strict=True):
        for name in names:
            if (name, column) != ("Random", "arms"):  # which has none
                values = by_agent(histories, name, column)
                curve(axes, name, np.arange(1, values.shape[1] + 1), values)
        draw_paper_ends(axes, system, names, column, histories.iteration.max())
        axes.set_ylabel(label)
    grid[1, 0].set(xlabel="training iteration", yscale="log")
    legend_above(figure, grid[0, 0])
    return figure


def best_episodes(agents: pd.DataFrame, seed: int) -> dict[str, dict[str, np.ndarray]]:
    """Return an episode of the best agent of each algorithm, all from the start that the seed draws.

    Stored rows hold no partitions, so the agents are trained again.
    """
    rows = {name: best(agents[agents.algorithm == name]) for name in present(agents)}
    start = np.random.SeedSequence(seed)
    return {name: record_episode(retrain(job_of(row)), row.system, start) for name, row in rows.items()}


def episodes(played: Mapping[str, Mapping[str, np.ndarray]], env_id: str) -> Figure:
    """Show the most telling state variable and the action along episodes, one row per policy (Figures 3, 5 and 8).

    `played` holds an episode by the name of its algorithm, see `training.record_episode`.  Dashed lines are the marks
    of the variable: where it should be, and where an episode ends.  A discrete action is drawn thin, with its mean over
    ten steps on top, since many policies switch often.
    """
    env = make_env(env_id)
    system = system_of(env)
    if system is None:
        raise ValueError(f"only the states of registered systems have names, not those of {env_id}")
    place = system.telling[0]
    variable = system.state[place]
    figure, grid = new_figure(len(played), 2, height=1.3, sharex=True, sharey="col")
    for (left, right), (name, episode) in zip(grid, played.items(), strict=True):
        colour, action = STYLES[name].colour, in_units(env, episode["actions"])
        left.plot(episode["states"][:, place], color=colour, linewidth=1.4)
        if isinstance(env.action_space, gym.spaces.Discrete):
            right.step(range(len(action)), action, color=colour, linewidth=0.5, alpha=0.45, where="post")
            action = pd.Series(action).rolling(10, center=True, min_periods=1).mean()
        right.plot(action, color=colour, linewidth=1.4)
        name_panel(left, name)
        name_panel(right, f"return {number(episode['rewards'].sum(), 0)}", "normal")
    for axes in grid[:, 0]:
        axes.hlines(marks(variable, *axes.get_ylim()), 0, episode_limit(env), color="#666666", linestyle="--",
                    linewidth=0.9, zorder=1)  # fmt: skip
        if variable.period:
            tick_turns(axes, variable.period)
    label_column(grid[:, 0], axis_label(variable))
    label_column(grid[:, 1], axis_label(system.actions[0]))
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


def marks(variable: Variable, low: float, high: float) -> np.ndarray:
    """Return where a picture from `low` to `high` marks a variable: on every turn again, if it turns round."""
    if not variable.period:
        return np.array(variable.marks)
    turns = np.arange(np.floor(low / variable.period), np.ceil(high / variable.period) + 1) * variable.period
    everywhere = np.add.outer(variable.marks, turns).ravel()
    return everywhere[(low <= everywhere) & (everywhere <= high)]
