"""Samples, counted as the paper does and in full, and who leads when (chapter 5)."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from spaql.paper.engine import outcomes
from spaql.paper.engine.algorithms import ALGORITHMS
from spaql.paper.engine.figures import curve, draw_paper_ends
from spaql.paper.engine.job import job_of
from spaql.paper.engine.statistics import (
    bootstrap_interval,
    bootstrap_weights,
    crossing,
    percentile_interval,
    spell,
    summarise,
)
from spaql.paper.engine.style import STYLES, between, in_order, legend_above, name_panel, new_figure, number, present
from spaql.policies.interval import Interval
from spaql.systems import title

FIRST = 300  # batches that have a panel of their own: they decide who leads at first
COUNTED = {"training": False, "all": True}  # ways to count samples: whether the rollouts that choose a policy count

# Rewards on the way to what the algorithms end with; from the last one of CartPole's on the task counts as solved.
LEVELS = {"Pendulum-v1": (-900, -700, -500, -200), "CartPole-v0": (100, 150, 190, 195)}
TOLD = {"Pendulum-v1": (-700,), "CartPole-v0": (195,)}  # those of the figure


def history_of(row: Mapping) -> dict[str, np.ndarray]:
    """Return the learning curve of an agent's row."""
    return {name: row[f"curve_{name}"] for name in ("rewards", "steps", "evaluation_steps")}


def samples_needed(agents: pd.DataFrame, levels: Mapping[str, Sequence[float]] = LEVELS) -> pd.DataFrame:
    """Return how many samples each agent needs to reach each level, counted both ways; infinite if it never does.

    Random, which learns nothing, is left out.
    """
    rows = []
    for row in agents[agents.algorithm != "Random"].to_dict("records"):
        history = history_of(row)
        for level, (counted, rollouts) in itertools.product(levels[row["system"]], COUNTED.items()):
            samples = outcomes.samples_behind(job_of(row), history, rollouts)[history["rewards"] >= level]
            rows.append(
                {name: row[name] for name in ("system", "algorithm", "agent")}
                | {"level": level, "counted": counted, "samples": samples[0] if samples.size else np.inf}
            )
    return pd.DataFrame(rows)


def half_of_agents(needed: pd.DataFrame) -> pd.DataFrame:
    """Return after how many samples half of the agents have reached a level, with its interval; infinite: half do not.

    `reached` is the share of agents that get there at all.
    """
    rows = []
    by = ["system", "level", "algorithm", "counted"]
    for key, samples in needed.sort_values("level", kind="stable").groupby(by, sort=False).samples:
        values = samples.to_numpy()
        drawn = np.random.default_rng(0).integers(len(values), size=(9999, len(values)))
        interval = percentile_interval(float(upper_median(values)), upper_median(values[drawn]))
        rows.append(
            dict(zip(by, key, strict=True)) | {"reached": np.isfinite(values).mean()} | spell("samples", interval)
        )
    return pd.DataFrame(rows)


