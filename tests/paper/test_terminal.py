"""The command line: what is wrong is one sentence, and any encoding can say it."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from spaql.paper.audit import judge
from spaql.paper.book import rerun
from spaql.paper.cli import main
from spaql.paper.runs import runner, store
from spaql.paper.studies import study
from spaql.paper.terminal import PLAIN, sentence

SPAQL = [sys.executable, "-c", "from spaql.paper.cli import main; main()"]
SMOKE = ["reproduce", "--scale", "smoke", "--study", "long", "--store"]


@pytest.fixture
def nothing_runs(monkeypatch):
    def compute_all(*_):
        raise AssertionError("something is computed")

    monkeypatch.setattr(runner, "compute_all", compute_all)


# ---------------------------------------------------------------------------------------------------------------------
# Encodings


def printed(command, encoding, monkeypatch):
    """Return what a command prints where the encoding has no other way out."""
    written = io.BytesIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding, errors="strict"))
        main(command)
        sys.stdout.flush()
        return written.getvalue().decode(encoding)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_claims_are_printed_in_any_encoding(encoding, judged, monkeypatch):
    monkeypatch.setattr(judge, "verdicts", lambda store: judged)
    shown = printed(["claims"], encoding, monkeypatch)
    assert f"{len(judged)} claims" in shown
    assert "xi" in shown
    assert "?" not in shown  # every character has a plain form


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_process_with_another_encoding_prints(encoding):
    surroundings = os.environ | {"PYTHONIOENCODING": encoding}
    code = SPAQL[2].replace("main()", "print('ready'); from spaql.paper.terminal import speak_plainly")
    code += "; speak_plainly(); print('\u03be \u2265 0'); main(['verify', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=surroundings)
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    assert b"xi >= 0" in done.stdout
    assert b"--agents" in done.stdout


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_run_says_what_differs_in_any_encoding(encoding, monkeypatch, tmp_path):
    monkeypatch.setattr(rerun.papermill, "execute_notebook", lambda path, output, *_, **__: Path(output).touch())
    shown = printed(
        ["run", "01", "-p", "xis", "[0, 4]", "--output", str(tmp_path / "out.ipynb")], encoding, monkeypatch
    )
    assert "01_xi_scaling with other parameters than our stored run" in shown
    assert "xis" in shown
    assert "?" not in shown


def test_the_plain_forms_are_plain():
    assert all(form.isascii() and not character.isascii() for character, form in PLAIN.items())


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise there")
def test_a_reader_who_has_seen_enough_is_no_error():
    code = "from spaql.paper.terminal import one_sentence\nwith one_sentence('x'):\n    print('line\\n' * 10**6)"
    command = ["sh", "-c", '"$0" -c "$1" | head -n 1', sys.executable, code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("line\n", "")


# ---------------------------------------------------------------------------------------------------------------------
# Errors


def test_an_absent_folder_is_said_before_anything_is_computed(tmp_path, nothing_runs, monkeypatch):
    with pytest.raises(SystemExit, match="spaql reproduce: there is no folder .*nowhere"):
        main([*SMOKE, str(tmp_path), "--against", str(tmp_path / "nowhere")])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("spaql.paper.runs.provenance.repository", lambda: None)
    with pytest.raises(SystemExit, match="spaql claims: there is no folder results: give another one"):
        main(["claims"])
    (tmp_path / "results").mkdir()
    with pytest.raises(SystemExit, match="no claim could be judged: results holds none of the paper's results"):
        main(["claims"])


def test_a_study_given_twice_counts_once(tmp_path, capsys):
    main([*SMOKE, str(tmp_path), "--study", "long"])
    assert f"{len(study('long', 'smoke'))} agents at smoke scale" in capsys.readouterr().out


def failing(number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number), "the/file")

    return fail


@pytest.mark.parametrize(
    ("where", "number", "says"),
    [
        ("pathlib.Path.mkdir", 30, "spaql reproduce: the/file: Read-only file system"),
        ("pathlib.Path.mkdir", 13, "spaql reproduce: the/file: Permission denied"),
        ("numpy.savez_compressed", 28, "spaql reproduce: the/file: No space left on device"),
    ],
)
def test_a_store_that_cannot_be_written_to_is_one_sentence(tmp_path, monkeypatch, where, number, says):
    with monkeypatch.context() as patch:
        patch.setattr(where, failing(number))
        with pytest.raises(SystemExit, match=says):
            main([*SMOKE, str(tmp_path)])
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []  # nothing half-written
    main([*SMOKE, str(tmp_path)])
    assert len(list(tmp_path.rglob("*.npz"))) == len(study("long", "smoke"))


def test_a_folder_in_a_files_place_and_a_file_in_a_folders_place_are_one_sentence(tmp_path, nothing_runs):
    path = store.record_path(tmp_path / "store", study("long", "smoke")[3])
    path.mkdir(parents=True)
    with pytest.raises(SystemExit, match="Is a directory"):
        main([*SMOKE, str(tmp_path / "store")])
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match="Not a directory"):
        main([*SMOKE, str(tmp_path / "file")])


def test_a_stale_file_in_a_read_only_store_does_not_stop_a_run(tmp_path, monkeypatch):
    main([*SMOKE, str(tmp_path)])
    stale = tmp_path / ".spaql-1-stale.tmp"
    stale.touch()
    os.utime(stale, (0, 0))
    monkeypatch.setattr("pathlib.Path.unlink", failing(30))
    main([*SMOKE, str(tmp_path)])
    assert stale.exists()


def notebook(path, *cells, **metadata):
    made = nbformat.v4.new_notebook(metadata=metadata)
    made.cells = [nbformat.v4.new_code_cell(text, metadata={"tags": tags}) for text, tags in cells]
    nbformat.write(made, path)


PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("text", "is not a notebook"),
        ("empty", "is not a notebook"),
        ("json", "is not a notebook"),
        ("no kernel", "needs the kernel None, which is not installed here"),
        ("R", "needs the kernel 'ir', which is not installed here"),
        ("expression", "expected a constant"),
        ("failing", "a cell of it.ipynb failed .ZeroDivisionError: division by zero.; what was done until then is in"),
    ],
)
def test_a_foreign_notebook_is_one_sentence(tmp_path, kind, says):
    path = tmp_path / "it.ipynb"
    if kind in ("text", "empty", "json"):
        path.write_text({"text": "no notebook", "empty": "", "json": json.dumps({})}[kind], encoding="utf-8")
    else:
        kernel = {"no kernel": {}, "R": {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}}
        first = "x = len('ab')" if kind == "expression" else "x = 1"
        notebook(path, (first, ["parameters"]), ("1 / 0", []), **kernel.get(kind, PYTHON))
    with pytest.raises(SystemExit, match=says) as ended:
        main(["run", str(path), "--output", str(tmp_path / "out.ipynb")])
    assert str(ended.value).startswith("spaql run: ")
    assert "\n" not in str(ended.value)


def test_a_parameter_of_a_foreign_notebook_needs_no_annotation(tmp_path):
    notebook(tmp_path / "it.ipynb", ("x = 1", ["parameters"]), **PYTHON)
    assert rerun.check_parameters(tmp_path / "it.ipynb", {"x": 3}) == {"x": 3}
    with pytest.raises(rerun.Refused, match="at most 1,000,000,000"):
        rerun.check_parameters(tmp_path / "it.ipynb", {"x": 10**30})


@pytest.mark.parametrize("text", ["[" * 5000 + "]" * 5000, "1" + "-" * 100_000 + "1", "(" * 150 + ")" * 150])
def test_a_parameter_that_is_nested_too_deeply_is_one_sentence(text):
    with pytest.raises(SystemExit, match=r"^spaql run: [^\n]*$"):
        main(["run", "02", "-p", "agents", text])


def test_a_mistake_in_the_program_is_a_traceback_and_so_is_all_else_on_request(tmp_path, monkeypatch):
    monkeypatch.setenv("SPAQL_DEBUG", "1")
    with pytest.raises(NotADirectoryError):
        main([*SMOKE, str(tmp_path), "--against", str(tmp_path / "nowhere")])
    monkeypatch.delenv("SPAQL_DEBUG")
    monkeypatch.setattr("spaql.paper.cli.existing", lambda folder: {}["absent"])
    with pytest.raises(KeyError):
        main(["claims"])


def test_sentences():
    assert sentence(OSError(28, "No space left on device")) == "No space left on device"
    assert sentence(FileNotFoundError("there is no folder x")) == "there is no folder x"
    assert sentence(ValueError("one\n  two")) == "one two"
    assert sentence(ValueError()) == "ValueError"
    for module, extra in (("pandas.io", "paper"), ("torch", "trpo"), ("papermill", "book")):
        assert sentence(ModuleNotFoundError("no", name=module)).endswith(f"pip install 'spaql[{extra}]'")
