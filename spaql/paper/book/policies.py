"""What the chapter on policies says beside its figures: sentences with the numbers of what they show.

As in `spaql.paper.book.chapters`, words that a number decides are chosen by that number.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spaql.paper.figures.policies import grid_points, observations_at, variables
from spaql.paper.tables.table import between, listed, number
from spaql.policies.interval import Interval
from spaql.policies.play import first_states, run_tree
from spaql.policies.policy import Policy
from spaql.policies.tree import Tree

NEAR, SLOW, LAST = math.radians(17), 2.4, 20  # when an episode of the pendulum ends upright, as in `share_settled`


def map_points(policy: Policy, x: str, y: str, points: int = 240) -> np.ndarray:
    """Return the observations at the points of a map that `figures.policies.policy_map` draws, row by row."""
    known = variables(policy)
    ends = [np.linspace(*known[name].ends, points + 1) for name in (x, y)]
    return observations_at(policy, x, y, *grid_points(*ends), {})


def states_seen(tree: Tree, policy: Policy, episodes: int, seed: int) -> np.ndarray:
    """Return what a tree sees in episodes of the system that a policy is for, one row per step."""
    rng = np.random.default_rng(seed)
    starts = first_states(policy.env, policy.variables.space, rng, episodes)
    return run_tree(tree, policy.env, starts, rng, record=True).seen


def differ(one: Tree, other: Tree, observations: np.ndarray) -> float:
    """Return the share of observations on which two trees act otherwise."""
    return float((one.value[one.apply(observations)] != other.value[other.apply(observations)]).mean())


def map_and_tree(policy: Policy, full: Tree, small: Tree, x: str, y: str, episodes: int, seed: int) -> str:
    """Say how far the map of a cart and pole's policy and its small tree differ, and what of it episodes see."""
    known, names = variables(policy), policy.variables.observed
    shown, seen = map_points(policy, x, y), states_seen(full, policy, episodes, seed)
    there, here = differ(full, small, shown), differ(full, small, seen)
    ranges, area = [], 1.0
    for name in (x, y):
        low, high = np.quantile(seen[:, names.index(name)], (0.025, 0.975))
        first, last = known[name].ends
        area *= (min(high, last) - max(low, first)) / (last - first)
        ranges.append(f"{known[name].symbol} is between {number(low, 2)} and {number(high, 2)} {known[name].unit}")
    tree = "[the tree above](#fig-cartpole-tree)"
    lead = f"this map and {tree} show two different policies" if there or here else f"this map and {tree} agree"
    return (
        f"{lead}. They push in opposite directions on {100 * there:.0f} % of the map, and in {100 * here:.0f} % of the "
        f"steps of {episodes:,} episodes of the full policy. Episodes see little of the map: in 95 % of the steps "
        f"{ranges[0]}, and in 95 % of them {ranges[1]}; a box of that size is {100 * area:.0f} % of the map."
        f"{sliced(full, shown, seen, names.index(x), known[x].symbol)}"
    )


def sliced(full: Tree, shown: np.ndarray, seen: np.ndarray, axis: int, symbol: str) -> str:
    """Say what a map, one slice, does not show: how often the push is right while the pole leans left."""
    left = [group[group[:, axis] < 0] for group in (shown, seen)]
    if not all(map(len, left)):
        return ""
    here, there = (100 * np.mean(full.value[full.apply(group)] == full.value.max()) for group in left)
    return (
        " And the map is one slice, for a cart at rest in the middle, while the full policy may also ask about the "
        f"cart: where {symbol} < 0 it pushes to the right on {here:.0f} % of the map, and in {there:.0f} % of the "
        "steps."
    )


def map_of_visits(policy: Policy, full: Tree, x: str, y: str, episodes: int, seed: int) -> str:
    """Say how large the cells of a map are where episodes go, and how often their best balls were visited."""
    shown, seen = map_points(policy, x, y), states_seen(full, policy, episodes, seed)
    names = policy.variables.observed
    cells = policy.find(shown)
    finest = cells.depth.max()
    if finest == cells.depth.min():
        return "all cells of this map have the same size."
    flat = np.tile(shown[0], (len(seen), 1))  # on the map's slice
    for name in (x, y):
        flat[:, names.index(name)] = seen[:, names.index(name)]
    area, steps = 100 * np.mean(cells.depth == finest), 100 * np.mean(policy.find(flat).depth == finest)
    visits = cells.drop_duplicates("cell").groupby("depth").visits.mean()
    lead = "the cells are small where episodes go" if steps > area else "the cells are not small where episodes go"
    return (
        f"{lead}. The smallest cells cover {area:.0f} % of this map, and {steps:.0f} % of the steps of episodes have "
        f"their angle and angular speed there. Their best balls have {number(visits.loc[finest], 0)} visits on "
        f"average, those of the largest cells {number(visits.iloc[0], 0)}: a ball is split once it has been visited "
        "often enough, and the new ones begin with its count."
    )


