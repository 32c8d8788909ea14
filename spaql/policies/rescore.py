"""What a search for small trees found and what it cost: returns on episodes that chose nothing, and episodes played."""

from collections.abc import Iterable

import gymnasium as gym

from spaql.policies.interval import paper_interval
from spaql.policies.play import evaluate
from spaql.policies.simplify import Size


def rescore(curve: Iterable[Size], env: str | gym.Env, episodes: int = 1000, seed: int = 0) -> list[Size]:
    """Return the sizes of a trade-off with their returns on other episodes than those that chose among them.

    Parameters
    ----------
    curve
        From `Policy.simplify`.
    env
        The system it is for.
    episodes, seed
        How many new episodes, and what seeds them; the same ones for every tree.
    """
    scored = []
    for size in curve:
        mean, low, high = map(float, paper_interval(evaluate(size.tree, env, episodes, seed)))
        scored.append(Size(size.leaves, mean, low, high, size.tree))
    return scored


def search_episodes(leaves: int, proposals: int, episodes: int, rounds: int = 3) -> int:
    """Return how many episodes `simplify` plays in its search, without those that choose among sizes and report.

    It is exact where the imitation reaches `leaves` leaves and has a tree of every size, else an upper bound.
    """
    visited = 1 + rounds  # the policy itself, then its imitations
    improved = leaves * (1 + proposals)
    candidates = sum(2 * size + 1 for size in range(1, leaves))
    return episodes * (visited + improved + candidates)
