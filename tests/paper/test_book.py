"""The built book, as a reader's browser has it: `make book` first, as `make test` does."""

import contextlib
import itertools
import os
import re
from pathlib import Path
from urllib.parse import unquote
from urllib.request import urlopen

import pandas as pd
import pytest
from bs4 import BeautifulSoup

from spaql.paper.audit.claims import load_claims
from tests.conftest import in_browser
from tests.paper.test_notebooks import BANNER, NOTEBOOKS, shown

HTML = Path(__file__).parents[2] / "_build" / "html"
PAGES = sorted(
    str(path.relative_to(HTML)) for folder in ("book", "notebooks") for path in (HTML / folder).glob("*.html")
)

pytestmark = pytest.mark.skipif(not PAGES, reason="there is no book: make book")


PHONE, DESKTOP = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@contextlib.contextmanager
def visiting(browser):
    """Open pages from disk; whatever they complain about or ask for from elsewhere is a complaint."""
    complaints = []
    context = browser.new_context(viewport=PHONE)
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}") if not left(request) else None)
    page.on("request", lambda request: complaints.append(f"outside: {request.url}") if not local(request.url) else None)

    def open_page(name):
        page.goto(f"{HTML.as_uri()}/{name}", wait_until="load")
        return page

    yield open_page
    context.close()
    assert complaints == []


@pytest.fixture
def visit(browser):
    with visiting(browser) as open_page:
        yield open_page


@pytest.fixture(scope="module", params=PAGES)
def page(browser, request):
    """Each page in turn, opened once for all tests that only look at it."""
    with visiting(browser) as open_page:
        yield open_page(request.param)


def left(request):
    """Whether the browser gave a request up as the test went on to another page; a missing file fails otherwise."""
    return request.failure == "net::ERR_ABORTED"


def local(url):
    return url.startswith(("file:", "data:", "blob:"))


@in_browser
def test_a_page_opens_from_disk(page):
    assert page.locator("article h1").count() == 1
    if page.locator(".math").count():
        page.wait_for_selector("mjx-container", state="attached")
        page.wait_for_function("MathJax.startup.promise.then(() => true)")
        assert page.locator("mjx-container").count() >= page.locator(".math").count()
        assert page.locator("mjx-merror").count() == 0
    # All images load, also those further down.
    images = page.evaluate(
        """async () => {
            const images = [...document.querySelectorAll('article img')];
            images.forEach(image => image.loading = 'eager');
            await Promise.all(images.map(image => image.decode()));
            return images.map(image => [image.src, image.naturalWidth, image.width, image.alt.trim().length]);
        }"""
    )
    for source, natural, width, alternative in images:
        assert natural > 0, source
        assert width > 0, source
        assert alternative > 20, source
    # Nothing is wider than a phone.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@in_browser
def test_no_table_is_cut_on_a_desktop(page):
    page.set_viewport_size(DESKTOP)
    cut = page.evaluate(
        """() => [...document.querySelectorAll('article table.numbers, article table:not([class*=filtered])')]
            .filter(table => table.offsetParent).map(table => {
                let around = table.parentElement;
                const scrolls = () => getComputedStyle(around).overflowX === 'auto';
                while (!scrolls() && around.tagName !== 'ARTICLE') around = around.parentElement;
                return [table.id, table.scrollWidth - around.clientWidth];
            }).filter(([, more]) => more > 1)"""
    )
    assert cut == []


@in_browser
def test_on_a_phone_no_formula_is_cut_and_names_stay_beside_their_numbers(page):
    page.set_viewport_size(PHONE)
    page.evaluate("window.MathJax?.startup?.promise")
    cut = page.evaluate(
        """() => new Promise(later => setTimeout(later, 200)).then(() => [...document.querySelectorAll('article .math')]
            .filter(box => box.offsetParent && getComputedStyle(box).overflowX === 'hidden')
            .map(box => [box.textContent, (box.querySelector('mjx-container')?.offsetWidth || 0) - box.clientWidth])
            .filter(([, more]) => more > 1))"""
    )
    assert cut == []
    lost = page.evaluate(
        """() => [...document.querySelectorAll('article table.numbers, article table.words:not(.filtered)')]
            .filter(table => table.offsetParent && table.rows.length > 1).map(table => {
                const around = table.closest('.pst-scrollable-table-container'), cell = table.rows[1].cells[0];
                const before = cell.getBoundingClientRect().left;
                around.scrollLeft = 10000;
                const moved = before - cell.getBoundingClientRect().left;
                around.scrollLeft = 0;
                return [table.id, moved];
            }).filter(([, moved]) => moved > 3)"""
    )
    assert lost == []