def borders(policy: Policy, x: str, y: str) -> str:
    """Say how much the action changes from a cell of a map to its neighbours."""
    points = 240
    frame = policy.find(map_points(policy, x, y, points))
    action, cell = (frame[name].to_numpy().reshape(points, points) for name in ("action", "cell"))
    pairs = []
    for values, cells in ((action, cell), (action.T, cell.T)):
        border = cells[:, 1:] != cells[:, :-1]
        pairs.append(np.stack((values[:, :-1][border], values[:, 1:][border])))
    one, other = np.concatenate(pairs, axis=1)
    if not one.size:
        return "the map is one cell."
    values = np.sort(action.ravel())
    ranks = 2 * np.arange(values.size) - values.size + 1
    anywhere = 2 * float(ranks @ values) / values.size**2  # the mean distance of two of them
    jump, turns, unit = np.abs(one - other).mean(), np.mean(one * other < 0), policy.variables.action_unit
    lead = "the map is a patchwork, not a smooth rule" if jump > anywhere / 2 else "neighbouring cells do much the same"
    return (
        f"{lead}. From one cell to the next the {policy.variables.action} changes by {number(jump, 1)} {unit} on "
        f"average; between two places of the map taken at random it would be {number(anywhere, 1)} {unit}. On "
        f"{100 * turns:.0f} % of the borders the {policy.variables.action} changes its direction."
    )


def path_ends(paths: Sequence[np.ndarray], starts: Sequence[ArrayLike]) -> str:
    """Say where episodes of the pendulum end; `spaql.policies.play.trajectories` makes the paths."""
    parts, upright = [], 0
    for path, (angle, _) in zip(paths, np.asarray(starts, float), strict=True):
        angles, slow = np.abs(np.arctan2(path[:, 1], path[:, 0])), np.abs(path[-LAST:, 2]).max() <= SLOW
        if slow and angles[-LAST:].max() <= NEAR:
            upright, words = upright + 1, "ends upright"
        else:
            hangs = slow and angles[-LAST:].min() >= math.pi - NEAR
            came = "passes through upright, but does not stay there" if angles.min() <= NEAR else "is never upright"
            words = f"{came}{', and hangs at the end' if hangs else ''}"
        parts.append(f"The one from θ = {number(angle, 1)} rad {words}.")
    verb = "ends" if upright == 1 else "end"
    return f"{upright} of the {len(paths)} episodes {verb} upright. {' '.join(parts)}"


def sizes(frame: pd.DataFrame, network: Interval) -> str:
    """Say which sizes of tree earn the most; `tables.sizes_frame` makes the frame."""
    parts, inside = [], []
    for name, rows in frame.groupby("algorithm", sort=False):
        searched, full = rows.iloc[:-1], rows.iloc[-1]
        best, largest = searched.loc[searched["return"].idxmax()], searched.iloc[-1]
        inside.append(best.low > max(largest.high, full.high) and best.leaves > searched.leaves.min())
        more = f", the largest of the search, with {largest.leaves}, {earned_by(largest)}"
        parts.append(
            f"Of the trees from {name} the best, with {leaves(best.leaves)}, earns {earned_by(best)}"
            f"{'' if best.leaves == largest.leaves else more}, and the full policy, with {full.leaves}, "
            f"{earned_by(full)}."
        )
    words = " ".join(parts)
    words = f"the best trees are neither the smallest nor the largest. {words}" if all(inside) else f"o{words[1:]}"
    return f"{words} TRPO's network earns {between(network, 0)}."


def solving_sizes(frame: pd.DataFrame, network: Interval, target: float) -> str:
    """Say how few leaves solve a task, and whether more earn more; `tables.sizes_frame` makes the frame."""
    few, full, gains = [], [], False
    for name, rows in frame.groupby("algorithm", sort=False):
        enough = rows.iloc[:-1][rows.iloc[:-1]["return"] >= target]
        if len(enough):
            least = enough.iloc[0]
            few.append(f"a tree from {name} with {leaves(least.leaves)} ({earned_by(least, 1)})")
            gains |= (rows[rows.leaves > least.leaves].low > least.high).any()
        full.append(f"{earned_by(rows.iloc[-1], 1)} ({name}, {leaves(rows.iloc[-1].leaves)})")
    lead = f"the task is solved by {listed(few)}. " if few else "no tree of the search solves the task. "
    if few:
        lead += "Some larger ones earn more. " if gains else "More leaves earn no more. "
    return f"{lead}The full policies earn {listed(full)}; TRPO's network earns {between(network)}."


