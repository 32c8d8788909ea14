"""The notebooks: as sources, and two of them run small with other parameters."""

import json
import re
from pathlib import Path

import nbformat
import papermill
import pytest

from spaql.paper import studies
from spaql.paper.book import links, notebook, rerun
from spaql.paper.cli import main
from spaql.paper.frames import finals
from spaql.paper.labels import number
from spaql.paper.runs.job import Job
from spaql.paper.runs.runner import run

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
BANNER = "Not the published run"
# What Jupyter would show raw: roles, directives and targets of MyST.
RAW = re.compile(r"\{[a-z:]+\}+`|^\([\w-]+\)=|^\s*(?:```|:::)+\s*\{", re.MULTILINE)


def shown(path):
    """Return all that a notebook's cells displayed, as text; it must read well in Jupyter."""
    texts = []
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error", path
            data = output.get("data", {})
            texts.append(data.get("text/markdown", ""))
            first = data.get("text/html", data.get("text/markdown", ""))  # Jupyter takes the first that is there
            assert not RAW.search(first), first
            assert "**" not in data.get("text/html", "")
    return "\n".join(texts)


@pytest.mark.parametrize(
    ("name", "given", "study", "system"),
    [("04", {"trpo_agents": 0}, "long", "CartPole-v0"), ("11", {}, None, None)],
    ids=["runs", "readings"],
)
def test_a_notebook_with_other_parameters_shows_what_its_runs_gave(name, given, study, system, tmp_path, monkeypatch):
    monkeypatch.setenv("SPAQL_RUNS", str(tmp_path / "runs"))
    text = shown(rerun.run_notebook(name, given, scale="smoke", output=tmp_path / "out.ipynb"))
    assert BANNER in text
    if study:  # the same agents, computed here: every mean of theirs is in the notebook's tables
        jobs = [job for job in studies.study(study, "smoke") if job.system == system]
        frame = finals(run(jobs, store=tmp_path / "runs" / "results", progress_bar=False))
        for algorithm, value in frame.groupby("algorithm").fresh.mean().items():
            assert number(value, 1) in text, algorithm


def test_notebooks_are_clean_sources_that_read_well_in_jupyter():
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            assert not RAW.search(cell.source), cell.source
            if cell.cell_type == "code":
                assert cell.outputs == [], path
                assert cell.execution_count is None, path
        declared = rerun.declared_parameters(path)
        for name, entry in declared.items():
            assert len(entry["help"]) > 3, (path, name)
            assert entry["type"] in ("int", "float", "str", "list", "bool"), (path, name)
        assert {"agents", "iterations", "evaluations", "seed", "workers"} <= set(declared), path


def test_the_links_of_notebooks_lead_somewhere():
    """To files, as Jupyter follows them; to places that a page, a bibliography, a cell or a table's code names."""
    sources = [*NOTEBOOKS, *(ROOT / "book").glob("*.md"), *(ROOT / "book").glob("*.bib")]
    sources += (ROOT / "spaql" / "paper" / "book").glob("*.py")
    named = "\n".join(source.read_text(encoding="utf-8").replace('\\"', '"') for source in sources)
    for path in NOTEBOOKS:
        for cell in nbformat.read(path, as_version=4).cells:
            for page, label in re.findall(r"\]\(([\w./]*\.(?:ipynb|md))?(?:#([\w-]+))?\)", cell.source):
                assert not page or (path.parent / page).is_file(), (path, page)
                forms = (f"({label})=", f'"{label}"', f":label: {label}\n", f"algorithm {label}:", f"{{{label},")
                assert not label or any(form in named for form in forms), (path, label)


@pytest.mark.parametrize(
    ("plain", "read"),
    [
        ("[The table below](#tab-xi) has it", "{numref}`tab-xi` has it"),
        ("[see](../book/protocol.md#trpo-deviations)", "{ref}`see <trpo-deviations>`"),
        ("[(A, 2021)](../book/references.md#agarwal2021)", "{cite}`agarwal2021`"),
        ("[This](#alg-spaql-r)", "{prf:ref}`alg-spaql-r`"),
        ("[The audit](06_audit.ipynb), [Gym](https://gymnasium.farama.org)", None),
        ('<a id="here"></a>\n\n## Here', "(here)=\n\n## Here"),
        ("# A\n\n> **In short.** One\n>\n> two.\n\nB", "# A\n\n:::{admonition} In short\nOne\n\ntwo.\n:::\n\nB"),
        ("<!-- algorithm alg-a: A -->\n\n1. Go\n\n<!-- end -->", "```{prf:algorithm} A\n:label: alg-a\n\n1. Go\n\n```"),
    ],
)
def test_the_book_reads_plain_links_as_roles(plain, read):
    assert links.in_roles(plain) == (read or plain)
    shown = {"data": {"text/markdown": plain}}
    cells = [{"cell_type": "markdown", "source": [plain]}, {"cell_type": "code", "source": plain, "outputs": [shown]}]
    for cell in cells:
        cell["metadata"] = {}
    markdown, code, link = json.loads(links.chapter(json.dumps({"cells": cells}), "notebooks/01"))["cells"]
    assert markdown["source"] == code["outputs"][0]["data"]["text/markdown"] == (read or plain)
    assert code["source"] == plain
    assert code["metadata"]["tags"] == ["remove-input"]
    assert "_sources/notebooks/01.ipynb" in link["source"]


