"""The data of the book's explorer: exact trees and networks, for a page that needs neither server nor Python."""

import base64
import html
import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spaql import SPAQLR, SPAQLTS
from spaql.paper.audit.robustness import run_network
from spaql.paper.frames import best
from spaql.paper.labels import number
from spaql.paper.runs.algorithms import make_agent
from spaql.paper.runs.network import Network, policy_network
from spaql.paper.runs.provenance import default_store
from spaql.paper.runs.repaired_settings import CHECKPOINT
from spaql.paper.runs.retrain import retrain
from spaql.paper.runs.runner import run
from spaql.paper.runs.stored_trees import PUBLISHED, simplified
from spaql.paper.studies import study
from spaql.policies.exact_tree import Branches
from spaql.policies.export import export_text
from spaql.policies.play import evaluate, trajectories, world_of
from spaql.policies.policy import Policy
from spaql.policies.settled import share_of, share_settled
from spaql.policies.tree import LEAF, Tree, Variables, variables_of
from spaql.spaces import PLAIN, Space, to_box
from spaql.systems import (
    System,
    compiled_world,
    episode_limit,
    make_env,
    possible_returns,
    solved_at,
    space_of,
    system_of,
    title,
)

SEED = 1000  # of the agents trained for the page, and of the episodes whose mean return it shows of them
EPISODES = 1000

SYSTEMS = ("Pendulum-v1", "spaql/PendulumDiscrete-v1", "CartPole-v0")  # of the paper, in the page's order

# Systems that the paper does not have, and the ξ of the policies trained for the page alone: a look, not an experiment.
OTHERS: dict[str, dict[str, float]] = {
    "CartPole-v1": {"SPAQL-TS": 20, "SPAQL": 20},
    "MountainCar-v0": {"SPAQL": 1},
    "MountainCarContinuous-v0": {"SPAQL-TS": 4},
    "Acrobot-v1": {"SPAQL-TS": 20, "SPAQL": 0.4},
}
ITERATIONS, EVALUATIONS = 1000, 20  # of their training
SAMPLES = 20_000  # of SPAQL-R: with more, its trees grow and earn no more

LEARNED, SMALLER = "as learned", "made smaller"
PRINTED = 300  # leaves up to which the page prints a tree as text

HANGING = (math.pi - 0.1, 0.0)  # nearly hanging down: where the page lets the pendulum begin
HANGS = ("Pendulum-v1", "SPAQL", LEARNED)  # the policy that leaves it there


class Shown(NamedTuple):
    """A policy for the explorer."""

    system: str  # a Gymnasium id of a compiled system
    algorithm: str
    what: Policy | Tree | Network
    made: str = LEARNED
    origin: str = ""  # in words
    reward: float | None = None  # its mean return on fresh episodes, if it is known


def paper_policies(**running: Any) -> list[Shown]:
    """Return the best SPAQL and SPAQL-TS policies of the paper's long runs, each with a simplified tree, best first.

    Parameters
    ----------
    running
        How to get the records, see `spaql.paper.runs.runner.run`.
    """
    shown = []
    jobs = [job for job in study("long") if job.algorithm in ("SPAQL", "SPAQL-TS")]
    for system in SYSTEMS:
        for algorithm in ("SPAQL-TS", "SPAQL"):
            group = [job for job in jobs if (job.system, job.algorithm) == (system, algorithm)]
            job = best(run(group, **running)).job
            policy = retrain(job).policy
            found = simplified(job, policy, [default_store()], target=solved_at(system), **PUBLISHED)
            agent = f"the best of {len(group)} agents of the paper's long runs, by its own measure"
            search = f"the smallest tree found by a search that began with the {found.full.leaves} leaves of {agent}"
            shown.append(Shown(system, algorithm, policy, LEARNED, agent, found.full_fresh.mean))
            if found.tree.leaves < found.full.leaves:
                shown.append(Shown(system, algorithm, found.tree, SMALLER, search, found.fresh.mean))
    return sorted(shown, key=lambda item: (SYSTEMS.index(item.system), -round(item.reward or 0, 1), size_of(item)))


def size_of(item: Shown) -> int:
    """Return the number of leaves of a policy."""
    return tree_of(item).leaves


