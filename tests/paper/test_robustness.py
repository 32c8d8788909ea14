"""Networks against Stable-Baselines3, changed systems against Gymnasium, and the pictures of both."""

import dataclasses
import itertools
import logging
import subprocess
import sys

import numpy as np
import pytest

from spaql import SPAQL, SPAQLTS, archive
from spaql.paper.audit import robustness as robust
from spaql.paper.audit.robustness import changed, robustness, run_network
from spaql.paper.figures import policies as figures
from spaql.paper.frames import best
from spaql.paper.runs import network as networks
from spaql.paper.runs import provenance, store
from spaql.paper.runs.batch import begin_batch, step_batch
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.network import Network, load_network, network_of, network_path, policy_network
from spaql.paper.runs.runner import load_stored
from spaql.paper.studies import study
from spaql.policies.interval import Interval
from spaql.policies.play import run_tree, world_of
from spaql.policies.simplify import Size
from spaql.policies.tree import LEAF, Tree, variables_of
from spaql.rules import HISTORY
from spaql.systems import make_env, space_of
from tests.conftest import same_sines

SYSTEMS = {"Pendulum-v1": (3, 1), "CartPole-v0": (4, 2)}  # numbers of inputs and outputs
JOBS = {system: Job("TRPO", system, 0.0, 1, 1, 5, 0, fresh=2) for system in SYSTEMS}


def random_network(system, seed=0, scale=0.5):
    """A network of the trained ones' shape."""
    rng = np.random.default_rng(seed)
    sizes = (SYSTEMS[system][0], 32, 32, SYSTEMS[system][1])
    kernels = tuple(rng.normal(scale=scale, size=shape).astype(np.float32) for shape in itertools.pairwise(sizes))
    biases = tuple(rng.normal(scale=scale, size=size).astype(np.float32) for size in sizes[1:])
    high = np.array([2.0] if system == "Pendulum-v1" else [], np.float32)
    return Network(kernels, biases, -high, high)


def constant_tree(env, standard):
    """A tree with one leaf, for an action of the standard space."""
    variables = variables_of(env)
    low = np.array([[float(standard)]])
    arrays = ([LEAF], [0.0], [LEAF], [LEAF])
    return Tree(*map(np.array, arrays), low, low + (variables.box is None), variables)


def constant_network(system, *outputs):
    """A network whose outputs are what its last bias is."""
    network = random_network(system)
    bias = np.array(outputs, np.float32)
    return network._replace(
        kernels=(*network.kernels[:-1], network.kernels[-1] * 0), biases=(*network.biases[:-1], bias)
    )


def play_gymnasium(policy, env, start):
    """The sum of rewards of an episode of Gymnasium's from a state."""
    env.reset(seed=0)
    inner = env.unwrapped
    inner.state = np.array(start)
    total, over = 0.0, False
    observation = inner._get_obs() if hasattr(inner, "_get_obs") else np.array(start, np.float32)
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy.predict(observation)[0])
        total += reward
        over = terminated or truncated
    return total


# ---------------------------------------------------------------------------------------------------------------------
# The network


@pytest.mark.long
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_network_does_what_the_agent_does(system):
    agent, _ = pytest.importorskip("spaql.paper.runs.sb3").train(JOBS[system])
    network = network_of(agent)
    scale = [1, 1, 8] if system == "Pendulum-v1" else [2.4, 3, 0.2, 3]
    points = np.random.default_rng(0).normal(scale=scale, size=(3000, len(scale))).astype(np.float32)
    actions, theirs = network.predict(points)[0], agent.predict(points, deterministic=True)[0]
    assert len(np.unique(theirs)) > 1
    assert (actions.shape, actions.dtype) == (theirs.shape, theirs.dtype)
    if system == "Pendulum-v1":
        assert np.allclose(actions, theirs, atol=1e-5)
    else:
        assert np.array_equal(actions, theirs)
    single = network.predict(points[7])[0], agent.predict(points[7], deterministic=True)[0]
    assert np.shape(single[0]) == np.shape(single[1])
    assert np.allclose(*single, atol=1e-5)
    inner = agent.policy
    layers = [*inner.mlp_extractor.policy_net.parameters(), *inner.action_net.parameters()]
    assert network.weights == sum(layer.numel() for layer in layers)


