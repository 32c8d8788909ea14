"""What the chapters and the home page say: against the stored results, which the sentences are about."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from docutils import nodes
from docutils.utils import new_document

from spaql.paper.audit.claims import paper_results
from spaql.paper.audit.controls import controls_table, stored_effects
from spaql.paper.audit.findings import findings
from spaql.paper.audit.generality import generality
from spaql.paper.audit.readings import best_reading, predicted_mean
from spaql.paper.audit.repaired import samples_to_levels
from spaql.paper.book import chapters, conclusion, home, icons
from spaql.paper.book.explorer import read_policies
from spaql.paper.book.pages import clone_text, colab_text, stored
from spaql.paper.book.search import Section, sections_of, write_search
from spaql.paper.book.sphinx import bind_text, bound, link_repository
from spaql.paper.frames import best, finals
from spaql.paper.runs.retrain import replay, retrain
from spaql.paper.statistics import holm
from spaql.paper.studies import LONG_RUNS, further_of
from spaql.paper.tables import download, sizes_frame, summary_frame
from spaql.paper.tables.generality import where
from spaql.paper.tables.results import xi_effect_of, xi_groups
from spaql.paper.tables.table import is_numeric, number
from spaql.policies.rescore import rescore, search_episodes
from spaql.policies.settled import share_settled
from spaql.policies.simplify import Search, Size

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow

PENDULUM, FIVE, CARTPOLE = "Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"


@pytest.fixture(scope="module")
def records():
    return {study: stored(study) for study in ("xi", "long", "trpo")}


@pytest.fixture(scope="module")
def ends(records):
    return {study: finals(group) for study, group in records.items()}


@pytest.fixture(scope="module")
def long(ends):
    """The agents of the long runs and TRPO's by system."""
    both = pd.concat([ends["long"], ends["trpo"]])
    return {system: both[both.system == system] for system in (PENDULUM, FIVE, CARTPOLE)}


def prose(name):
    """What a notebook says in words, on one line."""
    source = json.loads(next((ROOT / "notebooks").glob(f"{name}*.ipynb")).read_text(encoding="utf-8"))
    cells = ("".join(cell["source"]) for cell in source["cells"] if cell["cell_type"] == "markdown")
    return " ".join(" ".join(cells).split())


def mean(frame, algorithm, column="rewards"):
    return frame[frame.algorithm == algorithm][column].mean()


def test_xi_matters_to_just_those_that_the_chapter_names(ends):
    effects = {key: xi_effect_of(group) for key, group in xi_groups(ends["xi"])}
    found = {key for key, p in zip(effects, holm([e.p for e in effects.values()]), strict=True) if p < 0.05}
    assert found == {(PENDULUM, "SPAQL"), (CARTPOLE, "SPAQL-TS")}
    assert effects[PENDULUM, "SPAQL"].means.idxmax() == 4
    assert set(effects[CARTPOLE, "SPAQL-TS"].means.nlargest(2).index) == {0, 0.4}
    said = prose("01")
    assert "SPAQL on Pendulum, which does better with a small ξ" in said
    assert "SPAQL-TS on CartPole, which does best with little or no bonus" in said
    text = chapters.xi_matters(ends["xi"])
    assert "SPAQL on Pendulum (p = " in text
    assert "to the other 7" in text


def test_without_a_bonus_spaql_loses_a_little_and_spaql_ts_gains_on_cartpole(ends):
    here = ends["xi"][ends["xi"].system == CARTPOLE]
    zero, others = here[here.xi == 0], here[here.xi > 0]
    assert mean(others, "SPAQL") - 20 < mean(zero, "SPAQL") < mean(others, "SPAQL")
    assert mean(zero, "SPAQL") > mean(here, "Random") + 100
    assert mean(zero, "SPAQL-TS") > mean(others, "SPAQL-TS")
    assert number(mean(zero, "SPAQL"), 1) in chapters.without_bonus(ends["xi"], CARTPOLE)


def test_every_algorithm_earns_more_on_pendulum_than_in_the_paper(long):
    assert "ours are higher for every algorithm but TRPO, and SPAQL is ahead of SPAQL-TS" in prose("02")
    for name, column in paper_results()[PENDULUM].items():
        if name == "TRPO":
            assert mean(long[PENDULUM], name) < column["rewards"][0]
        else:
            assert mean(long[PENDULUM], name) > column["rewards"][0] + column["rewards"][1]
    assert mean(long[PENDULUM], "SPAQL") > mean(long[PENDULUM], "SPAQL-TS") + 100
    text = chapters.beside_paper(long[PENDULUM])
    assert f"SPAQL {number(mean(long[PENDULUM], 'SPAQL'), 0)}" in text
    assert "(paper: −836 ± 27)" in text


