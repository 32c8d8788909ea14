"""Settings of the networks: the baseline the paper compares with, and what a user would pick today.

"TRPO tuned", SAC, PPO and DQN have the settings that rl-baselines3-zoo publishes for a task (see zoo.toml).  The paper
used Garage's TRPO with the settings of Garage's examples, 100 iterations of 4,000 samples.  "TRPO" comes as near to
them as Stable-Baselines3 allows, on every system; where it differs from Garage:

- Garage's baseline is linear in the observation, its square and powers of time; SB3 trains a critic network.
- The trust region bounds KL(old ‖ new) in Garage, KL(new ‖ old) in SB3.
- Garage collects whole episodes; SB3 a fixed number of steps of each environment, here 200 of 20, which are whole
  episodes of Pendulum but not of CartPole (longer episodes get more steps of fewer environments).
- At a time limit SB3 adds the critic's value of the last state to the last reward; Garage adds nothing.
- Garage centres the advantages; SB3, by default, also divides them by their standard deviation, which scales the
  gradient but not the step that the trust region allows.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spaql.paper.runs.dummies import DUMMIES
from spaql.systems import compiled_world, episode_limit, make_env, space_of

SAMPLES = 4000  # an iteration of the paper's

GARAGE = {
    "batch_size": 200,  # of the critic, whose training Garage has no counterpart of; it divides the 4,000 samples
    "gamma": 0.99,
    "gae_lambda": 0.98,
    "target_kl": 0.01,
    "cg_max_steps": 10,
    "cg_damping": 1e-5,
    "line_search_max_iter": 15,
    "line_search_shrinking_factor": 0.8,
    "policy_kwargs": {"net_arch": {"pi": [32, 32], "vf": [32, 32]}, "log_std_init": 0.0},
}

ZOO: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8"))
ZOO |= {system: ZOO[known["as"]] for system, known in ZOO.items() if "as" in known}
ZOO |= dict.fromkeys(DUMMIES, ZOO["Pendulum-v1"])

SB3_SAMPLES: dict[tuple[str, str], int] = {  # that SAC, PPO and DQN train on
    (algorithm, system): settings["samples"]
    for system, known in ZOO.items()
    for algorithm, settings in known.items()
    if "samples" in settings
}


def whole_episodes(limit: int) -> dict[str, int]:
    """Return how an iteration's samples are collected: of each environment as many steps as an episode may have.

    These are rounded up to a divisor of the samples; there is at least one environment.
    """
    steps = next((steps for steps in range(limit, SAMPLES) if SAMPLES % steps == 0), SAMPLES)
    return {"n_envs": SAMPLES // steps, "n_steps": steps}


def settings_of(algorithm: str, system: str) -> dict[str, Any]:
    """Return the settings of a network on a system, or say that it cannot run there."""
    env = make_env(system)
    if compiled_world(env, space_of(env)) is None or (limit := episode_limit(env)) is None:
        raise ValueError(f"{algorithm} runs on registered systems whose episodes end, and {system} is none")
    if algorithm == "TRPO":
        return whole_episodes(limit) | GARAGE
    if algorithm not in ZOO.get(system, {}):
        known = ", ".join(name for name in ZOO if algorithm in ZOO[name] and name not in DUMMIES)
        raise ValueError(f"settings of {algorithm} are known for {known}, not for {system}")
    return {name: setting for name, setting in ZOO[system][algorithm].items() if name != "samples"}


def check(algorithm: str, system: str, parameters: Mapping[str, Any]) -> None:
    """Raise an error if a network cannot run on a system."""
    settings_of(algorithm, system)
