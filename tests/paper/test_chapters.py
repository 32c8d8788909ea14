"""What chapters measure beyond a cell: against SciPy, and against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from spaql.paper.chapters import trpo_comparison
from spaql.paper.engine import numbers
from spaql.paper.engine.statistics import crossing


def row(algorithm, agent, rewards, steps, rollouts, system="CartPole-v0"):
    """An agent with a made-up learning curve, as the store would return it."""
    job = {"algorithm": algorithm, "system": system, "xi": 0.0, "iterations": len(rewards), "N": 5, "seed": 1}
    job |= {"agent": agent, "rules": "paper", "fresh_episodes": 10, "starts": "independent", "parameters": "{}"}
    curves = {"rewards": np.array(rewards, float), "steps": steps, "evaluation_steps": rollouts}
    early = {"early": float(np.mean(rewards))}
    return job | early | {f"curve_{name}": np.array(values) for name, values in curves.items()}


@pytest.fixture
def agents():
    spaql = [row("SPAQL", agent, [50, 120, 160 + agent], [10, 20, 30], [100, 200, 300]) for agent in range(3)]
    trpo = [row("TRPO", agent, [20, 90, 180], [4000] * 3, [0] * 3) for agent in range(3)]
    return pd.DataFrame(spaql + trpo)


# ---------------------------------------------------------------------------------------------------------------------
# Samples


def test_rollouts_count_for_those_whose_policy_they_choose(agents):
    needed = trpo_comparison.samples_needed(agents, {"CartPole-v0": (100, 161, 195)})
    first = needed[needed.agent == 0].set_index(["algorithm", "level", "counted"]).samples
    assert first["SPAQL", 100, "training"] == 30
    assert first["SPAQL", 100, "all"] == 330
    assert first["TRPO", 100, "all"] == first["TRPO", 100, "training"] == 8000  # before the update that follows
    assert first["SPAQL", 161, "all"] == np.inf
    halves = trpo_comparison.half_of_agents(needed).set_index(["algorithm", "level", "counted"])
    assert halves.loc[("SPAQL", 161, "all"), ["samples", "reached"]].tolist() == [660, pytest.approx(2 / 3)]
    assert trpo_comparison.text_of(halves.loc["SPAQL", 195, "all"], "samples") == "never"
    assert trpo_comparison.text_of(halves.loc["SPAQL", 100, "all"], "samples") == "330 [330, 330]"


def test_a_median_of_an_even_number_of_agents_is_one_of_theirs():
    assert trpo_comparison.upper_median(np.array([4.0, np.inf, 1.0, np.inf])) == np.inf
    assert trpo_comparison.upper_median(np.array([4.0, 2.0, 1.0, np.inf])) == 4.0


def test_a_budget_buys_fewer_iterations_if_rollouts_count(agents):
    found = trpo_comparison.at_budget(agents, 400).set_index(["algorithm", "counted"])
    assert found.rewards["SPAQL", "training"] == pytest.approx(161)
    assert found.rewards["SPAQL", "all"] == 120
    assert found.iterations["SPAQL", "all"] == 2
    assert found.rewards["TRPO", "all"] == 20


# ---------------------------------------------------------------------------------------------------------------------
# Crossings


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


def test_the_lead_is_the_difference_of_the_early_means(agents):
    (found,) = trpo_comparison.crossings(agents).to_dict("records")
    assert found["lead"] == pytest.approx(331 / 3 - 290 / 3)
    assert found["lead_low"] <= found["lead"] <= found["lead_high"]
    assert (found["baseline"], found["algorithm"]) == ("TRPO", "SPAQL")
    assert found["first"] == np.inf  # the run of three batches ends before TRPO's first twenty


# ---------------------------------------------------------------------------------------------------------------------
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
