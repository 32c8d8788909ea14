"""The book's Sphinx extension: plain Markdown to the book's roles, and what its pages name.

Jupyter knows no roles of MyST and would show them raw.  So the notebooks say `[the table below](#tab-xi)`, from which
the book makes a numbered reference, and mark a place by an anchor of HTML, from which it makes a target.  A quotation
that begins with `> **In short.**` becomes the box at the top of a chapter.  Numbers lose their tags, and verdicts
become badges, in notebooks and pages alike (see `engine.numbers`).
"""

import html
import json
import re
import textwrap

from docutils import nodes

from spaql.paper.book.pages import substitutions
from spaql.paper.engine.numbers import TAG

LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./]*)#([\w-]+)\)")
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
ALGORITHM = re.compile(r"^<!-- algorithm (alg-[\w-]+): (.+?) -->\n(.*?)\n<!-- end -->$", re.MULTILINE | re.DOTALL)
BOX = re.compile(r"^> \*\*In short\.\*\* ((?:.*\n> ?)*.*)$", re.MULTILINE)


def shown(text: str) -> str:
    """Return Markdown with numbers without their tags, and verdicts as badges that link to the claim."""

    def show(tag: re.Match[str]) -> str:
        if not tag["name"].startswith("claim:"):
            return tag["text"] or ""
        first = re.split("[,.]", tag["name"].removeprefix("claim:"))[0]
        kind = tag["text"] if tag["text"] in ("holds", "differs") else "open"
        return f'<a class="badge badge-{kind}" href="../book/claims.html#claim-{first}">{tag["text"]}</a>'

    return TAG.sub(show, text)


def box(quoted: re.Match[str]) -> str:
    """Return the summary of a chapter as an admonition."""
    lines = re.sub(r"^> ?", "", quoted[1], flags=re.MULTILINE)
    return f":::{{admonition}} In short\n{lines}\n:::"


def role(link: re.Match[str]) -> str:
    """Return a link to a place as the role that refers to it: by number, if it has one."""
    words, page, label = link.groups()
    if page.endswith("references.md"):
        return f"{{cite}}`{label}`"
    if label.startswith(("fig-", "tab-")):
        return f"{{numref}}`{label}`"
    return f"{{prf:ref}}`{label}`" if label.startswith("alg-") else f"{{ref}}`{words} <{label}>`"


def in_roles(text: str) -> str:
    """Return Markdown with the roles, targets and directives that its links, anchors and comments stand for."""
    text = BOX.sub(box, shown(text))
    boxed = ALGORITHM.sub(r"```{prf:algorithm} \2\n:label: \1\n\3\n```", text)
    return LINK.sub(role, ANCHOR.sub(r"(\1)=", boxed))


def chapter(text: str, name: str) -> str:
    """Return a stored notebook as a chapter: its Markdown has the book's roles, and its code is folded away.

    Tags can show a cell's code, or remove it; what only makes a link has none.  The last line links to the notebook.
    """
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        tags = cell["metadata"].setdefault("tags", [])
        if cell["cell_type"] == "code" and not {"show-input", "hide-cell", "remove-input"} & set(tags):
            tags.append("remove-input" if "".join(cell["source"]).startswith("tables.download(") else "hide-input")
        if "parameters" in tags:
            cell["metadata"]["mystnb"] = {"code_prompt_show": "Parameters, which you can change"}
        held = [(cell, "source")] if cell["cell_type"] == "markdown" else []
        held += [(output["data"], "text/markdown") for output in cell.get("outputs", []) if "data" in output]
        for where, key in held:
            if key in where:
                where[key] = in_roles("".join(where[key]))
    link = f'<a href="../_sources/{name}.ipynb" download>This chapter as a notebook</a>'
    notebook["cells"].append({"cell_type": "markdown", "id": "the-notebook", "metadata": {}, "source": link})
    return json.dumps(notebook, ensure_ascii=False)


def fill(app, config):
    """Give Sphinx the substitutions before it reads the pages."""
    config.myst_substitutions = substitutions()


def prepare_page(app, docname, source):
    """Give Sphinx pages without the tags of their numbers, and notebooks as chapters."""
    is_notebook = app.env.doc2path(docname).endswith(".ipynb")
    source[0] = chapter(source[0], docname) if is_notebook else shown(source[0])


def finish_page(app, pagename, templatename, context, doctree):
    """Describe a page by its first paragraph; take the scripts of live code off it, which come from elsewhere."""
    paragraphs = [node.astext() for node in doctree.findall(nodes.paragraph)] if doctree is not None else []
    text = textwrap.shorten((paragraphs or [app.config.html_title])[0], 200, placeholder=" …")
    context["metatags"] = context.get("metatags", "") + f'<meta name="description" content="{html.escape(text)}" />\n'
    for files in ("script_files", "css_files"):
        context[files] = [
            file for file in context[files] if "thebe" not in f"{file.filename} {file.attributes.get('body')}".lower()
        ]


def setup(app):
    """Connect to Sphinx."""
    app.connect("config-inited", fill)
    app.connect("source-read", prepare_page)
    app.connect("html-page-context", finish_page, priority=900)
    return {"parallel_read_safe": True}
