"""The numbers that prose may use: one dictionary, name -> text, computed from the stored runs.

Prose is written by hand.  A number that comes from a run is followed by its name in an HTML comment, and so is the
verdict on a claim:

    SPAQL earns −485<!--=pendulum.spaql.reported-->, and that it beats AQL holds<!--=claim:pendulum-spaql-aql-->.

A reader of the source, of GitHub or of Jupyter sees the sentence; the book strips the comments and turns verdicts into
badges that link to the claim (`shown`).  A test compares every tagged text with `numbers()`.  `spaql numbers --write`
puts the right texts in; `spaql numbers` lists all names.

To use a number in a chapter, add a line to the function of that chapter below (or a new function to `CHAPTERS`):
`mean(agents("long"), "Pendulum-v1", "SPAQL", "fresh")` and the like.  Names are short and begin with their subject.
Verdicts need no entry: `claim:ID` is the verdict as written, `claim:ID.run`, `.fresh`, `.more` and `.more_fresh` are
the others (columns of `spaql claims --json`), and `claim:ID,ID2` the one that several claims share.
"""

import functools
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from spaql.paper.audit import generality, judge
from spaql.paper.audit.ablation import ablation_table, xi_zero
from spaql.paper.audit.bias import best_against_fresh, surviving
from spaql.paper.audit.claims import VERDICTS, paper_results
from spaql.paper.audit.comparison import samples_needed
from spaql.paper.audit.controls import stored_effects
from spaql.paper.audit.dimensions import load_dimensions
from spaql.paper.audit.ends import load_ends
from spaql.paper.audit.foresight import load_foresight
from spaql.paper.audit.ideas import load_ideas
from spaql.paper.audit.kept import load_kept
from spaql.paper.audit.readings import TEXT, best_reading, joint_fits, predicted_mean
from spaql.paper.audit.repaired import removals, samples_to_levels
from spaql.paper.audit.settings import stored_settings
from spaql.paper.audit.small_trees import load_trees
from spaql.paper.audit.yardsticks import leads, others, returns
from spaql.paper.book.explorer import read_policies
from spaql.paper.frames import best, finals
from spaql.paper.labels import number, plus_minus, spread
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.provenance import default_store, repository
from spaql.paper.runs.runner import load_stored
from spaql.paper.runs.stored_trees import PUBLISHED, tree_path
from spaql.paper.studies import BOTH, further_of, parameters_of, xi_of_theory
from spaql.paper.studies import study as jobs_of
from spaql.paper.tables.results import xi_effects
from spaql.systems import solved_at
from spaql.systems.pendulum import REWARD_SCALE

SYSTEMS = {"pendulum": "Pendulum-v1", "five": "spaql/PendulumDiscrete-v1", "cartpole": "CartPole-v0"}
ALGORITHMS = {"random": "Random", "aql": "AQL", "spaql": "SPAQL", "ts": "SPAQL-TS",
              "trpo": "TRPO", "tuned": "TRPO tuned"}  # fmt: skip

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


def group(frame: pd.DataFrame, system: str, algorithm: str) -> pd.DataFrame:
    """Return the agents of one algorithm on one system."""
    return frame[(frame.system == system) & (frame.algorithm == algorithm)]


def mean(frame: pd.DataFrame, system: str, algorithm: str, column: str = "rewards", digits: int = 0) -> str:
    """Return the mean of a column over the agents of one algorithm on one system."""
    return number(group(frame, system, algorithm)[column].mean(), digits)


def ours(claim: str, digits: int = 0, column: str = "ours", factor: float = 1.0) -> str:
    """Return what we measured for a claim."""
    return number(factor * verdicts()[column][claim], digits)


def about(count: float) -> str:
    """Return a number of samples as text: to the nearest thousand, "none" if it is never reached."""
    return number(round(count, -3), 0) if np.isfinite(count) else "none"


