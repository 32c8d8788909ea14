"""Search that works from a disk: the texts of all sections in one script, which the search page loads.

Sphinx's own search fetches every page it found to show what stands there, and a browser fetches nothing from a disk.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup

# What is not to be found.
SILENT = "script, style, svg, .cell_input, .headerlink, .data, pre.literal-block, details > summary"

SPHINX = ("_static/searchtools.js", "_static/language_data.js", "searchindex.js")  # what the page has no use for


class Section(NamedTuple):
    """A section of a page, without its subsections."""

    page: str  # its address from the book's folder
    anchor: str
    chapter: str  # the page's title
    title: str
    text: str


def sections_of(page: str, html: str) -> list[Section]:
    """Return the sections of a page, in its order."""
    article = BeautifulSoup(html, "html.parser").find("article")
    if article is None:
        return []
    for tag in article.select(SILENT):
        tag.decompose()
    for tag in article.select("span.whole"):  # a word of its sentence, see `spaql.paper.book.sphinx`
        tag.unwrap()
    article.smooth()
    chapter = article.find("h1")
    found = []
    for section in reversed(article.find_all("section", id=True)):  # inner ones before what they are in
        heading = section.find(["h1", "h2", "h3", "h4"], recursive=False)
        if heading is None:
            continue
        title, name = (single_spaced(tag.get_text()) for tag in (heading, chapter or heading))
        anchor = str(section["id"])
        if heading is not chapter:
            heading.extract()
        found.append(
            Section(page, anchor, name, title, single_spaced(section.get_text(" ")).removeprefix(title).strip())
        )
        section.extract()
    return found[::-1]


def single_spaced(text: str) -> str:
    """Return a text with single spaces, and without marks of where a word may be divided."""
    return " ".join(text.replace("\u00ad", "").replace("\u200b", "").split())


def write_search(html: Path, pages: Iterable[str]) -> Path:
    """Write the texts of all sections of a built book's pages for the search page, and let that use them."""
    found = [
        list(section) for page in pages for section in sections_of(page, (html / page).read_text(encoding="utf-8"))
    ]
    path = html / "_static" / "sections.js"
    path.write_text(f"const SPAQL_SECTIONS = {json.dumps(found, ensure_ascii=False)};\n", encoding="utf-8")
    searching = html / "search.html"
    lines = searching.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not any(f'src="{script}' in line for script in SPHINX)]
    scripts = "".join(f'  <script src="_static/{name}.js" defer></script>\n' for name in ("sections", "search"))
    searching.write_text("".join(kept).replace("</head>", f"{scripts}</head>", 1), encoding="utf-8")
    return path
