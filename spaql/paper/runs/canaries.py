"""Canaries: digests of short runs that no tidying may change.

Each canary is a run of a second or two at most.  Their digests are stored with the results, one set for each platform
key (see `platform_key`); a test computes them again, and where one differs the numbers of the package have changed.
"""

import functools
import hashlib
import importlib.util
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from spaql.agent import Agent
from spaql.bisection import ROWS, Bisection
from spaql.paper.runs import provenance
from spaql.paper.runs.algorithms import TEXTBOOK, compute, make_agent
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.repaired_settings import REPAIRED
from spaql.partition import ARMS, BALLS, CELLS, SPLITS, Partition
from spaql.policies.play import run_tree, world_of
from spaql.policies.policy import Policy
from spaql.policies.tree import Tree
from spaql.progress import progress
from spaql.rules import CHOICES, COLUMNS, CONTROLLED, DIFFERENCES, RULES, Rules
from spaql.systems import make_env

FAMILIES = {  # which version of the numbers each kind guards
    "agents": "spaql",
    "repaired": "repaired",
    "policies": "policies",
    "trpo": "trpo",
    "textbook": "textbook",
}

ITERATIONS, N, EPISODES = 25, 3, 20

SYSTEMS = {  # with a ξ that makes balls split early
    "Pendulum-v1": 4.0,
    "spaql/PendulumDiscrete-v1": 4.0,
    "spaql/PendulumScaled-v1": 0.4,
    "spaql/Pendulum-v0": 4.0,
    "CartPole-v0": 20.0,
}


CHANGES: dict[str, dict[str, Any]] = (  # what an agent may do otherwise than in the text, by name
    {name: {"rules": rules} for name, rules in RULES.items()}
    | {name: {"rules": Rules(**{name: CHOICES[name][1]})} for name in DIFFERENCES}
    | {f"{name}={choice}": {"rules": Rules(**{name: choice})} for name in CONTROLLED for choice in CHOICES[name][1:]}
    | {"reset=never": {"rules": Rules(reset="never")}}
    | {"initial=0": {"initial": 0.0}, "discount=0.9": {"discount": 0.9}}
)


def agents() -> dict[str, tuple[str, str, str]]:
    """Return the algorithm, system and change of each canary that trains an agent, by its name."""
    every = list(itertools.product(("Random", "AQL", "SPAQL", "SPAQL-TS"), SYSTEMS, RULES))
    changes = [change for change in CHANGES if change not in RULES]
    every += [("SPAQL-TS", system, change) for system in ("Pendulum-v1", "CartPole-v0") for change in changes]
    return {f"{algorithm}, {system}, {change}": (algorithm, system, change) for algorithm, system, change in every}


def train_canary(algorithm: str, system: str, change: str) -> Agent:
    """Return the trained agent of a canary, with one of `CHANGES`."""
    return make_agent(algorithm, system, SYSTEMS[system], seed=1, **CHANGES[change]).learn(ITERATIONS, N)


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return a hash of arrays of numbers."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def agent_digest(agent: Agent) -> str:
    """Return a hash of all that an agent has learnt and would do: history, both partitions, fresh episodes, actions."""
    columns = [agent.history[name] for name in COLUMNS]
    if isinstance(agent._best, Bisection):
        columns += [getattr(agent._copy(agent._best), name) for name in ROWS]
    for p in (agent._trainee, agent._best) if isinstance(agent._best, Partition) else ():
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

    def run(algorithm: str, system: str, change: str) -> str:
        return agent_digest(train_canary(algorithm, system, change))

    return {name: functools.partial(run, *canary) for name, canary in agents().items()}


def repaired_canaries() -> dict[str, Callable[[], str]]:
    """Return the canaries of SPAQL-R and of its variants, and of its trees: functions that compute their digests."""

    def run(name: str, system: str) -> str:
        return agent_digest(make_agent(name, system, 0.0, seed=1, memory=2000).learn(ITERATIONS, N))

    def run_policy(of: Callable[[Policy, str], str], system: str) -> str:
        return of(make_agent("SPAQL-R", system, 0.0, seed=1).learn(ITERATIONS, N).policy, system)

    cells = [("SPAQL-R", system) for system in (*SYSTEMS, "Acrobot-v1")]
    cells += [(name, "Pendulum-v1") for name in REPAIRED if name != "SPAQL-R"]
    found: dict[str, Callable[[], str]] = {f"{name}, {on}": functools.partial(run, name, on) for name, on in cells}
    kinds = {"tree": tree_digest, "table": table_digest, "simplified": simplified_digest}
    return found | {
        f"{kind}, Pendulum-v1": functools.partial(run_policy, of, "Pendulum-v1") for kind, of in kinds.items()
    }


def arrays_of(tree: Tree) -> tuple[np.ndarray, ...]:
    """Return the numbers of a tree."""
    return tree[:-1]


def tree_digest(policy: Policy, system: str) -> str:
    """Return a hash of a policy's exact trees."""
    return digest(array for central in (True, False) for array in arrays_of(policy.tree(deterministic=central)))


def table_digest(policy: Policy, system: str) -> str:
    """Return a hash of the numbers in a policy's tables, to twelve digits.

    Their bounds are for reading and come from NumPy's arctanh, whose last digit depends on the processor's instructions
    where all that the platform key is made of does not.
    """
    options = itertools.product((True, False), repeat=2)
    tables = [policy.table(*option).select_dtypes("number").to_numpy(float) for option in options]
    return digest(np.array([float(f"{x:.12g}") for x in table.flat]) for table in tables)


