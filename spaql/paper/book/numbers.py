"""The numbers that prose may use: one dictionary, name -> text, computed from the stored runs.

Prose is written by hand.  A number that comes from a run is followed by its name in an HTML comment, and so is the
verdict on a claim:

    SPAQL earns −485<!--=pendulum.spaql.reported-->, and that it beats AQL holds<!--=claim:pendulum-spaql-aql-->.

A reader of the source, of GitHub or of Jupyter sees the sentence; the book strips the comments and turns verdicts into
badges that link to the claim (`shown`).  A test compares every tagged text with `numbers()`.  `spaql numbers --write`
puts the right texts in; `spaql numbers` lists all names.

To use a number in a chapter, add a line to the function of that chapter below (or a new function to `CHAPTERS`):
`cells("settings.{system}.{algorithm}", frame, "fresh")` names a column of a frame, row by row.
Verdicts need no entry: `claim:ID` is the verdict as written, `claim:ID.run`, `.fresh`, `.more` and `.more_fresh` are
the others (columns of `spaql claims --json`), and `claim:ID,ID2` the one that several claims share.
"""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spaql.paper.audit import generality, judge, tile_trees
from spaql.paper.audit.ablation import ablation_table, xi_zero
from spaql.paper.audit.bias import best_against_fresh, surviving
from spaql.paper.claims.load import VERDICTS, paper_results
from spaql.paper.audit.comparison import samples_needed
from spaql.paper.audit.controls import stored_effects
from spaql.paper.audit.foresight import POINTS
from spaql.paper.audit.kept import load_kept
from spaql.paper.audit.leaves import points
from spaql.paper.audit.readings import TEXT, best_reading, distances, joint_fits
from spaql.paper.audit.repaired import removals, samples_to_levels
from spaql.paper.audit.settings import stored_settings
from spaql.paper.audit.yardsticks import all_leads, others, returns
from spaql.paper.baselines.search import load_trials, score
from spaql.paper.book.explorer import read_policies
from spaql.paper.frames import best, finals, solves
from spaql.paper.labels import number
from spaql.paper.runs.algorithms import SAME
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.provenance import default_store, repository
from spaql.paper.runs.runner import load_stored
from spaql.paper.runs.stored_trees import PUBLISHED, tree_path
from spaql.paper.studies import BOTH, further_of, parameters_of, xi_of_theory
from spaql.paper.studies import study as jobs_of
from spaql.paper.tables.results import xi_effects
from spaql.systems.pendulum import REWARD_SCALE

SHORT = {"spaql/PendulumDiscrete-v1": "five", "CartPole-v1": "cartpole500", "SPAQL-TS": "ts", "TRPO tuned": "tuned"}
BY = ["system", "algorithm"]

PLAIN = r"[−+]?\d[\d,]*(?:\.\d+)?"
TAG = re.compile(
    rf"(?P<text>{PLAIN}(?: ± {PLAIN})?(?: \[{PLAIN}, {PLAIN}\])?|\[{PLAIN}, {PLAIN}\]|[a-z]+)?"
    r"<!--=(?P<name>[^\s<>]+)-->"
)


@functools.cache
def records(study: str) -> list[Record]:
    """Return the stored agents of a study."""
    return stored(jobs_of(study))


def stored(jobs: list[Job]) -> list[Record]:
    """Return stored agents, all of them."""
    found, missing = load_stored(jobs, default_store(), repair=False)
    if missing:
        raise FileNotFoundError(f"{len(missing)} agents are not stored, {missing[0]} for one: spaql reproduce")
    return [found[job] for job in jobs]


@functools.cache
def agents(study: str) -> pd.DataFrame:
    """Return one row per stored agent of a study."""
    return finals(records(study))


@functools.cache
def verdicts() -> pd.DataFrame:
    """Return the claims with their verdicts, by id."""
    return judge.verdicts().set_index("id", drop=False)


