"""Smaller trees that earn the same: imitation of a policy on the states it visits, then a search by rollouts.

A tree that imitates the policy is grown on visited states.  Then, leaf by leaf, the question is dropped that costs the
least return, and what is left is improved by small changes that rollouts approve.  Three sets of first states are kept
apart: the search sees the first, the second chooses among the sizes, and the third is only reported.
"""

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer, check_seed
from spaql.interrupts import deferred_interrupts
from spaql.policies.interval import Interval, paper_interval
from spaql.policies.play import Episodes, first_states, run_tree
from spaql.policies.tree import LEAF, Tree, counted
from spaql.progress import progress
from spaql.systems import make_env

ROWS = 20_000  # visited states an imitation is grown on
LARGEST = 128  # leaves of an imitation, where their number is not given
WELL = 24  # leaves from which on every size is improved, where their number is not given

log = logging.getLogger(__name__)


class Size(NamedTuple):
    """A point of the trade-off between size and return."""

    leaves: int
    mean: float  # return on the episodes that choose among the sizes
    low: float
    high: float
    tree: Tree

    def __repr__(self) -> str:
        return f"{counted(self.leaves)}: {Interval(self.mean, self.low, self.high)}"


class Simplified(NamedTuple):
    """The smallest tree that keeps the return, and how it was found."""

    tree: Tree
    fresh: Interval  # its return on fresh episodes
    full: Tree
    full_fresh: Interval  # the full policy's on the same episodes
    target: float
    curve: list[Size]  # from the smallest tree to the full one

    def __repr__(self) -> str:
        parts = ((self.tree, self.fresh), (self.full, self.full_fresh))
        small, full = (f"{counted(tree.leaves)}: {fresh}" for tree, fresh in parts)
        if self.tree.leaves == self.full.leaves:
            return f"no smaller tree that was tried keeps the return (see `curve`); the full policy, {full}"
        return f"{small} on fresh episodes; the full policy, {full}"


def simplify(
    tree: Tree,
    env: str | gym.Env,
    target: float | None = None,
    leaves: int | None = None,
    episodes: int = 100,
    proposals: int = 200,
    rounds: int = 3,
    fresh: int = 1000,
    seed: int | np.random.SeedSequence = 0,
    horizon: int | None = None,
    progress_bar: bool = True,
) -> Simplified:
    """Return the smallest tree found that keeps the return of a tree.

    With the defaults it plays hundreds of thousands of episodes.  Any environment will do, but one that is not
    registered, and so not compiled, needs fewer `leaves`, `episodes`, `proposals` and `fresh`.  Ctrl-C ends the search,
    and the best of what it has found by then is returned.

    Parameters
    ----------
    tree
        The exact tree of a policy.
    env
        The system it is for.
    target
        The mean return to keep; the full policy's if not given.
    leaves
        Size of the imitation that the search begins with; the smallest that keeps the return if not given, at least 24
        and at most 128.
    episodes
        Rollouts that decide on each step of the search.
    proposals
        Changes tried at each size; 0 leaves imitations as they are, which gives a rough curve in seconds.
    rounds
        How often the imitation is grown again on the states that it itself comes to, as the policy would act there.
    fresh
        Episodes that choose among the sizes, and other episodes for the report.
    seed
        Of the three sets of first states, and of the proposals.
    horizon
        H, the greatest length of an episode; the environment's own limit if not given.
    progress_bar
        Show how far it is, on standard error, if it takes more than some seconds.

    Returns
    -------
    simplified
        The smallest tree whose mean return reaches the target, or the full one if none does, with the returns of both
        on fresh episodes and the trade-off curve.

    Examples
    --------
    >>> found = policy.simplify(target=195)
    >>> print(found)
    >>> print(export_text(found.tree))
    >>> for size in policy.simplify(proposals=0).curve:
    ...     print(size)  # what each size earns, roughly
    """
    env = make_env(env)
    fresh = check_integer("fresh", fresh, at_least=2)
    leaves = None if leaves is None else check_integer("leaves", leaves, at_least=2)
    episodes, rounds = check_integer("episodes", episodes), check_integer("rounds", rounds, at_least=0)
    proposals = check_integer("proposals", proposals, at_least=0)
    streams = [np.random.default_rng(stream) for stream in check_seed(seed).spawn(4)]
    starts, choosing, reporting = (
        first_states(env, tree.variables.space, rng, count)
        for rng, count in zip(streams[:3], (episodes, fresh, fresh), strict=True)
    )
    found: list[Tree] = []
    try:
        with deferred_interrupts() as check_interrupts:
            search = Search(tree, env, starts, streams[3], horizon, check_interrupts)
            imitations, goal = search.imitate(leaves or min(LARGEST, tree.leaves), rounds), None
            if leaves is None:
                goal = search.score(tree) if target is None else float(target)
                imitations = imitations[: search.enough(imitations, goal)]
            with progress(len(imitations), "simplify", unit="leaf", shown=progress_bar, delay=3.0) as bar:
                for smaller in search.shrink(imitations, proposals, goal):
                    found.append(smaller)
                    bar.update(len(imitations) + 1 - smaller.leaves - bar.n)
    except KeyboardInterrupt:
        log.warning("interrupted: the best of the %d sizes so far is returned", len(found))

    def returns(candidate: Tree, first: np.ndarray) -> Interval:
        return Interval(
            *map(float, paper_interval(run_tree(candidate, env, first, streams[3], horizon=horizon).rewards))
        )

    curve = [Size(small.leaves, *returns(small, choosing), small) for small in found[::-1]]
    curve.append(Size(tree.leaves, *returns(tree, choosing), tree))
    target = curve[-1].mean if target is None else float(target)
    chosen = next((size.tree for size in curve if size.mean >= target), tree)
    return Simplified(chosen, returns(chosen, reporting), tree, returns(tree, reporting), target, curve)


