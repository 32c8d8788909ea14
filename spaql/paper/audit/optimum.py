"""The best that can be earned on the problems of the papers before this one, by dynamic programming on a grid."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from spaql.systems import ambulance, make_env, oil

NOISE = 100  # values of the noise, or of the next call, each as likely as the others


class Optimum(NamedTuple):
    """Returns from the start of an episode: of the best policy, of the myopic one, and by how much half a grid errs."""

    best: float
    myopic: float  # of the policy that maximises the mean of the next reward
    error: float


def optimum(env_id: str, points: int = 200) -> Optimum:
    """Return the greatest mean return of an episode, and that of the myopic policy.

    Places and actions stand on a grid of so many intervals, between which the value is interpolated.  The error is the
    greater of the two differences from the results of half as many.
    """
    fine, coarse = (backwards(make_env(env_id).unwrapped, count) for count in (points, points // 2))
    return Optimum(*fine, max(abs(one - other) for one, other in zip(fine, coarse, strict=True)))


def backwards(env: Any, points: int) -> tuple[float, float]:
    """Return the value of the best policy and of the myopic one at 0.5, from the last step to the first."""
    grid = np.linspace(0.0, 1.0, points + 1)
    x, a = grid[:, None], grid[None, :]
    best = myopic = np.zeros_like(grid)
    for h in reversed(range(oil.H)):
        immediate, then_best, then_myopic = (np.zeros((points + 1, points + 1)) for _ in range(3))
        for z in noise(env, h):
            reward, y = consequence(env, h, x, a, z)
            immediate += reward / NOISE
            then_best += np.interp(y, grid, best) / NOISE
            then_myopic += np.interp(y, grid, myopic) / NOISE
        best = (immediate + then_best).max(axis=1)
        chosen = immediate.argmax(axis=1)[:, None]
        myopic = np.take_along_axis(immediate + then_myopic, chosen, axis=1)[:, 0]
    return float(np.interp(0.5, grid, best)), float(np.interp(0.5, grid, myopic))


def noise(env: Any, h: int) -> np.ndarray:
    """Return equally likely values of what an episode draws for a step: quantiles of its law."""
    shares = (np.arange(NOISE) + 0.5) / NOISE
    if isinstance(env, oil.OilEnv):
        return stats.norm.ppf(shares)
    if env.law == ambulance.LAWS.index("beta"):
        return stats.beta.ppf(shares, 5, 2)
    low, high = ambulance.SHIFTS[h] if env.law == ambulance.LAWS.index("shifting") else (0.0, 1.0)
    return low + (high - low) * shares


def consequence(env: Any, h: int, x: np.ndarray, a: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Return reward and next place for every place and action, given what was drawn for the step."""
    way = np.abs(x - a)
    if not isinstance(env, oil.OilEnv):
        return 1.0 - (env.alpha * way + (1.0 - env.alpha) * np.abs(a - z)), np.full(way.shape, z)
    found = (
        np.exp(-env.lam * np.abs(x - 0.75)) + 0 * a,
        1.0 - env.lam * (x - 0.75) ** 2 + 0 * a,
        np.exp(-env.lam * np.abs(x * a - 0.7)),
        (h + 1) / oil.H * np.exp(-env.lam * np.abs(x - oil.PEAKS[h])) + 0 * a,
    )[env.survey]
    return np.clip(found - way, 0.0, 1.0), np.clip(a + math.sqrt(env.noise) * (x + a) * z, 0.0, 1.0)