def key_of(cell: Any) -> str:
    """Return what names a row of a frame as part of a number's name: "Tiles, replayed" is "tiles-replayed"."""
    name = SHORT.get(cell) or (f"{cell:g}" if isinstance(cell, float) else str(cell))
    return re.sub(r"^spaql/|-v\d$|[,()]", "", name).replace(" ", "-").lower()


def cells(template: str, frame: pd.DataFrame, *columns: str, digits: int | None = 0) -> dict[str, str]:
    """Return columns of a frame as numbers, named after what else stands in the row, and `{column}`.

    A negative number of digits rounds, as to thousands; none means as many as the system's returns have.  What is
    infinite is "none", and what is not known has no name.
    """
    found = {}
    for row in frame.to_dict("records"):
        keys = {name: key_of(cell) for name, cell in row.items() if not isinstance(cell, list)}
        for column in (column for column in columns if pd.notna(row[column])):
            shown = (1 if row["system"] == "CartPole-v0" else 0) if digits is None else digits
            text = number(round(row[column], shown), max(shown, 0)) if np.isfinite(row[column]) else "none"
            found[template.format_map(keys | {"column": column})] = text
    return found


def counted(name: str, verdicts: pd.Series) -> dict[str, str]:
    """Return how many verdicts there are of each kind."""
    return {f"{name}.{verdict}": str((verdicts == verdict).sum()) for verdict in VERDICTS[:3]}


def ours(claim: str, column: str = "ours", factor: float = 1.0) -> str:
    """Return what we measured for a claim."""
    return number(factor * verdicts()[column][claim], 0)


def ends() -> dict[str, str]:
    """Return the ends of the long runs, of TRPO and of SPAQL-R: reported and fresh reward, arms, the paper's own."""
    frame = pd.concat(
        [agents("long"), agents("trpo"), agents("repaired").replace({"algorithm": {"SPAQL-R": "repaired"}})]
    )
    frame = frame.assign(solved=solves(frame, "rewards"), solved_fresh=solves(frame, "fresh"))
    frame["taken"] = frame.steps + frame.evaluation_steps
    groups = frame.groupby(BY, sort=False)
    found = groups[["rewards", "fresh", "arms"]].mean().rename(columns={"rewards": "reported"})
    found = found.join(groups[["solved", "solved_fresh", "taken", "steps"]].sum(min_count=1))
    found["times"] = found.taken / found.steps
    found["paper"] = [paper_results().get(s, {}).get(a, {}).get("rewards", (np.nan,))[0] for s, a in found.index]
    found = found.reset_index()
    return cells("{system}.{algorithm}.{column}", found, "reported", "fresh", "paper", digits=None) | cells(
        "{system}.{algorithm}.{column}", found, "arms", "times", "solved", "solved_fresh"
    )


def xi() -> dict[str, str]:
    """Return the numbers of the study of ξ (chapter 01)."""
    frame, effects = agents("xi"), xi_effects(agents("xi"))
    frame = frame.assign(xi=np.where(frame.algorithm == "Random", "", np.where(frame.xi == 0, ".zero", ".more")))
    means = frame.groupby([*BY, "xi"], as_index=False).rewards.mean()
    return cells("xi.{system}.{algorithm}{xi}", means, "rewards") | {
        "xi.cases": str(len(effects)),
        "xi.effects": str((effects.p_holm < 0.05).sum()),
        "xi.lost": ours("xi0-cartpole-spaql", factor=100),
    }


def claims() -> dict[str, str]:
    """Return how many claims have which verdict, and what some of them measured (chapter 06, the page of claims)."""
    frame = verdicts()
    return counted("claims", frame.verdict) | counted("claims.run", frame.run_verdict) | {
        "claims.all": str(len(frame)),
        "pendulum.spaql.more": ours("pendulum-rewards-spaql", "more_ours"),
        "arms.ratio": ours("pendulum-arms-ratio-spaql"),
        "cartpole.arms.ratio": ours("cartpole-arms-ratio-aql"),
        "cartpole.longer.500": ours("cartpole-longer-500", factor=100),
        "cartpole.longer.2000": ours("cartpole-longer-2000", factor=100),
        "overtakes.spaql": ours("trpo-pendulum-overtakes-spaql"),
    }  # fmt: skip


