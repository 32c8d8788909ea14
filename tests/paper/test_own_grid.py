"""Grids of environments of one's own, where results go, and the claims one asks for."""

import json
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pandas as pd
import papermill
import pytest

from spaql.paper.audit import judge
from spaql.paper.book import rerun
from spaql.paper.cli import main
from spaql.paper.runs import provenance, runner, training
from spaql.paper.runs.algorithms import compute, untrained
from spaql.paper.runs.job import Job
from spaql.paper.runs.runner import run, run_grid
from spaql.paper.runs.store import load_record, record_path, save_record
from spaql.paper.studies import make_jobs, study
from tests.core.test_own_problem import BOUNDS, limited, room

SMALL = {"agents": 2, "iterations": 3, "evaluations": 2, "progress_bar": False}

# ---------------------------------------------------------------------------------------------------------------------
# Grids


def test_a_grid_of_factories_runs_on_processes_with_any_parameter_and_gives_the_numbers_of_agents():
    frame = run_grid(["SPAQL", "Random"], [limited], [1.0], workers=2, bounds=BOUNDS, horizon=20, u=1.5, **SMALL)
    assert frame.system.unique().tolist() == ["tests.core.test_own_problem:limited"]
    (first, *_) = jobs = make_jobs(["SPAQL"], [limited], [1.0], 2, 3, 2, bounds=BOUNDS, horizon=20, u=1.5, fresh=100)
    assert [job.fresh for job in jobs] == [100, 100]
    assert dict(first.parameters) == {"bounds": ((270.0, 320.0),), "horizon": 20, "u": 1.5}
    alone = compute(first).history
    there = frame[(frame.algorithm == "SPAQL") & (frame.agent == 0)]
    assert np.array_equal(there.rewards, alone["rewards"])
    assert (there.steps == 20).all()


def test_registered_systems_run_on_threads_and_others_on_processes():
    compiled, interpreted = make_jobs(["SPAQL"], ["CartPole-v0", limited], [1.0], 1, 1, 1)
    assert runner.on_threads(compiled)
    assert not runner.on_threads(interpreted)


def test_parameters_are_part_of_what_is_stored(tmp_path):
    (job,) = make_jobs(["SPAQL"], [limited], [1.0], 1, 2, 1, bounds=BOUNDS, fresh=2)
    (other,) = make_jobs(["SPAQL"], [limited], [1.0], 1, 2, 1, bounds=[(260, 320)], fresh=2)
    assert record_path(tmp_path, job) != record_path(tmp_path, other)
    record = compute(job)
    save_record(tmp_path, record)
    assert load_record(tmp_path, job).digest() == record.digest()
    assert Job.parse(json.loads(job.identity())) == job
    plain = Job("SPAQL", "CartPole-v0", 1.0, 2, 1, 0, 0)
    assert "parameters" not in plain.identity()  # what is stored without them stays what it is


def test_an_iteration_of_spaqlr_is_an_episode_and_samples_are_samples():
    size = {"agents": 1, "evaluations": 2, "progress_bar": False, "fresh": 2}
    frame = run_grid(["SPAQLR"], ["CartPole-v0"], iterations=5, **size)
    (job,) = make_jobs(["SPAQL-R"], ["CartPole-v0"], [], 1, 5, 2, fresh=2, episodes=True)
    assert np.array_equal(frame.rewards, untrained(job).learn(5, 2).history.rewards)
    both = run_grid(["SPAQL-R", "Random", "SPAQLTS"], ["CartPole-v0"], [4], samples=3000, **size)
    assert set(both.algorithm) == {"SPAQL-R", "Random", "SPAQL-TS"}
    assert both[both.algorithm == "SPAQL-R"].samples.tolist() == [1000, 2000, 3000]
    assert (both.groupby("algorithm").steps.sum() >= 3000).all()
    with pytest.raises(ValueError, match="SPAQL needs at least one ξ: give xis"):
        run_grid(["SPAQL", "SPAQL-R"], ["CartPole-v0"])
    with pytest.raises(ValueError, match="samples must be whole thousands, as 20_000, not 1,500"):
        run_grid(["SPAQL-R"], ["CartPole-v0"], samples=1500)
    with pytest.raises(ValueError, match="TRPO cannot count samples: give iterations"):
        run_grid(["TRPO"], ["CartPole-v0"], samples=4000)
    with pytest.raises(ValueError, match="one of 'Random', .*'SPAQL-R', 'SPAQL-R, no replay'.* not 'SPAQL-Q'"):
        run_grid(["SPAQL-Q"], ["CartPole-v0"])


