"""The numbers, tables and drawings of the book's prose pages, made from code and stored results.

Pages write `{{ name }}` where one of them goes.  Nothing is computed here, only loaded and formatted.
"""

import importlib.metadata
import inspect
import itertools
import json
from collections.abc import Iterable
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from spaql import __version__
from spaql.algorithms import SPAQLTS
from spaql.paper.audit import claims
from spaql.paper.audit.dimensions import LEVEL, MOST
from spaql.paper.audit.kept import load_kept
from spaql.paper.bench import markdown
from spaql.paper.book import explorer, home, numbers
from spaql.paper.figures import domains, style
from spaql.paper.figures.repaired import sample_curves
from spaql.paper.labels import number, spread
from spaql.paper.runs import network_settings, provenance
from spaql.paper.runs.attestations import load_attestations
from spaql.paper.runs.job import Record
from spaql.paper.runs.provenance import default_store
from spaql.paper.studies import BOTH, LEARNERS, STUDIES
from spaql.paper.tables import audit as audit_tables
from spaql.paper.tables.download import download
from spaql.paper.tables.results import parameter_table, printed
from spaql.paper.tables.table import Table
from spaql.systems import title

PACKAGES = ("numpy", "scipy", "pandas", "numba", "gymnasium", "scikit-learn", "torch", "stable-baselines3",
            "sb3-contrib", "matplotlib", "papermill", "jupyter-book")  # fmt: skip


GLANCE = "CartPole-v0"  # what the home page and the README show: SPAQL-TS solves it

PICTURE = "social.png"

DRAWINGS = {
    "domain_covering": "A ball, and seven balls of half its radius that cover it (the paper's Figure 11).",
    "domain_neighbours": "One of the seven is covered in its turn; in full colour, the domains of its neighbours "
    "(the paper's Figure 12).",
    "domain_disjoint": "Boxes of half its size tile a box without overlapping (the paper's Figure 13).",
}  # fmt: skip


def save_figure(figure: Figure, folder: Path, name: str, caption: str, alt: str) -> str:
    """Write a figure for the book; return the lines that show it."""
    folder.mkdir(parents=True, exist_ok=True)
    with plt.rc_context(style.SETTINGS):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    label = f"fig-{name.replace('_', '-')}"
    return f"```{{figure}} drawn/{name}.svg\n:name: {label}\n:alt: {alt}\n\n{caption}\n```\n"


def glance_figure(records: Iterable[Record]) -> Figure:
    """Return the figure of the home page and the README: the paper's algorithms on one system, all samples counted."""
    return sample_curves(r for r in records if r.job.system == GLANCE and r.job.algorithm != "TRPO tuned")


def save_picture(records: Iterable[Record], path: Path) -> None:
    """Write the picture that stands for the book where it is shared: 1,200 by 630 pixels, as the sites ask for."""
    figure = glance_figure(records)
    figure.set_size_inches(8, 4.2)
    heading = f"Control with adaptive Q-learning, executable: {title(GLANCE)}"
    figure.axes[0].set_title(heading, fontsize=14, fontweight="bold")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150, bbox_inches=None)


def glance_table(ends: pd.DataFrame) -> Table:
    """Return the results of all systems in brief."""
    rows = []
    for (system, algorithm), mine in ends.groupby(["system", "algorithm"], sort=False):
        rows.append(
            {
                "system": title(system),
                "algorithm": algorithm,
                "reward": spread(mine.rewards, 1),
                "paper": printed(system, algorithm, "rewards", 1),
                "fresh episodes": spread(mine.fresh, 1),
                "arms": number(mine.arms.mean(), 0) if algorithm in LEARNERS else "",
            }
        )
    caption = "Rewards at the end of training, ours and the paper's; rewards on fresh episodes; arms"
    return Table(pd.DataFrame(rows), caption, "tab-glance")


def clone_text(repository: str) -> str:
    """Return the lines that get the repository, or go to the clone that there is, and build the book."""
    get = f"git clone {repository} spaql && cd spaql" if repository else "cd spaql   # your clone"
    return (
        f"```bash\n{get}\nmake book                                          # this book, from the stored results\n"
        "source .venv/bin/activate\n"
        "spaql run 02 -p agents 5 -p iterations 200         # a chapter with other parameters\n```\n"
    )


def bibtex(repository: str) -> str:
    """Return the entries of the paper and of this book for a bibliography."""
    entries = (Path(__file__).parents[3] / "book" / "references.bib").read_text(encoding="utf-8")
    paper = entries[entries.index("@article{araujo2022") :].partition("\n}")[0] + "\n}"
    address = f"  url = {{{repository}}},\n" if repository else ""
    book = (
        "@misc{spaql,\n  author = {{The spaql developers}},\n"
        "  title = {Control with adaptive {Q}-learning, executable},\n"
        f"  year = {{2026}},\n{address}  note = {{Version {__version__}}}\n}}"
    )
    return f"```bibtex\n{paper}\n{book}\n```\n"


