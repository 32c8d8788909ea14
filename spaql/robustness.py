"""Policies under changed masses, lengths and noise: trees beside the network of a trained TRPO agent.

The network is kept as plain arrays, so that neither torch nor minutes of training are needed to play it.
"""

import itertools
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from spaql import files, results
from spaql.agents import check_integer, check_number, check_seed, make_env
from spaql.compiling import entry, inlined
from spaql.jobs import Job
from spaql.learning import Rules
from spaql.statistics import paper_interval
from spaql.systems import (
    Pendulum,
    cartpole_observe,
    cartpole_reset,
    cartpole_step,
    draw_starts,
    episode_limit,
    make_space,
    paper_family,
    pendulum_observe,
    pendulum_reset,
    pendulum_step,
)
from spaql.trees import Tree, compiled_world, run_tree

log = logging.getLogger(__name__)
FORMAT, VERSION = "policy network", 1


# ---------------------------------------------------------------------------------------------------------------------
# The network


class Network(NamedTuple):
    """The policy network of a TRPO agent: layers with tanh between them.

    Attributes
    ----------
    kernels
        A matrix a layer, a row an input.
    biases
        A vector a layer.
    low, high
        Bounds of the continuous actions; empty for discrete ones, of which the network has an output each.
    """

    kernels: tuple[np.ndarray, ...]
    biases: tuple[np.ndarray, ...]
    low: np.ndarray
    high: np.ndarray

    @property
    def weights(self) -> int:
        """How many numbers the actions are computed with."""
        return sum(array.size for array in (*self.kernels, *self.biases))

    def predict(
        self, observation: ArrayLike, state: None = None, episode_start: None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """Return the action for an observation or an array of them, and None: Stable-Baselines3's protocol.

        It is the most likely one (the mean, clipped to its bounds, or the action with the largest output), whatever the
        other arguments.
        """
        outputs = np.asarray(observation, np.float32)
        if np.isnan(outputs).any():
            raise ValueError("the observations contain NaN; expected numbers")
        last = len(self.kernels) - 1
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            outputs = outputs @ kernel + bias
            outputs = outputs if i == last else np.tanh(outputs)
        return (np.clip(outputs, self.low, self.high) if self.low.size else outputs.argmax(axis=-1)), None


def network_of(agent: Any) -> Network:
    """Return the policy network of an agent of Stable-Baselines3 with an `MlpPolicy`."""
    hidden = list(agent.policy.mlp_extractor.policy_net)[::2]  # every other one is a tanh
    arrays = [
        {name: array.detach().numpy().copy() for name, array in layer.named_parameters()}
        for layer in (*hidden, agent.policy.action_net)
    ]
    bounds = [getattr(agent.action_space, name, np.zeros(0, np.float32)) for name in ("low", "high")]
    kernels = tuple(np.ascontiguousarray(layer["weight"].T) for layer in arrays)
    return Network(kernels, tuple(layer["bias"] for layer in arrays), *bounds)


def train(job: Job) -> tuple[Network, np.ndarray]:
    """Return the network of a TRPO agent and its reward after each iteration: the training of `trpo.compute`."""
    from spaql import trpo

    agent, returns = trpo.train(job)
    return network_of(agent), np.array(returns.means)


def trpo_network(job: Job, store: str | os.PathLike | None = "") -> Network:
    """Return the policy network of a TRPO agent: loaded if stored, otherwise trained again from its seeds and stored.

    Records hold no networks, and training one takes minutes and sb3-contrib.

    Parameters
    ----------
    job
        The agent, one of `experiments.paper_jobs("trpo")`.  One a system and algorithm is stored; for another train
        without a store.
    store
        The folder of stored results; the repository's if not given, none if None.  If it has the agent's record, the
        rewards of training should be the record's bit for bit; a warning says if this machine computes otherwise (and
        then this is another agent of the same kind).

    Examples
    --------
    >>> records = run(job for job in paper_jobs("trpo") if job.algorithm == "TRPO" and job.system == "CartPole-v0")
    >>> trpo_network(best(records).job).weights
    1282
    """
    if job.algorithm not in results.TRPO:
        raise ValueError(f"algorithm must be one of {', '.join(results.TRPO)}, not {job.algorithm!r}")
    if store is None:
        return train(job)[0]
    store = Path(store) if store else results.default_store()
    path = network_path(store, job)
    try:
        return load_network(path, job)
    except FileNotFoundError:
        pass
    except results.Stale as stale:
        log.warning("%s", stale)
    network, rewards = train(job)
    try:
        same = bool(np.array_equal(results.load(store, job).history["rewards"], rewards))
    except (FileNotFoundError, results.Stale):
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
        "job": job._asdict() | {"rules": job.rules._asdict()},
        "layers": len(network.kernels),
        "rewards_are_the_records_bit_for_bit": same,
        "provenance": {"code": results.code(job)} | results.provenance(),
    }
    arrays = {"low": network.low, "high": network.high}
    for i, (kernel, bias) in enumerate(zip(network.kernels, network.biases, strict=True)):
        arrays |= {f"kernel_{i}": kernel, f"bias_{i}": bias}
    files.write(path, header, arrays)


