"""The audit's frames on hand-made records, and its simulations against closed figures."""

import dataclasses

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from spaql.paper.audit import ablation, bias, claims, comparison, random_baseline
from spaql.paper.audit.claims import load_claims
from spaql.paper.audit.groups import (
    Group,
    MissingError,
    load_groups,
    make_group,
    select,
)
from spaql.paper.audit.measures import crossing
from spaql.paper.figures import audit as figures
from spaql.paper.labels import STYLES
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.outcomes import EARLY, mean_of_everything, outcome
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import LONG_N, LONG_XI, SWITCHES, further_of, is_long, parameters_of, study
from spaql.policies.play import world_of
from spaql.rules import DIFFERENCES, HISTORY
from spaql.spaces import make_space


def records_of(
    algorithm, system="CartPole-v0", curves=(), rules="paper", evaluations=None, fresh=None, arms=10, xi=None
):
    """Return records of agents with these curves; each iteration takes 10 steps, and 90 more in rollouts."""
    xi = LONG_XI[system].get(algorithm, 0) if xi is None else xi
    evaluations = LONG_N[system] if evaluations is None else evaluations
    made = []
    for agent, curve in enumerate(np.asarray(curves, float)):
        history = np.zeros(len(curve), HISTORY)
        history["rewards"], history["arms"], history["steps"], history["evaluation_steps"] = curve, arms, 10, 90
        job = Job(algorithm, system, xi, len(curve), evaluations, 0, agent, SWITCHES[rules], record=rules == "paper")
        mean = curve[-1] if fresh is None else fresh[agent]
        made.append(Record(job, history, np.array([mean, 1.0]), np.zeros(0), {}, 1.0))
    return made


def test_best_against_fresh_by_hand():
    spaql = records_of("SPAQL", curves=[[100, 196], [100, 198]], fresh=[190, 196])
    other = records_of("AQL", curves=[[20, 20]] * 2) + records_of("SPAQL", curves=[[1, 2]] * 2, rules="ties")
    (row,) = bias.best_against_fresh(spaql + other).itertuples()
    assert (row.reported, row.fresh, row.bias, row.solved, row.solved_fresh) == (197, 193, 4, 2, 1)
    assert row.bias_high - row.bias == pytest.approx(stats.t.ppf(0.975, 1) * 2)  # 6 and 2: a standard error of 2
    more = bias.best_against_fresh(spaql + records_of("SPAQL", curves=[[1, 2]] * 2, evaluations=5))
    assert more.N.tolist() == [5, 100]


def test_ablation_by_hand():
    rng = np.random.default_rng(0)
    text = rng.normal(100, 1, (20, 3))
    records = records_of("SPAQL", curves=text) + records_of("SPAQL", curves=text, rules="normalisation")
    records += records_of("SPAQL", curves=text + 10 + np.linspace(-0.1, 0.1, 20)[:, None], rules="ties", arms=30)
    records += records_of("SPAQL", curves=text + 99, rules="ties", xi=0)  # no long run
    frame = ablation.ablation_table(records).set_index(["rule", "quantity"])
    assert len(frame) == 6
    ties = frame.loc["ties", "rewards"]
    assert ties.difference == pytest.approx(10)
    assert 9.9 < ties.low < 10 < ties.high < 10.1  # agent by agent: among agents the standard deviation is 1
    assert ties.p_holm < 1e-6
    assert frame.loc["ties", "arms"].difference == 20
    assert not ties.same
    same = frame.loc["normalisation", "rewards"]
    assert same.same
    assert (same.difference, same.p_holm) == (0, 1)


