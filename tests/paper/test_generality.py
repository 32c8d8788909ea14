"""Other systems: looks at policies, the choice of ξ, the verdicts on every cell, and what the chapter says of them."""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest

from spaql.paper.audit import generality, repaired
from spaql.paper.audit.claims import DIFFERS, HOLDS, NOT_JUDGED, UNDECIDED
from spaql.paper.audit.groups import Group, make_group
from spaql.paper.frames import finals
from spaql.paper.runs.algorithms import untrained
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.outcomes import EQUAL
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import load_stored
from spaql.paper.runs.training import compute, train
from spaql.paper.studies import BOTH, LONG_XI, OTHER_SYSTEMS, OTHER_XI, SEED, parameters_of, study
from spaql.paper.tables import audit as tables
from spaql.rules import HISTORY
from spaql.systems import episode_limit, make_env, solved_at, without_goal

ROOT = Path(__file__).parents[2]
# ---------------------------------------------------------------------------------------------------------------------
# Looks


@pytest.mark.parametrize("algorithm", ["AQL", "SPAQL", "SPAQL-TS"])
def test_looks_change_nothing_in_the_training_and_count_every_sample(algorithm):
    job = Job(algorithm, "CartPole-v0", 4.0, 2, 3, seed=1, agent=0, fresh=20, looks=5)
    agent, history = train(job)
    alone = untrained(job).learn(len(agent.history), 3)
    assert np.array_equal(alone.history, agent.history)
    assert history["steps"].sum() == agent.history.steps.sum() >= 2 * CHECKPOINT
    assert agent.history.steps[:-1].sum() < 2 * CHECKPOINT
    assert history["evaluation_steps"].sum() == agent.history.evaluation_steps.sum()
    taken = np.cumsum(history["steps"] + history["evaluation_steps"])
    assert np.all(np.diff(taken)[:-1] >= CHECKPOINT)
    assert history["evaluations"][-1] == agent.history.rewards[-1]
    assert compute(job).digest() == compute(job).digest()


@pytest.mark.parametrize("algorithm", ["SPAQL", "SPAQL-R"])
def test_an_agent_with_looks_is_trained_again(algorithm):
    looks = 0 if algorithm == "SPAQL-R" else 5
    job = Job(algorithm, "CartPole-v0", 0.0, 1, 3, seed=1, agent=0, fresh=20, looks=looks)
    assert retrain(job, store=None).arms == train(job)[1]["arms"][-1]


def test_a_job_without_looks_is_written_as_before():
    job = Job("SPAQL", "CartPole-v0", 4.0, 2, 3, seed=1, agent=0)
    assert "looks" not in job.named()
    assert dataclasses.replace(job, looks=5).identity() != job.identity()


# ---------------------------------------------------------------------------------------------------------------------
# Judging


def group(better, other=0.0):
    better = np.asarray(better, float)
    more = {"better": better, "equal_all": better + other}
    return Group(better, better, 10 * better, better[:, None], np.ones(1), more)


def test_a_cell_holds_differs_is_undecided_is_not_asked_or_not_judged():
    near, low, high = np.arange(20.0), np.arange(20.0) - 50, np.arange(20.0) + 500
    groups = {}
    for system, spaql, aql in (("CartPole-v0", high, low), ("Pendulum-v1", low, high), ("CartPole-v1", near, near)):
        study = "long" if system in BOTH else "systems"
        xis = (LONG_XI if system in BOTH else OTHER_XI)[system]
        for name, values in (("SPAQL", spaql), ("AQL", aql), ("SPAQL-TS", high)):
            groups[study, system, name, xis[name]] = group(values)
    frame = generality.judge_cells(groups).set_index(["id", "system"]).verdict
    assert frame["spaql-aql", "CartPole-v0"] == HOLDS
    assert frame["spaql-aql", "Pendulum-v1"] == DIFFERS
    assert frame["spaql-aql", "CartPole-v1"] == UNDECIDED
    assert frame["spaql-aql", "MountainCar-v0"] == NOT_JUDGED
    assert frame["ts-solves", "CartPole-v1"] == HOLDS
    assert frame["ts-solves", "Pendulum-v1"] == generality.NOT_ASKED


def record(algorithm, system, fresh, rewards=(0.0,), steps=CHECKPOINT, rollouts=0):
    history = np.zeros(len(rewards), HISTORY)
    history["rewards"], history["steps"], history["evaluation_steps"] = rewards, steps, rollouts
    job = Job(algorithm, system, 0.0, len(rewards), 1, seed=1, agent=0)
    return Record(job, history, np.asarray(fresh, float), np.zeros(0, np.float32), {}, 0.0)


