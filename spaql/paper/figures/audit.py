"""The figures of the audit: frames of `spaql.paper.audit` in, a matplotlib figure out."""

import functools
import re

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from spaql.paper.claims.load import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED
from spaql.paper.audit.comparison import COUNTED
from spaql.paper.audit.judge import EQUALITIES, ORDERS
from spaql.paper.figures.readings import COLOURS
from spaql.paper.figures.style import FONT, legend_above, name_panel, new_figure
from spaql.paper.labels import STYLES, number, present, system_name, variant
from spaql.paper.studies import LEARNERS, SWITCHES
from spaql.policies.interval import Interval
from spaql.systems import title

# Every verdict has a shape and a colour; the colours stay apart in grey.
MARKS = {
    HOLDS: ("o", "#00664b"),
    DIFFERS: ("X", "#d55e00"),
    UNDECIDED: ("D", "#5a6168"),
    NOT_JUDGED: ("_", "#8c8c8c"),
}

FAR = 3.0  # half-widths of an interval from which a colour does not change

HYPOTHESES = {  # torque, starts: colour, marker
    ("two-way", "independent"): ("#0072b2", "o"),
    ("two-way", "shared"): ("#56b4e9", "s"),
    ("one-way", "independent"): ("#d55e00", "^"),
    ("one-way", "shared"): ("#b8860b", "D"),
}


def forest(frame: pd.DataFrame) -> Figure:
    """Show the orders and equalities of the paper's tables: the place of a mark decides its verdict.

    Above are orders, as shares of the difference that the paper's tables give: what is right of zero holds.  Below are
    equalities, in units of the margin: what is inside holds, and what differs leaves out zero.  Filled marks are the
    text's experiment, hollow ones the reading that fits best where it is another; both have 95 % intervals.
    """
    known = frame[np.isfinite(frame.paper_half) & np.isfinite(frame.ours)]
    orders, equal = known[known.kind.isin(ORDERS)], known[known.kind.isin(EQUALITIES)]
    figure, grid = new_figure(
        2, height=0.12 * (len(orders) + len(equal)) + 0.8,
        gridspec_kw={"height_ratios": [max(1, len(orders)), max(1, len(equal))]},
    )  # fmt: skip
    panels = (
        (grid[0, 0], orders, "orders", ("ours", "low", "high"), orders.paper, "our difference, the paper's is 1"),
        (grid[1, 0], equal, "equalities", ("apart", "apart_low", "apart_high"), equal.margin,
         "distance, the margin is 1"),
    )  # fmt: skip
    for axes, rows, name, columns, unit, words in panels:
        for place, (at, row) in enumerate(rows.iterrows()):
            axes.axhline(place - 0.5, color="#bbbbbb", linewidth=0.8, zorder=0.5)
            for before, shift, filled in (("", -0.14, True), ("run_", 0.18, False)):
                if not np.isnan(row[f"{before}ours"]) and not (before and row.run_ours == row.ours):
                    shown = Interval(*(row[f"{before}{column}"] / unit[at] for column in columns))
                    draw_claim(axes, shown, place + shift, row[f"{before}verdict"], filled)
        axes.axvline(0, color="#555555", linewidth=1, zorder=1)
        axes.set_yticks(range(len(rows)), [claim_label(statement) for statement in rows.statement], fontsize=FONT)
        axes.set(ylim=(len(rows) - 0.5, -0.5), xlabel=words)
        axes.spines["left"].set_visible(False)
        axes.grid(visible=False, axis="y")
        name_panel(axes, name)
    grid[0, 0].axvline(1, color="#555555", linewidth=1, linestyle=":", zorder=1)  # the paper's
    grid[1, 0].axvspan(-1, 1, color="#e6e6e6", zorder=0)
    for verdict in (HOLDS, DIFFERS, UNDECIDED):
        marker, colour = MARKS[verdict]
        grid[0, 0].plot([], [], color=colour, marker=marker, linestyle="", label=verdict)
    grid[0, 0].plot([], [], color="#888888", marker="o", mfc="white", linestyle="", label="best reading")
    legend_above(figure, grid[0, 0])
    return figure


