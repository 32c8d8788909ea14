"""What the audit found, in a few sentences: numbers and verdicts come from the stored results, whatever they are."""

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from spaql.paper.audit.bias import best_against_fresh
from spaql.paper.audit.claims import DIFFERS, HOLDS, UNDECIDED
from spaql.paper.audit.comparison import samples_needed
from spaql.paper.audit.controls import stored_effects
from spaql.paper.audit.judge import EQUALITIES, MORE, about, verdict_verb
from spaql.paper.audit.readings import EVERY, LATE, TEXT, joint_fits, predicted_mean
from spaql.paper.runs.job import Record
from spaql.paper.studies import BOTH, FURTHER, Reading
from spaql.paper.tables.table import between, listed, number, possible
from spaql.policies.interval import Interval
from spaql.systems import solved_at

# What is claimed of SPAQL and SPAQL-TS on Pendulum and CartPole alike, by the ids of the claims.
EFFICIENT, FIRST, EARLY_LEAD, ABOVE_AQL = (
    tuple(claim.format(system, name) for system in ("pendulum", "cartpole") for name in ("spaql", "ts"))
    for claim in ("efficient-{}-{}", "efficient-first-{}-{}", "trpo-{}-early-{}", "{}-{}-aql")
)

PRINTED = ("number", "count")  # kinds of claims that compare us with a number of the paper


class Finding(NamedTuple):
    """A sentence or two, and the claims whose verdicts it rests on."""

    about: str
    text: str
    claims: tuple[str, ...]


def findings(frame: pd.DataFrame, records: Iterable[Record]) -> list[Finding]:
    """Return the findings that matter.

    Parameters
    ----------
    frame
        From `spaql.paper.audit.judge.verdicts`.
    records
        The paper's long runs and TRPO's.
    """
    claims, records = frame.set_index("id"), list(records)
    bias = best_against_fresh(records).set_index(["system", "algorithm"])
    samples = samples_needed(records).set_index(["system", "algorithm", "threshold", "counted"]).samples
    return [
        pendulum_finding(claims),
        samples_finding(claims, samples),
        lead_finding(claims),
        selection_finding(bias),
        solved_finding(claims),
        order_finding(claims),
        learned_finding(),
        ties_finding(claims),
        equality_finding(frame),
    ]


def pendulum_finding(claims: pd.DataFrame) -> Finding:
    """Say what explains the paper's Pendulum."""
    fits = joint_fits().set_index("reading")
    fits = fits[fits.missing == ""]
    best, text = fits.index[0], fits.loc[TEXT]
    fit = fits.loc[best]
    ids = ("pendulum-rewards-spaql", "pendulum-rewards-ts", "pendulum-rewards-aql")
    ours = claims.loc[ids[0]]
    words = (
        f"The experiment that the text describes does not give the paper's Pendulum: SPAQL earns "
        f"{number(ours.ours, 0)}, not {number(ours.paper, 0)}, and over {text.degrees:.0f} numbers chi-square is "
        f"{text.chi2:.0f}."
    )
    if best != TEXT:
        words += (
            f" Of the {len(fits)} readings that we ran, the one with {describe_reading(EVERY[best])} fits best: it "
            f"predicts {number(predicted_mean(best, ids[0]), 0)} for SPAQL, and chi-square is {fit.chi2:.0f}"
            + (", no more than chance gives" if fit.p >= 0.05 else ", which is still too much for chance")
            + f" (as the best of {len(fits)}{', and one that was added when others were known' if best in LATE else ''}"
            "). That a reading fits does not show what was typed in 2020."
        )
    return Finding("What was run on Pendulum", words, ids)


def describe_reading(reading: Reading) -> str:
    """Return in words how a reading differs from the text."""
    words = {
        "torque": "half the torque",
        "starts": "starts shared by the agents of a group",
        "rules": "the released program's rules",
        "dynamics": "the old dynamics",
        "random": "a Random that pushes one way",
    }
    told = [text for name, text in words.items() if getattr(reading, name) != getattr(Reading(), name)]
    return listed(told) if told else ""


