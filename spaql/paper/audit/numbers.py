"""The paper's numbers of Pendulum, and what twenty agents of ours would have printed in their place."""

import functools
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from spaql.paper.claims.load import Claim, load_claims
from spaql.paper.audit.groups import AGENTS, Group
from spaql.paper.audit.measures import crossing
from spaql.paper.statistics import bootstrap_weights
from spaql.paper.studies import KINDS, LEARNERS, Reading

LONG, FIVE = (Reading().system(kind) for kind in KINDS)  # the text's pendulums in the long runs

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

Cell = tuple[str, str]  # system, algorithm

# Those that the paper has numbers of.
CELLS = {(Reading().system(kind), name) for kind, names in KINDS.items() for name in names}


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


def experiment(groups: Mapping[Cell, Group], trpo: Group) -> Experiment:
    """Return what groups of agents say of the paper's numbers, and how that varies from twenty agents to twenty others.

    Learners are resampled.  Each iteration of Random is one more experiment, starts included.  For crossings there is
    the bootstrap's interval.
    """
    numbers = paper_numbers()
    values, covariance, repeats = np.empty(len(numbers)), np.zeros((len(numbers),) * 2), np.ones(len(numbers))
    cells = sorted(groups)
    weights = dict(zip(cells, bootstrap_weights(*(groups[cell].rewards.size for cell in cells)), strict=True))
    even = {cell: np.full((1, group.rewards.size), 1 / group.rewards.size) for cell, group in groups.items()}
    trained = [i for i, n in enumerate(numbers) if n.algorithm in LEARNERS and n.kind != "crossing"]
    values[trained] = [resampled(numbers[i], groups, even)[0] for i in trained]
    drawn = np.array([resampled(numbers[i], groups, weights) for i in trained])
    covariance[np.ix_(trained, trained)] = np.cov(drawn) * AGENTS / (AGENTS - 1)  # which resampling lacks
    random = [i for i, n in enumerate(numbers) if n.algorithm == "Random"]
    drawn = np.array([by_iteration(numbers[i], groups[LONG, "Random"].curves) for i in random])
    values[random], covariance[np.ix_(random, random)], repeats[random] = (
        drawn.mean(axis=1),
        np.cov(drawn),
        drawn.shape[1],
    )
    for i in (i for i, n in enumerate(numbers) if n.kind == "crossing"):
        values[i], error = log_crossing(trpo, groups[LONG, numbers[i].algorithm])
        covariance[i, i] = error**2
    return Experiment(values, covariance, repeats)


def resampled(
    number: Number, groups: Mapping[Cell, Group], weights: Mapping[tuple[str, str], np.ndarray]
) -> np.ndarray:
    """Return a learner's number for each row of its agents' weights."""

    def mean(system: str, power: int = 1) -> np.ndarray:
        cell = system, number.algorithm
        return weights[cell] @ groups[cell].column(number.claim.column) ** power

    if number.kind == "gain":
        return mean(FIVE) - mean(LONG)
    return mean(LONG) if number.kind == "mean" else log_half(mean(LONG, 2) - mean(LONG) ** 2)


def by_iteration(number: Number, curves: np.ndarray) -> np.ndarray:
    """Return a number of Random's for each iteration; `curves` has one row per agent."""
    return curves.mean(axis=0) if number.kind == "mean" else log_half(curves.var(axis=0))


def log_half(variance: np.ndarray) -> np.ndarray:
    """Return the logarithm of the paper's half-interval of twenty agents with this population variance."""
    return np.log(1.96 * np.sqrt(variance / AGENTS))


def log_crossing(trpo: Group, group: Group) -> tuple[float, float]:
    """Return the logarithm of the batch at which TRPO overtakes, or the last if it does not, and its standard error."""
    batch, low, high = np.log(np.minimum(crossing(trpo, group), group.batches[-1]))
    return float(batch), float(high - low) / (2 * 1.96)
