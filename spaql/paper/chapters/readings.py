"""What was run on Pendulum: how well each reading of the experiment explains all of the paper's numbers together.

A reading says what reached the pendulum, who shared starts, and under which rules (`engine.study.Reading`).  It
predicts every number that the paper prints of Pendulum (`paper_numbers`).  Twenty agents were behind each of these, and
twenty of ours for every root seed are behind the prediction, so that both have sampling errors:

- A number's *standard error* comes from resampling our agents, twenty at a time, as the paper's were drawn if the
  reading is right; the error of our own number is added.
- Half-widths and batches are compared by their logarithms, in which their errors are even and nearly normal.
- If all agents share their starts, the luck of one sequence of starts is common to them, and no resampling of agents
  shows it.  But one agent with shared starts is like one agent with its own: only together they differ.  So the same
  reading with independent starts gives the mean and the whole variance; what agents with the same starts vary less is
  the variance of *luck*.  Each root seed of ours with shared starts is one more sequence.
- What the paper says in words ("about 100", "after 200 batches") is as vague as the range that it is read as: the
  range is taken as a 95 % interval.
- Random's numbers come from its whole history: each of its 2,000 iterations is one more experiment.

A distance is the paper's number minus the predicted one, in these standard errors; few agents make it Student's t, and
what is shown is the normal score of the same probability.  Numbers of the same agents are correlated, so the joint
measure is chi-square with the correlations that the resampling gives, and as many degrees of freedom as numbers.
"""

import dataclasses
import functools
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.claims import measures
from spaql.paper.claims.load import load_claims
from spaql.paper.claims.measures import AGENTS
from spaql.paper.engine.job import SEED
from spaql.paper.engine.statistics import bootstrap_weights, crossing, percentile_interval
from spaql.paper.engine.study import KINDS, READINGS, XI_KINDS, Reading, parameters_of, under_reading

TEXT = "text"
EVERY = {TEXT: Reading()} | READINGS

SYSTEMS = {Reading().system(kind) for kind in (*KINDS, *XI_KINDS)}  # the text's systems that a reading is about
LONG, FIVE = (Reading().system(kind) for kind in KINDS)  # the text's pendulums in the long runs
CELLS = sorted((Reading().system(kind), name) for kind, names in KINDS.items() for name in names)  # of the long runs

# The paper's numbers of Pendulum, and what twenty agents of ours would have printed in their place

ABOUT = 0.5  # "about" means up to this share more or less

IDS = (  # of the claims with these numbers, but for TRPO's own, and those that follow from others
    "pendulum-rewards-aql",
    "pendulum-arms-aql",
    "pendulum-rewards-spaql",
    "pendulum-arms-spaql",
    "pendulum-rewards-ts",
    "pendulum-arms-ts",
    "pendulum-rewards-random",
    "discrete-gain-spaql",
    "discrete-gain-ts",
    "trpo-pendulum-overtakes-spaql",
    "trpo-pendulum-overtakes-ts",
)


@functools.cache
def paper_numbers() -> pd.DataFrame:
    """Return the paper's numbers of Pendulum, one row each.

    Columns id (of a claim); `kind`, "mean", "half" (of an interval), "gain" or "crossing"; whose number it is,
    `algorithm`, and of which `column` of the agents; `label`; `paper`, as printed; `logs`, whether it is compared by
    its logarithm; and `vague`, the standard deviation of what the paper's words may mean.
    """
    claims, rows = {claim.id: claim for claim in load_claims()}, []
    for name in IDS:
        claim = claims[name]
        algorithm = (claim.other if claim.kind == "crossing" else claim.group).split(", ")[2]
        row = {"id": name, "algorithm": algorithm, "column": claim.column, "vague": 0.0, "paper": claim.paper}
        if claim.kind == "gain":
            row |= {"kind": "gain", "label": "gain of five torques", "vague": ABOUT * claim.paper / 1.96}
        elif claim.kind == "crossing":
            low, high = np.log(claim.range)
            row |= {"kind": "crossing", "label": "TRPO catches up", "vague": (high - low) / (2 * 1.96)}
        else:
            rows.append(row | {"kind": "mean", "label": claim.column})
            row |= {"kind": "half", "label": f"{claim.column}, ±", "paper": claim.half}
        rows.append(row)
    frame = pd.DataFrame(rows)
    return frame.assign(label=frame.algorithm + ": " + frame.label, logs=frame.kind.isin(["half", "crossing"]))


class Experiment(NamedTuple):
    """What agents of one root seed say of the paper's numbers; half-widths and batches are logarithms."""

    values: np.ndarray
    covariance: np.ndarray  # of the numbers that twenty agents give
    repeats: np.ndarray  # how many times twenty agents are behind each value


