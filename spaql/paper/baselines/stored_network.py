"""The stored policy networks of TRPO and SAC as plain arrays, which play without torch."""

import json
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spaql.paper.engine.provenance import results


class Network(NamedTuple):
    """A policy network: TRPO's, with tanh between its layers, or SAC's, with ReLU between them and tanh at the end.

    Attributes
    ----------
    kernels, biases
        A matrix with one row per input, and a vector, for each layer.
    low, high
        Bounds of the continuous actions; empty for discrete ones, for each of which the network has an output.
    squashed
        True for SAC's: the outputs' tanh, from -1 to 1, is spread over the bounds.
    """

    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray
    squashed: bool

    @property
    def weights(self) -> int:
        """How many numbers the actions are computed with."""
        return sum(array.size for array in (*self.kernels, *self.biases))

    def predict(
        self, observation: ArrayLike, state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
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


def load_network(system: str, algorithm: str) -> Network:
    """Return the stored network of an algorithm on a system: of TRPO's best agent there, or of SAC's first on Pendulum.

    >>> load_network("CartPole-v0", "TRPO").weights
    1282
    """
    path = results() / "policies" / f"{system}-{algorithm}.npz"
    with np.load(path) as file:  # without pickles
        header = json.loads(file["header"].tobytes())
        kernels, biases = (tuple(file[f"{name}_{i}"] for i in range(header["layers"])) for name in ("kernel", "bias"))
        return Network(kernels, biases, file["low"], file["high"], header.get("squashed", False))