def test_the_best_spaql_agent_is_stuck_from_the_start_that_is_shown(records):
    group = [r for r in records["long"] if (r.job.system, r.job.algorithm) == (PENDULUM, "SPAQL")]
    record = best(group)
    agent = retrain(record.job)
    angles = replay(record, agent, record.job.seed).episode["states"][:, 0]
    assert np.ptp(angles[-150:]) < 0.1
    assert np.cos(angles[-1]) < -0.99
    share = share_settled(agent.policy.tree(deterministic=False), PENDULUM, 1000, record.job.seed)
    assert share == pytest.approx(0.6, abs=0.02)
    assert "hangs still for the whole episode" in prose("02")


def test_five_torques_gain_about_what_the_paper_says(long):
    gains = [mean(long[FIVE], name) - mean(long[PENDULUM], name) for name in ("SPAQL", "SPAQL-TS")]
    assert all(75 < gain < 175 for gain in gains)
    assert f"SPAQL gains {number(gains[0], 0)} (Welch's test: p = " in chapters.gain(
        long[FIVE], long[PENDULUM], "SPAQL"
    )
    assert mean(long[FIVE], "SPAQL") > mean(long[FIVE], "SPAQL-TS")


def test_cartpole_is_solved_as_the_chapter_says(long):
    here = long[CARTPOLE]
    text = chapters.solved_counts(here)
    assert "SPAQL-TS 17 (15 on fresh episodes) of 20" in text
    assert "SPAQL 3 (0 on fresh episodes) of 20" in text  # "no SPAQL agent solves the task on fresh episodes"
    assert "AQL" not in text.replace("SPAQL", "")
    assert mean(here, "SPAQL", "arms") < 1000
    assert "with fewer than a thousand arms it almost solves the task" in prose("04")


def test_spaql_ts_and_trpo_are_level_as_reported_and_not_on_fresh_episodes(long):
    text = chapters.told_apart(long[CARTPOLE], "SPAQL-TS", "TRPO")
    assert "do not differ significantly at the 5 % level" in text
    assert "on fresh episodes they differ" in text
    trpo = long[CARTPOLE][long[CARTPOLE].algorithm == "TRPO"]
    assert set(trpo.fresh) == {200.0}  # "keeps the pole up in every episode"


def test_rollouts_cost_twenty_samples_or_more_for_each_in_training(long):
    for system in (PENDULUM, CARTPOLE):
        for name in ("SPAQL", "SPAQL-TS"):
            assert mean(long[system], name, "evaluation_steps") / mean(long[system], name, "steps") > 20
        assert mean(long[system], "TRPO", "evaluation_steps") == 0
    assert "SPAQL 400 and 8,004 in rollouts" in chapters.all_samples(long[PENDULUM])


def test_trpo_tuned_has_the_iterations_that_the_protocol_says(records):
    counts = {r.job.system: len(r.history) for r in records["trpo"] if r.job.algorithm == "TRPO tuned"}
    assert counts == {PENDULUM: 195, CARTPOLE: 390}
    protocol = (ROOT / "book" / "protocol.md").read_text(encoding="utf-8")
    assert "195 iterations of 2,048 on Pendulum and 390 of 1,024 on CartPole" in protocol


def test_selection_is_the_mean_loss_from_reported_to_fresh(long):
    here = long[PENDULUM][long[PENDULUM].algorithm == "SPAQL"]
    assert f"by {number((here.rewards - here.fresh).mean(), 1)} ± " in chapters.selection(long[PENDULUM])


