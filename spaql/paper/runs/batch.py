"""Many episodes of a compiled system side by side, for policies that are not compiled: one call for all of them."""

from spaql.compiling import either
from spaql.systems import begin, move, observe


@either
def begin_batch(world, starts, states, observations):
    """Begin an episode from each row of `starts`; observations are in the environment's units."""
    for i in range(len(states)):
        begin(world.constants, starts[i], states[i])
        observe(world.constants, states[i], observations[i])


@either
def step_batch(world, states, actions, observations, rewards, over):
    """Take a step of each episode that is not over, and write its reward, which is 0 where there was no step.

    Actions and observations are in the environment's units.
    """
    for i in range(len(states)):
        rewards[i] = 0.0
        if not over[i]:
            reward, over[i] = move(world.constants, states[i], actions[i])
            rewards[i] = reward * world.scale + world.shift
        observe(world.constants, states[i], observations[i])
