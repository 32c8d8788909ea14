"""Ctrl-C while machine code runs: held back, then raised where nothing is lost."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

_now: list[bool] = []  # one entry for each compilation under way, which Ctrl-C ends at once


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C raise at once, also where it is deferred: compiling takes seconds, and nothing is lost."""
    _now.append(True)
    try:
        yield
    finally:
        _now.pop()


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back; yield a function that raises it if it has come.  At the end it is raised in any case.

    Compiled code that hands its results to Python does not survive an exception at that moment, nor does a lock that
    has just been taken.
    """
    come: list[bool] = []

    def check() -> None:
        if come:
            raise KeyboardInterrupt

    def handle(*_: object) -> None:
        come.append(True)
        if _now:
            come.clear()
            raise KeyboardInterrupt

    # Only the main thread is ever interrupted, and only if nobody has switched that off.
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield check
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        signal.signal(signal.SIGINT, handle)
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
    check()
