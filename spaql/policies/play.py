"""Episodes under a policy: of compiled systems as machine code, of any other environment as it is."""

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from spaql.checks import check_integer, check_seed
from spaql.compiling import either
from spaql.partition import central_action, draw_action
from spaql.policies.tree import Tree, descend
from spaql.spaces import Space, to_box, turn
from spaql.systems import (
    CompiledWorld,
    begin,
    compiled_world,
    episode_limit,
    horizon_of,
    make_env,
    make_generator,
    move,
    observe,
    reset,
    room,
    space_of,
    step,
)
from spaql.systems.interpreted import check_reward, undisturbed


@either
def play(world, starts, limit, tree, central, noise, rng, rewards, steps, seen):
    """Play an episode from each row of `starts`; write sums of rewards, numbers of steps, and what was seen if asked.

    `noise` holds the standard deviation of what is added to each observed variable; `seen` has no rows, or one row per
    step for every episode.
    """
    feature, threshold, left, right, low, high = tree
    state, x, observation, action = room(world), np.empty(noise.size), np.empty(noise.size), np.empty(low.shape[1])
    for i in range(len(starts)):
        total = 0.0
        h = 0
        over = False
        reset(world, state, starts[i], x)
        while h < limit and not over:
            observe(world.constants, state, observation)
            for j in range(noise.size):
                if noise[j] > 0.0:
                    observation[j] += noise[j] * rng.standard_normal()
            if len(seen):
                seen[i, h] = observation
            turn(world.space, observation, observation)
            leaf = descend(feature, threshold, left, right, observation)
            if central:
                central_action(low, high, leaf, world.space, action)
            else:
                draw_action(low, high, leaf, world.space, rng, action)
            reward, over = step(world, state, action, x)
            total += reward
            h += 1
        rewards[i], steps[i] = total, h


class Episodes(NamedTuple):
    """Sums of rewards and numbers of steps, one entry per episode, and the observations of all steps if asked for."""

    rewards: np.ndarray
    steps: np.ndarray
    seen: np.ndarray


def world_of(env: gym.Env, space: Space) -> CompiledWorld:
    """Return the compiled twin of an environment, or say that it has none."""
    world = compiled_world(env, space)
    if world is None:
        raise TypeError(f"only registered systems are compiled, not {env}: the states of other environments cannot "
                        "be set (`evaluate` and `simplify` run on any)")  # fmt: skip
    return world


def first_states(env: gym.Env, space: Space, rng: np.random.Generator, episodes: int) -> np.ndarray:
    """Draw where episodes start: states of a compiled system; of any other environment a seed for each episode."""
    world = compiled_world(env, space)
    return rng.integers(2**31, size=(episodes, 1)) if world is None else world.draw(rng, episodes)


@either
def begin_batch(world, starts, states, observations):
    """Begin an episode from each row of `starts`; observations are in the environment's units."""
    for i in range(len(states)):
        begin(world.constants, starts[i], states[i])
        observe(world.constants, states[i], observations[i])


@either
def step_batch(world, states, actions, observations, rewards, over):
    """Take a step of each episode that is not over; actions and observations are in the environment's units."""
    for i in range(len(states)):
        if not over[i]:
            reward, over[i] = move(world.constants, states[i], actions[i])
            rewards[i] += reward * world.scale + world.shift
            observe(world.constants, states[i], observations[i])


def play_batch(
    policy: Any,
    env: gym.Env,
    world: CompiledWorld,
    starts: np.ndarray,
    limit: int,
    deterministic: bool,
    noise: np.ndarray,
    rng: np.random.Generator,
    record: bool,
) -> Episodes:
    """Play episodes of a compiled system side by side, under a policy that is no machine code: as `play`."""
    count, first = len(starts), int(getattr(env.action_space, "start", 0))
    states, observations = np.empty((count, world.system.numbers)), np.empty((count, noise.size))
    rewards, over, steps = np.zeros(count), np.zeros(count, bool), np.zeros(count, np.int64)
    seen = np.empty((count if record else 0, limit, noise.size))
    world.call(begin_batch, starts, states, observations)
    memory = None
    for h in range(limit):
        if over.all():
            break
        shown = observations + noise * rng.standard_normal(observations.shape) if noise.any() else observations
        if record:
            seen[:, h] = shown
        steps += ~over
        actions, memory = policy.predict(shown, state=memory, deterministic=deterministic)
        actions = np.array(actions, float).reshape(count, -1) - first
        world.call(step_batch, states, actions, observations, rewards, over)
    return Episodes(rewards, steps, seen[np.arange(limit) < steps[:, None]] if record else seen.reshape(0, noise.size))


def play_interpreted(
    policy: Any,
    env: gym.Env,
    seeds: np.ndarray,
    limit: int,
    deterministic: bool,
    noise: np.ndarray,
    rng: np.random.Generator,
    record: bool,
) -> Episodes:
    """Play an episode of any environment from each seed, or from where its own stream is for -1: as `play`."""
    space, rewards, steps, seen = env.action_space, np.zeros(len(seeds)), np.zeros(len(seeds), np.int64), []
    middle = policy.value if isinstance(policy, Tree) else None
    for i, seed in enumerate(seeds.ravel().tolist()):
        observation, _ = env.reset(seed=None if seed < 0 else seed)
        over, memory = False, None
        while steps[i] < limit and not over:
            x = np.asarray(observation, float).ravel() + (noise * rng.standard_normal(noise.size) if noise.any() else 0)
            if record:
                seen.append(x)
            if middle is None:
                shaped = x.reshape(env.observation_space.shape)
                given, memory = policy.predict(shaped, state=memory, deterministic=deterministic)
            elif deterministic:
                given = middle[policy.apply(x)[0]]
            else:
                given = drawn(policy, int(policy.apply(x)[0]), space, rng)
            observation, reward, terminated, truncated, _ = env.step(given)
            rewards[i], steps[i], over = rewards[i] + check_reward(reward), steps[i] + 1, terminated or truncated
    return Episodes(rewards, steps, np.array(seen).reshape(-1, noise.size))


