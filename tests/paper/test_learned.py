"""What is learned: the measures on hand-made numbers and short runs, and the chapter's sentences on the stored ones."""

import numpy as np
import pandas as pd
import pytest

from spaql import AQL, SPAQL, SPAQLTS, Rules
from spaql.paper.audit import controls, learned
from spaql.paper.audit.learned import Trace
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.runner import load_stored
from spaql.paper.statistics import paired, paired_holm
from spaql.paper.studies import CONTROLS, further_of, parameters_of, study, study_of, text_jobs
from spaql.partition import NONE, new_partition, split
from spaql.rules import HISTORY

# ---------------------------------------------------------------------------------------------------------------------
# The measures


def test_the_law_of_visits_by_hand():
    # H = 2, ξ = 3, r = 1: f(1) = 1 + 2 + 3; α_2 = 3/4, so f(2) = 6/4 + 3/4 (3 + 3/√2).
    assert learned.law_of_visits(2, 3.0, 2).tolist() == pytest.approx([2, 6, 1.5 + 0.75 * (3 + 3 / 2**0.5)])
    assert learned.law_of_visits(200, 0.0, 500)[1:].tolist() == pytest.approx([201] * 500)  # no bonus: all tie
    assert np.all(np.diff(learned.law_of_visits(200, 20.0, 10**4)[1:]) < 0)  # with one, fewer visits are always better


def test_with_rewards_of_one_the_estimates_are_a_function_of_the_visits_to_the_last_bit():
    found = learned.held(SPAQL("CartPole-v0", xi=20, seed=1).learn(60, 2))
    assert (found["at_H"], found["law"], found["rank_visits"]) == (1.0, 0.0, pytest.approx(-1.0))
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
        lambda: SPAQL("CartPole-v0", xi=20, seed=1, rules=Rules(termination="zero")),
        lambda: AQL("CartPole-v0", xi=4, seed=1, horizon=8),
    ],
    ids=["weight", "negative rewards", "initial", "discount", "termination", "horizon"],
)
def test_where_a_condition_fails_the_law_does(agent):
    found = learned.held(agent().learn(60, 2))
    assert found["law"] > 1
    assert found["at_H"] < 1


def test_the_balls_that_are_whole():
    p = new_partition(1, 2, [-1.0], [1.0], q=1.0)
    p = split(split(p, 0, False, False, np.random.default_rng(0)), 3, False, False, np.random.default_rng(0))
    assert sorted(learned.whole_balls(p).tolist()) == [1, 2, *range(4, 17)]


def test_returns_of_the_next_steps_by_hand(monkeypatch):
    monkeypatch.setattr(learned, "LEAST", 1)
    agent = SPAQL("CartPole-v0", xi=1, seed=0, horizon=2).learn(3, 1)
    # Two episodes of up to four steps; H = 2, so the return from a step is that of two steps.
    chosen = np.array([[0, 1, 0, 0], [1, 1, 1, NONE]])
    rewards = np.array([[1.0, 2.0, 4.0, 8.0], [3.0, 5.0, 7.0, 0.0]])
    trace = Trace(np.array([4, 3]), np.zeros((2, 4)), chosen, rewards)
    found = learned.returns_of_balls(agent, trace)
    assert found.returned.tolist() == pytest.approx([3.0, (6.0 + 8.0 + 12.0) / 3])
    assert found.visits.tolist() == [1, 3]
    assert found.q.tolist() == agent._best.balls["q"][[0, 1]].tolist()
    timed = AQL("CartPole-v0", xi=1, seed=0, horizon=2).learn(1, 1)
    found = learned.returns_of_balls(timed, trace._replace(chosen=chosen[:, :2], rewards=rewards[:, :2]))
    assert found.returned.tolist() == pytest.approx([3.0, (2.0 + 8.0 + 5.0) / 3])


def test_prediction_by_hand():
    found = learned.predicted(pd.DataFrame({"q": [1.0, 2.0, 3.0], "returned": [2.0, 4.0, 6.0], "visits": [1, 2, 1]}))
    assert found == {"visited": 3, "rho": 1.0, "slope": 2.0, "mean_q": 2.0, "mean_return": 4.0}
    assert np.isnan(learned.rank_correlation(np.ones(5), np.arange(5)))


