"""The notebooks, run by papermill at smoke scale: what they computed is looked at, not only that they ran."""

import json
import re
from pathlib import Path

import nbformat
import papermill
import pytest

from spaql.paper import audit, tables
from spaql.paper.audit import controls, judge, readings
from spaql.paper.audit.findings import findings
from spaql.paper.book import links, notebook, rerun
from spaql.paper.book.sphinx import name_code
from spaql.paper.cli import main
from spaql.paper.frames import best, finals
from spaql.paper.runs import retrain as retraining
from spaql.paper.runs import runner, stored_trees
from spaql.paper.runs.job import Job, untrained
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import load_stored, run
from spaql.paper.runs.store import save_record
from spaql.paper.studies import SCALES, SEED, paper_jobs, reading_jobs
from spaql.paper.tables.table import number
from spaql.policies.export import export_text, in_words

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder for what the notebooks compute: each agent once, by the first that shows it."""
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(autouse=True)
def own_folder(runs, monkeypatch):
    """Nothing is loaded from an earlier run of the tests."""
    monkeypatch.setenv("SPAQL_RUNS", str(runs))


# What Jupyter would show raw: roles, directives and targets of MyST.  What is true of our stored run alone.
RAW = re.compile(r"\{[a-z:]+\}+`|^\([\w-]+\)=|^\s*(?:```|:::)+\s*\{", re.MULTILINE)
PUBLISHED = re.compile(r"thirteen|twenty|\b[12],000 (?:iterations|agents|means|new|fresh)|100 iterations")


def outputs(path):
    """Return all that a notebook's cells displayed, as text, and its figures; it must read well in Jupyter."""
    texts, figures = [], 0
    for cell in nbformat.read(path, as_version=4).cells:
        for output in cell.get("outputs", []):
            assert output.output_type != "error"
            data = output.get("data", {})
            figures += "image/svg+xml" in data
            texts.append(data.get("text/markdown", ""))
            shown = data.get("text/html", data.get("text/markdown", ""))  # Jupyter takes the first that is there
            assert not RAW.search(shown), shown
            assert "**" not in data.get("text/html", "")
    return "\n".join(texts), figures


def published_baselines():
    """The published agents of TRPO, cut to the smoke scale: they stand for trained ones, for training takes long."""
    jobs = {(job.algorithm, job.system): job for job in paper_jobs("trpo", "smoke") if job.agent == 0}
    records, missing = load_stored([job for job in paper_jobs("trpo") if job.agent == 0], default_store())
    assert not missing
    found = []
    for record in records.values():
        job = jobs[record.job.algorithm, record.job.system]
        short = record.history[: job.iterations], record.rewards[: job.fresh]
        found.append(record._replace(job=job, history=short[0], rewards=short[1]))
    return found


@pytest.mark.parametrize(
    ("name", "study", "figures"),
    [
        ("01_xi_scaling", "xi", 2),
        ("02_pendulum", "long", 4),
        ("03_pendulum_discrete", "long", 2),
        ("04_cartpole", "long", 3),
        ("05_trpo_comparison", "long", 3),
    ],
)
def test_a_notebook_shows_what_its_runs_gave(name, study, figures, tmp_path, runs):
    given = {"02": {"trpo_agents": 0}, "04": {"trpo_agents": 0}, "05": {"trpo_agents": 1}}.get(name[:2], {})
    baselines = published_baselines() if name.startswith("05") else []
    for record in baselines:
        save_record(runs / "results", record)
    path = rerun.run_notebook(name, given, scale="smoke", output=tmp_path / "out.ipynb")
    text, drawn = outputs(path)
    assert drawn == figures
    assert "Not the paper's runs" in text
    assert "Nothing below is a verdict on the paper" in text
    assert not PUBLISHED.search(text)
    # The same agents, computed here (but for TRPO's): every mean of theirs is in the notebook's tables.
    systems = {"02": ["Pendulum-v1"], "03": ["spaql/PendulumDiscrete-v1"], "04": ["CartPole-v0"]}
    jobs = [job for job in paper_jobs(study, "smoke") if job.system in systems.get(name[:2], [job.system])]
    if name.startswith("05"):
        jobs = [job for job in jobs if job.system in ("Pendulum-v1", "CartPole-v0")]
    frame = finals(run(jobs, store=None, progress_bar=False) + baselines)
    if study == "xi":
        means = frame[frame.algorithm != "Random"].groupby(["system", "algorithm", "xi"]).rewards.mean()
        expected = means.groupby(["system", "algorithm"]).max()
    else:
        expected = frame.groupby(["system", "algorithm"]).fresh.mean()
    for key, value in expected.items():
        assert number(value, 1) in text, key
    assert "root seed" in text
    assert re.search(r"This notebook took \d+ s, at commit ([0-9a-f]{10}|unknown)", text)


