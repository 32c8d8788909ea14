"""Policies under changed masses, lengths and noise: trees beside the network of a trained TRPO agent."""

import copy
import itertools
import math
from collections.abc import Iterable, Mapping

import gymnasium as gym
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spaql.checks import check_integer, check_number, check_seed
from spaql.paper.runs.batch import begin_batch, step_batch
from spaql.paper.runs.network import Network
from spaql.policies.interval import paper_interval
from spaql.policies.play import Episodes, first_states, run_tree, world_of
from spaql.policies.tree import Tree
from spaql.systems import episode_limit, horizon_of, make_env, space_of, system_of


def run_network(
    network: Network | Tree,
    env: gym.Env,
    starts: np.ndarray,
    rng: np.random.Generator,
    noise: ArrayLike = 0.0,
    record: bool = False,
    horizon: int | None = None,
) -> Episodes:
    """Play an episode from each row of `starts`: the counterpart of `play.run_tree`, for whatever has its `predict`."""
    space = space_of(env)
    world = world_of(env, space)
    count, dimensions = len(starts), len(space.centre)
    noise = np.array(np.broadcast_to(np.asarray(noise, float), dimensions))
    states, observations = np.empty((count, world.system.numbers)), np.empty((count, dimensions))
    actions, rewards, over = np.zeros((count, 1)), np.zeros(count), np.zeros(count, bool)
    total, steps = np.zeros(count), np.zeros(count, np.int64)
    world.call(begin_batch, starts, states, observations)
    horizon = horizon_of(env, horizon)
    limit = min(horizon, episode_limit(env) or horizon)
    seen = np.empty((count if record else 0, limit, dimensions))
    for h in range(limit):
        if over.all():
            break
        if noise.any():
            observations += noise * rng.standard_normal(observations.shape)
        if record:
            seen[:, h] = observations
        steps += ~over
        actions[:] = network.predict(observations)[0].reshape(count, -1)
        world.call(step_batch, states, actions, observations, rewards, over)
        total += rewards
    return Episodes(total, steps, seen[np.arange(limit) < steps[:, None]] if record else seen.reshape(0, dimensions))


def changed(system: str | gym.Env, mass: float = 1.0, length: float = 1.0) -> gym.Env:
    """Return a system with a pole (the cart stays the same) or pendulum so many times as heavy and as long."""
    env = copy.deepcopy(make_env(system))
    mass, length = check_number("mass", mass, above=0.0), check_number("length", length, above=0.0)
    known = system_of(env)
    if known is None or known.vary is None:
        raise ValueError(
            f"{system} has no pole or pendulum whose mass and length could be changed: "
            "give variants={name: environment} instead"
        )
    known.vary(env, mass, length)
    return env


def robustness(
    policies: Mapping[str, Tree | Network],
    system: str | gym.Env,
    factors: Iterable[float] = (0.5, 0.75, 1, 1.5, 2),
    noises: Iterable[float] = (0, 0.01, 0.02, 0.05, 0.1, 0.2),
    episodes: int = 1000,
    seed: int | np.random.SeedSequence = 0,
    variants: Mapping[str, gym.Env] | None = None,
    horizon: int | None = None,
) -> pd.DataFrame:
    """Return the returns of policies on a system that is not quite the one they were made for.

    All policies start from the same states, and act without chance: a tree takes the middle action of a leaf, a
    network its most likely one.

    Parameters
    ----------
    policies
        Trees and networks, by name.
    system
        The system they are for: a Gymnasium id, or an environment.
    factors
        By which the mass and, separately, the length of the pole or pendulum are multiplied; a system that has none is
        tried with noise alone.
    noises
        Standard deviations of the Gaussian noise added to what the policy sees of every observed variable at every
        step, in the variable's own unit: 0.1 is 0.1 m, 0.1 m/s, 0.1 rad and 0.1 rad/s for the cart and its pole; 0.1
        for sine and cosine and 0.1 rad/s for the pendulum.
    episodes
        For each number.
    seed
        Of the first states and of the noise.
    variants
        Other environments to play instead of changed masses and lengths, by the name of the change; trees play any.
    horizon
        The greatest length of an episode; the environment's own limit if not given.

    Returns
    -------
    frame
        One row per policy, change ("mass", "length", "noise" or a variant's name) and value (NaN for a variant), with
        the mean return and the ends of its interval (`mean`, `low`, `high`).

    Examples
    --------
    >>> policy = agent.policy
    >>> policies = {"full": policy.tree(), "small": policy.simplify(target=195).tree, "TRPO": policy_network(job)}
    >>> robustness(policies, "CartPole-v0").pivot(index=["change", "value"], columns="policy", values="mean")
    """
    usual, episodes = make_env(system), check_integer("episodes", episodes, at_least=2)
    first, noisy = check_seed(seed).spawn(2)
    cases: list[tuple[str, float, gym.Env, float]] = []
    if variants is not None:
        cases += [(change, math.nan, make_env(env), 0.0) for change, env in variants.items()]
    elif (known := system_of(usual)) is not None and known.vary is not None:
        factored = itertools.product(("mass", "length"), factors)
        cases += [(change, factor, changed(system, **{change: factor}), 0.0) for change, factor in factored]
    cases += [("noise", noise, usual, check_number("noise", noise, at_least=0.0)) for noise in noises]
    rows = []
    for name, policy in policies.items():
        for change, value, env, noise in cases:
            starts = first_states(env, space_of(env), np.random.default_rng(first), episodes)
            rng = np.random.default_rng(noisy)
            if isinstance(policy, Network):
                rewards = run_network(policy, env, starts, rng, noise, horizon=horizon).rewards
            else:
                rewards = run_tree(policy, env, starts, rng, noise=noise, horizon=horizon).rewards
            rows.append((name, change, float(value), *map(float, paper_interval(rewards))))
    return pd.DataFrame(rows, columns=["policy", "change", "value", "mean", "low", "high"])
