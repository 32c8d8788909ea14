"""Small trees that earn as much as a policy: imitation, then a local search by rollouts, within a time budget.

The search begins with the smallest imitation that keeps the return (see `spaql.policies.imitate`).  Leaf by leaf, the
question is dropped that costs the least return, and what is left is improved by small changes that rollouts approve.
Three sets of first states are kept apart: the search sees the first, the second chooses among the sizes, and the third
is only reported.
"""

import logging
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer, check_number, check_seed
from spaql.interrupts import deferred_interrupts
from spaql.policies.imitate import asked_by, grow, imitations, setting_of, standard_actions, without
from spaql.policies.interval import Interval, paper_interval
from spaql.policies.play import Episodes, first_states, run_policy
from spaql.policies.tree import LEAF, Tree, counted, turned
from spaql.progress import progress
from spaql.systems import compiled_world

SIZES = (8, 16, 24, 48, 96)  # leaves of the imitations that the search begins with
WELL = 24  # leaves up to which every size is searched
ROUNDS = 5  # of each imitation
SEARCHED = 0.7  # the share of the time for the search; the rest is for choosing and reporting
PLAYS, CHOICES = 1000, 30  # that the two must have room for: of slow systems fewer episodes decide

log = logging.getLogger(__name__)


class Size(NamedTuple):
    """A policy with its size and mean return, and the return's interval."""

    leaves: int | None  # None of a policy that is no tree
    mean: float
    low: float
    high: float
    tree: Any

    def __repr__(self) -> str:
        size = "the policy" if self.leaves is None else counted(self.leaves)
        return f"{size}: {Interval(self.mean, self.low, self.high)}"


class Simplified(NamedTuple):
    """What the search found, with returns on fresh episodes; those of the curve chose among the sizes."""

    smallest: Size  # the smallest tree that reaches the target; the best if none does
    best: Size  # the tree that earns most
    full: Size  # the policy itself
    target: float  # the mean return that was to be kept
    curve: list[Size]  # the trees that no smaller one beat in the search, and last the policy itself

    def __repr__(self) -> str:
        return (
            f"smallest {self.smallest}\nbest {self.best}\nfull {self.full}\non fresh episodes; target {self.target:.2f}"
        )


