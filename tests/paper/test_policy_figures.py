"""Pictures of policies: that they show what the agents do."""

import numpy as np
import pandas as pd
import pytest

from spaql import SPAQL, SPAQLR, SPAQLTS
from spaql.hooks import snapshots
from spaql.policies.play import trajectories

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from spaql.paper.figures import policies as figures
from spaql.paper.labels import STYLES


@pytest.fixture(scope="module")
def pendulum():
    return SPAQL("Pendulum-v1", xi=4, seed=1).learn(100, 5)


@pytest.fixture(scope="module")
def cartpole():
    return SPAQLTS("CartPole-v0", xi=4, seed=1).learn(100, 5)


def picture(figure):
    """The numbers of a map, row by row from below, with the middles of its points."""
    image = figure.axes[0].images[0]
    left, right, bottom, top = image.get_extent()
    field = np.asarray(image.get_array())
    steps = [
        (np.arange(n) + 0.5) / n * (high - low) + low
        for n, low, high in zip(field.shape[::-1], (left, bottom), (right, top), strict=True)
    ]
    return field, *steps


def test_a_map_over_the_pendulums_angle_shows_the_agents_torque(pendulum):
    field, theta, speed = picture(figures.policy_map(pendulum.policy, "theta", "theta_dot"))
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(speed), 500), rng.integers(0, len(theta), 500)
    points = np.stack((np.cos(theta[j]), np.sin(theta[j]), speed[i]), axis=1)
    assert np.allclose(field[i, j], pendulum.predict(points, deterministic=True)[0][:, 0])
    assert len(np.unique(field)) > 3


def test_a_slice_holds_the_other_variables_where_told(cartpole):
    policy = cartpole.policy
    at = {"x": 1.0, "theta_dot": -0.5}
    field, theta, speed = picture(figures.policy_map(policy, "theta", "x_dot", at=at, limits={"x_dot": (-300, 300)}))
    rng = np.random.default_rng(0)
    i, j = rng.integers(0, len(speed), 500), rng.integers(0, len(theta), 500)
    points = np.stack((np.full(500, 1.0), speed[i], theta[j], np.full(500, -0.5)), axis=1)
    assert np.array_equal(field[i, j] > 0, cartpole.predict(points, deterministic=True)[0] == 1)
    assert speed[-1] > 299


def test_each_of_several_actuators_has_a_map():
    policy = SPAQLR("Tanks-v0", seed=0).learn(samples=2000).policy
    for what, place in (("action", 0), ("pump_1", 0), ("pump_2", 1)):
        figure = figures.policy_map(policy, "level_1", "level_2", what=what)
        field = figure.axes[0].images[0].get_array()
        across, up = figures.grid_points(np.linspace(0, 1, 481), np.linspace(0, 1, 481))
        actions = policy.tree().predict(np.stack((across, up), axis=1))[0]
        assert np.allclose(field.ravel(), actions[:, place])
        assert figure.axes[1].get_ylabel() == f"pump_{place + 1} (m³/s)"
    assert policy.table().attrs["units"]["centre_pump_2"] == "m³/s"


@pytest.mark.parametrize("what", ["action", "q", "visits", "depth"])
def test_maps_show_all_quantities_with_axes_in_units(cartpole, pendulum, what):
    for agent, pair in ((cartpole, ("theta", "theta_dot")), (pendulum, ("cos_theta", "theta_dot"))):
        policy = agent.policy
        figure = figures.policy_map(policy, *pair, what=what)
        assert "rad/s" in figure.axes[0].get_ylabel()
        field, across, up = picture(figure)
        if what != "action":
            points = np.zeros((1, len(policy.variables.observed)))
            points[0, list(policy.variables.observed).index(pair[0])] = across[7]
            points[0, list(policy.variables.observed).index(pair[1])] = up[9]
            assert field[9, 7] == pytest.approx(policy.find(points)[what][0])
        figure.canvas.draw()


def test_a_map_reaches_from_end_to_end_of_its_variables():
    policy = SPAQL("MountainCar-v0", xi=4, seed=0).learn(20, 2).policy
    figure = figures.policy_map(policy, "x", "x_dot")
    assert figure.axes[0].images[0].get_extent() == [-1.2, 0.6, -0.07, 0.07]
    assert figure.axes[0].get_xlabel() == "$x$"  # it has no unit


def test_the_two_links_have_a_map_over_an_angle_and_paths_upon_it():
    policy = SPAQL("Acrobot-v1", xi=4, seed=0, horizon=50).learn(5, 1).policy
    figure = figures.policy_map(policy, "theta_1", "theta_1_dot")
    assert figure.axes[0].images[0].get_extent() == pytest.approx([-np.pi, np.pi, -4 * np.pi, 4 * np.pi])
    assert figure.axes[0].get_xlabel() == r"$\theta_1$ (rad)"
    (path,) = trajectories(policy.tree(), "Acrobot-v1", [[0.1, -0.2, 0.3, 0.4]])
    assert path[0] == pytest.approx([np.cos(0.1), np.sin(0.1), np.cos(0.2), -np.sin(0.2), 0.3, 0.4], abs=1e-6)
    figures.phase_portrait(policy, [path], "theta_1", "theta_1_dot").canvas.draw()


def test_a_car_starts_with_the_speed_it_is_given():
    for system in ("MountainCar-v0", "MountainCarContinuous-v0"):
        policy = SPAQL(system, xi=4, seed=0).policy
        (path,) = trajectories(policy.tree(), system, [[-0.3, 0.05]])
        assert path[0] == pytest.approx([-0.3, 0.05], abs=1e-6)


