"""Grids, stored results and clusters: nothing is lost, and no number depends on how it was computed."""

import contextlib
import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from spaql import archive
from spaql.paper.cli import main
from spaql.paper.frames import best, finals, histories
from spaql.paper.runs import cluster as cluster_module
from spaql.paper.runs import provenance, runner, store
from spaql.paper.runs.algorithms import compute
from spaql.paper.runs.job import seeds
from spaql.paper.runs.runner import run, run_grid
from spaql.paper.runs.verify import agreement
from spaql.paper.studies import STUDIES, is_published, make_jobs, parameters_of, study
from spaql.rules import RULES
from tests.conftest import posix

ROOT = Path(__file__).parents[2]
GRID = {"algorithms": ["SPAQL", "AQL"], "systems": ["CartPole-v0", "Pendulum-v1"], "xis": [0, 20]}
SMALL = {**GRID, "agents": 2, "iterations": 5, "evaluations": 3, "fresh": 10}


@pytest.fixture
def counted(monkeypatch):
    """Count the agents that are really computed."""
    computed = []

    def count(job):
        computed.append(job)
        return compute(job)

    monkeypatch.setattr(runner, "compute", count)
    return computed


def some_jobs(**changes):
    return make_jobs(**SMALL | changes)


def background(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], cwd=ROOT)


# ---------------------------------------------------------------------------------------------------------------------
# Numbers


def test_the_frame_is_the_same_for_any_workers_and_any_order():
    wanted = some_jobs(record=True)
    one = histories(run(wanted, workers=1, store=None, progress_bar=False))
    many = histories(run(wanted, workers=5, store=None, progress_bar=False))
    backwards = run(wanted[::-1], workers=2, store=None, progress_bar=False)
    pd.testing.assert_frame_equal(one, many, check_exact=True)
    pd.testing.assert_frame_equal(one, histories(backwards[::-1]), check_exact=True)
    assert len(one) == 2 * 2 * 2 * 2 * 5


def test_a_grid_is_one_call():
    frame = run_grid(["SPAQL", "Random"], ["CartPole-v0"], [0, 20], 2, 3, evaluations=2, store=None)
    assert frame.groupby(["algorithm", "xi"]).size().to_dict() == {
        ("SPAQL", 0.0): 6,
        ("SPAQL", 20.0): 6,
        ("Random", 0.0): 6,
    }
    assert {"rewards", "arms", "iteration", "agent", "system"} <= set(frame.columns)


def test_every_agent_has_streams_of_its_own():
    keys = [tuple(seed.generate_state(4)) for job in some_jobs() for seed in seeds(job)]
    assert len(set(keys)) == len(keys) == 2 * len(some_jobs())
    # and an agent's do not depend on what else is run, or for how long
    assert seeds(some_jobs()[5])[0].spawn_key == seeds(some_jobs(iterations=9)[5])[0].spawn_key


def test_a_record_holds_what_its_agent_did():
    job = make_jobs(["SPAQL-TS"], ["Pendulum-v1"], [0.4], 1, 6, 3, fresh=50, record=True)[0]
    record = compute(job)
    assert len(record.history) == 6
    assert record.rewards.shape == (50,)
    assert record.fresh == pytest.approx([record.rewards.mean(), record.rewards.std()], rel=1e-5)
    # The recorded episode obeys the pendulum: the angle moves with the new speed, the reward is minus the cost.
    states, actions, rewards = (record.episode[key] for key in ("states", "actions", "rewards"))
    assert states.shape == (201, 2)
    assert actions.shape == rewards.shape == (200,)
    assert np.allclose(np.diff(states[:, 0]), 0.05 * states[1:, 1])
    angle = (states[:-1, 0] + np.pi) % (2 * np.pi) - np.pi
    assert np.allclose(rewards, -(angle**2 + 0.1 * states[:-1, 1] ** 2 + 0.001 * actions**2))


