"""The command `spaql`."""

import argparse
import logging
import time
from pathlib import Path

from spaql import __version__


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    parser = argparse.ArgumentParser(prog="spaql", description="A companion to 'Control with adaptive Q-learning'.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("bench", help="measure the speed, as ratios within one run")
    command.set_defaults(run=bench)

    command = commands.add_parser("claims", help="print the paper's claims with their verdicts")
    command.add_argument("--store", type=Path, help="folder of the results (default: the repository's)")
    command.set_defaults(run=claims)

    command = commands.add_parser("reproduce", help="compute the paper's runs, or what of them is not stored yet")
    command.add_argument(
        "--scale",
        default="paper",
        choices=("paper", "quick", "smoke"),
        help="paper: everything (default); quick: about two minutes; smoke: seconds",
    )
    command.add_argument(
        "--study",
        action="append",
        choices=("xi", "long", "trpo", "ablation"),
        help="which of them, may be given several times (default: xi and long; trpo takes hours)",
    )
    command.add_argument(
        "--store",
        type=Path,
        help="folder of the results (default: the repository's, or results-SCALE for a smaller scale)",
    )
    command.add_argument("--against", type=Path, help="folder of other results to compare these with")
    command.add_argument("--workers", type=positive, help="how many agents at a time (default: one a core)")
    command.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, to compute on its cluster instead")
    command.set_defaults(run=reproduce)

    command = commands.add_parser("run", help="run a notebook with other parameters")
    command.add_argument("notebook", help="a path, or the beginning of a notebook's name, as 02")
    command.add_argument(
        "-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="may be repeated"
    )
    command.add_argument(
        "--scale",
        default="paper",
        choices=("paper", "quick", "smoke"),
        help="set what -p does not for this scale (default: paper, which loads what is stored)",
    )
    command.add_argument("--output", type=Path, help="the executed notebook (default: in _build/runs)")
    command.set_defaults(run=run_notebook)

    options = vars(parser.parse_args(arguments))
    options.pop("run")(**options)


def positive(text: str) -> int:
    """Return a whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return int(text)


def bench() -> None:
    """Print the table of speeds."""
    from spaql.paper.bench import main

    main()


def claims(store: Path | None) -> None:
    """Print the table of verdicts."""
    from spaql.paper.audit.judge import as_text, verdicts

    print(as_text(verdicts(store)))


def run_notebook(notebook: str, parameter: list[list[str]], scale: str, output: Path | None) -> None:
    """Run a notebook, and say where the result is."""
    try:
        from spaql.paper.book.rerun import Refused, read_value, run_notebook
    except ImportError as error:
        raise SystemExit(f"spaql run: {error}") from error
    try:
        path = run_notebook(notebook, {name: read_value(value) for name, value in parameter}, scale, output)
    except Refused as error:
        raise SystemExit(f"spaql run: {error}") from error
    print(f"The executed notebook: {path}")


def reproduce(
    scale: str,
    study: list[str] | None,
    store: Path | None,
    against: Path | None,
    workers: int | None,
    scheduler: str | None,
) -> None:
    """Compute the paper's runs, say what it cost, and compare them with others if told to."""
    from spaql.paper.frames import finals
    from spaql.paper.runs.provenance import default_store
    from spaql.paper.runs.runner import load_stored, run
    from spaql.paper.runs.verify import agreement
    from spaql.paper.studies import paper_jobs

    store = store or (default_store() if scale == "paper" else Path(f"results-{scale}"))
    before = time.perf_counter()
    records = []
    for name in study or ("xi", "long"):
        records += run(paper_jobs(name, scale), workers=workers, scheduler=scheduler, store=store)
    wall = time.perf_counter() - before
    frame = finals(records)
    steps = int((frame.steps + frame.evaluation_steps).sum())
    print(f"{len(frame):,} agents at {scale} scale, {steps:,} environment steps; this call took {wall:.0f} s.")
    cost = frame.wall.sum()
    print(f"They cost {cost:.0f} worker-seconds, {cost / steps * 1e9:.0f} a billion steps; results in {store}.")
    if against is not None:
        theirs, absent = load_stored([record.job for record in records], against, repair=False)
        if absent:
            print(f"{len(absent):,} of these agents are not in {against}, or not of this code.")
        if not theirs:
            print("There is nothing to compare.")
            return
        compared = agreement(
            [r for r in records if r.job in theirs], [theirs[r.job] for r in records if r.job in theirs]
        )
        print(f"{compared.same_bits.sum():,} of {compared.agents.sum():,} agents equal those in {against} bit for bit.")
        disagreeing = compared[~compared.agrees]
        if len(disagreeing):
            print(disagreeing.to_string(index=False))
            raise SystemExit(f"{len(disagreeing)} of {len(compared)} groups of agents do not agree.")
        print(f"All {len(compared)} groups of agents agree statistically.")
