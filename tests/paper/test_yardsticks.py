"""Six systems: ends, leads, and what the tables make of them."""

import numpy as np

from spaql.paper.audit import yardsticks
from spaql.paper.runs.job import Job, Record
from spaql.paper.tables import yardsticks as tables
from spaql.rules import HISTORY


def record(algorithm, rewards, agent=0, system="CartPole-v0", parameters=()):
    history = np.zeros(len(rewards), HISTORY)
    history["rewards"], history["steps"] = rewards, 5000
    job = Job(algorithm, system, 0.0, len(rewards), 1, seed=1, agent=agent, parameters=parameters)
    return Record(job, history, np.array([rewards[-1], 0.0]), np.zeros(0, np.float32), {}, 0.0)


def test_the_limit_has_rows_of_its_own_and_cartpoles_is_the_length_of_an_episode():
    made = [record("Limit", [-140.0], system="Pendulum-v1", parameters=given)
            for given in ((), (("actions", 2),), (("nodes", (11, 11)),))]  # fmt: skip
    made += [record("Sarsa(λ)", [100.0, reward], agent) for agent, reward in enumerate((150.0, 170.0))]
    frame = yardsticks.returns(made).set_index(["system", "algorithm"])
    limits = ["Limit", "Limit, two actions", "Limit, half the grid"]
    assert frame.loc["Pendulum-v1"].index.tolist() == limits
    assert frame["mean"]["CartPole-v0", "Limit"] == 200
    assert frame["mean"]["CartPole-v0", "Sarsa(λ)"] == 160
    assert frame.agents["CartPole-v0", "Sarsa(λ)"] == 2


def test_who_leads_is_the_best_rival_without_a_network():
    made = [record("SPAQL-R", [50.0, 90.0]), record("Sarsa(λ)", [60.0, 80.0]), record("Grid, replayed", [70.0, 20.0])]
    made += [record("PPO", [200.0, 200.0])]
    frame = yardsticks.leads(made, (5000, 10_000)).set_index("samples")
    assert frame.rival.tolist() == ["Grid, replayed", "Sarsa(λ)"]
    assert (frame.ours - frame.theirs).tolist() == [-20, 10]
    assert not frame.told.any()  # one agent of each
    assert yardsticks.leads(2 * made, (5000, 10_000)).told.all()


def test_an_algorithm_that_stops_early_keeps_what_it_earns():
    made = [record("SPAQL-R", [50.0, 90.0]), record("Fitted Q", [95.0]), record("Sarsa(λ)", [60.0, 80.0])]
    assert yardsticks.leads(made, (5000, 10_000)).theirs.tolist() == [95.0, 95.0]
    assert yardsticks.leads([*made, record("SAC", [70.0])], (10_000,), ("SAC",)).theirs.tolist() == [70.0]


def test_a_better_mean_of_few_agents_hides_no_loss():
    made = [record("SPAQL-R", [50.0 + agent % 2], agent) for agent in range(20)]
    made += [record("Tiles, replayed", [60.0 + agent % 2], agent) for agent in range(20)]
    made += [record("Fitted Q", [reward], agent) for agent, reward in enumerate((20.0, 150.0))]
    (found,) = yardsticks.leads(made, (5000,)).itertuples()
    assert (found.rival, found.told) == ("Tiles, replayed", True)


def test_an_agent_that_misses_the_level_needs_for_ever(monkeypatch, tmp_path):
    (tmp_path / "seconds.json").write_text(
        '{"environment": {"CartPole-v1": 0.1}, "agents": ['
        '{"algorithm": "PPO", "system": "CartPole-v1", "samples": 9000, "seconds": 3.21, "reached": true},'
        '{"algorithm": "DQN", "system": "CartPole-v1", "samples": 9000, "seconds": 3.21, "reached": false}]}'
    )
    monkeypatch.setattr(tables, "default_store", lambda: tmp_path)
    frame = tables.seconds_table(tables.load_seconds(), "", "tab").frame.set_index("")
    assert frame.iloc[:, 0].tolist() == ["–", "3.2 s (9)", "0.1 s (100)"]
