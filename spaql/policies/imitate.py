"""Small decision trees that imitate any policy, grown on the states that the tree itself visits.

The policy plays some episodes, and a tree is grown that does in these states what the policy does.  Then, in each
round, the tree plays, the policy says what it would have done in the states it came to, and the tree is grown again on
all states so far (DAgger; Ross et al., 2011).  If the policy knows what actions are worth, a state counts by what is at
stake there, Q of the best action minus Q of the worst (VIPER; Bastani et al., 2018).
"""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from spaql.checks import Seed, check_integer, check_seed
from spaql.policies.interval import Interval, paper_interval, worst_mean
from spaql.policies.play import first_states, run_policy
from spaql.policies.tree import LEAF, Tree, Variables, turned, variables_of
from spaql.spaces import pairs_of
from spaql.systems import make_env, space_of

ROWS = 100_000  # states that a tree is grown on, drawn from all that were seen
FEW = 16  # a policy with at most so many different actions is imitated action by action, not by their means


class Imitation(NamedTuple):
    """How a tree and the policy it imitates fare on the same fresh episodes."""

    rewards: Interval  # mean return of the tree
    teacher: Interval  # mean return of the policy
    agreement: float  # in which share of the states it comes to the tree does what the policy would do
    samples: int  # environment steps that were taken to make the tree, without these episodes
    worst_5: tuple[float, float]  # the means of the worst twentieth of the returns of the tree and of the policy
    worst: tuple[float, float]  # the lowest ones

    def __str__(self) -> str:
        ours, theirs = (f"{mean}, worst 5 % {five:.2f}, worst {one:.2f}"
                        for mean, five, one in zip(self[:2], self.worst_5, self.worst, strict=True))  # fmt: skip
        return f"earns {ours}; the policy earns {theirs}; they agree in {self.agreement:.1%}"


def imitate(
    policy: Any,
    leaves: int = 64,
    *,
    env: str | gym.Env | None = None,
    rounds: int = 5,
    episodes: int = 400,
    fresh: int = 200,
    seed: Seed = 0,
    horizon: int | None = None,
) -> Tree:
    """Return a tree of at most `leaves` leaves that imitates a policy.

    Parameters
    ----------
    policy
        Whatever has Stable-Baselines3's `predict`: an agent's policy, a network, a tree.  If it has `values`, which
        returns Q of each action, a state is weighted by the difference between the best and the worst action.
    leaves
        Upper bound.
    env, horizon
        The system, and H, the greatest length of an episode; those of the policy if not given.
    rounds, episodes
        How often the tree is grown again, and how many episodes it plays each time; the policy plays as many before.
        The tree of the round that earned most is returned.
    fresh
        Further episodes for the tree's `report`.
    seed
        Of first states and samples.
    """
    leaves, rounds = check_integer("leaves", leaves), check_integer("rounds", rounds)
    episodes, fresh = check_integer("episodes", episodes), check_integer("fresh", fresh, at_least=2)
    env, horizon = setting_of(policy, env, horizon)
    rng = np.random.default_rng(check_seed(seed))
    every = list(imitations(policy, env, leaves, rounds, episodes, rng, horizon))
    tree, samples = max(every, key=lambda one: one[1])[0], every[-1][3]
    starts = first_states(env, tree.variables.space, rng, fresh)
    played = run_policy(tree, env, starts, rng, horizon, record=True)
    teacher = run_policy(policy, env, starts, rng, horizon)
    nodes = tree.apply(played.seen)
    same = np.all(np.isclose(tree.action[nodes], standard_actions(policy, tree.variables, played.seen)), axis=1)
    ours, theirs = played.rewards, teacher.rewards
    worst = (worst_mean(ours), worst_mean(theirs)), (float(ours.min()), float(theirs.min()))
    report = Imitation(paper_interval(ours), paper_interval(theirs), float(same.mean()), samples, *worst)
    return tree._replace(visits=np.bincount(nodes, minlength=len(tree.feature)), report=report)


def setting_of(policy: Any, env: str | gym.Env | None, horizon: int | None) -> tuple[gym.Env, int | None]:
    """Return the environment and the horizon: as given, else those that the policy was made for."""
    if getattr(policy, "h", None) is not None:
        raise ValueError("a policy of one time step plays no episodes of its own: give one that is for all steps")
    if env is None and not hasattr(policy, "env"):
        raise ValueError(f"{policy!r} does not know its system: give `env`")
    known = getattr(policy, "horizon", None)
    return make_env(policy.env if env is None else env), known if horizon is None else horizon