@pytest.mark.long
def test_sacs_network_does_what_the_agent_does():
    agent, looks = pytest.importorskip("spaql.paper.runs.sb3").train(Job("SAC", "Pendulum-v1", 0.0, 1, 5, 5, 0))
    network = network_of(agent)
    points = np.random.default_rng(0).normal(scale=[1, 1, 8], size=(1000, 3)).astype(np.float32)
    actions, theirs = network.predict(points)[0], agent.predict(points, deterministic=True)[0]
    assert np.ptp(theirs) > 1
    assert (actions.shape, actions.dtype) == (theirs.shape, theirs.dtype)
    assert np.allclose(actions, theirs, atol=1e-5)
    assert len(looks.means) == 1


def test_actions_stay_within_their_bounds():
    network = random_network("Pendulum-v1", scale=3.0)
    actions = network.predict(np.random.default_rng(0).normal(size=(500, 3)))[0]
    assert actions.min() == -2
    assert actions.max() == 2
    with pytest.raises(ValueError, match="NaN"):
        network.predict([0.0, np.nan, 0.0])


def test_a_network_is_stored_with_its_job_and_code_and_loaded_again(tmp_path, monkeypatch, caplog):
    job = JOBS["CartPole-v0"]
    network = random_network("CartPole-v0")
    rewards = np.array([20.0])
    calls = []
    monkeypatch.setattr(networks, "train_network", lambda job: calls.append(job) or (network, rewards))
    for _ in range(2):
        found = policy_network(job, tmp_path)
        for one, other in zip((*found.kernels, *found.biases), (*network.kernels, *network.biases), strict=True):
            assert np.array_equal(one, other)
        assert found.low.size == 0
    assert len(calls) == 1
    path = network_path(tmp_path, job)
    assert path == tmp_path / "policies" / "CartPole-v0-TRPO.npz"
    with pytest.raises(store.Damaged, match="another job"):
        policy_network(dataclasses.replace(job, agent=1), tmp_path)
    policy_network(dataclasses.replace(job, agent=1), None)
    assert len(calls) == 2
    monkeypatch.setitem(provenance.NUMERICS, "trpo", 99)
    with pytest.raises(store.Stale):
        load_network(path, job)
    policy_network(job, tmp_path)  # trains again, and says why
    assert len(calls) == 3
    assert "computes version 99" in caplog.text
    load_network(path, job)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(store.Damaged):
        policy_network(job, tmp_path)
    with pytest.raises(ValueError, match="algorithm"):
        policy_network(dataclasses.replace(job, algorithm="SPAQL"))


@pytest.mark.parametrize("same", [True, False])
def test_a_network_says_whether_its_training_is_the_records(tmp_path, monkeypatch, caplog, same):
    job = JOBS["Pendulum-v1"]
    history = np.zeros(1, HISTORY)
    history["rewards"] = -1000.0
    store.save_record(tmp_path, Record(job, history, np.zeros(4), np.zeros(0, np.float32), {}, 0.0))
    rewards = np.array([-1000.0 if same else np.nextafter(-1000.0, 0)])
    monkeypatch.setattr(networks, "train_network", lambda job: (random_network("Pendulum-v1"), rewards))
    with caplog.at_level(logging.WARNING):
        policy_network(job, tmp_path)
    assert ("not the stored one" in caplog.text) != same
    header, _ = archive.read(network_path(tmp_path, job), networks.FORMAT, networks.VERSION)
    assert header["rewards_are_the_records_bit_for_bit"] is same


def best_record(system):
    jobs = [job for job in study("trpo") if (job.algorithm, job.system) == ("TRPO", system)]
    records, missing = load_stored(jobs, provenance.default_store(), repair=False)
    assert not missing
    return best(records.values())


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_stored_networks_are_the_best_agents_and_earn_what_their_records_say(system):
    record = best_record(system)
    path = network_path(provenance.default_store(), record.job)
    network = load_network(path, record.job)
    header, _ = archive.read(path, networks.FORMAT, networks.VERSION)
    assert header["rewards_are_the_records_bit_for_bit"] is True
    assert network.weights == {"Pendulum-v1": 1217, "CartPole-v0": 1282}[system]
    frame = robust.robustness({"TRPO": network}, system, factors=[1], noises=[0], episodes=400, seed=1)
    mean, deviation = record.fresh[2:]  # under the deterministic policy
    assert np.allclose(frame["mean"], mean, atol=4 * deviation * np.sqrt(1 / 400 + 1 / 1000) + 1e-9)
    assert frame["mean"].nunique() == 1  # factors of one and no noise are the same episodes


