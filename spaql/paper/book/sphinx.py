"""The Sphinx extension of the book."""

import html
import textwrap
from pathlib import Path
from typing import Any

from docutils import nodes

from spaql.paper.book.links import chapter, shown
from spaql.paper.book.pages import substitutions


def fill(app: Any, config: Any) -> None:
    """Give Sphinx the substitutions before it reads the pages."""
    config.myst_substitutions = substitutions(Path(app.srcdir) / "book")


def prepare_page(app: Any, docname: str, source: list[str]) -> None:
    """Give Sphinx pages without the tags of their numbers, and notebooks as chapters."""
    is_notebook = app.env.doc2path(docname).endswith(".ipynb")
    source[0] = chapter(source[0], docname) if is_notebook else shown(source[0])


def finish_page(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Describe a page by its first paragraph; take the scripts of live code off it, which come from elsewhere."""
    paragraphs = [node.astext() for node in doctree.findall(nodes.paragraph)] if doctree is not None else []
    text = textwrap.shorten((paragraphs or [app.config.html_title])[0], 200, placeholder=" …")
    context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{html.escape(text)}" />\n'
    for files in ("script_files", "css_files"):
        context[files] = [
            file for file in context[files] if "thebe" not in f"{file.filename} {file.attributes.get('body')}".lower()
        ]


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("config-inited", fill)
    app.connect("source-read", prepare_page)
    app.connect("html-page-context", finish_page, priority=900)
    return {"parallel_read_safe": True}