def test_a_list_is_a_sentence():
    assert [chapters.listed(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "none", "a", "a and b", "a, b and c"
    ]  # fmt: skip


def test_headlines_carry_the_verdicts_and_the_numbers(records, long, judged):
    levels = samples_to_levels(stored("repaired") + records["trpo"] + stored("sb3"))
    ends = pd.concat([long[PENDULUM], long[CARTPOLE]])
    lines = home.headlines(judged, ends, 3, stored_effects(), levels, 57_000_000)
    assert len(lines) == 8
    assert all(line.text.startswith("**") for line in lines)  # what was found comes first
    assert lines[2].badge == judged.set_index("id").verdict["pendulum-rewards-spaql"]
    assert f"SPAQL earns {number(mean(long[PENDULUM], 'SPAQL'), 0)}, and the paper prints −836" in lines[2].text
    assert "199 of 200 steps by the paper's measure (17 of 20 agents solve it), and 196 on fresh" in lines[1].text
    assert "is undecided with these agents, and holds with up to 100 agents (19" in lines[1].text
    assert f"earns {number(mean(long[PENDULUM], 'SPAQL', 'fresh'), 0)} on fresh" in lines[0].text  # not the best
    assert "21 times as many samples" in lines[5].text
    assert lines[5].badge == "differs"
    assert number(predicted_mean(best_reading(), "pendulum-rewards-spaql"), 0) in lines[2].text
    assert "With every reward deleted from its updates it earns 181" in lines[3].text
    needed = "reach −200 on Pendulum within 6,000 samples (their mean stays above it from 12,000 on), half of TRPO's "
    assert f"{needed}within 232,000 (79,900 with tuned settings)" in lines[6].text
    assert "needs fewer still: 4,000" in lines[6].text
    assert "57 million samples" in lines[6].text
    shown = home.as_lines(lines)
    assert shown.count('<span class="badge') == shown.count("{doc}`More <") == 8
    for line in lines:
        assert (ROOT / "book" / f"{line.page}.ipynb").resolve().is_file()


def test_the_rules_of_the_home_page_are_the_trees(tmp_path):
    policy = home.smallest_policy(read_policies(ROOT / "book" / "explorer" / "policies.js"), CARTPOLE)
    rules = home.leaf_rules(policy)
    assert len(rules) == policy["leaves"] == 3
    assert rules[0].startswith("θ̇ < 0.08 rad/s and θ < 0.03 rad: push left")
    shown = home.hero(policy)
    held = re.search(r'data-policy="([^"]+)"', shown)[1].replace("&quot;", '"')
    assert json.loads(held)["threshold"] == policy["threshold"]


def test_the_repositorys_address_is_named_once_it_is_set():
    assert "git clone https://example.org/x spaql" in clone_text("https://example.org/x")
    assert "ADDRESS" in clone_text("")
    assert "git clone --depth 1 https://example.org/x companion" in colab_text("https://example.org/x")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("it earns −836 ± 27 here", "−836\u00a0±\u00a027"),
        ("with ξ = 0 and N = 20", "ξ\u00a0=\u00a00"),
        ("at most 2 Nm against 5 Nm", "2\u00a0Nm"),
        ("a share of 5 % of them", "5\u00a0%"),
        ("SPAQL [200.0, 200.0] ends", "[200.0,\u00a0200.0]"),
        ("against: p <\u00a010⁻¹⁵", "p\u00a0<\u00a010⁻¹⁵"),
        ("a bound of ≤ 60 MB", "≤\u00a060\u00a0MB"),
    ],
)
def test_no_line_of_the_book_ends_inside_a_number(text, kept):
    assert kept in bound(text)
    assert bound(text).replace("\u00a0", " ") == text.replace("\u00a0", " ")


def test_names_and_dates_are_words_and_a_name_too_long_for_a_phone_may_be_divided():
    document = new_document("page")
    document += nodes.entry("", nodes.paragraph("", "SPAQL-TS, not AQL, on MountainCarContinuous since 2026-11-15"))
    document += nodes.literal("", "SPAQL-TS")
    document += nodes.paragraph("", "the parameter env_seed, on MountainCarContinuous")
    document += nodes.math_block("", "x_h = 0")
    document += nodes.entry("", nodes.paragraph("", "line_search_max_iter"))
    bind_text(None, document, "page")
    assert [node.astext() for node in document.findall(nodes.inline)] == ["SPAQL-TS", "2026-11-15"]
    assert document[0].astext() == "SPAQL-TS, not AQL, on MountainCar\u00adContinuous since 2026-11-15"
    assert document[2].astext() == "the parameter env_seed, on MountainCarContinuous"  # as a reader copies it
    assert document[3].astext() == "x_h = 0"
    assert document[4].astext() == "line_\u200bsearch_\u200bmax_\u200biter"


