"""Whether a compiled system computes what its environment computes, to the last bit."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer
from spaql.compiling import python_or_jit
from spaql.systems.environments import make_env, make_generator, space_of
from spaql.systems.registry import Variable
from spaql.systems.worlds import CompiledWorld, begin, compiled_world, move, observe, room


@python_or_jit
def trace(world, starts, lengths, actions, observations, rewards, ends):
    """Play the episodes that an environment has played, with its actions, as machine code; write all that is seen."""
    state, h = room(world), 0
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
        If anything that the twin computes differs in a single bit; the message says what, and at which step.  Also if
        the system lists another number of variables than the environment's state has.

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
    check_step(world)
    rng = np.random.default_rng(seed)
    if space.actions:
        actions = rng.integers(space.actions, size=(steps, 1)).astype(float)
    else:
        drawn = rng.uniform(-reach, reach, (steps, len(space.action_half)))
        actions = space.action_centre + drawn * space.action_half  # doubles: the twin must round them by itself
    seen, rewards, ends, lengths = play_environment(env, actions, seed)
    check_state(env, world.system.state)
    starts = world.draw(make_generator(seed), len(lengths))
    ours = np.empty((len(seen), len(space.centre))), np.empty(steps), np.empty(steps, bool)
    first = np.cumsum([0, *(lengths[:-1] + 1)])  # the rows of first observations
    after = np.delete(np.arange(len(seen)), first)

    def difference(given: np.ndarray) -> str:
        world.call(trace, starts, lengths, given, *ours)
        parts = (
            ("the first observation of episode", ours[0][first], seen[first]),
            ("the reward of step", ours[1], rewards),
            ("the end of the episode at step", ours[2], ends),
            ("the observation after step", ours[0][after], seen[after]),
        )
        return next(filter(None, (first_difference(*part) for part in parts)), "")

    if found := difference(actions):
        rounded = actions if space.actions else actions.astype(env.action_space.dtype).astype(float)
        if not np.array_equal(rounded, actions) and not difference(rounded):
            found += "; the environment rounds its actions, so let step do it: np.float64(np.float32(action[0]))"
        if draws_in_step(env, actions):
            found += "; the environment draws random numbers in step: keep a small generator in its state instead"
        elif found.startswith("the first observation"):
            found += "; draw_starts must draw what reset draws, in its order: all of one episode, then of the next"
        raise ValueError(found)
    return len(lengths)


def check_step(world: CompiledWorld) -> None:
    """Raise an error if a step does not return what the compiled loops take of it."""
    constants, space, state = world.model.constants, world.model.space, world.model.room()
    begin(constants, world.draw(np.random.default_rng(0), 1)[0], state)
    returned = move(constants, state, np.array(space.action_centre))
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ValueError(f"step of {world.system.name} must return the reward and whether the episode ends, not "
                         f"{returned!r}")  # fmt: skip


def play_environment(env: gym.Env, actions: np.ndarray, seed: int) -> tuple[np.ndarray, ...]:
    """Return the observations, rewards and ends of an environment's episodes under these actions, and their lengths."""
    env.reset(seed=seed)
    env.unwrapped.np_random.bit_generator.state = make_generator(seed).bit_generator.state
    seen: list[Any] = []
    rewards, ends, lengths, taken = [], [], [], 0
    while taken < len(actions):
        seen.append(env.reset()[0])
        first, over = taken, False
        while not over and taken < len(actions):
            observation, reward, terminated, truncated, _ = env.step(as_given(env.action_space, actions[taken]))
            seen.append(observation)
            rewards.append(float(reward))
            ends.append(bool(terminated))
            over, taken = terminated or truncated, taken + 1
        lengths.append(taken - first)
    observed = np.array([np.ravel(one) for one in seen], float)
    return observed, np.array(rewards), np.array(ends), np.array(lengths)


def draws_in_step(env: gym.Env, actions: np.ndarray) -> bool:
    """Return whether steps of an environment move its random stream."""
    env.reset(seed=0)
    before = env.unwrapped.np_random.bit_generator.state
    for action in actions[:20]:
        if any(env.step(as_given(env.action_space, action))[2:4]):
            break
    return bool(env.unwrapped.np_random.bit_generator.state != before)


def check_state(env: gym.Env, listed: Sequence[Variable]) -> None:
    """Raise an error if a system lists more or fewer variables than an environment's state has."""
    state = getattr(env.unwrapped, "state", None)
    if state is not None and np.size(state) != len(listed):
        names = ", ".join(variable.name for variable in listed)
        raise ValueError(f"the system's state lists {len(listed)} ({names}), the environment's has {np.size(state)}")


def as_given(space: gym.Space, action: np.ndarray) -> Any:
    """Return an action as the environment takes it."""
    if isinstance(space, gym.spaces.Discrete):
        return int(space.start + action[0])
    return action.astype(space.dtype).reshape(space.shape)


def first_difference(what: str, ours: np.ndarray, theirs: np.ndarray) -> str:
    """Return the first difference in words, in the order of time; nothing if there is none."""
    different = np.flatnonzero(np.any(np.atleast_2d(ours.T) != np.atleast_2d(theirs.T), axis=0))
    if not len(different):
        return ""
    at = different[0]
    found = f"{theirs[at].tolist()} in the environment, {ours[at].tolist()} in its twin"  # with all digits
    if np.array_equal(np.float32(ours[at]), theirs[at]):
        found += ", which is the same before it is rounded to float32"
    return f"{what} {at + 1}: {found}"
