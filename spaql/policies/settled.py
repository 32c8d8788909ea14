"""Whether episodes end where the system is meant to be: what a return only hints at."""

import gymnasium as gym
import numpy as np

from spaql.checks import check_integer
from spaql.policies.play import Episodes, run_policy, world_of
from spaql.policies.tree import Tree
from spaql.spaces import standardise
from spaql.systems import make_env, space_of, system_of


def share_settled(
    tree: Tree,
    env: str | gym.Env,
    episodes: int = 1000,
    seed: int = 0,
    deterministic: bool = False,
    last: int = 20,
    within: float = 0.3,
) -> float:
    """Return the share of episodes that end at the system's reference and stay there.

    Parameters
    ----------
    tree
        Of a policy, with the whole intervals (`policy.tree(deterministic=False)`) if actions are to be drawn.
    env
        A registered system that has a reference state.
    episodes, seed
        How many to play, and what seeds them.
    deterministic
        True takes the middle action of a leaf; False draws among its actions.
    last, within
        An episode counts if it lasts to the horizon and in its last so many steps no variable is farther than this from
        the reference, in the standard space.  For the pendulum 0.3 means 17 degrees and 2.4 rad/s.
    """
    env = make_env(env)
    space, rng = space_of(env), np.random.default_rng(seed)
    starts = world_of(env, space).draw(rng, check_integer("episodes", episodes))
    return share_of(run_policy(tree, env, starts, rng, deterministic, record=True), env, last, within)


def share_of(played: Episodes, env: gym.Env, last: int = 20, within: float = 0.3) -> float:
    """Return the share of recorded episodes that end at the system's reference: see `share_settled`."""
    system = system_of(env)
    if system is None or system.reference is None:
        raise ValueError(f"only a registered system has a reference state, not {env}")
    space = space_of(env)  # the system's own, whatever slopes an agent has
    aim, point = np.empty(len(space.centre)), np.empty(len(space.centre))
    standardise(space, np.asarray(system.reference, float), aim)
    settled = 0
    for path in np.split(played.seen, np.cumsum(played.steps)[:-1]):
        if len(path) < played.steps.max():
            continue
        farthest = 0.0
        for observation in path[-last:]:
            standardise(space, observation, point)
            farthest = max(farthest, float(np.abs(point - aim).max()))
        settled += farthest <= within
    return settled / len(played.steps)