def test_the_heatmap_says_what_the_table_has():
    records = records_of("SPAQL", curves=[[1, 100], [1, 120]]) + records_of("AQL", curves=[[1, 20], [1, 22]])
    records += records_of("SPAQL", curves=[[1, 130], [1, 160]], rules="ties")
    records += records_of("AQL", curves=[[1, 20], [1, 22]], rules="first_observation")
    frame = ablation.ablation_table(records)
    (axes, *_) = figures.ablation(frame).axes
    texts = [text.get_text() for text in axes.texts]
    row = frame[(frame.rule == "ties") & (frame.quantity == "rewards")].iloc[0]
    assert row.difference == 35
    told = f"35\n[{row.low:.0f}, {row.high:.0f}]".replace("-", "−")
    assert sorted(texts) == sorted([told, "none"])  # two cells are empty
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first observation", "ties"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["AQL", "SPAQL"]


def test_the_declared_ablation_covers_what_the_frames_need():
    jobs = study("ablation")
    switched = {(job.system, job.algorithm, ablation.RULE_NAMES[job.rules]) for job in jobs if is_long(job)}
    for system in ("Pendulum-v1", "CartPole-v0"):
        for algorithm, rules in (("AQL", 3), ("SPAQL", 6), ("SPAQL-TS", 7)):
            assert len({cell for cell in switched if cell[:2] == (system, algorithm)}) == rules
    zero = {
        (job.algorithm, ablation.RULE_NAMES[job.rules])
        for job in jobs
        if job.iterations == parameters_of("xi")["iterations"]
    }
    assert zero == {(name, rules) for name in ("AQL", "SPAQL", "SPAQL-TS") for rules in ("ties", "released")}
    assert all(set(rules._fields) == set(SWITCHES["paper"]._fields) for rules in SWITCHES.values())
    assert all(len(set(SWITCHES[name]) ^ set(SWITCHES["paper"])) == 2 for name in DIFFERENCES)


def test_xi_zero_by_hand():
    made = [records_of("SPAQL", curves=[[1, mean]] * 2, rules=r, xi=0) for r, mean in (("ties", 24), ("paper", 150))]
    long = records_of("SPAQL", curves=[[3.0] * 2000])
    frame = ablation.xi_zero(sum(made, long))
    assert frame[["algorithm", "rules", "rewards"]].to_numpy().tolist() == [
        ["SPAQL", "paper", 150],
        ["SPAQL", "ties", 24],
    ]


def test_explanations_by_hand():
    near, far = 192.57 + np.linspace(-2, 2, 20)[:, None], 150 + np.linspace(-2, 2, 20)[:, None]
    records = records_of("SPAQL", curves=far) + records_of("SPAQL", curves=near, rules="released", evaluations=20)
    frame = ablation.explanations(records + records_of("SPAQL", curves=near, rules="ties"))
    rewards = frame[frame.id == "cartpole-rewards-spaql"]
    assert rewards[["rules", "N"]].to_numpy().tolist() == [["paper", 100], ["released", 20]]
    assert rewards.p.tolist()[0] < 1e-6
    assert rewards.p.tolist()[1] == pytest.approx(1.0)
    solved = frame[frame.id == "cartpole-solved-spaql"]
    assert solved.ours.tolist() == [0, 0]
    assert min(solved.p) > 0.05  # none of 20 against 1 of 20


def test_one_more_draw_against_the_formula():
    values = np.array([1.0, 2.0, 3.0])  # standard deviation 1, so 2 + t √(4/3) is t away
    assert ablation.one_more(values, 2 + 4.302653 * np.sqrt(4 / 3)) == pytest.approx(0.05, abs=1e-6)
    assert np.isnan(ablation.one_more(np.ones(3), 2.0))


def test_crossings_by_hand():
    spaql = records_of("SPAQL", curves=[np.full(100, 5.0)] * 3)
    released = records_of("SPAQL", curves=[np.full(100, 2.0)] * 3, rules="released")
    trpo = [r._replace(job=dataclasses.replace(r.job, xi=0.0)) for r in records_of("TRPO", curves=[[1, 3, 6, 7]] * 3)]
    for record in trpo:
        record.history["steps"] = 4000
    frame = comparison.crossings(spaql + released + trpo)
    # The rewards of TRPO's iterations are those of its policy after 0, 20, 40 and 60 batches.
    assert frame[["rules", "first", "batch"]].to_numpy().tolist() == [["paper", 40, 40], ["released", 20, 20]]
    assert frame.lead.tolist() == pytest.approx([5 - 16 / 3, 2 - 16 / 3])