@pytest.mark.parametrize(
    ("cells", "numeric"),
    [
        (["13 of 20", "", "0 of 20"], True),
        (["−836.1", "± 12.0", "about 100", "batch 200"], True),
        (["1.5 [1.0, 2.0]", "never"], True),
        (["−485.2 (13.0)"], True),
        (["0, 0.4, 4", "20"], False),
        (["2 of SPAQL"], False),
        (["", "–"], False),
    ],
)
def test_a_column_of_numbers_is_told_from_one_of_names(cells, numeric):
    assert is_numeric(pd.Series(cells)) == numeric


@pytest.mark.parametrize(
    ("address", "buttons"),
    [
        ("", None),
        ("https://gitlab.com/a/b", {"binderhub_url"}),  # Colab reads from GitHub alone
        ("https://github.com/a/b", {"binderhub_url", "colab_url"}),
    ],
)
def test_the_buttons_appear_once_the_repositorys_address_is_known(address, buttons):
    config = SimpleNamespace(spaql_repository=address, html_theme_options={"navbar_end": []})
    link_repository(None, config)
    assert config.html_theme_options.get("repository_url") == (address or None)
    assert set(config.html_theme_options.get("launch_buttons", {})) == (buttons or set())


def test_icons_are_taken_from_the_library_the_solid_ones_last(tmp_path):
    library = 'x={sun:[1,2,[],"f185","M0"],"file-pdf":[3,4,[],"f1c1","M1"]};y={sun:[5,6,[9728],"f185","M2"]}'
    assert icons.subset(library, ["sun", "file-pdf", "none"]) == {"file-pdf": (3, 4, "M1"), "sun": (5, 6, "M2")}
    (tmp_path / "_static" / "scripts").mkdir(parents=True)
    script = tmp_path / "_static" / "scripts" / "fontawesome.js"
    script.write_text(library, encoding="utf-8")
    (tmp_path / "page.html").write_text('<i class="fa-solid fa-sun fa-lg"></i>', encoding="utf-8")
    for _ in range(2):  # a second build finds its own script
        icons.write_icons(tmp_path)
        assert '{"sun": [5, 6, "M2"]}' in script.read_text(encoding="utf-8")


def test_a_downloaded_file_holds_what_is_drawn():
    frame = pd.DataFrame({"algorithm": ["SPAQL"] * 4, "xi": [0, 0, 4, 4], "rewards": [1.0, 3.0, 5.0, 5.0]})
    kept = summary_frame(frame, ["algorithm", "xi"], ["rewards"])
    assert kept.rewards.tolist() == [2.0, 5.0]
    assert kept.rewards_high[0] == pytest.approx(2 + 1.96 / np.sqrt(2))
    link = download(kept, "name").data
    assert 'download="name.csv"' in link
    assert "data:text/csv;base64," in link


def test_trees_are_scored_again_on_other_episodes_and_the_searchs_are_counted(monkeypatch):
    from spaql import SPAQLTS

    policy = SPAQLTS(CARTPOLE, xi=20, seed=0).learn(60, 10).policy
    played = []
    play = Search.play
    monkeypatch.setattr(
        Search, "play", lambda self, *args, **kw: played.append(len(self.starts)) or play(self, *args, **kw)
    )
    found = policy.simplify(target=195, leaves=4, proposals=5, episodes=10, fresh=20, seed=0)
    assert sum(played) <= search_episodes(4, 5, 10)
    assert sum(played) == pytest.approx(search_episodes(4, 5, 10), rel=0.25)
    again = rescore(found.curve, CARTPOLE, 20, seed=5)
    assert [size.leaves for size in again] == [size.leaves for size in found.curve]
    assert again[-1].low <= again[-1].mean <= again[-1].high


def test_sections_are_found_without_what_is_in_their_subsections(tmp_path):
    html = """<article><section id="a"><h1>One<a class="headerlink">#</a></h1><p>first  words</p>
        <section id="b"><h2>Two</h2><div class="cell_input">code</div><p>more</p></section></section></article>"""
    assert sections_of("p.html", html) == [
        Section("p.html", "a", "One", "One", "first words"),
        Section("p.html", "b", "One", "Two", "more"),
    ]
    words = '<h1>One</h1><p><span class="whole">SPAQL-TS</span>, Mountain\u00adCar</p>'
    assert (
        sections_of("p.html", f'<article><section id="a">{words}</section></article>')[0].text
        == "SPAQL-TS, MountainCar"
    )
    (tmp_path / "_static").mkdir()
    (tmp_path / "p.html").write_text(html, encoding="utf-8")
    scripts = '<script src="_static/doctools.js"></script>\n<script src="searchindex.js"></script>\n'
    (tmp_path / "search.html").write_text(f"<head>\n{scripts}</head>", encoding="utf-8")
    written = write_search(tmp_path, ["p.html"]).read_text(encoding="utf-8")
    assert '["p.html", "b", "One", "Two", "more"]' in written
    page = (tmp_path / "search.html").read_text(encoding="utf-8")
    assert "searchindex" not in page
    assert "doctools" in page
    assert page.index("sections.js") < page.index("search.js")