def repaired_policies(samples: int = SAMPLES) -> list[Shown]:
    """Return a policy of SPAQL-R for each of the paper's systems, one agent each, trained here and now.

    They are shown as trees: a partition of theirs has thousands of cells, and neighbours that do the same are joined.

    Parameters
    ----------
    samples
        Of the training.
    """
    origin = f"one agent, after {samples:,} samples, trained for this page with the defaults"
    return [
        Shown(system, "SPAQL-R", SPAQLR(system, seed=SEED).learn(samples=samples).policy.tree(), LEARNED, origin)
        for system in SYSTEMS
    ]


def network_policies(**running: Any) -> list[Shown]:
    """Return the networks of TRPO's best agents, with what their records say they earn, and of an agent of SAC.

    Parameters
    ----------
    running
        How to get the records, see `spaql.paper.runs.runner.run`.
    """
    shown = []
    for system in ("Pendulum-v1", "CartPole-v0"):
        group = [job for job in study("trpo") if (job.system, job.algorithm) == (system, "TRPO")]
        record = best(run(group, **running))
        origin = f"the best of {len(group)} agents, by its own measure, after {record.history['steps'].sum():,} samples"
        shown.append(Shown(system, "TRPO", policy_network(record.job), LEARNED, origin, record.fresh[2]))
    (job,) = (job for job in study("sb3") if (job.algorithm, job.agent) == ("SAC", 0))
    origin = f"one agent, after {job.iterations * CHECKPOINT:,} samples"
    return [*shown, Shown(job.system, "SAC", policy_network(job), LEARNED, origin)]


def six_state_policies() -> list[Shown]:
    """Return the policies of the first agents of SPAQL-R on the systems with six states, as trees."""
    shown = []
    for job in study("six-states"):
        if (job.algorithm, job.agent) == ("SPAQL-R", 0):
            origin = f"the first agent of chapter 10's runs, after {job.iterations * CHECKPOINT:,} samples"
            shown.append(Shown(job.system, job.algorithm, retrain(job).policy.tree(), LEARNED, origin))
    return shown


def book_policies() -> list[Shown]:
    """Return the policies of the book's page: the repaired algorithm's, the paper's, networks', other systems'."""
    return [*repaired_policies(), *paper_policies(), *network_policies(), *other_policies(), *six_state_policies()]


def other_policies(iterations: int = ITERATIONS) -> list[Shown]:
    """Return policies for the systems that the paper does not have, trained here and now, with episodes of full length.

    Parameters
    ----------
    iterations
        Of the training.
    """
    shown = []
    origin = f"one agent, after {iterations:,} episodes, trained for this page"
    for system, xis in OTHERS.items():
        for algorithm, xi in xis.items():
            agent = make_agent(algorithm, system, xi, seed=SEED, horizon=steps_of(system))
            shown.append(Shown(system, algorithm, agent.learn(iterations, EVALUATIONS).policy, LEARNED, origin))
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
        The policies, see `book_policies`, in the order in which the page offers them.

    Examples
    --------
    >>> write_policies("book/explorer/policies.js", book_policies())
    """
    shown = list(shown)
    data = {
        "systems": {system: describe_system(system) for system in dict.fromkeys(item.system for item in shown)},
        "policies": [
            describe_network(item, item.what) if isinstance(item.what, Network) else describe_policy(item)
            for item in shown
        ],
        "hangs": hanging_at(shown),
    }
    path = Path(path)
    # Numbers are written so that they read back as the same floats.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.write_text(f'"use strict";\nconst SPAQL_POLICIES = {text};\n', encoding="utf-8")
    return path


def read_policies(path: str | os.PathLike) -> dict[str, Any]:
    """Return the data that `write_policies` wrote."""
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(text[text.index("=") + 1 :].rstrip().rstrip(";"))


def policies_of(data: dict[str, Any], system: str, algorithm: str) -> dict[str, dict[str, Any]]:
    """Return the policies of an algorithm on a system in the data of the page, by how they were made."""
    return {p["made"]: p for p in data["policies"] if (p["system"], p["algorithm"]) == (system, algorithm)}


def story(data: dict[str, Any]) -> str:
    """Say what the pendulum under SPAQL's policy and under the smaller tree shows, from the data of the page."""
    mine = policies_of(data, "Pendulum-v1", "SPAQL")
    small, parent, better = mine[SMALLER], mine[LEARNED], policies_of(data, "Pendulum-v1", "SPAQL-R")[LEARNED]

    def earns(policy: dict[str, Any]) -> str:
        return f"earns {number(policy['reward'], 0)} and ends {100 * policy['settled']:.1f} % of its episodes upright"

    return (
        f"Fewer leaves can control better. On Pendulum the tree with {small['leaves']} leaves {earns(small)}; the "
        f"SPAQL policy of {parent['leaves']} leaves that it came from {earns(parent)}. From nearly hanging down that "
        f"policy only hangs, at θ = {number(data['hangs'], 2)}. SPAQL-R {earns(better)}."
    )


