"""The command `spaql`."""

import argparse

import spaql


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="spaql", description="A companion to 'Control with adaptive Q-learning'.")
    parser.add_argument("--version", action="version", version=spaql.__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("bench", help="measure the speed, as ratios within one run")
    options = parser.parse_args(arguments)
    if options.command == "bench":
        from spaql.bench import main as bench

        bench()