def experiment(groups, trpo) -> Experiment:
    """Return what groups of agents, by system and algorithm, say of the paper's numbers.

    The covariance is from twenty agents to twenty others: learners are resampled, and each iteration of Random is one
    more experiment, starts included.  For crossings there is the bootstrap's interval.
    """
    numbers = paper_numbers()
    values, covariance, repeats = np.empty(len(numbers)), np.zeros((len(numbers),) * 2), np.ones(len(numbers))
    crossings, random = numbers.kind == "crossing", numbers.algorithm == "Random"

    learned = np.flatnonzero(~crossings & ~random)
    weights = dict(zip(CELLS, bootstrap_weights(*(len(groups[cell]) for cell in CELLS)), strict=True))
    even = {cell: np.full((1, len(groups[cell])), 1 / len(groups[cell])) for cell in CELLS}
    values[learned] = [resampled(numbers.loc[i], groups, even)[0] for i in learned]
    drawn = np.array([resampled(numbers.loc[i], groups, weights) for i in learned])
    covariance[np.ix_(learned, learned)] = np.cov(drawn) * AGENTS / (AGENTS - 1)  # which resampling lacks

    curves, _ = measures.curves_of(groups[LONG, "Random"])
    drawn = np.array([curves.mean(axis=0), log_half(curves.var(axis=0))])  # its mean and its half-interval
    values[random], repeats[random] = drawn.mean(axis=1), drawn.shape[1]
    covariance[np.ix_(random, random)] = np.cov(drawn)

    for i in np.flatnonzero(crossings):
        curves, batches = measures.curves_of(groups[LONG, numbers.algorithm[i]])
        found = percentile_interval(*crossing(*measures.curves_of(trpo), curves, batches))
        values[i], low, high = np.log(np.minimum(found, batches[-1]))  # the last batch if it does not overtake
        covariance[i, i] = ((high - low) / (2 * 1.96)) ** 2
    return Experiment(values, covariance, repeats)


def resampled(wanted, groups, weights) -> np.ndarray:
    """Return a learner's number for each row of its agents' weights."""

    def mean(system, power=1):
        cell = system, wanted.algorithm
        return weights[cell] @ measures.values_of(groups[cell], wanted.column) ** power

    if wanted.kind == "gain":
        return mean(FIVE) - mean(LONG)
    return mean(LONG) if wanted.kind == "mean" else log_half(mean(LONG, 2) - mean(LONG) ** 2)


def log_half(variance):
    """Return the logarithm of the paper's half-interval of twenty agents with this population variance."""
    return np.log(1.96 * np.sqrt(variance / AGENTS))


# The agents of a reading


def jobs_under(reading, root=SEED, studies=("xi", "long")):
    """Return the agents that stand under a reading for the text's on Pendulum, by the keys of the text's groups."""
    return {
        key: [under_reading(job, reading, root) for job in jobs]
        for study in studies
        for key, jobs in measures.jobs_of(study).items()
        if key[1] in SYSTEMS
    }


def reading_groups(name: str, text: measures.Groups) -> measures.Groups:
    """Return the groups of agents by which claims are judged as if a reading were what was run; `text` has the text's.

    Where agents share their starts, these are agents with starts of their own.  They earn the same on average over
    sequences of starts; the one that the paper's agents shared is unknown, and one of ours would bias the verdicts.
    """
    others = {key: group for key, group in text.items() if key[1] not in SYSTEMS or key[0] == "trpo"}
    return others | measures.stored_groups(jobs_under(dataclasses.replace(EVERY[name], starts="independent")))


def long_groups(name, root):
    """Return the groups of a reading that the paper has numbers of, by system and algorithm."""
    jobs = {key: group for key, group in jobs_under(EVERY[name], root, ["long"]).items() if key[1:3] in CELLS}
    groups = measures.stored_groups(jobs)
    if len(groups) < len(jobs):
        raise measures.MissingError(f"results missing: not all agents of reading {name!r} are stored")
    return {key[1:3]: group for key, group in groups.items()}


@functools.cache
def experiments() -> dict[str, list[Experiment]]:
    """Return what each reading's stored agents say, one experiment per root seed: several where starts are shared."""
    trpo = measures.load_groups(["trpo"])["trpo", LONG, "TRPO", 0.0]
    roots = {name: parameters_of("readings")["roots"] if EVERY[name].starts == "shared" else 1 for name in EVERY}
    return {name: [experiment(long_groups(name, SEED + i), trpo) for i in range(roots[name])] for name in EVERY}


def alone(name) -> Experiment:
    """Return the experiment of the reading with independent starts whose learners differ in nothing else."""
    return experiments()[", ".join(change for change in name.split(", ") if change != "starts") or TEXT][0]


# How well it fits