def draw_claim(axes: Axes, shown: Interval, place: float, verdict: str, filled: bool) -> None:
    """Draw a verdict's mark and interval at a height."""
    marker, colour = MARKS[verdict]
    bars = [[shown.mean - shown.low], [shown.high - shown.mean]]
    axes.errorbar(shown.mean, place, xerr=bars, color=colour, marker=marker, ms=6, mfc=colour if filled else "white",
                  capsize=2, linestyle="", zorder=3)  # fmt: skip


def claim_label(statement: str) -> str:
    """Return a claim's statement as a label in few words."""
    short = {" at the end of training": "", " is better than ": " above ", "is no better than": "not above",
             "SPAQL and SPAQL-TS need fewer arms than AQL": "fewer arms than AQL", " on ": ", "}  # fmt: skip
    return functools.reduce(lambda text, pair: text.replace(*pair), short.items(), re.sub(r" \(.*\)", "", statement))


def bias(frame: pd.DataFrame) -> Figure:
    """Show what is reported and what the same policy earns afresh, one row per algorithm, system and N."""
    families = frame.system.map(system_name)
    names = list(dict.fromkeys(families))
    counts = [int((families == name).sum()) for name in names]
    figure, grid = new_figure(
        len(names), height=0.25 * len(frame) / len(names) + 0.8, gridspec_kw={"height_ratios": counts}
    )
    for axes, name in zip(grid[:, 0], names, strict=True):
        rows = frame[families == name].reset_index(drop=True)
        for place, row in rows.iterrows():
            colour = STYLES[row.algorithm].colour
            above, below = place - 0.16, place + 0.16  # so that the intervals do not lie on one line
            axes.plot([row.reported, row.fresh], [above, below], color=colour, linewidth=0.8, zorder=2)
            for column, face, y in (("reported", "white", above), ("fresh", colour, below)):
                bars = [[row[column] - row[f"{column}_low"]], [row[f"{column}_high"] - row[column]]]
                axes.errorbar(row[column], y, xerr=bars, color=colour, marker=STYLES[row.algorithm].marker, ms=6,
                              mfc=face, capsize=2, zorder=3)  # fmt: skip
        kinds = [", ".join(filter(None, (row.algorithm, variant(row.system)))) for row in rows.itertuples()]
        labels = [f"{kind}, N = {count}" for kind, count in zip(kinds, rows.N, strict=True)]
        axes.set_yticks(range(len(rows)), labels)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set(ylim=(len(rows) - 0.5, -0.5))
        axes.grid(visible=False, axis="y")
        name_panel(axes, name)
    grid[-1, 0].set_xlabel("cumulative reward")
    for face, label in (("white", "reported: best mean so far"), ("#555555", "the same policy, fresh episodes")):
        grid[0, 0].plot([], [], color="#555555", marker="o", mfc=face, linestyle="", label=label)
    legend_above(figure, grid[0, 0])
    return figure


def ablation(frame: pd.DataFrame, quantity: str = "rewards") -> Figure:
    """Show what each rule of the released program changes: a heatmap of differences from the text's rules.

    Every cell has the difference with its 95 % interval, and its colour says how far it is from zero in half-widths of
    that interval, so that beyond one the interval does not hold zero.  What is significant after Holm's correction is
    bold.  A rule that an algorithm does not use leaves its cell empty.
    """
    rows = frame[frame.quantity == quantity]
    half = (rows.high - rows.low) / 2
    rows = rows.assign(distance=(rows.difference / half.where(half > 0)).fillna(0.0))
    systems, rules = list(dict.fromkeys(rows.system)), [rule for rule in SWITCHES if rule in set(rows.rule)]
    figure, grid = new_figure(1, len(systems), height=0.5 * len(rules) + 0.9, sharey=True)
    for axes, system in zip(grid[0], systems, strict=True):
        here = rows[rows.system == system]
        here = here.assign(text=in_cells(here))
        learners = [name for name in LEARNERS if name in set(here.algorithm)]
        distance, text, p = (
            here.pivot(index="rule", columns="algorithm", values=name).reindex(index=rules, columns=learners)
            for name in ("distance", "text", "p_holm")
        )
        sns.heatmap(distance, annot=text.fillna(""), fmt="", cmap=COLOURS, vmin=-FAR, vmax=FAR, cbar=False, ax=axes,
                    linewidths=1, linecolor="white", annot_kws={"fontsize": 8.5, "color": "black"})  # fmt: skip
        for label, significant in zip(axes.texts, (p < 0.05).to_numpy()[text.notna().to_numpy()], strict=True):
            label.set_fontweight("bold" if significant else "normal")
        axes.set(xlabel="", ylabel="")
        axes.set_yticklabels(
            ["all rules" if rule == "released" else rule.replace("_", " ") for rule in rules], rotation=0
        )
        axes.tick_params(length=0)
        axes.grid(visible=False)
        name_panel(axes, title(system))
    scale = figure.colorbar(grid[0, 0].collections[0], ax=grid[0].tolist(), orientation="horizontal", shrink=0.6,
                            aspect=40, pad=0.02, extend="both")  # fmt: skip
    scale.set_label(f"change of {quantity}, in half-widths of its 95 % interval", fontsize=9)
    scale.ax.tick_params(labelsize=8.5)
    return figure


