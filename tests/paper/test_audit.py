"""What chapter 6 measures, by hand."""

import numpy as np
import pandas as pd
import pytest

from spaql.paper.chapters.audit import rule_effects
from spaql.paper.engine.job import columns_of
from spaql.paper.engine.outcomes import of_longer
from spaql.paper.engine.study import LONG_XI, SWITCHES, make_jobs


def test_what_a_rule_changes_is_compared_agent_by_agent():
    earned = np.random.default_rng(0).normal(100, 1, 20)

    def agents(rule, rewards, arms=10, xi=LONG_XI["CartPole-v0"]["SPAQL"]):
        jobs = make_jobs("SPAQL", "CartPole-v0", xi, agents=20, iterations=3, evaluations=100, rules=SWITCHES[rule])
        return pd.DataFrame(map(columns_of, jobs)).assign(rewards=rewards, fresh=rewards, arms=arms)

    ties = agents("ties", earned + 10 + np.linspace(-0.1, 0.1, 20), arms=30)
    others = agents("normalisation", earned), agents("ties", earned + 99, xi=0.0)  # the last is no long run
    frame = rule_effects(pd.concat([ties, agents("paper", earned)[::-1], *others])).set_index(["rule", "quantity"])
    assert len(frame) == 6
    found = frame.loc["ties", "rewards"]
    assert found.difference == pytest.approx(10)
    assert 9.9 < found.low < 10 < found.high < 10.1  # among agents the standard deviation is 1
    assert frame.loc["ties", "arms"].difference == 20
    same = frame.loc["normalisation", "rewards"]
    assert (same.difference, same.low, same.high, same.p_holm) == (0, 0, 0, 1)


def test_of_the_episodes_that_hold_the_pole_some_go_on():
    found = of_longer(np.array([30.0, 200, 500, 2000]))
    assert found == {"reach_500": pytest.approx(2 / 3), "reach_2000": pytest.approx(1 / 3)}
    assert of_longer(np.array([30.0])) == {}
