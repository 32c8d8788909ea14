"""What was run on Pendulum: how well each reading of the experiment explains all of the paper's numbers together.

A reading says what reached the pendulum, who shared starts, and under which rules (`spaql.paper.studies.Reading`).  It
predicts every number that the paper prints of Pendulum (`NUMBERS`): the means, the half-widths of their intervals,
what five torques gain, and when TRPO overtakes.  Twenty agents were behind each of the paper's numbers, and twenty of
ours for every root seed are behind the prediction, so that both have sampling errors:

- A number's *standard error* comes from resampling our agents, twenty at a time, as the paper's were drawn if the
  reading is right.  Ours counts, too: with R root seeds the error of the difference is √(1 + 1/R) times as large.
  The paper's intervals do not enter it, since they are numbers of their own and would count twice.
- Half-widths and batches are compared by their logarithms, in which their errors are even and nearly normal.
- If all agents share their starts, the luck of one sequence of starts is common to them and no resampling of agents
  shows it.  Three root seeds do: how much more the numbers vary between them than resampling says is the *luck*, a
  factor for each learner and quantity, pooled over systems and readings.  It multiplies the variance.
- What the paper says in words ("about 100", "after 200 batches") is as vague as the range that it is read as: the
  range is taken as a 95 % interval.
- Random's numbers come from its whole history: each of its 2,000 iterations is one more experiment.

A distance is the paper's number minus the predicted one, in these standard errors; few agents make it Student's t, and
what is shown is the normal score of the same probability.  Numbers of the same agents hang together (SPAQL's rewards
and arms correlate by 0.8), so the joint measure is chi-square with the correlations that the resampling gives, and as
many degrees of freedom as numbers.  The *log-likelihood*, the density of the paper's numbers under a reading, compares
readings: unlike chi-square it does not favour a reading for predicting little.
"""

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from spaql.paper.audit.groups import AGENTS, Group, Key, MissingError, load_groups, make_group
from spaql.paper.audit.numbers import CELLS, LONG, Cell, Experiment, experiment, paper_numbers
from spaql.paper.runs import provenance
from spaql.paper.runs.job import Job
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import READINGS, READINGS_STUDY, SEED, Reading, paper_jobs, under_reading

TEXT = "text"
EVERY = {TEXT: Reading()} | READINGS

# The text's systems that a reading is about.
SYSTEMS = {Reading().system(kind) for kind in (*READINGS_STUDY.kinds, *READINGS_STUDY.xi_kinds)}

# ---------------------------------------------------------------------------------------------------------------------
# The agents of a reading


def reading_jobs_of(name: str, root: int = SEED) -> dict[Key, list[Job]]:
    """Return the agents that stand under a reading for the text's on Pendulum, by the keys of the text's groups."""
    found: dict[Key, list[Job]] = {}
    for study in ("xi", "long"):
        for job in paper_jobs(study):
            if job.system in SYSTEMS:
                key = study, job.system, job.algorithm, job.xi
                found.setdefault(key, []).append(job if name == TEXT else under_reading(job, EVERY[name], root))
    return found


def reading_groups(name: str, store: Path | None = None) -> dict[Key, Group]:
    """Return the groups of agents by which claims are judged as if a reading were what was run.

    The keys are those of `load_groups`, the text's own.  On Pendulum the groups are the reading's, with the paper's
    root seed; those that are not stored are left out, and a claim that needs them is not judged.  CartPole's and TRPO's
    are the text's: a reading is about Pendulum's learners and its Random.
    """
    others = {key: group for key, group in load_groups(store).items() if key[1] not in SYSTEMS or key[0] == "trpo"}
    return others | stored_groups(reading_jobs_of(name), store)


def stored_groups(wanted: Mapping[Key, list[Job]], store: Path | None = None) -> dict[Key, Group]:
    """Return those of these groups of which every agent is stored."""
    jobs = [job for jobs in wanted.values() for job in jobs]
    records, _ = load_stored(jobs, store or provenance.default_store(), repair=False)
    return {
        key: make_group(records[job] for job in group)
        for key, group in wanted.items()
        if all(job in records for job in group)
    }


def roots_of(name: str) -> int:
    """Return how many root seeds a reading is run with: several where starts are shared."""
    return READINGS_STUDY.roots if EVERY[name].starts == "shared" else 1


def long_groups(name: str, store: Path | None = None) -> list[dict[Cell, Group]]:
    """Return the groups that say something of the paper's numbers under a reading, one set for each root seed.

    Raises `MissingError` if too few are stored: with shared starts, those of one root seed say nothing of luck.
    """
    found = []
    for root in range(SEED, SEED + roots_of(name)):
        wanted = {
            key: jobs
            for key, jobs in reading_jobs_of(name, root).items()
            if key[0] == "long" and Cell(*key[1:3]) in CELLS
        }
        groups = {Cell(*key[1:3]): group for key, group in stored_groups(wanted, store).items()}
        if set(groups) == CELLS:
            found.append(groups)
    needed = min(2, roots_of(name))
    if len(found) < needed:
        raise MissingError(f"its runs are stored for {len(found)} of {roots_of(name)} root seeds")
    return found


# ---------------------------------------------------------------------------------------------------------------------
# How well it fits


