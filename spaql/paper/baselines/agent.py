"""What the baselines share: an environment's compiled system, the actions to choose from, and the streams of chance."""

import itertools
from typing import Any

import gymnasium as gym
import numpy as np

from spaql.systems import compiled_world, episode_limit, make_env, space_of


class Baseline:
    """An agent that learns on a compiled system and plays its greedy policy.

    Parameters
    ----------
    env
        An environment of a registered system whose episodes end.
    seed
        Of the agent's own choices and of its environment's starts.
    actions
        How many values of each continuous action variable to choose from: two as SPAQL-R.
    """

    learns = True

    def __init__(self, env: str | gym.Env, seed: Any = None, actions: int = 2):
        root = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
        own, of_env = root.spawn(2)
        self.env = make_env(env)
        space = space_of(self.env, 1.0)
        world, limit = compiled_world(self.env, space, int(of_env.generate_state(1)[0])), episode_limit(self.env)
        if world is None or limit is None:
            raise ValueError(f"baselines need a registered system whose episodes end, and {env} is none")
        self.world, self.limit = world, limit
        self.rng = np.random.default_rng(own)
        if space.actions:
            self.actions = np.arange(float(space.actions)).reshape(-1, 1)
        else:
            levels = np.linspace(-1.0, 1.0, actions)
            self.actions = np.array(list(itertools.product(levels, repeat=len(space.action_half))))

    def learn(self, samples: int) -> "Baseline":
        """Take so many samples more, and learn from them."""
        raise NotImplementedError

    def play(self, starts: np.ndarray) -> np.ndarray:
        """Return the returns of episodes from these starts under the policy as it is."""
        raise NotImplementedError

    def evaluate(self, episodes: int, seed: Any = None) -> np.ndarray:
        """Return the returns of fresh episodes."""
        return self.play(self.world.draw(np.random.default_rng(seed), episodes))
