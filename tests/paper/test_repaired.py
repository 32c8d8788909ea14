"""Chapters 9 and 10: the ladder and duels, on rows made by hand; dummies against Gymnasium."""

import numpy as np
import pandas as pd
import pytest

from spaql.paper.chapters import dimensions, ladder
from spaql.paper.engine.job import columns_of
from spaql.paper.engine.study import make_jobs, study
from spaql.systems import compiled_world, make_env, make_generator, space_of
from tests.conftest import from_notebook


def rows(algorithm, system, fresh, curve=(), steps=1000, **parameters):
    jobs = make_jobs(algorithm, system, agents=len(fresh), iterations=1, evaluations=1, **parameters)
    taken = {"curve_rewards": np.array(curve), "curve_steps": np.full(len(curve), steps), "samples": 1, "steps": 1}
    return [columns_of(job) | taken | {"fresh": value} for job, value in zip(jobs, fresh, strict=True)]


def test_every_rung_has_agents_and_what_changes_nothing_repeats_the_row_above():
    jobs = study("ladder", agents=1) + [job for job in study("controls", agents=1, rollouts=[]) if job.parameters]
    given = [columns_of(job) | {"fresh": 0.0, "samples": 1, "steps": 1} for job in jobs]
    given += rows("SPAQL", "Pendulum-v1", [0.0]) + rows("SPAQL", "CartPole-v0", [0.0])
    found = from_notebook("09_repaired")["climb"](pd.DataFrame(given))
    assert found.agents.tolist() == [1] * (2 * len(ladder.rungs("Pendulum-v1")))


def test_what_a_change_is_worth():
    whole = rows("SPAQL-R", "CartPole-v0", [200.0, 199.0, 201.0], [150.0])
    given = pd.DataFrame(whole + rows("SPAQL-R", "CartPole-v0", [20.0, 21.0, 22.0], [30.0], replays=0))
    found = from_notebook("09_repaired")["worth"](given).set_index("without")["mean"]
    assert found.to_dict() == {"nothing": 200.0, "replay": 21.0}


def test_duels():
    given = rows("TileQ", "CartPole-v0", [200.0] * 3, [100.0, 196.0, 200.0])
    given += rows("SPAQL-R", "CartPole-v0", [150.0, 151.0, 152.0], [10.0, 10.0, 150.0])
    given += rows("Sarsa(λ)", "CartPole-v0", [190.0, 200.0, 210.0], [1.0, 2.0, 3.0])
    given += rows("PPO", "CartPole-v0", [180.0, 181.0, 182.0], [50.0], steps=4000)
    frame = pd.DataFrame(given)
    found = (
        from_notebook("10_other_systems")["duels_of"](frame, ["PPO"]).set_index(["learner", "rival", "samples"]).verdict
    )
    assert found["TileQ", "Sarsa(λ)", np.inf] == "tie"
    assert found["TileQ", "the best network", np.inf] == "win"
    assert found["SPAQL-R", "the best network", np.inf] == "loss"
    assert ("TileQ", "the best network", 2000) not in found  # which has no policy yet


def test_dummies_are_the_same_compiled_and_say_nothing():
    env = make_env(dimensions.SYSTEMS[2])
    world = compiled_world(env, space_of(env))
    shown, _ = env.reset(seed=3)
    start = world.draw(make_generator(3), 1)[0]
    assert shown[3:] == pytest.approx(2 * start[2:] - 1, abs=1e-6)
    plain = make_env("Pendulum-v1")
    assert np.array_equal(plain.reset(seed=3)[0], shown[:3])
    torque = np.array([1.0], np.float32)
    assert np.array_equal(plain.step(torque)[0], env.step(torque)[0][:3])