def rules() -> dict[str, str]:
    """Return what is selection, what the released program's rules change, what fresh episodes keep (chapter 06)."""
    text = [record for record in records("xi") if record.job.system == "CartPole-v0" and record.job.xi == 0]
    base = records("long") + records("ablation")
    more = stored(further_of(record.job for record in base + text))
    effects, ties = ablation_table(base + more), xi_zero(text + base + more).set_index(["algorithm", "rules"])
    kept, frame = surviving(verdicts()), verdicts()
    return cells("{system}.{algorithm}.bias", best_against_fresh(records("long")), "bias", digits=None) | {
        "ablation.all": str(len(effects)),
        "ablation.found": str((effects.p_holm < 0.05).sum()),
        "ties.drawn": number(ties.rewards["SPAQL", "paper"], 0),
        "ties.last": number(ties.rewards["SPAQL", "ties"], 0),
        "survive.all": str(len(kept)),
        "survive.kept": str(kept.survives.sum()),
        "run.gone": str(((frame.verdict == "differs") & (frame.run_verdict != "differs")).sum()),
    }


def samples() -> dict[str, str]:
    """Return the samples that half of the agents need to reach a reward: all that the algorithm takes."""
    needed = samples_needed(records("long") + records("trpo"))
    tiles = [r for r in records("textbook") if r.job.algorithm == SAME and r.job.system in BOTH]
    levels = samples_to_levels(records("repaired") + records("trpo") + records("sb3") + tiles)
    return cells(
        "samples.{system}.{algorithm}.{threshold}", needed[needed.counted == "all"], "samples", digits=-3
    ) | cells("needs.{system}.{algorithm}.{level}", levels, "first", digits=-3)


def readings() -> dict[str, str]:
    """Return how well readings of the experiment fit the paper's Pendulum (chapter 11)."""
    fits = joint_fits().set_index("reading")
    fits, best = fits[fits.missing == ""], best_reading()
    # Random's torques are the program's in every reading but the text's: without that row, and with the row of a
    # reading with independent starts for the text as well.
    without = fits.without_random
    predicted = distances().set_index(["reading", "id", "kind"]).predicted
    return {
        "readings.all": str(len(fits)),
        "readings.degrees": str(int(fits.degrees[best])),
        "readings.best.chi2": number(fits.chi2[best], 0),
        "readings.best.p": f"{fits.p[best]:.2f}",
        "readings.best.spaql": number(predicted[best, "pendulum-rewards-spaql", "mean"], 0),
        "readings.text.chi2": number(fits.chi2[TEXT], 0),
        "readings.text.chi2.without-random": number(without[TEXT], 0),
        "readings.text.place.without-random": str(int(without.rank()[TEXT])),
        "readings.text.chi2.random-changed": number(without[TEXT] + fits.Random["torque"], 0),
    }


def controls() -> dict[str, str]:
    """Return what SPAQL earns with parts taken away (chapter 08), N = 20."""
    frame = stored_effects().xs(20, level="N").reset_index()
    return cells("controls.{system}.{algorithm}.{control}", frame, "changed") | cells(
        "controls.{system}.{algorithm}.unchanged", frame, "text"
    )


