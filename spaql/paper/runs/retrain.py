"""Agents of stored records, trained again: records hold no partitions."""

import logging
import os
from pathlib import Path

import numpy as np

from spaql.agent import Agent
from spaql.paper.runs import provenance
from spaql.paper.runs.checkpoints import train_with_looks
from spaql.paper.runs.errors import Stale
from spaql.paper.runs.job import ALGORITHMS, Job, Record, history_of, record_episode, untrained
from spaql.paper.runs.repaired_settings import REPAIRED
from spaql.paper.runs.store import load_record

log = logging.getLogger(__name__)


def retrain(job: Job, store: str | os.PathLike | None = "") -> Agent:
    """Return the agent of a job, trained again from its seeds: records hold no partitions, and it takes seconds.

    Parameters
    ----------
    job
        Of one of the paper's algorithms, or of SPAQL-R.
    store
        The folder of stored results; the repository's if not given, none if None.  If it has the job's record, the
        agent's history should be the record's bit for bit; a warning says if this machine computes otherwise (the last
        bit of a sine is enough, and then this is another agent of the same kind).
    """
    if job.algorithm not in (known := dict.fromkeys((*ALGORITHMS, *REPAIRED))):
        raise ValueError(f"algorithm must be one of {', '.join(known)}, not {job.algorithm!r}")
    if job.looks or job.algorithm in REPAIRED:
        agent, history = train_with_looks(job)
    else:
        agent = untrained(job).learn(job.iterations, job.evaluations)
        history = history_of(agent, job.brief)
    if store is not None:
        try:
            stored = load_record(Path(store) if store else provenance.default_store(), job)
        except (FileNotFoundError, Stale):
            return agent
        if not np.array_equal(stored.history, history):
            log.warning(
                "agent %d of %s on %s is not the stored one to the last bit", job.agent, job.algorithm, job.system
            )
    return agent


def replay(record: Record, agent: Agent, seed: int) -> Record:
    """Return a record with another episode: of its agent, trained again, from the start that the seed draws.

    The episodes that are stored with records each begin in a state of their own; those of one seed begin in the same.
    """
    return record._replace(episode=record_episode(agent, record.job.system, np.random.SeedSequence(seed)))
