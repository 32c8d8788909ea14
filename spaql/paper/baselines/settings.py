"""Settings of what the algorithms are compared with: networks, and the grids of the limit.

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
from pathlib import Path
from typing import Any

from spaql.systems import episode_limit, make_env

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


def settings_of(algorithm: str, system: str) -> dict[str, Any]:
    """Return the settings of a network on a system, or say that it cannot run there."""
    if algorithm == "TRPO":
        return whole_episodes(episode_limit(make_env(system)) or SAMPLES) | GARAGE
    if algorithm not in ZOO.get(system, {}):
        known = ", ".join(name for name in ZOO if algorithm in ZOO[name])
        raise ValueError(f"settings of {algorithm} are known for {known}, not for {system}")
    return {name: setting for name, setting in ZOO[system][algorithm].items() if name != "samples"}


def whole_episodes(limit: int) -> dict[str, int]:
    """Return how an iteration's samples are collected: of each environment as many steps as an episode may have.

    These are rounded up to a divisor of the samples; there is at least one environment.
    """
    steps = next((steps for steps in range(limit, SAMPLES) if SAMPLES % steps == 0), SAMPLES)
    return {"n_envs": SAMPLES // steps, "n_steps": steps}


# The grids of the limit.  CartPole needs none: its limit is the number of steps.
GRIDS: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {"nodes": (201, 201), "actions": 21},
    "MountainCar-v0": {"nodes": (401, 401)},
    "MountainCarContinuous-v0": {"nodes": (201, 201), "actions": 21},
    "Acrobot-v1": {
        "nodes": (45, 45, 41, 41),
        "ends": {"theta_1_dot": 7.0, "theta_2_dot": 14.0},
        "stored": 1,
        "depth": 5,
    },
}