def ends() -> dict[str, str]:
    """Return the ends of the long runs and of TRPO: reported and fresh reward, arms, the paper's own numbers."""
    found, frame = {}, pd.concat([agents("long"), agents("trpo")])
    for place, system in SYSTEMS.items():
        digits = 1 if place == "cartpole" else 0
        for who, algorithm in ALGORITHMS.items():
            mine = group(frame, system, algorithm)
            if mine.empty:
                continue
            key = f"{place}.{who}"
            for column, name in (("rewards", "reported"), ("fresh", "fresh")):
                found[f"{key}.{name}"] = number(mine[column].mean(), digits)
                found[f"{key}.{name}_pm"] = spread(mine[column], digits)
            found[f"{key}.lost"] = number(mine.rewards.mean() - mine.fresh.mean(), digits)
            found[f"{key}.arms"] = number(mine.arms.mean(), 0)
            found[f"{key}.training"] = number(mine.steps.mean() / 1000, 0)
            found[f"{key}.rollouts"] = number(mine.evaluation_steps.mean() / 1000, 0)
            found[f"{key}.times"] = number((mine.steps + mine.evaluation_steps).sum() / mine.steps.sum(), 0)
            if threshold := solved_at(system):
                found[f"{key}.solved"] = str((mine.rewards >= threshold).sum())
                found[f"{key}.solved_fresh"] = str((mine.fresh >= threshold).sum())
            theirs = paper_results().get(system, {}).get(algorithm, {})
            if "rewards" in theirs:
                found[f"{key}.paper"] = number(theirs["rewards"][0], digits)
                found[f"{key}.paper_pm"] = plus_minus(*theirs["rewards"], digits)
            if "arms" in theirs:
                found[f"{key}.paper_arms"] = number(theirs["arms"][0], 0)
    return found


def xi() -> dict[str, str]:
    """Return the numbers of the study of ξ (chapter 01)."""
    frame, effects = agents("xi"), xi_effects(agents("xi"))
    found = {"xi.cases": str(len(effects)), "xi.effects": str(sum(p < 0.05 for _, p in effects.values()))}
    for who in ("aql", "spaql", "ts"):
        mine = group(frame, "CartPole-v0", ALGORITHMS[who])
        found[f"xi.cartpole.{who}.zero"] = number(mine[mine.xi == 0].rewards.mean(), 0)
        found[f"xi.cartpole.{who}.more"] = number(mine[mine.xi > 0].rewards.mean(), 0)
    found["xi.cartpole.random"] = mean(frame, "CartPole-v0", "Random")
    found["xi.lost"] = ours("xi0-cartpole-spaql", factor=100)
    return found


def claims() -> dict[str, str]:
    """Return how many claims have which verdict, and what some of them measured (chapter 06, the page of claims)."""
    frame = verdicts()
    found = {"claims.all": str(len(frame))}
    for column, name in (("verdict", "claims"), ("run_verdict", "claims.run"), ("more_verdict", "claims.more")):
        found |= {f"{name}.{verdict}": str((frame[column] == verdict).sum()) for verdict in VERDICTS[:3]}
    equal = frame[frame.kind.isin(judge.EQUALITIES)]
    found |= {f"equal.{verdict}": str((equal.verdict == verdict).sum()) for verdict in VERDICTS[:3]}
    return found | {
        "equal.all": str(len(equal)),
        "pendulum.spaql.more": ours("pendulum-rewards-spaql", column="more_ours"),
        "arms.ratio": ours("pendulum-arms-ratio-spaql"),
        "cartpole.arms.ratio": ours("cartpole-arms-ratio-aql"),
        "cartpole.ts.more_fresh": ours("cartpole-ts-solves", 1, "more_fresh"),
        "cartpole.longer.500": ours("cartpole-longer-500", factor=100),
        "cartpole.longer.2000": ours("cartpole-longer-2000", factor=100),
        "cartpole.aql.gain": ours("cartpole-aql-progress", 2),
        "overtakes.spaql": ours("trpo-pendulum-overtakes-spaql"),
    }


def selection() -> dict[str, str]:
    """Return how much of what is reported is selection (chapter 06)."""
    bias = best_against_fresh(records("long")).set_index(["system", "algorithm"])
    found: dict[str, str] = {}
    for place, system in SYSTEMS.items():
        for who in ("spaql", "ts"):
            row = bias.loc[(system, ALGORITHMS[who])]
            found[f"{place}.{who}.bias"] = number(row.bias, 0 if place != "cartpole" else 1)
            found[f"{place}.{who}.bias_ends"] = f"[{number(row.bias_low, 0)}, {number(row.bias_high, 0)}]"
    return found