def test_equal_samples_count_the_rollouts_of_those_that_need_them():
    # Each has a second policy, from 50,000 samples on if rollouts do not count, from 100,001 on if they do.
    mine = {
        name: make_group([record(name, "CartPole-v0", (0.0, 0.0), (0.0, 1.0), (1000, 49_000), (0, 50_001))])
        for name in ("AQL", "SPAQL")
    }
    assert mine["AQL"].column("equal_all")[0] == pytest.approx(0.52)  # 13 of the 25 places, each 4,000 samples
    assert mine["SPAQL"].column("equal_all")[0] == 0.0
    assert parameters_of("systems")["iterations"] * CHECKPOINT == EQUAL


def test_a_goal_is_reached_by_who_earns_more_than_the_least():
    records = [record("SPAQL", "MountainCar-v0", (mean, 0.0)) for mean in (-200.0, -199.9, -105.0)]
    records.append(record("TRPO", "MountainCar-v0", (-200.0, 0.0, -120.0, 0.0)))
    frame = generality.goal_counts(records).set_index("algorithm")
    assert frame.loc["SPAQL", ["agents", "reach", "solve"]].tolist() == [3, 2, 1]
    assert frame.loc["TRPO", ["agents", "reach", "solve"]].tolist() == [1, 1, 0]
    # Who never comes there pays for every step, or nothing at all if doing nothing is free.
    assert {system: without_goal(system) for system in OTHER_SYSTEMS} == {
        "MountainCar-v0": -episode_limit(make_env("MountainCar-v0")),
        "MountainCarContinuous-v0": 0.0,
        "Acrobot-v1": -episode_limit(make_env("Acrobot-v1")),
        "CartPole-v1": -np.inf,
    }


def test_every_conclusion_can_be_asked_everywhere_but_where_nothing_is_solved():
    conclusions = generality.load_conclusions()
    assert len({one.id for one in conclusions}) == len(conclusions)
    for one in conclusions:
        assert one.whose in ("paper", "ours")
        assert set(one.said) <= set(BOTH)
        asked = [system for system in generality.SYSTEMS if generality.asked_of(one, system) is not None]
        assert asked == [s for s in generality.SYSTEMS if one.below or solved_at(s) is not None]


# ---------------------------------------------------------------------------------------------------------------------
# What is stored, and what the chapter says


@functools.cache
def stored(name):
    records, missing = load_stored(study(name), default_store(), repair=False)
    assert not missing
    return list(records.values())


def test_xi_is_what_its_study_chose_on_seeds_of_its_own():
    frame = finals(stored("systems-xi"))
    means = frame[frame.algorithm != "Random"].groupby(["system", "algorithm", "xi"]).fresh.mean()
    best = means.groupby(["system", "algorithm"]).idxmax()  # of equal ones the smallest ξ
    assert {(system, name): xi for system, name, xi in best} == {
        (system, name): xi for system, xis in OTHER_XI.items() for name, xi in xis.items()
    }
    assert {r.job.seed for r in stored("systems-xi")}.isdisjoint({r.job.seed for r in stored("systems")})
    assert {job.seed for job in study("systems")} == {SEED}


def test_every_verdict_is_that_of_the_stored_runs():
    frame = generality.generality()
    assert len(frame) == len(generality.load_conclusions()) * len(generality.SYSTEMS)
    ends = repaired.ends(stored("systems")).groupby(["system", "algorithm"]).fresh.mean()
    for cell in frame[frame.system.isin(OTHER_SYSTEMS)].itertuples():
        one = next(c for c in generality.load_conclusions() if c.id == cell.id)
        needed = {(cell.system, name) for name in (one.ahead, *one.below)}
        assert (cell.verdict == NOT_JUDGED) == (not needed <= set(ends.index))
        if one.column == "better" and cell.verdict != NOT_JUDGED:
            mean = ends[cell.system, one.ahead]
            nearest = min([mean - ends[cell.system, name] for name in one.below], default=mean)
            assert cell.ours == pytest.approx(nearest)
            bound = 0.0 if one.below else solved_at(cell.system)
            assert cell.verdict in ((HOLDS, UNDECIDED) if nearest > bound else (DIFFERS, UNDECIDED))
    assert set(frame[~frame.system.isin((*BOTH, *OTHER_SYSTEMS))].verdict) <= {NOT_JUDGED}
    text = tables.generality_table(frame, "", "tab").myst()
    words = (HOLDS, DIFFERS, UNDECIDED, NOT_JUDGED, generality.NOT_ASKED)
    assert sum(text.count(f">{word}<") for word in words) == len(frame)
    assert text.count("†") == frame.said.sum()
    plain = tables.generality_table(frame, "", "tab")._repr_mimebundle_()
    assert not any("span" in plain[kind] for kind in ("text/html", "text/plain"))  # Jupyter has no such style sheet
