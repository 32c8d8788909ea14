"""Chapter 7, and the explorer: agents trained again, small trees, random trees and stored networks."""

import json
from typing import NamedTuple

import numpy as np

from spaql.paper.engine.algorithms import train
from spaql.paper.engine.job import job_of
from spaql.paper.engine.provenance import results
from spaql.paper.engine.store import best
from spaql.policies.play import first_states, run_policy
from spaql.systems import make_env, solved_at, space_of

SEARCH = {"leaves": 24, "proposals": 100, "seed": 0}  # of the small trees that the book shows


def best_agent(agents, system, algorithm):
    """Return the agent of an algorithm that reported the highest reward, trained again."""
    return train(job_of(best(agents.query("system == @system and algorithm == @algorithm"))))[0]


def small_tree(policy, system, **options):
    """Return smaller trees that earn as much as a policy, or that solve the system: the same on every machine."""
    target = solved_at(system) if "CartPole" in system else None
    return policy.simplify(target=target, seconds=3600, progress_bar=False, **SEARCH | options)


def rate(policy, system, episodes=1000, seed=0):
    """Play a policy on the fresh episodes by which `simplify` reports: chapter and explorer quote one return."""
    env, stream = make_env(system), np.random.SeedSequence(seed).spawn(4)[2]
    starts = first_states(env, space_of(env), np.random.default_rng(stream), episodes)
    return run_policy(policy, env, starts, np.random.default_rng(0))


class Network(NamedTuple):
    """A policy network that plays without torch: TRPO's, with tanh between its layers, or SAC's, which is `squashed`.

    SAC's has ReLU between them; the tanh of its outputs, from -1 to 1, is spread over the bounds.
    """

    kernels: tuple[np.ndarray, ...]  # of each layer, one row per input
    biases: tuple[np.ndarray, ...]
    low: np.ndarray  # bounds of the actions
    high: np.ndarray
    squashed: bool

    @property
    def weights(self):
        """How many numbers the actions are computed with."""
        return sum(array.size for array in (*self.kernels, *self.biases))

    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        """Return the most likely action for an observation or an array of them, and None (SB3's protocol)."""
        outputs = np.asarray(observation, np.float32)
        last = len(self.kernels) - 1
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            outputs = outputs @ kernel + bias
            if i < last:
                outputs = np.maximum(outputs, 0) if self.squashed else np.tanh(outputs)
        if self.squashed:
            outputs = self.low + (np.tanh(outputs) + 1) * (self.high - self.low) / 2
        return (np.clip(outputs, self.low, self.high) if self.low.size else outputs.argmax(axis=-1)), None


def load_network(system, algorithm):
    """Return the stored network of an algorithm on a system: of TRPO's best agent, or of SAC's first on Pendulum."""
    with np.load(results() / "policies" / f"{system}-{algorithm}.npz") as file:  # without pickles
        header = json.loads(file["header"].tobytes())
        kernels, biases = (tuple(file[f"{name}_{i}"] for i in range(header["layers"])) for name in ("kernel", "bias"))
        return Network(kernels, biases, file["low"], file["high"], header.get("squashed", False))