def rules() -> dict[str, str]:
    """Return what the rules of the released program change, and which verdicts fresh episodes keep (chapter 06)."""
    text = [record for record in records("xi") if record.job.system == "CartPole-v0" and record.job.xi == 0]
    base = records("long") + records("ablation")
    more = stored(further_of(record.job for record in base + text))
    effects, ties = ablation_table(base + more), xi_zero(text + base + more).set_index(["algorithm", "rules"])
    kept, frame = surviving(verdicts()), verdicts()
    return {
        "ablation.all": str(len(effects)),
        "ablation.found": str((effects.p_holm < 0.05).sum()),
        "ablation.rewards": str(((effects.p_holm < 0.05) & (effects.quantity != "arms")).sum()),
        "ties.drawn": number(ties.rewards["SPAQL", "paper"], 0),
        "ties.last": number(ties.rewards["SPAQL", "ties"], 0),
        "survive.all": str(len(kept)),
        "survive.kept": str(kept.survives.sum()),
        "run.gone": str(((frame.verdict == "differs") & (frame.run_verdict != "differs")).sum()),
    }


def samples() -> dict[str, str]:
    """Return the samples that half of the agents need to reach a reward: all of them, and those of training alone."""
    needed = samples_needed(records("long") + records("trpo"))
    found: dict[str, str] = {}
    places = {name: place for place, name in SYSTEMS.items()}
    whos = {name: who for who, name in ALGORITHMS.items()}
    for row in needed.itertuples():
        key = f"samples.{places[row.system]}.{whos[row.algorithm]}.{row.threshold:.0f}"
        found[key if row.counted == "all" else f"{key}.training"] = about(row.samples)
    levels = samples_to_levels(records("repaired") + records("trpo") + records("sb3"))
    for row in levels.itertuples():
        key = f"needs.{places[row.system]}.{row.algorithm.lower().replace(' ', '-')}.{row.level:.0f}"
        found |= {key: about(row.first), f"{key}.stays": about(row.stays)}
    return found


def readings() -> dict[str, str]:
    """Return how well readings of the experiment fit the paper's Pendulum (chapter 11)."""
    fits = joint_fits().set_index("reading")
    fits, best = fits[fits.missing == ""], best_reading()
    found = {"readings.all": str(len(fits)), "readings.degrees": str(int(fits.degrees[best]))}
    found |= {"readings.text.chi2": number(fits.chi2[TEXT], 0), "readings.best.chi2": number(fits.chi2[best], 0)}
    found["readings.best.p"] = f"{fits.p[best]:.2f}"
    # Random's torques are the program's in every reading but the text's: without that row, and with the row of a
    # reading with independent starts for the text as well.
    without, row = fits.without_random, fits.Random["torque"]
    changed = fits.chi2.where(fits.index != TEXT, without + row)
    for name, chi2 in (("without-random", without), ("random-changed", changed)):
        found[f"readings.text.chi2.{name}"] = number(chi2[TEXT], 0)
        found[f"readings.text.place.{name}"] = str(int(chi2.rank()[TEXT]))
    for who in ("spaql", "ts", "aql"):
        found[f"readings.best.{who}"] = number(predicted_mean(best, f"pendulum-rewards-{who}"), 0)
    return found


def controls() -> dict[str, str]:
    """Return what SPAQL earns with parts taken away (chapter 08): `controls.SYSTEM.ALGORITHM.CONTROL`, N = 20."""
    found: dict[str, str] = {}
    places = {name: place for place, name in SYSTEMS.items()}
    whos = {name: who for who, name in ALGORITHMS.items()}
    for (system, algorithm, rollouts, control), row in stored_effects().iterrows():
        if rollouts == 20 and system in places:
            key, part = f"controls.{places[system]}.{whos[algorithm]}", control.replace(",", "").replace(" ", "-")
            found |= {f"{key}.{part}": number(row.changed, 0), f"{key}.unchanged": number(row.text, 0)}
            found[f"{key}.{part}.share"] = number(100 * row.share, 0)  # per cent of the gain over Random
    return found