def test_a_system_that_nobody_described_has_plain_names():
    policy = SPAQL("Drift-v0", xi=4, seed=0).policy
    figure = figures.policy_map(policy, "observation_0", "observation_1", limits={"observation_1": (-2, 3)})
    assert figure.axes[0].get_xlabel() == "observation_0"
    assert figure.axes[0].get_ylim() == (-2, 3)
    figures.draw_tree(policy.tree()).canvas.draw()
    with pytest.raises(ValueError, match="observation_1"):
        figures.policy_map(policy, "theta", "observation_0")


def test_colours_can_be_told_apart_in_grey():
    def grey(colours):
        return colours(np.linspace(0, 1, 5))[:, :3] @ [0.2126, 0.7152, 0.0722]

    assert np.all(np.diff(grey(figures.COLOURS)) > 0.1)
    signed = grey(figures.SIGNED)  # darker on both sides of the middle, and the ends not equally dark
    assert np.all(np.diff(signed[:3]) > 0.1)
    assert np.all(np.diff(signed[2:]) < -0.1)
    assert abs(signed[0] - signed[-1]) > 0.1


def test_no_torque_has_a_neutral_colour_and_nothing_is_drawn_over_the_borders(pendulum):
    figure = figures.policy_map(pendulum.policy, "theta", "theta_dot")
    image = figure.axes[0].images[0]
    red, green, blue, _ = image.cmap(image.norm(0.0))
    assert max(red, green, blue) - min(red, green, blue) < 0.02
    assert min(red, green, blue) > 0.9
    assert not any(line.get_visible() for line in figure.axes[0].get_xgridlines() + figure.axes[0].get_ygridlines())
    visits = figures.policy_map(pendulum.policy, "theta", "theta_dot", what="visits").axes[0].images[0]
    assert visits.cmap.name == "cividis"


def test_a_policy_of_an_algorithm_has_the_algorithms_colour_in_every_figure():
    names = ["SPAQL-TS, 118 leaves", "small tree, 3 leaves", "TRPO, 1,282 weights"]
    of_ts, other, of_trpo = figures.styles_of(names)
    assert (of_ts, of_trpo) == (STYLES["SPAQL-TS"], STYLES["TRPO"])
    assert other not in STYLES.values()
    with pytest.raises(ValueError, match="styles for"):
        figures.styles_of(map(str, range(9)))


def test_a_change_that_changes_nothing_has_no_panel():
    def rows(change, values):
        return [{"change": change, "policy": "TRPO", "value": x, "mean": y, "low": y, "high": y} for x, y in values]

    frame = pd.DataFrame(rows("mass", [(0.5, 200.0), (1, 199.9)]) + rows("length", [(1, 200.0), (2, 27.0)]))
    assert [axes.get_title(loc="left") for axes in figures.robustness_curves(frame).axes] == ["Length"]


def test_no_snapshot_is_taken_of_the_past():
    agent = SPAQL("CartPole-v0", xi=4, seed=0).learn(5, 2)
    with pytest.raises(ValueError, match="already"):
        snapshots(agent, [3])


def test_the_policy_of_a_snapshot_is_that_of_an_agent_trained_in_one_go():
    (_, policy), *_ = snapshots(SPAQL("CartPole-v0", xi=4, seed=0), [20, 30], 2)
    assert policy.table().equals(SPAQL("CartPole-v0", xi=4, seed=0).learn(20, 2).policy.table())


def test_a_phase_portrait_begins_and_ends_where_the_episodes_do(pendulum, cartpole):
    policy = pendulum.policy
    paths = trajectories(policy.tree(), "Pendulum-v1", [[3.0, 1.0], [-2.0, 0.0]])
    assert [len(path) for path in paths] == [200, 200]
    assert paths[0][0] == pytest.approx([np.cos(3.0), np.sin(3.0), 1.0], abs=1e-6)
    figure = figures.phase_portrait(policy, paths, "theta", "theta_dot")
    marks = [line.get_xydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert np.allclose(marks, [[3.0, 1.0], [-2.0, 0.0]], atol=1e-6)
    lines = [line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "None"]
    assert all(np.all(np.abs(np.diff(line)) < np.pi) for line in lines)
    figure.canvas.draw()
    paths = trajectories(cartpole.policy.tree(), "CartPole-v0", [0.0, 0.0, 0.01, 0.0])
    figures.phase_portrait(cartpole.policy, paths, "theta", "theta_dot").canvas.draw()


def test_a_drawn_tree_has_one_box_per_node_and_no_box_upon_another(cartpole):
    tree = cartpole.policy.simplify(target=195, leaves=5, proposals=20, episodes=20, fresh=50).tree
    figure = figures.draw_tree(tree)
    figure.canvas.draw()
    texts = [text for text in figure.axes[0].texts if text.get_bbox_patch().get_boxstyle().pad > 0.3]
    texts = [text for text in texts if text.get_text() not in ("yes", "no")]
    assert len(texts) == len(tree.feature)
    boxes = [text.get_window_extent() for text in texts]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert any("N" in text.get_text() for text in texts)


def test_wrong_names_are_said(pendulum):
    policy = pendulum.policy
    with pytest.raises(ValueError, match="cos_theta"):
        figures.policy_map(policy, "angle", "theta_dot")
    with pytest.raises(ValueError, match="two different"):
        figures.policy_map(policy, "theta", "theta")
    with pytest.raises(ValueError, match="what must be"):
        figures.policy_map(policy, "theta", "theta_dot", what="value")
