"""Many agents at a time: seeds, sweeps, and environments that only this process knows."""

import gymnasium as gym
import numpy as np
import pytest

from spaql import SPAQL, SPAQLR, TileQ, train_many
from tests.conftest import Opaque

pandas, _ = pytest.importorskip("pandas"), pytest.importorskip("joblib")
FIGURES = ["mean", "worst 5 %", "worst", "all samples"]


def make_short():
    return gym.wrappers.TimeLimit(Opaque(gym.make("CartPole-v1").unwrapped), 20)


def small(env, seed, bins):
    return TileQ(env, seed=seed, bins=bins, tilings=2, replays=1)


def test_a_sweep_has_its_columns_and_the_agents_and_does_not_depend_on_the_workers():
    given = {"learn": {"samples": [300, 600]}, "agents": 2, "episodes": 40, "progress_bar": False, "visits": [5, 50]}
    frame = train_many(SPAQLR, "CartPole-v0", seed=3, workers=3, **given)
    assert list(frame.columns) == ["visits", "samples", "number", *FIGURES, "agent"]
    assert len(frame) == len(frame[["visits", "samples", "number"]].drop_duplicates()) == 8
    assert (frame["worst"] <= frame["worst 5 %"]).all()
    assert (frame["worst 5 %"] < frame["mean"]).all()
    assert frame["mean"].nunique() == 8
    assert (frame["all samples"] == frame["samples"]).all()
    assert all(row.agent.parameters["visits"] == row.visits for row in frame.itertuples())
    alone = train_many(SPAQLR, "CartPole-v0", seed=3, workers=1, **given)
    pandas.testing.assert_frame_equal(frame.drop(columns="agent"), alone.drop(columns="agent"))
    assert len(frame.agent[0].learn(1).history) == len(alone.agent[0].history) + 1


def test_a_sweep_that_grows_keeps_the_numbers_it_had():
    given = {"learn": {"iterations": 2, "evaluations": 2}, "agents": 2, "episodes": 5, "progress_bar": False}
    one = train_many(SPAQL, "CartPole-v0", xi=1, **given)
    more = train_many(SPAQL, "CartPole-v0", xi=[1, 10], **given)
    assert np.array_equal(one[FIGURES], more.loc[more.xi == 1, FIGURES])
    assert (one["all samples"] > 2 * 2 * 8).all()  # rollouts are samples, too


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.long)])  # which import all of this anew
def test_processes_train_what_only_this_one_has_registered_and_save_it(tmp_path, workers):
    gym.register("Short-v0", entry_point=make_short)
    given = {"learn": {"samples": 60}, "agents": 2, "episodes": 5, "progress_bar": False, "bins": 4}
    try:
        frame = train_many(small, "Short-v0", workers=workers, save=tmp_path / "agents", **given)
        again = train_many(small, make_short, workers=1, **given)
        assert np.array_equal(frame[FIGURES], again[FIGURES])
        for file, agent in zip(frame.file, again.agent, strict=True):
            assert np.array_equal(TileQ.load(file).history, agent.history)
    finally:
        del gym.registry["Short-v0"]


@pytest.mark.long
def test_processes_train_on_what_is_registered_now():
    given = {"learn": {"samples": 60}, "agents": 1, "episodes": 5, "progress_bar": False, "bins": 4}

    def mean_of(factor):
        def scaled():
            return gym.wrappers.TransformReward(make_short(), lambda reward: factor * reward)

        gym.register("Short-v0", entry_point=scaled)
        return train_many(small, "Short-v0", workers=2, **given)["mean"][0]

    try:
        assert mean_of(10.0) == 10.0 * mean_of(1.0)
    finally:
        del gym.registry["Short-v0"]


def test_what_cannot_be_trained_is_said_before_training():
    with pytest.raises(TypeError, match="environment of its own"):
        train_many(TileQ, make_short(), learn={"samples": 10})
    with pytest.raises(TypeError, match="agent must be"):
        train_many("TileQ", "Pendulum-v1", learn={"samples": 10})
    with pytest.raises(TypeError, match="learn must be"):
        train_many(TileQ, "Pendulum-v1", learn=[100])
    with pytest.raises(TypeError, match="it is called alpha here"):
        train_many(TileQ, "Pendulum-v1", learn={"samples": 10}, learning_rate=[0.1, 0.2])
    with pytest.raises(ValueError, match="discount must be"):
        train_many(TileQ, "Pendulum-v1", learn={"samples": 10}, discount=[0.9, 1.1])
    with pytest.raises(ValueError, match="discount is an empty list"):
        train_many(TileQ, "Pendulum-v1", learn={"samples": 10}, discount=[])
    with pytest.raises(ValueError, match="samples must be"):  # before the others are trained
        train_many(TileQ, "Pendulum-v1", learn={"samples": [10**8, -1]})
    with pytest.raises(ValueError, match="callback"):
        train_many(TileQ, "Pendulum-v1", learn={"samples": 10, "callback": print})


def test_agents_are_not_replaced(tmp_path):
    given = {"learn": {"samples": 10}, "agents": 1, "episodes": 1, "progress_bar": False, "save": tmp_path}
    train_many(TileQ, "Pendulum-v1", **given)
    with pytest.raises(FileExistsError, match="already"):
        train_many(TileQ, "Pendulum-v1", **given)
