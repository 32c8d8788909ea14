"""Ctrl-C and other threads: the first is held back and raised where nothing is lost, the others are refused."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


class Deferred:
    """Notes that Ctrl-C has come, in the place of what is usually done then; a second one may be raised at once."""

    come = False

    def __init__(self, once: bool):
        self.once = once

    def __call__(self, *_: object) -> None:
        if self.come and self.once:
            raise KeyboardInterrupt
        self.come = True

    def check(self) -> None:
        """Raise it if it has come, in the main thread, which alone is ever interrupted."""
        if self.come and threading.current_thread() is threading.main_thread():
            self.come = False
            raise KeyboardInterrupt


@contextlib.contextmanager
def deferred_interrupts(once: bool = False) -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back, or only the first one; yield a function that raises it if it has come, as the end does."""
    # Compiled code that hands its results to Python does not survive an exception then, nor does a lock just taken.
    before = signal.getsignal(signal.SIGINT)
    deferred = before if isinstance(before, Deferred) else Deferred(once)  # it may be held back already
    if threading.current_thread() is not threading.main_thread() or not callable(before):  # or it is switched off
        yield deferred.check
        return
    signal.signal(signal.SIGINT, deferred)
    try:
        yield deferred.check
    finally:
        signal.signal(signal.SIGINT, before)
    deferred.check()


users: dict[int, tuple[int, object]] = {}  # of agents and environments, by their ids: the thread, and a mark of its own


@contextlib.contextmanager
def alone(thing: Any) -> Iterator[None]:
    """Be the only thread that uses an agent or an environment, or refuse."""
    mine = threading.get_ident(), object()
    owner = users.setdefault(id(thing), mine)
    if owner[0] != mine[0]:
        raise RuntimeError(f"another thread uses {thing!r}: until it has done so, other threads may only predict; "
                           "give each thread an agent and an environment of its own")  # fmt: skip
    try:
        yield
    finally:
        if owner is mine:
            del users[id(thing)]
