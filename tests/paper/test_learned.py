"""Chapter 08: the theorem in trained agents, the controls, and the small problems."""

import math

import gymnasium as gym
import numpy as np
import pytest

from spaql import AQL, SPAQL, SPAQLTS
from spaql.paper.chapters import learned, small_systems
from spaql.paper.chapters.learned import CONTROLLED, CONTROLS
from spaql.paper.engine import store
from spaql.paper.engine.algorithms import untrained
from spaql.paper.engine.job import job_of, seeds
from spaql.paper.engine.study import study
from spaql.partition import BALLS
from spaql.systems import check_twin, make_env
from tests.conftest import Opaque, from_notebook

# The theorem in trained agents


def test_the_law_of_visits_by_hand():
    # H = 2, ξ = 3, r = 1: f(1) = 1 + 2 + 3; α_2 = 3/4, so f(2) = 6/4 + 3/4 (3 + 3/√2).
    assert learned.law_of_visits(2, 3.0, 2).tolist() == pytest.approx([2, 6, 1.5 + 0.75 * (3 + 3 / 2**0.5)])
    assert learned.law_of_visits(200, 0.0, 500)[1:].tolist() == pytest.approx([201] * 500)  # no bonus: all tie


@pytest.mark.parametrize("make", [AQL, SPAQL])
def test_with_rewards_of_one_the_estimates_are_a_function_of_the_visits_to_the_last_bit(make):
    found = learned.held(make("CartPole-v0", xi=20, seed=1).learn(60, 2))
    assert (found["at_H"], found["law"]) == (1.0, 0.0)
    assert found["balls"] > 100


def test_with_rewards_that_are_never_negative_every_value_is_the_horizon():
    found = learned.held(SPAQL("spaql/PendulumScaled-v1", xi=4, seed=1).learn(60, 2))
    assert found["at_H"] == 1.0
    assert 0 < found["law"] <= 1  # the immediate rewards are between 0 and 1


@pytest.mark.parametrize(
    "agent",
    [
        lambda: SPAQLTS("CartPole-v0", xi=20, seed=1),
        lambda: SPAQL("Pendulum-v1", xi=4, seed=1),
        lambda: SPAQL("CartPole-v0", xi=20, seed=1, initial=0.0),
        lambda: SPAQL("CartPole-v0", xi=20, seed=1, discount=0.8),
        lambda: controlled("zero at the end, last kept"),
        lambda: controlled("shrinking cap, last kept"),
        lambda: AQL("CartPole-v0", xi=4, seed=1, horizon=8),
    ],
    ids=["weight", "negative rewards", "initial", "discount", "zero at the end", "shrinking cap", "horizon"],
)
def test_where_a_condition_fails_the_law_does(agent):
    found = learned.held(agent().learn(60, 2))
    assert found["law"] > 1
    assert found["at_H"] < 1


# The controls


def controlled(control, make=CONTROLLED["SPAQL"], env=None):
    return make(env or Opaque(make_env("CartPole-v0")), xi=20, seed=2, control=control).learn(25, 3)


@pytest.mark.long  # which compiles: the others run interpreted
@pytest.mark.parametrize("control", CONTROLS)
def test_a_control_has_the_same_bits_compiled_and_interpreted(control):
    fast, slow = controlled(control, env="CartPole-v0"), controlled(control)
    assert fast.compiled
    assert not slow.compiled
    assert np.array_equal(fast.history, slow.history)


@pytest.mark.parametrize(("plain", "keep_last"), [(SPAQL, False), (SPAQLTS, False), (AQL, True)])
def test_a_control_that_changes_nothing_is_the_algorithm(plain, keep_last, monkeypatch):
    monkeypatch.setitem(CONTROLS, "none", CONTROLS["last kept"]._replace(keep_last=keep_last))
    unchanged = plain("CartPole-v0", xi=20, seed=2).learn(25, 3)
    again = controlled("none", make=CONTROLLED["SPAQL-TS" if plain is SPAQLTS else plain.__name__])
    assert np.array_equal(again.history, unchanged.history)


def test_without_search_every_policy_replaces_the_one_before():
    agent = controlled("last kept")
    assert np.array_equal(agent.history.rewards, agent.history.evaluations)
    assert np.all(np.diff(agent.history.arms) >= 0)  # nothing is returned to


