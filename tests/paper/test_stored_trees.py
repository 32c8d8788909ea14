"""Partitions and simplified trees on disk."""

import dataclasses

import numpy as np
import pytest

from spaql import SPAQL, archive
from spaql.paper.runs import retrain as retraining
from spaql.paper.runs import stored_trees
from spaql.paper.runs.errors import Damaged
from spaql.paper.runs.job import Job
from spaql.paper.runs.provenance import NUMERICS, default_store
from spaql.paper.runs.retrain import load_partition, partition_path, retrain
from spaql.paper.runs.stored_trees import sound
from spaql.paper.studies import make_jobs
from spaql.policies.tree import LEAF


@pytest.fixture(scope="module")
def agent():
    return SPAQL("CartPole-v0", xi=4, seed=1).learn(300, 10)


def test_a_simplified_tree_is_kept_and_loaded(agent, tmp_path, monkeypatch):
    job, other = make_jobs(["SPAQL"], ["CartPole-v0"], [4], 2, 300, 10)
    policy = agent.policy
    options = {"target": 150.0, "leaves": 5, "proposals": 10, "episodes": 20, "fresh": 50, "seed": 3}
    found = stored_trees.simplified(job, policy, [tmp_path / "published", tmp_path / "own"], **options)
    (path,) = tmp_path.rglob("*.npz")
    assert path.parent == tmp_path / "own" / "policies"
    monkeypatch.setattr(type(policy), "simplify", lambda *_, **__: pytest.fail("computed again"))
    again = stored_trees.simplified(job, policy, [tmp_path / "own"], **options)
    assert all(np.array_equal(a, b) for a, b in zip(found.tree[:-1], again.tree[:-1], strict=True))
    assert (again.fresh, again.full_fresh, again.target) == (found.fresh, found.full_fresh, found.target)
    assert [size[:4] for size in again.curve] == [size[:4] for size in found.curve]
    for change in ({"seed": 4}, {"target": 151.0}):
        assert stored_trees.load_tree(path, job, policy, options | change) is None
    assert stored_trees.load_tree(path, job, SPAQL("CartPole-v0", xi=4, seed=2).learn(50, 2).policy, options) is None
    assert stored_trees.load_tree(path, other, policy, options) is None
    monkeypatch.setitem(NUMERICS, "policies", NUMERICS["policies"] + 1)
    assert stored_trees.load_tree(path, job, policy, options) is None


def test_a_damaged_tree_is_refused(agent):
    tree = agent.policy.tree()
    assert sound(tree, tree)
    inner = np.flatnonzero(tree.feature != LEAF)[0]
    for name, wrong in (("left", inner), ("right", len(tree.feature)), ("feature", 4)):
        array = getattr(tree, name).copy()
        array[inner] = wrong
        assert not sound(tree._replace(**{name: array}), tree), name
    assert not sound(tree._replace(low=tree.low[:, :0]), tree)
    assert not sound(tree._replace(high=tree.high + 5), tree)


def test_the_books_trees_are_of_these_numbers_and_of_the_partitions_that_are_kept():
    """Each tree's file has a digest of the policy that it was made from, by agents that were trained for it."""
    found = list((default_store() / "policies").glob("*-SPAQL*.npz"))
    assert found
    for path in found:
        header, _ = archive.read(path, stored_trees.FORMAT, stored_trees.VERSION)
        assert header.get("numerics", 1) == NUMERICS["policies"], path.name
        job = Job.parse(header["job"])
        policy = load_partition(partition_path(default_store(), job), job).policy
        assert stored_trees.identity(job, policy, {})["policy"] == header["policy"], path.name


def test_a_partition_is_kept_and_loaded(tmp_path, monkeypatch):
    monkeypatch.setenv("SPAQL_RUNS", str(tmp_path))
    (job,) = make_jobs(["SPAQL"], ["CartPole-v0"], [4], 1, 40, 3)
    trained = retrain(job)
    monkeypatch.setattr(retraining, "train", lambda job: pytest.fail("trained again"))
    kept = retrain(job)
    assert kept.arms == trained.arms > 2
    assert all(np.array_equal(a, b) for a, b in zip(kept.policy.tree()[:-1], trained.policy.tree()[:-1], strict=True))
    (path,) = tmp_path.rglob("*.npz")
    with pytest.raises(Damaged, match="another job"):
        load_partition(path, dataclasses.replace(job, agent=1))
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(Damaged, match=path.name):
        retrain(job)
