"""How long the built book is: words of prose, and screens of 1280 by 900 pixels, page by page.

    python -m spaql.paper.book.measure [FOLDER]     # the folder of the book, _build/html if not given

Prose is what a page says in sentences: paragraphs, lists, headings and captions.  Tables, code, formulas, the
references and the documentation of the package are no prose.  What is folded takes no room on a screen.
"""

import shutil
import sys
from pathlib import Path

from bs4 import BeautifulSoup

# What is no prose, and the parts of a page that are not its text.
LEFT_OUT = "table, pre, script, style, svg, .math, .headerlink, a.data, dl.py, div.citation, .glossary dt"
WIDTH, HEIGHT = 1280, 900


def words_of(html: str) -> int:
    """Return how many words of prose a page has."""
    article = BeautifulSoup(html, "html.parser").find("article")
    if article is None:
        return 0
    captions = [caption.get_text(" ") for caption in article.select("table caption")]
    for tag in article.select(LEFT_OUT):
        tag.decompose()
    return len(" ".join([article.get_text(" "), *captions]).split())


def main(folder: Path) -> None:
    """Print the words and screens of every page, and of all of them."""
    from playwright.sync_api import sync_playwright

    pages = sorted((*folder.glob("book/*.html"), *folder.glob("notebooks/*.html")))
    if not pages:
        raise SystemExit(f"there is no book in {folder}: make book")
    browser_path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    total, height = 0, 0.0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for path in pages:
            view.goto(path.resolve().as_uri(), wait_until="load")
            view.evaluate("window.MathJax?.startup?.promise")
            words = words_of(path.read_text(encoding="utf-8"))
            screens = view.evaluate("document.documentElement.scrollHeight") / HEIGHT
            print(f"{words:7,} {screens:6.1f}  {path.relative_to(folder)}")
            total, height = total + words, height + screens
        browser.close()
    print(f"{total:7,} {height:6.1f}  words and screens in all")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "_build/html"))