def imitations(policy, env, leaves, rounds, episodes, rng, horizon):
    """Yield the tree of each round, its mean return, the states it came to, and the steps so far."""
    space, variables = space_of(env, angles=None), getattr(policy, "variables", None)
    if variables is None or (pairs_of(space) and not pairs_of(variables.space)):
        variables = variables_of(env, space)  # the tree asks for an angle instead of cosine and sine
    seen, actions, weights = [], [], []
    tree, samples = None, 0
    for round_ in range(rounds + 1):
        starts = first_states(env, variables.space, rng, episodes)
        played = run_policy(tree or policy, env, starts, rng, horizon, record=True)
        samples += int(played.steps.sum())
        if tree is not None:
            yield tree, float(played.rewards.mean()), played.seen, samples
        if round_ < rounds:
            some = rng.permutation(len(played.seen))[: 2 * ROWS]
            seen.append(played.seen[some])
            actions.append(standard_actions(policy, variables, seen[-1]))
            weights.append(np.ptp(policy.values(seen[-1]), axis=1) if hasattr(policy, "values") else np.ones(len(some)))
            states, labels, counts = np.concatenate(seen), np.concatenate(actions), np.concatenate(weights)
            some = rng.permutation(len(states))[:ROWS]
            tree = merged(grow(variables, states[some], labels[some], counts[some], leaves))


def standard_actions(policy: Any, variables: Variables, observations: np.ndarray) -> np.ndarray:
    """Return what a policy does, in the standard space: one row for each observation."""
    actions = np.asarray(policy.predict(observations, deterministic=True)[0], float).reshape(len(observations), -1)
    if variables.box is None:
        return actions - variables.start
    return (actions - variables.space.action_centre) / variables.space.action_half


def grow(variables: Variables, states: np.ndarray, actions: np.ndarray, weights: np.ndarray, leaves: int) -> Tree:
    """Return a tree of at most `leaves` leaves; each split reduces the weighted squared error of actions most."""
    # Of few different actions each has a column: the error is Gini's impurity, and leaves have one of them, not a mean.
    kinds, which = np.unique(actions, axis=0, return_inverse=True)
    each = variables.box is None or len(kinds) <= FEW
    seen = turned(variables.space, states)
    weights = weights / weights.mean() if weights.sum() > 0.0 else np.ones(len(weights))
    sums = (np.eye(len(kinds))[which.ravel()] if each else actions) * weights[:, None]
    rows, splits, nodes, values = [], [], [], []

    def add(row: np.ndarray) -> int:
        rows.append(row)
        splits.append(best_split(seen[row], sums[row], weights[row]))
        nodes.append((LEAF, 0.0, LEAF, LEAF))
        total = sums[row].sum(axis=0)
        values.append(kinds[total.argmax()] if each else total / max(weights[row].sum(), TINY))
        return len(rows) - 1

    add(np.arange(len(seen)))
    for _ in range(leaves - 1):
        node = max(range(len(splits)), key=lambda n: splits[n][0])
        if splits[node] == NO_SPLIT:
            break
        _, asked, border = splits[node]
        splits[node] = NO_SPLIT
        below = seen[rows[node], asked] < border
        nodes[node] = asked, border, add(rows[node][below]), add(rows[node][~below])
    feature, threshold, left, right = map(np.array, zip(*nodes, strict=True))
    return Tree(feature, threshold, left, right, np.array(values), variables)


NO_SPLIT, TINY = (0.0, LEAF, 0.0), np.finfo(float).tiny


def best_split(seen: np.ndarray, sums: np.ndarray, weights: np.ndarray) -> tuple[float, int, float]:
    """Return (gain, feature, threshold) of the question that reduces the error most; `sums` are weighted labels."""
    best = NO_SPLIT
    total, weight = sums.sum(axis=0), weights.sum()
    for feature in range(seen.shape[1]):
        order = np.argsort(seen[:, feature], kind="stable")
        values = seen[order, feature]
        below, weight_below = np.cumsum(sums[order], axis=0)[:-1], np.cumsum(weights[order])[:-1, None]
        with np.errstate(divide="ignore", invalid="ignore"):  # where all weights of a side are zero
            gain = (below**2 / weight_below + (total - below) ** 2 / (weight - weight_below)).sum(axis=1)
        gain = np.where(np.isfinite(gain), gain - (total**2).sum() / max(weight, TINY), 0.0)
        gain[values[1:] == values[:-1]] = 0.0  # no question tells them apart
        if gain.size and gain.max() > best[0] + 1e-9:
            at = int(gain.argmax())
            middle = (values[at] + values[at + 1]) / 2
            best = float(gain[at]), feature, float(middle if middle > values[at] else values[at + 1])
    return best


def merged(tree: Tree) -> Tree:
    """Merge sibling leaves that have the same action."""
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:  # children come after their parents
        left, right = tree.left[node], tree.right[node]
        if tree.feature[left] == tree.feature[right] == LEAF and np.array_equal(tree.action[left], tree.action[right]):
            return merged(without(tree, int(node), int(left)))
    return tree


def without(tree: Tree, node: int, child: int) -> Tree:
    """Return the tree with a node replaced by one of its children."""
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
    feature, threshold, left, right, action = (array[order] for array in tree[:5])
    return Tree(feature, threshold, place[left], place[right], action, tree.variables)
