"""The baseline the paper compares with: trust region policy optimisation, from sb3-contrib.

The paper used Garage's TRPO with the settings of Garage's examples, 100 iterations of 4,000 samples.  "TRPO" comes as
near to them as Stable-Baselines3 allows, on every system; "TRPO tuned" has the settings that rl-baselines3-zoo
publishes for a task, with at most as many samples.  Where the first differs from Garage:

- Garage's baseline is linear in the observation, its square and powers of time; SB3 trains a critic network.
- The trust region bounds KL(old ‖ new) in Garage, KL(new ‖ old) in SB3.
- Garage collects whole episodes; SB3 a fixed number of steps of each environment, here 200 of 20, which are whole
  episodes of Pendulum but not of CartPole (longer episodes get more steps of fewer environments).
- At a time limit SB3 adds the critic's value of the last state to the last reward; Garage adds nothing.
- Garage centres the advantages; SB3, by default, also divides them by their standard deviation, which scales the
  gradient but not the step that the trust region allows.
"""

from collections.abc import Mapping
from typing import Any

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

CARTPOLE = {
    "n_envs": 2,
    "n_steps": 512,
    "batch_size": 512,
    "cg_damping": 1e-3,
    "gae_lambda": 0.98,
    "gamma": 0.99,
    "learning_rate": 1e-3,
    "n_critic_updates": 20,
}

# What rl-baselines3-zoo publishes in hyperparams/trpo.yml, without the number of samples.  With "normalize",
# observations and rewards are divided by their running standard deviation (SB3's VecNormalize) while it trains.
TUNED: dict[str, dict[str, Any]] = {
    "Pendulum-v1": {
        "n_envs": 2,
        "n_steps": 1024,
        "gamma": 0.9,
        "n_critic_updates": 15,
        "use_sde": True,
        "sde_sample_freq": 4,
    },
    "CartPole-v0": CARTPOLE,  # which are CartPole-v1's
    "CartPole-v1": CARTPOLE,
    "Acrobot-v1": {"normalize": True, "n_envs": 2, "n_steps": 1024},
    "MountainCar-v0": {"normalize": True, "n_envs": 2, "n_steps": 1024, "n_critic_updates": 20},
    "MountainCarContinuous-v0": {
        "normalize": True,
        "n_envs": 2,
        "n_steps": 2048,  # sb3-contrib's default
        "use_sde": True,
        "sde_sample_freq": 4,
    },
}


def whole_episodes(limit: int) -> dict[str, int]:
    """Return how an iteration's samples are collected: of each environment as many steps as an episode may have.

    These are rounded up to a divisor of the samples; there is at least one environment.
    """
    steps = next((steps for steps in range(limit, SAMPLES) if SAMPLES % steps == 0), SAMPLES)
    return {"n_envs": SAMPLES // steps, "n_steps": steps}


def settings_of(algorithm: str, system: str, limit: int) -> dict[str, Any]:
    """Return the settings of "TRPO" or "TRPO tuned" on a system whose episodes have at most `limit` steps."""
    if algorithm == "TRPO":
        return whole_episodes(limit) | GARAGE
    if system not in TUNED:
        raise ValueError(f"rl-baselines3-zoo publishes settings of TRPO for {', '.join(TUNED)}, not for {system}")
    return TUNED[system]


def check(algorithm: str, system: str, parameters: Mapping[str, Any]) -> None:
    """Raise an error if TRPO cannot run on a system."""
    env = make_env(system)
    if compiled_world(env, space_of(env)) is None or (limit := episode_limit(env)) is None:
        raise ValueError(f"TRPO runs on registered systems whose episodes end, and {system} is none")
    settings_of(algorithm, system, limit)
