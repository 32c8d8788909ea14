"""The command line: what it refuses, in one line, and that what it runs comes out."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from spaql.paper.cli import main
from spaql.paper.engine import store, study, verify
from spaql.paper.engine.study import Study, make_jobs

ROOT = Path(__file__).parents[2]


def refused(arguments):
    with pytest.raises(SystemExit) as found:
        main(arguments)
    text = str(found.value)
    assert len(text.splitlines()) == 1
    assert len(text) < 500
    return text


@pytest.fixture
def small(monkeypatch):
    """A study of a few small agents, in the place of all others."""
    jobs = lambda agents=2: make_jobs("Random", "CartPole-v0", agents=agents, iterations=2, evaluations=2, fresh=5)  # noqa: E731
    monkeypatch.setattr(study, "STUDIES", {"small": Study("small", jobs, ("curve_rewards",))})
    monkeypatch.setattr(verify, "STUDIES", study.STUDIES)
    study.published.cache_clear()
    yield jobs()
    study.published.cache_clear()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["02", "-p", "agent", "5"], "'agent'"),
        (["02", "-p", "agents", "2.5"], "agents"),
        (["02", "-p", "agents", "true"], "agents"),
        (["02", "-p", "agents", "(" * 100_000], "agents"),
        (["01", "-p", "xis", "4"], "xis"),
        (["0"], "02_pendulum"),
        (["nowhere/02_pendulum.ipynb"], "nowhere"),
        (["02", "--output", str(ROOT / "notebooks" / "new.ipynb")], "new.ipynb"),
    ],
)
def test_run_refuses_what_makes_no_sense_before_anything_runs(arguments, named, monkeypatch):
    monkeypatch.setattr("papermill.execute_notebook", lambda *_, **__: pytest.fail("it ran"))
    assert named in refused(["run", *arguments])


# Two kernels that start at once may choose the same free port, sockets are each one's own.
USED = "import ipykernel, json; print(5 // agents, json.loads(ipykernel.get_connection_info())['transport'])"


def test_run_executes_a_notebook_with_other_parameters(tmp_path):
    kernel = {"name": "python3", "display_name": "", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    declared = nbformat.v4.new_code_cell("agents: int = 20  # how many", metadata={"tags": ["parameters"]})
    notebook.cells = [declared, nbformat.v4.new_code_cell(USED)]
    nbformat.write(notebook, tmp_path / "in.ipynb")
    command = ["run", str(tmp_path / "in.ipynb"), "--output", str(tmp_path / "out.ipynb"), "-p", "agents"]
    main([*command, "5"])
    assert nbformat.read(tmp_path / "out.ipynb", as_version=4).cells[-1].outputs[0].text == "1 ipc\n"
    with pytest.raises(SystemExit, match=r"ZeroDivisionError.*out\.ipynb"):  # one line
        main([*command, "0"])


def test_run_lists_the_parameters_of_a_notebook(capsys):
    main(["run", "02", "-h"])
    assert "agents = 20" in capsys.readouterr().out


def test_what_was_typed_is_not_echoed_whole(capsys):
    with pytest.raises(SystemExit):
        main(["claims", "--verdict", "x" * 100_000])
    assert len(capsys.readouterr().err) < 1000


def test_reproduce_writes_one_file_goes_on_where_it_was_and_verify_compares(small, tmp_path, monkeypatch, capsys):
    other = tmp_path / "other.parquet"
    other.touch()
    for module in (store, verify):
        monkeypatch.setattr(module, "results", lambda: tmp_path)
    monkeypatch.setattr(verify, "ROOT", tmp_path)
    for says in ("0 of them have the bits", "2 of them have the bits"):
        main(["reproduce"])
        assert says in capsys.readouterr().out
    frame = store.read("small")
    assert list(frame.agent) == [0, 1]
    assert "curve_arms" not in frame
    main(["verify", "--study", "small"])
    assert "the same bits" in capsys.readouterr().out
    store.write_file(tmp_path / "small.parquet", frame.assign(rewards=frame.rewards + 1))
    with pytest.raises(SystemExit, match="differs in rewards"):
        main(["verify", "--study", "small", "--agents", "2"])
    assert other.read_bytes() == b""
    assert "nowhere" in refused(["reproduce", "--into", str(tmp_path / "nowhere")])
    assert "agents must be" in refused(["verify", "--study", "small", "--agents", "0"])
    assert "workers must be" in refused(["verify", "--study", "small", "--workers", "-3"])


@pytest.mark.parametrize("package", ["gymnasium", "pyarrow"])  # the first imported for all, the second for a command
def test_ctrl_c_is_one_line(package, tmp_path):
    (tmp_path / f"{package}.py").write_text("raise KeyboardInterrupt", encoding="utf-8")
    there = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-m", "spaql", "claims"], capture_output=True, text=True, env=there)
    assert (done.returncode, done.stderr) == (1, "spaql: interrupted\n")
