"""Agents on a Dask cluster: what is wrong with it is said within seconds, with what to do about it."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import Any

log = logging.getLogger(__name__)

PATIENCE = 8.0  # seconds after which a missing scheduler is an error, and a missing worker is worth a word
PACKAGE = "import spaql.paper.runs.runner"


def on_cluster(function: Callable, jobs: Iterable[Any], scheduler: str) -> Iterator[Any]:
    """Yield what a function of the package gives for each of these jobs, as the cluster of a scheduler computes it."""
    client = connect(scheduler)
    # What it would log when it loses the scheduler is pages long; the error says it in a sentence.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        await_worker(client, scheduler)
        futures = client.map(function, list(jobs), pure=False, retries=3)
        try:
            for future in completed(client, futures, scheduler):
                result = result_of(future, scheduler)
                future.release()  # or it would be computed again if its worker ended
                yield result
        finally:
            if client.status == "running":
                client.cancel(futures)
    finally:
        client.close(timeout=PATIENCE)


def connect(scheduler: str) -> Any:
    """Return a client of a scheduler, or say that there is none."""
    try:
        import distributed
    except ImportError as error:
        raise ImportError("a cluster needs the package distributed: pip install 'spaql[cluster]'") from error
    try:
        return distributed.Client(scheduler, timeout=PATIENCE)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        certificates = "; tls:// needs certificates, which Dask's configuration names" if "tls://" in scheduler else ""
        raise ConnectionError(
            f"there is no Dask scheduler at {scheduler}: start one (dask scheduler), or give the address that it shows"
            f"{certificates}"
        ) from error


def await_worker(client: Any, scheduler: str) -> None:
    """Wait some seconds for a worker; say so if none comes, and what is wrong with those that have come.

    It is no error that there is none: some clusters start their workers when there is something to do.
    """
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        say_no_worker(scheduler)
        return
    found = client.run(exec, PACKAGE, on_error="return")
    for worker, error in found.items():
        if isinstance(error, BaseException):
            raise RuntimeError(cannot_import(f"the Dask worker at {worker}", error)) from error


def completed(client: Any, futures: list[Any], scheduler: str) -> Iterator[Any]:
    """Yield futures as they complete; say if there is no worker left to compute the others.

    If a worker ends before its result is fetched, Dask says that the future is lost and computes it again: such a
    future is waited for once more.
    """
    import distributed

    waiting = distributed.as_completed(futures)
    looked, said = time.monotonic(), False
    while waiting.count():
        batch = waiting.next_batch(block=False)
        for future in batch:
            if future.status == "lost":
                waiting.add(future)
            else:
                yield future
        if not batch:
            time.sleep(0.05)
        if time.monotonic() - looked > PATIENCE and client.status == "running":
            alone, looked = not client.ncores(), time.monotonic()
            if alone and not said:
                say_no_worker(scheduler)
            said = alone


def result_of(future: Any, scheduler: str) -> Any:
    """Return what a worker computed, or say what is wrong."""
    lost = ConnectionError(
        f"the Dask scheduler at {scheduler} is lost: start it and its workers again, then give the same command; "
        "what was complete is stored, if there is a store"
    )
    if future.cancelled():
        raise lost
    error = future.exception() if future.status == "error" else None
    if isinstance(error, ModuleNotFoundError):
        raise RuntimeError(cannot_import("a Dask worker", error)) from error
    if error is not None:
        raise error
    try:
        return future.result()
    except (OSError, CancelledError) as broken:  # it went while the result was on its way
        raise lost from broken


def cannot_import(who: str, error: BaseException) -> str:
    """Return what to do about a worker without the package."""
    return f"{who} cannot import this package ({error}): install the same version there, pip install 'spaql[cluster]'"


def say_no_worker(scheduler: str) -> None:
    """Say that nothing is being computed."""
    log.warning("the Dask scheduler at %s has no workers: start some (dask worker %s); until then this waits, Ctrl-C "
                "ends it", scheduler, scheduler)  # fmt: skip
