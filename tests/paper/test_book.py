"""The built book, as a reader's browser has it: `make book` first, as `make test` does."""

import os
import re
from html import unescape
from pathlib import Path
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup, SoupStrainer

from spaql.paper.book.sphinx import in_roles, shown
from spaql.paper.engine import numbers
from tests.conftest import in_browser

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
PAGES = sorted(str(path.relative_to(HTML)) for part in ("book", "notebooks") for path in (HTML / part).glob("*.html"))
KINDS = [name for name in PAGES if re.search("index|claims|explorer|04_cartpole", name)]  # one of each
PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
WORDS = 13_000

needs_book = pytest.mark.skipif(not PAGES, reason="there is no book: make book")


def soup_of(name):
    return BeautifulSoup((HTML / name).read_text(encoding="utf-8"), "html.parser", parse_only=SoupStrainer("article"))


@pytest.fixture
def visit(browser):
    """Open pages from disk; whatever they complain about or ask for from elsewhere is a complaint."""
    complaints = []
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: re.match("file:|data:|blob:", request.url) or complaints.append(request.url))

    def open_page(name):
        page.goto(f"{HTML.as_uri()}/{name}", wait_until="load")
        return page

    yield open_page
    context.close()
    assert complaints == []


# In a browser


@needs_book
@in_browser
@pytest.mark.parametrize("name", PAGES)
def test_a_page_reads_offline_and_on_a_phone_and_axe_finds_no_barrier_that_matters_by_day_and_by_night(visit, name):
    """Axe compares colours, too, so that it sees what cannot be read in dark mode."""
    from axe_playwright_python.sync_playwright import Axe

    page = visit(name)
    assert page.locator("article h1").count() == 1
    if page.locator(".math").count():
        page.wait_for_function("MathJax.startup.promise.then(() => true)")
        assert page.locator("mjx-merror").count() == 0
    images = page.evaluate(
        """async () => {
            const images = [...document.querySelectorAll('article img')];
            images.forEach(image => image.loading = 'eager');
            await Promise.all(images.map(image => image.decode()));
            return images.map(image => [image.src, image.width]);
        }"""
    )
    for source, width in images:
        assert width > 0, source
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    if name not in KINDS:
        return
    page.set_viewport_size(DESKTOP)
    page.add_style_tag(content="* { transition: none !important; }")  # half-way between two modes nothing is readable
    quiet = {"resultTypes": ["violations"], "preload": False}  # styles are not fetched again, which a file cannot be
    for mode, only in (("light", {}), ("dark", {"runOnly": ["color-contrast"]})):
        page.evaluate(f"document.documentElement.dataset.theme = '{mode}'")
        found = Axe().run(page, options=quiet | only).response["violations"]
        assert [(mode, one["id"], one["impact"]) for one in found if one["impact"] != "minor"] == []


@needs_book
@in_browser
def test_the_pole_of_the_home_page_moves_unless_asked_not_to(visit):
    page = visit("book/index.html")
    now = "document.querySelector('#spaql-hero canvas').toDataURL()"
    first = page.evaluate(now)
    page.wait_for_function(f"{now} !== {first!r}")
    assert "push left" in page.locator("#spaql-hero li").first.inner_text()
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    still = page.evaluate(now)
    page.wait_for_timeout(300)
    assert page.evaluate(now) == still


@needs_book
@in_browser
def test_the_search_works_from_a_disk(visit):
    page = visit("search.html?q=partition")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li").count() >= 3


# As text


@needs_book
@pytest.mark.parametrize("path", list(numbers.tagged_files()), ids=lambda path: path.name)
def test_numbers_in_the_text_are_those_of_the_notebooks(path):
    text = path.read_text(encoding="utf-8")
    assert numbers.rewritten(text, numbers.load_numbers()) == text, "spaql numbers --write puts the right ones in"


