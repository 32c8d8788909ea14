"""What observations that say nothing cost: SPAQL-R on Pendulum with dummies beside its three observations.

`python -m spaql.paper.audit.dimensions` makes `results/dimensions.json` again, in some minutes on one core.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pandas as pd

from spaql.algorithms import SPAQLR
from spaql.paper.audit.kept import load_kept, write_kept

SYSTEM = "Pendulum-v1"
DUMMIES = (0, 1, 2, 3, 5)
LEVEL = -300.0  # a return that only a policy that swings up and holds has
LOOKS = (4_000, 8_000, 16_000, 32_000, 64_000)  # samples after which policies are looked at
AGENTS = 2


class Dummies(gym.ObservationWrapper):
    """An environment with more observations, drawn from [-1, 1] at every step."""

    def __init__(self, env: gym.Env, count: int):
        super().__init__(env)
        self.count, shown = count, env.observation_space
        self.observation_space = gym.spaces.Box(
            np.concatenate((shown.low, -np.ones(count))), np.concatenate((shown.high, np.ones(count))), dtype=np.float64
        )

    def observation(self, observation: np.ndarray) -> np.ndarray:
        return np.concatenate((observation, self.np_random.uniform(-1.0, 1.0, self.count)))


def size(part: Any) -> int:
    """Return the bytes of all arrays in a tuple of tuples."""
    return sum(map(size, part)) if isinstance(part, tuple) else getattr(part, "nbytes", 0)


def cost(dummies: int, seed: int) -> dict[str, float]:
    """Return what an agent needs to reach the level, or what it has after the last look."""
    agent, seconds, taken, earned = SPAQLR(Dummies(gym.make(SYSTEM), dummies), seed=seed), 0.0, 0, -np.inf
    agent.learn(samples=1)  # compiles
    for samples in LOOKS:
        before = time.process_time()
        agent.learn(samples=samples - agent.num_timesteps)
        seconds, taken = seconds + time.process_time() - before, samples
        earned = float(agent.evaluate(20, seed=seed + 1000).mean())
        if earned >= LEVEL:
            break
    megabytes = size(agent._settled()) / 1e6
    return {"samples": taken, "return": earned, "megabytes": megabytes, "seconds": seconds}


def write_dimensions(store: str | os.PathLike | None = None) -> Path:
    """Train all agents and write the file, with where it comes from."""
    rows = [{"observations": 3 + k} | cost(k, seed) for k in DUMMIES for seed in range(AGENTS)]
    return write_kept("dimensions", store, rows=rows)


def load_dimensions(store: str | os.PathLike | None = None) -> pd.DataFrame:
    """Return the stored agents, one row each."""
    return load_kept("dimensions", store)


if __name__ == "__main__":
    print(write_dimensions(*sys.argv[1:2]))
