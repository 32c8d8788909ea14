"""An environment that no system describes: a point that drifts and is pushed back."""

import gymnasium as gym
import numpy as np


class Drift(gym.Env):
    """A point on a line with a speed; the nearer to the middle the better."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.action_space = gym.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.uniform(-0.5, 0.5, 2)
        return self.state.copy(), {}

    def step(self, action):
        place, speed = self.state
        speed = np.clip(0.9 * speed + 0.1 * (action - 1), -1.0, 1.0)
        place = np.clip(place + 0.1 * speed + 0.01, -1.0, 1.0)
        self.state = np.array([place, speed])
        return self.state.copy(), -abs(place), bool(abs(place) == 1.0), False, {}


if "Drift-v0" not in gym.registry:
    gym.register("Drift-v0", entry_point=Drift, max_episode_steps=300)
