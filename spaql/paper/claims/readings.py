"""What was run on Pendulum: how well each reading of the experiment explains all of the paper's numbers together.

A reading says what reached the pendulum, who shared starts, and under which rules (`engine.study.Reading`).  It
predicts every number that the paper prints of Pendulum (`paper_numbers`): the means, the half-widths of their
intervals, what five torques gain, and when TRPO overtakes.  Twenty agents were behind each of the paper's numbers, and
twenty of ours for every root seed are behind the prediction, so that both have sampling errors:

- A number's *standard error* comes from resampling our agents, twenty at a time, as the paper's were drawn if the
  reading is right; the error of our own number is added.  The paper's intervals do not enter it, since they are numbers
  of their own and would count twice.
- Half-widths and batches are compared by their logarithms, in which their errors are even and nearly normal.
- If all agents share their starts, the luck of one sequence of starts is common to them, and no resampling of agents
  shows it.  But one agent with shared starts is like one agent with its own: only together they differ.  So the same
  reading with independent starts, where twenty agents had twenty sequences, gives the mean and the whole variance; what
  agents with the same starts vary less is the variance of *luck*, which all of the paper's twenty agents would have had
  in common.  Each root seed of ours with shared starts is one more sequence.
- What the paper says in words ("about 100", "after 200 batches") is as vague as the range that it is read as: the
  range is taken as a 95 % interval.
- Random's numbers come from its whole history: each of its 2,000 iterations is one more experiment.

A distance is the paper's number minus the predicted one, in these standard errors; few agents make it Student's t, and
what is shown is the normal score of the same probability.  Numbers of the same agents are correlated (SPAQL's rewards
and arms by 0.8), so the joint measure is chi-square with the correlations that the resampling gives, and as many
degrees of freedom as numbers.  The *log-likelihood*, the density of the paper's numbers under a reading, compares
readings: unlike chi-square it does not favour a reading for predicting little.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.claims.groups import AGENTS, Groups, Key, curves_of, jobs_of, load_groups, stored_groups, values_of
from spaql.paper.claims.load import Claim, load_claims
from spaql.paper.engine.algorithms import LEARNERS
from spaql.paper.engine.job import SEED, Job
from spaql.paper.engine.statistics import bootstrap_weights, crossing, percentile_interval
from spaql.paper.engine.study import KINDS, READINGS, XI_KINDS, Reading, parameters_of, under_reading

TEXT = "text"
EVERY = {TEXT: Reading()} | READINGS

SYSTEMS = {Reading().system(kind) for kind in (*KINDS, *XI_KINDS)}  # the text's systems that a reading is about
LONG, FIVE = (Reading().system(kind) for kind in KINDS)  # the text's pendulums in the long runs

Cell = tuple[str, str]  # system, algorithm
CELLS = {(Reading().system(kind), name) for kind, names in KINDS.items() for name in names}  # the paper has numbers of


# ---------------------------------------------------------------------------------------------------------------------
# The paper's numbers of Pendulum, and what twenty agents of ours would have printed in their place

ABOUT = 0.5  # "about" means up to this share more or less

IDS = (
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


class Number(NamedTuple):
    """A number that the paper prints of Pendulum; the claim it comes from says where."""

    claim: Claim
    kind: str  # "mean", "half" (of its interval), "gain" or "crossing"

    @property
    def algorithm(self) -> str:
        """Return whose number it is."""
        return (self.claim.other if self.kind == "crossing" else self.claim.group).split(", ")[2]

    @property
    def label(self) -> str:
        """Return the number in a few words."""
        what = {"mean": self.claim.column, "half": f"{self.claim.column}, ±", "gain": "gain of five torques"}
        return f"{self.algorithm}: {what.get(self.kind, 'TRPO catches up')}"

    @property
    def printed(self) -> float:
        """Return the number as the paper has it."""
        return self.claim.half if self.kind == "half" else self.claim.paper

    @property
    def in_logs(self) -> bool:
        """Return whether it is compared by its logarithm."""
        return self.kind in ("half", "crossing")

    @property
    def vague(self) -> float:
        """Return the standard deviation of what the paper's words may mean."""
        if self.kind == "crossing":
            return float(np.diff(np.log(self.claim.range))[0] / (2 * 1.96))
        return ABOUT * self.claim.paper / 1.96 if self.kind == "gain" else 0.0