def drawn(tree: Tree, leaf: int, space: gym.Space, rng: np.random.Generator) -> Any:
    """Return an action of the environment, drawn among those of a leaf."""
    action = np.empty(tree.low.shape[1])
    draw_action(tree.low, tree.high, leaf, tree.variables.space, rng, action)
    return space.start + int(action[0]) if tree.variables.box is None else to_box(space, tree.variables.space, action)


def run_policy(
    policy: Any,
    env: gym.Env,
    starts: np.ndarray,
    rng: np.random.Generator,
    deterministic: bool = True,
    noise: ArrayLike = 0.0,
    record: bool = False,
    horizon: int | None = None,
) -> Episodes:
    """Play an episode from each row of `starts` (see `first_states`); `evaluate` is what users call."""
    space = policy.variables.space if isinstance(policy, Tree) else space_of(env)
    world = compiled_world(env, space)
    horizon = horizon_of(env, horizon)
    limit = min(horizon, episode_limit(env) or horizon)
    dimensions = len(space.centre)
    noise = np.array(np.broadcast_to(np.asarray(noise, float), dimensions))
    if world is None:
        with undisturbed(env):
            return play_interpreted(policy, env, starts, limit, deterministic, noise, rng, record)
    if not isinstance(policy, Tree):
        return play_batch(policy, env, world, starts, limit, deterministic, noise, rng, record)
    rewards, steps = np.empty(len(starts)), np.empty(len(starts), np.int64)
    seen = np.empty((len(starts) if record else 0, limit, dimensions))
    arrays = tuple(map(np.ascontiguousarray, policy.arrays))  # of one type, whoever made the tree: compiled once
    world.call(play, starts, limit, arrays, deterministic, noise, rng, rewards, steps, seen)
    kept = seen[np.arange(limit) < steps[:, None]] if record else seen.reshape(0, dimensions)
    return Episodes(rewards, steps, kept)


def evaluate(
    policy: Any,
    env: str | gym.Env,
    episodes: int = 1000,
    seed: int | np.random.SeedSequence | None = None,
    deterministic: bool = True,
    noise: ArrayLike = 0.0,
    horizon: int | None = None,
    starts: bool = False,
) -> Any:
    """Return the sums of rewards of episodes under a policy; the same seed gives the episodes of `Agent.evaluate`.

    Any environment will do; those of registered systems are played as machine code.

    Parameters
    ----------
    policy
        A tree, or whatever has Stable-Baselines3's `predict`.
    env
        An id, or an environment (with changed masses, say).
    episodes, seed
        How many, and what seeds them.
    deterministic
        True takes the middle action of a leaf; False draws among its actions.
    noise
        Standard deviation of Gaussian noise on the observed variables: one number, or one for each.
    horizon
        H, the greatest length of an episode; the environment's own limit if not given.
    starts
        Return where the episodes started, too, of a compiled system: a row each, for `trajectories`.

    Examples
    --------
    >>> rewards, starts = evaluate(tree, "Pendulum-v1", seed=0, starts=True)
    >>> rewards.min(), trajectories(tree, "Pendulum-v1", starts[rewards.argmin()])  # the worst episode
    """
    env = make_env(env)
    episodes = check_integer("episodes", episodes)
    streams = check_seed(seed).spawn(2)
    rng, env_seed = np.random.default_rng(streams[0]), int(streams[1].generate_state(1)[0])
    world = world_of(env, space_of(env)) if starts else compiled_world(env, space_of(env))
    if world is None:  # one seed for the first episode, then the environment's own stream goes on
        first = np.array([[env_seed], *([[-1]] * (episodes - 1))])
    else:
        first = world.draw(make_generator(env_seed), episodes)
    rewards = run_policy(policy, env, first, rng, deterministic, noise, horizon=horizon).rewards
    return (rewards, first) if starts else rewards


def trajectories(tree: Tree, env: str | gym.Env, starts: ArrayLike) -> list[np.ndarray]:
    """Return the observations of an episode from each of these states, one row per step.

    A state is the system's own: angle and speed of the pendulum; position, speed, angle and angular speed of the cart
    and its pole.
    """
    env = make_env(env)
    world = world_of(env, tree.variables.space)
    starts = np.atleast_2d(np.asarray(starts, float))
    names, begun = [variable.name for variable in world.system.state], world.model.room()
    if starts.ndim != 2 or starts.shape[1] != len(names):
        raise ValueError(f"a state of {world.system.name} is {', '.join(names)}: expected rows of {len(names)}, "
                         f"not an array of shape {starts.shape}")  # fmt: skip
    for start in starts:
        begin(world.model.constants, start, begun)
        if not np.array_equal(begun[: len(names)], start):
            raise ValueError(f"an episode of {world.system.name} cannot begin at {start.tolist()}: its function begin "
                             f"makes {begun[: len(names)].tolist()} of it")  # fmt: skip
    episodes = run_policy(tree, env, starts, np.random.default_rng(0), record=True)
    return np.split(episodes.seen, np.cumsum(episodes.steps)[:-1])
