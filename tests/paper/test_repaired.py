"""SPAQL-R beside the others: the measures, what is stored of it, and each sentence that the chapter says of that."""

import functools
import json

import numpy as np
import pytest

from spaql import SPAQLR, archive
from spaql.paper.audit import leaves, repaired
from spaql.paper.audit.comparison import samples_needed
from spaql.paper.runs.algorithms import compute
from spaql.paper.runs.job import Job, Record, seeds
from spaql.paper.runs.network_settings import SB3_SAMPLES, ZOO
from spaql.paper.runs.provenance import SB3, default_store
from spaql.paper.runs.repaired_settings import CHECKPOINT, REPAIRED
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import load_stored
from spaql.paper.runs.stored_trees import FORMAT, PUBLISHED, VERSION
from spaql.paper.statistics import (
    interquartile_interval,
    interquartile_mean,
    performance_profile,
)
from spaql.paper.studies import BOTH, CONTROLS, Part, study
from spaql.policies.play import first_states, run_tree
from spaql.policies.tree import LEAF, Tree
from spaql.rules import HISTORY
from spaql.systems import make_env

# ---------------------------------------------------------------------------------------------------------------------
# The measures


def record(algorithm, rewards, steps, rollouts=0, fresh=(0.0, 0.0)):
    history = np.zeros(len(rewards), HISTORY)
    history["rewards"], history["steps"], history["evaluation_steps"] = rewards, steps, rollouts
    job = Job(algorithm, "CartPole-v0", 0.0, len(rewards), 1, seed=1, agent=0)
    return Record(job, history, np.array(fresh), np.zeros(0, np.float32), {}, 0.0)


def test_the_interquartile_mean_leaves_out_the_best_and_the_worst_quarter():
    assert interquartile_mean([0, 1, 2, 3, 4, 5, 6, 1000]) == 3.5
    interval = interquartile_interval(np.arange(40.0))
    assert interval.low < interval.mean == 19.5 < interval.high
    assert interquartile_interval([2.0, 2.0, 2.0]) == (2.0, 2.0, 2.0)


def test_the_profile():
    assert performance_profile([1.0, 2.0, 3.0, 4.0], [0.0, 2.0, 3.5, 5.0]).tolist() == [1.0, 0.75, 0.25, 0.0]


@pytest.mark.parametrize(
    ("system", "features", "thresholds", "actions"),
    [("Pendulum-v1", (0, 2), (0.5, -1.0), (-0.5, 0.25, 1.0)), ("CartPole-v0", (3, 2), (0.1, 0.02), (0.0, 1.0, 0.0))],
)
def test_an_imitation_of_a_small_tree_acts_as_it_does(system, features, thresholds, actions):
    low = np.array([0.0, 0.0, *actions])[:, None]
    high = low + 1 if system == "CartPole-v0" else low
    asked = np.array([*features, LEAF, LEAF, LEAF]), np.array([*thresholds, 0.0, 0.0, 0.0])
    children = np.array([1, 2, LEAF, LEAF, LEAF]), np.array([4, 3, LEAF, LEAF, LEAF])
    tree = Tree(*asked, *children, low, high, SPAQLR(system).policy.variables)
    found = leaves.imitate(tree, system, 8, 5)
    env, rng = make_env(system), np.random.default_rng(1)
    starts = first_states(env, tree.variables.space, rng, 20)
    seen = run_tree(tree, env, starts, rng, record=True).seen
    assert np.mean(np.isclose(found.predict(seen)[0], tree.predict(seen)[0])) > 0.99


def test_leaves_that_do_the_same_are_counted_once():
    variables = SPAQLR("CartPole-v0").policy.variables
    low = np.array([0, 0, 0, 1, 0, 1, 1])[:, None] * 1.0  # question 2 does not matter
    feature, threshold = np.array([2, 3, 0, LEAF, LEAF, LEAF, LEAF]), np.zeros(7)
    left, right = np.array([[1, 3, 5], [2, 4, 6]])
    ends = np.full(4, LEAF)
    tree = Tree(feature, threshold, np.r_[left, ends], np.r_[right, ends], low, low + 1, variables)
    found, seen = leaves.merged(tree), np.random.default_rng(0).normal(size=(100, 4))
    assert found.leaves == 3
    assert np.array_equal(found.predict(seen)[0], tree.predict(seen)[0])
    low[4] = 1.0
    assert leaves.merged(tree).leaves == 1