def test_the_papers_runs_are_the_papers():
    xi, long = study("xi"), study("long")
    assert len(xi) == 3 * (13 * 3 + 1) * 20
    assert len(long) == 3 * (3 + 1) * 20
    assert {(job.iterations, job.evaluations, job.fresh) for job in xi} == {(100, 20, 1000)}
    assert {job.xi for job in xi} == {0, 0.4, 4, 10, 20, 30, 40, 50, 60, 70, 80, 120, 160}
    assert {(job.system, job.iterations, job.evaluations) for job in long} == {
        ("Pendulum-v1", 2000, 20),
        ("spaql/PendulumDiscrete-v1", 2000, 20),
        ("CartPole-v0", 2000, 100),
    }
    chosen = {(job.algorithm, job.xi) for job in long if job.system == "CartPole-v0"}
    assert chosen == {("Random", 0), ("AQL", 120), ("SPAQL", 20), ("SPAQL-TS", 20)}
    assert all(job.rules == RULES["paper"] for job in xi + long)
    assert is_published(xi + long)
    assert is_published(xi[:20])
    assert not is_published(xi[:19])  # not all of the agents
    assert not is_published(study("long", seed=7))
    assert not is_published(study("xi", "quick"))
    for wrong in (("xi", "large"), ("short", "paper")):
        with pytest.raises(ValueError, match="must be one of"):
            study(*wrong)
    with pytest.raises(ValueError, match="no parameter agnts: it has systems"):
        study("long", agnts=3)


def test_a_study_changes_what_is_given_and_nothing_else():
    for name in STUDIES:
        if "agents" in parameters_of(name):
            assert set(study(name, "smoke", agents=1)) <= set(study(name, "smoke")) or name == "further"
    other = study("long", agents=20, seed=7)
    assert [dataclasses.replace(job, seed=2020) for job in other] == study("long")


BAD_GRIDS = [
    ({"algorithms": ["SARSA"]}, "must be one of 'Random', 'AQL', 'SPAQL', 'SPAQL-TS'"),
    ({"xis": [-1]}, "xi must be"),
    ({"agents": 0}, "agents"),
    ({"evaluations": 2.5}, "evaluations"),
    ({"rules": "mine"}, "rules"),
    ({"xis": []}, "SPAQL needs at least one ξ"),
    ({"systems": []}, "nothing to run"),
    ({"systems": "CartPole-v0"}, "systems must be a list"),
    ({"algorithms": ["SPAQL-TS"], "systems": ["Drift-v0"]}, "needs a reference state"),
    ({"algorithms": ["TRPO"], "systems": ["Drift-v0"]}, "TRPO runs on registered systems"),
]


def test_tuned_settings_are_only_those_that_are_published():
    with pytest.raises(ValueError, match="TRPO tuned are known for .*Acrobot-v1.*, not for spaql/Pendulum-v0"):
        make_jobs(["TRPO tuned"], ["spaql/Pendulum-v0"], [0], agents=1, iterations=1, evaluations=1)
    assert make_jobs(["TRPO"], ["spaql/Pendulum-v0"], [0], agents=1, iterations=1, evaluations=1)


def test_bad_grids_are_refused_before_anything_runs(counted):
    for change, says in BAD_GRIDS:
        with pytest.raises(ValueError, match=says):
            some_jobs(**change)
    with pytest.raises(gym.error.Error, match="Cartpole"):
        some_jobs(systems=["Cartpole-v0"])
    with pytest.raises(ValueError, match="workers"):
        run(some_jobs(), workers=0, store=None)
    assert counted == []


def test_finals_and_best():
    records = run(some_jobs(algorithms=["SPAQL"]), store=None, progress_bar=False)
    frame = finals(records)
    assert len(frame) == len(records)
    assert frame.rewards.tolist() == [record.history["rewards"][-1] for record in records]
    assert best(records).history["rewards"][-1] == frame.rewards.max()
    assert (frame.steps > 0).all()


# ---------------------------------------------------------------------------------------------------------------------
# Keeping


