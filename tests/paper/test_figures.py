"""Figures and tables: that they show the numbers they are given, and can be told apart."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text

from spaql.paper import labels
from spaql.paper.figures import audit, domains, learning, style
from spaql.paper.frames import best, finals, histories
from spaql.paper.runs.retrain import replay, retrain
from spaql.paper.runs.runner import run
from spaql.paper.studies import study
from spaql.paper.tables import audit as audit_tables
from spaql.paper.tables import results, table
from spaql.policies.interval import Interval, paper_interval
from spaql.systems import make_env


@pytest.fixture(scope="module")
def records():
    jobs = [job for job in study("long", "smoke") if job.system == "CartPole-v0"]
    return run(jobs, store=None, progress_bar=False)


def test_colours_stay_apart_in_grey_or_by_their_lines():
    grey = {name: np.dot(to_rgb(style.colour), (0.2126, 0.7152, 0.0722)) for name, style in labels.STYLES.items()}
    names = list(grey)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            assert labels.STYLES[one].line != labels.STYLES[other].line
            assert labels.STYLES[one].marker != labels.STYLES[other].marker
            assert labels.STYLES[one].colour != labels.STYLES[other].colour
    # The three learners are in every figure: their greys differ too.
    learners = sorted(grey[name] for name in ("AQL", "SPAQL", "SPAQL-TS"))
    assert min(np.diff(learners)) > 0.03


# How a colour looks to readers without one of the three cones (Machado, Oliveira and Fernandes, 2009), in linear RGB.
EYES = {
    "all three": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def linear(colour):
    """A colour in linear RGB."""
    given = np.array(to_rgb(colour))
    return np.where(given <= 0.04045, given / 12.92, ((given + 0.055) / 1.055) ** 2.4)


def lab(colour, eyes):
    """A colour as such eyes see it, in CIE Lab, where distances are differences that one sees."""
    seen = np.clip(np.array(eyes) @ linear(colour), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = np.cbrt(xyz / (0.9505, 1, 1.089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_every_line_stands_out_from_white_paper():
    colours = [style.colour for style in labels.STYLES.values()] + [colour for _, colour in audit.MARKS.values()]
    for colour in colours:
        assert 1.05 / (linear(colour) @ (0.2126, 0.7152, 0.0722) + 0.05) >= 3, colour  # WCAG 1.4.11


@pytest.mark.parametrize("eyes", EYES)
def test_colours_stay_apart_for_colour_blind_readers(eyes):
    seen = {name: lab(style.colour, EYES[eyes]) for name, style in labels.STYLES.items()}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 20, (one, other)


def test_learning_curves_show_the_means_of_the_agents(records):
    figure = learning.learning_curves(histories(records))
    top, bottom = figure.axes
    lines = {line.get_label(): line for line in top.lines if not line.get_label().startswith("_")}
    lines = {name: line for name, line in lines.items() if name in ("Random", "AQL", "SPAQL", "SPAQL-TS")}
    assert len(lines) == 4
    behind = [line for line in top.lines if line.get_alpha()]
    assert len(behind) == len(records)  # one faint line per agent
    for name, line in lines.items():
        group = [record.history["rewards"] for record in records if record.job.algorithm == name]
        assert np.allclose(line.get_ydata(), np.mean(group, axis=0))
    assert bottom.get_yscale() == "log"
    assert "Random" not in {line.get_label() for line in bottom.lines}  # which has no arms


def test_an_iteration_of_trpo_counts_as_many_batches_as_it_has_samples():
    rows = [("TRPO", agent, k, 10.0 * k, 4000, 0) for agent in range(2) for k in (1, 2, 3)]
    rows += [("SPAQL", agent, k, 1.0 * k, 37, 5) for agent in range(2) for k in range(1, 61)]
    frame = pd.DataFrame(rows, columns=["algorithm", "agent", "iteration", "rewards", "steps", "arms"])
    top = learning.batches(frame).axes[0]
    x = {line.get_label(): line.get_xdata() for line in top.lines if not line.get_alpha()}
    assert list(x["TRPO"]) == [0, 20, 40]  # where the policy was that earned the reward, before the update
    assert list(x["SPAQL"]) == list(range(1, 61))
    assert len(learning.batches(frame).axes) == 2
    rows = [("SPAQL", agent, k, 1.0 * k, 37, 5) for agent in range(2) for k in range(1, 702)]
    whole, first, _ = learning.batches(pd.DataFrame(rows, columns=frame.columns)).axes
    assert whole.lines[-1].get_xdata()[-1] == 701
    assert first.lines[-1].get_xdata()[-1] == 300  # where a long run's lead is decided, without the agents
    assert not any(line.get_alpha() for line in first.lines)


def test_a_profile_shows_which_share_of_the_fresh_episodes_reaches_a_return(records):
    (axes,) = learning.fresh_profile(records).axes
    lines = {line.get_label(): line for line in axes.lines}
    earned = np.concatenate([record.rewards for record in records if record.job.algorithm == "SPAQL"])
    x, share = lines["SPAQL"].get_data()
    place = np.searchsorted(x, np.median(earned))
    assert share[place] == np.mean(earned >= x[place])
    assert x[-1] == earned.max()  # an algorithm that always earns the most ends at 1, not in a fall to 0
    assert share[-1] == np.mean(earned == earned.max())
    assert len({tuple(line.get_xdata()[:1]) for line in lines.values() if len(line.get_xdata()) > 1}) == 1


def test_replayed_episodes_begin_in_one_state_and_their_own_agents_play_them(records):
    chosen = [next(r for r in records if r.job.algorithm == name) for name in ("Random", "SPAQL", "SPAQL-TS")]
    again = [replay(record, retrain(record.job, None), seed=3) for record in chosen]
    assert len({tuple(record.episode["states"][0]) for record in chosen}) == 3
    assert len({tuple(record.episode["states"][0]) for record in again}) == 1
    assert [record.job for record in again] == [record.job for record in chosen]
    once_more = replay(chosen[1], retrain(chosen[1].job, None), seed=3).episode
    assert all(np.array_equal(again[1].episode[name], once_more[name]) for name in once_more)


def test_no_text_of_a_figure_is_smaller_than_nine_pixels_on_a_phone(records):
    shown = 350 / (96 * style.WIDTH)  # a phone's column over the figure's width, in pixels
    for figure in (learning.learning_curves(histories(records)), learning.fresh_profile(records)):
        figure.canvas.draw()
        sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
        assert min(sizes) * 96 / 72 * shown >= 8.99


def test_an_episode_shows_angles_in_rad_and_forces_in_newton(records):
    chosen = {name: best(r for r in records if r.job.algorithm == name) for name in ("Random", "SPAQL-TS")}
    figure = learning.episodes(chosen)
    left, right = figure.axes[2:4]
    assert np.array_equal(left.lines[0].get_ydata(), chosen["SPAQL-TS"].episode["states"][:, 2])
    assert set(right.lines[0].get_ydata()) <= {-10.0, 10.0}
    assert "rad" in figure.axes[0].get_ylabel()  # one label beside all panels of a column


def test_the_discrete_pendulums_episode_is_in_newton_metres():
    env = make_env("spaql/PendulumDiscrete-v1")
    assert learning.in_units(env, np.array([0, 4, 2])).tolist() == [-2.0, 2.0, 0.0]
    assert learning.in_units(make_env("Pendulum-v1"), np.array([0.5])).tolist() == [0.5]


def test_the_bias_has_one_panel_per_system_and_names_its_variants():
    ends = {f"{name}{end}": 1.0 for name in ("reported", "fresh") for end in ("", "_low", "_high")}
    systems = ("CartPole-v0", "Pendulum-v1", "spaql/PendulumDiscrete-v1")
    frame = pd.DataFrame([{"system": system, "algorithm": "SPAQL", "N": 20} | ends for system in systems])
    above, below = audit.bias(frame).axes
    assert [axes.get_title(loc="left") for axes in (above, below)] == ["CartPole", "Pendulum"]
    labels = [text.get_text() for text in below.get_yticklabels()]
    assert labels == ["SPAQL, N = 20", "SPAQL, five torques, N = 20"]


def test_the_table_of_what_is_solved_counts_by_gymnasiums_threshold(records):
    ends = finals(records)
    ends["rewards"] = [195.0, 194.9] * (len(ends) // 2)
    frame = results.solved_table(ends, "caption", "name").frame.set_index("algorithm")
    assert set(frame["solve it"]) == {"1"}
    assert set(frame["at 200"]) == {"0"}


def test_dots_of_the_xi_figure_are_means_with_the_papers_interval():
    jobs = [job for job in study("xi", "smoke") if job.system == "CartPole-v0"]
    ends = finals(run(jobs, store=None, progress_bar=False))
    (axes,) = learning.xi_effect(ends).axes
    groups = ends[ends.algorithm == "SPAQL"].groupby("xi").rewards
    dots, *bars = (line for line in axes.lines if line.get_color() == labels.STYLES["SPAQL"].colour)
    assert np.allclose(dots.get_ydata(), groups.mean())
    expected = [end for rewards in groups.apply(paper_interval) for end in (rewards.low, rewards.high)]
    drawn = [bar.get_ydata() for bar in bars if len(bar.get_ydata()) > 2]
    assert np.allclose([end for bar in drawn for end in (np.nanmin(bar), np.nanmax(bar))], expected)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "4", "160"]


def test_seven_half_sized_discs_cover_a_disc():
    centres = np.array(domains.seven((0.0, 0.0), 1.0))
    rng = np.random.default_rng(0)
    points = rng.uniform(-1, 1, (20_000, 2))
    points = points[np.hypot(*points.T) < 1]
    nearest = np.min(np.hypot(*(points[:, None] - centres).transpose(2, 0, 1)), axis=1)
    assert nearest.max() <= 0.5


def test_a_table_speaks_to_the_book_to_jupyter_and_to_a_terminal():
    shown = table.Table(pd.DataFrame({"a": ["−1.0"], "b": ["x"]}), "What it is", "tab-x", "A note.")
    bundle = shown._repr_mimebundle_()
    assert bundle["text/markdown"].startswith("```{table} What it is\n:name: tab-x\n")
    assert "<caption>What it is</caption>" in bundle["text/html"]
    assert all("−1.0" in text and "A note." in text for text in bundle.values())


def test_columns_of_numbers_stand_to_the_right_and_intervals_are_not_broken():
    cells = {"system": "CartPole", "N": "20", "reward": "**−1,000.5** [−3, 2]", "left": "5 % of 7", "share": "–"}
    frame = pd.DataFrame([cells, cells | {"N": "", "reward": "2 ± 1", "share": "< 10⁻¹⁵"}])
    sides, first = table.Table(frame, "What it is", "tab-x").myst().split("\n\n")[1].splitlines()[1:3]
    assert [side.endswith(":") for side in sides.strip("|").split("|")] == [False, True, True, False, True]
    assert "[−3,\u00a02]" in first
    assert "5\u00a0% of 7" in first
    assert table.unbroken("[a link, more](page.md)") == "[a link, more](page.md)"


def test_numbers_as_text():
    assert labels.number(-1234.567) == "−1,234.57"
    assert labels.spread([1.0, 3.0]) == "2.00 ± 1.39"
    assert labels.between(Interval(-1.0, -2.0, 0.5)) == "−1.0 [−2.0, 0.5]"
    assert labels.p_value(0.0123) == "p = 0.012"
    assert labels.p_value(2.3e-8) == "p = 2\u00a0·\u00a010⁻⁸"
    assert labels.p_value(0.0) == "p <\u00a010⁻¹⁵"
    assert labels.number(-0.04, 1) == "0.0"


def test_the_results_table_has_ours_beside_the_papers(records):
    frame = results.results_table(records, "caption", "name").frame.set_index("algorithm")
    ours = [record.history["rewards"][-1] for record in records if record.job.algorithm == "SPAQL"]
    interval = paper_interval(ours)
    assert frame.loc["SPAQL", "reward"].strip("*") == labels.plus_minus(interval.mean, interval.high - interval.mean, 1)
    assert frame.loc["SPAQL", "paper"] == "192.6 ± 0.9"
    assert frame.loc["AQL", "paper's arms"] == "32,989 ± 187"
    assert frame.loc["Random", "arms"] == ""
    means = finals(records).groupby("algorithm").rewards.mean()
    assert frame.loc[means.idxmax(), "reward"].startswith("**")


def test_bold_are_the_best_and_what_is_not_told_apart_from_it():
    groups = {"a": [1.0, 1.1, 0.9], "b": [5.0, 5.2, 4.8], "c": [4.9, 5.3, 4.6]}
    assert results.best_of(groups) == {"b", "c"}
    assert results.best_of({name: values[:1] for name, values in groups.items()}) == {"b"}


def test_whether_xi_matters_is_judged_against_chance():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(13, 20))
    xis = np.repeat(np.arange(13), 20)
    frame = pd.DataFrame({"system": "s", "algorithm": "same", "xi": xis, "rewards": noise.ravel()})
    moved = frame.assign(algorithm="apart", rewards=(noise + np.arange(13)[:, None]).ravel())
    same, apart = results.xi_effects(pd.concat([frame, moved])).itertuples()
    assert same.p > 0.05
    assert same.spread == pytest.approx(same.chance, rel=0.5)
    assert apart.p < 1e-6
    assert apart.spread > 5 * apart.chance


def test_the_place_of_a_mark_in_the_forest_is_what_its_verdict_rests_on():
    order = {"id": "a", "statement": "SPAQL is better than AQL on Pendulum (p)", "kind": "order", "margin": np.inf}
    order |= {"paper": 10.0, "paper_half": 2.0, "ours": 15.0, "low": 5.0, "high": 20.0, "verdict": "holds"}
    equal = {"id": "b", "statement": "Reward of SPAQL at the end of training on Pendulum", "kind": "number"}
    equal |= {"margin": 4.0, "paper": -40.0, "paper_half": 2.0, "ours": -48.0, "low": -50.0, "high": -46.0}
    equal |= {"apart": -8.0, "apart_low": -10.0, "apart_high": -6.0, "verdict": "differs"}
    bare = equal | {"id": "c", "paper_half": np.nan, "verdict": "holds"}  # no interval in the paper
    frame = pd.DataFrame([order, equal, bare])
    for name in ("ours", "low", "high", "apart", "apart_low", "apart_high", "verdict"):
        frame[f"run_{name}"] = frame[f"more_{name}"] = frame[name]
    frame.loc[1, ["run_ours", "run_apart", "run_apart_low", "run_apart_high"]] = [-40.0, 0.0, -2.0, 2.0]
    above, below = audit.forest(frame).axes
    assert [bar.lines[0].get_xdata()[0] for bar in above.containers] == [1.5]  # of the paper's 10
    assert [bar.lines[0].get_xdata()[0] for bar in below.containers] == [-2.0, 0.0]  # in margins, as run the second
    ends = [bar.lines[2][0].get_segments()[0][:, 0].tolist() for bar in (*above.containers, *below.containers)]
    assert ends == [[0.5, 2.0], [-2.5, -1.5], [-0.5, 0.5]]


def test_the_table_of_claims_has_both_verdicts_the_reason_and_what_a_range_decides():
    row = {"id": "a", "place": "Table 4: results", "statement": "It is 10", "kind": "number", "said": "10.00 ± 2.00"}
    row |= {"ours": -16.0, "low": -14.0, "high": -20.0, "run_ours": 10.0, "run_low": 8.0, "run_high": 12.0}
    row |= {"verdict": "differs", "direction": "up", "run_verdict": "holds", "run_direction": "", "why": "Because."}
    row |= {"half": "differs", "double": "undecided", "vague": True, "allowed": "± 1", "run_reason": ""}
    row |= {"more_ours": -15.0, "more_low": -15.5, "more_high": -14.5, "more_verdict": "holds", "more_direction": ""}
    frame = pd.DataFrame([row | {"p_for": 0.5, "p_against": 1e-5}])
    (shown,) = audit_tables.verdict_table(frame, "caption", "name").frame.to_dict("records")
    for part in (
        'href="#claim-a"',
        "10.00 ± 2.00",
        "± 1",
        "undecided if twice",
        "−15.00 [−15.50, −14.50]",
        "p = 0.500",
    ):
        assert part in shown["claim"]
    assert shown["as written"] == '<span class="badge badge-differs">differs</span> (up) −16.00 [−14.00, −20.00]'
    assert shown["as run"] == '<span class="badge badge-holds">holds</span> 10.00 [8.00, 12.00]'