def test_every_sample_counts_that_an_algorithm_needs():
    assert repaired.samples_taken(record("SPAQL", [0, 0], 200, 4000)).tolist() == [4200, 8400]
    assert repaired.samples_taken(record("AQL", [0, 0], 200, 4000)).tolist() == [200, 400]
    assert repaired.samples_taken(record("TRPO", [0, 0], 4000)).tolist() == [4000, 8000]
    found = repaired.at_samples(record("SPAQL-R", [1.0, 2.0], 4000), [3999, 4000, 7999, 8000, 8001])
    assert np.array_equal(found, [np.nan, 1.0, 1.0, 2.0, np.nan], equal_nan=True)
    # TRPO's rewards are those of the policy before the update.
    found = repaired.at_samples(record("TRPO", [1.0, 2.0], 4000), [0, 3999, 4000, 8000, 8001])
    assert np.array_equal(found, [1.0, 1.0, 2.0, 2.0, np.nan], equal_nan=True)


def test_a_level_is_reached_once_and_held_from_some_sample_on():
    frame = repaired.samples_to_levels([record("SPAQL-R", [99, 160, 140, 196, 197], 1000)]).set_index("level")
    assert frame["first"].tolist() == [2000, 2000, 4000, np.inf]
    assert frame.stays.tolist() == [2000, 4000, 4000, np.inf]


def test_no_mean_is_made_of_the_agents_that_happen_to_have_a_policy_then():
    early, late = record("SPAQL", [50, 60], 1000), record("SPAQL", [70, 80], 4000)
    assert repaired.summary_at([early], (2_000,))["mean"].tolist() == [60]
    assert repaired.summary_at([early, late], (2_000,)).empty


def test_of_trpos_two_policies_the_better_one_is_compared():
    trpo = [record("TRPO", [0], 4000, fresh=(-170.0, 9.0, -150.0, 8.0))]
    frame = repaired.ends([*trpo, record("SPAQL-R", [0], 1000)])
    assert frame.fresh.tolist() == [-150.0, 0.0]
    # One policy for all agents: not the better one of each, by the episodes that it is judged by.
    trpo.append(record("TRPO", [0], 4000, fresh=(-100.0, 9.0, -110.0, 8.0)))
    assert repaired.ends(trpo).fresh.tolist() == [-150.0, -110.0]


def test_the_same_number_of_samples_in_the_audit_and_here():
    trpo, _ = load_stored(study("trpo"), default_store(), repair=False)
    there = samples_needed(trpo.values()).set_index(["system", "algorithm", "threshold", "counted"]).samples
    here = repaired.samples_to_levels(trpo.values()).set_index(["system", "algorithm", "level"])["first"]
    for system, name, level in (("Pendulum-v1", "TRPO", -200.0), ("CartPole-v0", "TRPO tuned", 195.0)):
        assert there[system, name, level, "all"] == here[system, name, level]


# ---------------------------------------------------------------------------------------------------------------------
# What is run


def test_an_agent_is_looked_at_after_every_thousand_samples():
    job = Job("SPAQL-R", "CartPole-v0", 0.0, 3, 5, seed=1, agent=0, fresh=20)
    found = compute(job)
    assert found.history["steps"].tolist() == [CHECKPOINT] * 3
    assert np.all((found.history["rewards"] > 5) & (found.history["rewards"] <= 200))
    assert found.digest() == compute(job).digest()
    again = retrain(job, store=None).evaluate(job.fresh, seed=seeds(job)[1].spawn(2)[1])
    assert (again.mean(), again.std()) == tuple(found.fresh)


def test_every_variant_changes_something_and_the_zoos_settings_have_their_samples():
    assert [name for name, change in REPAIRED.items() if not change] == ["SPAQL-R"]
    known = {(name, system) for system in ZOO for name in ZOO[system] if name != "TRPO tuned"}
    assert set(SB3_SAMPLES) == known
    assert {name for name, _ in known} == set(SB3)
    assert set(BOTH) < {system for _, system in known}