def test_a_stored_network_needs_no_torch():
    job = best_record("CartPole-v0").job
    code = (
        "import sys; from spaql.paper.runs.job import Job; from spaql.rules import Rules;"
        "from spaql.paper.runs import network;"
        f"print(network.policy_network({job!r}).weights, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["1282", "False"], done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Changes


@same_sines
@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("factors", [{"mass": 2.0}, {"length": 0.5}, {"mass": 0.3, "length": 1.7}])
def test_a_changed_system_follows_gymnasiums_step_by_step(system, factors):
    env = changed(system, **factors)
    world = world_of(env, space_of(env))
    rng = np.random.default_rng(0)
    starts = rng.uniform(-0.05, 0.05, (1, 2 if system == "Pendulum-v1" else 4))
    states, observations = np.empty((1, world.system.numbers)), np.empty((1, SYSTEMS[system][0]))
    rewards, over, action = np.zeros(1), np.zeros(1, bool), np.zeros((1, 1))
    env.reset(seed=0)
    env.unwrapped.state = starts[0].copy()
    world.call(begin_batch, starts, states, observations)
    steps, ended = 0, False
    while steps < 200 and not ended:
        given = int(rng.integers(0, 2)) if system == "CartPole-v0" else rng.uniform(-2, 2, 1).astype(np.float32)
        action[:] = given
        observation, reward, ended, _, _ = env.step(given)
        world.call(step_batch, states, action, observations, rewards, over)
        steps += 1
        assert np.array_equal(observation, observations[0]), steps
        assert (rewards[0], over[0]) == (reward, ended)
    assert steps > 5


def test_a_change_is_what_it_says_and_leaves_other_systems_alone():
    cart, usual = changed("CartPole-v0", mass=2.0, length=3.0).unwrapped, make_env("CartPole-v0").unwrapped
    assert (cart.masspole, cart.length) == (2 * usual.masspole, 3 * usual.length)
    assert cart.masscart == usual.masscart
    assert cart.total_mass == cart.masscart + cart.masspole
    assert cart.polemass_length == cart.masspole * cart.length == pytest.approx(6 * usual.polemass_length)
    pendulum = changed("Pendulum-v1", mass=2.0, length=3.0).unwrapped
    assert (pendulum.m, pendulum.l) == (2.0, 3.0)
    for options in ({"mass": 0}, {"length": -1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            changed("Pendulum-v1", **options)
    with pytest.raises(ValueError, match="no pole or pendulum"):
        changed("MountainCar-v0", mass=2)


def test_links_are_changed_as_rigid_bodies_are():
    links, usual = changed("Acrobot-v1", mass=2.0, length=3.0).unwrapped, make_env("Acrobot-v1").unwrapped
    assert (links.LINK_MASS_1, links.LINK_MASS_2) == (2.0, 2.0)
    assert (links.LINK_LENGTH_1, links.LINK_COM_POS_1, links.LINK_COM_POS_2) == (3.0, 1.5, 1.5)
    assert links.LINK_MOI == 18 * usual.LINK_MOI  # m l²
    assert usual.LINK_MASS_1 == 1.0


def test_what_has_no_pole_is_tried_with_noise_alone():
    tree = SPAQL("MountainCar-v0", xi=1, seed=0).policy.tree()
    frame = robustness({"tree": tree}, "MountainCar-v0", noises=(0, 0.01), episodes=5, horizon=30)
    assert list(frame.change) == ["noise", "noise"]
    assert list(frame["mean"]) == [-30, -30]


@same_sines
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_network_earns_what_gymnasium_pays_it(system):
    env = changed(system, mass=1.5, length=0.8)
    network = random_network(system, seed=3)
    starts = np.random.default_rng(1).uniform(-0.05, 0.05, (4, 2 if system == "Pendulum-v1" else 4))
    rewards = run_network(network, env, starts, np.random.default_rng(0)).rewards
    # Rows of a batch may differ from single ones in a last bit of float32, which a pendulum keeps small.
    assert rewards == pytest.approx([play_gymnasium(network, env, start) for start in starts], rel=1e-4)
    assert len(np.unique(rewards)) > 1


@pytest.mark.parametrize(("system", "standard", "outputs"), [("Pendulum-v1", 0.25, (0.5,)), ("CartPole-v0", 1, (0, 1))])
def test_a_network_and_a_tree_that_do_the_same_earn_the_same(system, standard, outputs):
    tree, network = constant_tree(make_env(system), standard), constant_network(system, *outputs)
    frame = robust.robustness({"tree": tree, "network": network}, system, [0.5, 2], [0, 0.1], episodes=50, seed=4)
    means = frame.pivot(index=["change", "value"], columns="policy", values=["mean", "low", "high"])
    assert len(means) == 6
    for column in ("mean", "low", "high"):
        assert np.array_equal(means[column].tree, means[column].network)
    usual = frame.set_index(["change", "value"])["mean"]
    assert usual["mass", 0.5].iloc[0] != usual["mass", 2.0].iloc[0] != usual["length", 2.0].iloc[0]


def test_noise_reaches_both_kinds_of_policy_in_the_same_way():
    # Both push to the side the pole leans to; with noise in the angle they often push to the other.
    env = make_env("CartPole-v0")
    kernel = np.array([[0, 0], [0, 0], [-1, 1], [0, 0]], np.float32)
    network = Network((kernel,), (np.zeros(2, np.float32),), *np.zeros((2, 0), np.float32))
    low = np.array([[0.0], [0.0], [1.0]])
    arrays = ([2, LEAF, LEAF], [0.0] * 3, [1, LEAF, LEAF], [2, LEAF, LEAF])
    tree = Tree(*map(np.array, arrays), low, low + 1, variables_of(env))
    starts = np.random.default_rng(0).uniform(-0.05, 0.05, (4000, 4))

    def earned(noise):
        networks = run_network(network, env, starts, np.random.default_rng(1), noise).rewards.mean()
        return networks, run_tree(tree, env, starts, np.random.default_rng(2), noise=noise).rewards.mean()

    still, noisy = earned(0.0), earned(0.1)
    assert still[0] == still[1] == earned([1, 1, 0, 1])[0]  # only the angle is looked at
    assert abs(noisy[0] - noisy[1]) < 1.5
    assert abs(noisy[0] - still[0]) > 3


def test_wrong_numbers_are_refused():
    network = random_network("CartPole-v0")
    wrong = {"mass": {"factors": [0]}, "noise": {"noises": [-1]}, "episodes": {"episodes": 1}, "seed": {"seed": -1}}
    for name, options in wrong.items():
        with pytest.raises(ValueError, match=name):
            robust.robustness({"network": network}, "CartPole-v0", **options)


# ---------------------------------------------------------------------------------------------------------------------
# Pictures


def test_the_figure_shows_every_policy_in_every_panel():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")

    policies = {"TRPO": random_network("CartPole-v0"), "one leaf": constant_tree(make_env("CartPole-v0"), 1)}
    frame = robust.robustness(policies, "CartPole-v0", [0.5, 1, 2], [0, 0.1, 0.2], episodes=20)
    shown = ["mean", "low", "high"]
    frame[shown] = frame[shown].add(10 * frame.value, axis=0)  # a change that changes nothing has no panel
    figure = figures.robustness_curves(frame)
    figure.canvas.draw()
    assert len(figure.axes) == 3
    assert figure.get_figwidth() < 7
    for axes, change in zip(figure.axes, ("mass", "length", "noise"), strict=True):
        lines = {line.get_label(): line for line in axes.lines}
        for name in policies:
            rows = frame[(frame.policy == name) & (frame.change == change)]
            assert np.array_equal(lines[name].get_xydata(), rows[["value", "mean"]])
        assert change in axes.get_title(loc="left").lower()
        looks = {(lines[name].get_marker(), lines[name].get_linestyle()) for name in policies}
        assert len(looks) == 2


def test_the_trade_off_marks_the_full_policy_and_trpo():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")

    policy = SPAQLTS("CartPole-v0", xi=4, seed=1).learn(60, 5).policy
    found = policy.simplify(target=100, leaves=3, episodes=10, proposals=5, fresh=20)
    figure = figures.trade_off({"SPAQL-TS": found.curve}, (1282, Interval(198.0, 197.0, 199.0)))
    figure.canvas.draw()
    axes = figure.axes[0]
    lines = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert np.array_equal(lines["SPAQL-TS"], [(size.leaves, size.mean) for size in found.curve])
    assert np.array_equal(lines["SPAQL-TS, full policy"], [(found.full.leaves, found.curve[-1].mean)])
    assert set(lines["TRPO, 1,282 weights"][:, 1]) == {198.0}
    assert axes.get_xscale() == "log"
    alone = figures.trade_off({"SPAQL": [Size(1, 0.0, -1.0, 1.0, found.tree)]}, None)
    assert len(alone.axes[0].lines) == 2
    with pytest.raises(ValueError, match="styles"):
        figures.styles_of("abcdefgh")