def samples_finding(claims: pd.DataFrame, samples: pd.Series) -> Finding:
    """Say who needs fewer samples, everything counted."""
    solved = solved_at("CartPole-v0")
    spaql, trpo = (samples["CartPole-v0", name, solved, "all"] for name in ("SPAQL-TS", "TRPO"))
    higher, lower = (samples["Pendulum-v1", name, -700.0, "all"] for name in ("SPAQL", "TRPO"))
    return Finding(
        "Sample efficiency",
        "The introduction says that SPAQL and SPAQL-TS are more sample-efficient than TRPO. Counted with the rollouts "
        "that choose the agent, and by the mean reward over the first 400,000 samples, they are not on either system "
        f"(all four claims: {same(claims, EFFICIENT)}). Over the first 40,000 alone, of which the paper's conclusion "
        f"speaks, the claim {verdict_verb(same(claims, FIRST[2:]))} on CartPole and "
        f"{verdict_verb(same(claims, FIRST[:2]))} on Pendulum. Half of the SPAQL-TS agents solve CartPole within "
        f"{about(spaql)} samples, half of TRPO's within {about(trpo)}; −700 on Pendulum takes SPAQL {about(higher)} "
        f"and TRPO {about(lower)}.",
        (*EFFICIENT, *FIRST),
    )


def lead_finding(claims: pd.DataFrame) -> Finding:
    """Say who leads by the paper's own count."""
    overtakes = claims.loc["trpo-pendulum-overtakes-spaql"]
    return Finding(
        "The early lead",
        "Counted as the paper counts, training samples alone, both lead TRPO over the first 200 batches on both "
        f"systems ({same(claims, EARLY_LEAD)}); on Pendulum TRPO overtakes SPAQL at batch {overtakes.ours:.0f} instead "
        f"of about 200 ({overtakes.verdict}), which hangs on TRPO's settings. Against a TRPO with published "
        "settings SPAQL has no lead on CartPole.",
        (*EARLY_LEAD, "trpo-pendulum-overtakes-spaql"),
    )


def selection_finding(bias: pd.DataFrame) -> Finding:
    """Say how much of the reported number is selection."""
    pendulum, cartpole = bias.loc[("Pendulum-v1", "SPAQL")], bias.loc[("CartPole-v0", "SPAQL-TS")]
    return Finding(
        "Selection",
        "The number reported for SPAQL is the best of up to 2,000 noisy means. The same policies on 1,000 fresh "
        f"episodes earn {number(pendulum.fresh, 0)} instead of {number(pendulum.reported, 0)} on Pendulum, "
        f"{pendulum.bias:.0f} [{pendulum.bias_low:.0f}, {pendulum.bias_high:.0f}] less; and "
        f"{cartpole.solved_fresh:.0f} instead of {cartpole.solved:.0f} SPAQL-TS agents solve CartPole.",
        (),
    )


def solved_finding(claims: pd.DataFrame) -> Finding:
    """Say whether CartPole is solved."""
    mean, perfect = claims.loc["cartpole-ts-solves"], claims.loc["cartpole-solved-ts"]
    further, longer = claims.loc["cartpole-longer-500"], claims.loc["cartpole-longer-2000"]
    within = between(possible(Interval(mean.ours, mean.low, mean.high), "CartPole-v0"))
    shares = Interval(*(100 * further[name] for name in ("ours", "low", "high")))
    more = "" if mean.more_fresh_verdict == mean.fresh_verdict else f", and {mean.more_fresh_verdict} {MORE}"
    corrected = " after the correction" if further.verdict == UNDECIDED and shares.high < 50.0 else ""
    return Finding(
        "CartPole",
        f"SPAQL-TS solves CartPole, as the paper says: {within} on average "
        f"({mean.verdict}; on fresh episodes {mean.fresh:.1f}, {mean.fresh_verdict}{more}), {perfect.ours:.0f} of 20 "
        f"agents against the paper's {perfect.paper:.0f}. The paper expects that the pole would stay up for longer: of "
        f"the episodes that last 200 steps {between(shares, 0)} % would last 500 (that most do "
        f"{verdict_verb(further.verdict)}{corrected}), and {100 * longer.ours:.0f} % 2,000 ({longer.verdict}).",
        ("cartpole-ts-solves", "cartpole-solved-ts", "cartpole-longer-500", "cartpole-longer-2000"),
    )


