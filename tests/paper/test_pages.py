"""What the pages of the book are made of."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from docutils import nodes
from docutils.utils import new_document

from spaql.paper.audit import dimensions
from spaql.paper.audit.kept import load_kept
from spaql.paper.book import home, icons, pages
from spaql.paper.book.explorer import read_policies
from spaql.paper.book.measure import words_of
from spaql.paper.book.search import Section, sections_of, write_search
from spaql.paper.book.sphinx import bind_text, bound, link_repository
from spaql.paper.runs.provenance import NUMERICS
from spaql.paper.tables import download, nodes_frame, sizes_frame
from spaql.paper.tables.table import is_numeric
from spaql.policies.rescore import rescore, search_episodes
from spaql.policies.simplify import Search, Size

ROOT = Path(__file__).parents[2]

PENDULUM, FIVE, CARTPOLE = "Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0"


def test_the_rules_of_the_home_page_are_the_trees(tmp_path):
    policy = home.smallest_policy(read_policies(ROOT / "book" / "explorer" / "policies.js"), CARTPOLE)
    rules = home.leaf_rules(policy)
    assert len(rules) == policy["leaves"] == 3
    assert rules[0].startswith("θ̇ < 0.08 rad/s and θ < 0.03 rad: push left")
    shown = home.hero(policy, "500")
    held = re.search(r'data-policy="([^"]+)"', shown)[1].replace("&quot;", '"')
    assert json.loads(held)["threshold"] == policy["threshold"]


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
    link = download(frame, "name").data
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


def test_trade_offs_are_frames_with_one_row_per_tree():
    curve = [Size(2, -300.0, -310.0, -290.0, None), Size(7, -200.0, -205.0, -195.0, None)]
    frame = sizes_frame({"SPAQL": curve})
    assert frame.to_dict("list") == {
        "algorithm": ["SPAQL"] * 2, "leaves": [2, 7], "return": [-300, -200], "low": [-310, -205], "high": [-290, -195]
    }  # fmt: skip


def test_a_tree_is_a_frame_with_one_row_per_node():
    from spaql import SPAQLTS

    tree = SPAQLTS(CARTPOLE, xi=20, seed=0).learn(60, 10).policy.tree()
    frame = nodes_frame(tree)
    assert frame.action.notna().sum() == tree.leaves
    assert set(frame.action.dropna()) <= {"-10 N", "+10 N", "-10 N or +10 N"}
    observation = np.array([0.1, -0.2, 0.03, 0.4])
    node = 0
    while isinstance(frame.yes[node], str):
        below = observation[tree.variables.observed.index(frame.variable[node])] < frame.below[node]
        node = int(frame.yes[node] if below else frame.no[node])
    assert node == tree.apply(observation)[0]


def test_references_tables_and_code_are_no_prose():
    page = """<article><p>Three plain words</p><pre>some code</pre><table><caption>A caption</caption><tr><td>5
        </td></tr></table><div class="citation" id="id1"><p>Sutton and Barto, 2018</p></div></article>"""
    assert words_of(page) == 5


def test_every_number_of_dimensions_is_measured_and_an_agent_stops_at_the_level():
    frame = load_kept("dimensions")
    counted = frame.groupby(["algorithm", "dimensions"]).size()
    assert counted["SPAQL-R"].to_dict() == dict.fromkeys(range(2, 9), dimensions.AGENTS)
    assert frame.reached[frame.samples < dimensions.MOST].all()
    assert dimensions.measure("Grid, replayed", dimensions.SYSTEMS[-1], 0) is None  # 17 to the eighth power of tiles


def test_every_family_of_numbers_can_be_attested(monkeypatch):
    found = {"platform": "x", "sampled": 1, "same_bits": 1, "verdict": "the same bits"}
    entry = {"date": "", "commit": "", "machine": "", "families": dict.fromkeys(NUMERICS.keys() - {"policies"}, found)}
    monkeypatch.setattr(pages, "load_attestations", lambda store: [entry])
    assert len(pages.attestations_table().frame) == len(entry["families"])
