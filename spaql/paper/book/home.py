"""The home page: what was found, one line each with a badge, and a pole that the smallest tree holds."""

import html
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd

from spaql.paper.audit.claims import paper_results
from spaql.paper.audit.findings import ABOVE_AQL, EFFICIENT, describe_reading, same
from spaql.paper.audit.judge import MORE, about, verdict_verb
from spaql.paper.audit.readings import EVERY, best_reading, predicted_mean
from spaql.paper.tables.table import badge, number
from spaql.systems import solved_at

NEW = "new"  # the badge of what the paper does not ask


class Headline(NamedTuple):
    """A finding in a line: how the paper's claims about it fare, the sentence, and the page that has more."""

    badge: str
    text: str
    page: str


def headlines(
    verdicts: pd.DataFrame,
    ends: pd.DataFrame,
    leaves: int,
    effects: pd.DataFrame,
    levels: pd.DataFrame,
    searched: int,
) -> list[Headline]:
    """Return the findings of the home page and the README.

    Parameters
    ----------
    verdicts
        From `spaql.paper.audit.judge.verdicts`.
    ends
        From `spaql.paper.frames.finals`, of the long runs and TRPO.
    leaves
        Of the smallest tree that solves CartPole.
    effects
        From `spaql.paper.audit.controls.stored_effects`.
    levels
        From `spaql.paper.audit.repaired.samples_to_levels`, of SPAQL-R and TRPO.
    searched
        How many samples the search for SPAQL-R's settings took.
    """
    chosen, claims = ends.set_index(["system", "algorithm"]).sort_index(), verdicts.set_index("id")

    def mean(algorithm: str, column: str = "rewards", system: str = "Pendulum-v1") -> str:
        return number(chosen.loc[(system, algorithm), column].mean(), 0)

    agents = chosen.loc[("CartPole-v0", "SPAQL-TS")]
    threshold = solved_at("CartPole-v0")
    solves = claims.loc["cartpole-ts-solves"]
    solved, solved_fresh = ((agents[column] >= threshold).sum() for column in ("rewards", "fresh"))
    with_twenty, with_more = map(verdict_verb, (solves.fresh_verdict, solves.more_fresh_verdict))
    paper = number(paper_results()["Pendulum-v1"]["SPAQL"]["rewards"][0], 0)
    counted = chosen.loc[("Pendulum-v1", "SPAQL")]
    times = (counted.steps.sum() + counted.evaluation_steps.sum()) / counted.steps.sum()
    claim = claims.loc["pendulum-rewards-spaql"]
    best = best_reading()
    reading = describe_reading(EVERY[best]) or "the text's experiment"
    deleted = effects.loc["CartPole-v0", "SPAQL", 20, "reward deleted"]
    kept = effects.loc["Pendulum-v1", "SPAQL", 20, "last kept"]
    there = levels.set_index(["system", "algorithm", "level"]).loc["Pendulum-v1"]
    needed, stays = there["first"], about(there.stays["SPAQL-R", -200.0])
    repaired, trpo, tuned, sac = (about(needed[name, -200.0]) for name in ("SPAQL-R", "TRPO", "TRPO tuned", "SAC"))
    faster = needed["SAC", -200.0] < needed["SPAQL-R", -200.0]
    return [
        Headline(
            same(claims, ABOVE_AQL),
            f"**SPAQL beats AQL.** With one partition for all time steps and its best policy kept, it earns "
            f"{mean('SPAQL', 'fresh')} on fresh episodes of Pendulum with {mean('SPAQL', 'arms')} arms; AQL, with one "
            f"for each step and the last policy kept, {mean('AQL', 'fresh')} with {mean('AQL', 'arms')}.",
            "../notebooks/02_pendulum",
        ),
        Headline(
            claims.verdict["cartpole-ts-solves"],
            f"**SPAQL-TS solves CartPole on average:** {mean('SPAQL-TS', system='CartPole-v0')} of 200 steps by the "
            f"paper's measure ({solved} of {len(agents)} agents solve it), and "
            f"{mean('SPAQL-TS', 'fresh', 'CartPole-v0')} on fresh episodes ({solved_fresh} do). That the mean is "
            f"above {threshold:.0f} there {with_twenty} with these agents, and {with_more} {MORE} "
            f"({solves.more_fresh:.1f}).",
            "../notebooks/04_cartpole",
        ),
        Headline(
            claim.verdict,
            f"**The paper's Pendulum does not come out** if it is run as we read its text: SPAQL earns "
            f"{mean('SPAQL')}, and the paper prints {paper}. The best of the explanations that we tried is an "
            f"experiment with {reading}, which predicts {number(predicted_mean(best, claim.name), 0)}.",
            "../notebooks/11_readings",
        ),
        Headline(
            NEW,
            "**On CartPole SPAQL's Q-values learn nothing from rewards.** With every reward deleted from its updates "
            f"it earns {number(deleted.changed, 0)} on fresh episodes, with them {number(deleted.text, 0)} (with 20 "
            "rollouts after each iteration, the paper has 100). The reward comes from keeping the policy with the best "
            "rollouts so far and going back to it. On Pendulum it does learn, and that very choice costs it: it earns "
            f"{number(kept.changed, 0)} if it keeps its last policy instead, and {number(kept.text, 0)} as it is "
            f"({kept.agents:.0f} agents each).",
            "../notebooks/08_what_is_learned",
        ),
        Headline(
            NEW,
            f"**Reported rewards are the best of thousands.** The same SPAQL policies earn {mean('SPAQL', 'fresh')} on "
            f"fresh episodes of Pendulum, not {mean('SPAQL')}.",
            "../notebooks/02_pendulum",
        ),
        Headline(
            same(claims, EFFICIENT),
            f"**SPAQL and SPAQL-TS are not more sample-efficient than TRPO** over its 400,000 samples: with the "
            f"rollouts that choose its agents SPAQL uses {times:.0f} times as many samples on Pendulum, and "
            f"TRPO ends ahead ({mean('TRPO')}).",
            "../notebooks/05_trpo_comparison",
        ),
        Headline(
            NEW,
            f"**SPAQL-R, our repaired SPAQL, needs fewer samples than TRPO.** Half of its agents reach −200 on "
            f"Pendulum within {repaired} samples (their mean stays above it from {stays} on), half of TRPO's "
            f"within {trpo} ({tuned} with tuned settings). SAC, a newer method with networks, needs "
            f"{'fewer still' if faster else 'more'}: {sac}. All training is counted; the search for SPAQL-R's settings "
            f"({searched / 1e6:.0f} million samples, on variants of the same two systems and on MountainCar) is not.",
            "../notebooks/09_repaired",
        ),
        Headline(
            NEW,
            "**Every policy can be written as an exact tree**, often of hundreds of leaves, which is larger than it "
            f"need be: a search finds one with {leaves} leaves that holds the pole.",
            "../notebooks/07_policies",
        ),
    ]  # fmt: skip


