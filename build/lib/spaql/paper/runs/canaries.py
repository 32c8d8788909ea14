"""Canaries: digests of short runs that no tidying may change.

Each canary is a run of a second or less.  Their digests are stored with the results, one set for each platform key (see
`platform_key`); a test computes them again, and where one differs the numbers of the package have changed.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable

import numpy as np

from spaql.agent import Agent
from spaql.paper.runs.job import ALGORITHMS
from spaql.partition import ARMS, BALLS, CELLS, SPLITS
from spaql.rules import HISTORY, RULES

ITERATIONS, N, EPISODES = 25, 3, 20

SYSTEMS = {  # with a ξ that makes balls split early
    "Pendulum-v1": 4.0,
    "spaql/PendulumDiscrete-v1": 4.0,
    "spaql/PendulumScaled-v1": 0.4,
    "spaql/Pendulum-v0": 4.0,
    "CartPole-v0": 20.0,
}


def agents() -> dict[str, tuple[str, str, str]]:
    """Return the algorithm, system and rules of each canary that trains an agent, by its name."""
    every = list(itertools.product(ALGORITHMS, SYSTEMS, ("paper", "released")))
    every += [
        ("SPAQL-TS", system, rule) for system in ("Pendulum-v1", "CartPole-v0") for rule in RULES["paper"]._fields
    ]
    return {f"{algorithm}, {system}, {rules}": (algorithm, system, rules) for algorithm, system, rules in every}


def train(algorithm: str, system: str, rules: str) -> Agent:
    """Return the trained agent of a canary; `rules` names both whole sets or the one rule that is the program's."""
    chosen = RULES.get(rules) or RULES["paper"]._replace(**{rules: getattr(RULES["released"], rules)})
    parameters = {} if algorithm == "Random" else {"xi": SYSTEMS[system]}
    return ALGORITHMS[algorithm](system, rules=chosen, seed=1, **parameters).learn(ITERATIONS, N)


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return a hash of arrays of numbers."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def agent_digest(agent: Agent) -> str:
    """Return a hash of all that an agent has learnt and would do: history, both partitions, fresh episodes, actions."""
    columns = [agent.history[name] for name in HISTORY.names]
    for p in (agent._trainee, agent._best):
        balls, cells = p.counts[BALLS], p.counts[CELLS]
        columns += [p.counts[[BALLS, CELLS, ARMS, SPLITS]].astype(np.int64), p.low[:balls], p.high[:balls]]
        columns += [p.balls[name][:balls] for name in ("q", "rank", "visits", "cell", "next")]
        columns += [p.cells[name][:cells] for name in ("children", "best", "own", "first", "parent", "depth")]
    columns += [agent.evaluate(EPISODES, seed=2, deterministic=central) for central in (False, True)]
    observation, _ = agent.env.reset(seed=3)
    columns += [np.asarray(agent.predict(observation, deterministic=central)[0], float) for central in (False, True)]
    return digest(columns)


def agent_canaries() -> dict[str, Callable[[], str]]:
    """Return the canaries that train an agent: functions that compute their digests, by name."""
    return {name: lambda run=run: agent_digest(train(*run)) for name, run in agents().items()}