SAYING = """
import sys, warnings
from spaql.paper.runs.runner import run_grid

def grid(seed):
    run_grid(["SPAQL", "Random"], ["tests.core.test_own_problem:limited"], [1], agents=2, iterations=2, evaluations=2,
             seed=seed, fresh=2, bounds=[(290, 295)], workers=2, progress_bar=False)

if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        grid(1)
    print("now", file=sys.stderr)
    grid(2)
"""


def test_what_agents_of_a_grid_have_to_say_is_said_once_and_can_be_ignored():
    done = subprocess.run([sys.executable, "-c", SAYING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [part.count("outside the bounds") for part in done.stderr.split("now\n")] == [0, 1]


def test_outside_a_clone_nothing_of_the_paper_is_computed_unasked(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "repository", lambda: None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no results are stored here, so that 240 agents .* give store="):
        run(study("long"))


@pytest.mark.parametrize("module", ["runs.runner", "audit.robustness", "book.explorer", "figures.policies", "tables"])
def test_without_pandas_the_extra_is_named(module):
    code = f"import sys; sys.modules['pandas'] = None; import spaql.paper.{module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith("this needs pandas: pip install 'spaql[paper]'\n")


def test_a_grid_of_spaqlr_takes_its_parameters():
    (job,) = make_jobs(["SPAQL-R"], [limited], [1], 1, 1, 1, bounds=[(270, 320)], actions=5, replays=2)
    agent = untrained(job)
    assert agent.parameters["bounds"] == [[270.0, 320.0]]
    assert (agent.parameters["actions"], agent.parameters["replays"]) == (5, 2)


def test_without_torch_nothing_is_computed_for_a_notebook_that_would_need_it(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "find_spec", lambda name: None)
    jobs = make_jobs(["Random", "TRPO"], ["CartPole-v0"], [0], 1, 1, 1, seed=987)
    with pytest.raises(ImportError, match="TRPO with these parameters are not stored.*Nothing was computed"):
        run(jobs, store=tmp_path)
    assert not list(tmp_path.rglob("*.npz"))


def test_runs_that_begin_at_the_same_moment_have_files_of_their_own(tmp_path):
    path = provenance.repository() / "notebooks" / "02_pendulum.ipynb"
    files = [rerun.own_output(path) for _ in range(3)]
    assert len(set(files)) == 3
    for file in files:
        rerun.unfinished(file).unlink()
    with pytest.raises(rerun.Refused, match="is a folder: give the file to write"):
        rerun.run_notebook(str(path), {}, output=tmp_path)


def in_main():
    return limited()


in_main.__module__ = "__main__"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"systems": [lambda: limited()]}, "a function of a module.*put the function into a file of its own"),
        ({"systems": [in_main]}, "put the function into a file of its own"),
        ({"systems": [limited], "tau": 1}, "SPAQL have no parameter tau"),
        ({"systems": [limited], "bounds": [(1, 0)]}, "bounds of observation 0"),
        ({"systems": [limited], "algorithms": ["SPAQL-TS"]}, "give reference="),
    ],
)
def test_bad_grids_of_ones_own_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        make_jobs(**{"algorithms": ["SPAQL"], "xis": [1], "agents": 1, "iterations": 1, "evaluations": 1} | change)


def test_a_process_that_does_not_know_an_id_says_what_to_do(monkeypatch):
    def unknown(job):
        raise gym.error.NameNotFound("Environment Room doesn't exist")

    monkeypatch.setattr(training, "train", unknown)
    with pytest.raises(ValueError, match="name it with the module that registers it, 'module:Room-v0'"):
        training.compute(Job("SPAQL", "Room-v0", 1.0, 1, 1, 0, 0))


# ---------------------------------------------------------------------------------------------------------------------
# Where things go


def test_run_never_writes_among_the_published_results_unless_told_to(tmp_path, monkeypatch):
    published = tmp_path / "results"
    monkeypatch.setattr(provenance, "default_store", lambda: published)
    monkeypatch.setenv("SPAQL_RUNS", str(tmp_path / "runs"))
    jobs = make_jobs(["Random"], ["CartPole-v0"], [0], 2, 1, 1, fresh=2)
    run(jobs[:1], store=published, progress_bar=False)
    before = sorted(published.rglob("*"))
    again = run(jobs, progress_bar=False)
    assert [record.job for record in again] == jobs
    assert sorted(published.rglob("*")) == before
    assert len(list((tmp_path / "runs").rglob("*.npz"))) == 1
    monkeypatch.setattr(runner, "compute_all", lambda *_: pytest.fail("it is stored"))
    assert [record.digest() for record in run(jobs)] == [record.digest() for record in again]


