"""Simplified trees on disk: the search for them takes a minute, and the book shows six.

A file is used only if the job, its policy, the options and the version of the numbers are the same.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from spaql import archive
from spaql.archive import check_array
from spaql.paper.runs.errors import MADE_AGAIN, reading
from spaql.paper.runs.job import Job
from spaql.paper.runs.provenance import NUMERICS, provenance
from spaql.policies.interval import Interval
from spaql.policies.policy import Policy
from spaql.policies.simplify import Simplified, Size
from spaql.policies.tree import LEAF, Tree

FORMAT, VERSION = "simplified tree", 1

PUBLISHED = {"leaves": 24, "proposals": 200, "episodes": 100, "fresh": 1000, "seed": 0}  # options of the book's trees

ARRAYS = Tree._fields[:-1]  # the variables are the policy's


def simplified(job: Job, policy: Policy, stores: Iterable[Path], **options: Any) -> Simplified:
    """Return `policy.simplify(**options)`, loaded if one of the stores has it, else computed and kept in the last."""
    stores = list(stores)
    for store in stores:
        found = load_tree(tree_path(store, job, options), job, policy, options)
        if found is not None:
            return found
    found = policy.simplify(**options)
    save_tree(tree_path(stores[-1], job, options), job, policy, found, options)
    return found


def tree_path(store: Path, job: Job, options: dict[str, Any]) -> Path:
    """Return where a simplified tree is kept: readable, and another for other jobs and options."""
    named = json.dumps([job.named(), options], sort_keys=True)
    every = hashlib.sha256(named.encode()).hexdigest()[:8]
    return Path(store) / "policies" / f"{job.system.rpartition('/')[2]}-{job.algorithm}-{every}.npz"


def identity(job: Job, policy: Policy, options: dict[str, Any]) -> dict[str, Any]:
    """Return what a simplified tree depends on, as a file's header has it."""
    digest = hashlib.sha256()
    for array in policy.tree()[:-1]:
        digest.update(np.ascontiguousarray(array).tobytes())
    asked = {"job": job.named(), "policy": digest.hexdigest(), "options": options, "numerics": NUMERICS["policies"]}
    return json.loads(json.dumps(asked))


def save_tree(path: Path, job: Job, policy: Policy, found: Simplified, options: dict[str, Any]) -> None:
    """Write a simplified tree, its trade-off curve and the returns; not the full tree, which is the policy's."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"format": FORMAT, "version": VERSION, "provenance": provenance()} | identity(job, policy, options)
    smaller = found.curve[:-1]
    arrays = {f"{i}_{name}": getattr(size.tree, name) for i, size in enumerate(smaller) for name in ARRAYS}
    arrays["curve"] = np.array([size[:4] for size in found.curve], float)
    arrays["returns"] = np.array([*found.fresh, *found.full_fresh, found.target])
    archive.write(path, header, arrays)


def load_tree(path: Path, job: Job, policy: Policy, options: dict[str, Any]) -> Simplified | None:
    """Return a stored simplified tree, or None if there is none of this job, policy, options and code."""
    if not path.is_file():
        return None
    full = policy.tree()
    with reading(path, MADE_AGAIN):
        header, arrays = archive.read(path, FORMAT, VERSION)
        asked = identity(job, policy, options)
        if {"numerics": 1} | {name: header[name] for name in asked if name in header} != asked:
            return None
        rows = check_array(arrays, "curve", float)
        trees = [
            Tree(
                **{name: check_array(arrays, f"{i}_{name}", getattr(full, name).dtype) for name in ARRAYS},
                variables=policy.variables,
            )
            for i in range(len(rows) - 1)
        ]
        if not all(sound(tree, full) for tree in trees):
            raise ValueError("a tree in it does not hold together")
        curve = [
            Size(int(leaves), float(mean), float(low), float(high), tree)
            for (leaves, mean, low, high), tree in zip(rows, [*trees, full], strict=True)
        ]
        returns = list(map(float, check_array(arrays, "returns", float, 7)))
    target = returns[6]
    chosen = next((size.tree for size in curve if size.mean >= target), full)
    return Simplified(chosen, Interval(*returns[:3]), full, Interval(*returns[3:6]), target, curve)


def sound(tree: Tree, like: Tree) -> bool:
    """Return whether a tree's questions lead to leaves with actions: compiled code follows them without looking."""
    nodes, inner = np.arange(len(tree.feature)), tree.feature != LEAF
    lowest, highest = (0.0, len(like.variables.choices)) if like.variables.box is None else (-1.0, 1.0)
    children = np.stack((tree.left, tree.right))[:, inner]
    return bool(
        all(array.shape == (len(nodes), *other.shape[1:]) for array, other in zip(tree[:-1], like[:-1], strict=True))
        and np.all(np.isfinite(tree.threshold))
        and np.all((tree.low >= lowest) & (tree.low <= tree.high) & (tree.high <= highest))
        and np.all((tree.feature >= LEAF) & (tree.feature < len(tree.variables.observed)))
        and np.all((children > nodes[inner]) & (children < len(nodes)))
    )