def with_more_agents(effects: pd.DataFrame) -> str:
    """Say what the hundred agents earn of which the paper's twenty are a part.

    Parameters
    ----------
    effects
        From `spaql.paper.audit.controls.stored_effects`.
    """
    rows = {name: effects.loc["Pendulum-v1", name, 20, "reward deleted"] for name in ("SPAQL", "SPAQL-TS")}
    earned = " and ".join(f"{name} earns {number(row.text, 0)}" for name, row in rows.items())
    return (
        f"Twenty agents are few. With {rows['SPAQL'].agents:.0f} of each, {earned} on fresh episodes of Pendulum; "
        "{doc}`../notebooks/08_what_is_learned` uses those."
    )


def as_lines(found: Iterable[Headline]) -> str:
    """Return headlines as a list in Markdown, each with its badge and a link to its page."""
    return "\n".join(f"- {badge(one.badge)} {one.text} {{doc}}`More <{one.page}>`" for one in found)


def smallest_policy(data: dict[str, Any], system: str) -> dict[str, Any]:
    """Return the smallest policy of a system in the explorer's data, with the data of the system."""
    policy = min((p for p in data["policies"] if p["system"] == system), key=lambda p: p["leaves"])
    return {name: policy[name] for name in ("feature", "threshold", "left", "right", "action", "leaves")} | {
        "system": data["systems"][system]
    }


def leaf_rules(policy: dict[str, Any]) -> list[str]:
    """Return one rule per leaf in the order of its actions: the questions on the way to it, and what it does."""
    system, rules = policy["system"], {}

    def walk(node: int, asked: list[str]) -> None:
        feature = policy["feature"][node]
        if feature < 0:
            row = policy["left"][node]
            force = system["choices"][policy["action"][row]]
            rules[row] = f"{' and '.join(asked)}: push {'right' if force > 0 else 'left'}"
            return
        name, unit = system["observed"][feature], system["units"][feature]
        threshold = f"{number(policy['threshold'][node], 2)} {unit}"
        walk(policy["left"][node], [*asked, f"{name} < {threshold}"])
        walk(policy["right"][node], [*asked, f"{name} ≥ {threshold}"])

    walk(0, [])
    return [rules[row] for row in sorted(rules)]


def hero(policy: dict[str, Any]) -> str:
    """Return the moving picture of the home page: a pole under a tree, with the tree's rules beside it."""
    rules = "".join(f"<li>{html.escape(rule)}</li>" for rule in leaf_rules(policy))
    data = html.escape(json.dumps(policy, ensure_ascii=False), quote=True)
    return (
        "```{raw} html\n"
        f'<div class="hero" id="spaql-hero" data-policy="{data}">'
        '<canvas width="640" height="300" role="img" '
        'aria-label="A cart that keeps a pole upright under the rules beside it"></canvas>'
        f"<div><p>A whole policy in {policy['leaves']} rules (θ is the pole's lean to the right). A search for small "
        f'trees made it from one that SPAQL-TS had learned (<a href="../notebooks/07_policies.html">how</a>):</p>'
        f"<ul>{rules}</ul>"
        '<p><button type="button" data-push="-1">← push the pole</button> '
        '<button type="button" data-push="1">push the pole →</button> '
        '<button type="button" data-play>pause</button></p></div></div>\n'
        '<script src="../_static/systems/cartpole.js"></script>\n<script src="../_static/hero.js"></script>\n```\n'
    )
