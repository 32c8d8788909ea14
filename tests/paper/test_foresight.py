"""The runs on the small problems: what the chapter says of them, and that they can be made again."""

import numpy as np
import pytest

from spaql.paper.audit import foresight
from spaql.paper.audit.kept import load_kept


@pytest.fixture(scope="module")
def small():
    return load_kept("foresight", part="small").set_index(["system", "method"])


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


def test_the_ambulance_is_myopic_and_oil_is_not(small):
    means = small.fresh.map(np.mean).unstack()
    best, myopic = small.best.xs("AQL", level="method"), small.myopic.xs("AQL", level="method")
    ambulances = [system for system in foresight.BORN if "Ambulance" in system]
    oils = [system for system in foresight.BORN if "Oil" in system]
    assert (len(ambulances), len(oils)) == (9, 8)
    assert best[ambulances].tolist() == pytest.approx(myopic[ambulances].tolist(), abs=1e-9)
    behind = means.loc[ambulances, "AQL"] - means.loc[ambulances, "bandit, last kept"]
    assert behind[["Shifting" not in system for system in ambulances]].max() < 0.02
    assert behind.nlargest(2).index.tolist() == ["spaql/AmbulanceShifting0-v0", "spaql/AmbulanceShifting25-v0"]
    near = (myopic[oils] / best[oils] > 0.9).to_dict()
    assert [system for system in oils if near[system]] == ["spaql/OilQuadratic1-v0"]
    far = [system for system in oils if not near[system]]
    assert (means.loc[far, ["SPAQL, last kept", "bandit, last kept"]].max(axis=1) < 0.9 * means.loc[far, "AQL"]).all()
    assert (means.loc[list(foresight.BORN), "bandit"] > means.loc[list(foresight.BORN), "SPAQL"] - 0.02).all()


def test_a_policy_that_does_not_depend_on_time_costs_nothing():
    for row in load_kept("foresight", part="time").to_dict("records"):
        assert 0 <= row["with"] - row["without"] < 1e-3


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