def hanging_at(shown: Iterable[Shown]) -> float | None:
    """Return the mean angle, in the second half of an episode, of a pendulum under SPAQL's policy, as learned.

    It begins nearly hanging down.
    """
    for item in shown:
        if (item.system, item.algorithm, item.made) == HANGS:
            path = trajectories(tree_of(item), item.system, HANGING)[0]
            cos, sin, _ = path[len(path) // 2 :].mean(axis=0)
            return math.atan2(sin, cos)
    return None


def tree_of(item: Shown) -> Tree:
    """Return a policy as a tree."""
    if isinstance(item.what, Network):
        raise TypeError(f"the policy of {item.algorithm} is a network, not a tree")
    return item.what.tree() if isinstance(item.what, Policy) else item.what


def describe_system(system: str) -> dict[str, Any]:
    """Return what the page must know of a system: names, units, bounds and the constants of its dynamics."""
    env = make_env(system)
    names, known = variables_of(env), system_of(env)
    world = compiled_world(env, names.space)
    if world is None or known is None:
        raise ValueError(f"the explorer plays compiled systems, and {system} is none")
    return {
        "title": title(system),
        "family": known.name,
        "constants": world.model.constants._asdict(),
        "observed": [variable.symbol for variable in known.observed],
        "units": list(names.units),
        "bounds": bounds_of(names.space),
        "state": [
            {"name": v.name, "symbol": v.symbol, "unit": v.unit, "ends": list(v.ends), "period": v.period}
            for v in known.state
        ],
        "axes": [known.state[place].name for place in known.telling],
        "actions": describe_actions(known, names),
        "choices": list(names.choices),
        "steps": steps_of(system),
    }


def describe_learning(system: str) -> dict[str, Any]:
    """Return what the page must know of a system to learn on it: also its maps to the standard space."""
    agent, other = SPAQLTS(system, xi=0.0), SPAQLR(system)
    low, high = possible_returns(system)
    tiles = other._replayer.tiles
    space, names = other._space, variables_of(other.env, other._space)
    return describe_system(system) | {
        "slopes": list(agent._space.slope),
        "reference": list(agent._learner.reference),
        "lam": agent._learner.lam,
        "returns": [max(low, -2000.0), high],  # what a curve shows
        "replay": other._replayer._asdict()
        | {"memory": other.parameters["memory"], "tiles": tiles._replace(places=tiles.places.tolist())._asdict()}
        | {"slopes": space.slope, "sine": space.sine, "bounds": bounds_of(space)}
        | {"actions": as_actions(names, other._choices())},
    }


def bounds_of(space: Space) -> list[list[float] | None]:
    """Return the bounds of the observations, None of those that have none."""
    ends = zip(space.centre, space.half, strict=True)
    return [[centre - half, centre + half] if math.isfinite(half) else None for centre, half in ends]


def playground(systems: Iterable[str] = ("Pendulum-v1", "CartPole-v0")) -> str:
    """Return the part of a page in which agents learn before one's eyes."""
    data = html.escape(json.dumps({system: describe_learning(system) for system in systems}, ensure_ascii=False))
    scripts = ("systems/cartpole", "systems/pendulum", "explorer", "learning", "replay", "playground")
    return (
        f'```{{raw}} html\n<div id="spaql-playground" data-systems="{data}">'
        "<p>This page needs JavaScript to train agents.</p></div>\n"
        + "".join(f'<script src="../_static/{name}.js"></script>\n' for name in scripts)
        + "```\n"
    )


def describe_actions(known: System, names: Variables) -> list[dict[str, Any]]:
    """Return what each number of an action is called, its unit, and the least and the greatest in it."""
    if names.box is None:
        ends = [(min(names.choices), max(names.choices))]
    else:
        ends = list(zip(names.box.low.ravel().tolist(), names.box.high.ravel().tolist(), strict=True))
    return [
        {"name": variable.name, "unit": unit, "ends": list(pair)}
        for variable, unit, pair in zip(known.actions, names.action_units, ends, strict=True)
    ]


def describe_policy(item: Shown) -> dict[str, Any]:
    """Return a policy as the page takes it.

    The lists from `action` on have one entry per leaf: the action (a number of the list, a value, or a list of values),
    the least and the greatest action that the paper's policy draws from, Q and visits (None in a simplified tree, which
    has no balls).
    """
    branches: Branches | Tree
    tree = tree_of(item)
    if isinstance(item.what, Policy):
        branches, leaves = item.what.cell_tree()
    else:
        branches = tree
        at = tree.feature == LEAF
        leaves = {"low": tree.low[at], "high": tree.high[at], "centre": tree.low[at]}
        leaves["q"] = leaves["visits"] = np.full(at.sum(), None)
    low, high, action = (as_actions(tree.variables, leaves[name]) for name in ("low", "high", "centre"))
    if tree.variables.box is None:
        high = [number - 1 for number in high]  # the last action of a run, not the one after it
    leaf = branches.feature == LEAF
    left = branches.left.copy()
    left[leaf] = np.arange(leaf.sum())  # a leaf's row
    known, reward = system_of(make_env(item.system)), item.reward
    aimed = known is not None and known.reference is not None
    if reward is None:
        reward = float(evaluate(tree, item.system, EPISODES, seed=SEED, horizon=steps_of(item.system)).mean())
    return angles_of(item.system, tree.variables) | {
        "system": item.system,
        "algorithm": item.algorithm,
        "made": item.made,
        "origin": item.origin,
        "leaves": tree.leaves,
        "reward": round(reward, 1),
        "episodes": EPISODES,
        "settled": share_settled(tree, item.system, EPISODES, PUBLISHED["seed"], deterministic=True) if aimed else None,
        "text": export_text(tree) if tree.leaves <= PRINTED else "",
        "feature": branches.feature.tolist(),
        "threshold": branches.threshold.tolist(),
        "left": left.tolist(),
        "right": branches.right.tolist(),
        "action": action,
        "low": low,
        "high": high,
        "q": [None if q is None else round(q, 4) for q in leaves["q"]],
        "visits": leaves["visits"].tolist(),
    }


def describe_network(item: Shown, network: Network) -> dict[str, Any]:
    """Return a network as the page takes it: for each layer 32-bit floats, a row per input and one of biases."""
    if network.mean.size:
        raise ValueError(f"the page does not normalise observations, as the network of {item.algorithm} needs")
    env, rng = make_env(item.system), np.random.default_rng(SEED)
    starts = world_of(env, space_of(env)).draw(rng, EPISODES)
    played = run_network(network, env, starts, rng, record=True)
    layers = [np.vstack(layer).astype("<f4").tobytes() for layer in zip(network.kernels, network.biases, strict=True)]
    return {
        "system": item.system,
        "algorithm": item.algorithm,
        "made": item.made,
        "origin": item.origin,
        "weights": network.weights,
        "reward": round(float(played.rewards.mean()) if item.reward is None else float(item.reward), 1),
        "episodes": EPISODES,
        "settled": share_of(played, env),
        "layers": [base64.b64encode(layer).decode() for layer in layers],
        "squashed": network.squashed,
    }


def angles_of(system: str, names: Variables) -> dict[str, Any]:
    """Return what the page must know of a policy that asks for angles: names, units and bounds of what it asks for."""
    known, sine = system_of(make_env(system)), names.space.sine
    if known is None or set(sine) == {PLAIN}:
        return {}
    symbols = {variable.name: variable.symbol for variable in (*known.observed, *known.state)}
    asked = [symbols.get(name, name) for name in names.asked]
    return {"sine": list(sine), "asked": asked, "units": list(names.asked_units), "bounds": bounds_of(names.space)}


def as_actions(names: Variables, standard: np.ndarray) -> list:
    """Return actions of the standard space as the environment takes them."""
    actions = standard.astype(int) if names.box is None else to_box(names.box, names.space, standard)
    several = standard.shape[1] > 1
    return actions.reshape(standard.shape if several else -1).tolist()
