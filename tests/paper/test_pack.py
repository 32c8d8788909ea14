"""The table of agents: what is packed is what was computed, and no moment to be killed at loses anything."""

import dataclasses
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spaql.paper.cli import main
from spaql.paper.frames import finals, histories
from spaql.paper.published import curves_of, only_one, pack
from spaql.paper.runs import provenance, runner, store, table
from spaql.paper.runs.algorithms import compute
from spaql.paper.runs.errors import DamagedPack
from spaql.paper.runs.job import Job
from spaql.paper.runs.outcomes import outcome
from spaql.paper.runs.retrain import same_history
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.runs.training import end_of
from spaql.paper.studies import STUDIES, make_jobs, study, study_of
from spaql.rules import DIFFERENCES
from tests.conftest import posix

ROOT = Path(__file__).parents[2]
WANTED = make_jobs(["SPAQL", "Random"], ["CartPole-v0"], [0, 20], 2, 4, 2, fresh=5, record=True)
WANTED += make_jobs(["SPAQL-TS"], ["Pendulum-v1"], [4], 3, 4, 2, fresh=5, rules="released")


@pytest.fixture(scope="module")
def computed():
    return run(WANTED, store=None, progress_bar=False)


@pytest.fixture
def folder(tmp_path, computed):
    """A folder with one file per agent."""
    for record in computed:
        store.save_record(tmp_path, record)
    return tmp_path


def own(folder):
    return sorted(folder.rglob("*.npz"))


def loaded(folder):
    records, missing = load_stored(WANTED, folder, repair=False)
    assert missing == []
    return [records[job] for job in WANTED]


def digests(records):
    return [record.digest() for record in records]


def test_packing_keeps_the_numbers_the_curves_and_where_they_come_from(folder, computed):
    origins = [store.load_origin(folder, job) for job in WANTED]
    assert pack(folder, progress_bar=False)[::2] == (len(WANTED), 0)
    assert sorted(path.name for path in folder.iterdir()) == ["agents.parquet", "curves"]  # empty folders are gone
    found = loaded(folder)
    assert digests(found) == digests(computed)
    assert [store.load_origin(folder, job) for job in WANTED] == origins
    pd.testing.assert_frame_equal(finals(found), finals(computed), check_exact=True)
    curves = histories(found)
    pd.testing.assert_frame_equal(curves, histories(computed)[list(curves)], check_exact=True)
    for one, record in zip(found, computed, strict=True):
        assert np.array_equal(one.rewards, record.rewards)
        np.testing.assert_equal(outcome(one), outcome(record))
        with pytest.raises(LookupError, match="computes it again"):
            one.history["tau"]


def test_of_most_studies_only_the_end_is_kept(tmp_path, computed):
    record = computed[0]
    entry = table.make_entry("xi", table.Stored(record, {"numerics": 1}), ())
    table.write_table(tmp_path, {record.job: entry})
    found = store.load_record(tmp_path, record.job)
    assert found.only_end
    assert same_history(found.history, record.history)
    assert not same_history(found.history, record.history[:-1])
    end = end_of(record.history)
    assert all(found.history[name] == end[name] for name in found.history.dtype.names)
    np.testing.assert_equal(outcome(found), outcome(record))
    with pytest.raises(LookupError, match="not stored"):
        histories([found])


def test_packing_twice_changes_nothing_and_more_agents_join_the_others(folder):
    pack(folder, progress_bar=False)
    before = {path: path.read_bytes() for path in folder.rglob("*.parquet")}
    assert pack(folder, progress_bar=False).agents == 0
    assert {path: path.read_bytes() for path in folder.rglob("*.parquet")} == before
    more = make_jobs(["SPAQL"], ["CartPole-v0"], [20], 4, 4, 2, fresh=5, record=True)
    run(more, store=folder, progress_bar=False)
    assert len(own(folder)) == 2  # the other two were packed
    assert pack(folder, progress_bar=False).agents == 2
    assert load_stored([*WANTED, *more], folder, repair=False)[1] == []


def test_a_stranger_reads_the_published_table_with_pandas():
    agents = pd.read_parquet(ROOT / "results" / "agents.parquet")
    assert set(agents.study) == set(STUDIES)
    jobs = [job for job in study("long") if job.system == "CartPole-v0"]
    mine = agents[(agents.study == "long") & (agents.system == "CartPole-v0")]
    records, _ = load_stored(jobs, ROOT / "results", repair=False)
    ours = finals(records.values()).groupby("algorithm")[["rewards", "fresh", "arms"]].mean()
    pd.testing.assert_frame_equal(mine.groupby("algorithm")[["rewards", "fresh", "arms"]].mean(), ours)
    curves = pd.read_parquet(ROOT / "results" / "curves" / "long-CartPole-v0.parquet").merge(mine, on="digest")
    assert all(curve[-1] == end for curve, end in zip(curves.rewards_x, curves.rewards_y, strict=True))


