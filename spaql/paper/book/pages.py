"""What the book's pages show that comes from code and stored results: they write `{{ name }}` where it goes."""

import html
import json
from pathlib import Path

import numpy as np
import pandas as pd

from spaql.paper.book import explorer
from spaql.paper.claims import page as claims_page
from spaql.paper.engine import store
from spaql.paper.engine.job import job_of
from spaql.paper.engine.outcomes import samples_behind
from spaql.paper.engine.study import STUDIES, parameters_of
from spaql.paper.engine.style import BAND, STYLES, in_order, legend_above, new_figure, number
from spaql.paper.engine.tables import Table
from spaql.policies.interval import paper_interval
from spaql.systems import solved_at, title

GLANCE = "CartPole-v0"  # what the home page and the README show


def substitutions() -> dict[str, str]:
    """Return what the book's pages may name."""
    policies = explorer.read_policies()
    return {
        "playground": explorer.playground(),
        "hero": hero(policies),
        "studies": studies_table().myst(),
        "parameters_xi": parameter_table("xi", "The study of ξ (the paper's Table 2)").myst(),
        "parameters_long": parameter_table("long", "The long runs (the paper's Table 3)").myst(),
    } | claims_page.substitutions()


def glance(path: Path) -> None:
    """Draw the reward of the paper's algorithms on CartPole against all samples that they needed."""
    agents = pd.concat([store.read(study) for study in ("long", "trpo")])
    agents = in_order(agents[(agents.system == GLANCE) & (agents.algorithm != "TRPO tuned")])
    figure, ((axes,),) = new_figure(height=2.9)
    for algorithm, group in agents.groupby("algorithm", sort=False):
        style, curves = STYLES[algorithm], []
        for row in group.to_dict("records"):
            history = {name: row[f"curve_{name}"] for name in ("steps", "evaluation_steps")}
            curves.append((samples_behind(job_of(row), history), row["curve_rewards"]))
        first, last = max(samples[0] for samples, _ in curves), min(samples[-1] for samples, _ in curves)
        counts = np.unique(np.geomspace(max(1, first), last, 150).astype(int))
        rewards = np.array([values[np.searchsorted(at, counts, side="right") - 1] for at, values in curves])
        mean, low, high = np.transpose([paper_interval(column) for column in rewards.T])
        axes.plot(counts, mean, color=style.colour, linestyle=style.line, label=algorithm)
        axes.fill_between(counts, low, high, color=style.colour, alpha=BAND, linewidth=0)
    axes.lines[0].set(zorder=3, linewidth=2.5)  # Random, on which AQL lies
    axes.axhline(solved_at(GLANCE), color="#888888", linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlim=(1000, None), xlabel="samples, rollouts included", ylabel="reward")
    legend_above(figure, axes)
    figure.savefig(path, dpi=110)


def hero(data: dict) -> str:
    """Return the moving picture of the home page: a pole under the smallest tree; hero.js writes its rules."""
    trees = [policy for policy in data["policies"] if policy["system"] == GLANCE and "leaves" in policy]
    smallest = min(trees, key=lambda policy: policy["leaves"])
    held = {name: smallest[name] for name in ("feature", "threshold", "left", "right", "action")}
    held["system"] = data["systems"][GLANCE]
    text = html.escape(json.dumps(held, ensure_ascii=False), quote=True)
    return (
        f'```{{raw}} html\n<div class="hero" id="spaql-hero" data-policy="{text}"><canvas width="640" height="300" '
        'role="img" aria-label="A cart that keeps a pole upright under the rules beside it"></canvas><div>'
        f"<p>A whole policy in {smallest['leaves']} rules (θ is the pole's lean to the right):</p><ul></ul>"
        '<p><button type="button" data-push="-1">← push the pole</button> '
        '<button type="button" data-push="1">push the pole →</button> '
        '<button type="button" data-play>pause</button></p></div></div>\n'
        '<script src="../_static/systems/cartpole.js"></script>\n<script src="../_static/explorer.js"></script>\n'
        '<script src="../_static/hero.js"></script>\n```\n'
    )


def parameter_table(study: str, caption: str) -> Table:
    """Return the parameters of a study as the code runs it."""
    plan = parameters_of(study)
    rows = {"Episode length H": "200", "Training iterations K": f"{plan['iterations']:,}", "Agents": plan["agents"]}
    if study == "xi":
        rows |= {"Evaluation rollouts N": plan["evaluations"], "Values of ξ": ", ".join(map(str, plan["xis"]))}
    else:
        for name, xis in plan["xis"].items():
            texts = ", ".join(f"{xi:g} ({algorithm})" for algorithm, xi in xis.items())
            rows[title(name)] = f"N = {plan['evaluations'][name]}; ξ = {texts}"
    frame = pd.DataFrame([(name, str(value)) for name, value in rows.items()], columns=["parameter", "value"])
    return Table(frame, caption, f"tab-parameters-{study}", words=True)


def studies_table() -> Table:
    """Return what every study consists of and what it took."""
    rows = []
    for name, entry in STUDIES.items():
        agents = store.read(name, lists=False)
        steps = agents.reindex(columns=["steps", "evaluation_steps"]).sum().sum()
        rows.append((f"`{name}`", entry.title, len(agents), steps, agents.wall.sum() / 60))
    frame = pd.DataFrame(rows, columns=["study", "what", "agents", "environment steps", "worker-minutes"])
    caption = f"The stored studies. All of them take one core {number(frame['worker-minutes'].sum() / 60, 0)} hours"
    return Table(frame.map(lambda value: value if isinstance(value, str) else number(value, 0)), caption, "tab-studies")