def in_cells(rows: pd.DataFrame) -> list[str]:
    """Return differences with their intervals below them, on two lines where they are long, as text."""
    shown = functools.partial(number, digits=0 if rows.difference.abs().max() >= 20 else 1)
    texts = []
    for row in rows.itertuples():
        low, high = shown(row.low), shown(row.high)
        between = "\n" if len(low + high) > 7 else " "
        texts.append("none" if row.same else f"{shown(row.difference)}\n[{low},{between}{high}]")
    return texts


def samples_reached(frame: pd.DataFrame) -> Figure:
    """Show how many agents have reached a reward after how many samples, without the rollouts and with them."""
    reached = frame[np.isfinite(frame.samples)]
    systems = list(dict.fromkeys(frame.system))
    figure, grid = new_figure(len(systems), 2, height=2.0, sharey=True)
    for row, system in zip(grid, systems, strict=True):
        here = reached[reached.system == system]
        for axes, counted, name in zip(row, COUNTED, ("of training alone", "with rollouts"), strict=True):
            for algorithm in present(reached) or present(frame):
                mine, style = here[(here.algorithm == algorithm) & (here.counted == counted)], STYLES[algorithm]
                sns.ecdfplot(mine, x="samples", stat="count", ax=axes, color=style.colour, linestyle=style.line)
                axes.plot([], [], color=style.colour, linestyle=style.line, label=algorithm)
            ends = (here.samples.min() / 1.5, here.samples.max() * 1.5) if len(here) else (1e3, 1e6)
            axes.set(xscale="log", xlim=ends, xlabel=f"samples {name}", ylabel="")
        threshold = f"{frame[frame.system == system].threshold.iloc[0]:g}".replace("-", "−")
        name_panel(row[0], f"{title(system)}, {threshold}")
        row[0].set_ylabel("agents")
    legend_above(figure, grid[0, 0])
    return figure


def random_hypotheses(frame: pd.DataFrame, paper: tuple[float, float]) -> Figure:
    """Show the mean and the half-interval of Random's row under each hypothesis, beside the paper's."""
    figure, grid = new_figure(1, height=2.5)
    axes = grid[0, 0]
    for (torque, starts), cell in frame.groupby(["torque", "starts"], sort=False):
        colour, marker = HYPOTHESES[torque, starts]
        axes.scatter(cell["mean"], cell.half, s=9, alpha=0.45, color=colour, marker=marker, linewidth=0,
                     label=f"{torque}, {starts} starts", rasterized=True)  # fmt: skip
    axes.plot(*paper, marker="*", ms=16, color="black", linestyle="", label="the paper's row", zorder=5)
    axes.set(xlabel="mean reward of 20 agents", ylabel="half-interval", ylim=(0, None))
    legend_above(figure, axes)
    for handle in figure.legends[0].legend_handles:
        if isinstance(handle, PathCollection):
            handle.set_sizes([36])
            handle.set_alpha(1)
    return figure
