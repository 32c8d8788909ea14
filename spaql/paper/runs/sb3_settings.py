"""What a user would pick today: SAC, PPO and DQN of Stable-Baselines3, with the settings of rl-baselines3-zoo.

`CartPole-v1`'s are used for `CartPole-v0` too, which is the same task with 200 steps instead of 500.  Each trains for
as many samples as the zoo gives it, but at most 100,000; a system that the zoo does not have gets
Stable-Baselines3's defaults, as does what is not named.  With
"normalize", observations and rewards are divided by their running standard deviation while it trains (VecNormalize).
"""

from collections.abc import Mapping
from typing import Any

PPO_CARTPOLE = {
    "n_envs": 8,
    "n_steps": 32,
    "batch_size": 256,
    "gae_lambda": 0.8,
    "gamma": 0.98,
    "n_epochs": 20,
    "ent_coef": 0.0,
    "learning_rate": "lin_0.001",  # falls to zero in a straight line, as the zoo writes it
    "clip_range": "lin_0.2",
}
DQN_CARTPOLE = {
    "learning_rate": 2.3e-3,
    "batch_size": 64,
    "buffer_size": 100_000,
    "learning_starts": 1000,
    "gamma": 0.99,
    "target_update_interval": 10,
    "train_freq": 256,
    "gradient_steps": 128,
    "exploration_fraction": 0.16,
    "exploration_final_eps": 0.04,
    "policy_kwargs": {"net_arch": [256, 256]},
}

SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "SAC": {
        "Pendulum-v1": {"learning_rate": 1e-3},
        "MountainCarContinuous-v0": {
            "learning_rate": 3e-4,
            "buffer_size": 50_000,
            "batch_size": 512,
            "ent_coef": 0.1,
            "train_freq": 32,
            "gradient_steps": 32,
            "gamma": 0.9999,
            "tau": 0.01,
            "learning_starts": 0,
            "use_sde": True,
            "policy_kwargs": {"log_std_init": -3.67, "net_arch": [64, 64]},
        },
    },
    "PPO": {
        "Pendulum-v1": {
            "n_envs": 4,
            "n_steps": 1024,
            "gae_lambda": 0.95,
            "gamma": 0.9,
            "n_epochs": 10,
            "ent_coef": 0.0,
            "learning_rate": 1e-3,
            "clip_range": 0.2,
            "use_sde": True,
            "sde_sample_freq": 4,
        },
        "CartPole-v0": PPO_CARTPOLE,
        "CartPole-v1": PPO_CARTPOLE,
        "MountainCar-v0": {
            "normalize": True,
            "n_envs": 16,
            "n_steps": 16,
            "gae_lambda": 0.98,
            "gamma": 0.99,
            "n_epochs": 4,
            "ent_coef": 0.0,
        },
        "MountainCarContinuous-v0": {
            "normalize": True,
            "n_envs": 1,
            "n_steps": 8,
            "batch_size": 256,  # of which the zoo's own n_steps fill 8
            "gae_lambda": 0.9,
            "gamma": 0.9999,
            "n_epochs": 10,
            "ent_coef": 0.00429,
            "learning_rate": 7.77e-5,
            "clip_range": 0.1,
            "max_grad_norm": 5,
            "vf_coef": 0.19,
            "use_sde": True,
            "policy_kwargs": {"log_std_init": -3.29, "ortho_init": False},
        },
        "Acrobot-v1": {
            "normalize": True,
            "n_envs": 16,
            "n_steps": 256,
            "gae_lambda": 0.94,
            "gamma": 0.99,
            "n_epochs": 4,
            "ent_coef": 0.0,
        },
        "spaql/Quadrotor-v0": {},
        "spaql/TwoPoles-v0": {},
    },
    "DQN": {
        "CartPole-v0": DQN_CARTPOLE,
        "CartPole-v1": DQN_CARTPOLE,
        "MountainCar-v0": {
            "learning_rate": 4e-3,
            "batch_size": 128,
            "buffer_size": 10_000,
            "learning_starts": 1000,
            "gamma": 0.98,
            "target_update_interval": 600,
            "train_freq": 16,
            "gradient_steps": 8,
            "exploration_fraction": 0.2,
            "exploration_final_eps": 0.07,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
        "Acrobot-v1": {
            "learning_rate": 6.3e-4,
            "batch_size": 128,
            "buffer_size": 50_000,
            "learning_starts": 0,
            "gamma": 0.99,
            "target_update_interval": 250,
            "train_freq": 4,
            "gradient_steps": -1,
            "exploration_fraction": 0.12,
            "exploration_final_eps": 0.1,
            "policy_kwargs": {"net_arch": [256, 256]},
        },
    },
}

SAMPLES = {  # that they train for
    ("SAC", "Pendulum-v1"): 20_000,
    ("PPO", "Pendulum-v1"): 100_000,
    ("PPO", "CartPole-v0"): 100_000,
    ("DQN", "CartPole-v0"): 50_000,
    ("PPO", "CartPole-v1"): 100_000,
    ("DQN", "CartPole-v1"): 50_000,
    ("PPO", "MountainCar-v0"): 100_000,  # the zoo has 1,000,000
    ("DQN", "MountainCar-v0"): 100_000,  # 120,000
    ("PPO", "Acrobot-v1"): 100_000,  # 1,000,000
    ("DQN", "Acrobot-v1"): 100_000,
    ("PPO", "MountainCarContinuous-v0"): 20_000,
    ("SAC", "MountainCarContinuous-v0"): 50_000,
    ("PPO", "spaql/Quadrotor-v0"): 200_000,  # the zoo has neither of these
    ("PPO", "spaql/TwoPoles-v0"): 200_000,
}


def check(algorithm: str, system: str, parameters: Mapping[str, Any]) -> None:
    """Raise an error if the zoo has no settings for an algorithm on a system."""
    if (algorithm, system) not in SAMPLES:
        raise ValueError(f"rl-baselines3-zoo has no settings for {algorithm} on {system} that are known here")