class Search:
    """The search for small trees in place of a large one, with the first states and the random stream it uses."""

    def __init__(
        self,
        tree: Tree,
        env: gym.Env,
        starts: np.ndarray,
        rng: np.random.Generator,
        horizon: int | None,
        between: Callable[[], None] = lambda: None,
    ):
        self.tree, self.env, self.starts, self.rng, self.horizon = tree, env, starts, rng, horizon
        self.between = between  # called between any two plays
        self.seen = self.play(tree, record=True).seen
        self.spread = np.maximum(tree.turned(self.seen).std(axis=0), 1e-12)
        self.asked = [i for i, name in enumerate(tree.variables.asked) if name]

    def play(self, tree: Tree, record: bool = False) -> Episodes:
        self.between()
        return run_tree(tree, self.env, self.starts, self.rng, record=record, horizon=self.horizon)

    def score(self, tree: Tree) -> float:
        return float(self.play(tree).rewards.mean())

    def enough(self, imitations: list[Tree], goal: float) -> int:
        """Return how many leaves an imitation needs that reaches the goal; if none does, those of the best one."""
        sizes = sorted({min(len(imitations), round(WELL * 2 ** (i / 2))) for i in range(8)})
        scores = {size: self.score(imitations[size - 1]) for size in sizes}
        return next((size for size in sizes if scores[size] >= goal), max(sizes, key=lambda size: scores[size]))

    def shrink(self, imitations: list[Tree], proposals: int, goal: float | None) -> Iterator[Tree]:
        """Yield a tree of each size, from the largest imitation to one leaf.

        With a goal, large trees that reach it are not improved: that takes long, and there are smaller ones.
        """
        tree = self.improve(imitations[-1], proposals)
        yield tree
        while tree.leaves > 1:
            size = tree.leaves - 1
            candidates = [t for t in imitations if t.leaves == size] + list(smaller_trees(tree))
            scores = [self.score(candidate) for candidate in candidates]
            tree = candidates[int(np.argmax(scores))]
            if goal is None or size <= WELL or max(scores) < goal:
                tree = self.improve(tree, proposals)
            yield tree

    def imitate(self, leaves: int, rounds: int) -> list[Tree]:
        """Return trees of all sizes up to `leaves` that act as the policy does where it, and they, come."""
        for _ in range(rounds):
            largest = grow(self.tree, self.sample(), leaves)[-1]
            self.seen = np.concatenate((self.seen, self.play(largest, record=True).seen))
        return grow(self.tree, self.sample(), leaves)

    def sample(self) -> np.ndarray:
        """Return some of the states seen."""
        if len(self.seen) <= ROWS:
            return self.seen
        return self.seen[self.rng.choice(len(self.seen), ROWS, replace=False)]

    def improve(self, tree: Tree, proposals: int) -> Tree:
        """Return what changes of one node at a time make of a tree, each kept if the return rises."""
        best = self.score(tree)
        for _ in range(proposals):
            proposal = self.change(tree)
            score = self.score(proposal)
            if score > best:
                tree, best = proposal, score
        return tree

    def change(self, tree: Tree) -> Tree:
        """Return a tree with another threshold, another question or another action at one node."""
        rng = self.rng
        feature, threshold, low = tree.feature.copy(), tree.threshold.copy(), tree.low.copy()
        width = tree.high - tree.low
        node = rng.integers(len(feature))
        if feature[node] == LEAF:
            if tree.variables.box is None:
                low[node] = rng.integers(len(tree.variables.choices))
            else:
                low[node] = np.clip(low[node] + 0.5 * rng.standard_normal(low.shape[1]), -1.0, 1.0)
        elif rng.random() < 0.2:
            feature[node] = self.asked[rng.integers(len(self.asked))]
            row = rng.integers(len(self.seen))
            threshold[node] = tree.turned(self.seen[row : row + 1])[0, feature[node]]
        else:  # steps of all sizes
            step = self.spread[feature[node]] * 10.0 ** rng.uniform(-2, 0)
            threshold[node] += step * rng.standard_normal()
        return tree._replace(feature=feature, threshold=threshold, low=low, high=low + width)