@pytest.fixture(scope="module")
def concluded(records, judged):
    more = {study: stored(study) for study in ("controls", "ablation", "further", "repaired", "sb3")}
    runs = [*more["controls"], *more["ablation"], *records["long"]]
    of_long = {job for job in further_of(record.job for record in runs) if job.iterations == LONG_RUNS.iterations}
    return {
        "found": findings(judged, records["long"] + records["trpo"]),
        "effects": controls_table(runs + [record for record in more["further"] if record.job in of_long]),
        "levels": samples_to_levels(more["repaired"] + records["trpo"] + more["sb3"]),
        "ends": finals(more["repaired"]),
        "explored": read_policies(ROOT / "book" / "explorer" / "policies.js"),
        "travels": generality(),
    }


def test_the_conclusion_says_what_the_stored_results_say(concluded):
    stands, falls = (conclusion.chosen(concluded["found"], names) for names in (conclusion.STANDS, conclusion.FALLS))
    assert stands.count("\n- **") + 1 == len(conclusion.STANDS)
    assert "they are not on either system (all four claims: differs)" in falls
    effects = concluded["effects"]
    told = conclusion.sources(stored_effects())
    fresh = effects[(effects.quantity == "fresh") & (effects.N == 20)].set_index(["system", "algorithm", "control"])
    for key, column in (
        (("CartPole-v0", "SPAQL", "reward deleted"), "changed"),
        (("CartPole-v0", "SPAQL", "reward deleted"), "text"),
        (("CartPole-v0", "SPAQL", "last kept"), "changed"),
        (("CartPole-v0", "SPAQL-TS", "reward deleted, last kept"), "changed"),
        (("Pendulum-v1", "SPAQL", "last kept"), "changed"),
        (("Pendulum-v1", "SPAQL", "random partitions"), "changed"),
    ):
        assert number(fresh.loc[key][column], 0) in told
    # What the words say: deleting the reward costs little beside choosing, and on Pendulum choosing costs.
    deleted, last = (fresh.loc[("CartPole-v0", "SPAQL", name)] for name in ("reward deleted", "last kept"))
    assert abs(deleted.difference) < 0.2 * abs(last.difference)
    assert "more than with the best kept" in told
    first = concluded["levels"].set_index(["system", "algorithm", "level"])["first"]
    advice = conclusion.advice(*(concluded[name] for name in ("levels", "ends", "explored", "travels")))
    assert first["Pendulum-v1", "SPAQL-R", -200.0] < first["Pendulum-v1", "TRPO", -200.0]
    for system, level in (("Pendulum-v1", -200.0), ("CartPole-v0", 195.0)):
        for algorithm in ("SPAQL-R", "TRPO", "TRPO tuned"):
            assert conclusion.samples(first[system, algorithm, level]) in advice
    assert first["Pendulum-v1", "SAC", -200.0] < first["Pendulum-v1", "SPAQL-R", -200.0]
    reached = conclusion.samples(first["Pendulum-v1", "SAC", -200.0])
    assert f"Half of SAC's agents reach −200 on Pendulum {reached}" in advice
    assert f"that SPAQL-R ends higher {where(concluded['travels'], 'repaired-tuned')};" in advice
    assert conclusion.samples(float("inf")) == "at no time"


def test_trade_offs_are_frames_with_one_row_per_tree():
    curve = [Size(2, -300.0, -310.0, -290.0, None), Size(7, -200.0, -205.0, -195.0, None)]
    frame = sizes_frame({"SPAQL": curve})
    assert frame.to_dict("list") == {
        "algorithm": ["SPAQL"] * 2, "leaves": [2, 7], "return": [-300, -200], "low": [-310, -205], "high": [-290, -195]
    }  # fmt: skip
