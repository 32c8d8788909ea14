"""Parquet files of records: what is packed is what was computed, and no moment to be killed at loses anything."""

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
import pytest

from spaql.paper.cli import main
from spaql.paper.runs import parquet, provenance, runner, store
from spaql.paper.runs.errors import DamagedPack
from spaql.paper.runs.job import Job, compute
from spaql.paper.runs.pack import only_one, pack
from spaql.paper.runs.parquet import Stored
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.studies import make_jobs, paper_jobs, study_of
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


def test_packing_keeps_every_bit_and_where_it_comes_from(folder, computed):
    origins = [store.load_origin(folder, job) for job in WANTED]
    done = pack(folder, progress_bar=False)
    assert (done.agents, done.left) == (len(WANTED), 0)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    assert [str(path.relative_to(folder)) for path in files] == [
        "other/CartPole-v0.parquet",
        "other/Pendulum-v1.parquet",
    ]
    assert not [path for path in folder.iterdir() if path.name != "other"]  # empty folders are gone too
    for found, record in zip(loaded(folder), computed, strict=True):
        assert found.digest() == record.digest()
        assert (found.job, found.wall) == (record.job, record.wall)
        assert found.history.dtype == record.history.dtype
        assert found.history.tobytes() == record.history.tobytes()
        assert found.rewards.dtype == record.rewards.dtype
        assert {name: array.shape for name, array in found.episode.items()} == {
            name: array.shape for name, array in record.episode.items()
        }
        assert store.load_record(folder, record.job).digest() == record.digest()
    assert [store.load_origin(folder, job) for job in WANTED] == origins


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


def test_the_published_files_can_be_read_with_anyones_tools():
    frame = pd.read_parquet(ROOT / "results" / "long" / "CartPole-v0.parquet")
    assert len(frame) == 80
    assert frame.groupby("algorithm").size().to_dict() == {"AQL": 20, "Random": 20, "SPAQL": 20, "SPAQL-TS": 20}
    job = next(job for job in paper_jobs("long") if (job.system, job.algorithm) == ("CartPole-v0", "SPAQL"))
    row = frame[(frame.algorithm == "SPAQL") & (frame.agent == job.agent)].iloc[0]
    record = store.load_record(ROOT / "results", job)
    assert np.array_equal(row.history_rewards, record.history["rewards"])
    assert np.array_equal(np.stack(row.episode_states), record.episode["states"])
    assert row.rules["ties"] == "random"


KILLED = """
import os, signal, sys
from pathlib import Path
from spaql.paper.runs import pack, parquet

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

if sys.argv[2] == "writing":
    parquet.read_jobs = die
elif sys.argv[2] == "written":
    Path.unlink = die
pack.pack(Path(sys.argv[1]), progress_bar=False)
"""


@pytest.mark.slow
@pytest.mark.faults("kills")
@posix
@pytest.mark.parametrize("moment", ["writing", "written"])
def test_killed_while_packing_nothing_is_lost_and_the_next_time_completes_it(folder, computed, moment):
    child = subprocess.run([sys.executable, "-c", KILLED, str(folder), moment], cwd=ROOT)
    assert child.returncode == -signal.SIGKILL
    assert len(own(folder)) == len(WANTED)
    assert len(list(folder.rglob("*.parquet"))) == (moment == "written")
    assert digests(loaded(folder)) == digests(computed)
    done = pack(folder, progress_bar=False)
    assert (done.agents, done.left, own(folder)) == (len(WANTED), 0, [])
    assert digests(loaded(folder)) == digests(computed)
    for file in folder.rglob(".spaql-*.tmp"):  # what the killed process left is swept away once it is old
        os.utime(file, (0, 0))
    pack(folder, progress_bar=False)
    assert not list(folder.rglob(".spaql-*.tmp"))


@pytest.mark.faults("disks")
def test_a_failed_write_leaves_everything_as_it_was(folder, computed, monkeypatch):
    monkeypatch.setattr("spaql.paper.runs.parquet.read_jobs", lambda path, jobs: {})
    with pytest.raises(RuntimeError, match="nothing is changed"):
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
    odd = computed[0]._replace(wall=1.0, fresh=computed[0].fresh + 1.0)
    path = store.save_record(folder, odd)
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