def test_without_rewards_estimates_are_bonuses_above_the_horizon():
    agent = controlled("reward deleted, last kept")
    balls = agent._best.balls[: agent._best.counts[BALLS]]
    law = learned.law_of_visits(200, 20.0, balls["visits"].max())
    assert np.allclose(balls["q"], law[balls["visits"]] - 1.0)  # without the reward of 1


@pytest.mark.long
def test_random_partitions_have_as_many_splits_and_estimates_below_the_horizon():
    agent = controlled("random partitions")
    q = agent._trainee.balls["q"][: agent._trainee.counts[BALLS]]
    assert agent._trainee.counts[BALLS] > 100
    assert 0 <= q.min() < 20 < 180 < q.max() < 200


def test_a_control_is_named_in_the_job_and_shares_its_seeds():
    jobs = study("controls", agents=1, systems=["CartPole-v0"])
    one = next(job for job in jobs if dict(job.parameters) == {"control": "last kept"} and job.algorithm == "SPAQL")
    assert untrained(one).control.keep_last
    plain = next(job for job in jobs if job.algorithm == "SPAQL" and not job.parameters)
    assert untrained(plain).seed.spawn_key == untrained(one).seed.spawn_key


# The small problems


@pytest.mark.parametrize("name", ["OilLaplace10", "AmbulanceBeta25", "TwoStep1"])
def test_their_twins_equal_them_to_the_last_bit(name):
    assert check_twin(f"spaql/{name}-v0", 1000, seed=7, reach=1.2) > 100


def returns(name, actions):
    """The rewards and states of an episode under given actions."""
    env = gym.make(f"spaql/{name}-v0").unwrapped
    env.reset(seed=0)
    return [(step[1], float(step[0][0])) for step in (env.step(action) for action in actions)]


def test_rewards_by_hand():
    f = math.exp(-10 * 0.25)
    assert returns("OilLaplace10", [[0.5], [0.55], [0.75], [0.75]]) == [
        (f, 0.5),  # stays, and earns what is there
        (pytest.approx(f - 0.05), 0.55),  # a short way costs its length, and is paid from where it began
        (0.0, 0.75),  # exp(-2) is less than a way of 0.2: nothing, not less
        (1.0, 0.75),
    ]
    calls = np.random.Generator(np.random.PCG64(np.random.SeedSequence(0))).beta(5.0, 2.0, 5)
    found = returns("AmbulanceBeta25", [[0.75], [0.0]])
    assert found[0] == (pytest.approx(1 - (0.25 * 0.25 + 0.75 * abs(0.75 - calls[0]))), calls[0])
    assert found[1] == (pytest.approx(1 - (0.25 * calls[0] + 0.75 * calls[1])), calls[1])
    assert returns("TwoStep1", [0, 1]) == [(small_systems.BAIT, small_systems.POOR), (0.0, small_systems.OVER)]
    assert returns("TwoStep1", [1, 0]) == [(0.0, small_systems.RICH), (small_systems.PRIZE, small_systems.OVER)]


def test_the_best_and_the_myopic_policy():
    best_and_myopic = from_notebook("08_what_is_learned")["best_and_myopic"]
    oil = best_and_myopic(learned.OIL)
    assert oil == pytest.approx((4.0, 5 * math.exp(-2.5)), abs=0.001)  # a step to the peak costs the first reward
    best, myopic = best_and_myopic(learned.AMBULANCE)
    assert best == pytest.approx(myopic, abs=1e-9)  # where it waits does not decide where the next call is


@pytest.mark.long
def test_without_foresight_regret_grows_as_the_theorem_says(opaque):
    frame = store.read("two_step")
    last = frame[(frame.parameters == '{"control": "last kept"}') & (frame.algorithm == "SPAQL")].iloc[0]
    job, own = job_of(last), {"control": "last kept"}
    agent = CONTROLLED["SPAQL"](opaque(job.system), xi=job.xi, seed=seeds(job)[0], rules=job.rules, **own)
    assert np.array_equal(agent.learn(300, 20).history.evaluations, last.curve_evaluations[:300])
    assert 1 - last.curve_evaluations[1000:].mean() == pytest.approx(0.75, abs=0.02)