KILLED = """
import os, signal, sys
from pathlib import Path
from spaql.paper import published
from spaql.paper.runs import table

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

write = table.write_file
if sys.argv[2] == "writing":
    Path.replace = die
elif sys.argv[2] == "between":
    table.write_file = lambda path, *rest: die() if path.name == "agents.parquet" else write(path, *rest)
else:
    published.remove = die
published.pack(Path(sys.argv[1]), progress_bar=False)
"""


@posix
@pytest.mark.parametrize("moment", ["writing", "between", "written"])
def test_killed_while_packing_nothing_is_lost_and_the_next_time_completes_it(folder, computed, moment):
    child = subprocess.run([sys.executable, "-c", KILLED, str(folder), moment], cwd=ROOT)
    assert child.returncode == -signal.SIGKILL
    assert len(own(folder)) == len(WANTED)
    assert digests(loaded(folder)) == digests(computed)
    done = pack(folder, progress_bar=False)
    assert (done.agents, done.left, own(folder)) == (len(WANTED), 0, [])
    assert digests(loaded(folder)) == digests(computed)
    for file in folder.rglob(".spaql-*.tmp"):  # what the killed process left is swept away once it is old
        os.utime(file, (0, 0))
    pack(folder, progress_bar=False)
    assert not list(folder.rglob(".spaql-*.tmp"))


def test_a_failed_write_leaves_everything_as_it_was(folder, monkeypatch):
    def unreadable(path):
        raise pa.ArrowInvalid("not what was written")

    monkeypatch.setattr(table, "open_parquet", unreadable)
    with pytest.raises(pa.ArrowInvalid):
        pack(folder, progress_bar=False)
    monkeypatch.undo()
    assert len(own(folder)) == len(WANTED)
    assert [path for path in folder.rglob("*") if path.suffix in (".parquet", ".tmp")] == []


def test_a_record_in_both_places(folder, computed, caplog, monkeypatch):
    kept = folder.parent / "kept"
    shutil.copytree(folder, kept)
    pack(folder, progress_bar=False)
    shutil.copytree(kept, folder, dirs_exist_ok=True)
    # One of them is another agent's numbers under this one's name: what is packed counts, and the other is left alone.
    path = store.save_record(folder, computed[0]._replace(wall=1.0, fresh=computed[0].fresh + 1.0))
    assert digests(loaded(folder)) == digests(computed)
    with caplog.at_level(logging.WARNING):
        done = pack(folder, progress_bar=False)
    assert (done.agents, done.left, own(folder)) == (len(WANTED) - 1, 1, [path])
    assert "differs from what" in caplog.text
    with pytest.raises(SystemExit, match="1 files were left"):
        main(["pack", "--store", str(folder)])
    # With another version of the numbers the agent's own file counts, and takes the place of the stale row.
    path.unlink()
    monkeypatch.setitem(provenance.NUMERICS, "spaql", 2)
    run(WANTED[:1], store=folder, progress_bar=False)
    assert store.load_origin(folder, WANTED[0])["numerics"] == 2
    assert load_stored(WANTED, folder, repair=False)[1] == WANTED[1:]
    assert pack(folder, progress_bar=False).agents == 1
    assert load_stored(WANTED, folder, repair=False)[1] == WANTED[1:]
    monkeypatch.undo()
    assert load_stored(WANTED, folder, repair=False)[1] == WANTED[:1]


