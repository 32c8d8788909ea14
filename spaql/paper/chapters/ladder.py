"""Chapter 09: the steps from SPAQL to SPAQL-R, and SPAQL-R with each of its changes taken back."""

from spaql.paper.engine.job import FRESH, SEED
from spaql.paper.engine.study import BOTH, LONG_XI, SWITCHES, declare, make_jobs

TAKEN_BACK = {  # SPAQL-R without one of its changes
    "nothing": {},
    "discount": {"discount": 1.0},
    "start at 0": {"initial": 200.0},
    "two torques": {"actions": 5},
    "slope 1": {"slopes": [0.0, 1 / 240, 0.0, 1 / 21]},
    "replay": {"replays": 0},
    "longer targets": {"steps": 1},
    "angle": {"angles": []},
}
USELESS = {"CartPole-v0": ("two torques", "angle"), "Pendulum-v1": ("slope 1",)}  # its speed is bounded


def rungs(system):
    """Return the algorithm and the changed parameters of each rung: the same as above where a change has no use."""
    pendulum = system == "Pendulum-v1"  # whose episodes never end but by time
    last, angles = {"control": "last kept"}, {"angles": []} if pendulum else {}
    zero = last if pendulum else {"control": "zero at the end, last kept"}
    absolute = zero | {"rules": SWITCHES["normalisation"]} if pendulum else zero  # CartPole's estimates are positive
    return {
        "SPAQL": ("SPAQL", {}),
        "no search": ("SPAQL", last),
        "end worth 0": ("SPAQL", zero),
        "absolute Q": ("SPAQL", absolute),
        "discount": ("SPAQL", absolute | {"discount": 0.995}),
        "new cells": ("SPAQL-R", {"replays": 0, "steps": 1} | angles),
        "replay": ("SPAQL-R", {"steps": 1} | angles),
        "longer targets": ("SPAQL-R", angles),
        "angle": ("SPAQL-R", {}),
    }


@declare("ladder", "from SPAQL to SPAQL-R", ("curve_rewards",))
def ladder_jobs(
    systems=BOTH,
    agents=10,
    iterations=40,  # thousands of samples of SPAQL-R
    evaluations=20,
    episodes=2000,  # of SPAQL
    seed=SEED,
    fresh=FRESH,
):
    """Return the rungs that no other study has, and SPAQL-R with each change taken back."""
    size = {"agents": agents, "seed": seed, "fresh": fresh}
    jobs = []
    for system in systems:
        lower = rungs(system)
        spaql = {"iterations": episodes, "evaluations": 1} | lower["discount"][1]
        jobs += make_jobs("SPAQL", system, LONG_XI[system]["SPAQL"], **size, **spaql)
        lacking = [changes for algorithm, changes in lower.values() if algorithm == "SPAQL-R"]
        for changes in (*lacking, *taken_back(system).values()):
            jobs += make_jobs("SPAQL-R", system, iterations=iterations, evaluations=evaluations, **size, **changes)
    return jobs


def taken_back(system):
    """Return the changes that make a difference on a system, with the parameters that take them back."""
    return {name: changes for name, changes in TAKEN_BACK.items() if name not in USELESS[system]}
