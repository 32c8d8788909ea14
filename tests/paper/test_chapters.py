"""What chapters measure beyond a cell: against SciPy, and against numbers worked out by hand."""

import numpy as np
import pandas as pd

from spaql.paper.engine import numbers, outcomes
from spaql.paper.engine.statistics import crossing
from spaql.paper.engine.study import make_jobs

# Samples, and where curves cross


def test_rollouts_count_for_those_whose_policy_they_choose():
    history = {"rewards": np.zeros(3), "steps": np.array([10, 20, 30]), "evaluation_steps": np.array([100, 200, 300])}
    spaql, trpo = (
        make_jobs(name, "CartPole-v0", agents=1, iterations=3, evaluations=5)[0] for name in ("SPAQL", "TRPO")
    )
    assert outcomes.samples_behind(spaql, history).tolist() == [110, 330, 660]
    assert outcomes.samples_behind(spaql, history, rollouts=False).tolist() == [10, 30, 60]
    history["steps"] = np.array([4000] * 3)
    assert outcomes.samples_behind(trpo, history).tolist() == [0, 4000, 8000]  # before the update that follows
    assert outcomes.batches(trpo, history).tolist() == [0, 20, 40]
    assert outcomes.batches(spaql, history).tolist() == [1, 2, 3]


def test_curves_cross_where_their_means_do():
    slow, fast = np.array([[0.0, 2, 4, 3, 6], [0.0, 2, 4, 3, 8]]), np.array([[3.0, 3, 3.5, 3.5, 3.5]] * 3)
    at = np.array([0, 10, 20, 30, 40])
    assert crossing(slow, at, fast, at)[0] == 20  # where 4 passes 3.5
    assert crossing(slow, at, fast, at, lasting=True)[0] == 40
    assert crossing(slow - 9, at, fast, at)[0] == np.inf
    resamples = crossing(slow, at, fast, at)[1]
    assert set(resamples) == {20}  # agents agree there


def test_a_crossing_is_looked_up_at_the_other_groups_places_and_not_beyond_its_run():
    trpo, spaql = np.array([[0.0, 1, 5]] * 2), np.arange(1.0, 6)[None].repeat(2, 0)
    assert crossing(trpo, np.array([0, 2, 4]), spaql, np.arange(1, 6))[0] == 4  # 5 against 4 in batch 4
    assert crossing(trpo, np.array([0, 2, 40]), spaql, np.arange(1, 6))[0] == np.inf


# Numbers


def test_ends_of_training_have_names():
    frame = pd.DataFrame({"system": "CartPole-v0", "algorithm": "SPAQL-TS", "rewards": [194.0, 199.0]})
    frame = frame.assign(fresh=[190.0, 196.0], arms=[10, 20], steps=100, evaluation_steps=[400, 600])
    found = numbers.ends(frame)
    assert found["cartpole.ts.reported"] == "196.5"
    assert found["cartpole.ts.bias"] == "3.5"
    assert (found["cartpole.ts.solved"], found["cartpole.ts.solved_fresh"]) == ("1", "1")
    assert found["cartpole.ts.times"] == "6"
    assert found["cartpole.ts.paper"] == "198.5"