@functools.cache
def paper_numbers() -> tuple[Number, ...]:
    """Return the paper's numbers of Pendulum, but for TRPO's own, which no reading is about.

    None follows from others: differences of two that are in, as AQL's from Random, are left out.
    """
    claims = {claim.id: claim for claim in load_claims()}
    return tuple(
        Number(claims[name], kind)
        for name in IDS
        for kind in (("mean", "half") if claims[name].kind == "number" else (claims[name].kind,))
    )


class Experiment(NamedTuple):
    """What agents of one root seed say of the paper's numbers; half-widths and batches are logarithms."""

    values: np.ndarray
    covariance: np.ndarray  # of the numbers that twenty agents give
    repeats: np.ndarray  # how many times twenty agents are behind each value


def experiment(groups: Mapping[Cell, pd.DataFrame], trpo: pd.DataFrame) -> Experiment:
    """Return what groups of agents say of the paper's numbers, and how that varies from twenty agents to twenty others.

    Learners are resampled.  Each iteration of Random is one more experiment, starts included.  For crossings there is
    the bootstrap's interval.
    """
    numbers = paper_numbers()
    values, covariance, repeats = np.empty(len(numbers)), np.zeros((len(numbers),) * 2), np.ones(len(numbers))
    cells = sorted(groups)
    weights = dict(zip(cells, bootstrap_weights(*(len(groups[cell]) for cell in cells)), strict=True))
    even = {cell: np.full((1, len(group)), 1 / len(group)) for cell, group in groups.items()}
    trained = [i for i, n in enumerate(numbers) if n.algorithm in LEARNERS and n.kind != "crossing"]
    values[trained] = [resampled(numbers[i], groups, even)[0] for i in trained]
    drawn = np.array([resampled(numbers[i], groups, weights) for i in trained])
    covariance[np.ix_(trained, trained)] = np.cov(drawn) * AGENTS / (AGENTS - 1)  # which resampling lacks
    random = [i for i, n in enumerate(numbers) if n.algorithm == "Random"]
    history, _ = curves_of(groups[LONG, "Random"])
    drawn = np.array([by_iteration(numbers[i], history) for i in random])
    values[random], covariance[np.ix_(random, random)], repeats[random] = (
        drawn.mean(axis=1),
        np.cov(drawn),
        drawn.shape[1],
    )
    for i in (i for i, n in enumerate(numbers) if n.kind == "crossing"):
        values[i], error = log_crossing(trpo, groups[LONG, numbers[i].algorithm])
        covariance[i, i] = error**2
    return Experiment(values, covariance, repeats)


def resampled(number: Number, groups: Mapping[Cell, pd.DataFrame], weights: Mapping[Cell, np.ndarray]) -> np.ndarray:
    """Return a learner's number for each row of its agents' weights."""

    def mean(system: str, power: int = 1) -> np.ndarray:
        cell = system, number.algorithm
        return weights[cell] @ values_of(groups[cell], number.claim.column) ** power

    if number.kind == "gain":
        return mean(FIVE) - mean(LONG)
    return mean(LONG) if number.kind == "mean" else log_half(mean(LONG, 2) - mean(LONG) ** 2)


def by_iteration(number: Number, curves: np.ndarray) -> np.ndarray:
    """Return a number of Random's for each iteration; `curves` has one row per agent."""
    return curves.mean(axis=0) if number.kind == "mean" else log_half(curves.var(axis=0))


def log_half(variance: np.ndarray) -> np.ndarray:
    """Return the logarithm of the paper's half-interval of twenty agents with this population variance."""
    return np.log(1.96 * np.sqrt(variance / AGENTS))


def log_crossing(trpo: pd.DataFrame, group: pd.DataFrame) -> tuple[float, float]:
    """Return the logarithm of the batch at which TRPO overtakes, or the last if it does not, and its standard error."""
    curves, batches = curves_of(group)
    found = percentile_interval(*crossing(*curves_of(trpo), curves, batches))
    batch, low, high = np.log(np.minimum(found, batches[-1]))
    return float(batch), float(high - low) / (2 * 1.96)


# ---------------------------------------------------------------------------------------------------------------------
# The agents of a reading


def jobs_under(reading: Reading, root: int = SEED, studies: Iterable[str] = ("xi", "long")) -> dict[Key, list[Job]]:
    """Return the agents that stand under a reading for the text's on Pendulum, by the keys of the text's groups."""
    return {
        key: [under_reading(job, reading, root) for job in jobs]
        for study in studies
        for key, jobs in jobs_of(study).items()
        if key[1] in SYSTEMS
    }


