"""Learners of the weights of tiles (see `spaql.tiles`).

States are what SPAQL-R sees: the standard space, with an angle in the place of its cosine and sine.
"""

from typing import Any

import gymnasium as gym
import numpy as np

from spaql.compiling import either, inlined
from spaql.paper.baselines.agent import Baseline
from spaql.systems import reset, room, step
from spaql.systems.environments import angles_of
from spaql.tileq import PLAIN, Tiles, active, count_of, sum_of


def places_of(env: gym.Env) -> np.ndarray:
    """Return where the variables of an environment stand in its observation, with angles for cosines and sines."""
    angles = angles_of(env)
    used = {place for pair in angles for place in pair}
    rest = [(place, PLAIN) for place in range(env.observation_space.shape[0]) if place not in used]
    return np.array([*angles, *rest], np.int64)


@inlined
def greedy(weights, found, row):
    """The best action in the state with the tiles of a row, the first of equals, and its Q."""
    best, highest = 0, sum_of(weights, found, row, 0)
    for a in range(1, weights.shape[1]):
        q = sum_of(weights, found, row, a)
        if q > highest:
            best, highest = a, q
    return best, highest


@either
def play_tiles(world, starts, limit, tiles, weights, actions, returns):
    """Play an episode from each start with the greedy policy."""
    state, x, action = room(world), np.empty(len(world.space.centre)), np.empty(actions.shape[1])
    found = np.empty((1, tiles.tilings), np.int64)
    for episode in range(len(starts)):
        reset(world, state, starts[episode], x)
        total, h, over = 0.0, 0, 0
        while h < limit and not over:
            active(tiles, x, found, 0)
            action[:] = actions[greedy(weights, found, 0)[0]]
            reward, over = step(world, state, action, x)
            total += reward
            h += 1
        returns[episode] = total


class OnTiles(Baseline):
    """A learner of the weights of tiles.

    Parameters
    ----------
    env, seed, actions
        As for `Baseline`.
    tilings, bins
        See `Tiles`.
    """

    def __init__(self, env: Any, seed: Any = None, actions: int = 2, tilings: int = 16, bins: int = 8):
        super().__init__(env, seed, actions)
        self.tiles = Tiles(tilings, bins, places_of(self.env))
        self.weights = np.zeros((count_of(self.tiles), len(self.actions)))

    def play(self, starts: np.ndarray) -> np.ndarray:
        """Return the returns of episodes from these starts under the greedy policy."""
        returns = np.empty(len(starts))
        self.world.call(play_tiles, starts, self.limit, self.tiles, self.weights, self.actions, returns)
        return returns