class Fit(NamedTuple):
    """How well a reading explains the paper's numbers; one entry per number, half-widths and batches as logarithms."""

    predicted: np.ndarray
    error: np.ndarray  # the standard error of the paper's number minus the predicted one
    distance: np.ndarray  # of the paper's number, as a normal score
    chi2: float
    log_likelihood: float
    parts: dict[str, float]  # chi-square of each algorithm's numbers alone
    roots: int  # root seeds behind the predictions

    @property
    def degrees(self) -> int:
        """Return the degrees of freedom of chi-square."""
        return len(self.distance)

    @property
    def p(self) -> float:
        """Return the probability of a chi-square as large as this, or larger, if the reading is right."""
        return float(stats.chi2.sf(self.chi2, self.degrees))


def fit(roots: list[Experiment], luck: np.ndarray, degrees: np.ndarray) -> Fit:
    """Compare the paper's numbers with what experiments with several root seeds predict.

    Parameters
    ----------
    roots
        One experiment for each root seed.
    luck
        What the luck of shared starts multiplies the variance of each number by.
    degrees
        Of freedom of the variance of each number.
    """
    numbers = paper_numbers()
    printed = np.array([np.log(n.printed) if n.in_logs else n.printed for n in numbers])
    predicted = np.mean([one.values for one in roots], axis=0)
    grown = np.sqrt(luck * (1 + 1 / (len(roots) * roots[0].repeats)))
    covariance = np.mean([one.covariance for one in roots], axis=0) * np.outer(grown, grown)
    covariance += np.diag([number.vague**2 for number in numbers])
    error = np.sqrt(np.diag(covariance))
    t = (printed - predicted) / error
    distance = normal_scores(t, degrees)
    correlation = covariance / np.outer(error, error)
    chi2, log_determinant = quadratic(distance, correlation)
    owners = np.array([number.algorithm for number in numbers])
    parts = {
        name: quadratic(distance[owners == name], correlation[np.ix_(owners == name, owners == name)])[0]
        for name in dict.fromkeys(owners.tolist())
    }
    marginal = np.sum(stats.t.logpdf(t, degrees) - np.log(error))
    joint = marginal + (distance @ distance - chi2 - log_determinant) / 2  # a Gaussian copula
    return Fit(predicted, error, distance, chi2, float(joint), parts, len(roots))


def normal_scores(t: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Return the normal deviates that are as improbable as these of Student's t."""
    return np.sign(t) * -stats.norm.ppf(stats.t.sf(np.abs(t), degrees))


def quadratic(distance: np.ndarray, correlation: np.ndarray) -> tuple[float, float]:
    """Return the square of a vector in the metric of a correlation matrix, and the logarithm of its determinant."""
    return float(distance @ np.linalg.solve(correlation, distance)), float(np.linalg.slogdet(correlation)[1])


def luck_of_starts(shared: list[list[Experiment]]) -> tuple[np.ndarray, int]:
    """Return how much more each number varies between root seeds than resampling says, and the degrees of freedom.

    Parameters
    ----------
    shared
        For every reading with shared starts, one experiment for each root seed.

    Returns
    -------
    luck, degrees
        A factor of the variance of each number, at least 1, and with how many degrees of freedom it is known.
    """
    ratios = [
        np.var([one.values for one in roots], axis=0, ddof=1)
        / np.mean([np.diag(one.covariance) for one in roots], axis=0)
        for roots in shared
    ]
    return np.maximum(1.0, np.mean(ratios, axis=0)), sum(len(roots) - 1 for roots in shared)


@functools.cache
def reading_fits(store: Path | None = None) -> dict[str, Fit | str]:
    """Return how well each reading explains the paper's numbers, or why it is not judged: its runs are not stored."""
    trpo = load_groups(store, ["trpo"]).get(("trpo", LONG, "TRPO", 0.0))
    if trpo is None:
        return dict.fromkeys(EVERY, "TRPO's agents are not stored")
    experiments: dict[str, list[Experiment]] = {}
    found: dict[str, Fit | str] = {}
    for name in EVERY:
        try:
            experiments[name] = [experiment(groups, trpo) for groups in long_groups(name, store)]
        except MissingError as missing:
            found[name] = str(missing)
    shared = [roots for roots in experiments.values() if len(roots) > 1]
    luck, known = luck_of_starts(shared) if shared else (np.ones(len(paper_numbers())), 0)
    for name, roots in experiments.items():
        alone = len(roots) == 1
        degrees = np.where(roots[0].repeats > 1, np.inf, AGENTS - 1 if alone else known)
        found[name] = fit(roots, np.ones_like(luck) if alone else luck, degrees)
    return {name: found[name] for name in EVERY}


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
    A column for each algorithm has the chi-square of its numbers alone.
    """
    measures = ["roots", "chi2", "degrees", "p", "log_likelihood"]
    rows = [
        {"reading": name, "missing": "" if isinstance(found, Fit) else found}
        | {measure: getattr(found, measure, np.nan) for measure in measures}
        | getattr(found, "parts", {})
        for name, found in reading_fits(store).items()
    ]
    frame = pd.DataFrame(rows)
    frame["behind"] = frame.log_likelihood.max() - frame.log_likelihood
    return frame.sort_values("log_likelihood", ascending=False, na_position="last", ignore_index=True, kind="stable")
