"""Random search over linear policies, with every sample of the search counted.

A policy takes the action a with the greatest w_a · (x, 1), where x is a point of the standard space.  Policies are
drawn from a normal distribution one after the other; each plays a few episodes, and the best mean so far is kept.
"""

from typing import Any

import numpy as np

from spaql.compiling import either
from spaql.paper.baselines.agent import Baseline
from spaql.systems import reset, room, step


@either
def play_linear(world, starts, limit, weights, actions, returns):
    """Play an episode from each start; return how many samples that took."""
    dimensions = len(world.space.centre)
    state, x, action = room(world), np.empty(dimensions), np.empty(actions.shape[1])
    taken = 0
    for episode in range(len(starts)):
        reset(world, state, starts[episode], x)
        total, h, over = 0.0, 0, 0
        while h < limit and not over:
            best, highest = 0, -np.inf
            for a in range(len(actions)):
                score = weights[a, dimensions]
                for i in range(dimensions):
                    score += weights[a, i] * x[i]
                if score > highest:
                    best, highest = a, score
            action[:] = actions[best]
            reward, over = step(world, state, action, x)
            total += reward
            h += 1
            taken += 1
        returns[episode] = total
    return taken


class RandomLinear(Baseline):
    """Random search over linear policies.

    Parameters
    ----------
    env, seed, actions
        As for `Baseline`.
    episodes
        That each policy plays.
    """

    def __init__(self, env: Any, seed: Any = None, actions: int = 2, episodes: int = 5):
        super().__init__(env, seed, actions)
        self.episodes, self.best, self.owed = episodes, -np.inf, 0
        self.weights = self._draw()

    def _draw(self) -> np.ndarray:
        return self.rng.normal(size=(len(self.actions), self.env.observation_space.shape[0] + 1))

    def learn(self, samples: int) -> "RandomLinear":
        """Take so many samples more; what the last policy takes beyond them, the next call does without."""
        self.owed += samples
        while self.owed > 0:
            weights, returns = self._draw(), np.empty(self.episodes)
            self.owed -= self._play(self.world.starts(self.episodes), weights, returns)
            if returns.mean() >= self.best:
                self.best, self.weights = returns.mean(), weights
        return self

    def _play(self, starts: np.ndarray, weights: np.ndarray, returns: np.ndarray) -> int:
        return self.world.call(play_linear, starts, self.limit, weights, self.actions, returns)

    def play(self, starts: np.ndarray) -> np.ndarray:
        """Return the returns of episodes from these starts under the best policy so far."""
        returns = np.empty(len(starts))
        self._play(starts, self.weights, returns)
        return returns
