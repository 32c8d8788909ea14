"""Canaries: digests of short runs that no tidying may change.

Each canary is a run of a second or two at most.  Their digests are stored with the results, one set for each platform
key (see `platform_key`); a test computes them again, and where one differs the numbers of the package have changed.
"""

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spaql.agent import Agent
from spaql.paper.runs import provenance
from spaql.paper.runs.algorithms import ALGORITHMS, REPLAYED, SARSA, TEXTBOOK, compute, make_agent
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.repaired_settings import REPAIRED
from spaql.partition import ARMS, BALLS, CELLS, SPLITS, Partition
from spaql.policies.play import run_tree, world_of
from spaql.policies.policy import Policy
from spaql.progress import progress
from spaql.rules import CHOICES, COLUMNS, CONTROLLED, DIFFERENCES, RULES, Rules
from spaql.spaqlr import CellTree
from spaql.systems import make_env

ITERATIONS, N, EPISODES = 25, 3, 20

SYSTEMS = {  # with a ξ that makes balls split early
    "Pendulum-v1": 4.0,
    "spaql/PendulumDiscrete-v1": 4.0,
    "spaql/PendulumScaled-v1": 0.4,
    "spaql/Pendulum-v0": 4.0,
    "CartPole-v0": 20.0,
}
PAPERS = ("Pendulum-v1", "CartPole-v0")


CHANGES: dict[str, dict[str, Any]] = (  # what an agent may do otherwise than in the text, by name
    {name: {"rules": rules} for name, rules in RULES.items()}
    | {name: {"rules": Rules(**{name: CHOICES[name][1]})} for name in DIFFERENCES}
    | {f"{name}={choice}": {"rules": Rules(**{name: choice})} for name in CONTROLLED for choice in CHOICES[name][1:]}
    | {"reset=never": {"rules": Rules(reset="never")}}
    | {"initial=0": {"initial": 0.0}, "discount=0.9": {"discount": 0.9}}
)


def train_canary(algorithm: str, system: str, change: str = "paper", **parameters: Any) -> Agent:
    """Return the trained agent of a canary, with one of `CHANGES`."""
    xi = SYSTEMS.get(system, 0.0)
    return make_agent(algorithm, system, xi, seed=1, **CHANGES[change], **parameters).learn(ITERATIONS, N)


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return a hash of arrays of numbers."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def agent_digest(agent: Agent) -> str:
    """Return a hash of all that an agent has learnt and would do: history, both partitions, fresh episodes, actions."""
    columns = [agent.history[name] for name in COLUMNS]
    if isinstance(agent._best, CellTree):
        columns += list(agent._best.arrays("best").values())
    for p in (agent._trainee, agent._best) if isinstance(agent._best, Partition) else ():
        balls, cells = p.counts[BALLS], p.counts[CELLS]
        columns += [p.counts[[BALLS, CELLS, ARMS, SPLITS]].astype(np.int64), p.low[:balls], p.high[:balls]]
        columns += [p.balls[name][:balls] for name in ("q", "rank", "visits", "cell", "next")]
        columns += [p.cells[name][:cells] for name in ("children", "best", "own", "first", "parent", "depth")]
    columns += [agent.evaluate(EPISODES, seed=2, deterministic=central) for central in (False, True)]
    observation, _ = agent.env.reset(seed=3)
    columns += [np.asarray(agent.predict(observation, deterministic=central)[0], float) for central in (False, True)]
    return digest(columns)


def tree_digest(policy: Policy, system: str) -> str:
    """Return a hash of a policy's exact trees."""
    return digest(array for central in (True, False) for array in policy.tree(deterministic=central)[:-1])


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
    return digest([numbers, *(array for tree in trees for array in tree[:-1])])


POLICIES = {"tree": tree_digest, "table": table_digest, "episodes": episodes_digest, "simplified": simplified_digest}


def record_digest(record: Record) -> str:
    """Return a hash of a record's numbers alone."""
    columns = [record.history[name] for name in COLUMNS]
    return digest([*columns, record.fresh, record.rewards, *(record.episode[name] for name in sorted(record.episode))])


# ---------------------------------------------------------------------------------------------------------------------
# The canaries: functions that compute their digests, by name

Canaries = dict[str, Callable[[], str]]


