"""The figures of the paper's experiments: rewards against ξ, learning curves, batches, episodes."""

from collections.abc import Iterable, Mapping

import gymnasium as gym
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator

from spaql.paper.claims.load import paper_results
from spaql.paper.figures.style import (
    BAND,
    FAINT,
    PALETTE,
    label_column,
    legend_above,
    name_panel,
    new_figure,
    paper_ends,
)
from spaql.paper.labels import STYLES, axis_label, number, present, thin
from spaql.paper.runs.job import Record
from spaql.paper.runs.outcomes import BATCH, before_update
from spaql.paper.runs.provenance import TRPO
from spaql.paper.statistics import performance_profile
from spaql.paper.studies import LEARNERS
from spaql.policies.tree import variables_of
from spaql.systems import Variable, episode_limit, make_env, system_of, title

FIRST = 300  # batches that have a panel of their own in the comparison with TRPO: there it is decided who leads


def curve(axes: Axes, algorithm: str, x: np.ndarray, values: np.ndarray, agents: bool = True) -> None:
    """Draw the mean over agents (one row of `values` per agent) with the paper's interval, the agents behind it."""
    style = STYLES[algorithm]
    faint = FAINT * min(1.0, 20 / len(values))  # of many agents each is fainter, lest they hide the others
    for keep, options in (
        (thin(len(x), 60), {"units": "agent", "estimator": None, "alpha": faint, "linewidth": 0.5}),
        (thin(len(x)), {"errorbar": paper_ends, "err_kws": {"alpha": BAND, "linewidth": 0}, "zorder": 3}
         | {"linestyle": style.line, "label": algorithm}),
    )[0 if agents else 1:]:  # fmt: skip
        frame = pd.DataFrame(values[:, keep].T, index=x[keep]).rename_axis("x").reset_index()
        long = frame.melt("x", var_name="agent", value_name="y")
        sns.lineplot(long, x="x", y="y", color=style.colour, legend=False, ax=axes, **options)
    axes.set(xlabel=None, ylabel=None)


def by_agent(frame: pd.DataFrame, algorithm: str, column: str) -> np.ndarray:
    """Return a column of an algorithm's histories, one row per agent."""
    chosen = frame[frame.algorithm == algorithm]
    return chosen.pivot(index="agent", columns="iteration", values=column).to_numpy()


def xi_effect(finals: pd.DataFrame) -> Figure:
    """Show the reward at the end of training against ξ, one panel per system (the paper's Figures 1 and 6).

    Dots are means over agents with the paper's interval; a horizontal line and its band are the mean and the standard
    deviation of an algorithm's dots; the dotted line is Random.
    """
    systems = list(dict.fromkeys(finals.system))
    figure, grid = new_figure(len(systems), height=2.4)
    for axes, system in zip(grid[:, 0], systems, strict=True):
        here = finals[finals.system == system]
        draw_xi(axes, here[here.algorithm != "Random"])
        baseline = here[here.algorithm == "Random"]
        if len(baseline):
            style = STYLES["Random"]
            axes.axhline(baseline.rewards.mean(), color=style.colour, linestyle=style.line, label="Random")
        name_panel(axes, title(system))
    legend_above(figure, grid[0, 0])
    return figure


def draw_xi(axes: Axes, learners: pd.DataFrame) -> None:
    """Draw each learner's rewards over ξ, side by side, with the mean and the spread of its dots."""
    names = present(learners)
    shown = learners.assign(xi=learners.xi.map("{:g}".format))
    sns.pointplot(shown, x="xi", y="rewards", hue="algorithm", hue_order=names,
                  order=[f"{xi:g}" for xi in sorted(learners.xi.unique())], palette=PALETTE, dodge=0.4,
                  markers=[STYLES[name].marker for name in names], linestyle="none", markersize=4.5, capsize=0.12,
                  errorbar=paper_ends, err_kws={"linewidth": 1.2}, ax=axes)  # fmt: skip
    axes.get_legend().remove()
    for name in names:
        style, means = STYLES[name], learners[learners.algorithm == name].groupby("xi").rewards.mean()
        axes.axhline(means.mean(), color=style.colour, linestyle=style.line, linewidth=1)
        axes.axhspan(means.mean() - means.std(ddof=0), means.mean() + means.std(ddof=0), color=style.colour, alpha=0.10,
                     linewidth=0)  # fmt: skip
    axes.grid(visible=False, axis="x")
    axes.set(ylabel="cumulative reward", xlabel="ξ (not to scale)")


def draw_paper(axes: Axes, system: str, names: Iterable[str], column: str, last: float) -> None:
    """Draw what the paper prints for the end of training into a panel of curves: a dashed line with its interval."""
    paper = paper_results().get(system, {})
    for name in names:
        if column in paper.get(name, {}):
            (value, half), colour = paper[name][column], STYLES[name].colour
            x = np.array([0.72, 1.03]) * last
            axes.fill_between(x, value - half, value + half, color=colour, alpha=0.25, linewidth=0, zorder=2)
            axes.plot(x, [value, value], color=colour, linestyle=(0, (3, 2)), linewidth=1.1, zorder=4)
            axes.plot(x[1:], [value], color=colour, marker="D", markersize=4, zorder=5)
    if paper_results().get(system):
        axes.plot([], [], color="#444444", linestyle=(0, (3, 2)), marker="D", markersize=4, label="the paper's end")


