"""The agents of stored records, which hold no partitions: those that the book shows are kept, others trained again."""

import hashlib
import logging
import os
from pathlib import Path

import numpy as np

from spaql import archive, saving
from spaql.agent import Agent
from spaql.paper.runs import provenance
from spaql.paper.runs.algorithms import untrained
from spaql.paper.runs.errors import MADE_AGAIN, Stale, reading
from spaql.paper.runs.job import Job, Record
from spaql.paper.runs.store import load_record
from spaql.paper.runs.training import end_of, record_episode, train

log = logging.getLogger(__name__)

FORMAT, VERSION = "kept partition", 1


def retrain(job: Job, store: str | os.PathLike | None = "") -> Agent:
    """Return the agent of a job as it plays: its partition is loaded if it is kept, or else trained again.

    Training takes seconds, but the machine code for it half a minute in a new clone.

    Parameters
    ----------
    job
        Of one of the paper's algorithms, or of SPAQL-R.
    store
        The folder of stored results, none if None; if not given, the repository's, where partitions are kept too.  If
        it has the job's record, the agent's history should be what is stored of it bit for bit; a warning says if this
        machine computes otherwise (the last bit of a sine is enough, and then this is another agent of the same kind).
    """
    folder = None if store is None else Path(store) if store else provenance.default_store()
    kept = [partition_path(place, job) for place in (provenance.default_store(), provenance.own_store()) if store == ""]
    for path in kept:
        if path.is_file():
            return load_partition(path, job)
    agent, history = train(job)
    # AQL's forests are megabytes, and the book shows one episode of each; Random has nothing to keep.
    if kept and job.algorithm not in ("AQL", "Random"):
        save_partition(kept[-1], job, agent)
    if folder is not None:
        try:
            stored = load_record(folder, job)
        except (FileNotFoundError, Stale):
            return agent
        if not same_history(stored.history, history):
            log.warning(
                "agent %d of %s on %s is not the stored one to the last bit", job.agent, job.algorithm, job.system
            )
    return agent


def partition_path(store: Path, job: Job) -> Path:
    """Return where a job's partition is kept: another place for other jobs and other versions of the numbers."""
    asked = f"{job.identity()} {provenance.numerics(job)}"
    name = f"{job.system.rpartition('/')[2]}-{job.algorithm}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}.npz"
    return Path(store) / "partitions" / name


def save_partition(path: Path, job: Job, agent: Agent) -> None:
    """Write the partition that an agent plays by; neither its history nor what it remembers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    header = {"format": FORMAT, "version": VERSION, "job": job.named(), "provenance": provenance.provenance()}
    archive.write(path, header, saving.partition_arrays(agent._copy(agent._best), "best"))


def load_partition(path: Path, job: Job) -> Agent:
    """Return the agent of a job with the partition that is kept for it."""
    agent = untrained(job)
    with reading(path, MADE_AGAIN):
        header, arrays = archive.read(path, FORMAT, VERSION)
        if Job.parse(header["job"]) != job:
            raise ValueError("it is of another job")
        agent._trainee = agent._best = saving.read_partition(arrays, "best", agent._best, agent._learner.discrete)
    return agent


def same_history(stored: np.ndarray, history: np.ndarray) -> bool:
    """Return whether a history is the stored one bit for bit, in what is stored of it: some columns, or its end."""
    names = stored.dtype.names or ()
    again = history if len(stored) == len(history) else end_of(history)
    return len(stored) == len(again) and all(np.array_equal(stored[name], again[name]) for name in names)


def replay(record: Record, agent: Agent, seed: int) -> Record:
    """Return a record with another episode: of its agent, trained again, from the start that the seed draws.

    The episodes that are stored with records each begin in a state of their own; those of one seed begin in the same.
    """
    return record._replace(episode=record_episode(agent, record.job.system, np.random.SeedSequence(seed)))
