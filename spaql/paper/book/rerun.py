"""`spaql run`: papermill with its parameters checked first."""

import ast
import contextlib
import datetime
import itertools
import logging
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from spaql.checks import MOST, check_integer, check_number, is_finite
from spaql.paper.runs.provenance import repository
from spaql.paper.studies import STUDIES
from spaql.paper.terminal import did_you_mean, no_parameter
from spaql.rules import check_rules

try:
    import nbformat
    import papermill
    from jupyter_client.kernelspec import find_kernel_specs
except ImportError as error:
    raise ImportError("running a notebook needs papermill: pip install 'spaql[book]'") from error

logging.getLogger("papermill").setLevel(logging.WARNING)  # its progress bar says enough


# Studies beside a notebook's own, by how the names of its parameters that belong to them begin.
OTHERS = {"long_": "long", "variant_": "variants"}
BASELINES = ("trpo_", "fitted_")  # which take minutes each

LEAST = {"agents of each cell of the ablation": 2}  # of parameters that need more than one, by their help


class Refused(ValueError):
    """A notebook or a parameter that cannot be run."""


def read_value(text: str) -> Any:
    """Return the value of a parameter on the command line: a number, a list, true or false, or the text itself."""
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return text
    except (RecursionError, MemoryError) as error:
        raise Refused(f"the value {text[:20]}… is nested too deeply: give a number, a text or a list") from error


def find_notebook(name: str) -> Path:
    """Return the path of a notebook, given that or the beginning of its name."""
    path = Path(name)
    if path.is_file():
        return path
    if path.suffix == ".ipynb":
        raise Refused(f"there is no file {name}")
    root = repository()
    if root is None:
        raise Refused(f"there is no file {name}, and this is no repository whose notebooks it could name")
    known = sorted((root / "notebooks").glob("*.ipynb"))
    found = [known_path for known_path in known if known_path.stem.startswith(name)]
    if len(found) == 1:
        return found[0]
    names = [known_path.stem for known_path in found or known]
    if found:
        raise Refused(f"{name!r} is the beginning of several notebooks: {', '.join(names)}")
    raise Refused(f"there is no notebook {name!r}{did_you_mean(name, names, 0.3)} The notebooks: {', '.join(names)}")


def declared_parameters(path: Path) -> dict[str, dict[str, Any]]:
    """Return the parameters of a notebook: for each its default, its type's name and its help."""
    read_notebook(path)
    declared = {}
    for name, entry in papermill.inspect_notebook(str(path)).items():
        try:
            default = ast.literal_eval(entry["default"])
        except (ValueError, SyntaxError) as error:
            raise Refused(f"parameter {name} of {path.name} is {entry['default']}: expected a constant") from error
        stated = entry["inferred_type_name"]
        kind = type(default).__name__ if stated in (None, "None") else stated  # others may not annotate theirs
        declared[name] = {"default": default, "type": kind, "help": entry["help"]}
    return declared


def read_notebook(path: Path) -> Any:
    """Return a notebook, or say that a file is none."""
    try:
        return nbformat.read(path, as_version=4)
    except OSError:
        raise
    except Exception as error:  # its readers raise what their checker of schemas does, and more
        raise Refused(f"{path} is not a notebook: {str(error).splitlines()[0]}") from error


def check_kernel(path: Path) -> None:
    """Raise an error if a notebook names no kernel, or one that is not installed."""
    kernel = read_notebook(path).metadata.get("kernelspec", {}).get("name")
    if kernel not in find_kernel_specs():
        raise Refused(f"{path.name} needs the kernel {kernel!r}, which is not installed here")