def elsewhere_text(repository: str) -> str:
    """Say where the notebooks run without an installation: with an address of the repository, or in a clone."""
    if not repository:
        return "The notebooks run in your clone: `make lab` opens them in JupyterLab."
    host, _, name = repository.removeprefix("https://").partition("/")
    links = [f"[the source]({repository})"]
    if host == "github.com":
        links += [
            f"[Binder](https://mybinder.org/v2/gh/{name}/HEAD)",
            f"[Colab](https://colab.research.google.com/github/{name})",
            f"[Codespaces](https://codespaces.new/{name})",
        ]
    return (
        f"Without installing anything: {', '.join(links)}. On Colab a notebook needs this cell first:\n\n"
        f"```\n!git clone --depth 1 {repository} companion\n"
        "%pip install --quiet './companion[notebooks]'\n%cd companion/notebooks\n```\n"
    )


def cost_text(ends: dict[str, pd.DataFrame]) -> str:
    """Say what the paper's runs cost."""
    ours = pd.concat([ends["xi"], ends["long"]])
    steps = int((ours.steps + ours.evaluation_steps).sum())
    return (
        f"The paper's runs of AQL, SPAQL, SPAQL-TS and Random are {len(ours):,} agents and {steps / 1e9:.2f} · 10⁹ "
        f"environment steps, {100 * ours.evaluation_steps.sum() / steps:.0f} % of them in evaluation rollouts. "
        f"They took {ours.wall.sum() / 60:.0f} worker-minutes, {ours.wall.sum() / steps * 1e9:.0f} worker-seconds a "
        f"billion steps. The {len(ends['trpo'])} agents of TRPO took "
        f"{ends['trpo'].wall.sum() / 3600:.1f} worker-hours (on a machine that had other "
        f"work too), nearly all of it in torch."
    )


def studies_table(ends: dict[str, pd.DataFrame]) -> Table:
    """Return what every study consists of and what it took."""
    rows = []
    for name, frame in ends.items():
        for system, group in frame.groupby("system", sort=False):
            steps = (group.steps + group.evaluation_steps).sum()
            rows.append(
                {
                    "study": STUDIES[name].title,
                    "system": title(system),
                    "agents": f"{len(group):,}",
                    "environment steps": number(steps, 0),
                    "worker-seconds": number(group.wall.sum(), 0),
                }
            )
    return Table(pd.DataFrame(rows), "The stored runs, and what they took", "tab-studies")


def bench_table() -> str:
    """Return what `make bench` last measured, and where."""
    kept = json.loads((default_store() / "bench.json").read_text(encoding="utf-8"))
    source = kept["provenance"]
    about = f"Measured on one core of {source['machine']}, at commit {source['commit'][:10]}."
    return f"{markdown(kept['rows'])}\n\n{about}"


def dimensions_table() -> Table:
    """Return what dimensions that say nothing cost SPAQL-R."""
    found = load_kept("dimensions")
    rows = [
        {
            "dimensions": str(dimensions),
            f"reach {number(LEVEL, 0)}": f"{group.reached.sum()} of {len(group)}",
            "samples": number(group.samples.median(), 0),
            "seconds": f"{group.seconds.median():.2g}",
            "memory in MB": number(group.megabytes.median(), 0 if group.megabytes.median() >= 10 else 1),
        }
        for dimensions, group in found[found.algorithm == "SPAQL-R"].groupby("dimensions")
    ]
    caption = f"SPAQL-R until its policy earns {number(LEVEL, 0)}, or {MOST:,} samples: medians over agents"
    return Table(pd.DataFrame(rows), caption, "tab-dimensions")


def defaults_text() -> str:
    """Return the parameters of SPAQL-TS that no study changes."""
    symbols = {"tau_min": "$\\tau_\\mathrm{min}$", "u": "$u$", "d": "$d$", "lam": "$\\lambda$ (SPAQL-TS only)"}
    signature = inspect.signature(SPAQLTS.__init__).parameters
    return ", ".join(f"{symbol} = {signature[name].default:g}" for name, symbol in symbols.items())


def trpo_settings() -> Table:
    """Return TRPO's settings on the paper's systems."""
    columns = {
        f"{algorithm}, {title(system)}": {
            name: str(value) for name, value in network_settings.settings_of(algorithm, system).items()
        }
        for algorithm, system in itertools.product(provenance.TRPO, BOTH)
    }
    frame = pd.DataFrame(columns).fillna("default").rename_axis("").reset_index()
    return Table(frame, "Settings of TRPO; the rest is sb3-contrib's default", "tab-trpo-settings", words=True)