@needs_book
def test_the_readmes_numbers_are_those_of_the_notebooks():
    text, known = (ROOT / "README.md").read_text(encoding="utf-8"), numbers.load_numbers()
    for name in (
        *("pendulum.spaql.fresh", "pendulum.aql.fresh", "arms.ratio", "cartpole.ts.reported", "cartpole.ts.fresh"),
        *("pendulum.spaql.reported", "pendulum.spaql.paper", "claims.all", "claims.holds", "claims.differs"),
        *("controls.cartpole.spaql.reward-deleted", "controls.cartpole.spaql.unchanged", "claims.undecided"),
    ):
        assert re.search(rf"(?<![\d.,−]){re.escape(known[name])}(?!\d|[,.]\d)", text), (name, known[name])


def test_a_tag_is_checked_rewritten_and_shown():
    known = {"a.b": "−485", "claim:c": "differs", "claim:d": "differs"}
    text = "It earns 3<!--=a.b-->, which holds<!--=claim:c,d-->."
    better = numbers.rewritten(text, known)
    assert shown(better).startswith("It earns −485, which <a class=")
    assert '#claim-c">differs</a>' in shown(better)
    with pytest.raises(LookupError, match="'e'"):
        numbers.rewritten("It earns 3<!--=e-->.", known)


@pytest.mark.parametrize(
    ("plain", "read"),
    [
        ("[The table below](#tab-xi) has it", "{numref}`tab-xi` has it"),
        ("[see](../book/protocol.md#trpo-deviations)", "{ref}`see <trpo-deviations>`"),
        ("[(A, 2021)](../book/references.md#agarwal2021)", "{cite}`agarwal2021`"),
        ("[This](#alg-spaql-r)", "{prf:ref}`alg-spaql-r`"),
        ("[The audit](06_audit.ipynb), [Gym](https://gymnasium.farama.org)", None),
        ('<a id="here"></a>\n\n## Here', "(here)=\n\n## Here"),
        ("# A\n\n> **In short.** One\n>\n> two.\n\nB", "# A\n\n:::{admonition} In short\nOne\n\ntwo.\n:::\n\nB"),
    ],
)
def test_the_book_reads_plain_links_as_roles(plain, read):
    assert in_roles(plain) == (read or plain)


@needs_book
def test_every_link_within_the_book_leads_somewhere():
    texts = {name: (HTML / name).read_text(encoding="utf-8") for name in PAGES}
    anchors = {name: set(re.findall(r'<[^<>]* id="([^"]+)"', text)) for name, text in texts.items()}
    followed = 0
    for name, text in texts.items():
        for link in re.findall(r'<a [^<>]*href="([^"]+)"', text):
            path, _, anchor = unquote(unescape(link)).partition("#")
            if ":" in path.split("/")[0]:
                assert path.startswith(("https:", "http:", "data:text/csv")), (name, path[:80])
                continue
            target = os.path.normpath((Path(name).parent / path) if path else name)
            assert (HTML / target).exists(), (name, path)
            if anchor and target in anchors:
                assert anchor in anchors[target], (name, path, anchor)
                followed += 1
    assert followed > 100


@needs_book
def test_every_table_figure_and_algorithm_of_the_paper_is_there():
    (table,) = (table for table in soup_of("book/index.html").find_all("table") if "in the paper" in table.get_text())
    links = [link.get_text() for link in table.find_all("a", href=True)]
    assert [sum(text.startswith(kind) for text in links) for kind in ("Table", "Algorithm", "Fig.")] == [5, 3, 13]


@needs_book
def test_the_book_shows_the_published_runs_without_an_error_and_is_short():
    for path in (ROOT / "_build" / "source" / "notebooks").glob("*.ipynb"):
        text = path.read_text(encoding="utf-8")
        assert "Not the published run" not in text, path
        assert not any(o.output_type == "error" for c in nbformat.reads(text, 4).cells for o in c.get("outputs", []))
    words = 0
    for name in PAGES:
        article = soup_of(name).find("article")
        assert all(len(image["alt"].strip()) > 20 for image in article.find_all("img")), name
        for other in article.select("pre, table, .math, div.citation, details.hide, .cell_output, script, dl.py"):
            other.decompose()
        text = article.get_text(" ")
        assert not re.search(r"\{\{|```|\{numref\}|\bnan\b", text), name
        words += len(text.split())
    assert words <= WORDS