@in_browser
def test_the_head_of_a_long_table_stays_and_rules_part_its_groups(visit):
    page = visit("notebooks/08_what_is_learned.html")
    page.set_viewport_size(DESKTOP)
    page.wait_for_selector("#tab-controls tr.begins", state="attached")
    head = page.evaluate(
        """() => new Promise(later => {
            const table = document.getElementById('tab-controls'), middle = table.rows[table.rows.length >> 1];
            table.closest('details').open = true;
            middle.scrollIntoView({block: 'center', behavior: 'instant'});
            setTimeout(() => later(table.tHead.rows[0].cells[0].getBoundingClientRect().top), 300);
        })"""
    )
    assert 0 <= head < 100
    begins = page.evaluate(
        """() => [...document.querySelectorAll('#tab-controls tbody tr')].map(row =>
            [row.cells[0].textContent, row.classList.contains('begins')])"""
    )
    assert [marked for _, marked in begins[1:]] == [one[0] != other[0] for one, other in itertools.pairwise(begins)]


@in_browser
def test_on_paper_nothing_of_the_screen_is_left(visit):
    page = visit("notebooks/06_audit.html")
    page.set_viewport_size(PHONE)
    page.wait_for_selector(".wide table .key.edge", state="attached")
    page.emulate_media(media="print")
    shown = page.evaluate(
        """() => [...document.querySelectorAll('article .wide, article .edge')].flatMap(
            part => ['::before', '::after'].map(side => getComputedStyle(part, side)).filter(style =>
                style.content !== 'none' && style.content !== 'normal' && style.display !== 'none'
                && getComputedStyle(part).display !== 'none').map(() => part.className))"""
    )
    page.emulate_media(media="screen")
    assert shown == []


@in_browser
def test_on_a_phone_both_names_of_a_row_stay_and_long_lists_of_claims_fit(visit):
    page = visit("notebooks/06_audit.html")
    kept = page.evaluate("[...document.querySelector('#tab-samples tbody tr').cells].map(cell => cell.className)")
    assert all("key" in name.split() for name in kept[:2])
    assert "key" not in kept[-1]
    page = visit("notebooks/10_other_systems.html")
    over = page.evaluate(
        """() => [...document.querySelectorAll('table.numbers td.key')]
            .filter(cell => cell.scrollWidth > cell.clientWidth + 1).map(cell => cell.textContent)"""
    )
    assert over == []  # long names are divided, and do not run over the numbers
    page = visit("book/claims.html")
    assert page.evaluate("document.getElementById('tab-verdicts').scrollWidth") <= 360


@in_browser
def test_a_page_weighs_less_than_a_megabyte_and_a_half(page):
    """Its own files: without figures, MathJax, which only pages with formulas load, and the explorer's policies."""
    files = page.evaluate(
        """() => [...document.querySelectorAll('script[src], link[rel=stylesheet]')].map(tag => tag.src || tag.href)"""
    )
    paths = {
        Path(unquote(url.removeprefix("file://").partition("?")[0]))
        for url in (page.url, *files)
        if not re.search("mathjax|policies.js", url)
    }
    assert sum(path.stat().st_size for path in paths) < 1_500_000


@in_browser
def test_a_page_can_be_used_without_seeing_it(page):
    page.set_viewport_size(PHONE)
    found = page.evaluate(
        """() => {
            const texts = tag => [tag.textContent, tag.ariaLabel, tag.title, tag.alt, tag.placeholder];
            const named = tag => texts(tag).some(text => text?.trim())
                || tag.labels?.length || tag.getAttribute('aria-labelledby');
            const shown = tag => tag.offsetParent !== null;
            const levels = [...document.querySelectorAll('article h1, article h2, article h3, article h4')]
                .map(tag => Number(tag.tagName[1]));
            return {
                language: document.documentElement.lang,
                described: Boolean(document.querySelector('meta[name=description]')?.content),
                nameless: [...document.querySelectorAll('button, a[href], input, select, canvas')]
                    .filter(tag => shown(tag) && !named(tag)).map(tag => tag.outerHTML.slice(0, 120)),
                skipped: levels.some((level, i) => i > 0 && level > levels[i - 1] + 1),
            };
        }"""
    )
    assert found == {"language": "en", "described": True, "nameless": [], "skipped": False}