def reading_groups(name: str, text: Groups) -> Groups:
    """Return the groups of agents by which claims are judged as if a reading were what was run; `text` has the text's.

    The keys are the text's own.  On Pendulum the groups are the reading's, with the paper's root seed; those that are
    not stored are left out, and a claim that needs them is not judged.  CartPole's and TRPO's are the text's: a reading
    is about Pendulum's learners and its Random.

    Where agents share their starts, these are agents with starts of their own.  They earn the same on average over
    sequences of starts; the sequence that the paper's agents shared is unknown, and using one of ours would bias the
    verdicts (`luck_of`).
    """
    others = {key: group for key, group in text.items() if key[1] not in SYSTEMS or key[0] == "trpo"}
    return others | stored_groups(jobs_under(dataclasses.replace(EVERY[name], starts="independent")))


def roots_of(name: str) -> int:
    """Return how many root seeds a reading is run with: several where starts are shared."""
    return parameters_of("readings")["roots"] if EVERY[name].starts == "shared" else 1


def long_groups(name: str, root: int) -> dict[Cell, pd.DataFrame]:
    """Return the groups of a reading that the paper has numbers of; none if not all of them are stored."""
    jobs = jobs_under(EVERY[name], root, ["long"])
    groups = stored_groups({key: jobs[key] for key in jobs if key[1:3] in CELLS})
    return {key[1:3]: group for key, group in groups.items()} if len(groups) == len(CELLS) else {}


def alone_of(name: str) -> str:
    """Return the reading that differs from another in that starts are independent, and in nothing else of learners."""

    def learners(reading: Reading) -> Reading:
        return dataclasses.replace(reading, random="")

    alike = dataclasses.replace(learners(EVERY[name]), starts="independent")
    return next(other for other, reading in EVERY.items() if learners(reading) == alike)


# ---------------------------------------------------------------------------------------------------------------------
# How well it fits


class Prediction(NamedTuple):
    """What a reading predicts of the paper's numbers, half-widths and batches as logarithms."""

    values: np.ndarray
    covariance: np.ndarray  # of the paper's numbers minus these, but for what is vague in the paper's words
    degrees: np.ndarray  # of freedom of each variance
    roots: int  # root seeds behind it


def predict_alone(own: Experiment) -> Prediction:
    """Return what twenty agents with independent starts predict: the paper's error, and our own of the same size."""
    grown = np.sqrt(1 + 1 / own.repeats)
    return Prediction(own.values, own.covariance * np.outer(grown, grown), freedom(own), 1)


def predict_shared(alone: Experiment, roots: list[Experiment]) -> Prediction:
    """Return what agents with shared starts predict, one experiment per root seed, beside the same without sharing."""
    within = np.mean([one.covariance for one in roots], axis=0)
    together = np.mean([one.values for one in roots], axis=0)
    same, whole = np.diag(within), AGENTS * np.diag(alone.covariance)  # of twenty agents' number, and of one's
    halves = np.array([number.kind == "half" for number in paper_numbers()])
    among = halves | (roots[0].repeats > 1)  # what agents with the same starts say, and those alone cannot
    sequences = AGENTS + len(roots)
    values = np.where(among, together, (AGENTS * alone.values + len(roots) * together) / sequences)
    luck = np.where(among, 0.0, starts_luck(alone, roots))
    ours = np.where(among, same / (len(roots) * roots[0].repeats), whole / sequences)
    return Prediction(values, within + with_variances(alone.covariance, luck + ours), freedom(roots[0]), len(roots))


def starts_luck(alone: Experiment, roots: list[Experiment]) -> np.ndarray:
    """Return the variance of each number that comes of one sequence of starts, shared by all agents.

    Of learners it is what agents with the same starts vary less than others.  An iteration of Random is an experiment
    with starts of its own, so that its numbers vary by this luck, too, if starts are shared.
    """
    same, own = np.mean([np.diag(one.covariance) for one in roots], axis=0), np.diag(alone.covariance)
    return np.maximum(0.0, np.where(alone.repeats > 1, same - own, AGENTS * (own - same)))


def with_variances(covariance: np.ndarray, variances: np.ndarray) -> np.ndarray:
    """Return a covariance with the same correlations and other variances."""
    deviations = np.sqrt(np.diag(covariance))
    grown = np.sqrt(variances) / np.where(deviations > 0.0, deviations, 1.0)
    found = covariance * np.outer(grown, grown)
    np.fill_diagonal(found, variances)
    return found