def check_parameter(name: str, value: Any, like: dict[str, Any]) -> Any:
    """Return a value for a parameter, or say why it cannot be one."""

    def is_number(x: Any) -> bool:
        return isinstance(x, int | float) and not isinstance(x, bool) and is_finite(x)

    expected = {
        "int": ("a whole number", lambda x: isinstance(x, int) and not isinstance(x, bool)),
        "float": ("a number", is_number),
        "bool": ("true or false", lambda x: isinstance(x, bool)),
        "str": ("text", lambda x: isinstance(x, str)),
        "list": ("a list of numbers, as [0, 4, 40]", lambda x: isinstance(x, list) and x and all(map(is_number, x))),
    }
    words, holds = expected.get(like["type"], ("anything", lambda x: True))
    if not holds(value):
        raise Refused(f"parameter {name} must be {words}, not {value!r} ({like['help']})")
    try:
        if like["type"] == "int":
            least = LEAST.get(like["help"], 1 if like["default"] > 0 and not name.startswith(BASELINES) else 0)
            check_integer(name, value, least, at_most=2**63 - 1 if name == "seed" else MOST)
        if name == "rules":
            check_rules(value)
        if name == "xis" or name.startswith("xi_"):
            for xi in value if isinstance(value, list) else [value]:
                check_number(name, xi, at_least=0.0)
    except ValueError as error:
        raise Refused(str(error)) from error
    return value


def check_parameters(path: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters given for a notebook, or say which one it does not have or cannot take."""
    declared = declared_parameters(path)
    for name in given:
        if name not in declared:
            raise Refused(no_parameter(path.stem, name, declared))
    return {name: check_parameter(name, value, declared[name]) for name, value in given.items()}


def scale_parameters(path: Path, scale: str) -> dict[str, Any]:
    """Return what a smaller scale changes in the parameters of a notebook: stored baselines stay, or are left out."""
    declared = declared_parameters(path)
    study = read_notebook(path).metadata.get("spaql", {}).get("study")
    if study is None:
        raise Refused(f"{path.name} says no study in its metadata, so that no scale is known for it: leave --scale out")
    changed = {
        prefix + name: value for prefix, other in OTHERS.items() for name, value in STUDIES[other].scales[scale].items()
    }
    if "fresh" in STUDIES[study].scales[scale]:  # no baseline is stored with so few episodes
        changed |= {prefix + "agents": 0 for prefix in BASELINES}
    changed |= {
        name: list(value) if isinstance(value, tuple) else value for name, value in STUDIES[study].scales[scale].items()
    }
    return {name: value for name, value in changed.items() if name in declared}


def run_notebook(name: str, given: dict[str, Any], scale: str = "paper", output: Path | None = None) -> Path:
    """Run a notebook with parameters that are checked first; say what differs from our stored run.

    What is not given is set for the scale.  The output, a new file beside the book if not given, is replaced only when
    all cells have run; otherwise what was done is beside it, as "-failed".
    """
    path = find_notebook(name)
    check_kernel(path)
    if output is not None and output.is_dir():
        raise Refused(f"{output} is a folder: give the file to write, as {output / path.name}")
    parameters = check_parameters(path, (scale_parameters(path, scale) if scale != "paper" else {}) | given)
    declared = declared_parameters(path)
    different = [
        {"parameter": name, "published": entry["default"], "this run": parameters[name], "": entry["help"]}
        for name, entry in declared.items()
        if name in parameters and parameters[name] != entry["default"]
    ]
    if different:
        print(f"{path.stem} with other parameters than our stored run:")
        print(pd.DataFrame(different).to_string(index=False))
    else:
        print(f"{path.stem} with the parameters of our stored run")
    output = output or own_output(path)
    output.parent.mkdir(parents=True, exist_ok=True)
    failed = unfinished(output)
    try:
        papermill.execute_notebook(
            str(path), str(failed), parameters, cwd=str(path.parent), progress_bar=True, stderr_file=sys.stderr
        )
    except papermill.PapermillExecutionError as error:
        raise Refused(
            f"a cell of {path.name} failed ({error.ename}: {error.evalue}); what was done until then is in {failed}"
        ) from error
    failed.replace(output)
    return output


def own_output(path: Path) -> Path:
    """Return a file for the executed notebook that no other run writes, also none that begins at the same moment."""
    now = datetime.datetime.now().strftime("%Y-%m-%dT%H%M%S")
    folder = (repository() or Path()) / "_build" / "runs"
    names = itertools.chain([""], (f"-{i}" for i in itertools.count(2)))
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        file = folder / f"{path.stem}-{now}{name}.ipynb"
        with contextlib.suppress(FileExistsError):
            if not file.exists():
                unfinished(file).touch(exist_ok=False)  # from now on it is ours
                return file
    raise AssertionError("there are always more names")


def unfinished(output: Path) -> Path:
    """Return the file that holds an executed notebook until it is complete."""
    return output.with_stem(f"{output.stem}-failed")
