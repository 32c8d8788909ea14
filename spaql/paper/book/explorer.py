"""The data of the book's explorer: policies as exact trees, for a page that needs neither server nor Python."""

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from spaql.paper.frames import best
from spaql.paper.runs.job import make_agent
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import run
from spaql.paper.runs.stored_trees import PUBLISHED, simplified
from spaql.paper.studies import paper_jobs
from spaql.policies.exact_tree import Branches
from spaql.policies.export import export_text
from spaql.policies.play import evaluate
from spaql.policies.policy import Policy
from spaql.policies.tree import LEAF, Tree, Variables, variables_of
from spaql.spaces import to_box
from spaql.systems import compiled_world, episode_limit, make_env, solved_at, system_of, title

SEED = 1000  # of the episodes whose mean return the page shows

SYSTEMS = ("CartPole-v0", "Pendulum-v1", "spaql/PendulumDiscrete-v1")  # of the paper, in the page's order

# Systems that the paper does not have, and the ξ of the policies trained for the page alone: a look, not an experiment.
OTHERS: dict[str, dict[str, float]] = {
    "CartPole-v1": {"SPAQL-TS": 20, "SPAQL": 20},
    "MountainCar-v0": {"SPAQL": 1},
    "MountainCarContinuous-v0": {"SPAQL-TS": 4},
    "Acrobot-v1": {"SPAQL-TS": 20, "SPAQL": 0.4},
}
ITERATIONS, EVALUATIONS = 1000, 20  # of their training


class Shown(NamedTuple):
    """A policy for the explorer."""

    system: str  # a Gymnasium id of a compiled system
    title: str
    what: Policy | Tree


def paper_policies(**running: Any) -> list[Shown]:
    """Return the best SPAQL and SPAQL-TS policies of the paper's long runs, each with a simplified tree.

    Parameters
    ----------
    running
        How to get the records, see `spaql.paper.runs.runner.run`.
    """
    shown = []
    jobs = [job for job in paper_jobs("long") if job.algorithm in ("SPAQL", "SPAQL-TS")]
    for system in SYSTEMS:
        for algorithm in ("SPAQL-TS", "SPAQL"):
            group = [job for job in jobs if (job.system, job.algorithm) == (system, algorithm)]
            job = best(run(group, **running)).job
            policy = retrain(job).policy
            small = simplified(job, policy, [default_store()], target=solved_at(system), **PUBLISHED).tree
            shown += [Shown(system, algorithm, policy), Shown(system, f"{algorithm}, simplified", small)]
    return shown


def other_policies(iterations: int = ITERATIONS) -> list[Shown]:
    """Return policies for the systems that the paper does not have, trained here and now, with episodes of full length.

    Parameters
    ----------
    iterations
        Of the training.
    """
    shown = []
    for system, xis in OTHERS.items():
        for algorithm, xi in xis.items():
            agent = make_agent(algorithm, system, xi, seed=SEED, horizon=steps_of(system))
            shown.append(Shown(system, algorithm, agent.learn(iterations, EVALUATIONS).policy))
    return shown


def steps_of(system: str) -> int:
    """Return how many steps an episode of a system has at most."""
    limit = episode_limit(make_env(system))
    if limit is None:
        raise ValueError(f"the explorer plays episodes that end: register {system} with max_episode_steps")
    return limit


def write_policies(path: str | os.PathLike, shown: Iterable[Shown]) -> Path:
    """Write policies to a file of JavaScript that the page loads beside `explorer.js`.

    Parameters
    ----------
    path
        The file, `policies.js` in the folder of the page.
    shown
        The policies, see `paper_policies` and `other_policies`.

    Examples
    --------
    >>> write_policies("book/explorer/policies.js", [*paper_policies(), *other_policies()])
    """
    shown = list(shown)
    data = {
        "systems": {system: describe_system(system) for system in dict.fromkeys(item.system for item in shown)},
        "policies": [describe_policy(item) for item in shown],
    }
    path = Path(path)
    # Numbers are written so that they read back as the same floats.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.write_text(f'"use strict";\nconst SPAQL_POLICIES = {text};\n', encoding="utf-8")
    return path


def describe_system(system: str) -> dict[str, Any]:
    """Return what the page must know of a system: names, units, bounds and the constants of its dynamics."""
    env = make_env(system)
    names, known = variables_of(env), system_of(env)
    world = compiled_world(env, names.space)
    if world is None or known is None:
        raise ValueError(f"the explorer plays compiled systems, and {system} is none")
    bounds = zip(names.space.centre, names.space.half, strict=True)
    return {
        "title": title(system),
        "family": known.name,
        "constants": world.model.constants._asdict(),
        "observed": [variable.symbol for variable in known.observed],
        "units": list(names.units),
        "bounds": [[c - h, c + h] if math.isfinite(h) else None for c, h in bounds],
        "state": [
            {"name": v.name, "symbol": v.symbol, "unit": v.unit, "ends": list(v.ends), "period": v.period}
            for v in known.state
        ],
        "axes": [known.state[place].name for place in known.telling],
        "action": names.action,
        "action_unit": names.action_unit,
        "choices": list(names.choices),
        "action_range": action_range(names),
        "steps": steps_of(system),
    }


def action_range(names: Variables) -> list[float]:
    """Return the least and the greatest action, in its unit."""
    if names.box is None:
        return [min(names.choices), max(names.choices)]
    return [float(names.box.low[0]), float(names.box.high[0])]


def describe_policy(item: Shown) -> dict[str, Any]:
    """Return a policy as the page takes it.

    The lists from `action` on have one entry per leaf: the action (a number of the list, or a value), the least and the
    greatest action that the paper's policy draws from, Q and visits (None in a simplified tree, which has no balls).
    """
    branches: Branches | Tree
    if isinstance(item.what, Policy):
        tree = item.what.tree()
        branches, leaves = item.what.cell_tree()
    else:
        tree = branches = item.what
        at = tree.feature == LEAF
        leaves = pd.DataFrame({"low": tree.low[at, 0], "high": tree.high[at, 0], "centre": tree.low[at, 0]})
        leaves["q"] = leaves["visits"] = None
    low, high, action = (as_actions(tree.variables, leaves[name].to_numpy()) for name in ("low", "high", "centre"))
    if tree.variables.box is None:
        high = [number - 1 for number in high]  # the last action of a run, not the one after it
    leaf = branches.feature == LEAF
    left = branches.left.copy()
    left[leaf] = np.arange(leaf.sum())  # a leaf's row
    rewards = evaluate(tree, item.system, 1000, seed=SEED, horizon=steps_of(item.system))
    return {
        "system": item.system,
        "title": item.title,
        "leaves": tree.leaves,
        "reward": round(float(rewards.mean()), 1),
        "text": export_text(tree),
        "feature": branches.feature.tolist(),
        "threshold": branches.threshold.tolist(),
        "left": left.tolist(),
        "right": branches.right.tolist(),
        "action": action,
        "low": low,
        "high": high,
        "q": leaves["q"].tolist(),
        "visits": leaves["visits"].tolist(),
    }


def as_actions(names: Variables, standard: np.ndarray) -> list:
    """Return actions of the standard space as the environment takes them."""
    if names.box is None:
        return standard.astype(int).tolist()
    return to_box(names.box, names.space, standard[:, None])[:, 0].tolist()