def foresight() -> dict[str, str]:
    """Return what is earned on the small problems, and how regret grows (chapter 08)."""
    found = {}
    for row in load_foresight("small").to_dict("records"):
        system = row["system"].removeprefix("spaql/").removesuffix("-v0").lower()
        key = f"{system}.{row['method'].replace(',', '').replace(' ', '-')}".lower()
        found[key] = number(np.mean(row["fresh"]), 2)
        found |= {f"{system}.best": number(row["best"], 2), f"{system}.myopic": number(row["myopic"], 2)}
        if isinstance(row["regret"], list):
            half = len(row["regret"]) // 2
            lost = row["regret"][-1] - row["regret"][half]
            found[f"{key}.slope"] = number(lost / (row["iteration"][-1] - row["iteration"][half]), 2)
    places = {name: place for place, name in SYSTEMS.items()}
    for row in load_foresight("time").to_dict("records"):
        found[f"time.{places[row['system']]}.best"] = number(row["with"], 0)
        found[f"time.{places[row['system']]}.cost"] = number(row["with"] - row["without"], 4)
    return found


def settings() -> dict[str, str]:
    """Return what other settings earn (08), `settings.SYSTEM.ALGORITHM.SETTING`, the search apart, and ideas."""
    places, whos = ({name: key for key, name in names.items()} for names in (SYSTEMS, ALGORITHMS | {"r": "SPAQL-R"}))
    found = {
        f"settings.{places[row.system]}.{whos[row.algorithm]}.{row.setting.replace(' ', '-')}": number(row.fresh, 0)
        for row in stored_settings().itertuples()
    }
    ends = load_ends()
    for row in ends.to_dict("records"):
        returns = "returns" if row["returns"] == "yes" else "stays"
        key = f"ends.{places[row['system']]}.{whos[row['algorithm']]}.{returns}.{row['temperature']}"
        found |= {f"{key}.{end}": number(np.mean(row[end]), 0) for end in ("best", "last")}
    for row in load_ideas().to_dict("records"):
        key = f"ideas.{places[row['system']]}.{row['idea'].replace(',', '').replace(' ', '-')}"
        found |= {key: number(np.mean(row["fresh"]), 0), "ideas.agents": str(len(row["fresh"]))}
    found["ends.agents"] = str(len(ends.best[0]))
    found |= {f"settings.{name}": str(parameters_of("settings")[name]) for name in ("agents", "dummies", "few")}
    xi = xi_of_theory(200, 2000)
    found |= {"xi.theory": number(round(xi, -3), 0), "xi.theory.visits": number((xi / REWARD_SCALE) ** 2 / 1e6, 0)}
    return found


def repaired() -> dict[str, str]:
    """Return the ends of SPAQL-R on the paper's systems, and what variants earn after 40,000 samples (chapter 09)."""
    frame, places = agents("repaired"), {name: place for place, name in SYSTEMS.items()}
    found = {
        "pendulum.repaired.fresh": mean(frame, "Pendulum-v1", "SPAQL-R", "fresh"),
        "cartpole.repaired.fresh": mean(frame, "CartPole-v0", "SPAQL-R", "fresh", 1),
    }
    for row in removals(records("repaired") + records("variants"), (40_000,)).to_dict("records"):
        name = row["algorithm"].removeprefix("SPAQL-R").strip(", ").lower().replace(" ", "-")
        found[f"repaired.{places[row['system']]}.{name or 'whole'}"] = number(row["mean"], 0)
    return found


def key_of(name: str) -> str:
    """Return an algorithm's or a system's name as part of a number's: "Tiles, replayed" is "tiles-replayed"."""
    name = name.removeprefix("spaql/")
    return re.sub(r"[^a-zλ0-9-]", "", name.removesuffix("-v0").removesuffix("-v1").lower().replace(" ", "-"))


