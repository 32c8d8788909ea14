"""What was run on Pendulum: how well each reading of the experiment explains all of the paper's numbers together.

A reading says what reached the pendulum, who shared starts, and under which rules (`spaql.paper.studies.Reading`).  It
predicts every number that the paper prints of Pendulum (`NUMBERS`): the means, the half-widths of their intervals,
what five torques gain, and when TRPO overtakes.  Twenty agents were behind each of the paper's numbers, and twenty of
ours for every root seed are behind the prediction, so that both have sampling errors:

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
what is shown is the normal score of the same probability.  Numbers of the same agents hang together (SPAQL's rewards
and arms correlate by 0.8), so the joint measure is chi-square with the correlations that the resampling gives, and as
many degrees of freedom as numbers.  The *log-likelihood*, the density of the paper's numbers under a reading, compares
readings: unlike chi-square it does not favour a reading for predicting little.
"""

import dataclasses
import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.audit.groups import AGENTS, Group, Key, MissingError, keyed_jobs, load_groups, stored_groups
from spaql.paper.audit.numbers import CELLS, LONG, Cell, Experiment, experiment, paper_numbers
from spaql.paper.runs.job import Job
from spaql.paper.studies import KINDS, READINGS, SEED, XI_KINDS, Reading, parameters_of, under_reading

TEXT = "text"
EVERY = {TEXT: Reading()} | READINGS

# The text's systems that a reading is about.
SYSTEMS = {Reading().system(kind) for kind in (*KINDS, *XI_KINDS)}

# ---------------------------------------------------------------------------------------------------------------------
# The agents of a reading


def jobs_under(reading: Reading, root: int = SEED, studies: Iterable[str] = ("xi", "long")) -> dict[Key, list[Job]]:
    """Return the agents that stand under a reading for the text's on Pendulum, by the keys of the text's groups."""
    return {
        key: [under_reading(job, reading, root) for job in jobs]
        for key, jobs in keyed_jobs(studies).items()
        if key[1] in SYSTEMS
    }


def reading_groups(name: str, store: Path | None = None, text: Mapping[Key, Group] | None = None) -> dict[Key, Group]:
    """Return the groups of agents by which claims are judged as if a reading were what was run.

    The keys are those of `load_groups`, the text's own.  On Pendulum the groups are the reading's, with the paper's
    root seed; those that are not stored are left out, and a claim that needs them is not judged.  CartPole's and TRPO's
    are the text's: a reading is about Pendulum's learners and its Random.  `text` has the text's, if they are loaded.

    Where agents share their starts, these are agents with starts of their own.  They earn the same on average over
    sequences of starts; which sequence the paper's agents shared nobody knows, and one of ours would decide claims by
    its luck (`luck_of`).
    """
    text = load_groups(store) if text is None else text
    others = {key: group for key, group in text.items() if key[1] not in SYSTEMS or key[0] == "trpo"}
    return others | stored_groups(jobs_under(dataclasses.replace(EVERY[name], starts="independent")), store)


def roots_of(name: str) -> int:
    """Return how many root seeds a reading is run with: several where starts are shared."""
    return parameters_of("readings")["roots"] if EVERY[name].starts == "shared" else 1


def long_groups(name: str, root: int, store: Path | None = None) -> dict[Cell, Group]:
    """Return the groups of a reading that the paper has numbers of; none if not all of them are stored."""
    jobs_of = jobs_under(EVERY[name], root, ["long"])
    wanted = {key: jobs for key, jobs in jobs_of.items() if key[1:3] in CELLS}
    groups = {key[1:3]: group for key, group in stored_groups(wanted, store).items()}
    return groups if set(groups) == CELLS else {}


