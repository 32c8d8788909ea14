"""The numbers of the paper's two results tables: mean and half-interval over 20 agents at the end of training."""

RESULTS = {
    "Pendulum-v1": {  # table:pendulum_results
        "AQL": {"rewards": (-1287.31, 5.79), "arms": (195032.75, 575.81)},
        "SPAQL": {"rewards": (-835.99, 26.91), "arms": (1277.50, 168.74)},
        "SPAQL-TS": {"rewards": (-873.40, 39.94), "arms": (1082.50, 91.42)},
        "Random": {"rewards": (-1340.43, 6.24)},
        "TRPO": {"rewards": (-176.76, 15.79)},
    },
    "CartPole-v0": {  # table:cartpole_results
        "AQL": {"rewards": (22.40, 0.60), "arms": (32988.9, 186.61)},
        "SPAQL": {"rewards": (192.57, 0.94), "arms": (557.75, 55.10)},
        "SPAQL-TS": {"rewards": (198.53, 1.55), "arms": (1289.75, 151.22)},
        "Random": {"rewards": (22.15, 0.64)},
        "TRPO": {"rewards": (197.27, 3.17)},
    },
}