def test_the_audit_shows_the_verdicts_of_the_papers_runs_whatever_else_it_runs(tmp_path, judged):
    path = rerun.run_notebook("06", {"replications": 4}, scale="smoke", output=tmp_path / "out.ipynb")
    text, drawn = outputs(path)
    assert drawn == 6
    assert "Not the paper's runs" in text
    assert "Nothing below is a verdict" not in text
    assert "the verdicts and findings below are those of our stored runs" in text
    assert f"CartPole with ξ = 0 after {SCALES['smoke']['ablation'].iterations} iterations" in text
    assert judge.summary(judged) in text
    published, missing = load_stored(paper_jobs("long") + paper_jobs("trpo"), default_store(), repair=False)
    assert not missing
    for finding in findings(judged, published.values()):
        assert finding.text in text


def test_the_chapter_of_readings_judges_by_the_papers_runs_whatever_else_it_runs(tmp_path):
    path = rerun.run_notebook("11", {}, scale="smoke", output=tmp_path / "out.ipynb")
    text, drawn = outputs(path)
    assert drawn == 1
    assert "Not the paper's runs" in text
    joint, distances = readings.joint_fits(), readings.distances()
    assert tables.readings.answer(distances, joint) in text
    plan = SCALES["smoke"]["readings"]
    for name in joint.reading[joint.missing == ""]:
        if name in plan.readings:
            jobs = [job for job in reading_jobs(plan, name, SEED) if job.iterations == plan.iterations]
            frame = finals(run(jobs, store=None, progress_bar=False))
            system = plan.readings[name].system("PendulumDiscrete")
            for _, cell in frame[frame.system == system].groupby("algorithm"):
                assert tables.spread(cell.rewards, 1) in text


def test_the_policies_chapter_shows_the_trees_of_the_agents_it_was_given(tmp_path):
    given = {"leaves": 6, "proposals": 3}
    path = rerun.run_notebook("07", given, scale="smoke", output=tmp_path / "out.ipynb")
    text, drawn = outputs(path)
    assert drawn == 12
    assert "Not the paper's runs" in text
    assert not PUBLISHED.search(text)
    jobs = [job for job in paper_jobs("long", "smoke") if (job.system, job.algorithm) == ("CartPole-v0", "SPAQL-TS")]
    policy = retrain(best(run(jobs, store=None)).job, store=None).policy
    tree = policy.simplify(target=195.0, episodes=100, fresh=20, seed=0, **given).tree
    assert export_text(tree) in text
    assert in_words(tree).replace("-", "−") in text
    (row,) = (
        line for line in text.splitlines() if line.startswith("| CartPole") and "SPAQL-TS" in line and "[" in line
    )
    assert f"| {policy.tree().leaves} " in " ".join(row.split())