def recorded(states, returns=(200.0, 15.0, 30.0), algorithm="SPAQL", system="CartPole-v0", curve=(1, 2, 3, 5)):
    """Return the record of an agent with an episode in these states and these fresh returns."""
    (record,) = records_of(algorithm, system, [curve], xi=0.0)
    return record._replace(rewards=np.array(returns), episode={"states": np.array(states, float)})


def test_what_claims_ask_of_recorded_and_fresh_episodes():
    angles = [0.3, 0.05, -0.05, 0.2]
    found = make_group([recorded([[0, 0, angle, 0] for angle in angles])])
    assert found.column("kept") == [0.5]
    assert (found.column("held"), found.column("fallen")) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    turns = np.linspace(np.pi, 2 * np.pi, 50).tolist() + [2 * np.pi + 0.1] * 60  # up, on the next turn
    pendulum = make_group([recorded([[angle, 0] for angle in turns], (-400.0, -600.0), system="Pendulum-v1")])
    assert 60 <= pendulum.column("steady")[0] < 70
    assert (pendulum.column("stands"), pendulum.column("controlled")) == ([1.0], [0.5])
    with pytest.raises(MissingError, match="'stands'"):
        make_group(records_of("SPAQL", curves=[[1, 2]])).column("stands")


def test_how_curves_rise_and_what_everything_costs():
    rising, level = (outcome(record) for record in records_of("SPAQL", curves=[[0, 2, 3, 4], [1, 1, 1, 1]]))
    assert (rising["rise_late"], level["rise_late"]) == (0.5, 0.0)
    assert (rising["progress"], level["progress"]) == (4.0, 0.0)
    # An iteration of SPAQL takes 10 + 90 steps, of AQL, which does not need its rollouts, 10.
    curve = np.arange(1.0, 1001.0)
    spaql, aql = (records_of(name, curves=[curve])[0] for name in ("SPAQL", "AQL"))
    batches = np.arange(20, 201, 20) * 200
    assert mean_of_everything(spaql, 200) == pytest.approx(np.mean(batches / 100))
    assert mean_of_everything(aql, 200) == pytest.approx(np.mean(np.minimum(batches / 10, 1000)))
    (trpo,) = records_of("TRPO", curves=[[1, 2, 3, 4]], xi=0.0)
    trpo.history["steps"] = 4000
    assert mean_of_everything(trpo, 40) == 2.5  # after 20 batches the second reward is known, after 40 the third


def test_samples_by_hand():
    spaql = records_of("SPAQL", curves=[[50, 120, 160], [100, 120, 130], [10, 110, 155]])
    frame = comparison.samples_needed(spaql, {"CartPole-v0": (100.0, 150.0, 195.0)}).set_index(["threshold", "counted"])
    assert frame.samples[100.0, "training"] == 20  # iterations 2, 1 and 2
    assert frame.samples[100.0, "all"] == 200
    assert frame.reached[150.0, "all"] == pytest.approx(2 / 3)
    assert frame.samples[150.0, "training"] == 30
    assert frame.samples_high[150.0, "training"] == np.inf  # resamples in which most agents never get there
    assert frame.samples[195.0, "all"] == np.inf


