"""What the command line says, and how: text that any encoding can say, errors as one sentence."""

import codecs
import difflib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from spaql.paper.runs.errors import Damaged, Stale

# What an encoding without these characters shows instead.
PLAIN = {"ξ": "xi", "τ": "tau", "λ": "lambda", "±": "+-", "≥": ">=", "≤": "<=", "×": "x", "·": "*", "−": "-", "–": "-",
         "—": "-", "…": "...", "’": "'", "“": '"', "”": '"', "→": "->", "∞": "inf", "²": "^2", "√": "sqrt"}  # fmt: skip

# Which of the package's extras brings a module; the book's brings all others.
EXTRAS = {"joblib": "paper", "pandas": "paper", "pyarrow": "paper", "scipy": "paper", "distributed": "cluster",
          "sb3_contrib": "trpo", "stable_baselines3": "trpo", "torch": "trpo"}  # fmt: skip

EXPECTED = (Damaged, Stale, ImportError, OSError, RuntimeError, ValueError)


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.4) -> str:
    """Return the end of a sentence that a name is not known: with the known one that is like it, if there is one."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff)
    return f"; did you mean {near[0]}?" if near else "."


def no_parameter(whose: str, name: str, known: Iterable[str]) -> str:
    """Say that a notebook does not have a parameter, and which it has."""
    return f"{whose} has no parameter {name!r}{did_you_mean(name, known)} It has {', '.join(known)}"


def replace_unknown(error: UnicodeError) -> tuple[str, int]:
    """Return what to write where an encoding lacks a character."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(PLAIN.get(character, "?") for character in lacking), error.end


def speak_plainly() -> None:
    """Let no character stop a message that a terminal's or a file's encoding cannot say."""
    codecs.register_error("spaql", replace_unknown)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="spaql")


@contextmanager
def one_sentence(command: str) -> Iterator[None]:
    """End with one sentence where something is wrong with a file, a cluster or what was asked for.

    The sentence does not say where in the code that was; with SPAQL_DEBUG=1 a traceback does.
    """
    try:
        yield
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough
        with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: PTH123
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        raise SystemExit(1) from None
    except EXPECTED as error:
        if os.environ.get("SPAQL_DEBUG"):
            raise
        raise SystemExit(f"spaql {command}: {sentence(error)}") from error


def sentence(error: BaseException) -> str:
    """Return what an error says, on one line."""
    if isinstance(error, OSError) and error.strerror:
        where = error.filename2 or error.filename
        said = f"{where}: {error.strerror}" if where else error.strerror
    elif isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        said = f"{package} is not installed, and this needs it: pip install 'spaql[{EXTRAS.get(package, 'book')}]'"
    else:
        said = str(error) or type(error).__name__
    return " ".join(said.split())
