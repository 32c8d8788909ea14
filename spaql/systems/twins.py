"""Whether a compiled system computes what its environment computes, to the last bit."""

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer
from spaql.compiling import python_or_jit
from spaql.systems.environments import make_env, make_generator, space_of
from spaql.systems.worlds import begin, compiled_world, move, observe


@python_or_jit
def trace(world, starts, lengths, actions, observations, rewards, ends):
    """Play the episodes that an environment has played, with its actions, as machine code; write all that is seen."""
    state, h = world.room(), 0
    for i in range(len(starts)):
        begin(world.constants, starts[i], state)
        observe(world.constants, state, observations[h + i])
        for _ in range(lengths[i]):
            rewards[h], ends[h] = move(world.constants, state, actions[h])
            h += 1
            observe(world.constants, state, observations[h + i])


def check_twin(env: str | gym.Env, steps: int = 10_000, seed: int = 0, reach: float = 1.0) -> int:
    """Play episodes with random actions in an environment and in its compiled twin; return how many they were.

    Parameters
    ----------
    env
        A Gymnasium id or an environment, of a registered system.
    steps
        How many are compared.
    seed
        Of the starts and of the actions.
    reach
        How far continuous actions go, in multiples of their bounds.

    Raises
    ------
    ValueError
        If anything that the twin computes differs in a single bit; the message says what, and at which step.

    Examples
    --------
    >>> check_twin("Acrobot-v1")
    20
    """
    env, steps = make_env(env), check_integer("steps", steps)
    space = space_of(env)
    world = compiled_world(env, space)
    if world is None:
        raise ValueError(f"{env} has no compiled twin: no system is registered for it, or none that covers this one")
    rng = np.random.default_rng(seed)
    if space.actions:
        actions = rng.integers(space.actions, size=(steps, 1)).astype(float)
    else:
        drawn = rng.uniform(-reach, reach, (steps, len(space.action_half)))
        actions = space.action_centre + drawn * space.action_half  # doubles: the twin must round them by itself
    seen, rewards, ends, lengths = play_environment(env, actions, seed)
    ours = np.empty((len(seen), len(space.centre))), np.empty(steps), np.empty(steps, bool)
    world.call(trace, world.draw(make_generator(seed), len(lengths)), lengths, actions, *ours)
    first = np.cumsum([0, *(lengths[:-1] + 1)])  # the rows of first observations
    after = np.delete(np.arange(len(seen)), first)
    what = "does `draw_starts` draw in the order of `reset`?  The first observation of episode"
    compare(what, ours[0][first], seen[first])
    compare("the reward of step", ours[1], rewards)
    compare("the end of the episode at step", ours[2], ends)
    compare("the observation after step", ours[0][after], seen[after])
    return len(lengths)


def play_environment(env: gym.Env, actions: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Return the observations, rewards and ends of an environment's episodes under these actions, and their lengths."""
    env.reset(seed=seed)
    env.unwrapped.np_random.bit_generator.state = make_generator(seed).bit_generator.state
    acted, over = env.action_space, True
    seen, rewards, ends, lengths = [], [], [], []
    for action in actions:
        if over:
            seen.append(env.reset()[0])
            lengths.append(0)
        discrete = isinstance(acted, gym.spaces.Discrete)
        given = int(acted.start + action[0]) if discrete else action.astype(acted.dtype).reshape(acted.shape)
        observation, reward, terminated, truncated, _ = env.step(given)
        seen.append(observation)
        rewards.append(float(reward))
        ends.append(bool(terminated))
        lengths[-1] += 1
        over = terminated or truncated
    observed = np.array([np.ravel(one) for one in seen], float)
    return observed, np.array(rewards), np.array(ends), np.array(lengths)


def compare(what: str, ours: np.ndarray, theirs: np.ndarray) -> None:
    """Raise an error with the first difference, if there is one."""
    for at, (mine, other) in enumerate(zip(ours.tolist(), theirs.tolist(), strict=True), 1):
        if mine != other:
            raise ValueError(f"{what} {at}: {other} in the environment, {mine} in its twin")
