"""Ctrl-C while machine code runs: held back, then raised where nothing is lost."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


class Deferred:
    """Notes that Ctrl-C has come, in the place of what is usually done then."""

    come = False

    def __call__(self, *_: object) -> None:
        self.come = True

    def check(self) -> None:
        """Raise it if it has come."""
        if self.come:
            raise KeyboardInterrupt


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back; yield a function that raises it if it has come.  At the end it is raised in any case."""
    # Compiled code that hands its results to Python does not survive an exception then, nor does a lock just taken.
    deferred = Deferred()
    # Only the main thread is ever interrupted, and only if nobody has switched that off.
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield deferred.check
        return
    before = signal.signal(signal.SIGINT, deferred)
    try:
        yield deferred.check
    finally:
        signal.signal(signal.SIGINT, before)
    deferred.check()


@contextlib.contextmanager
def immediate_interrupts() -> Iterator[None]:
    """Let Ctrl-C through although it is held back: making machine code takes long, and loses nothing."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not isinstance(before, Deferred):
        yield
        return
    before.check()  # one that has come already
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
