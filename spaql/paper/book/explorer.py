"""The data of the explorer and of the playground, for pages that need neither server nor Python.

`python -m spaql.paper.book.explorer` trains the agents of `book_policies` again from their seeds, makes their trees,
and writes `book/explorer/policies.js` (some minutes).
"""

import base64
import html
import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spaql import SPAQLR, SPAQLTS, TileQ
from spaql.paper import ROOT
from spaql.paper.chapters.policies import Network, best_agent, load_network, rate, small_tree
from spaql.paper.engine import store
from spaql.paper.engine.algorithms import CHECKPOINT
from spaql.paper.engine.style import PAPER
from spaql.policies import Policy, Tree, export_text
from spaql.policies.tree import LEAF, Variables, variables_of
from spaql.replay import MEMORY
from spaql.spaces import PLAIN, Space, to_box
from spaql.systems import compiled_world, episode_limit, make_env, system_of, title

# What the page shows, in its order: systems with their policies.  The paper's algorithms are shown where the paper ran
# them: the best agent of the long runs, as learned and made smaller.
OTHERS = ("CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1")
NETWORKS = [("Pendulum-v1", "TRPO"), ("Pendulum-v1", "SAC"), ("CartPole-v0", "TRPO")]

SAMPLES, LEAVES, SEED = 100_000, 64, 1000  # of the agents that are trained for the page, and of their trees

LEARNED, SMALLER, IMITATED = "as learned", "made smaller", "as a tree"
PRINTED = 300  # leaves up to which the page prints a tree as text

RETURNS = {"Pendulum-v1": (-2000.0, 0.0), "CartPole-v0": (0.0, 200.0)}  # what a curve of learning shows
POLICIES = ROOT / "book" / "explorer" / "policies.js"


class Shown(NamedTuple):
    """A policy for the explorer."""

    system: str  # a Gymnasium id of a compiled system
    algorithm: str
    what: Policy | Tree | Network
    made: str = LEARNED
    origin: str = ""  # in words


def book_policies() -> Iterator[Shown]:
    """Yield the policies of the page, in its order."""
    for system in (*PAPER, *OTHERS):
        for name, kind in (("TileQ", TileQ), ("SPAQL-R", SPAQLR)):
            agent = kind(system, seed=SEED).learn(samples=SAMPLES)
            origin = f"it imitates one agent, trained for this page on {SAMPLES:,} samples"
            yield Shown(system, name, agent.policy.tree(leaves=LEAVES), IMITATED, origin)
        yield from paper_policies(system) if system in PAPER else ()
        yield from (network_policy(*pair) for pair in NETWORKS if pair[0] == system)


def paper_policies(system: str) -> Iterator[Shown]:
    """Yield the best policies of the paper's algorithms, and the smallest trees found in their place."""
    agents = store.read("long", lists=False)
    for algorithm in ("SPAQL-TS", "SPAQL"):
        policy = best_agent(agents, system, algorithm).policy
        which = "the best of the long runs' agents, by its own measure"
        yield Shown(system, algorithm, policy, LEARNED, which)
        small = small_tree(policy, system).smallest.tree
        yield Shown(system, algorithm, small, SMALLER, f"found by a search that began with {which}")


def network_policy(system: str, algorithm: str) -> Shown:
    """Return a stored network."""
    origin = f"one agent, after {20 * CHECKPOINT:,} samples"
    if algorithm == "TRPO":
        agents = store.read("trpo", lists=False).query("algorithm == 'TRPO' and system == @system")
        origin = f"the best of {len(agents)} agents, by its own measure, after {store.best(agents).samples:,} samples"
    return Shown(system, algorithm, load_network(system, algorithm), LEARNED, origin)


# As the page reads it


def write_policies(shown: Iterable[Shown], path: Path = POLICIES) -> None:
    """Write policies to the file of JavaScript that the page loads beside `explorer.js`."""
    shown = list(shown)
    systems = {system: describe_system(system) for system in dict.fromkeys(item.system for item in shown)}
    data = {"systems": systems, "policies": list(map(describe, shown))}
    # Numbers are written so that they read back as the same floats.
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.write_text(f'"use strict";\nconst SPAQL_POLICIES = {text};\n', encoding="utf-8")


def read_policies() -> dict:
    """Return the data that `write_policies` wrote for the book."""
    text = POLICIES.read_text(encoding="utf-8")
    return json.loads(text[text.index("=") + 1 :].rstrip().rstrip(";"))


def describe_system(system: str) -> dict:
    """Return what the page must know of a system: names, units, bounds and the constants of its dynamics."""
    env = make_env(system)
    names, known = variables_of(env), system_of(env)
    world = compiled_world(env, names.space)
    low, high = (names.box.low, names.box.high) if names.box else (np.min(names.choices), np.max(names.choices))
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
        "action": {"name": names.action, "unit": names.action_unit, "ends": np.ravel((low, high)).tolist()},
        "choices": list(names.choices),
        "steps": episode_limit(env),
    }