def test_the_repository_is_the_one_that_the_current_folder_is_in(tmp_path, monkeypatch):
    for part in ("results", "notebooks/deep", "spaql"):
        (tmp_path / part).mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "lib" / "a" / "b" / "c" / "provenance.py"))
    monkeypatch.chdir(tmp_path / "notebooks" / "deep")
    assert provenance.repository() == tmp_path
    monkeypatch.chdir(tmp_path.parent)
    assert provenance.repository() is None
    with pytest.raises(SystemExit, match="spaql run: there is no file 02, and this is no repository"):
        main(["run", "02"])
    with pytest.raises(SystemExit, match="spaql bench: .*call this in the repository"):
        main(["bench", "--record"])


def test_every_run_has_a_file_of_its_own_and_a_failed_one_replaces_none(tmp_path, monkeypatch):
    monkeypatch.setattr(rerun, "repository", lambda: tmp_path)

    def execute(path, output, *_, **__):
        with open(output, "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write("done")

    path = provenance.repository() / "notebooks" / "02_pendulum.ipynb"
    monkeypatch.setattr(rerun.papermill, "execute_notebook", execute)
    first, second = rerun.run_notebook(str(path), {}), rerun.run_notebook(str(path), {})
    assert first != second
    assert first.read_text(encoding="utf-8") == "done"

    def fail(path, output, *_, **__):
        execute(path, output)
        raise papermill.PapermillExecutionError(0, 1, "", "ValueError", "no", [])

    monkeypatch.setattr(rerun.papermill, "execute_notebook", fail)
    with pytest.raises(rerun.Refused, match=f"{first.stem}-failed"):
        rerun.run_notebook(str(path), {}, output=first)
    assert first.read_text(encoding="utf-8") == "done"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["02", "-p", "xi_spaql", "-1"], "xi_spaql must be a number of at least 0"),
        (["01", "-p", "xis", "[4, -1]"], "xis must be a number of at least 0"),
        (["06", "-p", "agents", "1"], "agents must be a whole number of at least 2"),
    ],
)
def test_what_the_kernel_would_refuse_is_refused_before_it_starts(arguments, says, monkeypatch):
    monkeypatch.setattr(rerun.papermill, "execute_notebook", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(SystemExit, match=says):
        main(["run", *arguments])


# ---------------------------------------------------------------------------------------------------------------------
# Claims


def test_claims_can_be_chosen_by_id_and_by_verdict_and_say_what_they_state(judged, monkeypatch, capsys):
    monkeypatch.setattr(judge, "verdicts", lambda store: judged)
    first = judged.iloc[0]
    main(["claims", first.id])
    shown = capsys.readouterr().out
    assert first.statement.split()[-1] in shown
    assert "1 claims" in shown
    those = judged[judged.id.str.startswith("cartpole-")]
    main(["claims", "cartpole-*", "--verdict", those.verdict.iloc[0], "--json"])
    found = pd.DataFrame(json.loads(capsys.readouterr().out))
    expected = those[those.verdict == those.verdict.iloc[0]]
    assert found.id.tolist() == expected.id.tolist()
    assert found.statement.tolist() == expected.statement.tolist()
    with pytest.raises(SystemExit, match="no claim has an id like 'nothing'"):
        main(["claims", "nothing"])
    with pytest.raises(SystemExit, match="no claim has the verdict 'maybe': they are "):
        main(["claims", "--verdict", "maybe"])


def test_robustness_on_ones_own_environment():
    from spaql.paper.audit.robustness import robustness

    tree = room().learn(5, 2).policy.tree()
    frame = robustness(
        {"tree": tree}, limited(), noises=(0, 1.0), episodes=3, variants={"leaky": limited(leak=0.1), "same": limited()}
    )
    assert frame.change.tolist() == ["leaky", "same", "noise", "noise"]
    means = frame["mean"].tolist()
    assert means[1] == means[2]
    assert len(set(means)) == 3
    assert set(robustness({"tree": tree}, limited(), episodes=3).change) == {"noise"}  # it has no mass to change