def test_what_is_stored_is_loaded_and_what_is_missing_is_computed(tmp_path, counted):
    first = histories(run(some_jobs(agents=1), store=tmp_path, progress_bar=False))
    assert len(counted) == 8
    again = histories(run(some_jobs(agents=1), store=tmp_path, progress_bar=False))
    assert len(counted) == 8
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    run(some_jobs(agents=2), store=tmp_path, progress_bar=False)
    assert len(counted) == 16
    # any other parameter is another record
    for change in (
        {"seed": 1},
        {"iterations": 4},
        {"rules": "released"},
        {"fresh": 11},
        {"record": True},
        {"xis": [1]},
    ):
        assert {store.record_path(tmp_path, job) for job in some_jobs(**change)}.isdisjoint(
            store.record_path(tmp_path, job) for job in some_jobs(agents=2)
        ), change


def test_a_stored_record_is_the_computed_one_and_says_where_it_comes_from(tmp_path):
    record = compute(some_jobs(record=True)[0])
    path = store.save_record(tmp_path, record)
    read, origin = store.read_record(path)
    assert read.digest() == record.digest()
    assert read.job == record.job
    assert np.array_equal(read.history, record.history)
    assert read.wall == record.wall > 0
    assert {"python", "numpy", "numba", "gymnasium", "spaql"} <= set(origin["versions"])
    assert len(origin["commit"].split()[0]) in (40, len("unknown"))
    assert "cores" in origin["machine"]
    assert origin["numerics"] == provenance.NUMERICS["spaql"]
    assert origin["platform"] == provenance.platform_key()
    assert str(Path.home()) not in json.dumps(origin)
    with np.load(path, allow_pickle=False) as file:  # nothing in it needs pickle
        assert all(file[name].dtype.hasobject is False for name in file.files)


def test_another_version_of_the_numbers_makes_a_record_stale_and_it_is_said(tmp_path, counted, monkeypatch, caplog):
    run(some_jobs(agents=1), store=tmp_path, progress_bar=False)
    monkeypatch.setitem(provenance.NUMERICS, "spaql", 2)
    with caplog.at_level(logging.WARNING):
        run(some_jobs(agents=1), store=tmp_path, progress_bar=False)
    assert len(counted) == 16
    assert "2 stored SPAQL agents on CartPole-v0 have numbers of another version" in caplog.text


def test_a_worker_with_other_numbers_is_refused(monkeypatch):
    monkeypatch.setattr(runner, "compute_here", lambda job: (compute(job), {"numerics": 0}))
    with pytest.raises(RuntimeError, match="a worker computes numbers of version 0, this code of version 1"):
        run(some_jobs(agents=1), store=None, progress_bar=False)


@pytest.mark.parametrize("kind", ["flipped", "cut", "empty", "encrypted", "tampered", "swapped"])
def test_damage_is_detected_reported_set_aside_and_repaired(tmp_path, counted, caplog, kind):
    wanted = some_jobs(agents=1)
    records = run(wanted, store=tmp_path, progress_bar=False)
    path = store.record_path(tmp_path, wanted[3])
    data = bytearray(path.read_bytes())
    if kind == "flipped":
        with zipfile.ZipFile(path) as file:
            numbers = file.getinfo("history.npy")
        data[numbers.header_offset + 60 + numbers.compress_size // 2] ^= 0x10
    elif kind == "cut":
        data = data[:-100]
    elif kind == "empty":
        data = b""
    elif kind == "encrypted":
        with zipfile.ZipFile(path) as file:
            data[file.start_dir + 8] |= 1
    elif kind == "tampered":  # a sound archive, but one number is not what was written
        with np.load(path) as file:
            arrays = dict(file)
        arrays["history"][0, 0] += 1e-9
        np.savez(path, **arrays)
        data = path.read_bytes()
    else:  # a sound file, but another agent's
        data = store.record_path(tmp_path, wanted[4]).read_bytes()
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING):
        again = run(wanted, store=tmp_path, progress_bar=False)
    assert len(counted) == len(wanted) + 1
    assert "set aside as" in caplog.text
    assert path.with_name(path.name + ".damaged").read_bytes() == bytes(data)
    assert [r.digest() for r in again] == [r.digest() for r in records]
    assert store.load_record(tmp_path, wanted[3]).digest() == records[3].digest()