def learning_curves(histories: pd.DataFrame) -> Figure:
    """Show rewards and arms against training iterations, means with the paper's interval (Figures 2, 4 and 7).

    Dashed lines at the end are the paper's own values, of a system that its tables have.
    """
    figure, grid = new_figure(2, height=2.1, sharex=True)
    top, bottom = grid[:, 0]
    for name in present(histories):
        rewards = by_agent(histories, name, "rewards")
        x = np.arange(1, rewards.shape[1] + 1)
        curve(top, name, x, rewards)
        if name != "Random":
            curve(bottom, name, x, by_agent(histories, name, "arms"))
    (system,) = histories.system.unique()
    for axes, column in ((top, "rewards"), (bottom, "arms")):
        draw_paper(axes, system, present(histories), column, x[-1])
    top.set_ylabel("cumulative reward")
    bottom.set(ylabel="arms", xlabel="training iteration", yscale="log")
    legend_above(figure, top)
    return figure


def batches(histories: pd.DataFrame) -> Figure:
    """Show rewards and arms against batches of 200 samples (Figures 9 and 10), and the first batches of long runs.

    As in the paper an iteration of SPAQL counts as one batch, also if its episode ended early.  TRPO's rewards stand
    where its policy was when it earned them, before the update of their iteration.
    """
    names, at = present(histories), {}
    for name in names:
        sampled = histories[(histories.algorithm == name) & (histories.agent == 0)].steps.to_numpy()
        at[name] = before_update(sampled) / BATCH if name in TRPO else np.arange(1, len(sampled) + 1)
    long = max(x[-1] for x in at.values()) > 2 * FIRST
    figure, grid = new_figure(3 if long else 2, height=1.9)
    top, bottom = grid[0, 0], grid[-1, 0]
    for name in names:
        rewards, x = by_agent(histories, name, "rewards"), at[name]
        curve(top, name, x, rewards)
        if long:
            curve(grid[1, 0], name, x[x <= FIRST], rewards[:, x <= FIRST], agents=False)
        if name in LEARNERS:
            curve(bottom, name, x, by_agent(histories, name, "arms"))
    for axes in grid[:-1, 0]:
        axes.set_ylabel("cumulative reward")
    if long:
        name_panel(top, "all batches", "normal")
        name_panel(grid[1, 0], f"the first {FIRST}", "normal")
    bottom.set(ylabel="arms", yscale="log", xlabel="batches of 200 samples")
    legend_above(figure, top)
    return figure


def episodes(records: Mapping[str, Record]) -> Figure:
    """Show the most telling state variable and the action along a recorded episode, one row per policy.

    These are the paper's Figures 3, 5 and 8.  Dashed lines are the marks of the variable: where it should be, and where
    an episode ends.  An action out of a few is thin, with its mean over ten steps on it, since many switch often.
    """
    env = make_env(next(iter(records.values())).job.system)
    system, steps = system_of(env), episode_limit(env)
    if system is None:
        raise ValueError(f"only the states of registered systems have names, not those of {env}")
    place = system.telling[0]
    variable = system.state[place]
    figure, grid = new_figure(len(records), 2, height=1.3, sharex=True, sharey="col")
    for (left, right), (name, record) in zip(grid, records.items(), strict=True):
        style = STYLES[name]
        action = in_units(env, record.episode["actions"])
        left.plot(record.episode["states"][:, place], color=style.colour, linewidth=1.4)
        if isinstance(env.action_space, gym.spaces.Discrete):
            right.step(range(len(action)), action, color=style.colour, linewidth=0.5, alpha=0.45, where="post")
            action = pd.Series(action).rolling(10, center=True, min_periods=1).mean()
        right.plot(action, color=style.colour, linewidth=1.4)
        name_panel(left, name)
        name_panel(right, f"return {number(record.episode['rewards'].sum(), 0)}", "normal")
    for axes in grid[:, 0]:
        lines = marked(variable, *axes.get_ylim())
        axes.hlines(lines, 0, steps, color="#666666", linestyle="--", linewidth=0.9, zorder=1)
        if variable.period:
            tick_turns(axes, variable.period)
    label_column(grid[:, 0], axis_label(variable))
    label_column(grid[:, 1], axis_label(system.actions[0]))
    for axes in grid[-1]:
        axes.set_xlabel("time step t")
    return figure


def fresh_profile(records: Iterable[Record]) -> Figure:
    """Show which share of the fresh episodes reaches a return, one line per algorithm: the higher the better.

    A line ends, with a point, at the best episode.
    """
    records = list(records)
    figure, grid = new_figure(height=2.4)
    axes = grid[0, 0]
    frame = pd.DataFrame([{"algorithm": record.job.algorithm} for record in records])
    earned = {
        name: np.concatenate([record.rewards for record in records if record.job.algorithm == name])
        for name in present(frame)
    }
    least = min(rewards.min() for rewards in earned.values())
    for name, rewards in earned.items():
        style, levels = STYLES[name], np.linspace(least, rewards.max(), 400)
        shares = performance_profile(rewards, levels)
        sns.lineplot(x=levels, y=shares, color=style.colour, linestyle=style.line, label=name, legend=False, ax=axes)
        axes.plot(levels[-1], shares[-1], color=style.colour, marker="o", markersize=4, clip_on=False)
    axes.set(xlabel="return of an episode", ylabel="share that reaches it", ylim=(0, 1.02))
    legend_above(figure, axes)
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


def marked(variable: Variable, low: float, high: float) -> np.ndarray:
    """Return where a picture from `low` to `high` marks a variable: on every turn again, if it turns round."""
    marks = np.array(variable.marks)
    if not variable.period:
        return marks
    turns = np.arange(np.floor(low / variable.period), np.ceil(high / variable.period) + 1) * variable.period
    everywhere = (marks[:, None] + turns).ravel()
    return everywhere[(low <= everywhere) & (everywhere <= high)]