@in_browser
@pytest.mark.parametrize(
    "name", ["book/index", "book/algorithms", "book/claims", "book/explorer", "notebooks/04_cartpole"]
)
def test_axe_finds_no_barrier_that_matters(visit, name):
    """Of each kind of page one."""
    from axe_playwright_python.sync_playwright import Axe

    page = visit(f"{name}.html")
    page.set_viewport_size(DESKTOP)
    quiet = {"resultTypes": ["violations"], "preload": False}  # styles are not fetched again, which a file cannot be
    found = Axe().run(page, options=quiet).response["violations"]
    assert [(barrier["id"], barrier["impact"]) for barrier in found if barrier["impact"] != "minor"] == []


@in_browser
def test_the_pole_of_the_home_page_moves_unless_asked_not_to(visit):
    page = visit("book/index.html")
    now = "document.querySelector('#spaql-hero canvas').toDataURL()"
    first = page.evaluate(now)
    page.wait_for_function(f"{now} !== {first!r}")
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    still = page.evaluate(now)
    page.wait_for_timeout(300)
    assert page.evaluate(now) == still
    page.click("#spaql-hero [data-push='1']")
    page.wait_for_function(f"{now} !== {still!r}")
    assert page.locator("#spaql-hero li.now").count() == 1


@in_browser
def test_the_explorer_says_that_a_policy_is_stuck(visit):
    page = visit("book/explorer.html")
    system, policy, *_ = page.locator("#spaql-explorer select").all()
    system.select_option("Pendulum-v1")
    assert policy.locator("option").first.inner_text().startswith("SPAQL-R, as learned")
    exact = policy.locator("option", has_text="SPAQL, as learned (236 leaves").get_attribute("value")
    policy.select_option(exact)
    page.get_by_label("Speed").select_option("4")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('#spaql-explorer .score').textContent.endsWith('stuck')")


