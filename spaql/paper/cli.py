"""The commands of `spaql`.  What they need is imported when they run, so that `--help` comes at once."""

import argparse
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spaql import __version__
from spaql.paper.engine.provenance import clone

QUICK = ["xi", "long", "ablation"]  # studies that are verified in a few minutes
SHOWN = 400  # characters of a message, which may quote what was typed


class Parser(argparse.ArgumentParser):
    """A parser whose messages stay short."""

    def error(self, message: str) -> Any:
        """Exit with a message."""
        super().error(message[:SHOWN])


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    streams: list[Any] = [stream for stream in (sys.stdout, sys.stderr) if hasattr(stream, "reconfigure")]
    for stream in streams:
        stream.reconfigure(errors="replace")  # where an encoding has no ξ
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    options = vars(make_parser().parse_args(arguments))
    command = options.pop("command")
    try:
        clone()
        command(**options)
    except KeyboardInterrupt:
        raise SystemExit("spaql: interrupted") from None
    except (ImportError, LookupError, OSError, RuntimeError, ValueError) as error:
        raise SystemExit(f"spaql: {' '.join(str(error).split())[:SHOWN]}") from error


def make_parser() -> Parser:
    """Return the parser of all commands."""
    parser = Parser(prog="spaql", description="A companion to 'Control with adaptive Q-learning'.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(command: Callable[..., None], **shown: Any) -> Callable[..., Any]:
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
    option("--json", action="store_true", dest="as_json", help="as JSON, with every number")

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


def run(notebook: str, given: list[list[str]], output: Path | None, help: bool) -> None:
    """Run a notebook with parameters that are checked first."""
    from spaql.paper.run_notebook import help_text, run_notebook

    print(help_text(notebook) if help else run_notebook(notebook, dict(given), output))


def claims(pattern: str, verdict: str | None, as_json: bool) -> None:
    """Print claims with their verdicts."""
    from spaql.paper.claims.page import show

    print(show(pattern, verdict, as_json))


def verify(studies: list[str], agents: int | None, workers: int) -> None:
    """Compute a sample of the stored agents again, and say whether they are the same."""
    from spaql.paper.engine.reproduce import chosen
    from spaql.paper.engine.verify import verify

    found = verify(chosen(studies or QUICK), agents, workers=workers)
    print(found.groupby(["study", "verdict"], sort=False).size().rename("agents").reset_index().to_string(index=False))
    if not found.sound.all():
        raise SystemExit(f"These differ:\n{found[~found.sound].drop(columns='sound').to_string(index=False)}")


def reproduce(studies: list[str], into: Path | None, workers: int, scheduler: str | None) -> None:
    """Compute studies anew."""
    from spaql.paper.engine.reproduce import chosen, reproduce

    for study in chosen(studies):
        print(reproduce(study, into, workers, scheduler), flush=True)


def bench() -> None:
    """Print the table of speeds."""
    from spaql.paper.bench import measure

    for what, figure, bound in measure():
        print(f"{what:<75} {figure:>8}   {bound}", flush=True)


def numbers(write: bool) -> None:
    """Print the numbers that prose may use, or put them into it."""
    from spaql.paper.engine.numbers import load_numbers, write_numbers

    known = load_numbers()
    if not write:
        print("\n".join(f"{name}: {text}" for name, text in known.items()))
        return
    from spaql.paper.book.pages import glance

    print(*write_numbers(known), sep="\n")
    glance(clone() / "book" / "glance.png")