def test_the_chapter_on_learning_shows_what_its_controls_earned(tmp_path):
    path = rerun.run_notebook("08", {}, scale="smoke", output=tmp_path / "out.ipynb")
    text, drawn = outputs(path)
    assert drawn == 3
    assert "Not the paper's runs" in text
    assert "What is in bold is what our stored run shows" in text
    assert not PUBLISHED.search(text)
    jobs = [job for job in paper_jobs("controls", "smoke") if controls.control_of(job) == "Q fixed, last kept"]
    frame = finals(run(jobs, store=None, progress_bar=False))
    rows = [line for line in text.splitlines() if re.match(r"\|[^|]+, SPAQL[^|]*\| Q fixed, last kept", line)]
    assert len(rows) == 6  # two algorithms on three systems
    for (_, algorithm), mean in frame.groupby(["system", "algorithm"]).fresh.mean().items():
        assert any(f", {algorithm} " in row and f" {number(mean, 0)} [" in row for row in rows)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_a_clean_source(path):
    source = json.loads(path.read_text(encoding="utf-8"))
    for cell in source["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
    for name, entry in rerun.declared_parameters(path).items():
        assert len(entry["help"]) > 3, name
        assert entry["type"] in ("int", "float", "str", "list", "bool"), name
    assert {"agents", "iterations", "evaluations", "seed", "workers"} <= set(rerun.declared_parameters(path))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_reads_well_in_jupyter_and_with_other_parameters(path):
    """No roles, which Jupyter shows raw; and where the scale of our stored run is named, it is said whose it is."""
    for cell in nbformat.read(path, as_version=4).cells:
        assert not RAW.search(cell.source), cell.source
        for paragraph in cell.source.split("\n\n") if cell.cell_type == "markdown" else ():
            if PUBLISHED.search(paragraph):
                assert "stored run" in paragraph or "paper" in paragraph, paragraph


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebooks_links_lead_somewhere(path):
    """To files, as Jupyter follows them; to places that a page, a bibliography, a cell or a table's code names."""
    sources = [*NOTEBOOKS, *(ROOT / "book").glob("*.md"), *(ROOT / "book").glob("*.bib")]
    sources += (ROOT / "spaql" / "paper" / "book").glob("*.py")
    named = "\n".join(source.read_text(encoding="utf-8").replace('\\"', '"') for source in sources)
    followed = 0
    for cell in nbformat.read(path, as_version=4).cells:
        for page, label in re.findall(r"\]\(([\w./]*\.(?:ipynb|md))?(?:#([\w-]+))?\)", cell.source):
            assert not page or (path.parent / page).is_file(), page
            forms = (f"({label})=", f'"{label}"', f":label: {label}\n", f"algorithm {label}:", f"{{{label},")
            assert not label or any(form in named for form in forms), label
            followed += 1
    assert followed


@pytest.mark.parametrize(
    ("plain", "read"),
    [
        ("[The table below](#tab-xi) has it", "{numref}`tab-xi` has it"),
        ("[see](../book/protocol.md#trpo-deviations)", "{ref}`see <trpo-deviations>`"),
        ("[(A, 2021)](../book/references.md#agarwal2021)", "{cite}`agarwal2021`"),
        ("[This](#alg-spaql-r)", "{prf:ref}`alg-spaql-r`"),
        ("[The audit](06_audit.ipynb), [Gym](https://gymnasium.farama.org)", None),
        ('<a id="here"></a>\n\n## Here', "(here)=\n\n## Here"),
        ("<!-- algorithm alg-a: A -->\n\n1. Go\n\n<!-- end -->", "```{prf:algorithm} A\n:label: alg-a\n\n1. Go\n\n```"),
    ],
)
def test_the_book_reads_plain_links_as_roles(plain, read):
    assert links.in_roles(plain) == (read or plain)
    shown = {"data": {"text/markdown": plain}}
    cells = [{"cell_type": "markdown", "source": [plain]}, {"cell_type": "code", "source": plain, "outputs": [shown]}]
    markdown, code = json.loads(links.notebook_in_roles(json.dumps({"cells": cells})))["cells"]
    assert markdown["source"] == code["outputs"][0]["data"]["text/markdown"] == (read or plain)
    assert code["source"] == plain


@pytest.mark.parametrize(
    ("mystnb", "source", "shown", "named"),
    [
        ({"figure": {}}, "draw()", "", "this figure"),
        ({}, "table()", "```{table} Rewards", "this table"),
        ({}, "Markdown(words)", "In words", "these sentences"),
        ({}, "import spaql", "20 agents", "what follows"),
    ],
)
def test_folded_code_says_what_it_makes(mystnb, source, shown, named):
    metadata = {"tags": ["hide-input"], "mystnb": mystnb}
    output = {"data": {"text/markdown": [shown]} if shown else {}}
    cell = {"cell_type": "code", "metadata": metadata, "source": [source], "outputs": [output]}
    plain = {"cell_type": "code", "metadata": {}, "source": [source], "outputs": []}
    folded, other = json.loads(name_code(json.dumps({"cells": [cell, plain]})))["cells"]
    assert folded["metadata"]["mystnb"]["code_prompt_show"] == f"The code of {named}"
    assert other == plain


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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebooks_defaults_are_the_papers_and_stored(path, monkeypatch):
    """The cells up to the runs, where nothing may be computed: every agent is one of the paper's, and published."""
    asked = []
    gather = notebook.gather

    def look(jobs, workers):
        asked.extend(jobs)
        return gather(jobs, workers)

    monkeypatch.setattr(notebook, "gather", look)
    monkeypatch.setattr(runner, "compute_all", lambda missing, *_: pytest.fail(f"not stored: {missing[:3]}"))
    # What follows from the agents is for another test: their best trained again, their trees, the verdicts.
    monkeypatch.setattr(retraining, "retrain", lambda job: untrained(job))
    monkeypatch.setattr(stored_trees, "simplified", lambda *_, **__: None)
    monkeypatch.setattr(audit, "verdicts", lambda: None)
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"][:2]
    exec("\n".join(cells).replace("figures.use_svg()", ""), {})
    declared = {job for study in SCALES["paper"] for job in paper_jobs(study)}
    assert len(asked) >= 80
    assert set(asked) <= declared


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
    assert rerun.scale_parameters(rerun.find_notebook("05"), "quick")["trpo_agents"] == 2