def load_network(path: Path, job: Job) -> Network:
    """Return the stored network of this job and code, or raise FileNotFoundError, `Stale` or `Damaged`."""
    try:
        header, arrays = files.read(path, FORMAT, VERSION)
        stored = Job(**header["job"] | {"rules": Rules(**header["job"]["rules"])})
        computed = header["provenance"]["code"]
        layers = [
            tuple(files.check_array(arrays, f"{name}_{i}", np.float32) for i in range(header["layers"]))
            for name in ("kernel", "bias")
        ]
        network = Network(*layers, *(files.check_array(arrays, name, np.float32) for name in ("low", "high")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise results.Damaged(f"{path} is damaged: {error}") from error
    if stored != job:
        raise results.Damaged(f"{path} holds another job: {stored}; with store=None this one is trained")
    if computed != results.code(job):
        raise results.Stale(f"{path} was computed by code {computed}, this is {results.code(job)}")
    return network


# ---------------------------------------------------------------------------------------------------------------------
# Playing episodes


@inlined
def advance(reset, step, observe, system, states, starts, actions, observations, rewards, over):
    """Begin an episode from each row of `starts`; if it has none, take a step of each episode that is not over."""
    x = np.empty(observations.shape[1])
    for i in range(len(states)):
        if len(starts):
            reset(system, states[i], starts[i], x)
        elif not over[i]:
            reward, over[i] = step(system, states[i], actions[i], x)
            rewards[i] += reward
        observe(system, states[i], observations[i])


@entry
def advance_pendulums(system, states, starts, actions, observations, rewards, over):
    """`advance` on compiled pendulums."""
    advance(
        pendulum_reset, pendulum_step, pendulum_observe, system, states, starts, actions, observations, rewards, over
    )  # fmt: skip


@entry
def advance_cartpoles(system, states, starts, actions, observations, rewards, over):
    """`advance` on compiled carts."""
    advance(
        cartpole_reset, cartpole_step, cartpole_observe, system, states, starts, actions, observations, rewards, over
    )  # fmt: skip


def run_network(
    network: Network,
    env: gym.Env,
    starts: np.ndarray,
    rng: np.random.Generator,
    noise: ArrayLike = 0.0,
    horizon: int = 200,
) -> np.ndarray:
    """Return the sums of rewards of an episode from each row of `starts`: the counterpart of `trees.run_tree`."""
    space = make_space(env)
    world = compiled_world(env, space)
    kernel = advance_pendulums if isinstance(world, Pendulum) else advance_cartpoles
    count, dimensions = len(starts), len(space.centre)
    noise = np.array(np.broadcast_to(np.asarray(noise, float), dimensions))
    states, observations = np.empty((count, 3 if isinstance(world, Pendulum) else 4)), np.empty((count, dimensions))
    actions, rewards, over = np.zeros((count, 1)), np.zeros(count), np.zeros(count, bool)
    kernel(world, states, starts, actions, observations, rewards, over)
    for _ in range(min(horizon, episode_limit(env) or horizon)):
        if over.all():
            break
        if noise.any():
            observations += noise * rng.standard_normal(observations.shape)
        actions[:] = network.predict(observations)[0].reshape(count, -1)
        if not space.actions:  # the compiled systems take them in the standard space
            actions[:] = (actions - space.action_centre) / space.action_half
        kernel(world, states, starts[:0], actions, observations, rewards, over)
    return rewards


# ---------------------------------------------------------------------------------------------------------------------
# Changes


def changed(system: str, mass: float = 1.0, length: float = 1.0) -> gym.Env:
    """Return one of the paper's systems with another pole or pendulum.

    Parameters
    ----------
    system
        A Gymnasium id.
    mass, length
        Factors on the mass and on the length of the pole (the cart stays the same) or of the pendulum.
    """
    env = make_env(system)
    mass, length = check_number("mass", mass, above=0.0), check_number("length", length, above=0.0)
    inner = env.unwrapped
    family = paper_family(env)
    if family == "Pendulum":
        inner.m *= mass
        inner.l *= length
    elif family == "CartPole":
        inner.masspole *= mass
        inner.length *= length
        # Gymnasium computes these once, when it makes the environment.
        inner.total_mass = inner.masspole + inner.masscart
        inner.polemass_length = inner.masspole * inner.length
    else:
        raise ValueError(f"only the paper's systems have a pole or pendulum to change, not {system}")
    return env


def robustness(
    policies: Mapping[str, Tree | Network],
    system: str,
    factors: Iterable[float] = (0.5, 0.75, 1, 1.5, 2),
    noises: Iterable[float] = (0, 0.01, 0.02, 0.05, 0.1, 0.2),
    episodes: int = 1000,
    seed: int | np.random.SeedSequence = 0,
) -> pd.DataFrame:
    """Return the returns of policies on a system that is not quite the one they were made for.

    All policies start from the same states, and act without chance: a tree takes the middle action of a leaf, a
    network its most likely one.

    Parameters
    ----------
    policies
        Trees and networks, by name.
    system
        The Gymnasium id of the system they are for.
    factors
        By which the mass and, separately, the length of the pole or pendulum are multiplied.
    noises
        Standard deviations of the Gaussian noise added to what the policy sees of every observed variable at every
        step, in the variable's own unit: 0.1 is 0.1 m, 0.1 m/s, 0.1 rad and 0.1 rad/s for the cart and its pole; 0.1
        for sine and cosine and 0.1 rad/s for the pendulum.
    episodes
        For each number.
    seed
        Of the first states and of the noise.

    Returns
    -------
    frame
        A row a policy, change ("mass", "length", "noise") and value, with the mean return and the ends of its interval
        (`mean`, `low`, `high`).

    Examples
    --------
    >>> policy = agent.policy
    >>> policies = {"full": policy.tree(), "small": policy.simplify(target=195).tree, "TRPO": trpo_network(job)}
    >>> robustness(policies, "CartPole-v0").pivot(index=["change", "value"], columns="policy", values="mean")
    """
    usual = make_env(system)
    first, noisy = check_seed(seed).spawn(2)
    world = compiled_world(usual, make_space(usual))
    starts = draw_starts(world, np.random.default_rng(first), check_integer("episodes", episodes, at_least=2))
    factored = list(itertools.product(("mass", "length"), factors))
    cases = [(change, factor, changed(system, **{change: factor}), 0.0) for change, factor in factored]
    cases += [("noise", noise, usual, check_number("noise", noise, at_least=0.0)) for noise in noises]
    rows = []
    for name, policy in policies.items():
        for change, value, env, noise in cases:
            rng = np.random.default_rng(noisy)
            if isinstance(policy, Network):
                rewards = run_network(policy, env, starts, rng, noise)
            else:
                rewards = run_tree(policy, env, starts, rng, noise=noise).rewards
            rows.append((name, change, float(value), *map(float, paper_interval(rewards))))
    return pd.DataFrame(rows, columns=["policy", "change", "value", "mean", "low", "high"])
