"""Small trees that earn as much as a policy: an imitation, made smaller and better by a local search with rollouts.

The search begins with a tree that imitates the policy (see `spaql.policies.imitate`).  Leaf by leaf, the question is
dropped that costs the least return, and what is left is improved by small changes that rollouts approve.  Three sets of
first states are kept apart: the search sees the first, the second chooses among the sizes, and the third is only
reported.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from spaql.checks import Seed, check_integer, check_number, check_seed
from spaql.interrupts import deferred_interrupts
from spaql.policies.imitate import imitations, merged, setting_of, without
from spaql.policies.interval import Interval, paper_interval, worst_mean
from spaql.policies.play import first_states, run_policy
from spaql.policies.tree import LEAF, Tree, counted, turned
from spaql.progress import progress
from spaql.spaces import Space
from spaql.systems import space_of

ROUNDS = 5  # of the imitation
FEWEST, SIZES = 30, 10  # episodes behind a return, and sizes that half the time must suffice to evaluate

log = logging.getLogger(__name__)


class Size(NamedTuple):
    """A policy with its size and mean return, and the return's interval."""

    leaves: int | None  # None of a policy that is no tree
    mean: float
    low: float
    high: float
    worst_5: float  # the mean of the worst twentieth
    worst: float
    tree: Any

    def __repr__(self) -> str:
        size = "the policy" if self.leaves is None else counted(self.leaves)
        mean = Interval(self.mean, self.low, self.high)
        return f"{size}: {mean}, worst 5 % {self.worst_5:.2f}, worst {self.worst:.2f}"


class Simplified(NamedTuple):
    """What the search found, with returns on fresh episodes; those of the curve chose among the sizes."""

    smallest: Size  # the smallest tree that reaches the target; the best if none does
    best: Size  # the tree that earns most
    full: Size  # the policy itself
    target: float  # the mean return that was to be kept
    episodes: int  # behind each return
    curve: list[Size]  # the trees that no smaller one beat in the search, and last the policy itself

    def __repr__(self) -> str:
        sizes = f"smallest {self.smallest}\nbest {self.best}\nfull {self.full}"
        return f"{sizes}\non {self.episodes} fresh episodes; target {self.target:.2f}"


