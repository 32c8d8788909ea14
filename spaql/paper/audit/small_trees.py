"""The best policies on other systems as trees, the smallest trees that solve the tasks, and random trees beside them.

Large policies take a while to read, so what the book says of them is kept in `results/trees.json`, which
`python -m spaql.paper.audit.small_trees` makes again.
"""

from typing import Any

from spaql.paper.audit.kept import write_kept
from spaql.paper.runs.provenance import default_store, own_store
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import load_stored
from spaql.paper.runs.stored_trees import simplified
from spaql.paper.studies import OTHER_SYSTEMS, study
from spaql.policies.interval import paper_interval
from spaql.policies.play import evaluate
from spaql.policies.simplify import random_search
from spaql.systems import solved_at

OPTIONS = {"leaves": 12, "proposals": 100, "episodes": 100, "fresh": 1000, "seed": 0}
TREES, SCORED = 500, 100  # random trees, of which the best is kept, and the episodes that score each
KINDS = (("SPAQL", "SPAQL-TS"), ("SPAQL-R",))  # of each the best agent, by its fresh episodes


def compute_trees() -> list[dict[str, Any]]:
    """Return one row per system and kind of agent."""
    records, _ = load_stored(study("systems"), default_store(), repair=False)
    rows = []
    for system in OTHER_SYSTEMS:
        for algorithms in KINDS:
            group = [r for r in records.values() if r.job.system == system and r.job.algorithm in algorithms]
            job = max(group, key=lambda record: record.fresh[0]).job
            policy = retrain(job).policy
            found = simplified(job, policy, (default_store(), own_store()), target=solved_at(system), **OPTIONS)
            row = {"system": system, "algorithm": job.algorithm, "agent": job.agent, "target": found.target}
            row |= {"exact": found.full.leaves, "exact_return": list(found.full_fresh)}
            if found.fresh.mean >= found.target:
                drawn = random_search(found.full, system, found.tree.leaves, TREES, SCORED, OPTIONS["seed"])
                earned = paper_interval(evaluate(drawn, system, OPTIONS["fresh"], OPTIONS["seed"] + 1))
                row |= {"small": found.tree.leaves, "small_return": list(found.fresh), "random_return": list(earned)}
            rows.append(row)
            print(row, flush=True)
    return rows


if __name__ == "__main__":
    write_kept("trees", random=TREES, rows=compute_trees())
