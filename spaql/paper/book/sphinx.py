"""The Sphinx extension of the book."""

from pathlib import Path
from typing import Any

from spaql.paper.book.pages import substitutions


def fill(app: Any, config: Any) -> None:
    """Give Sphinx the substitutions before it reads the pages."""
    config.myst_substitutions = substitutions(Path(app.srcdir) / "book" / "drawn")


def drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Take the scripts of live code cells off every page: the book has none, and they come from elsewhere."""

    def is_thebe(script: Any) -> bool:
        return "thebe" in f"{script.filename} {script.attributes.get('body', '')}".lower()

    for files in ("script_files", "css_files"):
        context[files] = [file for file in context[files] if not is_thebe(file)]


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("config-inited", fill)
    app.connect("html-page-context", drop_thebe, priority=900)
    return {"parallel_read_safe": True}
