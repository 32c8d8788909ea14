"""Settings of the networks.

"TRPO tuned", SAC, PPO and DQN have the settings that rl-baselines3-zoo publishes for a task (see zoo.toml).  The paper
used Garage's TRPO with the settings of Garage's examples, 100 iterations of 4,000 samples.  "TRPO" comes as near to
them as Stable-Baselines3 allows, on every system; book/protocol.md says where it differs.
"""

import tomllib
from pathlib import Path

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

ZOO = tomllib.loads(Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8"))
ZOO |= {system: ZOO[known["as"]] for system, known in ZOO.items() if "as" in known}


def settings_of(algorithm, system):
    """Return the settings of a network on a system, or say that it cannot run there."""
    if algorithm == "TRPO":
        return whole_episodes(episode_limit(make_env(system)) or SAMPLES) | GARAGE
    if algorithm not in ZOO.get(system, {}):
        known = ", ".join(name for name in ZOO if algorithm in ZOO[name])
        raise ValueError(f"settings of {algorithm} are known for {known}, not for {system}")
    return {name: setting for name, setting in ZOO[system][algorithm].items() if name != "samples"}


def whole_episodes(limit):
    """Return how an iteration's samples are collected: of each environment as many steps as an episode may have.

    These are rounded up to a divisor of the samples; there is at least one environment.
    """
    steps = next((steps for steps in range(limit, SAMPLES) if SAMPLES % steps == 0), SAMPLES)
    return {"n_envs": SAMPLES // steps, "n_steps": steps}