def six() -> dict[str, str]:
    """Return what is earned on six systems (chapter 10): `six.SYSTEM.ALGORITHM`, and who leads whom by how much.

    CartPole with 500 steps is "cartpole500".
    """
    everything, more = records("textbook") + stored(others()), records("six-states")
    found: dict[str, str] = {}
    for row in [*returns(more).to_dict("records"), *returns(everything).to_dict("records")]:
        place = "cartpole500" if row["system"] == "CartPole-v1" else key_of(row["system"])
        found[f"six.{place}.{key_of(row['algorithm'])}"] = number(row["mean"], 1)
        found[f"six.agents.{key_of(row['algorithm'])}"] = str(row["agents"])
    for name, wall in agents("sb3")[agents("sb3").system == "Pendulum-v1"].groupby("algorithm").wall:
        found[f"six.minutes.{key_of(name)}"] = number(wall.median() / 60, 1)
    compared = leads(everything)
    for samples, here in compared.groupby("samples"):
        found[f"six.behind.{samples}"] = str((here.ours < here.theirs).sum())
    found["six.behind"] = str((compared.ours < compared.theirs).sum())
    found["six.compared"] = str(len(compared))
    medians = load_dimensions().groupby(["algorithm", "dimensions"])[["samples", "seconds", "megabytes"]].median()
    for (algorithm, dimensions), row in medians.iterrows():
        key = f"dimensions.{key_of(algorithm)}.{dimensions}"
        found |= {f"{key}.samples": number(row.samples, 0), f"{key}.seconds": f"{row.seconds:.2g}"}
        found[f"{key}.megabytes"] = number(row.megabytes, 0)
    for row in load_trees().to_dict("records"):
        place = "cartpole500" if row["system"] == "CartPole-v1" else key_of(row["system"])
        key = f"trees.{place}.{'repaired' if row['algorithm'] == 'SPAQL-R' else 'paper'}"
        found[f"{key}.exact"] = number(row["exact"], 0)
        if np.isfinite(row["small"]):
            found[f"{key}.leaves"] = number(row["small"], 0)
            found |= {f"{key}.{kind}": number(row[f"{kind}_return"][0], 1) for kind in ("small", "random")}
    return found


def travel() -> dict[str, str]:
    """Return how many of the paper's conclusions hold on other systems, and who comes to a goal there (chapter 10)."""
    frame = generality.generality()
    theirs = frame[(frame.whose == "paper") & ~frame.system.isin(BOTH)]
    found = {f"travel.{verdict}": str((theirs.verdict == verdict).sum()) for verdict in VERDICTS[:3]}
    found["travel.conclusions"] = str(theirs.id.nunique())
    for row in generality.goal_counts(records("systems")).to_dict("records"):
        found[f"goal.{key_of(row['system'])}.{key_of(row['algorithm'])}"] = str(row["reach"])
    return found


def policies() -> dict[str, str]:
    """Return the sizes and returns of the explorer's policies, the size of the best tree, and how long the small lasts.

    They are of chapter 07 and the home page.
    """
    held = read_policies((repository() or Path()) / "book" / "explorer" / "policies.js")["policies"]
    found: dict[str, str] = {}
    for place, system in SYSTEMS.items():
        for policy in held:
            if policy["system"] == system and "leaves" in policy:
                key = f"policy.{place}.{policy['algorithm']}.{policy['made']}".lower().replace(" ", "-")
                digits = 1 if place == "cartpole" else 0
                found |= {f"{key}.leaves": str(policy["leaves"]), key: number(policy["reward"], digits)}
    job = best(r for r in records("long") if (r.job.system, r.job.algorithm) == ("Pendulum-v1", "SPAQL")).job
    curve = np.load(tree_path(default_store(), job, {"target": None, **PUBLISHED}))["curve"]
    found["policy.pendulum.spaql.best.leaves"] = number(curve[curve[:, 1].argmax(), 0], 0)
    return found | {"small.lasts": number(load_kept("longer", part="small")["median"][0], 0)}


CHAPTERS: tuple[Callable[[], dict[str, str]], ...] = (
    ends, xi, claims, selection, rules, samples, readings, controls, foresight, settings, repaired, six, travel,
    policies,
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
