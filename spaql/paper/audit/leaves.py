"""Leaves against return: SPAQL-R's exact trees while it learns, its simplified trees, and imitations of networks.

`python -m spaql.paper.audit.leaves` measures, and keeps what it found in results/leaves.json.  Policies are imitated
with DAgger: a tree is grown again and again on all states that the policy and the trees before it came to, as the
policy would act there, and the best of these trees is kept.  All returns are of the same episodes, which chose nothing.
"""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from spaql import SPAQLR, archive
from spaql.paper.audit.kept import load_kept, write_kept
from spaql.paper.audit.robustness import run_network
from spaql.paper.baselines.seconds import learner_of
from spaql.paper.runs.job import Job
from spaql.paper.runs.network import FORMAT as NETWORK
from spaql.paper.runs.network import VERSION as NETWORK_VERSION
from spaql.paper.runs.network import Network, load_network
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.stored_trees import FORMAT, VERSION, load_tree
from spaql.paper.studies import BOTH, study
from spaql.policies.play import first_states, run_tree
from spaql.policies.simplify import ROWS, grow, without
from spaql.policies.tree import LEAF, Tree
from spaql.systems import make_env, space_of

SAMPLES = (1000, 2000, 5000, 10_000, 20_000, 40_000, 100_000)
SIZES = (2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
AGENTS, TREES = 5, 3  # that learn, and of each size that imitate
ROUNDS, EPISODES = 10, 100  # of DAgger, and in each of them
FRESH, SEED = 10_000, 7070  # episodes that are reported, and what seeds them


def while_learning(system: str) -> Iterator[dict[str, Any]]:
    """Yield the sizes and returns of SPAQL-R's exact trees, by agent and samples."""
    for job in [job for job in study("repaired") if job.system == system][:AGENTS]:
        for samples, tree in exact_trees(job, SAMPLES):
            yield row("learning", job, tree) | {"agent": job.agent, "samples": samples}


def exact_trees(job: Job, counts: Iterable[int]) -> Iterator[tuple[int, Tree]]:
    """Yield SPAQL-R's exact tree after each of some numbers of samples."""
    agent, taken = learner_of(job), 0
    for samples in counts:
        agent.learn(samples=samples - taken)
        taken = samples
        yield samples, agent.policy.tree()


def simplified(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the stored trees that the search found in the place of SPAQL-R's exact one, and imitations of that one."""
    header, _ = archive.read(path, FORMAT, VERSION)
    job = Job.parse(header["job"])
    found = load_tree(path, job, retrain(job).policy, header["options"])
    if found is None:
        raise ValueError(f"{path} has trees of other code: they are made again by notebook 09")
    for size in found.curve[:-1]:
        yield row("simplified", job, size.tree)
    yield from imitations(job, found.full)


def imitations(job: Job, policy: Network | Tree) -> Iterator[dict[str, Any]]:
    """Yield a policy itself, and trees of some sizes that imitate it, several of each, with seeds of their own."""
    yield row("policy", job, policy)
    for size, seed in itertools.product(SIZES, range(TREES)):
        yield row("imitated", job, imitate(policy, job.system, size, ROUNDS, seed)) | {"size": size, "seed": seed}


def imitate(policy: Network | Tree, system: str, leaves: int, rounds: int, seed: int = 0) -> Tree:
    """Return the best tree found of at most so many leaves that acts as a policy does where both come."""
    env, like, rng = make_env(system), SPAQLR(system).policy.tree(), np.random.default_rng(seed)
    space = like.variables.space  # with angles, so that all trees ask the same questions

    def draw() -> np.ndarray:
        return first_states(env, space, rng, EPISODES)

    choosing, seen, trees = draw(), run_network(policy, env, draw(), rng, record=True).seen, []
    for _ in range(rounds):
        some = seen[rng.permutation(len(seen))[:ROWS]]
        actions = policy.predict(some)[0].reshape(len(some), -1)
        if like.variables.box is None:
            actions = actions - like.variables.start
        else:
            actions = (actions - space.action_centre) / space.action_half
        trees.append(merged(grow(like, some, leaves, actions)[-1]))
        seen = np.concatenate((seen, run_tree(trees[-1], env, draw(), rng, record=True).seen))
    return max(trees, key=lambda tree: run_tree(tree, env, choosing, rng).rewards.mean())


def merged(tree: Tree) -> Tree:
    """Return a tree without questions whose answers do not matter, as an exact tree has none."""
    for node in np.flatnonzero(tree.feature != LEAF)[::-1]:  # children come after their parents
        left, right = tree.left[node], tree.right[node]
        if tree.feature[left] == tree.feature[right] == LEAF and np.array_equal(tree.low[left], tree.low[right]):
            return merged(without(tree, int(node), int(left)))
    return tree


def row(kind: str, job: Job, policy: Network | Tree) -> dict[str, Any]:
    """Return what is kept of a policy: its leaves, if it is a tree, and its return on fresh episodes."""
    env, rng = make_env(job.system), np.random.default_rng(SEED)
    starts = first_states(env, space_of(env), rng, FRESH)
    where: dict[str, Any] = {"kind": kind, "system": job.system, "algorithm": job.algorithm}
    if isinstance(policy, Tree):
        where["leaves"], played = policy.leaves, run_tree(policy, env, starts, rng)
    else:
        played = run_network(policy, env, starts, rng)
    return where | {"return": round(float(played.rewards.mean()), 4)}


def points() -> pd.DataFrame:
    """Return what is kept as means: over agents by samples, over imitations by the size asked for, else by leaves."""
    frame = load_kept("leaves")
    frame["at"] = frame.samples.fillna(frame["size"]).fillna(frame.leaves)
    return frame.groupby(["system", "algorithm", "kind", "at"], as_index=False, sort=False)[["leaves", "return"]].mean()


def main() -> None:
    """Measure everything."""
    rows: list[dict[str, Any]] = []
    for system in BOTH:
        rows += while_learning(system)
        for path in sorted((default_store() / "policies").glob(f"{system}-*.npz")):
            if "-SPAQL-R-" in path.stem:
                rows += simplified(path)
            elif "-SPAQL" not in path.stem:
                job = Job.parse(archive.read(path, NETWORK, NETWORK_VERSION)[0]["job"])
                rows += imitations(job, load_network(path, job))
        print(system, len(rows), flush=True)
    write_kept("leaves", rows=rows)


if __name__ == "__main__":
    main()