CHILD = """
import os, signal, sys
import numpy as np
from spaql.paper.studies import make_jobs
from spaql.paper.runs.runner import run

def die_writing(file, **arrays):
    file.write(b"PK half a file")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2:] == ["die writing"]:
    np.savez_compressed = die_writing
wanted = make_jobs(["SPAQL"], ["Pendulum-v1"], [4], 12, 300, 20, fresh=50)
run(wanted, workers=2, store=sys.argv[1], progress_bar=False)
"""


def child_jobs():
    return make_jobs(["SPAQL"], ["Pendulum-v1"], [4], 12, 300, 20, fresh=50)


MOMENTS = (3, 8)  # agents stored when the process is killed


@posix
def test_a_killed_run_loses_only_the_agents_in_flight(tmp_path, counted):
    for wait_for in MOMENTS:
        child = background(CHILD, tmp_path)
        while child.poll() is None and len(list(tmp_path.rglob("*.npz"))) < wait_for:
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        assert child.wait() == -signal.SIGKILL
    left = len(list(tmp_path.rglob("*.npz")))
    assert 8 <= left < 12
    child = background(CHILD, tmp_path, "die writing")
    assert child.wait() == -signal.SIGKILL
    assert len(list(tmp_path.rglob("*.npz"))) == left
    assert len(list(tmp_path.rglob(".spaql-*.tmp"))) >= 1
    records = run(child_jobs(), store=tmp_path, progress_bar=False)
    assert len(counted) == 12 - left
    fresh = run(child_jobs(), store=None, progress_bar=False)
    assert [r.digest() for r in records] == [r.digest() for r in fresh]


def test_half_written_files_are_swept_away_once_they_are_old(tmp_path):
    old, new, foreign = tmp_path / ".spaql-a.tmp", tmp_path / ".spaql-b.tmp", tmp_path / ".theirs.tmp"
    for file in (old, new, foreign):
        file.touch()
    for file in (old, foreign):
        os.utime(file, (0, 0))
    archive.sweep(tmp_path)
    assert not old.exists()
    assert new.exists()
    assert foreign.exists()


def test_a_damaged_file_may_vanish_meanwhile(tmp_path):
    assert not store.set_aside(tmp_path / "gone.npz").exists()


def test_two_processes_on_one_folder_do_not_harm_each_other(tmp_path, counted):
    children = [background(CHILD, tmp_path) for _ in range(2)]
    assert [child.wait(timeout=120) for child in children] == [0, 0]
    records = run(child_jobs(), store=tmp_path, progress_bar=False)
    assert counted == []
    assert len(records) == 12
    assert sorted(file.suffix for file in tmp_path.rglob("*") if file.is_file()) == [".npz"] * 12


def test_progress_does_not_flood_a_log(tmp_path, capsys):
    run(some_jobs(), store=tmp_path)
    shown = capsys.readouterr().err
    assert "16 agents" in shown
    assert "100%" in shown
    assert len(shown.split("\r")) < 10


