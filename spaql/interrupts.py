"""Ctrl-C while machine code runs: held back, then raised where nothing is lost."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


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

    # Only the main thread is ever interrupted, and only if nobody has switched that off.
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield check
        return
    try:
        signal.signal(signal.SIGINT, lambda *_: come.append(True))
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
    check()
