"""Simplified trees on disk: the search for them takes a minute, and the book shows six.

A file is used only if the job, the options and the code that determine it are the same.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from spaql import files
from spaql.compiling import SOURCES, fingerprint
from spaql.jobs import Job
from spaql.policies import Policy
from spaql.simplifying import Simplified, Size
from spaql.statistics import Interval
from spaql.trees import LEAF, Tree

FORMAT, VERSION = "simplified tree", 1
CODE = fingerprint((*SOURCES, "agents", "jobs", "policies", "trees", "simplifying"))
PUBLISHED = {"leaves": 24, "proposals": 200, "episodes": 100, "fresh": 1000, "seed": 0}  # options of the book's trees
ARRAYS = Tree._fields[:-1]  # the variables are the policy's


def simplified(job: Job, policy: Policy, stores: Iterable[Path], **options: Any) -> Simplified:
    """Return `policy.simplify(**options)`, loaded if one of the stores has it, else computed and kept in the last.

    Parameters
    ----------
    job
        Of the agent whose policy it is.
    policy
        The policy.
    stores
        Folders of stored results.
    options
        See `spaql.simplifying.simplify`.
    """
    stores = list(stores)
    for store in stores:
        found = load(path_of(store, job, options), job, policy, options)
        if found is not None:
            return found
    found = policy.simplify(**options)
    save(path_of(stores[-1], job, options), job, found, options)
    return found


def path_of(store: Path, job: Job, options: dict[str, Any]) -> Path:
    """Return where a simplified tree is kept: readable, and another for other jobs and options."""
    every = hashlib.sha256(json.dumps([job._replace(rules=list(job.rules)), options]).encode()).hexdigest()[:8]
    return Path(store) / "policies" / f"{job.system.rpartition('/')[2]}-{job.algorithm}-{every}.npz"


def save(path: Path, job: Job, found: Simplified, options: dict[str, Any]) -> None:
    """Write a simplified tree, its trade-off curve and the returns; not the full tree, which is the policy's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"format": FORMAT, "version": VERSION, "job": list(job), "options": options, "code": CODE}
    smaller = found.curve[:-1]
    arrays = {f"{i}_{name}": getattr(size.tree, name) for i, size in enumerate(smaller) for name in ARRAYS}
    arrays["curve"] = np.array([size[:4] for size in found.curve], float)
    arrays["returns"] = np.array([*found.fresh, *found.full_fresh, found.target])
    files.write(path, header, arrays)


def load(path: Path, job: Job, policy: Policy, options: dict[str, Any]) -> Simplified | None:
    """Return a stored simplified tree, or None if there is none of this job, these options and this code."""
    if not path.is_file():
        return None
    header, arrays = files.read(path, FORMAT, VERSION)
    asked = json.loads(json.dumps({"job": list(job), "options": options, "code": CODE}))
    if {name: header.get(name) for name in asked} != asked:
        return None
    full = policy.tree()
    count = len(arrays["curve"]) - 1
    trees = [Tree(*(arrays[f"{i}_{name}"] for name in ARRAYS), policy.variables) for i in range(count)]
    if not all(map(sound, trees)):
        raise ValueError(f"{path} is damaged: a tree in it does not hold together; delete the file, it is made again")
    curve = [
        Size(int(row[0]), *map(float, row[1:]), tree) for row, tree in zip(arrays["curve"], [*trees, full], strict=True)
    ]
    returns = list(map(float, arrays["returns"]))
    target = returns[6]
    chosen = next((size.tree for size in curve if size.mean >= target), full)
    return Simplified(chosen, Interval(*returns[:3]), full, Interval(*returns[3:6]), target, curve)


def sound(tree: Tree) -> bool:
    """Return whether a tree's questions lead to leaves: compiled code follows them without looking."""
    nodes, inner = np.arange(len(tree.feature)), tree.feature != LEAF
    children = np.stack((tree.left, tree.right))[:, inner]
    return bool(
        all(len(array) == len(nodes) for array in tree[:-1])
        and np.all((tree.feature >= LEAF) & (tree.feature < len(tree.variables.observed)))
        and np.all((children > nodes[inner]) & (children < len(nodes)))
    )