# ---------------------------------------------------------------------------------------------------------------------
# A cluster


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextlib.contextmanager
def dask_scheduler(tmp_path):
    """A Dask scheduler on loopback, and a function that starts a worker process of it."""
    pytest.importorskip("distributed")
    file, command, workers = tmp_path / "scheduler.json", [sys.executable, "-m", "dask"], []
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    loopback = ["--host", "127.0.0.1", "--no-dashboard"]
    scheduler = subprocess.Popen([*command, "scheduler", *loopback, "--port", "0", "--scheduler-file", file], **quiet)

    def start_worker(**surroundings):
        worker = [*command, "worker", *loopback, "--no-nanny", "--nthreads", "1", "--scheduler-file", file]
        workers.append(subprocess.Popen(worker, **quiet, env=os.environ | surroundings))
        return workers[-1]

    try:
        wait_until(lambda: file.exists() and file.read_text(encoding="utf-8").strip().endswith("}"))
        yield json.loads(file.read_text(encoding="utf-8"))["address"], start_worker, scheduler
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def dask(tmp_path):
    with dask_scheduler(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A Dask scheduler and two worker processes on loopback; tests below it lose a worker, then the scheduler."""
    with dask_scheduler(tmp_path_factory.mktemp("cluster")) as (address, start_worker, scheduler):
        import distributed

        workers = [start_worker() for _ in range(2)]
        with distributed.Client(address) as client:
            client.wait_for_workers(2, timeout=60)
        yield address, workers, scheduler


@pytest.mark.long
def test_the_command_line_takes_a_cluster(tmp_path, cluster, capsys):
    address, *_ = cluster
    main(["reproduce", "--scale", "smoke", "--store", str(tmp_path / "there"), "--scheduler", address])
    main(["reproduce", "--scale", "smoke", "--store", str(tmp_path / "here"), "--against", str(tmp_path / "there")])
    assert "84 of 84 agents equal" in capsys.readouterr().out


@pytest.mark.long
def test_a_cluster_that_loses_a_worker_completes_and_gives_the_local_frame(tmp_path, cluster, monkeypatch):
    address, workers, _ = cluster
    folder = tmp_path / "store"
    wanted = make_jobs(["SPAQL"], ["Pendulum-v1"], [0, 4], 12, 150, 20, fresh=50)
    killed = []

    def save_and_kill(*arguments):
        path = save(*arguments)
        stored = len(list(folder.rglob("*.npz")))
        if stored >= 4 and not killed:
            workers[0].kill()
            killed.append(stored)
        return path

    save = store.save_record
    monkeypatch.setattr(runner, "save_record", save_and_kill)
    remote = run(wanted, scheduler=address, store=folder, progress_bar=False)
    assert killed
    assert killed[0] < len(wanted)
    workers[0].wait(timeout=5)
    local = run(wanted, store=None, progress_bar=False)
    pd.testing.assert_frame_equal(histories(remote), histories(local), check_exact=True)
    # What a worker computed says so.
    assert "cores" in store.load_origin(folder, wanted[0])["machine"]


@pytest.mark.long
def test_what_a_worker_computed_and_took_with_it_is_computed_again(dask):
    distributed = pytest.importorskip("distributed")
    address, start_worker, _ = dask
    with distributed.Client(address, set_as_default=False) as watcher:
        first = start_worker()
        watcher.wait_for_workers(1, timeout=60)
        results = cluster_module.on_cluster(abs, range(6), address)
        found = [next(results)]
        wait_until(lambda: sum(map(len, watcher.has_what().values())) == 5)  # all but the one that was fetched
        first.kill()
        wait_until(lambda: not watcher.ncores())
        start_worker()
        assert sorted([*found, *results]) == list(range(6))


WRONG = ("tcp://127.0.0.1:1", "nonsense://", "tls://127.0.0.1:1")


def test_a_wrong_scheduler_address_is_an_error(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster_module, "PATIENCE", 1.0)
    for wrong in WRONG:
        with pytest.raises(OSError, match=f"no Dask scheduler at {wrong}: start one"):
            run(some_jobs(agents=1), scheduler=wrong, store=None, progress_bar=False)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ImportError, match="spaql\\[cluster\\]"):
        run(some_jobs(agents=1), scheduler="tcp://127.0.0.1:1", store=None, progress_bar=False)
    assert distributed is not None


@pytest.mark.long
def test_a_lost_scheduler_is_said_and_the_run_resumes(tmp_path, cluster, counted, monkeypatch):
    address, _, scheduler = cluster
    wanted = make_jobs(["SPAQL"], ["Pendulum-v1"], [0, 4], 12, 150, 20, fresh=50)

    def save_and_kill(*arguments):
        path = save(*arguments)
        if len(list(tmp_path.rglob("*.npz"))) == 3:
            scheduler.kill()
        return path

    save = store.save_record
    monkeypatch.setattr(runner, "save_record", save_and_kill)
    with pytest.raises(ConnectionError, match="is lost: start it and its workers again"):
        run(wanted, scheduler=address, store=tmp_path / "store", progress_bar=False)
    killed_after = len(list(tmp_path.rglob("*.npz")))
    assert 3 <= killed_after < 24
    resumed = run(wanted, store=tmp_path / "store", progress_bar=False)
    assert len(counted) == 24 - killed_after
    assert [r.digest() for r in resumed] == [r.digest() for r in run(wanted, store=None, progress_bar=False)]


@pytest.mark.long
def test_a_cluster_without_workers_is_said_and_goes_on_when_one_comes(tmp_path, dask, monkeypatch, caplog):
    address, start_worker, _ = dask
    monkeypatch.setattr(cluster_module, "PATIENCE", 0.5)
    say, started = cluster_module.say_no_worker, []

    def say_and_start(scheduler):
        say(scheduler)
        started.append(start_worker())
        monkeypatch.setattr(cluster_module, "PATIENCE", 60.0)

    monkeypatch.setattr(cluster_module, "say_no_worker", say_and_start)
    with caplog.at_level(logging.WARNING):
        records = run(some_jobs(agents=1), scheduler=address, store=None, progress_bar=False)
    assert len(records) == 8
    assert len(started) == 1
    assert f"has no workers: start some (dask worker {address})" in caplog.text


@pytest.mark.long
def test_a_worker_without_the_package_is_said(tmp_path, dask):
    address, start_worker, _ = dask
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "spaql.py").write_text("raise ModuleNotFoundError('no spaql here')", encoding="utf-8")
    start_worker(PYTHONPATH=str(tmp_path / "without"))
    before = time.perf_counter()
    with pytest.raises(RuntimeError, match="cannot import this package .* install the same version there"):
        run(some_jobs(agents=1), scheduler=address, store=None, progress_bar=False)
    assert time.perf_counter() - before < 30


# ---------------------------------------------------------------------------------------------------------------------
# TRPO's processes, and what takes long


SLEEPERS = """
import sys, time
from pathlib import Path
from spaql.paper.runs.processes import in_processes

def sleep(name):
    for beat in range(1200):
        Path(sys.argv[1], name).write_text(str(beat), encoding="utf-8")
        time.sleep(0.05)

if __name__ == "__main__":
    list(in_processes(sleep, ["one", "two"], 2))
"""


@pytest.mark.long
@posix
def test_worker_processes_end_with_a_killed_parent(tmp_path):
    """A stand-in for TRPO, whose workers were found computing for minutes after their parent was gone."""

    def beats():
        return {path.name: path.read_bytes() for path in beating.iterdir()}

    (tmp_path / "sleepers.py").write_text(SLEEPERS.replace("sys.argv[1]", repr(str(tmp_path / "beats"))), "utf-8")
    beating = tmp_path / "beats"
    beating.mkdir()
    child = subprocess.Popen([sys.executable, tmp_path / "sleepers.py"], cwd=ROOT)
    try:
        deadline = time.monotonic() + 60
        while len(beats()) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(beats()) == 2
    finally:
        child.kill()
        child.wait()
    time.sleep(3)
    last = beats()
    time.sleep(1)
    assert beats() == last


def test_before_trpo_is_trained_it_is_said_how_long_that_takes(monkeypatch, caplog):
    """A changed `fresh` makes other agents, which are not stored."""

    class Started(Exception):
        pass

    def compute_all(*_):
        raise Started

    monkeypatch.setattr(runner, "compute_all", compute_all)
    monkeypatch.setattr(runner, "refuse_without_torch", lambda missing: None)
    changed = [dataclasses.replace(job, fresh=500) for job in study("trpo")]
    with caplog.at_level(logging.WARNING), pytest.raises(Started):
        run(changed, workers=2, store=ROOT / "results", progress_bar=False)
    assert "agents of TRPO with these parameters are not stored" in caplog.text
    caplog.clear()
    with pytest.raises(Started):
        run(some_jobs(), store=None, progress_bar=False)
    with pytest.raises(Started):
        run(study("trpo", "smoke"), store=None, progress_bar=False)
    assert caplog.text == ""  # that takes seconds


# ---------------------------------------------------------------------------------------------------------------------
# Reproducing


def test_agreement_sees_the_same_bits_the_same_distribution_and_a_difference():
    def group(seed, algorithm="SPAQL"):
        made = make_jobs([algorithm], ["CartPole-v0"], [20], 12, 15, 5, seed=seed, fresh=50)
        return run(made, store=None, progress_bar=False)

    first, second = group(1), group(2)
    same = agreement(first, first)
    assert same.same_bits.tolist() == [12]
    assert same.agrees.all()
    other = agreement(first, second)
    assert other.same_bits.tolist() == [0]
    assert other.agrees.all()
    assert not agreement(first, group(3, "Random")).agrees.any()
    # Agents trained for longer are a group of their own, and a difference in them is not drowned by the others.
    longer = run(make_jobs(["SPAQL"], ["CartPole-v0"], [20], 12, 30, 5, fresh=50), store=None, progress_bar=False)
    worse = [r._replace(fresh=r.fresh - 200) for r in longer]
    for record in worse:
        record.history["rewards"] -= 200
    longer = run(make_jobs(["SPAQL"], ["CartPole-v0"], [20], 12, 30, 5, fresh=50), store=None, progress_bar=False)
    assert agreement(first + longer, second + worse).agrees.tolist() == [True, False]


def test_an_unreadable_file_is_an_error_not_damage(tmp_path):
    path = store.record_path(tmp_path, some_jobs()[0])
    path.mkdir(parents=True)  # reading a folder fails, whoever one is
    with pytest.raises(IsADirectoryError):
        run(some_jobs(), store=tmp_path, progress_bar=False)
    assert path.exists()


@pytest.mark.long
def test_reproduce_computes_resumes_and_compares(tmp_path, capsys):
    main(["reproduce", "--scale", "smoke", "--store", str(tmp_path / "a")])
    assert "84 agents at smoke scale" in capsys.readouterr().out
    compared = ["--store", str(tmp_path / "b"), "--against", str(tmp_path / "a"), "--workers", "1"]
    main(["reproduce", "--scale", "smoke", *compared])
    shown = capsys.readouterr().out
    assert "84 of 84 agents equal" in shown
    assert "groups of agents agree" in shown
    with pytest.raises(SystemExit):
        main(["reproduce", "--workers", "0"])
    assert "expected a whole number above 0" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    with pytest.raises(SystemExit, match="nothing to compare"):
        main(["reproduce", "--scale", "smoke", "--store", str(tmp_path / "b"), "--against", str(tmp_path / "empty")])


# ---------------------------------------------------------------------------------------------------------------------
# What is committed


def test_the_stored_results_stay_small():
    assert sum(file.stat().st_size for file in (ROOT / "results").rglob("*") if file.is_file()) < 25e6


def test_stored_agents_can_be_recomputed():
    """The same bits on the machine that stored them; elsewhere the group must agree."""
    cells = {("SPAQL", "Pendulum-v1"), ("AQL", "CartPole-v0"), ("SPAQL-TS", "spaql/PendulumScaled-v1")}
    wanted = [job for job in study("xi") if (job.algorithm, job.system) in cells and job.xi == 20 and job.agent < 5]
    stored = [store.load_record(ROOT / "results", job) for job in wanted]
    again = run(wanted, store=None, progress_bar=False)
    if [r.digest() for r in again] != [r.digest() for r in stored]:
        compared = agreement(again, stored)
        assert compared.agrees.all(), compared