def random_search(like: Tree, env: str | gym.Env, leaves: int, trees: int, episodes: int = 100, seed: int = 0) -> Tree:
    """Return the best of many random trees: what a search without any policy finds, to compare with.

    Parameters
    ----------
    like
        A tree of the system, for its variables; it is played once, to know where states are.
    env
        The system.
    leaves, trees
        Their size, and how many to try.
    episodes
        Rollouts that score each.
    seed
        Of everything.
    """
    env, rng = make_env(env), np.random.default_rng(seed)
    search = Search(like, env, first_states(env, like.variables.space, rng, episodes), rng, None)
    best, highest = like, -np.inf
    for _ in range(trees):
        tree = grow(like, search.seen[:1], 1)[0]
        while tree.leaves < leaves:
            tree = fork(tree, search)
        score = search.score(tree)
        if score > highest:
            best, highest = tree, score
    return best


def fork(tree: Tree, search: Search) -> Tree:
    """Return a tree in which a random leaf has become a random question with two random actions."""
    rng, variables = search.rng, tree.variables
    leaf = rng.choice(np.flatnonzero(tree.feature == LEAF))
    count, feature = len(tree.feature), search.asked[rng.integers(len(search.asked))]
    grown = {name: np.concatenate((getattr(tree, name), [LEAF, LEAF])) for name in ("feature", "left", "right")}
    grown["feature"][leaf], grown["left"][leaf], grown["right"][leaf] = feature, count, count + 1
    threshold = np.concatenate((tree.threshold, [0.0, 0.0]))
    threshold[leaf] = search.spread[feature] * rng.standard_normal()
    if variables.box is None:
        low = rng.integers(len(variables.choices), size=(2, 1)).astype(float)
    else:
        low = rng.uniform(-1.0, 1.0, size=(2, tree.low.shape[1]))
    low = np.concatenate((tree.low, low))
    high = low + 1.0 if variables.box is None else low
    return Tree(grown["feature"], threshold, grown["left"], grown["right"], low, high, variables)


