"""With Numba switched off the kernels are plain Python: the way to debug them, with the same bits."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import spaql
from spaql import Rules

CASES = [
    ("AQL", "CartPole-v0", {"xi": 4, "horizon": 30}),
    ("SPAQL", "spaql/PendulumDiscrete-v1", {"xi": 4, "horizon": 60}),
    ("SPAQLTS", "CartPole-v0", {"xi": 4, "rules": "released"}),
    ("SPAQLTS", "Pendulum-v1", {"xi": 0.4, "horizon": 60}),
    ("SPAQL", "MountainCar-v0", {"xi": 1, "horizon": 60}),
    ("SPAQL", "Acrobot-v1", {"xi": 1, "horizon": 30}),
    ("SPAQLTS", "MountainCarContinuous-v0", {"xi": 1, "horizon": 60}),
    ("Random", "spaql/Pendulum-v0", {"horizon": 20}),
    ("SPAQLR", "CartPole-v0", {"visits": 8, "replays": 2, "steps": 4}),
    ("TileQ", "CartPole-v0", {"tilings": 4, "replays": 2, "steps": 4}),
    ("SPAQL", "CartPole-v0", {"xi": 4, "initial": 0, "discount": 0.9}),
    ("SPAQLTS", "CartPole-v0", {"xi": 4, "rules": Rules(distance="euclidean")}),
    ("AQL", "spaql/PendulumDiscrete-v1", {"xi": 4, "horizon": 30}),
    ("SPAQL", "Pendulum-v1", {"xi": 4, "horizon": 60, "rules": Rules(ties="last")}),
]
SCRIPT = """
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
from tests.core.test_plain_python import results
np.savez(sys.argv[2], *results(map(int, sys.argv[3:])))
"""


def results(places):
    """The histories, evaluations and tree thresholds of these cases."""
    found = []
    for name, env_id, parameters in (CASES[place] for place in places):
        agent = getattr(spaql, name)(env_id, seed=2, **parameters).learn(10, 2)
        history = np.array([agent.history[column] for column in agent.history.dtype.names], float)
        found += [history, agent.evaluate(3, seed=1)]
        if name == "TileQ":
            found.append(agent._best.weights)
        else:
            tree = agent.policy[0].tree() if name == "AQL" else agent.policy.tree()
            found += [tree.threshold, tree.feature]
    return found


def test_plain_python_gives_the_same_bits_as_machine_code(tmp_path, faults):
    rng, count = faults
    places = rng.permutation(len(CASES))[:count].tolist()
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", SCRIPT, root, str(tmp_path / "plain.npz"), *map(str, places)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"})
    assert done.returncode == 0, done.stderr
    plain = np.load(tmp_path / "plain.npz")
    for mine, theirs in zip(results(places), plain.values(), strict=True):
        assert np.array_equal(mine, theirs)
