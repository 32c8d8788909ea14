"""Episodes under policies, also on changed systems: machine code on compiled ones, interpreted on any other."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from spaql.checks import Seed, check_integer, check_number, check_seed, load
from spaql.compiling import copy_row, python_or_jit
from spaql.interrupts import alone
from spaql.policies.interval import paper_interval, worst_mean
from spaql.policies.tree import Tree, descend
from spaql.spaces import Space, map_of_actions, turn
from spaql.systems import begin, compiled_world, make_env, move, observe
from spaql.systems.environments import episode_limit, horizon_of, make_generator, space_of
from spaql.systems.interpreted import check_reward


@python_or_jit
def play(world, starts, tree, noise, rng, limit, rewards, steps, seen):
    """Play an episode from each row of `starts` with noise on what is observed; `seen` has no rows if nobody asks."""
    feature, threshold, left, right, actions = tree
    state, x, observation, action = world.room(), np.empty(noise.size), np.empty(noise.size), np.empty(actions.shape[1])
    for i in range(len(starts)):
        total = 0.0
        world.reset(state, starts[i], x)
        for h in range(limit):
            observe(world.constants, state, observation)
            for j in range(noise.size):
                if noise[j] > 0.0:
                    observation[j] += noise[j] * rng.standard_normal()
            if len(seen):
                for j in range(noise.size):  # as in `copy_row`
                    seen[i, h, j] = observation[j]
            turn(world.space, observation, observation)
            copy_row(actions, descend(feature, threshold, left, right, observation), action)
            reward, over = world.step(state, action, x)
            total += reward
            if over:
                break
        rewards[i], steps[i] = total, h + 1


class Episodes(NamedTuple):
    """Sums of rewards and numbers of steps, one entry per episode, and the observations of all steps if asked for."""

    rewards: np.ndarray
    steps: np.ndarray
    seen: np.ndarray


def first_states(env: gym.Env, space: Space, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw where episodes start: states of a compiled system; of any other environment a seed for each episode."""
    world = compiled_world(env, space)
    return rng.integers(2**31, size=(episodes, 1)) if world is None else world.draw(rng, episodes)


def run_policy(policy, env, starts, rng, horizon=None, *, noise=0.0, record=False):
    """Play an episode from each row of `starts` (see `first_states`); `evaluate` is what users call."""
    if not hasattr(policy, "predict"):
        raise TypeError(f"expected a policy, which has Stable-Baselines3's `predict`, not {policy!r}")
    space = policy.variables.space if isinstance(policy, Tree) else space_of(env)
    _, half, actions = map_of_actions(env.action_space)
    observed = math.prod(env.observation_space.shape)
    if (space.actions, len(space.action_half), len(space.centre)) != (actions, len(half), observed):
        raise ValueError(f"the tree was made for {policy.variables.system}, whose observations or actions are others")
    world, horizon = compiled_world(env, space), horizon_of(env, horizon)
    limit = min(horizon, episode_limit(env) or horizon)
    noise = np.asarray(noise, float)
    if noise.shape not in ((), (observed,)) or not np.all((noise >= 0.0) & (noise < np.inf)):
        raise ValueError(f"noise must be a number of at least 0, or one for each of {observed} numbers, not {noise}")
    noise = np.array(np.broadcast_to(noise, observed))
    count = len(starts)
    out = Episodes(np.zeros(count), np.zeros(count, np.int64), np.empty((count if record else 0, limit, noise.size)))
    if world is None:
        with alone(env.unwrapped):
            stream = getattr(env.unwrapped, "_np_random", None)
            try:
                play_interpreted(policy, env, starts, noise, rng, limit, out)
            finally:
                env.unwrapped._np_random = stream  # of an agent that learns in it
    elif isinstance(policy, Tree):
        arrays = tuple(map(np.ascontiguousarray, policy[:5]))  # of one type, whoever made the tree: compiled once
        world.call(play, starts, arrays, noise, rng, limit, *out)
    else:
        play_batch(policy, env, world, starts, noise, rng, limit, out)
    return out._replace(seen=out.seen[np.arange(limit) < out.steps[:, None]] if record else out.seen[:, 0])


@python_or_jit
def step_batch(world, states, actions, observations, rewards, over):
    """Take a step of each episode that is not over; actions and observations are in the environment's units."""
    for i in range(len(states)):
        if not over[i]:
            reward, over[i] = move(world.constants, states[i], actions[i])
            rewards[i] += reward * world.scale + world.shift
            observe(world.constants, states[i], observations[i])


def play_batch(policy, env, world, starts, noise, rng, limit, out):
    """As `play`, for policies in Python: all episodes side by side."""
    count, first = len(starts), int(getattr(env.action_space, "start", 0))
    states, observations = np.empty((count, world.system.numbers)), np.empty((count, noise.size))
    over, memory, (rewards, steps, seen) = np.zeros(count, bool), None, out
    for start, state, observation in zip(starts, states, observations, strict=True):
        begin(world.model.constants, start, state)
        observe(world.model.constants, state, observation)
    for h in range(limit):
        if over.all():
            break
        shown = observations + noise * rng.standard_normal(observations.shape) if noise.any() else observations
        if len(seen):
            seen[:, h] = shown
        steps += ~over
        actions, memory = policy.predict(shown, state=memory, deterministic=True)
        actions = np.array(actions, float).reshape(count, -1) - first
        world.call(step_batch, states, actions, observations, rewards, over)