def simplify(
    policy: Any,
    target: float | None = None,
    leaves: int | None = None,
    *,
    env: str | gym.Env | None = None,
    seconds: float = 60.0,
    episodes: int = 100,
    proposals: int = 200,
    fresh: int = 1000,
    seed: int | np.random.SeedSequence = 0,
    horizon: int | None = None,
    progress_bar: bool = True,
) -> Simplified:
    """Return the smallest tree found that keeps the return of a policy, and the best one.

    Ctrl-C ends the search, and so does the end of its time; the best of what it has found by then is returned.

    Parameters
    ----------
    policy
        A policy or a tree; whatever has Stable-Baselines3's `predict`.
    target
        The mean return to keep; the policy's own if not given.
    leaves
        Size of the imitation that the search begins with; the smallest that keeps the return if not given.
    env, horizon
        The system, and H, the greatest length of an episode; those of the policy if not given.
    seconds
        The time it may take, without compiling.  Of slow episodes fewer decide.  A search that ends before its time
        finds the same on every machine.
    episodes, proposals
        Rollouts that decide on each step of the search, and changes tried at each size; 0 leaves imitations as they
        are.
    fresh
        Episodes that choose among the sizes, and other episodes for the report.
    seed
        Of the first states and the proposals.

    Examples
    --------
    >>> found = policy.simplify(target=195)
    >>> print(found)
    >>> print(export_text(found.smallest.tree))
    """
    env, horizon = setting_of(policy, env, horizon)
    seconds = check_number("seconds", seconds, above=0.0)
    fresh, episodes = check_integer("fresh", fresh, at_least=2), check_integer("episodes", episodes)
    leaves = None if leaves is None else check_integer("leaves", leaves, at_least=2)
    proposals = check_integer("proposals", proposals, at_least=0)
    streams = [np.random.default_rng(stream) for stream in check_seed(seed).spawn(5)]
    search = Search(policy, env, streams[3], horizon)
    full = policy.tree() if hasattr(policy, "cell_tree") else policy  # the exact tree, if there is one
    episodes, fresh = search.plan(seconds, episodes, fresh, streams[4])
    search.starts, choosing, reporting = map(search.draw, streams[:3], (episodes, fresh, fresh))
    try:
        with (
            deferred_interrupts() as search.between,
            progress(round(seconds), f"simplify, at most {seconds:g} s", unit="s", shown=progress_bar) as search.bar,
        ):
            search.run(target, leaves, proposals)
    except OutOfTime:
        pass
    except KeyboardInterrupt:
        log.warning("interrupted: the best of the %d sizes so far is returned", len(search.found))

    def sized(candidate: Any, first: np.ndarray) -> Size:
        mean, low, high = map(float, paper_interval(search.play(candidate, first).rewards))
        return Size(candidate.leaves if isinstance(candidate, Tree) else None, mean, low, high, candidate)

    curve, highest = [], -np.inf
    for _, (score, tree) in sorted(search.found.items()):
        if score > highest:
            highest = score
            curve.append(sized(tree, choosing))
    curve.append(sized(full, choosing))
    target = curve[-1].mean if target is None else float(target)
    trees = [size for size in curve if size.leaves is not None] or [sized(search.first, choosing)]
    best = max(trees, key=lambda size: size.mean)
    smallest = next((size for size in trees if size.mean >= target), best)
    best_fresh = sized(best.tree, reporting)
    smallest_fresh = best_fresh if smallest is best else sized(smallest.tree, reporting)
    return Simplified(smallest_fresh, best_fresh, sized(full, reporting), target, curve)


class OutOfTime(Exception):
    """The search has used its time."""