@pytest.mark.faults("damage")
@pytest.mark.parametrize("kind", ["cut", "empty", "flipped", "foreign", "tampered"])
def test_a_damaged_parquet_file_is_reported_with_what_to_do(folder, kind, monkeypatch, capsys):
    pack(folder, progress_bar=False)
    path = folder / "other" / "CartPole-v0.parquet"
    data = bytearray(path.read_bytes())
    if kind == "cut":
        path.write_bytes(data[:-100])
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "flipped":
        for i in range(len(data) // 3, len(data) // 3 + 100):  # more than a page's own header
            data[i] ^= 0x10
        path.write_bytes(data)
    elif kind == "foreign":
        pd.DataFrame({"x": [1]}).to_parquet(path)
    else:  # a sound file, but one number is not what was computed
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pq.read_table(path)
        rows = table.to_pylist()
        rows[1]["history_rewards"][0] += 1e-9
        pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    with pytest.raises(DamagedPack, match="git checkout") as caught:
        run(WANTED, store=folder, progress_bar=False)
    assert str(path) in str(caught.value)
    assert path.exists()
    # On the command line it is a message.
    monkeypatch.setattr("spaql.paper.studies.paper_jobs", lambda *given: WANTED)
    with pytest.raises(SystemExit, match="is damaged"):
        main(["reproduce", "--scale", "smoke", "--study", "long", "--store", str(folder)])
    # Moved away, its agents are computed again.
    path.rename(path.with_suffix(".damaged"))
    assert len(run(WANTED, store=folder, progress_bar=False)) == len(WANTED)


@pytest.mark.faults("damage")
def test_a_damaged_file_of_an_agent_is_left_alone_and_reported(folder, caplog):
    path = store.record_path(folder, WANTED[0])
    path.write_bytes(path.read_bytes()[:-50])
    with caplog.at_level(logging.WARNING):
        done = pack(folder, progress_bar=False)
    assert (done.agents, done.left, own(folder)) == (len(WANTED) - 1, 1, [path])
    assert "left as it is" in caplog.text


@pytest.mark.faults("races")
def test_a_record_that_is_packed_meanwhile_is_found(folder, monkeypatch):
    def read_then_pack(*arguments):
        found = read(*arguments)
        if own(folder):
            pack(folder, progress_bar=False)
        return found

    read = store.read_packed
    monkeypatch.setattr(runner, "read_packed", read_then_pack)
    assert load_stored(WANTED, folder)[1] == []


@pytest.mark.faults("races")
def test_two_processes_do_not_pack_the_same_folder(folder, capsys):
    with only_one(folder), pytest.raises(SystemExit, match="another process is packing"):
        main(["pack", "--store", str(folder)])
    main(["pack", "--store", str(folder)])
    assert f"{len(WANTED)} agents packed into 2 Parquet files" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="there is no folder"):
        main(["pack", "--store", str(folder / "nowhere")])


@pytest.mark.faults("races")
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
    assert len(calls) == 2
    assert store.read_record(path).record.digest() == computed[0].digest()


def test_every_published_agent_is_packed_with_its_study():
    for study in ("xi", "long", "trpo", "ablation", "controls"):
        assert {study_of(job) for job in paper_jobs(study)} == {study}
    assert study_of(WANTED[0]) == "other"
    assert study_of(paper_jobs("long", "smoke", seed=3)[0]) == "long"


def test_a_job_is_written_by_name_and_defaults_are_left_out():
    first, last = WANTED[0], WANTED[-1]
    assert compute(first).job.identity() == first.identity()
    assert first.named() == {
        "algorithm": "SPAQL", "system": "CartPole-v0", "xi": 0.0, "iterations": 4, "evaluations": 2, "seed": 2020,
        "agent": 0, "fresh": 5, "record": True,
    }  # fmt: skip
    assert set(last.named()["rules"]) == set(DIFFERENCES)
    for job in WANTED:
        assert type(job).parse(job.named()) == job
    assert len({job.identity() for job in WANTED}) == len(WANTED)


def test_every_field_of_a_job_has_a_column_and_comes_back(tmp_path):
    assert set(parquet.JOB) == {field.name for field in dataclasses.fields(Job)}
    job = make_jobs(
        ["SPAQL"], ["CartPole-v0"], [4], 1, 2, 2, 5, "released", 3, starts="shared", initial=1.5, discount=0.5
    )[0]
    record = compute(job)
    path = tmp_path / "records.parquet"
    parquet.write_records(path, [Stored(record, {"numerics": 1})])
    (stored,) = parquet.read_jobs(path, [job]).values()
    assert stored.record.job == job
    assert stored.record.digest() == record.digest()