def simplify(
    policy: Any,
    target: float | None = None,
    leaves: int = 24,
    *,
    env: str | gym.Env | None = None,
    seconds: float = 60.0,
    episodes: int = 100,
    proposals: int = 200,
    fresh: int = 1000,
    seed: Seed = 0,
    horizon: int | None = None,
    progress_bar: bool = True,
) -> Simplified:
    """Return the smallest tree found that keeps the return of a policy, and the best one: `smallest.tree`, `best.tree`.

    Ctrl-C or the time limit ends the search; it then returns the best that it has found.

    Parameters
    ----------
    policy
        A policy or a tree; whatever has Stable-Baselines3's `predict`.
    target
        The mean return to keep; the policy's own if not given.
    leaves
        The size of the imitation that the search begins with.
    env, horizon
        The system, and H, the greatest length of an episode; those of the policy if not given.
    seconds
        Time limit, without the first compilation.  It is refused if it does not allow 30 episodes for each return.  A
        search that ends before its time finds the same on every machine.
    episodes, proposals
        Rollouts that decide each step of the search (fewer if time is short), and changes tried at each size; with 0
        the search only drops questions.
    fresh
        Episodes that choose among the sizes, and as many others for the report; fewer if time is short.
    seed
        Seeds the first states and the proposals.

    Examples
    --------
    >>> found = policy.simplify(target=195)
    >>> print(export_text(found.smallest.tree))
    """
    env, horizon = setting_of(policy, env, horizon)
    seconds, leaves = check_number("seconds", seconds, above=0.0), check_integer("leaves", leaves, at_least=2)
    fresh, episodes = check_integer("fresh", fresh, at_least=2), check_integer("episodes", episodes)
    proposals = check_integer("proposals", proposals, at_least=0)
    streams = [np.random.default_rng(stream) for stream in check_seed(seed).spawn(4)]
    for tree, *_ in imitations(policy, env, 2, 1, 1, np.random.default_rng(0), horizon):
        seconds_each(tree, env, tree.variables.space, 1, horizon)  # all is compiled before the clock runs
    each = np.inf
    for count in (2, 14, 98):  # many at a time take less each; and each twice, as the machine may be busy
        begun = time.monotonic()
        each = min(each, *(seconds_each(policy, env, space_of(env), count, horizon) for _ in range(2)))
        if each * count > max(0.1, seconds / 200):
            break
    imitated: list[Tree] = []
    if seconds < (least := 2 * SIZES * FEWEST * each):
        raise ValueError(f"seconds must be at least {least:.1f} where an episode takes {each:.2g} s, not {seconds}")
    played = int(np.clip(seconds / (16 * each), 1, episodes))  # a round plays twice as many
    for tree, _, seen, _ in imitations(policy, env, leaves, ROUNDS, played, streams[3], horizon):
        imitated, asked = [*imitated, tree], turned(tree.variables.space, seen)
        if time.monotonic() - begun > seconds / 4:
            break
    # To drop all questions one by one takes some leaves² trees, for which there should be time.
    of_tree = seconds_each(tree, env, tree.variables.space, count, horizon)
    episodes = int(np.clip(seconds / (2 * of_tree * leaves**2), min(10, episodes), episodes))
    space, counts = tree.variables.space, (episodes, fresh, fresh)
    starts, choosing, reporting = (first_states(env, space, streams[i], count) for i, count in enumerate(counts))
    full = policy.tree() if hasattr(policy, "cell_tree") else policy  # the exact tree, if there is one
    search = Search(env, horizon, streams[3], starts, asked, begun + seconds, each, fresh)
    with progress(round(seconds), "simplify, at most", unit="s", shown=progress_bar) as search.bar:
        try:
            with deferred_interrupts() as search.check_interrupts:
                search.run(imitated, proposals)
        except (TimeoutError, KeyboardInterrupt):
            log.warning("the search has not ended: the best of the %d sizes so far is returned", len(search.found))
    if (count := search.affordable()) < fresh:
        log.warning("returns are of %d episodes, not %d: there is no time for more", count, fresh)

    def sized(candidate: Any, starts: np.ndarray) -> Size:
        leaves = candidate.leaves if isinstance(candidate, Tree) else None
        unmarked = leaves is not None and candidate.visits is None
        rewards, _, seen = run_policy(candidate, env, starts[:count], streams[3], horizon, record=unmarked)
        if unmarked:
            visits = np.bincount(candidate.apply(seen), minlength=len(candidate.feature))
            candidate = candidate._replace(visits=visits)
        return Size(leaves, *paper_interval(rewards), worst_mean(rewards), float(rewards.min()), candidate)

    curve = [sized(merged(tree), choosing) for _, _, tree in search.curve()] + [sized(full, choosing)]
    target = curve[-1].mean if target is None else float(target)
    trees = [size for size in curve if size.leaves is not None]
    best = max(trees, key=lambda size: size.mean)
    smallest = next((size for size in trees if size.mean >= target), best)
    if smallest.mean < target:
        log.warning("no tree reaches the target of %.2f: the smallest is the best one", target)
    best_fresh = sized(best.tree, reporting)
    smallest_fresh = best_fresh if smallest is best else sized(smallest.tree, reporting)
    return Simplified(smallest_fresh, best_fresh, sized(full, reporting), target, count, curve)


def seconds_each(policy: Any, env: gym.Env, space: Space, count: int, horizon: int | None) -> float:
    """Return how long an episode takes, if so many are played at a time."""
    begun, rng = time.monotonic(), np.random.default_rng(0)
    run_policy(policy, env, first_states(env, space, rng, count), rng, horizon)
    return (time.monotonic() - begun) / count


