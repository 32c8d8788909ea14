"""The built book, as a reader's browser has it: `make book` first, as `make test` does."""

import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup

from spaql.paper.audit.claims import load_claims
from tests.conftest import CHROMIUM, in_browser

HTML = Path(__file__).parents[2] / "_build" / "html"
PAGES = sorted(
    str(path.relative_to(HTML)) for folder in ("book", "notebooks") for path in (HTML / folder).glob("*.html")
)

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PAGES, reason="there is no book: make book")]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def visit(browser):
    """Open a page from disk; whatever it complains about or asks for from elsewhere is a complaint."""
    complaints = []
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    page.on("request", lambda request: complaints.append(f"outside: {request.url}") if not local(request.url) else None)

    def open_page(name):
        page.goto(f"{HTML.as_uri()}/{name}", wait_until="load")
        return page

    yield open_page
    context.close()
    assert complaints == []


def local(url):
    return url.startswith(("file:", "data:", "blob:"))


@in_browser
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_disk(visit, name):
    page = visit(name)
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
    for source, natural, shown, alternative in images:
        assert natural > 0, source
        assert shown > 0, source
        assert alternative > 20, source
    # Nothing is wider than a phone.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@in_browser
def test_the_search_finds_spaql_ts(visit):
    page = visit("search.html?q=SPAQL-TS")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li").count() >= 5


@in_browser
def test_the_table_of_claims_can_be_filtered(visit):
    page = visit("book/claims.html")
    rows = page.locator("table.filtered tbody tr")
    assert rows.count() == len(load_claims())
    page.locator(".filter select").select_option("differs")
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


def test_the_readmes_figure_is_the_home_pages():
    """If not: cp _build/source/book/drawn/glance.svg book/"""
    drawn = HTML.parent / "source" / "book" / "drawn" / "glance.svg"
    assert (HTML.parents[1] / "book" / "glance.svg").read_text(encoding="utf-8") == drawn.read_text(encoding="utf-8")