def test_samples_of_each_agent_by_hand():
    spaql = records_of("SPAQL", curves=[[50, 120, 160], [100, 120, 130]])
    others = records_of("AQL", curves=[[150, 160]]) + records_of("Random", curves=[[200, 200]])
    frame = comparison.samples_by_agent(spaql + others, {"CartPole-v0": 150.0})
    needed = frame.set_index(["algorithm", "counted", "agent"]).samples
    assert needed["SPAQL", "training"].tolist() == [30, np.inf]
    assert needed["SPAQL", "all"].tolist() == [300, np.inf]
    assert needed["AQL", "all"].tolist() == needed["AQL", "training"].tolist() == [10]  # it does not need its rollouts
    assert "Random" not in set(frame.algorithm)
    drawn = figures.samples_reached(frame)
    assert {text.get_text() for text in drawn.legends[0].get_texts()} == {"SPAQL", "AQL"}
    steps = {line.get_color(): line for line in drawn.axes[1].lines if len(line.get_xdata()) > 0}
    assert steps[STYLES["SPAQL"].colour].get_xydata()[-1].tolist() == [300, 1]  # one agent, with its rollouts
    figures.samples_reached(comparison.samples_by_agent(spaql, {"CartPole-v0": 1000.0}))  # nobody gets there


def test_a_budget_by_hand():
    frame = comparison.at_budget(records_of("SPAQL", curves=[[1, 2, 3], [2, 3, 4]]), budget=200).set_index("counted")
    assert (frame.rewards["training"], frame.rewards["all"]) == (3.5, 2.5)  # 20 iterations fit, and 2
    aql = comparison.at_budget(records_of("AQL", curves=[[1, 2, 3]] * 2), budget=200).set_index("counted")
    assert aql.rewards["all"] == 3  # AQL does not need its rollouts


@pytest.fixture(scope="module")
def replications():
    return random_baseline.random_row(replications=60)


def test_the_random_row_under_each_hypothesis(replications):
    cells = replications.groupby(["torque", "starts"])[["mean", "half"]].mean()
    assert cells["mean"]["two-way", "independent"] == pytest.approx(-1228, abs=8)
    assert cells["mean"]["one-way", "independent"] == pytest.approx(-1352, abs=8)
    assert cells.half["one-way", "shared"] == pytest.approx(6.4, abs=0.8)
    assert cells.half["two-way", "shared"] == pytest.approx(10.7, abs=1.0)
    # Where starts are independent the half-interval tells how far the mean goes astray; where shared it does not.
    astray = replications.groupby(["torque", "starts"])["mean"].std() * 1.96
    assert astray["one-way", "independent"] == pytest.approx(cells.half["one-way", "independent"], rel=0.25)
    assert astray["one-way", "shared"] > 5 * cells.half["one-way", "shared"]


def test_only_the_released_programs_random_fits_the_papers(replications):
    fits = (
        random_baseline.random_fit(replications).set_index(["torque", "starts"])[["mean_fits", "half_fits"]].min(axis=1)
    )
    assert fits.idxmax() == ("one-way", "shared")
    assert fits["one-way", "shared"] > 0.1
    assert (fits.drop(("one-way", "shared")) < 0.05).all()


def test_random_rollouts_are_gymnasiums():
    env = gym.make("Pendulum-v1")
    env.reset(seed=3)
    start = env.unwrapped.state.copy()
    total = sum(env.step(np.array([2.0], np.float32))[1] for _ in range(200))
    space = make_space(env)
    means = np.empty(1)
    starts = np.array([[start]])
    world_of(env, space).call(random_baseline.random_means, starts, np.random.default_rng(0), 1.0, means)
    assert means[0] == pytest.approx(total, rel=1e-9)


def test_the_tail_shares_are_two_sided():
    claim = next(claim for claim in load_claims() if claim.id == "pendulum-rewards-random")
    quantiles = stats.norm.ppf((np.arange(400) + 0.5) / 400)
    frame = pd.DataFrame({"torque": "t", "starts": "s", "mean": claim.paper + quantiles, "half": claim.half})
    fit = random_baseline.random_fit(frame.assign(half=claim.half + 1.96 + quantiles)).iloc[0]
    assert fit.mean_fits == pytest.approx(1.0)
    assert fit.half_fits == pytest.approx(0.05)


