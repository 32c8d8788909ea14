"""The conclusion of the book: what stands of the paper, what does not, why, and what to use today.

Every number and every verdict comes from stored results, whatever they are.
"""

import functools
import math

import pandas as pd

from spaql.paper.audit.findings import Finding
from spaql.paper.audit.judge import about
from spaql.paper.book.explorer import LEARNED, SMALLER, policies_of
from spaql.paper.studies import LONG_RUNS
from spaql.paper.tables.audit import interval_of
from spaql.paper.tables.generality import where
from spaql.paper.tables.learned import percent
from spaql.paper.tables.table import number

STANDS = ("One partition instead of many", "CartPole", "The early lead")
FALLS = ("Sample efficiency", "What was run on Pendulum", "Selection", "Twenty agents")


def chosen(found: list[Finding], names: tuple[str, ...]) -> str:
    """Return some of the audit's findings as a list in Markdown, in the order of the names."""
    texts = {one.about: one.text for one in found}
    return "\n".join(f"- **{name}.** {texts[name]}" for name in names)


def sources(effects: pd.DataFrame) -> str:
    """Say what earns SPAQL's rewards, from what is left when a part of it is taken away.

    Parameters
    ----------
    effects
        From `spaql.paper.audit.controls.stored_effects`.
    """
    fresh, earned = effects.xs(20, level="N"), functools.partial(interval_of, digits=0)

    def row(control: str, system: str = "CartPole-v0", algorithm: str = "SPAQL") -> pd.Series:
        return fresh.loc[(system, algorithm, control)]

    deleted, last, drawn = (row(name) for name in ("reward deleted", "last kept", "random partitions"))
    told = row("reward deleted, last kept", algorithm="SPAQL-TS")
    kept, any_at_all = (row(name, "Pendulum-v1") for name in ("last kept", "random partitions"))
    better = "more than" if kept.difference > 0 else "less than"
    return (
        f"- **On CartPole, from choosing.** SPAQL earns {earned(deleted, 'text')} on fresh episodes. With the reward "
        f"deleted from every update it earns {earned(deleted, 'changed')}, and partitions that are drawn at random, of "
        f"which the best is kept, earn {earned(drawn, 'changed')}. If it keeps its last agent instead of its best, it "
        f"earns {earned(last, 'changed')}. A search over the {LONG_RUNS.iterations:,} policies of a run, each "
        f"judged by its rollouts, does the work. (All with 20 rollouts after each iteration, the paper has 100.)\n"
        f"- **From what SPAQL-TS is told.** It knows where the pole should be. Without the reward, and without "
        f"choosing, it still earns {earned(told, 'changed')} on CartPole.\n"
        f"- **On Pendulum SPAQL learns, and choosing costs it.** If it keeps its last agent it earns "
        f"{earned(kept, 'changed')}, {better} with the best kept, {earned(kept, 'text')}. The latter alone would be no "
        f"sign of learning: partitions drawn at random, of which the best is kept, earn "
        f"{earned(any_at_all, 'changed')}, {percent(any_at_all)} of its gain over Random.\n\n"
        f"Each group has {int(fresh.agents.min())} agents or more, so that numbers differ a little from those of the "
        "paper's twenty."
    )


def samples(count: float) -> str:
    """Say within how many samples half of a group's agents reach something."""
    return f"within {about(count)} samples" if math.isfinite(count) else "at no time"


def advice(levels: pd.DataFrame, ends: pd.DataFrame, explored: dict, travels: pd.DataFrame) -> str:
    """Say what to use today: for few samples, and for a policy that can be read.

    Parameters
    ----------
    levels
        From `spaql.paper.audit.repaired.samples_to_levels`, of SPAQL-R, TRPO and SAC.
    ends
        From `spaql.paper.frames.finals`, of SPAQL-R's agents.
    explored
        The explorer's data, see `spaql.paper.book.explorer.read_policies`.
    travels
        From `spaql.paper.audit.generality.generality`.
    """
    first = levels.set_index(["system", "algorithm", "level"])["first"]
    parts = []
    for name, system, level in (("Pendulum", "Pendulum-v1", -200.0), ("CartPole", "CartPole-v0", 195.0)):
        ours, theirs, tuned = (samples(first[system, who, level]) for who in ("SPAQL-R", "TRPO", "TRPO tuned"))
        parts.append(f"half of its agents reach {number(level, 0)} on {name} {ours}, half of TRPO's {theirs}, and "
                     f"with tuned settings {tuned}")  # fmt: skip
    end = {system: number(group.fresh.mean(), 1) for system, group in ends.groupby("system")}
    mine = policies_of(explored, "Pendulum-v1", "SPAQL")
    small, parent = mine[SMALLER], mine[LEARNED]
    holds = min(policies_of(explored, "CartPole-v0", "SPAQL-TS").values(), key=lambda policy: policy["leaves"])
    return (
        f"- **For few samples and no network, on tasks like these two, SPAQL-R.** It keeps SPAQL's partition, and "
        f"needs neither ξ nor rollouts. With every sample of training counted, {'; '.join(parts)}. It ends at "
        f"{end['Pendulum-v1']} and {end['CartPole-v0']}. `SPAQLR(env, seed=0).learn(samples=100_000)` runs it with the "
        "defaults of this book; {doc}`../notebooks/09_repaired` says what each repair is worth.\n"
        f"- **For the fewest samples, or another task, look further.** Half of SAC's agents reach −200 on Pendulum "
        f"{samples(first['Pendulum-v1', 'SAC', -200.0])}, with a network and minutes of training. Against TRPO with "
        f"the settings published for each task of classic control, that SPAQL-R ends higher "
        f"{where(travels, 'repaired-tuned')}; {{doc}}`../notebooks/10_other_systems` has the numbers.\n"
        f"- **For a policy to read, a small tree.** On CartPole {holds['leaves']} leaves earn "
        f"{number(holds['reward'], 0)}. On Pendulum {small['leaves']} leaves earn {number(small['reward'], 0)}, and "
        f"the SPAQL policy with {parent['leaves']} leaves, from which the search for them began, "
        f"{number(parent['reward'], 0)}. `agent.policy.simplify()` looks for one; {{doc}}`../notebooks/07_policies` "
        "says what that costs.\n"
        "- **For numbers to believe, fresh episodes.** `agent.evaluate(episodes=1000, seed=1)` plays them, and no best "
        "mean of a training run stands in for it.\n"
        "- **For anything larger, something else.** The paper's systems are small, with two to four state variables. "
        "The number of cells grows with each of them, and nothing here shows that a partition keeps up with a network "
        "where there are many."
    )
