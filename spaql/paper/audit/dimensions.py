"""What dimensions cost by themselves: Pendulum with dummies beside its angle and speed, which say nothing.

`python -m spaql.paper.audit.dimensions [ALGORITHM ...]` measures, and keeps what it found in results/dimensions.json.
Samples, seconds and the level are those of `baselines.seconds`.
"""

import sys
from typing import Any

import numpy as np
import pandas as pd

from spaql.paper.audit.kept import load_kept, path_of, write_kept
from spaql.paper.baselines.compute import BASELINES
from spaql.paper.baselines.seconds import EPISODES, LEVELS, SEED, learner_of, measure_network, measure_ours
from spaql.paper.runs.algorithms import REPLAYED
from spaql.paper.runs.dummies import DUMMIES
from spaql.paper.runs.job import Job
from spaql.paper.runs.network_settings import SB3_SAMPLES
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.tileq import Tiles, count_of

SYSTEMS = ("Pendulum-v1", *DUMMIES)
ANGLE_AND_SPEED = 2  # the dimensions without dummies
LEVEL, MOST = LEVELS["Pendulum-v1"], 200_000  # samples
ALGORITHMS = ("SPAQL-R", "Tiles, replayed", "Grid, replayed", "PPO")
AGENTS = 5
LARGEST = 25_000_000  # tiles; with more, the weights and what else there is would not fit into a gigabyte


def size(part: Any) -> int:
    """Return the bytes of all arrays in a tuple of tuples."""
    return sum(map(size, part)) if isinstance(part, tuple) else getattr(part, "nbytes", 0)


def measure(algorithm: str, system: str, agent: int, most: int = MOST) -> dict[str, Any] | None:
    """Return what an agent needs to reach the level, or has taken without; nothing if it needs too much memory."""
    job = Job(algorithm, system, 0.0, most // CHECKPOINT, EPISODES, SEED, agent)
    dimensions = ANGLE_AND_SPEED + SYSTEMS.index(system)
    if algorithm in REPLAYED:
        settings = BASELINES[algorithm][1]
        if count_of(Tiles(settings["tilings"], settings["bins"], np.empty((dimensions, 2)))) > LARGEST:
            return None
    where = {"algorithm": algorithm, "dimensions": dimensions, "agent": agent}
    if (algorithm, system) in SB3_SAMPLES:
        found = measure_network(job, LEVEL, most)
        return where | dict(zip(("samples", "seconds", "reached"), found, strict=True))
    learner = learner_of(job)
    samples, seconds, reached = measure_ours(learner, LEVEL, most)
    megabytes = size(learner._settled() if algorithm == "SPAQL-R" else (learner.weights, learner.kept)) / 1e6
    return where | {"samples": samples, "seconds": seconds, "megabytes": megabytes, "reached": reached}


def main(names: list[str]) -> None:
    """Measure some algorithms, or all, in place of what was measured of them before."""
    known = load_kept("dimensions") if path_of("dimensions").exists() else pd.DataFrame()
    rows = [row.dropna().to_dict() for _, row in known.iterrows()]
    for algorithm in names or ALGORITHMS:
        rows = [row for row in rows if row["algorithm"] != algorithm]
        for system in SYSTEMS:
            measure(algorithm, system, 0, 2 * CHECKPOINT)  # compiles, and does not count
            found = [measure(algorithm, system, agent) for agent in range(AGENTS)]
            rows += [row for row in found if row is not None]
            write_kept("dimensions", rows=rows)
            print(algorithm, system, found, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
