"""The Sphinx extension of the book."""

import html
import re
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import Any

from docutils import nodes

from spaql.paper.book.icons import write_icons
from spaql.paper.book.links import chapter, public_address
from spaql.paper.book.numbers import shown
from spaql.paper.book.pages import PICTURE, substitutions
from spaql.paper.book.search import write_search
from spaql.paper.runs.provenance import repository
from spaql.paper.tables.table import unbroken


def fill(app: Any, config: Any) -> None:
    """Give Sphinx the substitutions before it reads the pages."""
    config.spaql_repository = config.spaql_repository or remote_address()
    config.myst_substitutions = substitutions(Path(app.srcdir) / "book", config.spaql_repository)


def remote_address() -> str:
    """Return the address of the repository that this clone comes from, if anybody can open it."""
    command = ["git", "remote", "get-url", "origin"]
    try:
        found = subprocess.run(command, cwd=repository() or None, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return public_address(found.stdout.strip())


def link_repository(app: Any, config: Any) -> None:
    """Show the buttons that need the repository's address, if it has one; Colab reads from GitHub alone."""
    address = config.spaql_repository
    if address:
        colab = {"colab_url": "https://colab.research.google.com"} if address.startswith("https://github.com/") else {}
        config.html_theme_options |= {
            "repository_url": address,
            "repository_branch": "main",
            "use_repository_button": True,
            "use_issues_button": True,
            "launch_buttons": {"binderhub_url": "https://mybinder.org"} | colab,
        }


def prepare_page(app: Any, docname: str, source: list[str]) -> None:
    """Give Sphinx pages without the names of their numbers, and notebooks as chapters."""
    is_notebook = app.env.doc2path(docname).endswith(".ipynb")
    source[0] = chapter(source[0], docname) if is_notebook else shown(source[0])


WHOLE = re.compile(r"(SPAQL-(?:TS|R)\b|\b\d{4}-\d\d-\d\d\b)")  # names and dates that stay on one line


def bind_text(app: Any, doctree: nodes.document, docname: str) -> None:
    """Keep together what a line must not end in: a number and its unit or its interval, a symbol and its value.

    A name with a hyphen or a date is one word.  In tables a name that is too long for a narrow column may be divided.
    """
    in_cells = {id(node) for cell in doctree.findall(nodes.entry) for node in cell.findall(nodes.Text)}
    for node in list(doctree.findall(nodes.Text)):
        if not isinstance(node.parent, (nodes.literal, nodes.literal_block, nodes.raw, nodes.math, nodes.math_block)):
            text = divisible(bound(str(node))) if id(node) in in_cells else bound(str(node))
            parts = WHOLE.split(text)  # every other one is a name or a date
            if len(parts) > 1 or text != node:
                pieces = [nodes.inline("", part, classes=["whole"]) if i % 2 else nodes.Text(part)
                          for i, part in enumerate(parts) if part]  # fmt: skip
                node.parent.replace(node, pieces)


def bound(text: str) -> str:
    """Return a text with spaces that no line ends at around ± and =, before units, and inside intervals."""
    text = re.sub(r"(?<=\d) ± (?=\d)", "\u00a0±\u00a0", text)
    text = re.sub(r"\b([A-Za-zξθγεα]) ([=<>≥≤])[ \u00a0](?=[−\d])", "\\1\u00a0\\2\u00a0", text)
    text = re.sub(r"([≥≤]) (?=[−\d])", "\\1\u00a0", text)
    text = re.sub(r"(?<=\d) (?=(?:Nm|N|m|kg|rad|rad/s|s|ns|µs|ms|MB|px|%)\b|%)", "\u00a0", text)
    return unbroken(text)


def divisible(text: str) -> str:
    """Return a text whose long names may be divided: after an underscore, or before their last word with a capital."""
    text = re.sub(r"(?<=[a-z])_(?=[a-z])", "_\u200b", text)
    return re.sub(r"\b(?=\w{16})(\w+[a-z])([A-Z][a-z]+)\b", "\\1\u00ad\\2", text)


def drop_thebe(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Take the scripts of live code cells off every page: the book has none, and they come from elsewhere."""

    def is_thebe(script: Any) -> bool:
        return "thebe" in f"{script.filename} {script.attributes.get('body', '')}".lower()

    for files in ("script_files", "css_files"):
        context[files] = [file for file in context[files] if not is_thebe(file)]


def describe_page(app: Any, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Tell machines what a page says, by its first paragraph, and which picture stands for it where it is shared."""
    texts = [node.astext() for node in doctree.findall(nodes.paragraph)] if doctree is not None else []
    text = textwrap.shorten(texts[0] if texts else app.config.html_title, 200, placeholder=" …")
    picture = f"_static/{PICTURE}"
    address = f"{app.config.html_baseurl}{picture}" if app.config.html_baseurl else context["pathto"](picture, True)
    said = {"name": {"description": text}}
    name = without_tags(context.get("title") or app.config.html_title)  # the page of the search has none
    said["property"] = {"og:title": name, "og:description": text, "og:image": address, "og:type": "article"}
    context["metatags"] = context.get("metatags", "") + "".join(
        f'<meta {kind}="{name}" content="{html.escape(value)}" />\n'
        for kind, pairs in said.items()
        for name, value in pairs.items()
    )


def without_tags(text: str) -> str:
    """Return a title without its tags."""
    return html.unescape(re.sub("<[^>]+>", "", text))


def keep_picture(app: Any, exception: Exception | None) -> None:
    """Put the picture for sharing beside the pages."""
    if exception is None and app.builder.name == "html":
        shutil.copy(Path(app.srcdir) / "book" / "drawn" / PICTURE, Path(app.outdir) / "_static")


def shrink_icons(app: Any, exception: Exception | None) -> None:
    """Leave only the icons that pages use."""
    if exception is None and app.builder.name == "html":
        write_icons(Path(app.outdir))


def index_sections(app: Any, exception: Exception | None) -> None:
    """Give the search page what it searches."""
    if exception is None and app.builder.name == "html":
        write_search(Path(app.outdir), (f"{name}.html" for name in sorted(app.env.found_docs)))


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_config_value("spaql_repository", "", "html")
    app.connect("config-inited", fill)
    app.connect("config-inited", link_repository)
    app.connect("source-read", prepare_page)
    app.connect("doctree-resolved", bind_text)
    app.connect("html-page-context", drop_thebe, priority=900)
    app.connect("html-page-context", describe_page)
    app.connect("build-finished", shrink_icons)
    app.connect("build-finished", keep_picture)
    app.connect("build-finished", index_sections)
    return {"parallel_read_safe": True}
