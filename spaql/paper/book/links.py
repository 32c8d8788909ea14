"""The links of the notebooks: plain Markdown, which Jupyter shows as it is, and roles once the book reads it.

Jupyter knows no roles of MyST, and would show them raw.  So the notebooks say `[the table below](#tab-xi)`, from which
the book makes a numbered reference, and mark a place by an anchor of HTML, from which it makes a target.
"""

import json
import re

LINK = re.compile(r"\[([^\[\]]+)\]\(([\w./]*)#([\w-]+)\)")
ANCHOR = re.compile(r'^<a id="([\w-]+)"></a>$', re.MULTILINE)
ALGORITHM = re.compile(r"^<!-- algorithm (alg-[\w-]+): (.+?) -->\n(.*?)\n<!-- end -->$", re.MULTILINE | re.DOTALL)


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
    boxed = ALGORITHM.sub(r"```{prf:algorithm} \2\n:label: \1\n\3\n```", text)
    return LINK.sub(role, ANCHOR.sub(r"(\1)=", boxed))


def notebook_in_roles(text: str) -> str:
    """Return a notebook, as it is stored, with roles in its Markdown: that of its cells and that of their outputs."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        held = [(cell, "source")] if cell["cell_type"] == "markdown" else []
        held += [(output["data"], "text/markdown") for output in cell.get("outputs", []) if "data" in output]
        for where, key in held:
            if key in where:
                where[key] = in_roles("".join(where[key]))
    return json.dumps(notebook, ensure_ascii=False)
