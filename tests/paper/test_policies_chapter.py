"""What the chapter on policies says beside its figures: of made-up data, and of our stored run."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from spaql import SPAQL, SPAQLTS
from spaql.paper.audit.robustness import robustness
from spaql.paper.book import policies as told
from spaql.paper.book.pages import stored
from spaql.paper.frames import best
from spaql.paper.runs.network import trpo_network
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.stored_trees import PUBLISHED, simplified
from spaql.policies.interval import Interval
from spaql.policies.play import trajectories
from spaql.policies.rescore import rescore
from spaql.policies.settled import share_settled
from spaql.policies.tree import LEAF

ROOT = Path(__file__).parents[2]
NOTEBOOK = json.loads((ROOT / "notebooks" / "07_policies.ipynb").read_text(encoding="utf-8"))
PENDULUM, CARTPOLE = "Pendulum-v1", "CartPole-v0"


def prose():
    cells = ("".join(cell["source"]) for cell in NOTEBOOK["cells"] if cell["cell_type"] == "markdown")
    return " ".join(" ".join(cells).split())


def changes(rows):
    frame = pd.DataFrame(rows, columns=["policy", "change", "value", "mean"])
    return frame.assign(low=frame["mean"] - 1, high=frame["mean"] + 1)


def curve(returns, half=1.0):
    rows = [("SPAQL", leaves, mean, mean - half, mean + half) for leaves, mean in returns.items()]
    return pd.DataFrame(rows, columns=["algorithm", "leaves", "return", "low", "high"])


def test_every_figure_has_a_sentence_that_says_what_it_shows():
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    drawn = [i for i, cell in enumerate(code) if "figure" in cell["metadata"].get("mystnb", {})]
    assert len(drawn) == 12
    for i in drawn:
        assert "**We see:**" in "".join(code[i + 1]["source"]), code[i]["id"]


def test_the_policy_that_a_change_sets_back_is_named_with_the_others():
    two = [("TRPO, 9 weights", "length", 1.0, 200), ("TRPO, 9 weights", "length", 2.0, 27)]
    two += [("small tree, 3 leaves", "length", value, 200) for value in (1.0, 2.0)]
    noisy = [("TRPO, 9 weights", "noise", value, 200) for value in (0.0, 0.1)]
    noisy += [("small tree, 3 leaves", "noise", 0.0, 200), ("small tree, 3 leaves", "noise", 0.1, 130)]
    text = told.under_changes(changes(two + noisy))
    assert text.startswith("which of them stands a change best depends on the change. ")
    assert "At 2 times the usual length, the small tree earns 200 and TRPO 27." in text
    assert "With noise of standard deviation 0.1, TRPO earns 200 and the small tree 130." in text
    assert "falls behind" not in text  # nobody leads on the usual system
    assert told.under_changes(changes(noisy)).startswith("where a change sets them furthest apart, TRPO earns the most")
    assert told.under_changes(changes([*noisy[:3]])) == "no change makes a difference to any of them."


def test_a_leader_that_falls_behind_is_named():
    rows = [("TRPO", "noise", 0.0, -100), ("small tree", "noise", 0.0, -400)]
    rows += [("TRPO", "mass", 2.0, -900), ("small tree", "mass", 2.0, -600)]
    text = told.under_changes(changes(rows))
    assert "On the usual system, TRPO earns −100 and the small tree −400." in text
    assert text.endswith("TRPO falls behind at 2 times the usual mass, where the small tree earns −600 and TRPO −900.")


def test_the_best_size_is_named_and_whether_it_lies_inside():
    network = Interval(-100.0, -105.0, -95.0)
    text = told.sizes(curve({1: -900, 12: -200, 24: -300, 90: -400}), network)
    assert text.startswith("the best trees are neither the smallest nor the largest. ")
    assert "the best, with 12 leaves, earns −200 [−201, −199], the largest of the search, with 24, −300" in text
    assert "and the full policy, with 90, −400 [−401, −399]. TRPO's network earns −100 [−105, −95]." in text
    for other in ({1: -900, 12: -300, 24: -200, 90: -400}, {1: -900, 12: -300, 24: -301, 90: -100}):
        assert "neither" not in told.sizes(curve(other), network)


def test_the_smallest_tree_that_solves_a_task_is_named_and_whether_more_leaves_help():
    network = Interval(200.0, 200.0, 200.0)
    text = told.solving_sizes(curve({1: 9, 3: 199, 8: 199, 90: 190}), network, 195.0)
    assert text.startswith("the task is solved by a tree from SPAQL with 3 leaves (199.0 [198.0, 200.0]). More leaves")
    assert "190.0 [189.0, 191.0] (SPAQL, 90 leaves)" in text
    assert "Some larger ones earn more." in told.solving_sizes(curve({3: 196, 8: 199, 90: 190}), network, 195.0)
    assert told.solving_sizes(curve({1: 9, 90: 190}), network, 195.0).startswith("no tree of the search solves")


def test_paths_are_told_by_where_they_end():
    def path(angles, speed=0.0):
        return np.stack((np.cos(angles), np.sin(angles), np.full(len(angles), speed)), axis=1)

    paths = [path(np.linspace(3, 0, 10).tolist() + [0.1] * 30), path([3.1] * 40), path([3.0, 0.0] * 20, 5.0)]
    text = told.path_ends(paths, [[3.0, 0.0], [3.1, 0.0], [-3.0, 0.0]])
    assert text == (
        "1 of the 3 episodes ends upright. The one from θ = 3.0 rad ends upright. The one from θ = 3.1 rad is never "
        "upright, and hangs at the end. The one from θ = −3.0 rad passes through upright, but does not stay there."
    )


def test_maps_are_told_by_their_cells_and_by_the_steps_of_episodes():
    policy = SPAQLTS(CARTPOLE, xi=20, seed=0).learn(100, 10).policy
    full = policy.tree()
    flipped = full._replace(low=np.where((full.feature == LEAF)[:, None], 1 - full.low, full.low),
                            high=np.where((full.feature == LEAF)[:, None], 3 - full.high, full.high))  # fmt: skip
    looked = {"x": "theta", "y": "theta_dot", "episodes": 20, "seed": 0}
    same, opposite = (told.map_and_tree(policy, full, tree, **looked) for tree in (full, flipped))
    assert "agree. They push in opposite directions on 0 % of the map, and in 0 % of the steps of 20 episodes" in same
    assert "show two different policies. They push in opposite directions on 100 % of the map, and in 100 %" in opposite
    assert "visits on average" in told.map_of_visits(policy, full, **looked)
    grown = SPAQL(PENDULUM, xi=4, seed=0).learn(20, 2).policy
    assert "Nm on average; between two places" in told.borders(grown, "theta", "theta_dot")
    assert told.cells_over_time([(20, grown)]).startswith(
        f"the partition has {len(grown.cells().best)} cells after 20 iterations."
    )


@pytest.fixture(scope="module")
def published():
    """The best agents' policies and trees that the chapter shows, by system and algorithm, and TRPO's networks."""
    long, trpo, found, networks = stored("long"), stored("trpo"), {}, {}
    for system, algorithm in ((CARTPOLE, "SPAQL-TS"), (PENDULUM, "SPAQL-TS"), (PENDULUM, "SPAQL")):
        job = best([r for r in long if (r.job.system, r.job.algorithm) == (system, algorithm)]).job
        policy = retrain(job).policy
        target = 195.0 if system == CARTPOLE else None
        found[system, algorithm] = policy, simplified(job, policy, [default_store()], target=target, **PUBLISHED)
        group = [r for r in trpo if (r.job.system, r.job.algorithm) == (system, "TRPO")]
        networks[system] = trpo_network(best(group).job)
    return found, networks


@pytest.mark.slow
def test_the_map_and_the_small_tree_of_cartpole_are_two_policies_that_both_solve_it(published):
    policy, simple = published[0][CARTPOLE, "SPAQL-TS"]
    assert simple.fresh.mean == simple.full_fresh.mean == 200
    assert "both keep the pole up in every fresh episode" in prose()
    shown = told.map_points(policy, "theta", "theta_dot")
    seen = told.states_seen(simple.full, policy, 200, 1)
    assert told.differ(simple.full, simple.tree, shown) > 0.4
    assert 0.1 < told.differ(simple.full, simple.tree, seen) < 0.3
    leans = [group[group[:, 2] < 0] for group in (shown, seen)]
    right = [np.mean(simple.full.value[simple.full.apply(group)] == 1) for group in leans]
    assert right[0] == 0  # the map's slice pushes left wherever the pole leans left
    assert right[1] > 0.3  # at other places and speeds of the cart the same policy does not


@pytest.mark.slow
def test_the_agent_on_pendulum_hangs_from_near_the_lowest_point(published):
    simple = published[0][PENDULUM, "SPAQL"][1]
    paths = trajectories(simple.full, PENDULUM, [[3.1, 0.0], [-1.5, 0.5], [2.0, -1.0]])
    text = told.path_ends(paths, [[3.1, 0.0], [-1.5, 0.5], [2.0, -1.0]])
    assert "θ = 3.1 rad is never upright, and hangs at the end." in text
    assert text.startswith("1 of the 3")
    angles = np.linspace(-np.pi, np.pi, 1001)
    many = trajectories(simple.full, PENDULUM, np.stack((angles, np.zeros(1001)), axis=1))
    upright = np.array([told.path_ends([path], [[0.0, 0.0]]).startswith("1") for path in many])
    low = np.abs(angles) > 2.8
    assert upright[low].mean() < upright[~low].mean() - 0.1
    assert "fewer of its episodes end upright from near the lowest point than from elsewhere" in prose()
    shares = [share_settled(tree, PENDULUM, 1000, 0, deterministic=True) for tree in (simple.tree, simple.full)]
    assert shares[0] > 0.99 > 0.7 > shares[1]


@pytest.mark.slow
def test_trade_offs_and_the_table_are_of_different_fresh_episodes(published):
    simple = published[0][PENDULUM, "SPAQL"][1]
    (full,) = rescore(simple.curve[-1:], PENDULUM, 1000, 2)
    assert full.mean != simple.full_fresh.mean
    assert full.low < simple.full_fresh.mean < full.high
    captions = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("caption", "") for cell in NOTEBOOK["cells"]]
    assert any("other fresh ones than those of" in caption for caption in captions)


@pytest.mark.slow
def test_the_published_run_shows_what_the_chapter_says_of_changed_systems(published):
    found, networks = published
    means = {}
    for system in (CARTPOLE, PENDULUM):
        simple = found[system, "SPAQL-TS"][1]
        given = {"exact": simple.full, "small": simple.tree, "TRPO": networks[system]}
        frame = robustness(given, system, factors=(0.5, 1, 1.5, 2), noises=(0, 0.1, 0.2), episodes=300)
        means[system] = frame.set_index(["change", "value", "policy"])["mean"]
    cart, pendulum = means[CARTPOLE], means[PENDULUM]
    assert cart["length", 2, "exact"] == cart["length", 2, "small"] == 200 > 100 > cart["length", 2, "TRPO"]
    for noise in (0.1, 0.2):
        assert cart["noise", noise, "TRPO"] > cart["noise", noise, "small"] > cart["noise", noise, "exact"]
    assert "with noise the network is the best and the exact policy the worst" in prose()
    assert pendulum["length", 0.5, "TRPO"] > pendulum["length", 1, "TRPO"]
    for tree in ("exact", "small"):
        assert pendulum["length", 0.5, tree] < pendulum["length", 1, tree] - 500
    for length in (1.5, 2):
        assert max(given, key=lambda name: pendulum["length", length, name]) == "small"
    assert "both trees collapse on a pendulum of half the length" in prose()
