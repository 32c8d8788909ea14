"""The policy network of a TRPO or SAC agent as plain arrays, which need neither torch nor training to play."""

import logging
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spaql import archive
from spaql.paper.runs import provenance
from spaql.paper.runs.errors import Damaged, Stale, reading
from spaql.paper.runs.job import Job
from spaql.paper.runs.store import load_record

log = logging.getLogger(__name__)

FORMAT, VERSION = "policy network", 1
CLIP = 10.0  # how many standard deviations from the mean a normalised observation is at most, as in SB3


class Network(NamedTuple):
    """A policy network: TRPO's, with tanh between its layers, or SAC's, with ReLU between them and tanh at the end.

    Attributes
    ----------
    kernels
        One matrix per layer, with one row per input.
    biases
        One vector per layer.
    low, high
        Bounds of the continuous actions; empty for discrete ones, for each of which the network has an output.
    mean, deviation
        Of the observations it trained on, if it sees them normalised; empty if it sees them as they are.
    squashed
        True for SAC's: the outputs' tanh, from -1 to 1, is spread over the bounds.
    """

    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray
    mean: np.ndarray = np.zeros(0)
    deviation: np.ndarray = np.zeros(0)
    squashed: bool = False

    @property
    def weights(self) -> int:
        """How many numbers the actions are computed with."""
        return sum(array.size for array in (*self.kernels, *self.biases, self.mean, self.deviation))

    def predict(
        self, observation: ArrayLike, state: None = None, episode_start: None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """Return the action for an observation or an array of them, and None: Stable-Baselines3's protocol.

        It is the greedy one (the mean, within its bounds, or the action with the largest output), whatever the other
        arguments.
        """
        outputs = np.asarray(observation, np.float32)
        if np.isnan(outputs).any():
            raise ValueError("the observations contain NaN; expected numbers")
        if self.mean.size:
            outputs = np.clip((outputs - self.mean) / self.deviation, -CLIP, CLIP).astype(np.float32)
        last = len(self.kernels) - 1
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            outputs = outputs @ kernel + bias
            if i < last:
                outputs = np.maximum(outputs, 0) if self.squashed else np.tanh(outputs)
        if self.squashed:
            outputs = self.low + (np.tanh(outputs) + 1) * (self.high - self.low) / 2
        return (np.clip(outputs, self.low, self.high) if self.low.size else outputs.argmax(axis=-1)), None


def network_of(agent: Any) -> Network:
    """Return the policy network of an agent of Stable-Baselines3 with an `MlpPolicy`."""
    actor = getattr(agent.policy, "actor", None)  # SAC's
    if actor is None:
        hidden, last = agent.policy.mlp_extractor.policy_net, agent.policy.action_net
    else:
        hidden, last = actor.latent_pi, actor.mu
    arrays = [
        {name: array.detach().numpy().copy() for name, array in layer.named_parameters()}
        for layer in (*list(hidden)[::2], last)  # every other one is a tanh or ReLU
    ]
    low, high = (getattr(agent.action_space, name, np.zeros(0, np.float32)) for name in ("low", "high"))
    kernels = tuple(np.ascontiguousarray(layer["weight"].T) for layer in arrays)
    network = Network(kernels, tuple(layer["bias"] for layer in arrays), low, high, squashed=actor is not None)
    if (normal := agent.get_vec_normalize_env()) is None:
        return network
    deviation = np.sqrt(normal.obs_rms.var + normal.epsilon)
    return network._replace(mean=normal.obs_rms.mean.copy(), deviation=deviation)


def train_network(job: Job) -> tuple[Network, np.ndarray]:
    """Return an agent's network and its reward after each iteration, from the training that its record comes from."""
    from spaql.paper.runs.sb3 import train

    agent, met = train(job)
    return network_of(agent), np.array(met.means)


def policy_network(job: Job, store: str | os.PathLike | None = "") -> Network:
    """Return the policy network of an agent: loaded if stored, otherwise trained again from its seeds and stored.

    Records hold no networks, and training one takes minutes and sb3-contrib.

    Parameters
    ----------
    job
        The agent, of TRPO in `studies.study("trpo")` or of SAC in `studies.study("sb3")`.  One per system and
        algorithm is stored; for another train without a store.
    store
        The folder of stored results; the repository's if not given, none if None.  If it has the agent's record, the
        rewards of training should be the record's bit for bit; a warning says if this machine computes otherwise (and
        then this is another agent of the same kind).

    Examples
    --------
    >>> records = run(job for job in study("trpo") if job.algorithm == "TRPO" and job.system == "CartPole-v0")
    >>> policy_network(best(records).job).weights
    1282
    """
    if job.algorithm not in (known := (*provenance.TRPO, "SAC")):
        raise ValueError(f"algorithm must be one of {', '.join(known)}, not {job.algorithm!r}")
    if store is None:
        return train_network(job)[0]
    store = Path(store) if store else provenance.default_store()
    path = network_path(store, job)
    try:
        return load_network(path, job)
    except FileNotFoundError:
        pass
    except Stale as stale:
        log.warning("%s", stale)
    network, rewards = train_network(job)
    try:
        same = bool(np.array_equal(load_record(store, job).history["rewards"], rewards))
    except (FileNotFoundError, Stale):
        same = None
    if same is False:
        log.warning("agent %d of %s on %s is not the stored one to the last bit", job.agent, job.algorithm, job.system)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_network(path, job, network, same)
    return network


def network_path(store: Path, job: Job) -> Path:
    """Return where the network of an algorithm's agent on a system is kept."""
    return Path(store) / "policies" / f"{job.system.rpartition('/')[2]}-{job.algorithm}.npz"


def save_network(path: Path, job: Job, network: Network, same: bool | None) -> None:
    """Write a network; `same` says whether its training gave the stored record's rewards, None if there is none."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "job": job.named(),
        "layers": len(network.kernels),
        "squashed": network.squashed,
        "rewards_are_the_records_bit_for_bit": same,
        "provenance": provenance.origin_of(job),
    }
    arrays = {"low": network.low, "high": network.high}
    if network.mean.size:
        arrays |= {"mean": network.mean, "deviation": network.deviation}
    for i, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
        arrays |= {f"kernel_{i}": kernel, f"bias_{i}": bias}
    archive.write(path, header, arrays)


def load_network(path: Path, job: Job) -> Network:
    """Return the stored network of this job and code, or raise FileNotFoundError, `Stale` or `Damaged`."""
    with reading(path):
        header, arrays = archive.read(path, FORMAT, VERSION)
        stored = Job.parse(header["job"])
        computed = header["provenance"].get("numerics", 1)
        kernels, biases = (
            tuple(archive.check_array(arrays, f"{name}_{i}", np.float32) for i in range(header["layers"]))
            for name in ("kernel", "bias")
        )
        low, high = (archive.check_array(arrays, name, np.float32) for name in ("low", "high"))
        moments = {name: archive.check_array(arrays, name, float) for name in ("mean", "deviation") if name in arrays}
        network = Network(kernels, biases, low, high, squashed=header.get("squashed", False), **moments)
    if stored != job:
        raise Damaged(f"{path} holds another job: {stored}; with store=None this one is trained")
    if computed != provenance.numerics(job):
        raise Stale(f"{path} has numbers of version {computed}, this code computes version {provenance.numerics(job)}")
    return network