def earned_by(row: pd.Series, digits: int = 0) -> str:
    """Return the return of a row of `tables.sizes_frame` with its interval, as text."""
    return between(Interval(row["return"], row.low, row.high), digits)


def leaves(count: int) -> str:
    """Return a number of leaves as text."""
    return "1 leaf" if count == 1 else f"{count} leaves"


def cells_over_time(stages: Sequence[tuple[int, Policy]]) -> str:
    """Say how many cells a policy has as its agent learns; `spaql.policies.policy.snapshots` makes the data."""
    counts = [(iterations, len(policy.cells().best)) for iterations, policy in stages]
    (first, cells), *others = counts
    told = listed([f"{cells:,} cells after {first:,} iterations", *(f"{n:,} after {i:,}" for i, n in others)])
    rates = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(counts)]
    slower = len(rates) > 1 and all(later < earlier for earlier, later in pairwise(rates))
    lead = "the partition grows fast at first and ever more slowly later: it has " if slower else "the partition has "
    return f"{lead}{told}. It is that of the best policy so far, which stays as it is until a better one is found."


def under_changes(frame: pd.DataFrame) -> str:
    """Say what policies earn where a change sets them furthest apart, and where the usual leader falls behind.

    `spaql.paper.audit.robustness` makes the frame.  Changes without a panel in the figure are left out.
    """
    names = {name: spoken(name) for name in dict.fromkeys(frame.policy)}
    means = frame.pivot(index=["change", "value"], columns="policy", values="mean")[list(names)]
    lows, highs = (frame.pivot(index=["change", "value"], columns="policy", values=end) for end in ("low", "high"))

    def ahead(case: tuple[str, float]) -> set[str]:
        """The best policy of a case, and those whose intervals reach its own."""
        best = means.loc[case].idxmax()
        return {name for name in names if highs.loc[case, name] >= lows.loc[case, best]}

    def earned(case: tuple[str, float]) -> str:
        row = means.loc[case].sort_values(ascending=False, kind="stable")
        verbs = ["earns ", *[""] * (len(row) - 1)]
        told = zip(row.items(), verbs, strict=True)
        return listed([f"{names[name]} {verb}{number(mean, 0)}" for (name, mean), verb in told])

    changes = [change for change, rows in frame.groupby("change", sort=False) if np.ptp(rows["mean"]) >= 1]
    usual, cases = ("noise", 0.0), []
    for change in changes:
        here = means.loc[change].drop(0.0 if change == "noise" else 1.0, errors="ignore")
        if len(here):
            cases.append((change, here.index[np.ptp(here, axis=1).argmax()]))
    if not cases:
        return "no change makes a difference to any of them."
    always = set.intersection(*(ahead(case) for case in cases))
    lead = "which of them stands a change best depends on the change"
    if always:
        verb = "earns" if len(always) == 1 else "earn"
        best = listed([names[name] for name in names if name in always])
        lead = f"where a change sets them furthest apart, {best} {verb} the most"
    parts = [f"On the usual system, {earned(usual)}." if usual in means.index else ""]
    parts += [f"{capital(in_case(*case))}, {earned(case)}." for case in cases]
    if usual in means.index and len(ahead(usual)) == 1:
        (leader,) = ahead(usual)
        behind = [case for case in means.index if case[0] in changes and leader not in ahead(case)]
        if behind:
            told = [f"{in_case(*case)}, where {earned(case)}" for case in behind]
            parts.append(f"{capital(names[leader])} falls behind {'; and '.join(told)}.")
    return f"{lead}. {' '.join(filter(None, parts))}"


def spoken(name: str) -> str:
    """Return what a policy of the comparison is called in a sentence: without its size."""
    short = name.partition(",")[0]
    return f"the {short}" if short == "small tree" else short


def capital(words: str) -> str:
    """Return words as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def in_case(change: str, value: float) -> str:
    """Return a case of a comparison in words."""
    return (
        f"with noise of standard deviation {value:g}" if change == "noise" else f"at {value:g} times the usual {change}"
    )