def smaller_trees(tree: Tree) -> list[Tree]:
    """Return the trees in which one question is not asked: one of its answers is taken for granted."""
    inner = np.flatnonzero(tree.feature != LEAF)
    return [without(tree, int(node), int(child)) for node in inner for child in (tree.left[node], tree.right[node])]


def without(tree: Tree, node: int, child: int) -> Tree:
    """Return the tree with a node's child in its place."""
    order, stack = [], [0]
    while stack:
        here = stack.pop()
        here = child if here == node else here
        order.append(here)
        if tree.feature[here] != LEAF:
            stack += [tree.right[here], tree.left[here]]
    place = np.full(len(tree.feature) + 1, LEAF)  # the last one for LEAF itself
    place[order] = np.arange(len(order))
    place[node] = place[child]
    arrays = (array[order] for array in (tree.feature, tree.threshold, tree.left, tree.right, tree.low, tree.high))
    feature, threshold, left, right, low, high = arrays
    return Tree(feature, threshold, place[left], place[right], low, high, tree.variables)


class Split(NamedTuple):
    """The best question for some rows: what it gains, and where it is."""

    gain: float
    feature: int
    threshold: float


def grow(tree: Tree, seen: np.ndarray, leaves: int, actions: np.ndarray | None = None) -> list[Tree]:
    """Return trees of growing size, each grown from the last where that makes the squared error least.

    The errors are those in predicting the actions of `tree`, or those given, in the standard space, on the rows of
    `seen`; with a column for each discrete action that is Gini's impurity.  The list ends before `leaves` leaves if
    nothing is left to gain.
    """
    actions = tree.low[tree.apply(seen)] if actions is None else actions
    seen = tree.turned(seen)
    discrete = tree.variables.box is None
    labels = (actions == np.arange(len(tree.variables.choices))).astype(float) if discrete else actions
    rows = [np.arange(len(seen))]
    splits = [best_split(seen, labels)]
    feature, threshold, left, right = [LEAF], [0.0], [LEAF], [LEAF]

    def made() -> Tree:
        means = np.array([labels[row].mean(axis=0) for row in rows])
        low = means.argmax(axis=1)[:, None].astype(float) if discrete else means
        columns = [np.array(column) for column in (feature, threshold, left, right)]
        high = low + 1.0 if discrete else low
        return Tree(columns[0], columns[1], columns[2], columns[3], low, high, tree.variables)

    trees = [made()]
    while len(trees) < leaves:
        node = max(range(len(splits)), key=lambda n: splits[n].gain)
        if splits[node].gain <= 0.0:
            break
        _, feature[node], threshold[node] = splits[node]
        splits[node] = Split(0.0, LEAF, 0.0)
        below = seen[rows[node], feature[node]] < threshold[node]
        left[node], right[node] = len(rows), len(rows) + 1
        for row in (rows[node][below], rows[node][~below]):
            rows.append(row)
            splits.append(best_split(seen[row], labels[row]))
            feature.append(LEAF)
            threshold.append(0.0)
            left.append(LEAF)
            right.append(LEAF)
        trees.append(made())
    return trees


def best_split(seen: np.ndarray, labels: np.ndarray) -> Split:
    """Return the question that reduces the squared error of the labels' means most; no gain if there is none."""
    best = Split(0.0, LEAF, 0.0)
    count = np.arange(1, len(seen))[:, None]
    total = labels.sum(axis=0)
    for feature in range(seen.shape[1]):
        order = np.argsort(seen[:, feature], kind="stable")
        values = seen[order, feature]
        below = np.cumsum(labels[order], axis=0)[:-1]
        gain = (below**2 / count + (total - below) ** 2 / (len(seen) - count) - total**2 / len(seen)).sum(axis=1)
        gain[values[1:] == values[:-1]] = 0.0  # no question tells them apart
        if gain.size and gain.max() > best.gain + 1e-9:
            at = int(gain.argmax())
            middle = (values[at] + values[at + 1]) / 2
            best = Split(float(gain[at]), feature, float(middle if middle > values[at] else values[at + 1]))
    return best