def freedom(own: Experiment) -> np.ndarray:
    """Return the degrees of freedom of the variances of an experiment; Random's are known."""
    return np.where(own.repeats > 1, np.inf, AGENTS - 1)


class Fit(NamedTuple):
    """How well a reading explains the paper's numbers; one entry per number, half-widths and batches as logarithms."""

    predicted: np.ndarray
    error: np.ndarray  # the standard error of the paper's number minus the predicted one
    distance: np.ndarray  # of the paper's number, as a normal score
    chi2: float
    log_likelihood: float
    parts: dict[str, float]  # chi-square of each algorithm's numbers alone
    roots: int  # root seeds behind the predictions
    without_random: float  # chi-square of all numbers but Random's, which the text's reading alone has another of

    @property
    def degrees(self) -> int:
        """Return the degrees of freedom of chi-square."""
        return len(self.distance)

    @property
    def p(self) -> float:
        """Return the probability of a chi-square as large as this, or larger, if the reading is right."""
        return float(stats.chi2.sf(self.chi2, self.degrees))


def fit(prediction: Prediction) -> Fit:
    """Compare the paper's numbers with a prediction."""
    numbers = paper_numbers()
    printed = np.array([np.log(n.printed) if n.in_logs else n.printed for n in numbers])
    covariance = prediction.covariance + np.diag([number.vague**2 for number in numbers])
    error = np.sqrt(np.diag(covariance))
    t = (printed - prediction.values) / error
    distance = normal_scores(t, prediction.degrees)
    correlation = covariance / np.outer(error, error)
    chi2, log_determinant = quadratic(distance, correlation)
    owners = np.array([number.algorithm for number in numbers])
    parts = {
        name: quadratic(distance[owners == name], correlation[np.ix_(owners == name, owners == name)])[0]
        for name in dict.fromkeys(owners.tolist())
    }
    rest = owners != "Random"
    without_random, _ = quadratic(distance[rest], correlation[np.ix_(rest, rest)])
    marginal = np.sum(stats.t.logpdf(t, prediction.degrees) - np.log(error))
    joint = marginal + (distance @ distance - chi2 - log_determinant) / 2  # a Gaussian copula
    return Fit(prediction.values, error, distance, chi2, float(joint), parts, prediction.roots, without_random)


def normal_scores(t: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Return the normal deviates that are as improbable as these of Student's t."""
    return np.sign(t) * -stats.norm.ppf(stats.t.sf(np.abs(t), degrees))


def quadratic(distance: np.ndarray, correlation: np.ndarray) -> tuple[float, float]:
    """Return the square of a vector in the metric of a correlation matrix, and the logarithm of its determinant."""
    return float(distance @ np.linalg.solve(correlation, distance)), float(np.linalg.slogdet(correlation)[1])


@functools.cache
def experiments() -> dict[str, list[Experiment]]:
    """Return what each reading's stored agents say, one experiment per root seed; nothing if TRPO's are missing."""
    trpo = load_groups(["trpo"]).get(("trpo", LONG, "TRPO", 0.0))
    if trpo is None:
        return {}
    every = {name: [long_groups(name, SEED + place) for place in range(roots_of(name))] for name in EVERY}
    return {name: [experiment(groups, trpo) for groups in roots if groups] for name, roots in every.items()}


def luck_of(name: str) -> dict[str, float]:
    """Return the variance that a sequence of shared starts gives to the means the paper prints, by the ids of claims.

    It is empty for a reading without shared starts.
    """
    if EVERY[name].starts == "independent":
        return {}
    (alone,) = experiments()[alone_of(name)]
    variances = zip(paper_numbers(), starts_luck(alone, experiments()[name]), strict=True)
    return {number.claim.id: float(variance) for number, variance in variances if number.kind == "mean"}


@functools.cache
def reading_fits() -> dict[str, Fit]:
    """Return how well each reading whose runs are stored explains the paper's numbers, the likeliest first."""
    ours, found = experiments(), {}
    for name, roots in ours.items():
        alone = ours[alone_of(name)]
        if roots and alone:
            found[name] = fit(predict_alone(roots[0]) if alone is roots else predict_shared(alone[0], roots))
    return dict(sorted(found.items(), key=lambda item: -item[1].log_likelihood))


def best_reading() -> str | None:
    """Return the name of the likeliest reading; None if no reading's runs are stored."""
    return next(iter(reading_fits()), None)
