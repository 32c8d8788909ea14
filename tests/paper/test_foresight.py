"""The runs on the small problems: what the chapter says of them, and that they can be made again."""

import numpy as np
import pytest

from spaql.paper.audit import foresight


@pytest.fixture(scope="module")
def small():
    return foresight.load_foresight("small").set_index(["system", "method"])


def slope(row):
    half = len(row.regret) // 2
    return (row.regret[-1] - row.regret[half]) / (row.iteration[-1] - row.iteration[half])


@pytest.mark.parametrize("system", foresight.TWO_STEPS)
def test_without_foresight_regret_grows_as_the_theorem_says(small, system):
    gap = small.best[system, "AQL"] - small.myopic[system, "AQL"]
    assert slope(small.loc[system, "SPAQL, last kept"]) == pytest.approx(gap, abs=0.02)
    assert np.mean(small.fresh[system, "SPAQL, last kept"]) == pytest.approx(small.myopic[system, "AQL"], abs=0.02)
    assert 0.5 < slope(small.loc[system, "SPAQL"]) < gap
    for learns in ("AQL", "zero at the end", "shrinking cap"):
        assert slope(small.loc[system, learns]) < 0.03


def test_regrets_by_hand(monkeypatch):
    monkeypatch.setattr(foresight, "K", 3)
    found = foresight.regrets([np.array([0.5, 1.0, 1.0]), np.array([0.0, 0.5, 1.0])], best=1.0)
    assert found["iteration"] == [1, 2, 3]
    assert found["regret"] == [0.75, 1.0, 1.0]
    assert found["half"] == pytest.approx([1.96 * 0.25 / 2**0.5, 1.96 * 0.5 / 2**0.5, 1.96 * 0.5 / 2**0.5], abs=1e-3)


@pytest.mark.long
def test_an_agent_is_made_again_to_the_last_digit(small):
    row = small.loc["spaql/TwoStep1-v0", "zero at the end"]
    agent = foresight.trained("spaql/TwoStep1-v0", "zero at the end", row.xi, 3)
    assert round(foresight.afresh(agent), 4) == row.fresh[3]
