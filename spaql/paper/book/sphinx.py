"""The Sphinx extension of the book."""

from pathlib import Path
from typing import Any

from spaql.paper.book.icons import write_icons
from spaql.paper.book.pages import substitutions


def fill(app: Any, config: Any) -> None:
    """Give Sphinx the substitutions before it reads the pages."""
    config.myst_substitutions = substitutions(Path(app.srcdir) / "book", config.spaql_repository)


def link_repository(app: Any, config: Any) -> None:
    """Show the buttons that need the repository's address, if _config.yml has it."""
    if config.spaql_repository:
        config.html_theme_options |= {
            "repository_url": config.spaql_repository,
            "use_repository_button": True,
            "use_issues_button": True,
            "launch_buttons": {"binderhub_url": "https://mybinder.org"},
        }


def drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Take the scripts of live code cells off every page: the book has none, and they come from elsewhere."""

    def is_thebe(script: Any) -> bool:
        return "thebe" in f"{script.filename} {script.attributes.get('body', '')}".lower()

    for files in ("script_files", "css_files"):
        context[files] = [file for file in context[files] if not is_thebe(file)]


def shrink_icons(app: Any, exception: Exception | None) -> None:
    """Leave only the icons that pages use."""
    if exception is None and app.builder.name == "html":
        write_icons(Path(app.outdir))


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_config_value("spaql_repository", "", "html")
    app.connect("config-inited", fill)
    app.connect("config-inited", link_repository)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("build-finished", shrink_icons)
    return {"parallel_read_safe": True}