def version_of(package: str) -> str:
    """Return the version of a package, if it is installed: the book needs no torch."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def versions_table() -> Table:
    """Return the versions this book was built with."""
    rows = [(name, version_of(name)) for name in PACKAGES]
    return Table(
        pd.DataFrame(rows, columns=["package", "version"]), "Versions this book was built with", "tab-versions"
    )


def attestations_table() -> Table:
    """Return what `spaql verify` found, and where: one row per attestation and family of algorithms."""
    names = {"spaql": "AQL, SPAQL, SPAQL-TS, Random", "repaired": "SPAQL-R", "trpo": "TRPO"}
    names |= {
        "textbook": "the textbook",
        "sarsa": "Sarsa(λ)",
        "replayed": "tiles and grid with replay",
        "fitted": "fitted Q iteration",
    }
    rows = [
        {
            "date": entry["date"],
            "commit": entry["commit"][:10] + entry["commit"][40:],
            "agents of": names[family],
            "machine": entry["machine"],
            "platform key": found["platform"],
            "the same bits": f"{found['same_bits']} of {found['sampled']}",
            "verdict": found["verdict"],
        }
        for entry in load_attestations(default_store())
        for family, found in entry["families"].items()
    ]
    return Table(pd.DataFrame(rows), "Stored agents that were computed again", "tab-attestations", words=True)


def substitutions(book: Path, repository: str = "") -> dict[str, str]:
    """Return what the pages in a folder may name; figures are written to another one there, `drawn`."""
    folder = book / "drawn"
    records = {name: numbers.records(name) for name in STUDIES}
    ends = {name: numbers.agents(name) for name in STUDIES}
    brief = pd.concat([ends["long"], ends["trpo"]])
    order = list(dict.fromkeys(ends["long"].system))
    brief = brief.sort_values("system", key=lambda column: column.map(order.index), kind="stable")
    drawn = {
        name: save_figure(getattr(domains, name)(), folder, name, caption, caption.split("(the paper")[0])
        for name, caption in DRAWINGS.items()
    }
    save_picture(records["long"] + records["trpo"], folder / PICTURE)
    shown = title(GLANCE)
    caption = f"{shown}: reward against all samples that an algorithm needs, rollouts included. Grey: solved."
    judged = numbers.verdicts()
    explored = explorer.read_policies(book / "explorer" / "policies.js")
    policy = home.smallest_policy(explored, GLANCE)
    return drawn | {
        "claims_table": audit_tables.verdict_table(
            judged, "Every claim, and both verdicts with what we measured. In small print: the paper's number, where "
            "ours should lie (and the verdict if this were half or twice as wide), and p for and against",
            "tab-verdicts"
        ).myst(),
        "claims_data": download(judged, "claims", "table").data,
        "unchecked_table": audit_tables.unchecked_table(
            claims.load_unchecked(), "What the paper says and our runs cannot judge", "tab-unchecked"
        ).myst(),
        "deviations_table": audit_tables.deviations_table(
            claims.deviations(), "Where we differ from the paper, why, and which claims it can affect", "tab-deviations"
        ).myst(),
        "hero": home.hero(policy, numbers.numbers()["small.lasts"]),
        "explorer_story": explorer.story(explored),
        "playground": explorer.playground(),
        "bibtex": bibtex(repository),
        "clone": clone_text(repository),
        "elsewhere": elsewhere_text(repository),
        "glance": glance_table(brief).myst(),
        "glance_figure": save_figure(
            glance_figure(records["long"] + records["trpo"]), folder, "glance", caption,
            f"Curves of the reward of Random, AQL, SPAQL, SPAQL-TS and TRPO on {shown} against all samples."
        ),
        "cost": cost_text(ends),
        "studies": studies_table(ends).myst(),
        "attestations": attestations_table().myst(),
        "bench": bench_table(),
        "defaults": defaults_text(),
        "dimensions": dimensions_table().myst(),
        "parameters_xi": parameter_table("xi", "The study of ξ (the paper's Table 2)", "tab-parameters-xi").myst(),
        "parameters_long": parameter_table(
            "long",
            "The long runs (the paper's Table 3; ξ from the authors' program, for five torques that of Pendulum)",
            "tab-parameters-long",
        ).myst(),
        "trpo_deviations": "- " + (inspect.getdoc(network_settings) or "").split("\n\n- ")[1],
        "trpo_settings": trpo_settings().myst(),
        "versions": versions_table().myst(),
    }  # fmt: skip