def test_the_deviations_name_claims_that_exist():
    frame = claims.deviations()
    assert frame.id.is_unique
    ids = {claim.id for claim in load_claims()}
    assert all(affected and set(affected) <= ids for affected in frame.affects)
    assert (frame[["topic", "paper", "ours", "reason"]].map(len) > 0).all(axis=None)
    with pytest.raises(ValueError, match="no claim"):
        claims.matching(["pendulum-*", "acrobot-*"])


# ---------------------------------------------------------------------------------------------------------------------
# The stored ablation: what claims.toml says of it


@pytest.fixture(scope="module")
def stored():
    zero = [job for job in study("xi") if job.system == "CartPole-v0" and job.xi == 0]
    jobs = [*study("long"), *study("ablation"), *zero]
    records, missing = load_stored(jobs, default_store(), repair=False)
    assert not missing
    return list(records.values())


def test_the_sentences_about_numbers_follow_from_the_stored_ablation(stored):
    frame = ablation.explanations(stored).set_index(["id", "rules", "system", "N"])
    v1, v0 = ("released", "Pendulum-v1", 20), ("released", "spaql/Pendulum-v0", 20)
    assert frame.p["pendulum-arms-ts", *v1] >= 0.05
    for rules in (v1, v0):
        for name in ("aql", "spaql", "ts"):
            assert frame.p[f"pendulum-rewards-{name}", *rules] < 0.001
        assert frame.ours["pendulum-rewards-ts", *rules] > frame.ours["pendulum-rewards-ts", "paper", "Pendulum-v1", 20]
        assert frame.p_shared["pendulum-rewards-aql", *rules] >= 0.05
    # The script's default of 20 rollouts would have let many more SPAQL agents solve CartPole than the paper counts.
    for rules in ("paper", "released"):
        assert frame.p["cartpole-solved-spaql", rules, "CartPole-v0", 20] < 0.01
        assert frame.p["cartpole-solved-spaql", rules, "CartPole-v0", 100] >= 0.05
    table = ablation.ablation_table(stored)
    spaql = table[(table.system == "Pendulum-v1") & (table.algorithm == "SPAQL") & (table.quantity == "rewards")]
    paper = next(claim.paper for claim in load_claims() if claim.id == "pendulum-rewards-spaql")
    assert len(spaql) == 6
    assert (spaql.changed > paper + 100).all()


def test_with_a_hundred_agents_the_rules_change_sizes_and_no_reward(stored):
    further, missing = load_stored(further_of(record.job for record in stored), default_store(), repair=False)
    assert not missing
    first, whole = (ablation.ablation_table(records) for records in (stored, [*stored, *further.values()]))
    moved = whole[whole.p_holm < 0.05]
    assert set(moved.quantity) == {"arms"}
    assert len(moved) == 7
    (lucky,) = first[(first.p_holm < 0.05) & (first.quantity != "arms")].itertuples()
    assert (lucky.system, lucky.algorithm, lucky.rule, lucky.quantity) == (
        "Pendulum-v1",
        "SPAQL-TS",
        "released",
        "fresh",
    )
    zero = ablation.xi_zero([*stored, *further.values()]).set_index(["algorithm", "rules"])
    assert zero.rewards["SPAQL", "paper"] > 140
    assert zero.rewards["SPAQL", "ties"] < 25


@pytest.fixture(scope="module")
def groups():
    return load_groups(studies=("long", "trpo"))


def test_the_sentences_about_trpos_start_follow_from_the_stored_results(groups):
    claims = {claim.id: claim for claim in load_claims()}
    trpo = groups["trpo", "Pendulum-v1", "TRPO", 0.0]
    assert trpo.batches[np.argmax(trpo.curves.mean(axis=0) >= claims["pendulum-rewards-spaql"].paper)] > 400
    for name in ("trpo-pendulum-overtakes-spaql", "trpo-pendulum-overtakes-ts"):
        (spaql,) = select(groups, claims[name].other)
        found = crossing(groups["trpo", "Pendulum-v1", "TRPO tuned", 0.0], spaql)
        low, high = claims[name].range
        assert low <= found.low <= found.high <= high


