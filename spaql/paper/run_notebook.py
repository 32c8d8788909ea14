"""`spaql run`: papermill, with parameters that are checked first."""

import ast
import logging
from pathlib import Path
from typing import Any

import papermill

from spaql.paper.engine.provenance import clone

logging.getLogger("papermill").setLevel(logging.WARNING)  # its progress bar says enough

KINDS: dict[str, Any] = {"int": int, "float": (int, float), "str": str, "bool": bool, "list": list}


def run_notebook(name: str, given: dict[str, str], output: Path | None = None) -> Path:
    """Run a notebook, given its path or the beginning of its name; return where the result is."""
    path, runs = find(name), clone() / "_build" / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    output = output or runs / path.name
    if not output.parent.is_dir() or (output.exists() and not output.is_file()) or output.resolve() == path.resolve():
        raise ValueError(f"{output} cannot be the output: give a file in a folder that exists, not the notebook itself")
    known = papermill.inspect_notebook(str(path))
    parameters = {key: value_of(key, text, known) for key, text in given.items()}
    papermill.execute_notebook(str(path), str(output), parameters, cwd=str(path.parent))
    return output


def find(name: str) -> Path:
    """Return the path of a notebook."""
    known = sorted((clone() / "notebooks").glob("*.ipynb"))
    found = [Path(name)] if Path(name).is_file() else [path for path in known if path.stem.startswith(name)]
    if len(found) != 1:
        raise ValueError(f"give one notebook, not {name[:40]!r}: {', '.join(path.stem for path in known)}")
    return found[0].resolve()


def value_of(key: str, text: str, known: dict[str, Any]) -> Any:
    """Return the value of a parameter, or say why the notebook cannot take it."""
    if key not in known:
        raise ValueError(f"the notebook has no parameter {key[:40]!r}: it has {', '.join(known)}")
    kind = known[key]["inferred_type_name"]
    try:
        value = text if kind == "str" else ast.literal_eval(text.title() if text in ("true", "false") else text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, KINDS.get(kind, object)) or isinstance(value, bool) != (kind == "bool"):
        raise ValueError(f"parameter {key} ({known[key]['help']}) is of type {kind}, which {text[:40]!r} is not")
    return value


def help_text(name: str) -> str:
    """Return how to run a notebook, with its parameters."""
    lines = ["usage: spaql run NOTEBOOK [-p NAME VALUE]... [--output FILE]"]
    if name:
        parameters = papermill.inspect_notebook(str(find(name))).values()
        lines += [f"  {parameter['name']} = {parameter['default']}  {parameter['help']}" for parameter in parameters]
    return "\n".join(lines)
