"""The command `spaql`."""

import argparse
import logging
import textwrap
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from spaql import __version__
from spaql.paper import studies
from spaql.paper.terminal import one_sentence, speak_plainly


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    speak_plainly()
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    parser = argparse.ArgumentParser(prog="spaql", description="A companion to 'Control with adaptive Q-learning'.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    # What several commands take.
    store, workers = (argparse.ArgumentParser(add_help=False) for _ in range(2))
    store.add_argument("--store", type=Path, help="folder of the results (default: the repository's)")
    workers.add_argument("--workers", type=positive, help="how many agents at a time (default: one per core)")
    study: dict[str, Any] = {"action": "append", "choices": studies.STUDIES}
    scale: dict[str, Any] = {"default": "paper", "choices": studies.SCALES}

    def add(function: Callable[..., None], says: str, *shared: argparse.ArgumentParser) -> Callable[..., Any]:
        command = commands.add_parser(name_of(function), help=says, parents=shared)
        command.set_defaults(run=function)
        return command.add_argument

    option = add(bench_command, "measure the speed, as ratios within one run")
    option("--record", action="store_true", help="keep the table with the results, for the book")

    option = add(claims_command, "print the paper's claims with their verdicts", store)
    option("id", nargs="*", help="those with these ids only; * and ? stand for any characters")
    option("--verdict", help="those with this verdict only, as differs")
    option("--json", action="store_true", help="as JSON, with every number in full")

    option = add(numbers_command, "print the numbers that the book's prose may use, by name")
    option("--write", action="store_true", help="put them into the prose where their names stand")

    option = add(reproduce_command, "compute the paper's runs, or what of them is not stored yet", workers)
    option("--scale", **scale, help="paper: everything (default); quick: about two minutes; smoke: seconds")
    option("--study", **study, help="may be repeated (default: xi and long; readings and trpo take long)")
    option("--store", type=Path, help="folder of the results (default: the repository's, or results-SCALE)")
    option("--against", type=Path, help="folder of other results to compare these with")
    option("--scheduler", metavar="ADDRESS", help="a Dask scheduler, to compute on its cluster instead")

    option = add(run_command, "run a notebook with other parameters")
    option("notebook", help="a path, or the beginning of a notebook's name, as 02")
    option("-p", "--parameter", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="may be repeated")
    option("--scale", **scale, help="set what -p does not for this scale (default: paper, which loads what is stored)")
    option("--output", type=Path, help="the executed notebook (default: in _build/runs)")

    add(pack_command, "put finished agents' own files into the table of agents", store)

    option = add(verify_command, "compute a sample of the stored agents again, and compare", store, workers)
    option("--study", **study, help="may be repeated (default: xi, long and ablation)")
    option("--agents", type=positive, help="how many in all (default: one of each group)")
    option("--all", action="store_true", dest="every",
           help="all agents of all studies, recorded; hours, but it goes on where it was interrupted")  # fmt: skip
    option("--seed", type=int, default=0, help="of the choice (default: 0)")
    option("--record", action="store_true",
           help="add the outcome to the log of attestations, and a new machine's canaries")  # fmt: skip

    options = vars(parser.parse_args(arguments))
    command = options.pop("run")
    with one_sentence(name_of(command)):
        command(**options)


def name_of(command: Callable[..., None]) -> str:
    """Return what a function is called on the command line."""
    return command.__name__.removesuffix("_command")


def positive(text: str) -> int:
    """Return a whole number above zero."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, not {text!r}")
    return int(text)


def existing(folder: Path) -> Path:
    """Return a folder that is there, or say that it is not."""
    if not folder.is_dir():
        raise NotADirectoryError(f"there is no folder {folder}: give another one, or call this in the repository")
    return folder


def bench_command(record: bool) -> None:
    """Print the table of speeds, and keep it if told to."""
    from spaql.paper.bench import print_bench

    print_bench(record)


def claims_command(id: list[str], verdict: str | None, json: bool, store: Path | None) -> None:
    """Print the table of verdicts, or those of some claims with what they say."""
    from spaql.paper.audit import judge
    from spaql.paper.audit.claims import matching
    from spaql.paper.runs.provenance import default_store

    store = existing(store or default_store())
    wanted = matching(id) if id else None  # before the minute that judging may take
    frame = judge.verdicts(store)
    if frame.ours.isna().all():
        raise ValueError(f"no claim could be judged: {store} holds none of the paper's results")
    shown = frame if wanted is None else frame[frame.id.isin(wanted)]
    if verdict is not None:
        if verdict not in (known := list(frame.verdict.unique())):
            raise ValueError(f"no claim has the verdict {verdict!r}: they are {', '.join(known)}")
        shown = shown[shown.verdict == verdict]
    if json:
        print(shown.to_json(orient="records", force_ascii=False, indent=1))
    else:
        print(with_statements(judge.as_text(shown), dict(zip(shown.id, shown.statement, strict=True))))


def numbers_command(write: bool) -> None:
    """Print the numbers that prose may use, or put them into it."""
    from spaql.paper.book import numbers

    if not write:
        print("\n".join(f"{name}: {text}" for name, text in numbers.numbers().items()))
        return
    for path in numbers.tagged_files():
        text = path.read_text(encoding="utf-8")
        if (right := numbers.rewritten(text)) != text:
            path.write_text(right, encoding="utf-8")
            print(path)


def with_statements(text: str, statements: Mapping[str, str]) -> str:
    """Return a table of claims with what each of them says below the line that begins with its id."""
    lines = []
    for line in text.splitlines():
        lines.append(line)
        said = statements.get(line.split()[0]) if line.startswith("  ") and line.strip() else None
        lines += textwrap.wrap(said, 114, initial_indent=" " * 6, subsequent_indent=" " * 6) if said else []
    return "\n".join(lines)


def pack_command(store: Path | None) -> None:
    """Pack finished records, and say what was done."""
    from spaql.paper.published import pack
    from spaql.paper.runs.provenance import default_store

    store = existing(store or default_store())
    done = pack(store)
    print(f"{done.agents:,} agents put into the table of {store}.")
    if done.left:
        raise SystemExit(f"{done.left:,} files were left as they are, for the reasons given above.")


def verify_command(
    agents: int | None,
    every: bool,
    seed: int,
    study: list[str] | None,
    store: Path | None,
    workers: int | None,
    record: bool,
) -> None:
    """Compute stored agents and canaries again, say whether they are the same, and write it down if told to."""
    from spaql.paper.runs.attestations import attest
    from spaql.paper.runs.canaries import KINDS, add_canaries, changed_canaries, compute_canaries
    from spaql.paper.runs.provenance import default_store, own_store, provenance
    from spaql.paper.runs.verify import verify

    store = store or default_store()
    names = study or (studies.STUDIES if every else ("xi", "long", "ablation"))
    jobs = [job for name in dict.fromkeys(names) for job in studies.study(name)]
    journal = None
    if every:
        agents, record = agents or len(jobs), True
        journal = own_store().parent / f"verified-{provenance()['commit'].replace(' ', '-')}.jsonl"
    found = verify(jobs, store, agents, seed, workers, journal=journal)
    if not found:
        raise SystemExit(f"spaql verify: there is nothing to verify: none of these agents are in {store}")
    wrong = []
    for verdict in found:
        known = "known" if verdict.expected else "new"
        share = f"{verdict.sampled / verdict.stored:.1%} of the {verdict.stored:,} stored agents of these studies"
        print(f"{verdict.family}: {verdict.sampled:,} agents were computed again, {share}.")
        print(f"{verdict.same_bits:,} of them have the bits of the stored ones.")
        print(f"The platform key is {verdict.platform} ({known}). Verdict: {verdict}.")
        if verdict.agreement is not None:
            print(verdict.agreement.to_string(index=False))
        wrong += [] if verdict.sound else [f"{verdict.family}: {verdict}"]
        for kind in (name for name, kind in KINDS.items() if (kind.family == "trpo") == (verdict.family == "trpo")):
            changed = changed_canaries(store, kind, progress_bar=True)
            if changed:
                wrong.append(f"canaries of {kind} changed ({'; '.join(changed)}): raise NUMERICS or undo")
            elif changed is not None:
                print(f"The canaries of {kind} are as they were.")
            elif record and verdict.sound:
                add_canaries(store, kind, compute_canaries(kind))
                print(f"The canaries of {kind} are stored for this key.")
    if record:
        attest(store, {verdict.family: verdict.entry() for verdict in found})
        print(f"Written down in {store / 'attestations.jsonl'}.")
    if wrong:
        raise SystemExit("\n".join(["spaql verify found differences:", *wrong]))


def run_command(notebook: str, parameter: list[list[str]], scale: str, output: Path | None) -> None:
    """Run a notebook, and say where the result is."""
    from spaql.paper.book.rerun import read_value, run_notebook

    path = run_notebook(notebook, {name: read_value(value) for name, value in parameter}, scale, output)
    print(f"The executed notebook: {path}")


def reproduce_command(
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

    store = store or (default_store() if scale == "paper" else Path(f"results-{scale}"))
    if against is not None:
        existing(against)
    before = time.perf_counter()
    records = []
    for name in dict.fromkeys(study or ("xi", "long")):
        records += run(studies.study(name, scale), workers=workers, scheduler=scheduler, store=store)
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
            raise ValueError("there is nothing to compare")
        compared = agreement(
            [r for r in records if r.job in theirs], [theirs[r.job] for r in records if r.job in theirs]
        )
        print(f"{compared.same_bits.sum():,} of {compared.agents.sum():,} agents equal those in {against} bit for bit.")
        disagreeing = compared[~compared.agrees]
        if len(disagreeing):
            print(disagreeing.to_string(index=False))
            raise SystemExit(f"{len(disagreeing)} of {len(compared)} groups of agents do not agree.")
        print(f"All {len(compared)} groups of agents agree statistically.")