def test_the_sentences_about_where_trpos_rewards_stand_follow_from_the_stored_results(groups):
    leads = []
    for system, xis in LONG_XI.items():
        if ("trpo", system, "TRPO", 0.0) not in groups:
            continue
        trpo = groups["trpo", system, "TRPO", 0.0]
        batches = trpo.batches + 20
        early = trpo.curves[:, batches <= EARLY].mean(axis=1)
        later = trpo._replace(batches=batches, more={**trpo.more, "early": early})
        for name in ("SPAQL", "SPAQL-TS"):
            group = groups["long", system, name, xis[name]]
            assert crossing(later, group).mean - crossing(trpo, group).mean in (20, 40)
            leads.append(round(comparison.early_lead(group, trpo).mean))
    assert leads[2:] == [17, 28]


def test_the_sentence_about_the_early_lead_over_trpo_tuned_follows_from_the_stored_results(groups):
    spaql = groups["long", "CartPole-v0", "SPAQL", LONG_XI["CartPole-v0"]["SPAQL"]]
    lead = {
        name: comparison.early_lead(spaql, groups["trpo", "CartPole-v0", name, 0.0]) for name in ("TRPO", "TRPO tuned")
    }
    assert lead["TRPO"].low > 0
    assert lead["TRPO tuned"].low < 0


def test_the_released_rules_make_the_two_variants_level_on_pendulum(stored):
    found = ablation.ruled(stored).groupby(["system", "algorithm", "rule"]).rewards
    one, other = (found.get_group(("Pendulum-v1", name, "released")) for name in ("SPAQL", "SPAQL-TS"))
    assert stats.ttest_ind(one, other, equal_var=False).pvalue >= 0.05


def test_ties_alone_make_xi_zero_ruin_spaql_and_aql_but_not_spaql_ts(stored):
    frame = ablation.xi_zero(stored).set_index(["algorithm", "rules"]).rewards
    random = np.mean(
        [r.history["rewards"][-1] for r in stored if (r.job.algorithm, r.job.system) == ("Random", "CartPole-v0")]
    )
    for rules in ("ties", "released"):
        assert frame["SPAQL", rules] == pytest.approx(random, rel=0.1)
        assert frame["AQL", rules] < 0.6 * random
        assert frame["SPAQL-TS", rules] > 7 * random
    assert frame["SPAQL", "paper"] > 6 * random


def test_the_bias_shrinks_with_the_number_of_rollouts(stored):
    frame = bias.best_against_fresh(stored)
    long = frame[(frame.algorithm == "SPAQL") & (frame.iterations == parameters_of("long")["iterations"])]
    for system in ("Pendulum-v1", "CartPole-v0"):
        rows = long[long.system == system]
        assert rows.N.tolist() == [5, 20, 100]
        assert rows.bias.is_monotonic_decreasing
        assert (rows.bias_low > 0).all()


def test_a_crossing_is_looked_for_where_both_curves_are():
    late = Group(*(np.zeros(2),) * 3, curves=np.array([[0.0, 5.0, 9.0]] * 2), batches=np.array([20.0, 40.0, 60.0]))
    early = Group(*(np.zeros(2),) * 3, curves=np.full((2, 50), 4.0), batches=np.arange(1.0, 51.0))
    assert crossing(late, early).mean == 40.0
    shorter = early._replace(curves=early.curves[:, :30], batches=early.batches[:30])
    assert crossing(late, shorter).mean == np.inf
    shortest = early._replace(curves=early.curves[:, :10], batches=early.batches[:10])
    assert crossing(late, shortest) == (np.inf, np.inf, np.inf)
    assert list(comparison.crossings([]).columns)[:2] == ["system", "baseline"]
