"""What a user would pick today: SAC, PPO and DQN of Stable-Baselines3, with the settings of rl-baselines3-zoo.

The zoo tunes these for `Pendulum-v1` and `CartPole-v1`; the latter's are used for `CartPole-v0` here, which is the same
task with 200 steps instead of 500.  Each trains for as many samples as the zoo gives it.  What is not named has
Stable-Baselines3's default.
"""

from typing import Any

SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "SAC": {"Pendulum-v1": {"learning_rate": 1e-3}},
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
        "CartPole-v0": {
            "n_envs": 8,
            "n_steps": 32,
            "batch_size": 256,
            "gae_lambda": 0.8,
            "gamma": 0.98,
            "n_epochs": 20,
            "ent_coef": 0.0,
            "learning_rate": "lin_0.001",  # falls to zero in a straight line, as the zoo writes it
            "clip_range": "lin_0.2",
        },
    },
    "DQN": {
        "CartPole-v0": {
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
        },
    },
}

SAMPLES = {  # that the zoo trains for
    ("SAC", "Pendulum-v1"): 20_000,
    ("PPO", "Pendulum-v1"): 100_000,
    ("PPO", "CartPole-v0"): 100_000,
    ("DQN", "CartPole-v0"): 50_000,
}
