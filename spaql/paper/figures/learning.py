"""The figures of the paper's experiments: rewards against ξ, learning curves, batches, episodes."""

from collections.abc import Mapping

import gymnasium as gym
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from spaql.paper.audit.groups import BATCH, before_update
from spaql.paper.figures.style import BAND, legend_above, name_panel, new_figure, present, thin
from spaql.paper.labels import STYLES, axis_label
from spaql.paper.runs.job import Record
from spaql.paper.runs.provenance import TRPO
from spaql.paper.studies import LEARNERS
from spaql.policies.interval import paper_interval
from spaql.policies.tree import variables_of
from spaql.systems import Variable, episode_limit, make_env, system_of, title


def curve(axes: Axes, algorithm: str, x: np.ndarray, values: np.ndarray, label: bool = True) -> None:
    """Draw the mean over agents (one row of `values` per agent) with the paper's interval."""
    style = STYLES[algorithm]
    mean, half = values.mean(axis=0), 1.96 * values.std(axis=0) / np.sqrt(len(values))
    keep = thin(len(x))
    axes.plot(
        x[keep], mean[keep], color=style.colour, linestyle=style.line, label=algorithm if label else None, zorder=3
    )
    axes.fill_between(x[keep], (mean - half)[keep], (mean + half)[keep], color=style.colour, alpha=BAND, linewidth=0)


def by_agent(frame: pd.DataFrame, algorithm: str, column: str) -> np.ndarray:
    """Return a column of an algorithm's histories, one row per agent."""
    chosen = frame[frame.algorithm == algorithm]
    return chosen.pivot(index="agent", columns="iteration", values=column).to_numpy()


def xi_effect(finals: pd.DataFrame) -> Figure:
    """Show the reward at the end of training against ξ, one panel per system (the paper's Figures 1 and 6).

    Dots are means over agents with the paper's interval; a horizontal line and its band are the mean and the standard
    deviation of an algorithm's dots; the dotted line is Random.

    Parameters
    ----------
    finals
        From `spaql.paper.frames.finals`, of one or more systems.
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
        name_panel(axes, title(system))
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

    As in the paper an iteration of SPAQL counts as one batch, also if its episode ended early.  TRPO's rewards stand
    where its policy was when it earned them, before the update of their iteration.
    """
    figure, grid = new_figure(2 if arms else 1, height=2.5 if arms else 3.0, sharex=True)
    top, bottom = grid[0, 0], grid[-1, 0]
    for name in present(histories):
        rewards = by_agent(histories, name, "rewards")
        sampled = histories[(histories.algorithm == name) & (histories.agent == 0)].steps.to_numpy()
        x = before_update(sampled) / BATCH if name in TRPO else np.arange(1, rewards.shape[1] + 1)
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
    """Show the most telling state variable and the action along a recorded episode, one row per policy.

    These are the paper's Figures 3, 5 and 8.  Dashed lines are the marks of the variable: where it should be, and where
    an episode ends.
    """
    env = make_env(next(iter(records.values())).job.system)
    system, steps = system_of(env), episode_limit(env)
    if system is None:
        raise ValueError(f"only the states of registered systems have names, not those of {env}")
    place = system.telling[0]
    variable = system.state[place]
    figure, grid = new_figure(len(records), 2, height=1.5, sharex=True, sharey="col")
    for (left, right), (name, record) in zip(grid, records.items(), strict=True):
        style = STYLES[name]
        action = in_units(env, record.episode["actions"])
        left.plot(record.episode["states"][:, place], color=style.colour, linewidth=1.4)
        right.step(range(len(action)), action, color=style.colour, linewidth=0.7, where="post")
        name_panel(left, name)
        name_panel(right, f"return {record.episode['rewards'].sum():.0f}", "normal")
    for axes in grid[:, 0]:
        lines = marked(variable, *axes.get_ylim())
        axes.hlines(lines, 0, steps, color="#b8860b", linestyle="--", linewidth=0.9, zorder=1)
    middle = len(grid) // 2
    grid[middle, 0].set_ylabel(axis_label(variable))
    grid[middle, 1].set_ylabel(axis_label(system.action))
    for axes in grid[-1]:
        axes.set_xlabel("time step t")
    return figure


def in_units(env: gym.Env, actions: np.ndarray) -> np.ndarray:
    """Return the actions of an environment in the unit of its system's action."""
    names = variables_of(env)
    return actions if names.box is not None else np.take(names.choices, actions.astype(int) - names.start)


def marked(variable: Variable, low: float, high: float) -> np.ndarray:
    """Return where a picture from `low` to `high` marks a variable: on every turn again, if it turns round."""
    marks = np.array(variable.marks)
    if not variable.period:
        return marks
    turns = np.arange(np.floor(low / variable.period), np.ceil(high / variable.period) + 1) * variable.period
    everywhere = (marks[:, None] + turns).ravel()
    return everywhere[(low <= everywhere) & (everywhere <= high)]