def test_traces_are_the_agents_own_episodes_and_their_ends_have_a_cause():
    agent = SPAQLTS("CartPole-v0", xi=20, seed=1).learn(60, 5)
    seed = np.random.SeedSequence(5)
    played = learned.play_on(agent, 200, 300, seed)
    assert np.array_equal(played.rewards.sum(axis=1), agent.evaluate(300, seed=np.random.SeedSequence(5)))
    assert np.array_equal((played.chosen != NONE).sum(axis=1), played.steps)
    found = learned.lasted(agent, played)
    assert found["cart"] + found["pole"] == pytest.approx(1 - np.mean(played.steps == 200), abs=0.01)
    ends = np.array([[2.5, 0, 0.1, 0], [0, 0, 0.3, 0], [2.5, 0, 0.3, 0], [0, 0, 0, 0]])
    by_hand = Trace(np.array([300, 20, 600, 2000]), ends, played.chosen, played.rewards)
    assert learned.lasted(agent, by_hand) == {
        "reach_200": 0.75, "reach_500": 0.5, "reach_2000": 0.25,
        "cart": 0.5, "pole": 0.25, "cart_later": 0.5, "pole_later": 0.0,
    }  # fmt: skip
    assert learned.lasted(SPAQL("Pendulum-v1", xi=1), by_hand) == {}


