"""Which agent a search ends with: what the best and the last one of a training earn on the same fresh episodes.

Training takes no notice of what is kept at its end, so both come from one run.  `python -m spaql.paper.audit.ends`
makes `results/ends.json` again, in half an hour on one core.
"""

import itertools
from typing import Any

from spaql.paper.audit.kept import write_cells
from spaql.paper.runs.algorithms import untrained
from spaql.paper.runs.grid import make_jobs
from spaql.paper.runs.job import Job, seeds
from spaql.paper.studies import BOTH, LONG_XI
from spaql.rules import Rules

AGENTS = 100
SEARCHERS = ("SPAQL", "SPAQL-TS")
RESETS = {"yes": "splits", "no": "never"}  # whether the trainee returns to the best agent
HEATS = {"rises": 2.0, "constant": 1.0}  # u


def trained(agents: int = AGENTS) -> list[Job]:
    """Return the trainings: with and without returns to the best agent, with and without a rising temperature."""
    cells = itertools.product(BOTH, SEARCHERS, RESETS.values(), HEATS.values())
    return [
        job
        for system, name, reset, u in cells
        for job in make_jobs([name], [system], [LONG_XI[system][name]], agents, 2000, 20, rules=Rules(reset=reset), u=u)
    ]


def measure(job: Job) -> dict[str, Any]:
    """Train an agent, and return what the best and the last of its training earn.

    The last one is that of the last iteration, before it returns to the best.
    """
    agent = untrained(job).learn(job.iterations - 1, job.evaluations)
    agent._learner = agent._learner._replace(never_reset=True)
    best = earned(agent.learn(1, job.evaluations), job)
    agent._best = agent._trainee
    resets, heats = ({value: name for name, value in names.items()} for names in (RESETS, HEATS))
    return {
        "system": job.system,
        "algorithm": job.algorithm,
        "returns": resets[job.rules.reset],
        "temperature": heats[dict(job.parameters)["u"]],
        "agent": job.agent,
        "best": best,
        "last": earned(agent, job),
    }


def earned(agent: Any, job: Job) -> float:
    """Return the mean of the fresh episodes that a record of the job has."""
    return float(agent.evaluate(job.fresh, seed=seeds(job)[1].spawn(2)[0]).mean())


if __name__ == "__main__":
    jobs = trained()
    write_cells("ends", map(measure, jobs), len(jobs), ["system", "algorithm", "returns", "temperature"])