def test_a_setting_of_the_zoo_that_falls_in_a_line():
    pytest.importorskip("stable_baselines3")
    from spaql.paper.runs.sb3 import schedule

    assert schedule("lin_0.2")(0.25) == pytest.approx(0.05)
    assert schedule(0.2) == 0.2


# ---------------------------------------------------------------------------------------------------------------------
# What the chapter says


@functools.cache
def stored():
    """The stored agents of the comparison."""
    jobs = [job for name in ("repaired", "trpo", "long") for job in study(name) if job.system in BOTH]
    records, missing = load_stored(jobs, default_store())
    assert not missing
    return list(records.values())


def test_replay_discount_and_tiles_are_what_counts():
    jobs = [job for name in ("repaired", "variants") for job in study(name)]
    records, missing = load_stored(jobs, default_store())
    assert not missing
    frame = repaired.removals(records.values()).set_index(["system", "algorithm", "samples"])
    whole, low, high = frame["mean"], frame.mean_low, frame.mean_high
    for system in BOTH:
        assert high[system, "SPAQL-R, no replay", 10_000] < low[system, "SPAQL-R", 10_000]
    for name in ("no tiles", "no discount"):
        assert high["Pendulum-v1", f"SPAQL-R, {name}", 40_000] < low["Pendulum-v1", "SPAQL-R", 40_000]
    # By themselves the others are worth little after 40,000 samples.
    for name in ("one step", "halved cells", "falling rate"):
        assert whole["CartPole-v0", f"SPAQL-R, {name}", 40_000] > 195
        assert abs(whole["Pendulum-v1", f"SPAQL-R, {name}", 40_000] - whole["Pendulum-v1", "SPAQL-R", 40_000]) < 15


def test_the_ladder_from_spaql_to_spaqlr_on_the_stored_runs():
    jobs = [job for name in ("repaired", "variants", "long") for job in study(name)]
    jobs += study("controls", parts=[Part(BOTH, ("last kept",), ("SPAQL",))])
    records, missing = load_stored(jobs, default_store())
    assert not missing
    frame = repaired.ladder(records.values()).set_index(["system", "rung"])
    low, high = frame.reward_low, frame.reward_high
    start, end, _, first, rate, cells, angles, several, replay, _ = list(repaired.RUNGS.values())[2:]
    assert ("Pendulum-v1", end) not in frame.index
    assert ("CartPole-v0", angles) not in frame.index
    assert high["CartPole-v0", start] < 15  # as the theorem says, nothing is learned
    assert low["CartPole-v0", end] > 120
    for system in BOTH:
        assert high[system, several] < low[system, replay]
    assert high["CartPole-v0", rate] < low["CartPole-v0", first]
    assert high["CartPole-v0", rate] < low["CartPole-v0", cells]


def test_a_rung_counts_the_samples_of_rollouts_only_where_they_choose():
    history = np.zeros(2, HISTORY)
    history["steps"], history["evaluation_steps"], history["rewards"] = 100, 900, 5.0
    made = []
    for agent, control in enumerate(("text", "last kept", "Q fixed")):
        job = Job("SPAQL", "Pendulum-v1", 4.0, 2, 20, 2020, agent, CONTROLS[control].rules)
        made.append(Record(job, history, np.array([-7.0, 1.0]), np.zeros(0), {}, 0.0))
    frame = repaired.ladder(made)
    assert frame.samples.tolist() == [2000, 200]
    assert frame.reward.tolist() == [-7.0, -7.0]


@pytest.mark.parametrize("system", BOTH)
def test_the_small_trees_of_the_chapter_are_stored(system):
    (path,) = (default_store() / "policies").glob(f"{system}-SPAQL-R-*.npz")
    header, arrays = archive.read(path, FORMAT, VERSION)
    mine = [found for found in stored() if (found.job.algorithm, found.job.system) == ("SPAQL-R", system)]
    best = max(mine, key=lambda found: found.history["rewards"][-1]).job
    level = repaired.LEVELS[system][2]
    assert header["job"] == json.loads(json.dumps(best.named()))
    assert header["options"] == PUBLISHED | {"target": level}
    enough = arrays["curve"][arrays["curve"][:, 1] >= level]
    assert len(enough) > 1  # the search finds a smaller tree that reaches it
    assert arrays["returns"][0] >= level  # on fresh episodes
