"""The links of the notebooks: plain Markdown, which Jupyter shows as it is, and roles once the book reads it.

Jupyter knows no roles of MyST, and would show them raw.  So the notebooks say `[the table below](#tab-xi)`, from which
the book makes a numbered reference, and mark a place by an anchor of HTML, from which it makes a target.  A quotation
that begins with `> **In short.**` becomes the box at the top of a chapter.
"""

import contextlib
import ipaddress
import json
import re
from urllib.parse import urlsplit

from spaql.paper.book.numbers import shown

LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./]*)#([\w-]+)\)")
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
ALGORITHM = re.compile(r"^<!-- algorithm (alg-[\w-]+): (.+?) -->\n(.*?)\n<!-- end -->$", re.MULTILINE | re.DOTALL)


BOX = re.compile(r"^> \*\*In short\.\*\* ((?:.*\n> ?)*.*)$", re.MULTILINE)


def box(quoted: re.Match[str]) -> str:
    """Return what a chapter says in short as an admonition."""
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
    """Return a notebook, as it is stored, as a chapter of the book.

    Its Markdown, that of its cells and that of their outputs, has the book's roles.  Its code is not shown, and a line
    at the end links to the notebook that has it.
    """
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            tags = {*cell["metadata"].get("tags", []), "remove-input"} - {"hide-input"}
            cell["metadata"]["tags"] = sorted(tags)
        held = [(cell, "source")] if cell["cell_type"] == "markdown" else []
        held += [(output["data"], "text/markdown") for output in cell.get("outputs", []) if "data" in output]
        for where, key in held:
            if key in where:
                where[key] = in_roles("".join(where[key]))
    link = f'Code: <a href="../_sources/{name}.ipynb" download>this notebook</a>.'
    notebook["cells"].append({"cell_type": "markdown", "id": "the-code", "metadata": {}, "source": link})
    return json.dumps(notebook, ensure_ascii=False)


def public_address(remote: str) -> str:
    """Return the address of a repository that anybody can open, given a remote of git; nothing if it is no such one."""
    parts = urlsplit(remote)
    host = parts.hostname or ""
    local = host.endswith((".local", ".internal", ".lan", ".localdomain", ".test")) or "." not in host
    with contextlib.suppress(ValueError):
        local |= not ipaddress.ip_address(host).is_global
    if parts.scheme not in ("http", "https") or local:
        return ""
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path.removesuffix('/').removesuffix('.git')}"