def agent_canary(*cell: str, **parameters: Any) -> str:
    """Return the digest of a trained agent."""
    return agent_digest(train_canary(*cell, **parameters))


def policy_canary(kind: str, *cell: str) -> str:
    """Return a digest of a trained agent's policy."""
    return POLICIES[kind](train_canary(*cell).policy, cell[1])


def record_canary(algorithm: str, system: str, **size: Any) -> str:
    """Return the digest of a record."""
    return record_digest(compute(Job(algorithm, system, xi=0.0, seed=1, agent=0, fresh=EPISODES, **size)))


def named(canary: Callable[..., str], cells: Iterable[tuple[str, ...]], **parameters: Any) -> Canaries:
    """Return a canary of each cell, called like it."""
    return {", ".join(cell): functools.partial(canary, *cell, **parameters) for cell in cells}


class Kind(NamedTuple):
    """A kind of canaries."""

    family: str  # which version of the numbers they guard
    canaries: Canaries


REPAIRED_CELLS = [("SPAQL-R", system) for system in (*PAPERS, "Acrobot-v1")]
REPAIRED_CELLS += [(name, "Pendulum-v1") for name in REPAIRED if name != "SPAQL-R"]
SHOWN = ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0")  # systems whose policies are looked at

COARSE = (("nodes", (21, 21)),)  # a grid

KINDS = {
    "agents": Kind(
        "spaql",
        named(agent_canary, itertools.product(("Random", "AQL", "SPAQL", "SPAQL-TS"), SYSTEMS, RULES))
        | named(agent_canary, itertools.product(["SPAQL-TS"], PAPERS, [name for name in CHANGES if name not in RULES])),
    ),
    "repaired": Kind(
        "repaired",
        named(agent_canary, REPAIRED_CELLS, memory=2000)
        | {
            f"{kind}, Pendulum-v1": functools.partial(policy_canary, kind, "SPAQL-R", "Pendulum-v1")
            for kind in ("tree", "table", "simplified")
        },
    ),
    "policies": Kind("policies", named(policy_canary, itertools.product(POLICIES, ("SPAQL", "SPAQL-TS"), SHOWN))),
    "trpo": Kind(
        "trpo",
        named(record_canary, itertools.product(provenance.TRPO, PAPERS), iterations=1, evaluations=1, record=True),
    ),
    "textbook": Kind(
        "textbook",
        named(
            record_canary,
            itertools.product([name for name in TEXTBOOK if ALGORITHMS[name].family == "textbook"], PAPERS),
            iterations=2,
            evaluations=N,
        )
        | named(record_canary, [("Limit", "MountainCar-v0")], iterations=1, evaluations=1, parameters=COARSE),
    ),
    "sarsa": Kind("sarsa", named(record_canary, itertools.product(SARSA, PAPERS), iterations=2, evaluations=N)),
    "replayed": Kind(
        "replayed", named(record_canary, itertools.product(REPLAYED, PAPERS), iterations=2, evaluations=N)
    ),
    "fitted": Kind("fitted", named(record_canary, [("Fitted Q", "CartPole-v0")], iterations=2, evaluations=N)),
}


# ---------------------------------------------------------------------------------------------------------------------
# Computing and storing


def compute_canaries(kind: str, progress_bar: bool = True) -> dict[str, str]:
    """Return the digests of all canaries of a kind on this machine, one of `KINDS`."""
    found, digests = KINDS[kind].canaries, {}
    with progress(len(found), f"canaries of {kind}", unit="run", shown=progress_bar) as bar:
        for name, run in found.items():
            digests[name] = run()
            bar.update()
    return digests


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
    if stored["numerics"].get(kind) != provenance.NUMERICS[KINDS[kind].family]:
        return None
    return stored[kind].get(provenance.platform_key(KINDS[kind].family))


def add_canaries(store: Path, kind: str, digests: dict[str, str]) -> None:
    """Store digests for this machine's key; those of another version of the numbers are forgotten."""
    stored = load_all(store)
    version = provenance.NUMERICS[KINDS[kind].family]
    if stored["numerics"].get(kind) != version:
        stored["numerics"][kind], stored[kind] = version, {}
    stored[kind][provenance.platform_key(KINDS[kind].family)] = digests
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