def episodes_digest(policy: Policy, system: str) -> str:
    """Return a hash of episodes under a policy's tree, with noise on what it observes."""
    tree, env, rng = policy.tree(deterministic=False), make_env(system), np.random.default_rng(4)
    starts = world_of(env, tree.variables.space).draw(rng, EPISODES)
    return digest(run_tree(tree, env, starts, rng, deterministic=False, noise=0.05, record=True))


def simplified_digest(policy: Policy, system: str) -> str:
    """Return a hash of a short search for smaller trees, and of what they earn."""
    found = policy.simplify(leaves=6, proposals=10, episodes=EPISODES, fresh=30, seed=0)
    returns = [*found.fresh, *found.full_fresh, found.target]
    numbers = np.array([*returns, *(number for size in found.curve for number in size[:4])], float)
    trees = (found.tree, *(size.tree for size in found.curve))
    return digest([numbers, *(array for tree in trees for array in arrays_of(tree))])


def policy_canaries() -> dict[str, Callable[[], str]]:
    """Return the canaries of policies: functions that compute their digests, by name."""
    kinds = {"tree": tree_digest, "table": table_digest, "episodes": episodes_digest, "simplified": simplified_digest}
    systems = ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0")

    def run(of: Callable[[Policy, str], str], algorithm: str, system: str) -> str:
        return of(train_canary(algorithm, system, "paper").policy, system)

    return {
        f"{kind}, {algorithm}, {system}": functools.partial(run, of, algorithm, system)
        for (kind, of), algorithm, system in itertools.product(kinds.items(), ("SPAQL", "SPAQL-TS"), systems)
    }


def record_digest(record: Record) -> str:
    """Return a hash of a record's numbers alone."""
    columns = [record.history[name] for name in COLUMNS]
    return digest([*columns, record.fresh, record.rewards, *(record.episode[name] for name in sorted(record.episode))])


def trpo_canaries() -> dict[str, Callable[[], str]]:
    """Return the canaries of TRPO, one iteration each: functions that compute their digests, by name."""
    jobs = [
        Job(algorithm, system, 0.0, 1, 1, seed=1, agent=0, fresh=EPISODES, record=True)
        for algorithm, system in itertools.product(provenance.TRPO, ("Pendulum-v1", "CartPole-v0"))
    ]

    def run(job: Job) -> str:
        return record_digest(compute(job))

    return {f"{job.algorithm}, {job.system}": functools.partial(run, job) for job in jobs}


def textbook_canaries() -> dict[str, Callable[[], str]]:
    """Return the canaries of the textbook's algorithms and of the limit: functions that compute their digests."""
    jobs = [
        Job(name, system, 0.0, 2, N, seed=1, agent=0, fresh=EPISODES)
        for name, system in itertools.product(TEXTBOOK, ("Pendulum-v1", "CartPole-v0"))
    ]
    jobs.append(Job("Limit", "MountainCar-v0", 0.0, 1, 1, 1, 0, fresh=EPISODES, parameters=(("nodes", (21, 21)),)))

    def run(job: Job) -> str:
        return record_digest(compute(job))

    return {f"{job.algorithm}, {job.system}": functools.partial(run, job) for job in jobs}


def compute_canaries(kind: str, progress_bar: bool = True) -> dict[str, str]:
    """Return the digests of all canaries of a kind on this machine, one of `FAMILIES`."""
    every = {"agents": agent_canaries, "repaired": repaired_canaries, "policies": policy_canaries}
    found = (every | {"trpo": trpo_canaries, "textbook": textbook_canaries})[kind]()
    digests = {}
    with progress(len(found), f"canaries of {kind}", unit="run", shown=progress_bar) as bar:
        for name, run in found.items():
            digests[name] = run()
            bar.update()
    return digests


def kinds_here() -> list[str]:
    """Return the kinds of canaries that can be computed here: those of TRPO need sb3-contrib."""
    return [kind for kind in FAMILIES if kind != "trpo" or importlib.util.find_spec("sb3_contrib") is not None]


def load_all(store: Path) -> dict[str, Any]:
    """Return the stored canaries of every kind and key, and the versions of the numbers that they are of."""
    path = Path(store) / "canaries.json"
    if not path.is_file():
        return {"numerics": {}}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        known = [found[kind] for kind in found["numerics"]]
        sound = all(isinstance(digests, dict) for kind in known for digests in [kind, *kind.values()])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = False
    if not sound:
        raise Damaged(
            f"{path} holds no canaries: take it from the repository again, or move it away, and "
            "spaql verify --record writes it anew"
        )
    return found


def known_canaries(store: Path, kind: str) -> dict[str, str] | None:
    """Return the stored digests of a kind for this machine's key and this version of the numbers, or None."""
    stored = load_all(store)
    if stored["numerics"].get(kind) != provenance.NUMERICS[FAMILIES[kind]]:
        return None
    return stored[kind].get(provenance.platform_key(FAMILIES[kind]))


def add_canaries(store: Path, kind: str, digests: dict[str, str]) -> None:
    """Store digests for this machine's key; those of another version of the numbers are forgotten."""
    stored = load_all(store)
    version = provenance.NUMERICS[FAMILIES[kind]]
    if stored["numerics"].get(kind) != version:
        stored["numerics"][kind], stored[kind] = version, {}
    stored[kind][provenance.platform_key(FAMILIES[kind])] = digests
    path = Path(store) / "canaries.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def changed_canaries(store: Path, kind: str, progress_bar: bool = False) -> list[str] | None:
    """Return the names of the canaries that differ from those stored for this machine, or None if none are stored."""
    known = known_canaries(store, kind)
    if known is None:
        return None
    found = compute_canaries(kind, progress_bar)
    return sorted(name for name in known | found if known.get(name) != found.get(name))
