"""The command `spaql`, which needs a clone of the repository."""


def main() -> None:
    """Run the command line of the clone, or say that there is none."""
    try:
        from spaql.paper.cli import main as run
    except ModuleNotFoundError as error:
        if error.name == "spaql.paper":
            raise SystemExit("spaql: this command works in a clone of the repository, not from a wheel") from None
        raise SystemExit(f"spaql: {error.name} is not installed: pip install -e '.[book]' in the clone") from None
    run()


if __name__ == "__main__":
    main()