class Search:
    """A search for small trees that replace a policy, with its first states and random stream."""

    def __init__(self, policy: Any, env: gym.Env, rng: np.random.Generator, horizon: int | None):
        self.policy, self.env, self.rng, self.horizon = policy, env, rng, horizon
        self.variables = asked_by(policy, env)
        self.asked = [i for i, name in enumerate(self.variables.asked) if name]
        self.found: dict[int, tuple[float, Tree]] = {}  # the best of each size, on the episodes of the search
        self.begun, self.end = time.monotonic(), np.inf
        self.starts = np.empty(0)
        self.between: Callable[[], None] = lambda: None  # raises Ctrl-C
        self.bar: Any = None

    def draw(self, rng: np.random.Generator, episodes: int) -> np.ndarray:
        return first_states(self.env, self.variables.space, rng, episodes)

    def play(self, policy: Any, starts: np.ndarray, record: bool = False) -> Episodes:
        return run_policy(policy, self.env, starts, self.rng, self.horizon, record=record)

    def plan(self, seconds: float, episodes: int, fresh: int, rng: np.random.Generator) -> tuple[int, int]:
        """Start the clock, and return how many episodes there is time for, as asked for or fewer."""
        seen = self.play(self.policy, self.draw(rng, 2), record=True).seen
        actions = standard_actions(self.policy, self.variables, seen)
        self.first = grow(self.variables, seen, actions, np.ones(len(seen)), SIZES[0])
        if compiled_world(self.env, self.variables.space) is not None:
            self.play(self.first, self.draw(rng, 2))  # the clock does not count compiling
            self.begun = time.monotonic()
        for count in (1, 10, 100):
            before = time.monotonic()
            self.play(self.first, self.draw(rng, count))
            if (each := (time.monotonic() - before) / count) * count > 0.1:
                break
        self.end = self.begun + SEARCHED * seconds
        room = int(SEARCHED * seconds / PLAYS / each), int((1 - SEARCHED) * seconds / CHOICES / each)
        planned = min(episodes, max(2, room[0])), min(fresh, max(2, room[1]))
        if planned != (episodes, fresh):
            log.warning("an episode takes %.2g s: %d decide in place of %d, and %d choose in place of %d; "
                        "give more `seconds` for more", each, planned[0], episodes, planned[1], fresh)  # fmt: skip
        return planned

    def check(self) -> None:
        """End the search if its time is up or the user pressed Ctrl-C."""
        self.between()
        now = time.monotonic()
        self.bar.update(max(0, int(now - self.begun) - self.bar.n))
        if now > self.end:
            raise OutOfTime

    def score(self, tree: Tree) -> float:
        """Return the mean return of a tree, and keep it if no other of its size has earned more."""
        self.check()
        mean = float(self.play(tree, self.starts).rewards.mean())
        if tree.leaves not in self.found or mean > self.found[tree.leaves][0]:
            self.found[tree.leaves] = mean, tree
        return mean

    def run(self, target: float | None, leaves: int | None, proposals: int) -> None:
        """Search: imitations, then improved trees of every size down to one leaf, then the best one improved."""
        goal = self.play(self.policy, self.starts).rewards.mean() if target is None else target
        given = ROUNDS, len(self.starts), self.rng, self.horizon, self.check
        imitated: list[tuple[float, Tree]] = []
        for size in SIZES if leaves is None else (leaves,):
            for tree, _, seen, _ in imitations(self.policy, self.env, size, *given):
                imitated.append((self.score(tree), tree))
                self.seen = seen
            if imitated[-1][0] >= goal:
                break
        self.spread = np.maximum(turned(self.variables.space, self.seen).std(axis=0), 1e-12)
        small = [scored for scored in imitated if scored[1].leaves <= max(WELL, leaves or 0)]
        score, tree = max(small, key=lambda scored: scored[0])
        while tree.leaves > 1:
            score, tree = self.improve(score, tree, proposals)
            candidates = smaller_trees(tree)
            scores = [self.score(candidate) for candidate in candidates]
            score, tree = max(scores), candidates[int(np.argmax(scores))]
        self.improve(*max(imitated, key=lambda scored: scored[0]), proposals)

    def improve(self, best: float, tree: Tree, proposals: int) -> tuple[float, Tree]:
        """Change one node at a time, and keep each change that raises the return."""
        for _ in range(proposals):
            proposal = self.change(tree)
            if (score := self.score(proposal)) > best:
                best, tree = score, proposal
        return best, tree

    def change(self, tree: Tree) -> Tree:
        """Return a tree with another threshold, another question or another action at one node."""
        rng = self.rng
        feature, threshold, action = tree.feature.copy(), tree.threshold.copy(), tree.action.copy()
        node = rng.integers(len(feature))
        if feature[node] == LEAF:
            if tree.variables.box is None:
                action[node] = rng.integers(len(tree.variables.choices))
            else:
                action[node] = np.clip(action[node] + 0.5 * rng.standard_normal(action.shape[1]), -1.0, 1.0)
        elif rng.random() < 0.2:
            feature[node] = self.asked[rng.integers(len(self.asked))]
            row = rng.integers(len(self.seen))
            threshold[node] = turned(tree.variables.space, self.seen[row : row + 1])[0, feature[node]]
        else:  # steps of all sizes
            step = self.spread[feature[node]] * 10.0 ** rng.uniform(-2, 0)
            threshold[node] += step * rng.standard_normal()
        return tree._replace(feature=feature, threshold=threshold, action=action)


def smaller_trees(tree: Tree) -> list[Tree]:
    """Return the trees with one question fewer, replaced by either of its branches."""
    inner = np.flatnonzero(tree.feature != LEAF)
    return [without(tree, int(node), int(child)) for node in inner for child in (tree.left[node], tree.right[node])]