# What a reading predicts are values, the covariance of the paper's numbers minus these (but for what is vague in the
# paper's words), and the degrees of freedom of each variance.


def predict_alone(own: Experiment):
    """Return what twenty agents with independent starts predict: the paper's error, and our own of the same size."""
    grown = np.sqrt(1 + 1 / own.repeats)
    return own.values, own.covariance * np.outer(grown, grown), freedom(own)


def predict_shared(own: Experiment, roots: list[Experiment]):
    """Return what agents with shared starts predict, one experiment per root seed, beside the same without sharing."""
    within = np.mean([one.covariance for one in roots], axis=0)
    together = np.mean([one.values for one in roots], axis=0)
    same, whole = np.diag(within), AGENTS * np.diag(own.covariance)  # of twenty agents' number, and of one's
    # What agents with the same starts say, and those with their own cannot.
    among = (paper_numbers().kind == "half").to_numpy() | (roots[0].repeats > 1)
    sequences = AGENTS + len(roots)
    values = np.where(among, together, (AGENTS * own.values + len(roots) * together) / sequences)
    luck = np.where(among, 0.0, starts_luck(own, roots))
    ours = np.where(among, same / (len(roots) * roots[0].repeats), whole / sequences)
    return values, within + with_variances(own.covariance, luck + ours), freedom(roots[0])


def starts_luck(own: Experiment, roots: list[Experiment]) -> np.ndarray:
    """Return the variance of each number that comes of one sequence of starts, shared by all agents.

    Of learners it is what agents with the same starts vary less than others.  An iteration of Random is an experiment
    with starts of its own, so that its numbers vary by this luck, too, if starts are shared.
    """
    same, whole = np.mean([np.diag(one.covariance) for one in roots], axis=0), np.diag(own.covariance)
    return np.maximum(0.0, np.where(own.repeats > 1, same - whole, AGENTS * (whole - same)))


def with_variances(covariance, variances):
    """Return a covariance with the same correlations and other variances."""
    deviations = np.sqrt(np.diag(covariance))
    grown = np.sqrt(variances) / np.where(deviations > 0.0, deviations, 1.0)
    found = covariance * np.outer(grown, grown)
    np.fill_diagonal(found, variances)
    return found


def freedom(own):
    """Return the degrees of freedom of the variances of an experiment; Random's are known."""
    return np.where(own.repeats > 1, np.inf, AGENTS - 1)


class Fit(NamedTuple):
    """How well a reading explains the paper's numbers; one entry per number, half-widths and batches as logarithms."""

    predicted: np.ndarray
    distance: np.ndarray  # of the paper's number, as a normal score
    chi2: float


def fit(values, covariance, degrees) -> Fit:
    """Compare the paper's numbers with a prediction."""
    numbers = paper_numbers()
    printed = np.where(numbers.logs, np.log(numbers.paper.abs()), numbers.paper)
    covariance = covariance + np.diag(numbers.vague**2)
    error = np.sqrt(np.diag(covariance))
    t = (printed - values) / error
    distance = np.sign(t) * -stats.norm.ppf(stats.t.sf(np.abs(t), degrees))  # as improbable as these t
    correlation = covariance / np.outer(error, error)
    return Fit(values, distance, distance @ np.linalg.solve(correlation, distance))


@functools.cache
def reading_fits() -> dict[str, Fit]:
    """Return how well each reading explains the paper's numbers, the best first."""
    found = {
        name: fit(*(predict_alone(*roots) if reading.starts == "independent" else predict_shared(alone(name), roots)))
        for (name, reading), roots in zip(EVERY.items(), experiments().values(), strict=True)
    }
    return dict(sorted(found.items(), key=lambda item: item[1].chi2))


def best_reading() -> str:
    """Return the name of the reading that fits best."""
    return next(iter(reading_fits()))


def luck_of(name: str) -> dict[str, float]:
    """Return the variance that a sequence of shared starts gives to the paper's means, by the ids of claims."""
    if EVERY[name].starts == "independent":
        return {}
    means = (paper_numbers().kind == "mean").to_numpy()
    luck = starts_luck(alone(name), experiments()[name])
    return dict(zip(paper_numbers().id[means], luck[means].tolist(), strict=True))


def distances() -> pd.DataFrame:
    """Return one row per reading and number: what the paper prints, what the reading predicts, and the distance.

    `predicted` is as printed, no logarithm.
    """
    numbers = paper_numbers()
    frames = {
        name: numbers[["id", "label", "kind", "paper"]].assign(
            predicted=np.where(numbers.logs, np.exp(found.predicted * numbers.logs), found.predicted),
            distance=found.distance,
        )
        for name, found in reading_fits().items()
    }
    return pd.concat(frames, names=["reading"]).reset_index("reading").reset_index(drop=True)