def alone_of(name: str) -> str:
    """Return the reading that differs from another in that starts are independent, and in nothing else of learners."""

    def learners(reading: Reading) -> Reading:
        return dataclasses.replace(reading, random="", recorded=False)

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
def experiments(store: Path | None = None) -> dict[str, list[Experiment]]:
    """Return what each reading's stored agents say, one experiment per root seed; nothing if TRPO's are missing."""
    trpo = load_groups(store, ["trpo"]).get(("trpo", LONG, "TRPO", 0.0))
    if trpo is None:
        return {}
    return {
        name: [
            experiment(groups, trpo)
            for root in range(SEED, SEED + roots_of(name))
            if (groups := long_groups(name, root, store))
        ]
        for name in EVERY
    }


def luck_of(name: str, store: Path | None = None) -> dict[str, float]:
    """Return the variance that a sequence of shared starts gives to the means the paper prints, by the ids of claims.

    It is empty for a reading without shared starts.
    """
    ours = experiments(store)
    roots, alone = ours.get(name, []), ours.get(alone_of(name), [])
    if not roots or not alone or EVERY[name].starts == "independent":
        return {}
    variances = zip(paper_numbers(), starts_luck(alone[0], roots), strict=True)
    return {number.claim.id: float(variance) for number, variance in variances if number.kind == "mean"}


@functools.cache
def reading_fits(store: Path | None = None) -> dict[str, Fit | str]:
    """Return how well each reading explains the paper's numbers, or why it is not judged: its runs are not stored."""
    ours = experiments(store)
    if not ours:
        return dict.fromkeys(EVERY, "TRPO's agents are not stored")
    found: dict[str, Fit | str] = {}
    for name, roots in ours.items():
        alone = ours[alone_of(name)]
        if not roots:
            found[name] = "its runs are not stored"
        elif not alone:
            found[name] = "those with independent starts are not stored"
        else:
            found[name] = fit(predict_shared(alone[0], roots) if alone is not roots else predict_alone(roots[0]))
    return found


def best_reading(store: Path | None = None) -> str:
    """Return the name of the reading with the greatest likelihood, of those whose runs are stored."""
    judged = {name: found for name, found in reading_fits(store).items() if isinstance(found, Fit)}
    if not judged:
        raise MissingError("no reading's runs are stored")
    return max(judged, key=lambda name: judged[name].log_likelihood)


def distances(store: Path | None = None) -> pd.DataFrame:
    """Return one row per reading and number: what the paper prints, what the reading predicts, and the distance.

    Columns reading, id, label, kind, place, `paper`, `predicted` (as printed, no logarithm), `error` (a share of the
    number where it is compared by its logarithm) and `distance`, in standard errors.
    """
    return pd.DataFrame(
        [
            {"reading": name, "id": number.claim.id, "label": number.label, "kind": number.kind}
            | {"place": number.claim.place, "paper": number.printed}
            | {"predicted": float(np.exp(found.predicted[i]) if number.in_logs else found.predicted[i])}
            | {"error": found.error[i], "distance": found.distance[i]}
            for name, found in reading_fits(store).items()
            if isinstance(found, Fit)
            for i, number in enumerate(paper_numbers())
        ]
    )


def joint_fits(store: Path | None = None) -> pd.DataFrame:
    """Return one row per reading, best first: root seeds, chi-square, degrees of freedom, p, and the log-likelihood.

    `behind` is by how much the log-likelihood is less than the best one's; `missing` says why a reading is not judged.
    A column for each algorithm has the chi-square of its numbers alone, `without_random` that of all but Random's.
    """
    measures = ["roots", "chi2", "degrees", "p", "log_likelihood", "without_random"]
    rows = [
        {"reading": name, "missing": "" if isinstance(found, Fit) else found}
        | {measure: getattr(found, measure, np.nan) for measure in measures}
        | getattr(found, "parts", {})
        for name, found in reading_fits(store).items()
    ]
    frame = pd.DataFrame(rows)
    frame["behind"] = frame.log_likelihood.max() - frame.log_likelihood
    return frame.sort_values("log_likelihood", ascending=False, na_position="last", ignore_index=True, kind="stable")
