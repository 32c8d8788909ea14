"""The commands of `spaql`.  What they need is imported when they run, so that `--help` comes at once."""

import argparse
import ast
import logging
import sys
import tempfile
from pathlib import Path

from spaql import __version__
from spaql.paper import ROOT

QUICK = ["xi", "long", "ablation"]  # studies that are verified in a few minutes
SHOWN = 400  # characters of a message, which may quote what was typed
KINDS = {"int": int, "float": (int, float), "str": str, "bool": bool, "list": list}


def main(arguments=None):
    """Run the command line."""
    options = vars(make_parser().parse_args(arguments))
    command = options.pop("command")
    try:
        command(**options)
    except KeyboardInterrupt:
        raise SystemExit("spaql: interrupted") from None
    except (ImportError, LookupError, OSError, RuntimeError, ValueError) as error:
        raise SystemExit(f"spaql: {' '.join(str(error).split())[:SHOWN]}") from error


class Parser(argparse.ArgumentParser):
    """A parser whose messages stay short, whatever was typed."""

    def error(self, message):
        """Exit with a message."""
        super().error(message[:SHOWN])


def make_parser():
    """Return the parser of all commands."""
    parser = Parser(prog="spaql", description="A companion to 'Control with adaptive Q-learning'.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(command, **shown):
        found = commands.add_parser(command.__name__, allow_abbrev=False, **shown)
        found.set_defaults(command=command)
        return found.add_argument

    option = add(run, help="run a notebook with other parameters", add_help=False)
    option("notebook", nargs="?", default="", help="a path, or the beginning of a notebook's name, as 02")
    option("-p", dest="given", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="may be repeated")
    option("--output", type=Path, help="the executed notebook (default: in _build/runs)")
    option("-h", "--help", action="store_true", help="show the parameters of a notebook")

    option = add(claims, help="print the paper's claims with their verdicts")
    option("pattern", nargs="?", default="", help="those with such an id, as 'cartpole-*'")
    option("--verdict", choices=("holds", "differs", "undecided"), help="those with this verdict")

    for command, says, default in (
        (verify, "compute stored agents again, and compare", "xi, long and ablation"),
        (reproduce, "compute studies anew", "all that need no package that is missing"),
    ):
        option = add(command, help=says)
        option("--study", action="append", default=[], dest="studies", help=f"may be repeated (default: {default})")
        option("--workers", type=int, default=0, help="how many agents at a time (default: one a core)")
        if command is verify:
            option("--agents", type=int, help="how many in all (default: one of each group)")
        else:
            option("--into", type=Path, help="folder of the new files (default: results)")
            option("--scheduler", metavar="ADDRESS", help="a Dask scheduler, to compute on its cluster instead")

    add(bench, help="measure the speed, as ratios within one run")
    add(numbers)("--write", action="store_true")  # for maintainers, so not in the help
    return parser


def run(notebook, given, output, help):
    """Run a notebook with parameters that are checked first, or show them."""
    import papermill
    from traitlets.config import Config

    logging.getLogger("papermill").setLevel(logging.WARNING)  # its progress bar says enough
    if help:
        print("usage: spaql run NOTEBOOK [-p NAME VALUE]... [--output FILE]")
    if help and not notebook:
        return
    path = find_notebook(notebook)
    known = papermill.inspect_notebook(str(path))
    if help:
        for one in known.values():
            print(f"  {one['name']} = {one['default']}  {one['help']}")
        return
    output = output or ROOT / "_build" / "runs" / path.name
    (ROOT / "_build" / "runs").mkdir(parents=True, exist_ok=True)
    source = output.resolve().parent == ROOT / "notebooks" or (output.exists() and output.samefile(path))
    if not output.parent.is_dir() or (output.exists() and not output.is_file()) or source:
        raise ValueError(f"{output} cannot be the output: give a file in a folder that exists, not a source")
    parameters = {name: parse_value(name, text, known) for name, text in given}
    with tempfile.TemporaryDirectory() as folder:
        # Sockets of the kernel's own: ports that were free when they were chosen may be taken when it opens them.
        config = Config(KernelManager={"transport": "ipc", "connection_file": f"{folder}/kernel.json"})
        config.NotebookClient.extra_arguments = ["--log-level=CRITICAL"]  # what it says of a Ctrl-C helps nobody
        shown = sys.stderr.isatty()
        try:
            papermill.execute_notebook(path, output, parameters, cwd=path.parent, config=config, progress_bar=shown)
        except papermill.exceptions.PapermillExecutionError as error:
            raise RuntimeError(f"{error.ename}: {error.evalue}; {output} shows where") from None
    print(output)


def find_notebook(name):
    """Return the path of a notebook, given a path or the beginning of its name."""
    known = sorted((ROOT / "notebooks").glob("*.ipynb"))
    found = [Path(name)] if Path(name).is_file() else [path for path in known if path.stem.startswith(name)]
    if len(found) != 1:
        raise ValueError(f"give one notebook, not {name[:40]!r}: {', '.join(path.stem for path in known)}")
    return found[0].resolve()


def parse_value(name, text, known):
    """Return the value of a parameter, or say why the notebook cannot take it."""
    if name not in known:
        raise ValueError(f"the notebook has no parameter {name[:40]!r}: it has {', '.join(known)}")
    kind = known[name]["inferred_type_name"]
    try:
        value = text if kind == "str" else ast.literal_eval(text.title() if text in ("true", "false") else text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        value = None
    if not isinstance(value, KINDS.get(kind, object)) or isinstance(value, bool) != (kind == "bool"):
        raise ValueError(f"parameter {name} ({known[name]['help']}) is of type {kind}, which {text[:40]!r} is not")
    return value


def claims(pattern, verdict):
    """Print claims with their verdicts."""
    from spaql.paper.claims.page import show

    print(show(pattern, verdict))


def verify(studies, agents, workers):
    """Compute a sample of the stored agents again, and say whether they are the same."""
    from spaql.paper.engine.verify import chosen, verify

    found = verify(chosen(studies or QUICK), agents, workers=workers)
    print(found.groupby(["study", "verdict"], sort=False).size().rename("agents").reset_index().to_string(index=False))
    if not found.sound.all():
        raise SystemExit(f"These differ:\n{found[~found.sound].drop(columns='sound').to_string(index=False)}")


def reproduce(studies, into, workers, scheduler):
    """Compute studies anew."""
    from spaql.paper.engine.verify import chosen, reproduce

    for study in chosen(studies):
        print(reproduce(study, into, workers, scheduler), flush=True)


def bench():
    """Print the table of speeds."""
    from spaql.paper.bench import measure

    for what, figure, bound in measure():
        print(f"{what:<75} {figure:>8}   {bound}", flush=True)


def numbers(write):
    """Print the numbers that prose may use, or put them into it."""
    from spaql.paper.engine.numbers import load_numbers, write_numbers

    known = load_numbers()
    if not write:
        print("\n".join(f"{name}: {text}" for name, text in known.items()))
        return
    from spaql.paper.book.pages import glance

    print(*write_numbers(known), sep="\n")
    glance(ROOT / "book" / "glance.png")