class Search:
    """A search for small trees, with its first states and random stream, and what it has found."""

    def __init__(self, env, horizon, rng, starts, seen, end, each, fresh):
        self.env, self.horizon, self.rng, self.starts = env, horizon, rng, starts
        self.seen, self.spread = seen, np.maximum(seen.std(axis=0), 1e-12)  # of what trees ask for
        self.begun, self.end, self.each, self.fresh = time.monotonic(), end, each, fresh
        self.found = {}  # the best of each size, with its mean return and the seconds it took
        self.bar = self.check_interrupts = None  # while it runs

    def score(self, tree: Tree) -> float:
        """Return the mean return of a tree, and keep it if no other of its size has earned more."""
        begun = time.monotonic()
        mean = float(run_policy(tree, self.env, self.starts, self.rng, self.horizon).rewards.mean())
        cost = time.monotonic() - begun
        if tree.leaves not in self.found or mean > self.found[tree.leaves][0]:
            self.found[tree.leaves] = mean, cost, tree
        self.check_interrupts()
        self.bar.update(int(time.monotonic() - self.begun) - self.bar.n)
        if self.affordable() < self.fresh and time.monotonic() - self.begun > self.end - time.monotonic():
            raise TimeoutError
        return mean

    def curve(self):
        """Return what was found, without the trees that a smaller one beats."""
        curve = []
        for _, one in sorted(self.found.items()):
            if not curve or one[0] > curve[-1][0]:
                curve.append(one)
        return curve

    def affordable(self) -> int:
        """Return on how many fresh episodes there is time to evaluate what was found, at most `fresh`."""
        costs = [cost for _, cost, _ in self.curve()]
        each = (sum(costs) + 2 * max(costs)) / len(self.starts) + 2 * self.each
        return int(np.clip((self.end - time.monotonic()) / each, min(FEWEST, self.fresh), self.fresh))

    def run(self, imitated: Sequence[Tree], proposals: int) -> None:
        """Improve the best imitation and its best smaller trees, down to one leaf; then that imitation once more."""
        first = max(((self.score(tree), tree) for tree in imitated), key=lambda scored: scored[0])
        score, tree = first
        while tree.leaves > 1:
            score, tree = self.improve(score, tree, proposals)
            candidates = smaller_trees(tree)
            scores = [self.score(candidate) for candidate in candidates]
            score, tree = max(scores), candidates[int(np.argmax(scores))]
        self.improve(*first, proposals)

    def improve(self, best: float, tree: Tree, proposals: int) -> tuple[float, Tree]:
        """Change one node at a time, and keep each change that raises the return; each size has its share of time."""
        now = time.monotonic()  # half of what is left is for the evaluation of what is found
        for _ in range(proposals):
            if time.monotonic() - now > (self.end - now) / 2 / tree.leaves:
                break
            proposal = self.change(tree)
            if (score := self.score(proposal)) > best:
                best, tree = score, proposal
        return best, tree

    def change(self, tree: Tree) -> Tree:
        """Return a tree with another threshold, another question or another action at one node."""
        rng, names = self.rng, tree.variables
        feature, threshold, action = tree.feature.copy(), tree.threshold.copy(), tree.action.copy()
        node = rng.integers(len(feature))
        if feature[node] == LEAF:
            if names.box is None:
                action[node] = rng.integers(len(names.choices))
            else:
                action[node] = np.clip(action[node] + 0.5 * rng.standard_normal(action.shape[1]), -1.0, 1.0)
        elif rng.random() < 0.2:
            asked = [i for i, name in enumerate(names.asked) if name]
            feature[node] = asked[rng.integers(len(asked))]
            threshold[node] = self.seen[rng.integers(len(self.seen)), feature[node]]
        else:  # steps of all sizes
            step = self.spread[feature[node]] * 10.0 ** rng.uniform(-2, 0)
            threshold[node] += step * rng.standard_normal()
        return tree._replace(feature=feature, threshold=threshold, action=action)


def smaller_trees(tree: Tree) -> list[Tree]:
    """Return the trees with one question fewer, replaced by either of its branches."""
    inner = np.flatnonzero(tree.feature != LEAF)
    return [without(tree, int(node), int(child)) for node in inner for child in (tree.left[node], tree.right[node])]