@in_browser
def test_the_explorers_buttons_show_what_they_say(visit):
    page = visit("book/explorer.html")
    page.get_by_role("button", name="The 7-leaf tree beside the policy it came from").click()
    assert page.locator(".panel:visible .who").all_inner_texts()[0].startswith("SPAQL, made smaller")
    assert page.locator(".panel:visible").count() == 2
    page.get_by_role("button", name="You against SPAQL-R").click()
    assert page.locator(".panel:visible .who").all_inner_texts()[1] == "You drive."
    page.keyboard.down("ArrowLeft")
    page.wait_for_function("document.querySelectorAll('.score')[1].textContent.match(/^Step [1-9]/)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_pages_say_what_they_are_where_they_are_shared():
    described = {}
    for name in PAGES:
        soup = BeautifulSoup((HTML / name).read_text(encoding="utf-8"), "html.parser")
        said = {tag.get("name") or tag.get("property"): tag["content"] for tag in soup.find_all("meta", content=True)}
        assert len(soup.find_all("meta", attrs={"name": "description"})) == 1, name
        assert said["og:description"] == said["description"], name
        assert 20 < len(said["description"]) <= 200, name
        picture = HTML / Path(name).parent / said["og:image"]
        assert picture.read_bytes()[16:24] == (1200).to_bytes(4) + (630).to_bytes(4)  # the size of a PNG
        described[said["description"]] = name
    assert len(described) >= len(PAGES) - 2  # two pages begin with the counts of verdicts


@in_browser
def test_badges_can_be_read(visit):
    page = visit("book/index.html")
    colours = page.evaluate(
        """[...document.querySelectorAll('article .badge')].map(getComputedStyle)
            .map(style => [style.color, style.backgroundColor])"""
    )
    assert colours
    for pair in colours:
        light, dark = (luminance(colour) for colour in pair)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, pair


def luminance(colour):
    """The relative luminance of a colour that a style sheet has, as the accessibility guidelines define it."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@in_browser
def test_the_search_shows_what_stands_there_and_jumps_to_it(visit):
    page = visit("search.html?q=SPAQL-TS")
    results = page.locator("#search-results li")
    page.wait_for_selector("#search-results li a")
    assert results.count() >= 5
    assert page.locator("#search-results mark").first.inner_text().lower() == "spaql-ts"
    visit("search.html?q=terminal+weights")  # words of a section that stand apart in it
    shown = page.locator("#search-results li", has_text="Algorithms: SPAQL-TS")
    assert "weights" in shown.locator("p").inner_text()
    shown.locator("a").click()
    page.wait_for_url("**/book/algorithms.html#spaql-ts")
    assert page.evaluate("document.querySelector('#spaql-ts').getBoundingClientRect().top < innerHeight")
    visit("search.html?q=<b>nowhere</b>")
    assert page.locator("#search-results").inner_text() == "0 sections with “<b>nowhere</b>”."


@in_browser
def test_the_search_field_of_a_page_leads_to_the_search(visit):
    page = visit("book/index.html")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("button.search-button__button:visible").first.click()
    page.locator("#pst-search-dialog input").fill("pendulum")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li mark")


@in_browser
def test_the_table_of_claims_can_be_filtered(visit):
    page = visit("book/claims.html")
    page.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true; })")
    rows = page.locator("table.filtered tbody tr")
    assert rows.count() == len(load_claims())
    audit = BeautifulSoup((HTML / "notebooks" / "06_audit.html").read_text(encoding="utf-8"), "html.parser")
    with urlopen(audit.find("a", download="verdicts.csv")["href"]) as kept:  # as the audit judged them for this book
        frame = pd.read_csv(kept)
    for place, column in enumerate(("verdict", "run_verdict")):
        choice = page.locator(".filter select").nth(place)
        for verdict, count in frame[column].value_counts().items():
            choice.select_option(verdict)
            assert page.locator(".filter output").inner_text() == f"{count} of {len(frame)}"
        choice.select_option("")
    page.locator(".filter select").first.select_option("differs")
    shown = page.locator("table.filtered tbody tr:visible")
    assert 0 < shown.count() < rows.count()
    assert page.locator(".filter output").inner_text() == f"{shown.count()} of {rows.count()}"
    page.locator(".filter input").fill("cartpole-longer-2000")
    assert shown.count() == 1
    assert "differs" in shown.inner_text()


def test_every_link_within_the_book_leads_somewhere():
    soups = {name: BeautifulSoup((HTML / name).read_text(encoding="utf-8"), "html.parser") for name in PAGES}
    anchors = {name: {tag["id"] for tag in soup.find_all(id=True)} for name, soup in soups.items()}
    followed = 0
    for name, soup in soups.items():
        for link in soup.find_all("a", href=True):
            href = unquote(link["href"])
            if href.startswith("data:text/csv;base64,"):  # the data of a figure
                assert link["download"].endswith(".csv"), name
                continue
            if ":" in href.split("/")[0]:
                assert href.startswith(("https://", "mailto:", "http://")), (name, href)
                continue
            path, _, anchor = href.partition("#")
            target = os.path.normpath((Path(name).parent / path) if path else name)
            assert (HTML / target).exists(), (name, href)
            if anchor and target in anchors:
                assert anchor in anchors[target], (name, href)
                followed += 1
    assert followed > 100


def test_every_table_figure_and_algorithm_of_the_paper_is_there():
    soup = BeautifulSoup((HTML / "book" / "index.html").read_text(encoding="utf-8"), "html.parser")
    (table,) = (table for table in soup.find_all("table") if "in the paper" in table.get_text())
    rows = [row for row in table.find_all("tr") if row.find("td")]
    kinds = {"Table": 0, "Algorithm": 0, "Figure": 0}
    for row in rows:
        cell, target = row.find_all("td")
        links = target.find_all("a", href=True)
        kind = next(kind for kind in kinds if kind in cell.get_text())
        kinds[kind] += len(links)
        assert all(link.get_text().startswith(("Fig.", "Table", "Algorithm")) for link in links)
    assert kinds == {"Table": 5, "Algorithm": 3, "Figure": 13}


def test_no_substitution_or_directive_is_left_in_the_text():
    for name in PAGES:
        article = BeautifulSoup((HTML / name).read_text(encoding="utf-8"), "html.parser").find("article")
        for code in article.find_all("pre"):
            code.decompose()
        text = article.get_text()
        for left in ("{{", "```", "{numref}", "{doc}"):
            assert left not in text, (name, left)
        assert not re.search(r"\bnan\b", text), name


def test_the_book_shows_the_published_runs_and_computed_none_of_them():
    executed = sorted((HTML.parent / "source" / "notebooks").glob("*.ipynb"))
    assert [path.name for path in executed] == [path.name for path in NOTEBOOKS]
    for path in executed:
        text = shown(path)
        assert BANNER not in text, path
        assert re.search(r"This notebook took \d+ s, at commit ([0-9a-f]{10}|unknown)", text), path
    assert list((HTML.parent / "computed").rglob("*.npz")) == []


def test_the_readmes_figure_is_the_home_pages():
    """If not: cp _build/source/book/drawn/glance.svg book/"""
    drawn = HTML.parent / "source" / "book" / "drawn" / "glance.svg"
    kept = HTML.parents[1] / "book" / "glance.svg"
    same = kept.read_bytes() == drawn.read_bytes()  # pytest would look for what differs, for minutes
    assert same