def upper_median(values: np.ndarray) -> np.ndarray:
    """Return the upper median along the last axis: some agent's number, so that infinities do no harm."""
    return np.sort(values, axis=-1)[..., values.shape[-1] // 2]


def at_budget(agents: pd.DataFrame, budget: int = outcomes.BUDGET) -> pd.DataFrame:
    """Return the reward reported once an agent has spent a budget of samples, counted both ways."""
    rows = []
    for row in agents[agents.algorithm != "Random"].to_dict("records"):
        history = history_of(row)
        for counted, rollouts in COUNTED.items():
            count = np.sum(outcomes.samples_behind(job_of(row), history, rollouts) <= budget)
            if count:
                rows.append(
                    {"system": row["system"], "algorithm": row["algorithm"], "counted": counted}
                    | {"rewards": history["rewards"][count - 1], "iterations": count}
                )
    last, by = pd.DataFrame(rows), ["system", "algorithm", "counted"]
    found = summarise(last, by, rewards=bootstrap_interval)
    return in_order(found.join(last.groupby(by).iterations.median(), on=by))


def curves_of(agents: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the rewards of the agents of one algorithm, one row per agent, and at how many batches they are."""
    first = agents.iloc[0]
    return np.array(agents.curve_rewards.to_list()), outcomes.batches(job_of(first), history_of(first))


def crossings(agents: pd.DataFrame) -> pd.DataFrame:
    """Return who leads over the first 200 batches, and when TRPO catches up with SPAQL and SPAQL-TS.

    `lead` is the difference of the mean rewards over those batches; `first` the batch after which TRPO's mean curve
    first is not below; `batch` the one after which it stays so.
    """
    groups = dict(list(agents.groupby(["system", "algorithm"], sort=False)))
    rows = []
    for (system, baseline), other in groups.items():
        for algorithm in ("SPAQL", "SPAQL-TS") if ALGORITHMS[baseline].before else ():
            if (system, algorithm) not in groups:
                continue
            group = groups[system, algorithm]
            one, two = bootstrap_weights(len(group), len(other))
            lead = percentile_interval(
                group.early.mean() - other.early.mean(), one @ group.early.to_numpy() - two @ other.early.to_numpy()
            )
            row = {"system": system, "baseline": baseline, "algorithm": algorithm} | spell("lead", lead)
            for name, lasting in (("first", False), ("batch", True)):
                found = crossing(*curves_of(other), *curves_of(group), lasting=lasting)
                row |= spell(name, percentile_interval(*found))
            rows.append(row)
    return pd.DataFrame(rows, columns=None if rows else ["system", "baseline", "algorithm", "lead", "first", "batch"])


def text_of(row: Mapping, column: str, digits: int = 0) -> str:
    """Return a number of a frame with its interval as text; infinite is never."""
    interval = Interval(row[column], row[f"{column}_low"], row[f"{column}_high"])
    return between(interval, digits).replace("inf", "∞") if np.isfinite(interval.mean) else "never"


# ---------------------------------------------------------------------------------------------------------------------
# Figures


def batches(agents: pd.DataFrame) -> Figure:
    """Show rewards against batches of 200 samples of training (the paper's Figures 9 and 10), the first ones apart.

    As in the paper an iteration of SPAQL is one batch, also if its episode ended early.
    """
    (system,) = agents.system.unique()
    groups = {name: curves_of(agents[agents.algorithm == name]) for name in present(agents)}
    longest = max(at[-1] for _, at in groups.values())
    figure, grid = new_figure(1 + (longest > 2 * FIRST), height=2.2)
    for axes, last in zip(grid[:, 0], (longest, FIRST), strict=False):
        for name, (rewards, at) in groups.items():
            curve(axes, name, at[at <= last], rewards[:, at <= last], agents=False)
        axes.set_ylabel("cumulative reward")
        name_panel(axes, "all batches" if last == longest else f"the first {FIRST}", "normal")
    draw_paper_ends(grid[0, 0], system, groups, "rewards", longest)
    grid[-1, 0].set_xlabel("batches of 200 samples of training")
    legend_above(figure, grid[0, 0])
    return figure


def samples_reached(needed: pd.DataFrame) -> Figure:
    """Show how many samples each agent needs to reach a level: hollow by training alone, filled with the rollouts."""
    reached = needed[np.isfinite(needed.samples)]
    systems = list(dict.fromkeys(needed.system))
    figure, grid = new_figure(len(systems), height=1.7, sharex=True)
    names = present(reached) or present(needed)
    for axes, system in zip(grid[:, 0], systems, strict=True):
        for (place, name), filled in itertools.product(enumerate(names), (False, True)):
            if not filled and not ALGORITHMS[name].chooses:
                continue  # which would be drawn twice
            counted, style = "all" if filled else "training", STYLES[name]
            chosen = (reached.system == system) & (reached.algorithm == name) & (reached.counted == counted)
            mine = reached[chosen]
            axes.scatter(mine.samples, place + (mine.agent % 7 - 3) / 12, s=26, marker=style.marker, linewidth=1.1,
                         edgecolor=style.colour, facecolor=style.colour if filled else "white")  # fmt: skip
        axes.set(
            xscale="log" if len(reached) else "linear",
            yticks=range(len(names)),
            yticklabels=names,
            ylim=(len(names) - 0.5, -0.5),
        )
        level = number(needed[needed.system == system].level.iloc[0], 0)
        name_panel(axes, f"{title(system)}, {level}")
    grid[-1, 0].set_xlabel("samples")
    for filled, label in ((False, "training alone"), (True, "with the rollouts that choose the policy")):
        grid[0, 0].scatter([], [], s=26, edgecolor="#444444", facecolor="#444444" if filled else "white", label=label)
    legend_above(figure, grid[0, 0])
    return figure