def test_paired_comparisons_by_hand():
    # Differences 1, 2, 3: mean 2, standard error 1/√3, t of two degrees of freedom 4.3027.
    found = paired([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (found.difference, found.improvement) == (2.0, 1.0)
    assert [found.low, found.high] == pytest.approx([2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5], abs=1e-5)
    assert paired([1, 2], [1, 2]).p == 1.0
    assert paired([2, 3], [1, 2]).p == 0.0
    two = paired_holm({"a": ([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]), "b": ([1, 2], [1, 2])})
    assert two["a"].p_holm == pytest.approx(2 * found.p)
    with pytest.raises(ValueError, match="as many agents in both groups"):
        paired([1, 2, 3], [1, 2])


# ---------------------------------------------------------------------------------------------------------------------
# The controls as data, and their table


def records_of(control, rewards, fresh, algorithm="SPAQL", evaluations=20):
    change = CONTROLS[control]
    made = []
    for agent, (mean, afresh) in enumerate(zip(rewards, fresh, strict=True)):
        history = np.zeros(2, HISTORY)
        history["rewards"] = mean
        job = Job(algorithm, "CartPole-v0", 20.0, 2, evaluations, 0, agent, change.rules,
                  parameters=change.parameters)  # fmt: skip
        made.append(Record(job, history, np.array([afresh, 1.0]), np.zeros(0), {}, 0.0))
    return made


def test_the_table_of_controls_by_hand():
    records = records_of("text", [190, 180, 170], [180, 170, 160])
    records += records_of("text", [20] * 3, [20] * 3, "Random") + records_of("Q fixed", [100] * 3, [90, 100, 110])
    frame = controls.controls_table(records).set_index("quantity")
    assert frame.control.tolist() == ["Q fixed"] * 2
    fresh = frame.loc["fresh"]
    assert (fresh.text, fresh.changed, fresh.difference, fresh.improvement) == (170, 100, -70, 0)
    assert fresh.share == pytest.approx(80 / 150)
    assert fresh.share_low < fresh.share < fresh.share_high
    with pytest.raises(ValueError, match="under the text's rules and under controls"):
        controls.controls_table(records_of("text", [1, 2], [1, 2]))


def test_every_control_is_one_change_and_what_is_compared_with_it_is_stored_elsewhere():
    assert len(set(CONTROLS.values())) == len(CONTROLS)
    jobs = study("controls")
    assert len(set(jobs)) == len(jobs)
    assert {study_of(job) for job in jobs} == {"controls"}
    known = set(jobs) | set(study("long")) | set(study("ablation"))
    assert set(text_jobs(jobs, parameters_of("long")["agents"])) <= known


# ---------------------------------------------------------------------------------------------------------------------
# The chapter's sentences, on the stored runs


@pytest.fixture(scope="module")
def stored():
    jobs = study("controls")
    wanted = [*jobs, *text_jobs(jobs, parameters_of("long")["agents"])]
    wanted += further_of(wanted)
    wanted += [job for job in study("long") if job.algorithm == "Random"]
    records, missing = load_stored(wanted, default_store(), repair=False)
    assert not missing
    return list(records.values())


@pytest.fixture(scope="module")
def effects():
    return controls.stored_effects()


CARTPOLE, PENDULUM, FIVE = "CartPole-v0", "Pendulum-v1", "spaql/PendulumDiscrete-v1"


@pytest.mark.parametrize("control", ["reward deleted", "Q from visits"])
def test_spaql_earns_on_cartpole_what_it_earns_without_rewards(effects, control):
    row = effects.loc[CARTPOLE, "SPAQL", 20, control]
    assert row.agents == parameters_of("further")["agents"]
    assert row.p_holm > 0.05
    assert row.share_low > 0.98


def test_random_partitions_are_within_a_few_steps_of_spaql_on_cartpole(effects):
    row = effects.loc[CARTPOLE, "SPAQL", 20, "random partitions"]
    assert -12 < row.low < row.high < 0
    assert row.share_low > 0.9


@pytest.mark.parametrize("control", ["last kept", "Q fixed, last kept", "reward deleted, last kept"])
def test_without_choosing_spaql_earns_little_on_cartpole(effects, control):
    row = effects.loc[CARTPOLE, "SPAQL", 20, control]
    assert row.share_high < 0.4
    assert row.p_holm < 0.05


def test_on_cartpole_keeping_the_best_is_not_enough_it_must_be_returned_to(effects):
    row = effects.loc[CARTPOLE, "SPAQL", 20, "never reset"]
    assert row.p_holm < 0.05
    assert effects.loc[CARTPOLE, "SPAQL", 20, "last kept"].share_high < row.share_low < row.share_high < 0.7


def test_one_partition_is_enough_on_pendulum_and_not_on_cartpole(effects):
    last, many = effects.changed.xs((20, "last kept"), level=("N", "control")), effects.text.xs(20, level="N")
    assert last[PENDULUM, "SPAQL"] > many[PENDULUM, "AQL", "reward deleted"] + 500
    gained = last[CARTPOLE, "SPAQL"] - many[CARTPOLE, "AQL", "reward deleted"]
    assert 0 < gained < 0.1 * (many[CARTPOLE, "SPAQL", "last kept"] - many[CARTPOLE, "AQL", "reward deleted"])


def test_aql_learns_nothing_from_cartpoles_rewards(effects):
    row = effects.loc[CARTPOLE, "AQL", 20, "reward deleted"]
    assert row.low < 0 < row.high or row.low >= 0  # no less than with them
    assert np.isnan(row.share)  # it does not earn more than Random in the first place


@pytest.mark.parametrize("control", ["last kept", "reward deleted, last kept"])
def test_without_choosing_spaql_ts_still_balances_the_pole_with_or_without_the_reward(effects, control):
    assert effects.loc[CARTPOLE, "SPAQL-TS", 20, control].share_low > 0.6
    assert effects.loc[CARTPOLE, "SPAQL-TS", 20, "Q fixed, last kept"].share_high < 0.1  # it is what it learns


@pytest.mark.parametrize("algorithm", ["SPAQL", "SPAQL-TS"])
def test_a_value_of_zero_after_the_end_lets_both_learn_without_choosing(effects, algorithm):
    assert effects.loc[CARTPOLE, algorithm, 20, "zero at the end, last kept"].share_low > 0.6


@pytest.mark.parametrize("algorithm", ["SPAQL", "SPAQL-TS"])
def test_a_first_estimate_of_zero_makes_cartpole_worse(effects, algorithm):
    row = effects.loc[CARTPOLE, algorithm, 20, "Q from 0"]
    assert row.high < 0
    assert row.share_high < 0.8


def test_on_pendulum_spaql_learns_and_its_last_agent_is_better_than_its_best(effects, stored):
    assert effects.loc[PENDULUM, "SPAQL", 20, "reward deleted"].share_high < 1
    for system, N in ((PENDULUM, 1), (PENDULUM, 5), (PENDULUM, 20), (PENDULUM, 100), (FIVE, 20)):
        row = effects.loc[system, "SPAQL", N, "last kept"]
        assert row.difference > 0
        assert row.p_holm < 0.05
    deleted = effects.loc[PENDULUM, "SPAQL", 20, "reward deleted, last kept"]
    assert -0.05 < deleted.share_low < deleted.share_high < 0.05  # Random's level
    returns = effects.loc[PENDULUM, "SPAQL", 20, "never reset"]
    assert returns.changed_high < effects.loc[PENDULUM, "SPAQL", 20, "last kept"].changed_low
    five = effects.loc[FIVE, "SPAQL", 20]
    assert five.changed.idxmax() == "never reset"
    assert five.p_holm["never reset"] < 0.05
    assert five.difference["never reset"] > returns.difference > 0
    kept = controls.rollouts_table(stored).set_index(["system", "kept", "N"])
    last = kept.loc[PENDULUM, "last"]
    assert last.fresh_low.max() < last.fresh_high.min()  # however many rollouts
    assert (last.fresh_low > kept.loc[PENDULUM, "best"].fresh_high.max()).all()
    on_cartpole = kept.loc[CARTPOLE]
    assert (on_cartpole.loc["last"].fresh_high < on_cartpole.loc["best"].fresh_low).all()
    assert on_cartpole.loc["best"].fresh.is_monotonic_increasing


def test_on_pendulum_random_partitions_do_better_than_spaql_ts(effects):
    row = effects.loc[PENDULUM, "SPAQL-TS", 20, "random partitions"]
    assert row.difference > 0
    assert row.p_holm < 0.05
    assert effects.loc[FIVE, "SPAQL-TS", 20, "random partitions"].share_low > 0.9  # and no worse with five torques


def test_the_law_holds_to_the_last_bit_and_estimates_are_no_predictions():
    groups = learned.load_learned().groupby(["system", "algorithm"])
    assert (groups.size() == parameters_of("long")["agents"]).all()
    for algorithm in ("SPAQL", "AQL"):
        agents = groups.get_group((CARTPOLE, algorithm))
        assert (agents.law == 0).all()
        assert (agents["at_H"] == 1).all()
    assert (groups.get_group(("spaql/PendulumScaled-v1", "SPAQL"))["at_H"] == 1).all()
    for (system, algorithm), agents in groups:
        if (system, algorithm) != (CARTPOLE, "SPAQL-TS"):
            far = 200 if system in (PENDULUM, FIVE) else 10
            assert (np.abs(agents.mean_q - agents.mean_return) > far).all(), (system, algorithm)


def test_the_law_holds_for_every_agent_of_the_study_of_xi():
    law = learned.load_learned("law").set_index(["system", "algorithm"])
    assert law.agents.sum() == len(learned.jobs_of_the_law()) == 780
    assert (law["at_H"] == 1).all()
    assert law.law[CARTPOLE, "SPAQL"] == law.law[CARTPOLE, "AQL"] == 0
    assert 0 < law.law["spaql/PendulumScaled-v1", "SPAQL"] <= 1  # its rewards are between 0 and 1
    job = next(job for job in learned.jobs_of_the_law() if job.system == CARTPOLE)
    assert learned.measure_law(job) == {
        "system": CARTPOLE,
        "algorithm": job.algorithm,
        "xi": job.xi,
        "at_H": 1,
        "law": 0,
    }


def test_the_poles_do_not_stand_for_two_thousand_steps():
    frame = learned.load_learned()
    long = frame[(frame.system == CARTPOLE) & (frame.algorithm != "AQL")].groupby("algorithm")
    assert (long.reach_2000.mean() < 0.02).all()
    assert (long.reach_2000.max() < 0.25).all()
    assert long.reach_200.mean()["SPAQL-TS"] > 0.9
    by_cart = long.apply(lambda agents: np.mean(agents.cart_later > agents.pole_later))
    assert by_cart["SPAQL"] > 0.8
    assert by_cart["SPAQL-TS"] < 0.1


def test_a_row_is_measured_again_to_the_last_bit():
    scaled = "spaql/PendulumScaled-v1", "SPAQL"
    job = next(job for job in learned.jobs_to_measure() if (job.system, job.algorithm) == scaled)
    row = learned.measure_agent(job)
    frame = learned.load_learned()
    kept = frame[(frame.system == job.system) & (frame.algorithm == job.algorithm) & (frame.agent == job.agent)]
    for name in ("balls", "at_H", "law", "rank_visits", "visited", "rho", "mean_q", "mean_return"):
        assert kept[name].item() == pytest.approx(row[name], rel=1e-12), name