def play_interpreted(policy, env, seeds, noise, rng, limit, out):
    """As `play`, in any environment: an episode from each seed; for -1 its own random stream goes on."""
    shape, (rewards, steps, seen) = (noise.size,) if isinstance(policy, Tree) else env.observation_space.shape, out
    for i, seed in enumerate(seeds.ravel().tolist()):
        observation, _ = env.reset(seed=None if seed < 0 else seed)
        over, memory = False, None
        while steps[i] < limit and not over:
            x = np.asarray(observation, float).ravel() + (noise * rng.standard_normal(noise.size) if noise.any() else 0)
            if len(seen):
                seen[i, steps[i]] = x
            action, memory = policy.predict(x.reshape(shape), state=memory, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            rewards[i], steps[i], over = rewards[i] + check_reward(reward), steps[i] + 1, terminated or truncated


def evaluate(
    policy: Any,
    env: str | gym.Env,
    episodes: int = 1000,
    seed: Seed = None,
    noise: ArrayLike = 0.0,
    horizon: int | None = None,
    starts: bool = False,
) -> Any:
    """Return the returns of episodes under a policy that acts deterministically.

    The same seed gives the episodes of `Agent.evaluate`.  Any environment will do; registered systems are compiled.

    Parameters
    ----------
    policy
        A tree, or whatever has Stable-Baselines3's `predict`.
    env
        An id, or an environment (with changed masses, say).
    episodes, seed
        How many, and what seeds them.
    noise
        Standard deviation of Gaussian noise on the observed variables: one number, or one for each.
    horizon
        H, the greatest length of an episode; the environment's own limit if not given.
    starts
        Also return the first observation of each episode, one row each.

    Examples
    --------
    >>> rewards, starts = evaluate(tree, "Pendulum-v1", seed=0, starts=True)
    >>> rewards.min(), starts[rewards.argmin()]  # the worst episode, and where it began
    """
    env = make_env(env)
    episodes = check_integer("episodes", episodes)
    streams = check_seed(seed).spawn(2)
    rng, env_seed = np.random.default_rng(streams[0]), int(streams[1].generate_state(1)[0])
    world = compiled_world(env, space_of(env))
    if world is None:  # one seed for the first episode, then the environment's own stream goes on
        first = np.array([[env_seed], *([[-1]] * (episodes - 1))])
    else:
        first = world.draw(make_generator(env_seed), episodes)
    played = run_policy(policy, env, first, rng, horizon, noise=noise, record=starts)
    begun = np.cumsum(played.steps) - played.steps
    return (played.rewards, played.seen[begun]) if starts else played.rewards


def robustness(
    policies: Mapping[str, Any],
    env: str | gym.Env,
    variants: Mapping[str, gym.Env] | None = None,
    noises: ArrayLike = (),
    *,
    episodes: int = 1000,
    seed: Seed = 0,
    horizon: int | None = None,
) -> Any:
    """Return what policies earn, from the same starts, on variants of their system and with noisy observations.

    Parameters
    ----------
    policies
        Trees, or whatever has Stable-Baselines3's `predict`, by name.
    env
        The system they are for.
    variants
        Environments with other constants, by name.
    noises
        Standard deviations, or one, of Gaussian noise on every observed variable, each in the variable's own unit.
    episodes, seed, horizon
        As for `evaluate`.

    Returns
    -------
    frame
        A row for each policy on the system itself ("usual"), on each variant and with each noise: `policy`, `change`,
        `noise`, the mean return `mean`, the ends `low` and `high` of its interval, the mean of the worst twentieth of
        the episodes `worst 5 %`, and the `worst`.
    """
    pd = load("pandas")
    if not isinstance(policies, Mapping):
        raise TypeError('policies must have names, as {"tree": tree}')
    usual, episodes = make_env(env), check_integer("episodes", episodes, at_least=2)
    horizon = horizon_of(usual, horizon)  # of its variants, too, which may have no limit of their own
    first, noisy = check_seed(seed).spawn(2)
    cases = [("usual", usual, 0.0), *((name, make_env(variant), 0.0) for name, variant in (variants or {}).items())]
    cases += [("noise", usual, check_number("noise", noise, at_least=0.0)) for noise in np.ravel(noises).tolist()]
    for change, system, _ in cases:
        if (system.action_space, system.observation_space.shape) != (usual.action_space, usual.observation_space.shape):
            raise ValueError(f"{change!r} has other actions or observations than {usual}: give variants of one system")
    rows = []
    for name, policy in policies.items():
        for change, system, noise in cases:
            starts = first_states(system, space_of(system), np.random.default_rng(first), episodes)
            rng = np.random.default_rng(noisy)
            rewards = run_policy(policy, system, starts, rng, horizon, noise=noise).rewards
            worst = worst_mean(rewards), rewards.min()
            rows.append((name, change, noise, *map(float, paper_interval(rewards)), *worst))
    return pd.DataFrame(rows, columns=["policy", "change", "noise", "mean", "low", "high", "worst 5 %", "worst"])
