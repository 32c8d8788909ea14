"""The engine: jobs and their rows, the store, running and verifying."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from spaql.paper.engine import run as running
from spaql.paper.engine import store, verify
from spaql.paper.engine.algorithms import Trained
from spaql.paper.engine.job import Job, columns_of, job_of, seeds
from spaql.paper.engine.outcomes import of_longer, outcome
from spaql.paper.engine.run import compute, run
from spaql.paper.engine.store import histories
from spaql.paper.engine.study import READINGS, STUDIES, is_published, make_jobs, published, study, under_reading
from spaql.rules import HISTORY, RULES, Rules

SMALL = {"agents": 2, "iterations": 3, "evaluations": 2, "fresh": 5}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Empty folders in the place of the published results and of the work in progress."""
    for module in (store, verify):
        monkeypatch.setattr(module, "results", lambda: tmp_path / "results")
    monkeypatch.setattr(store, "own_results", lambda: tmp_path / "runs")
    (tmp_path / "results").mkdir()
    return tmp_path


def small_jobs(system="CartPole-v0"):
    jobs = [job for name in ("Random", "SPAQL") for job in make_jobs(name, system, 4.0, **SMALL)]
    return [dataclasses.replace(job, study="long") for job in jobs]


@pytest.mark.parametrize("rules", [*RULES.values(), Rules(ties="last"), Rules(ties="last", reset="machine")])
def test_a_row_has_its_job(rules):
    (job,) = make_jobs("SPAQL", "CartPole-v0", 0.4, agents=1, iterations=3, evaluations=2, rules=rules, discount=0.9)
    assert job_of(columns_of(job)) == job


def test_agents_have_streams_of_their_own():
    jobs = [job for name in ("SPAQL", "AQL") for xi in (0, 4) for job in make_jobs(name, "CartPole-v0", xi, **SMALL)]
    words = [tuple(one.generate_state(4)) for job in jobs for one in seeds(job)]
    assert len(set(words)) == len(words)


def test_every_declared_agent_is_stored_and_no_other():
    for name in STUDIES:
        rows = store.read(name, lists=False).to_dict("records")
        assert {job_of(row) for row in rows} == set(published(name)), name
        assert len(rows) == len(published(name)), name


def test_a_study_with_something_changed():
    assert len(study("long", systems=["CartPole-v0"], agents=5)) == 20
    assert is_published(study("trpo"))
    assert is_published(study("long", systems=["CartPole-v0"]))
    assert not is_published(study("long", agents=5))
    with pytest.raises(ValueError, match="agentz.*agents"):
        study("long", agentz=5)


def test_a_reading_changes_the_learners_pendulum_and_randoms_torques():
    text = study("long", systems=["Pendulum-v1"], agents=1)
    systems = {job.algorithm: under_reading(job, READINGS["torque, starts, rules"], 7).system for job in text}
    half, way = "spaql/PendulumHalf-v1", "spaql/PendulumOneWay-v1"
    assert systems == {"Random": way, "AQL": half, "SPAQL": half, "SPAQL-TS": half}


def test_what_is_stored_is_not_computed_again_and_no_number_depends_on_the_workers(folders, monkeypatch):
    jobs = small_jobs()
    first = run(jobs[:3], workers=2, progress_bar=False)
    computed = []
    monkeypatch.setattr(running, "compute", lambda job: computed.append(job) or compute(job))
    again = run(jobs, workers=1, progress_bar=False)
    assert computed == jobs[3:]
    for name in ("rewards", "fresh", "curve_rewards"):
        assert [np.all(a == b) for a, b in zip(first[name], again[name], strict=False)] == 3 * [True]
    alone = run(jobs[:1], stored=False, progress_bar=False)
    assert np.array_equal(alone.fresh_rewards[0], first.fresh_rewards[0])


def test_an_interrupted_run_keeps_what_was_complete(folders, monkeypatch):
    jobs = small_jobs()

    def fail(job):
        if job == jobs[2]:
            raise KeyboardInterrupt
        return compute(job)

    monkeypatch.setattr(running, "compute", fail)
    with pytest.raises(KeyboardInterrupt):
        run(jobs[:3], workers=1, progress_bar=False)
    assert set(jobs[:2]) >= set(store.find(jobs)) != set()


def test_rows_of_another_version_are_stale(folders, monkeypatch):
    jobs = small_jobs()
    run(jobs, progress_bar=False)
    assert len(store.find(jobs)) == len(jobs)
    monkeypatch.setattr(store, "numerics", lambda algorithm: 99)
    assert not store.find(jobs)


