"""Whether an algorithm sees further than the next reward: runs on the small problems.

`python -m spaql.paper.audit.foresight` makes `results/foresight.json` again, in some minutes on one core.
"""

import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from spaql.agent import Agent
from spaql.paper.audit.kept import write_kept
from spaql.paper.audit.optimum import optimum
from spaql.paper.baselines.by_hand import ByHand
from spaql.paper.baselines.limit import GRIDS, find_limit
from spaql.paper.runs.algorithms import make_agent
from spaql.paper.runs.job import SEED
from spaql.rules import Rules
from spaql.systems import ambulance, oil, possible_returns

XIS = (0.01, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 1.0, 1.5, 2.0, 5.0)  # that the papers before this one searched
TWO_STEPS = ("spaql/TwoStep1-v0", "spaql/TwoStep4-v0")
BORN = (*oil.IDS, *ambulance.IDS)
MENDED = (*TWO_STEPS, "spaql/OilLaplace1-v0", "spaql/OilLaplace10-v0", "spaql/AmbulanceBeta25-v0")
K, N, FRESH = 2000, 20, 500
SEARCHED = 3  # agents for each ξ of the search, on seeds of their own
AGENTS = 100  # of each cell
POINTS = 50  # of a curve of regret

LAST = Rules(kept="last")


def discounted(system: str) -> float:
    """Return 1 - 1/H, the greatest discount for which no discounted return is cut at H."""
    return 0.5 if system in TWO_STEPS else 0.8


def methods(system: str) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the algorithms that are compared: a name, the algorithm, and what is changed in it."""
    found: dict[str, tuple[str, dict[str, Any]]] = {
        "Random": ("Random", {}),
        "AQL": ("AQL", {}),
        "SPAQL": ("SPAQL", {}),
        "bandit": ("SPAQL", {"initial": 0.0, "discount": 0.0}),
        "SPAQL, last kept": ("SPAQL", {"rules": LAST}),
        "bandit, last kept": ("SPAQL", {"rules": LAST, "initial": 0.0, "discount": 0.0}),
    }
    if system not in MENDED:
        return found
    return found | {
        "discount": ("SPAQL", {"rules": LAST, "discount": discounted(system)}),
        "zero at the end": ("SPAQL", {"rules": LAST._replace(termination="zero")}),
        "shrinking cap": ("SPAQL", {"rules": LAST._replace(cap="left")}),
        "Q from 0": ("SPAQL", {"rules": LAST, "initial": 0.0}),
    }


def trained(system: str, method: str, xi: float, agent: int, root: int = SEED) -> Agent:
    """Return an agent that has learnt; same arguments, same numbers."""
    algorithm, changes = methods(system)[method]
    key = zlib.crc32(f"{system} {method} {xi!r}".encode())
    seed = np.random.SeedSequence(root, spawn_key=(key, agent))
    return make_agent(algorithm, system, xi, seed=seed, **changes).learn(1 if algorithm == "Random" else K, N)


def afresh(agent: Agent) -> float:
    """Return the mean return of the policy kept on fresh episodes."""
    return float(agent.evaluate(FRESH, seed=agent.seed.spawn(1)[0]).mean())


def searched(system: str, method: str) -> float:
    """Return the ξ with which a few agents earn most, on seeds that no other run has; the largest of equals."""
    if method == "Random":
        return 0.0
    found = {xi: np.mean([afresh(trained(system, method, xi, i, SEED + 1)) for i in range(SEARCHED)]) for xi in XIS}
    return max(reversed(XIS), key=found.__getitem__)


def regrets(agents: list[np.ndarray], best: float) -> dict[str, list[float]]:
    """Return the regret of the trainee's greedy policies so far, at some iterations: mean and 95 % half-width."""
    places = np.unique(np.linspace(0, K - 1, POINTS).astype(int))
    lost = np.cumsum(best - np.array(agents), axis=1)[:, places]
    half = 1.96 * lost.std(axis=0) / np.sqrt(len(lost))
    return {
        "iteration": (places + 1).tolist(),
        "regret": lost.mean(axis=0).round(3).tolist(),
        "half": half.round(3).tolist(),
    }


def small_rows(system: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each method on one of the small problems."""
    best, myopic, error = (1.0, 0.25, 0.0) if system in TWO_STEPS else optimum(system)
    for method in methods(system):
        xi = searched(system, method)
        team = [trained(system, method, xi, i) for i in range(AGENTS)]
        row = {"system": system, "method": method, "xi": xi, "best": best, "myopic": myopic, "error": error}
        row["fresh"] = [round(afresh(agent), 4) for agent in team]
        row["reported"] = round(float(np.mean([agent.history.rewards[-1] for agent in team])), 4)
        row["arms"] = round(float(np.mean([agent.arms for agent in team])), 1)
        if system in TWO_STEPS and method != "Random":
            row |= regrets([agent.history.evaluations for agent in team], best)
        yield row


def costs_of_time() -> Iterator[dict[str, Any]]:
    """Yield what the best policy earns that may depend on time, and what one earns that may not.

    On CartPole a rule that does not earns all that can be earned.
    """
    grid = GRIDS["Pendulum-v1"]
    found = [find_limit("Pendulum-v1", **grid, seed=SEED, stationary=one).returns.mean() for one in (False, True)]
    yield {"system": "Pendulum-v1", "with": float(found[0]), "without": float(found[1])}
    regulated = ByHand("CartPole-v0", SEED).evaluate(1000, SEED).mean()
    yield {"system": "CartPole-v0", "with": possible_returns("CartPole-v0")[1], "without": float(regulated)}


if __name__ == "__main__":
    small = [row for system in (*TWO_STEPS, *BORN) for row in small_rows(system)]
    write_kept("foresight", small=small, time=list(costs_of_time()))
