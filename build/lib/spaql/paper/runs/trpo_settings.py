"""The baseline the paper compares with: trust region policy optimisation, from sb3-contrib.

The paper used Garage's TRPO with the settings of Garage's examples, 100 iterations of 4,000 samples.  "TRPO" comes as
near to them as Stable-Baselines3 allows; "TRPO tuned" has the settings that rl-baselines3-zoo publishes for the two
tasks, with at most as many samples.  Where the first differs from Garage:

- Garage's baseline is linear in the observation, its square and powers of time; SB3 trains a critic network.
- The trust region bounds KL(old ‖ new) in Garage, KL(new ‖ old) in SB3.
- Garage collects whole episodes; SB3 a fixed number of steps of each environment, here 200 of 20, which are whole
  episodes of Pendulum but not of CartPole.
- At a time limit SB3 adds the critic's value of the last state to the last reward; Garage adds nothing.
- Garage centres the advantages; SB3, by default, also divides them by their standard deviation, which scales the
  gradient but not the step that the trust region allows.
"""

from typing import Any

SAMPLES = 4000  # an iteration of the paper's

GARAGE = {
    "n_envs": 20,
    "n_steps": 200,
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

SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "TRPO": {"Pendulum-v1": GARAGE, "CartPole-v0": GARAGE},
    "TRPO tuned": {
        "Pendulum-v1": {
            "n_envs": 2,
            "n_steps": 1024,
            "gamma": 0.9,
            "n_critic_updates": 15,
            "use_sde": True,
            "sde_sample_freq": 4,
        },
        "CartPole-v0": {
            "n_envs": 2,
            "n_steps": 512,
            "batch_size": 512,
            "cg_damping": 1e-3,
            "gae_lambda": 0.98,
            "gamma": 0.99,
            "learning_rate": 1e-3,
            "n_critic_updates": 20,
        },
    },
}