@pytest.mark.parametrize("damage", [lambda data: data[:1000], lambda data: data[:-200] + bytes(200)])
def test_a_damaged_file_is_named(tmp_path, damage):
    path = tmp_path / "long.parquet"
    store.write_file(path, pd.DataFrame([columns_of(job) | {"numerics": 1} for job in small_jobs()]))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(OSError, match=r"long\.parquet"):
        store.read_file(path)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path, rows = tmp_path / "long.parquet", pd.DataFrame([columns_of(job) | {"numerics": 1} for job in small_jobs()])
    store.write_file(path, rows)
    before = path.read_bytes()

    def full(frame, path, **_):
        path.write_bytes(b"PAR1")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pd.DataFrame, "to_parquet", full)
    with pytest.raises(OSError, match="space"):
        store.write_file(path, rows.head(1))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["long.parquet"]


def test_verify_sees_a_published_number_that_was_changed(folders, monkeypatch):
    rows = run(small_jobs(), stored=False, progress_bar=False)
    path = folders / "results" / "long.parquet"
    store.write_file(path, rows)
    assert verify.verify(["long"], agents=4, progress_bar=False).sound.all()
    rows.loc[3, "fresh"] -= 60.0
    store.write_file(path, rows)
    found = verify.verify(["long"], agents=4, progress_bar=False)
    assert found.sound.tolist().count(False) == 1
    assert "fresh" in found[~found.sound].verdict.item()
    store.write_file(path, rows.drop(columns="fresh"))
    assert not verify.verify(["long"], agents=4, progress_bar=False).sound.any()
    # On a machine of another kind the means are compared: first they are the same but for roundings, then far apart.
    elsewhere = rows.assign(platform="another", fresh=rows.fresh_rewards.map(np.mean) + 1e-9)
    for shift, sound in ((0.0, True), (1000.0, False)):
        store.write_file(path, elsewhere.assign(fresh=elsewhere.fresh + shift))
        assert (verify.verify(["long"], progress_bar=False).sound == sound).all()


@pytest.mark.long
def test_processes_compute_what_threads_do(folders, monkeypatch):
    jobs = small_jobs()[2:]
    threads = run(jobs, stored=False, progress_bar=False)
    monkeypatch.setattr(running, "is_compiled", lambda algorithm, system: False)
    processes = run(jobs, workers=2, stored=False, progress_bar=False)
    assert all(np.array_equal(*pair) for pair in zip(threads.fresh_rewards, processes.fresh_rewards, strict=True))


@pytest.mark.long
def test_a_dask_cluster_computes_what_threads_do(folders):
    distributed = pytest.importorskip("distributed")
    jobs = small_jobs()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        there = run(jobs, scheduler=cluster.scheduler_address, stored=False, progress_bar=False)
    here = run(jobs, stored=False, progress_bar=False)
    assert (there.fresh == here.fresh).all()
    with pytest.raises(OSError, match="127"):
        run(jobs, scheduler="tcp://127.0.0.1:1", stored=False, progress_bar=False)


# Summary numbers, worked by hand


def history_of(rewards, steps=200, evaluation_steps=0):
    history = np.zeros(len(rewards), HISTORY)
    history["rewards"] = history["evaluations"] = rewards
    history["steps"], history["evaluation_steps"] = steps, evaluation_steps
    return history


def test_numbers_of_a_curve():
    job = Job("SPAQL", "CartPole-v0", 4.0, 400, 1, 0, 0)
    found = outcome(job, Trained(history_of(np.arange(400.0), 200, 200), np.array([1.0, 3.0])))
    assert (found["rewards"], found["fresh"], found["fresh_std"]) == (399.0, 2.0, 1.0)
    assert found["samples"] == 400 * 400  # its rollouts choose the agent that it keeps, so they count
    assert found["early"] == pytest.approx(np.arange(200).mean())
    # After 20, 40, ... batches of everything it has had 10, 20, ... iterations.
    assert found["early_all"] == pytest.approx(np.mean(np.arange(10, 101, 10) - 1))


def test_numbers_of_episodes():
    angles = np.concatenate((np.full(120, np.pi), np.full(81, 2 * np.pi + 0.3)))  # hangs, then stands
    episode = {"states": np.stack((angles, np.zeros(201)), axis=1)}
    trained = Trained(history_of(np.zeros(4)), np.array([-400.0, -600.0]), episode=episode)
    found = outcome(Job("SPAQL", "Pendulum-v1", 4.0, 4, 1, 0, 0), trained)
    assert (found["controlled"], found["steady"], found["stands"], found["kept"]) == (0.5, 81.0, 1.0, 0.0)


def test_of_the_episodes_that_hold_the_pole_some_go_on():
    found = of_longer(np.array([30.0, 200, 500, 2000]))
    assert found == {"reach_500": pytest.approx(2 / 3), "reach_2000": pytest.approx(1 / 3)}
    assert of_longer(np.array([30.0])) == {}


def test_histories_have_a_row_per_iteration():
    agents = pd.DataFrame(
        [columns_of(job) | {"curve_rewards": np.arange(3.0) + job.agent} for job in small_jobs()], index=[5, 7, 9, 11]
    )
    found = histories(agents)
    assert found[found.agent == 1].rewards.tolist() == 2 * [1.0, 2.0, 3.0]
    assert found.iteration.tolist() == 4 * [1, 2, 3]