def test_papermill_alone_does_not_run_a_notebook_with_a_parameter_that_it_does_not_have(tmp_path):
    path = str(rerun.find_notebook("01"))
    with pytest.raises(papermill.PapermillExecutionError, match="no parameter 'agent'; did you mean agents"):
        papermill.execute_notebook(path, str(tmp_path / "out.ipynb"), {"agent": 2}, cwd=str(ROOT / "notebooks"))


def test_only_what_papermill_added_is_held_against_the_parameters():
    declared, added = "agents: int = 20  # help\nseed = 1", "# Parameters\nagents = 2\n"
    notebook.refuse_unknown(["", declared, added, "records = 1", "%matplotlib inline"])
    notebook.refuse_unknown(["", "agent = 2", declared])  # typed in Jupyter
    notebook.refuse_unknown(["", added])  # a notebook without a cell of parameters
    with pytest.raises(ValueError, match="no parameter 'sede'; did you mean seed"):
        notebook.refuse_unknown(["", declared, added + "sede = 3\n"])


def test_other_parameters_never_touch_the_published_results(tmp_path, monkeypatch):
    monkeypatch.setenv("SPAQL_RUNS", str(tmp_path / "runs"))
    job = Job("Random", "CartPole-v0", 0.0, 2, 2, 7, 0, fresh=3)
    before = sorted((ROOT / "results").rglob("*.npz"))
    (record,) = notebook.gather([job])
    assert sorted((ROOT / "results").rglob("*.npz")) == before
    assert len(list((tmp_path / "runs" / "results").rglob("*.npz"))) == 1
    (again,) = notebook.gather([job])
    assert again.digest() == record.digest()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["02", "-p", "agent", "5"], "no parameter 'agent'; did you mean agents?"),
        (["02", "-p", "agents", "five"], "agents must be a whole number, not 'five'"),
        (["02", "-p", "xi_aql", "nan"], "xi_aql must be a number"),
        (["01", "-p", "xis", "4"], "xis must be a list of numbers"),
        (["02_pendulm"], "did you mean 02_pendulum?"),
        (["02", "-p", "trpo_agents", "2.5"], "trpo_agents must be a whole number"),
        (["02", "-p", "agents", "0"], "agents must be a whole number of at least 1"),
        (["02", "-p", "rules", "papre"], "rules must be 'paper' or 'released'"),
        (["0"], "'0' is the beginning of several notebooks"),
        (["nowhere/02_pendulum.ipynb"], "there is no file nowhere/02_pendulum.ipynb"),
    ],
)
def test_bad_parameters_are_refused_before_anything_runs(arguments, complaint, monkeypatch):
    monkeypatch.setattr(rerun.papermill, "execute_notebook", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(SystemExit, match=re.escape(complaint)):
        main(["run", *arguments])


def test_what_differs_from_the_published_run_is_shown(monkeypatch, capsys, tmp_path):
    ran = []

    def execute(*given, **_):
        ran.append(given)
        Path(given[1]).touch()

    monkeypatch.setattr(rerun.papermill, "execute_notebook", execute)
    main(["run", "01", "-p", "xis", "[0, 4, 40]", "-p", "agents", "2", "--output", str(tmp_path / "out.ipynb")])
    ((_, _, parameters),) = ran
    assert parameters == {"xis": [0, 4, 40], "agents": 2}
    shown = capsys.readouterr().out
    assert "[0, 4, 40]" in shown
    assert re.search(r"agents\s+20\s+2 ", shown)
    assert "iterations" not in shown
    assert str(tmp_path / "out.ipynb") in shown


def test_a_scale_sets_what_is_not_given():
    path = rerun.find_notebook("01")
    assert rerun.scale_parameters(path, "smoke") == {"agents": 2, "iterations": 4, "fresh": 20, "xis": [0, 4, 160]}
    assert rerun.scale_parameters(path, "paper") == {}


@pytest.mark.parametrize("name", ["02", "05", "09", "10"])
def test_a_smaller_scale_asks_for_no_baseline_that_is_not_stored(name):
    path = rerun.find_notebook(name)
    published = {key: entry["default"] for key, entry in rerun.declared_parameters(path).items()}
    for prefix in rerun.BASELINES:
        own = {key for key in published if key.startswith(prefix)}
        quick, smoke = (published | rerun.scale_parameters(path, scale) for scale in ("quick", "smoke"))
        assert all(quick[key] == published[key] for key in own) or quick[f"{prefix}agents"] == 0
        assert not own or smoke[f"{prefix}agents"] == 0