def describe(item: Shown) -> dict:
    """Return a policy as the page takes it, with what it earns on fresh episodes."""
    if isinstance(item.what, Network):
        player, described = item.what, describe_network(item.what)
    else:
        player = item.what.tree() if isinstance(item.what, Policy) else item.what
        described = describe_tree(item.what, player) | angles_of(item.system, player.variables)
    played = rate(player, item.system)
    named = {name: getattr(item, name) for name in ("system", "algorithm", "made", "origin")}
    return named | {"reward": round(float(played.rewards.mean()), 1), "episodes": len(played.steps)} | described


def describe_tree(what: Policy | Tree, tree: Tree) -> dict:
    """Return the questions, and lists with an entry for each leaf: its action, and of a partition its Q and visits."""
    if isinstance(what, Policy):
        branches, leaves = what.cell_tree()
        told = {"q": [round(q, 4) for q in leaves["q"].tolist()], "visits": leaves["visits"].tolist()}
    else:
        branches, leaves, told = tree, {"centre": tree.action[tree.feature == LEAF]}, {}
    left = branches.left.copy()
    left[branches.feature == LEAF] = np.arange(len(leaves["centre"]))  # a leaf's row
    return {
        "leaves": tree.leaves,
        "text": export_text(tree) if tree.leaves <= PRINTED else "",
        "feature": branches.feature.tolist(),
        "threshold": branches.threshold.tolist(),
        "left": left.tolist(),
        "right": branches.right.tolist(),
        "action": as_actions(tree.variables, leaves["centre"]),
    } | told


def describe_network(network: Network) -> dict:
    """Return 32-bit floats for each layer: a row per input and one of biases."""
    layers = [np.vstack(layer).astype("<f4").tobytes() for layer in zip(network.kernels, network.biases, strict=True)]
    encoded = [base64.b64encode(layer).decode() for layer in layers]
    return {"weights": network.weights, "layers": encoded, "squashed": network.squashed}


def angles_of(system: str, names: Variables) -> dict:
    """Return what the page must know of a policy that asks for angles: names and bounds of what it asks for."""
    known, sine = system_of(make_env(system)), names.space.sine
    if set(sine) == {PLAIN}:
        return {}
    symbols = {variable.name: variable.symbol for variable in (*known.observed, *known.state)}
    asked = [symbols.get(name, name) for name in names.asked]
    return {"sine": list(sine), "asked": asked, "bounds": bounds_of(names.space)}


def bounds_of(space: Space) -> list[list[float] | None]:
    """Return the bounds of the observations, None of those that have none."""
    ends = zip(space.centre, space.half, strict=True)
    return [[centre - half, centre + half] if math.isfinite(half) else None for centre, half in ends]


def as_actions(names: Variables, standard: np.ndarray) -> list:
    """Return actions of the standard space as the environment takes them."""
    actions = standard.astype(int) if names.box is None else to_box(names.box, names.space, standard)
    return np.ravel(actions).tolist()


# Parts of pages


def playground() -> str:
    """Return the part of a page in which agents learn before one's eyes; see `playground.js` for links to it."""
    data = html.escape(json.dumps({system: describe_learning(system) for system in RETURNS}, ensure_ascii=False))
    scripts = ("systems/cartpole", "systems/pendulum", "explorer", "learning", "replay", "playground")
    return (
        f'```{{raw}} html\n<div id="spaql-playground" data-systems="{data}">'
        "<p>This page needs JavaScript to train agents.</p></div>\n"
        + "".join(f'<script src="../_static/{name}.js"></script>\n' for name in scripts)
        + "```\n"
    )


def describe_learning(system: str) -> dict:
    """Return what the page must know of a system to learn on it: also its maps to the standard space."""
    agent, other = SPAQLTS(system, xi=0.0), SPAQLR(system)
    space, given = other._space, other.parameters
    choices = other._choices()
    return describe_system(system) | {
        "slopes": list(agent._space.slope),
        "reference": list(agent._learner.reference),
        "lam": agent._learner.lam,
        "returns": RETURNS[system],
        "replay": {name: given[name] for name in ("alpha", "epsilon", "decay", "replays", "visits", "steps")}
        | {"gamma": given["discount"], "reach": other._how.reach, "memory": MEMORY}
        | {"slopes": space.slope, "sine": space.sine, "bounds": bounds_of(space)}
        | {"actions": as_actions(variables_of(other.env, space), choices)},
    }


if __name__ == "__main__":
    write_policies(book_policies())
