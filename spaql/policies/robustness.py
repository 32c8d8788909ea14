"""Policies on a system that is not quite the one they were made for: other constants, and noise on what they see."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer, check_number, check_seed, load
from spaql.policies.interval import paper_interval
from spaql.policies.play import first_states, run_policy
from spaql.systems import make_env, space_of

if TYPE_CHECKING:
    import pandas as pd


def robustness(
    policies: Mapping[str, Any],
    env: str | gym.Env,
    variants: Mapping[str, gym.Env] | None = None,
    noises: Iterable[float] = (),
    *,
    episodes: int = 1000,
    seed: int | np.random.SeedSequence = 0,
    horizon: int | None = None,
) -> "pd.DataFrame":
    """Return what policies earn on variants of their system and with noise on what they see, from the same starts.

    Parameters
    ----------
    policies
        Trees, or whatever has Stable-Baselines3's `predict`, by name.
    env
        The system they are for.
    variants
        Environments with other constants, by name.
    noises
        Standard deviations of Gaussian noise on every observed variable, each in the variable's own unit.
    episodes, seed, horizon
        As for `evaluate`.

    Returns
    -------
    frame
        A row for each policy on the system itself ("usual"), on each variant and with each noise: `policy`, `change`,
        `noise`, the mean return `mean`, the ends `low` and `high` of its interval, the mean of the worst twentieth of
        the episodes `worst_5`, and the `worst`.

    Examples
    --------
    >>> heavy = gym.make("CartPole-v0")
    >>> heavy.unwrapped.masspole = 0.3
    >>> robustness({"small": small, "full": policy}, "CartPole-v0", {"three times the mass": heavy}, noises=[0.1])
    """
    pd = load("pandas", "paper")
    usual, episodes = make_env(env), check_integer("episodes", episodes, at_least=2)
    first, noisy = check_seed(seed).spawn(2)
    cases = [("usual", usual, 0.0), *((name, make_env(variant), 0.0) for name, variant in (variants or {}).items())]
    cases += [("noise", usual, check_number("noise", noise, at_least=0.0)) for noise in noises]
    rows = []
    for name, policy in policies.items():
        for change, system, noise in cases:
            starts = first_states(system, space_of(system), np.random.default_rng(first), episodes)
            rng = np.random.default_rng(noisy)
            rewards = np.sort(run_policy(policy, system, starts, rng, horizon, noise=noise).rewards)
            worst = rewards[: -(-episodes // 20)].mean()
            rows.append((name, change, noise, *map(float, paper_interval(rewards)), worst, rewards[0]))
    return pd.DataFrame(rows, columns=["policy", "change", "noise", "mean", "low", "high", "worst_5", "worst"])