def order_finding(claims: pd.DataFrame) -> Finding:
    """Say what stands of the comparison with AQL."""
    arms, gain = claims.loc["pendulum-arms-ratio-spaql"], claims.loc["cartpole-aql-progress"]
    interval = between(Interval(gain.ours, gain.low, gain.high), 2)
    fresh = stored_effects().xs(20, level="N")
    last = {system: number(fresh.changed[system, "SPAQL", "last kept"], 0) for system in BOTH}
    many = {system: number(fresh.text[system, "AQL", "reward deleted"], 0) for system in BOTH}
    return Finding(
        "One partition instead of many",
        "What the paper is about stands: with one partition for all time steps, and the best policy kept, SPAQL and "
        f"SPAQL-TS earn more than AQL and Random on both systems ({same(claims, ABOVE_AQL)}), and AQL has "
        f"{arms.ours:.0f} times the arms of SPAQL on Pendulum ({arms.verdict}). AQL does not learn CartPole at all: "
        f"from the first to the last quarter of training it gains {interval} steps. How much of the gain is the "
        "partition's is another question, for AQL keeps no best policy. If SPAQL keeps its last one instead, it earns "
        f"{last['Pendulum-v1']} on fresh episodes of Pendulum, and AQL {many['Pendulum-v1']}; on CartPole "
        f"{last['CartPole-v0']}, and AQL {many['CartPole-v0']}. So on CartPole most of the gain is the choice of a "
        "policy; on Pendulum it is not, but AQL has another ξ and another way of exploring, too.",
        (*ABOVE_AQL, "pendulum-arms-ratio-spaql", "cartpole-aql-progress"),
    )


def learned_finding() -> Finding:
    """Say what SPAQL learns on CartPole."""
    effects = stored_effects()

    def earned(control: str, what: str = "changed", algorithm: str = "SPAQL") -> str:
        row = effects.loc[("CartPole-v0", algorithm, 20, control)]
        return f"{row[what]:.0f}"

    return Finding(
        "What is learned",
        "On CartPole SPAQL's estimates learn nothing from the rewards: they are a function of how often each ball was "
        f"visited. With every reward deleted from its updates it earns {earned('reward deleted')} on fresh episodes, "
        f"and {earned('reward deleted', 'text')} with them. What earns them is that the best of the 2,000 policies of "
        f"a run is kept and returned to, without which it earns {earned('last kept')}. AQL, which keeps none, earns "
        f"{earned('reward deleted', algorithm='AQL')} without the rewards and "
        f"{earned('reward deleted', 'text', 'AQL')} with them. "
        "(All of this with 20 rollouts after each iteration; the paper has 100.)",
        (),
    )


def ties_finding(claims: pd.DataFrame) -> Finding:
    """Say what decides the effect of ξ = 0."""
    lost = claims.loc["xi0-cartpole-spaql"]
    return Finding(
        "ξ = 0",
        f"The paper finds that ξ = 0 ruins SPAQL on CartPole. We find that only if the last of equal balls wins, as in "
        f"the released program; the text does not say which does. If it is drawn, ξ = 0 costs {100 * lost.ours:.0f} % "
        f"of the gain over Random ({lost.verdict}).",
        ("xi0-cartpole-spaql",),
    )


def equality_finding(frame: pd.DataFrame) -> Finding:
    """Say how much twenty agents can show, and how much more can."""
    equal = frame[frame.kind.isin(EQUALITIES)]
    count, opened = equal.verdict.value_counts(), equal[equal.verdict == UNDECIDED]
    again = opened[opened.more_ours != opened.ours]
    left = again[again.more_verdict == UNDECIDED]
    small = equal[(equal.verdict == DIFFERS) & (equal.apart.abs() < equal.margin)]
    return Finding(
        "Twenty agents",
        f"{len(equal)} claims say that two things are equal. {count.get(HOLDS, 0)} of them are shown within the stated "
        f"margin. {count.get(DIFFERS, 0)} differ; {len(small)} of these differ by less than the margin, but not so "
        f"clearly that twenty agents show it. {count.get(UNDECIDED, 0)} are undecided, since finding no difference "
        f"shows nothing. For {len(again)} of these we have {FURTHER.agents} agents, which decide "
        f"{len(again) - len(left)}. Of the other {len(left)}, {left.kind.isin(PRINTED).sum()} are about a number that "
        "the paper prints, and its own twenty agents leave it open.",
        (),
    )


def same(claims: pd.DataFrame, ids: Iterable[str]) -> str:
    """Return the verdict that claims share, or all of theirs."""
    return ", ".join(dict.fromkeys(claims.verdict[list(ids)]))


def as_list(found: Iterable[Finding]) -> str:
    """Return findings as a list in Markdown."""
    return "\n".join(f"{place}. **{one.about}.** {one.text}" for place, one in enumerate(found, start=1))
