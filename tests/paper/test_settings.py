"""Settings that the paper never varies, dummy observations, and both ends of a search."""

import math

import numpy as np
import pytest

from spaql.paper.audit import ends, settings
from spaql.paper.audit.kept import load_kept
from spaql.paper.runs.dummies import DUMMIES, WithDummies
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import BOTH, LEARNERS, LONG_XI, Control, settings_of, study, xi_of_theory
from spaql.spaces import standardise
from spaql.systems import compiled_world, make_env, reset, room, space_of, step


def test_the_xi_of_theory_by_hand():
    assert xi_of_theory(200, 2000) == pytest.approx(2 * math.sqrt(8e6 * math.log(16e6)))
    assert xi_of_theory(1, 1, p_fail=4 / math.e, L=2) == pytest.approx(2 + 8)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("system", BOTH)
def test_every_setting_is_one_change(system, name):
    for xi, control in settings_of(name, system, 2000).values():
        assert (xi != LONG_XI[system][name]) + len(control.parameters) == 1
        assert control.rules == Control().rules


def test_the_jobs_of_a_study_find_their_settings_again():
    jobs = study("settings")
    named = {(*settings.setting_of(job), job.algorithm) for job in jobs}
    assert len(named) == len({job.group() for job in jobs})
    assert {settings.setting_of(job)[1] for job in settings.unchanged_jobs()} == {settings.UNCHANGED}


@pytest.mark.parametrize("system", DUMMIES)
def test_dummies_are_drawn_evenly_and_the_twin_has_their_bits(system):
    env = make_env(system)
    space = space_of(env)
    model = (world := compiled_world(env, space, seed=5)).model
    state, x, y, rng = room(model), np.empty(len(space.centre)), np.empty(len(space.centre)), np.random.default_rng(0)
    seen = []
    for start, seed in zip(world.starts(3), (5, None, None), strict=True):
        reset(model, state, start, x)
        observation, _ = env.reset(seed=seed)
        for _ in range(200):
            standardise(space, np.asarray(observation, float), y)
            assert np.array_equal(x, y)
            seen.append(x[3:].copy())
            action = rng.uniform(-1, 1, 1)
            observation, reward, *_ = env.step((2 * action).astype(np.float32))
            assert step(model, state, action, x) == (reward, False)
    assert isinstance(env.unwrapped, WithDummies)
    assert np.abs(np.mean(seen, axis=0)).max() < 0.1
    assert np.var(seen, axis=0) == pytest.approx(1 / 3, abs=0.05)


@pytest.fixture(scope="module")
def found():
    return load_kept("ends", part="cells").set_index(["system", "algorithm", "returns", "temperature"])


def test_the_best_of_the_paper_s_own_search_is_the_stored_agent(found):
    """An agent of the study of both ends is the long runs' or the controls', whose fresh episodes it repeats."""
    jobs = [job for job in settings.unchanged_jobs() if job.algorithm in ends.SEARCHERS]
    records, missing = load_stored(jobs, default_store(), repair=False)
    assert not missing
    for job, record in records.items():
        best = found.best[job.system, job.algorithm, "yes", "rises"]
        if job.agent < len(best):
            assert best[job.agent] == pytest.approx(record.fresh[0], abs=1e-4)


def test_returns_and_heat_lose_what_spaql_learns_on_pendulum_and_returns_are_its_search_on_cartpole(found):
    means = found.map(np.mean)
    pendulum, cartpole = means.loc["Pendulum-v1", "SPAQL"], means.loc["CartPole-v0", "SPAQL"]
    assert (pendulum.loc["no", "constant"] > pendulum.drop(("no", "constant")).max() + 150).all()
    assert (means.best > means["last"]).all()  # handing over the best costs nothing
    assert cartpole.loc["yes"].min().min() > cartpole.loc["no"].max().max()
    assert cartpole.best["yes"].min() > cartpole.best["no"].max() + 50


def test_spaql_ts_learns_on_cartpole_alone(found):
    means = found.map(np.mean)
    pendulum, cartpole = means.loc["Pendulum-v1", "SPAQL-TS"], means.loc["CartPole-v0", "SPAQL-TS"]
    assert cartpole["last"]["no", "constant"] > cartpole["last"].drop(("no", "constant")).max() + 30
    assert pendulum.loc["no"].max().max() < pendulum.loc["yes"].min().min() - 50


def test_dimensions_cost_and_the_xi_of_theory_makes_pendulum_a_bandits(found):
    frame = settings.stored_settings().set_index(["system", "setting", "algorithm"])
    fresh = frame.fresh["Pendulum-v1"]
    for name in ("SPAQL", "SPAQL-TS", "SPAQL-R"):
        assert fresh["1 dummy", name] < fresh[settings.UNCHANGED, name] - (5 if name == "SPAQL-R" else 50)
        assert fresh["3 dummies", name] < fresh["1 dummy", name] - 50
    level = fresh[settings.UNCHANGED, "Random"]
    assert all(fresh[name, "AQL"] < level + 10 for name in ("1 dummy", "2 dummies", "3 dummies", "ξ of theory"))
    assert fresh["ξ of theory", "SPAQL"] < fresh[settings.UNCHANGED, "SPAQL"] - 150
    settled = frame[(frame.p_holm < 0.05) & (frame.agents > 10)]
    assert {setting for _, setting, _ in settled.index} == {"ξ of theory", "tau_min = 0.1", "slopes × 100", "lam = 2.4"}
