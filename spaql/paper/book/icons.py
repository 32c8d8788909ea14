"""The icons that pages use, in place of the 1.5 MB of script that the theme brings for thousands of them."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

SCRIPT = """"use strict";
// The icons that this book uses, of Font Awesome Free (icons: CC BY 4.0), each drawn in place of its element.
(() => {
  const icons = %s;
  for (const element of document.querySelectorAll("i.fa-solid, span.fa-solid, i.fas, span.fas")) {
    const name = [...element.classList].map((word) => word.replace(/^fa-/, "")).find((word) => icons[word]);
    if (!name) continue;
    const [width, height, path] = icons[name];
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const { name: key, value } of element.attributes) svg.setAttribute(key, value);
    svg.classList.add("svg-inline--fa");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("aria-hidden", "true");
    svg.innerHTML = `<path fill="currentColor" d="${path}"></path>`;
    element.replaceWith(svg);
  }
})();
"""


def used_icons(pages: Iterable[str]) -> set[str]:
    """Return the names of the icons that pages name."""
    return {name for page in pages for name in re.findall(r"\bfa-([a-z][a-z0-9-]*)", page)} - {"solid", "lg", "regular"}


def subset(library: str, names: Iterable[str]) -> dict[str, tuple[int, int, str]]:
    """Return width, height and path of icons as Font Awesome's own script has them, where the solid ones stand last."""
    found = {}
    for name in sorted(names):
        for entry in re.finditer(rf'[{{,]"?{name}"?:\[(\d+),(\d+),\[[^\]]*\],"[0-9a-f]+","([^"]+)"\]', library):
            found[name] = int(entry[1]), int(entry[2]), entry[3]
    return found


def write_icons(folder: Path) -> None:
    """Put a script with the used icons alone in place of the theme's, in a folder of built pages."""
    path = folder / "_static" / "scripts" / "fontawesome.js"
    pages = [page.read_text(encoding="utf-8") for page in folder.rglob("*.html")]
    icons = subset(path.read_text(encoding="utf-8"), used_icons(pages))
    if icons:  # else it is ours already
        path.write_text(SCRIPT % json.dumps(icons), encoding="utf-8")