@pytest.mark.parametrize("name", ["agents.parquet", "curves/other-CartPole-v0.parquet"])
@pytest.mark.parametrize("kind", ["cut", "empty", "flipped", "foreign", "tampered", "missing"])
def test_a_damaged_table_is_reported_with_what_to_do(folder, kind, name, monkeypatch):
    pack(folder, progress_bar=False)
    path = folder / name
    data = bytearray(path.read_bytes())
    if kind == "cut":
        path.write_bytes(data[:-100])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "flipped":
        for i in range(len(data) // 8, len(data) // 8 + 100):  # more than a page's own header
            data[i] ^= 0x10
        path.write_bytes(data)
    elif kind == "foreign":
        pd.DataFrame({"x": [1]}).to_parquet(path)
    elif kind == "missing":
        if name == "agents.parquet":
            pytest.skip("without a table there are no agents to read")
        path.unlink()
    else:  # a sound file, but one number is not what was computed
        found = pq.read_table(path)
        rows = found.to_pylist()
        if name == "agents.parquet":
            rows[1]["fresh"] += 1e-9
        else:
            rows[1]["rewards"][0] += 1e-9
        pq.write_table(pa.Table.from_pylist(rows, found.schema), path)
    with pytest.raises(DamagedPack, match="repository") as caught:
        run(WANTED, store=folder, progress_bar=False)
    assert str(path) in str(caught.value)
    monkeypatch.setattr("spaql.paper.studies.study", lambda *given: WANTED)
    with pytest.raises(SystemExit, match=r"is (damaged|missing)"):  # on the command line it is a message
        main(["reproduce", "--scale", "smoke", "--study", "long", "--store", str(folder)])


def test_a_damaged_file_of_an_agent_is_left_alone_and_reported(folder, caplog):
    path = store.record_path(folder, WANTED[0])
    path.write_bytes(path.read_bytes()[:-50])
    with caplog.at_level(logging.WARNING):
        done = pack(folder, progress_bar=False)
    assert (done.agents, done.left, own(folder)) == (len(WANTED) - 1, 1, [path])
    assert "left as it is" in caplog.text


def test_a_record_that_is_packed_meanwhile_is_found(folder, monkeypatch):
    def read_then_pack(*arguments):
        found = table.read_jobs(*arguments)
        if own(folder):
            pack(folder, progress_bar=False)
        return found

    monkeypatch.setattr(runner, "read_jobs", read_then_pack)
    assert load_stored(WANTED, folder)[1] == []


def test_two_processes_do_not_pack_the_same_folder(folder):
    with only_one(folder), pytest.raises(SystemExit, match="another process is packing"):
        main(["pack", "--store", str(folder)])
    with pytest.raises(SystemExit, match="there is no folder"):
        main(["pack", "--store", str(folder / "nowhere")])


def test_a_folder_that_packing_removes_is_made_again(tmp_path, computed, monkeypatch):
    from spaql import archive

    calls = []

    def vanish(path, header, arrays):
        calls.append(path)
        if len(calls) == 1:
            path.parent.rmdir()
        write(path, header, arrays)

    write = archive.write
    monkeypatch.setattr(archive, "write", vanish)
    path = store.save_record(tmp_path, computed[0])
    assert store.read_record(path).record.digest() == computed[0].digest()


def test_every_published_agent_stands_in_the_table_under_its_study():
    agents = table.read_agents(ROOT / "results")
    assert set(table.read_entries(ROOT / "results", agents.places)) == set(agents.places)  # every digest matches
    studies = dict(zip(agents.places, agents.columns["study"], strict=True))
    for name in STUDIES:
        jobs = study(name)
        assert {studies.get(job) for job in jobs} == {name} == {study_of(job) for job in jobs}
    assert study_of(WANTED[0]) == "other"
    kept = dict(zip(agents.places, agents.columns["curves"], strict=True))
    assert all(", ".join(curves_of(studies[job], job)) == curves for job, curves in kept.items())


def test_a_job_is_written_by_name_and_defaults_are_left_out():
    first, last = WANTED[0], WANTED[-1]
    assert first.named() == {
        "algorithm": "SPAQL", "system": "CartPole-v0", "xi": 0.0, "iterations": 4, "evaluations": 2, "seed": 2020,
        "agent": 0, "fresh": 5, "record": True,
    }  # fmt: skip
    assert set(last.named()["rules"]) == set(DIFFERENCES)
    for job in WANTED:
        assert type(job).parse(job.named()) == job
    assert len({job.identity() for job in WANTED}) == len(WANTED)


def test_every_field_of_a_job_has_a_column_and_comes_back(tmp_path):
    assert set(table.JOB) == {field.name for field in dataclasses.fields(Job)}
    job = make_jobs(
        ["SPAQL"], ["CartPole-v0"], [4], 1, 2, 2, 5, "released", 3, starts="shared", initial=1.5, discount=0.5
    )[0]
    mixed = dataclasses.replace(job, rules=job.rules._replace(ties="random", kept="last"), looks=3, agent=7)
    record = compute(job)
    entries = {
        one: table.make_entry("other", table.Stored(record._replace(job=one), {"numerics": 1}), ())
        for one in (job, mixed)
    }
    table.write_table(tmp_path, entries)
    found = table.read_jobs(tmp_path, [job, mixed])
    assert set(found) == {job, mixed}
    assert found[job].record.digest() == record.digest()