def foresight() -> dict[str, str]:
    """Return what is earned on the small problems, how regret grows, and what time is worth (chapter 08)."""
    frame, time = load_kept("foresight", part="small"), load_kept("foresight", part="time")
    later = frame[frame.regret.notna()]
    lost, episodes = (later[name].str[-1] - later[name].str[POINTS // 2] for name in ("regret", "iteration"))
    return (
        cells("{system}.{method}", frame.assign(fresh=frame.fresh.map(np.mean)), "fresh", digits=2)
        | cells("{system}.{column}", frame, "best", "myopic", digits=2)
        | cells("{system}.{method}.slope", later.assign(slope=lost / episodes), "slope", digits=2)
        | cells("time.{system}.best", time, "with")
        | cells("time.{system}.cost", time.assign(cost=time["with"] - time["without"]), "cost", digits=4)
    )


def settings() -> dict[str, str]:
    """Return what other settings earn (chapter 08), the search apart, and ideas."""
    ends, ideas = (load_kept(name, part="cells") for name in ("ends", "ideas"))
    planned = parameters_of("settings")
    means = ends.assign(**{end: ends[end].map(np.mean) for end in ("best", "last")})
    xi = xi_of_theory(200, 2000)
    return (
        cells("settings.{system}.{algorithm}.{setting}", stored_settings(), "fresh")
        | cells("ends.{system}.{algorithm}.{returns}.{temperature}.{column}",
                means.replace({"returns": {"yes": "returns", "no": "stays"}}), "best", "last")
        | cells("ideas.{system}.{idea}", ideas.assign(fresh=ideas.fresh.map(np.mean)), "fresh")
        | {"ends.agents": str(len(ends.best[0])), "ideas.agents": str(len(ideas.fresh[0]))}
        | {f"settings.{name}": str(planned[name]) for name in ("agents", "dummies", "few")}
        | {"xi.theory": number(round(xi, -3), 0), "xi.theory.visits": number((xi / REWARD_SCALE) ** 2 / 1e6, 0)}
    )  # fmt: skip


def repaired() -> dict[str, str]:
    """Return what SPAQL-R's variants earn after 40,000 samples, and what trees earn by size (chapter 09)."""
    frame = removals(records("repaired") + records("variants"), (40_000,))
    frame["variant"] = frame.algorithm.str.removeprefix("SPAQL-R, ")
    return cells("repaired.{system}.{variant}", frame, "mean") | cells(
        "leaves.{system}.{algorithm}.{kind}.{at}.{column}", points(), "leaves", "return"
    )


OUTCOMES = ("ahead", "behind", "level")


def told_apart(compared: pd.DataFrame) -> pd.DataFrame:
    """Return in how many comparisons SPAQL-R is ahead of, behind, and level with each group of rivals."""
    lower = compared.ours < compared.theirs
    counts = zip(OUTCOMES, (compared.told & ~lower, compared.told & lower, ~compared.told), strict=True)
    return compared.assign(**dict(counts)).groupby("rivals", as_index=False)[list(OUTCOMES)].sum()


def six() -> dict[str, str]:
    """Return what is earned on six systems and on two more (chapter 10), by samples and by dimensions, and trees."""
    everything = records("textbook") + stored(others())
    compared, trees = all_leads(everything), load_kept("trees")
    ended = compared[compared.samples == compared.samples.max()]
    earned = pd.concat([returns(records("six-states")), returns(everything)])
    again = [(trial["algorithm"], score(trial["again"])) for trial in load_trials() if "again" in trial]
    scores = pd.DataFrame(again, columns=["algorithm", "score"]).groupby("algorithm", as_index=False).max()
    medians = load_kept("dimensions").groupby(["algorithm", "dimensions"], as_index=False).median()
    trees["kind"] = np.where(trees.algorithm == "SPAQL-R", "repaired", "paper")
    trees = trees.assign(leaves=trees.small, small=trees.small_return.str[0], random=trees.random_return.str[0])
    return (
        cells("six.{system}.{algorithm}", earned, "mean", digits=1)
        | cells("six.against.{rivals}.{column}", told_apart(compared), *OUTCOMES)
        | cells("six.end.{rivals}.{column}", told_apart(ended), *OUTCOMES)
        | {f"tiles.as-a-tree.{size:.0f}": number(cost, 1) for size, cost in tile_trees.costs().items()}
        | cells("search.{algorithm}", scores, "score", digits=2)
        | cells("dimensions.{algorithm}.{dimensions}.{column}", medians, "samples")
        | cells("trees.{system}.{kind}.{column}", trees, "exact", "leaves")
        | cells("trees.{system}.{kind}.{column}", trees, "small", "random", digits=1)
    )


def travel() -> dict[str, str]:
    """Return how many of the paper's conclusions hold on other systems, and who comes to a goal there (chapter 10)."""
    frame = generality.generality()
    theirs = frame[(frame.whose == "paper") & ~frame.system.isin(BOTH)]
    found = counted("travel", theirs.verdict) | {"travel.conclusions": str(theirs.id.nunique())}
    return found | cells("goal.{system}.{algorithm}", generality.goal_counts(records("systems")), "reach")


def policies() -> dict[str, str]:
    """Return the sizes and returns of the explorer's policies, the size of the best tree, and how long the small lasts.

    They are of chapter 07 and the home page.
    """
    held = pd.DataFrame(read_policies((repository() or Path()) / "book" / "explorer" / "policies.js")["policies"])
    held = held[held.leaves.notna()]
    job = best(r for r in records("long") if (r.job.system, r.job.algorithm) == ("Pendulum-v1", "SPAQL")).job
    curve = np.load(tree_path(default_store(), job, {"target": None, **PUBLISHED}))["curve"]
    found = cells("policy.{system}.{algorithm}.{made}", held, "reward", digits=None)
    found |= cells("policy.{system}.{algorithm}.{made}.leaves", held, "leaves")
    found["policy.pendulum.spaql.best.leaves"] = number(curve[curve[:, 1].argmax(), 0], 0)
    return found | {"small.lasts": number(load_kept("longer", part="small")["median"][0], 0)}


CHAPTERS: tuple[Callable[[], dict[str, str]], ...] = (
    ends, xi, claims, rules, samples, readings, controls, foresight, settings, repaired, six, travel, policies,
)  # fmt: skip


@functools.cache
def numbers() -> dict[str, str]:
    """Return every number that prose may use, name -> text."""
    found: dict[str, str] = {}
    for chapter in CHAPTERS:
        added = chapter()
        if twice := found.keys() & added.keys():
            raise ValueError(f"{chapter.__name__} names numbers that another function has: {', '.join(sorted(twice))}")
        found |= added
    return found


def text_of(name: str) -> str | None:
    """Return the text that belongs to a tag, or None if there is no such name."""
    if not name.startswith("claim:"):
        return numbers().get(name)
    ids, _, kind = name.removeprefix("claim:").partition(".")
    column = f"{kind}_verdict" if kind else "verdict"
    frame = verdicts()
    if column not in frame or not set(ids.split(",")) <= set(frame.index):
        return None
    shared = set(frame[column][ids.split(",")])
    return shared.pop() if len(shared) == 1 else None


def tagged_files() -> Iterator[Path]:
    """Yield the files in which prose may have tags."""
    root = repository() or Path()
    yield from (*sorted((root / "book").glob("*.md")), *sorted((root / "notebooks").glob("*.ipynb")))
    yield root / "README.md"


def wrong_tags(text: str) -> list[str]:
    """Return what is wrong with the tags of a text, one line each."""
    found = []
    for tag in TAG.finditer(text):
        right = text_of(tag["name"])
        if right is None:
            found.append(f"there is no number {tag['name']!r}, or several claims do not share a verdict")
        elif tag["text"] != right:
            found.append(f"{tag['name']} is {right}, not {tag['text'] or 'what stands before it'}")
    return found


def rewritten(text: str) -> str:
    """Return a text with the right number or verdict before each tag."""
    return TAG.sub(lambda tag: f"{text_of(tag['name']) or tag['text'] or ''}<!--={tag['name']}-->", text)


def shown(text: str) -> str:
    """Return Markdown as the book shows it: numbers without their tags, verdicts as badges that link to the claim."""

    def show(tag: re.Match[str]) -> str:
        if not tag["name"].startswith("claim:"):
            return tag["text"] or ""
        first = re.split("[,.]", tag["name"].removeprefix("claim:"))[0]
        kind = tag["text"] if tag["text"] in ("holds", "differs") else "open"
        return f'<a class="badge badge-{kind}" href="../book/claims.html#claim-{first}">{tag["text"]}</a>'

    return TAG.sub(show, text)
