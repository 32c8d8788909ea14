"""Decision trees in flat arrays: predicting, playing episodes, and exports to text, Graphviz, Python and C.

The arrays are scikit-learn's: node 0 is the root, and the children of a node come after it.  One thing is different: a
state goes left if its variable is *below* the threshold, not at it, since a state on a border of the partition belongs
to its upper side.
"""

import keyword
from collections.abc import Iterator
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from spaql.agents import check_integer, check_seed, make_env, make_generator
from spaql.compiling import entry, inlined
from spaql.partition import central_action, draw_action
from spaql.systems import (
    TORQUES,
    CartPole,
    FiveTorques,
    Pendulum,
    cartpole_observe,
    cartpole_reset,
    cartpole_step,
    compile_system,
    draw_starts,
    episode_limit,
    make_space,
    paper_family,
    pendulum_observe,
    pendulum_reset,
    pendulum_step,
    to_box,
)

LEAF = -1


class Variables(NamedTuple):
    """What a system's observations and actions are called, and their units."""

    observed: tuple[str, ...]
    units: tuple[str, ...]
    action: str
    action_unit: str
    choices: tuple[float, ...]  # the discrete actions in that unit; empty for continuous ones
    start: int  # the number of the first discrete action
    box: gym.spaces.Box | None  # of continuous actions
    space: tuple  # the map to the standard space


def variables_of(env: gym.Env, space: tuple | None = None) -> Variables:
    """Return the names and units of an environment's variables; plain numbers for one that is not the paper's."""
    space = make_space(env) if space is None else space
    family = paper_family(env)
    observed = tuple(f"observation_{i}" for i in range(len(space.centre)))
    units, action, unit = ("",) * len(observed), "action", ""
    discrete = isinstance(env.action_space, gym.spaces.Discrete)
    start = int(env.action_space.start) if discrete else 0
    choices = tuple(float(start + i) for i in range(space.actions))
    if family == "Pendulum":
        observed, units = ("cos_theta", "sin_theta", "theta_dot"), ("", "", "rad/s")
        action, unit = "torque", "Nm"
        inner = env
        while isinstance(inner, gym.Wrapper) and not isinstance(inner, FiveTorques):
            inner = inner.env
        choices = TORQUES if isinstance(inner, FiveTorques) else choices
    elif family == "CartPole":
        observed, units = ("x", "x_dot", "theta", "theta_dot"), ("m", "m/s", "rad", "rad/s")
        action, unit = "force", "N"
        choices = (-float(env.unwrapped.force_mag), float(env.unwrapped.force_mag))
    return Variables(observed, units, action, unit, choices, start, None if discrete else env.action_space, space)


class Tree(NamedTuple):
    """A decision tree.

    Attributes
    ----------
    feature
        The number of the variable a node asks for; -1 in a leaf.
    threshold
        In the variable's own unit.  Below it the left child comes next, otherwise the right one.
    left, right
        The children; -1 in a leaf.
    low, high
        The actions of a leaf, in the standard space: an interval, or a run of the action list without `high`.
    variables
        Names and units.
    """

    feature: np.ndarray
    threshold: np.ndarray
    left: np.ndarray
    right: np.ndarray
    low: np.ndarray
    high: np.ndarray
    variables: Variables

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return int(np.sum(self.feature == LEAF))

    @property
    def depth(self) -> int:
        """The greatest number of questions before an action."""
        depth = np.zeros(len(self.feature), int)
        for node in np.flatnonzero(self.feature != LEAF):  # parents come before their children
            depth[self.left[node]] = depth[self.right[node]] = depth[node] + 1
        return int(depth.max())

    @property
    def value(self) -> np.ndarray:
        """The action of each node as the environment takes it: the middle one, if a leaf has several."""
        middle = (self.low + self.high) / 2
        if self.variables.box is None:
            return np.floor(middle[:, 0]).astype(np.int64) + self.variables.start
        return to_box(self.variables.box, self.variables.space, middle)

    def apply(self, observations: ArrayLike) -> np.ndarray:
        """Return the leaf each observation comes to; `observations` has a row each."""
        points = np.ascontiguousarray(observations, float).reshape(-1, len(self.variables.observed))
        if np.isnan(points).any():
            raise ValueError("the observations contain NaN; expected numbers")
        nodes = np.empty(len(points), np.int64)
        find_leaves(self.feature, self.threshold, self.left, self.right, points, nodes)
        return nodes

    def predict(
        self, observation: ArrayLike, state: None = None, episode_start: None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """Return the action for an observation or an array of them, and None: Stable-Baselines3's protocol.

        It is the middle one where a leaf has several, whatever the other arguments.
        """
        actions = self.value[self.apply(observation)]
        return (actions[0] if np.ndim(observation) == 1 else actions), None


# ---------------------------------------------------------------------------------------------------------------------
# Playing episodes


@inlined
def descend(feature, threshold, left, right, observation):
    """The leaf an observation comes to."""
    node = 0
    while feature[node] >= 0:
        node = left[node] if observation[feature[node]] < threshold[node] else right[node]
    return node


@entry
def find_leaves(feature, threshold, left, right, points, nodes):
    """Write the leaf of each point."""
    for i in range(len(points)):
        nodes[i] = descend(feature, threshold, left, right, points[i])


@inlined
def play(reset, step, observe, system, state, starts, limit, tree, central, noise, rng, rewards, steps, seen):
    """Play an episode from each row of `starts`; write sums of rewards, numbers of steps, and what was seen if asked.

    `noise` holds the standard deviation of what is added to each observed variable; `seen` has no rows or a row a step
    for every episode.
    """
    feature, threshold, left, right, low, high, discrete = tree
    x, observation, action = np.empty(noise.size), np.empty(noise.size), np.empty(low.shape[1])
    for i in range(len(starts)):
        total = 0.0
        h = 0
        over = False
        reset(system, state, starts[i], x)
        while h < limit and not over:
            observe(system, state, observation)
            for j in range(noise.size):
                if noise[j] > 0.0:
                    observation[j] += noise[j] * rng.standard_normal()
            if len(seen):
                seen[i, h] = observation
            leaf = descend(feature, threshold, left, right, observation)
            if central:
                central_action(low, high, leaf, discrete, action)
            else:
                draw_action(low, high, leaf, discrete, rng, action)
            reward, over = step(system, state, action, x)
            total += reward
            h += 1
        rewards[i], steps[i] = total, h


@entry
def play_pendulum(system, starts, limit, tree, central, noise, rng, rewards, steps, seen):
    """`play` on the compiled pendulum."""
    play(
        pendulum_reset, pendulum_step, pendulum_observe, system, np.empty(3), starts, limit, tree, central, noise, rng,
        rewards, steps, seen
    )  # fmt: skip


@entry
def play_cartpole(system, starts, limit, tree, central, noise, rng, rewards, steps, seen):
    """`play` on the compiled cart and pole."""
    play(
        cartpole_reset, cartpole_step, cartpole_observe, system, np.empty(4), starts, limit, tree, central, noise, rng,
        rewards, steps, seen
    )  # fmt: skip


class Episodes(NamedTuple):
    """Sums of rewards and numbers of steps, an entry an episode, and the observations of all steps if asked for."""

    rewards: np.ndarray
    steps: np.ndarray
    seen: np.ndarray


def compiled_world(env: gym.Env, space: tuple) -> Pendulum | CartPole:
    """Return the compiled twin of an environment, or say that it has none."""
    world = compile_system(env, space)
    if world is None:
        raise TypeError(f"only the paper's systems are compiled, not {env}; evaluate_policy(tree, env) of "
                        "Stable-Baselines3 runs a tree on any")  # fmt: skip
    return world


def run_tree(
    tree: Tree,
    env: gym.Env,
    starts: np.ndarray,
    rng: np.random.Generator,
    deterministic: bool = True,
    noise: ArrayLike = 0.0,
    record: bool = False,
    horizon: int = 200,
) -> Episodes:
    """Play an episode of one of the paper's systems from each row of `starts`; `evaluate` is what users call."""
    world = compiled_world(env, tree.variables.space)
    limit = min(horizon, episode_limit(env) or horizon)
    dimensions = len(tree.variables.observed)
    rewards, steps = np.empty(len(starts)), np.empty(len(starts), np.int64)
    seen = np.empty((len(starts) if record else 0, limit, dimensions))
    noise = np.array(np.broadcast_to(np.asarray(noise, float), dimensions))
    compiled = play_pendulum if isinstance(world, Pendulum) else play_cartpole
    arrays = (*tree[:-1], tree.variables.box is None)
    compiled(world, starts, limit, arrays, deterministic, noise, rng, rewards, steps, seen)
    kept = seen[np.arange(limit) < steps[:, None]] if record else seen.reshape(0, dimensions)
    return Episodes(rewards, steps, kept)


def evaluate(
    tree: Tree,
    env: str | gym.Env,
    episodes: int = 1000,
    seed: int | np.random.SeedSequence | None = None,
    deterministic: bool = True,
    noise: ArrayLike = 0.0,
    horizon: int = 200,
) -> np.ndarray:
    """Return the sums of rewards of episodes under a tree; the same seed gives the episodes of `Agent.evaluate`.

    Parameters
    ----------
    tree
        Of a policy.
    env
        An id, or an environment (with changed masses, say).
    episodes, seed
        How many, and what seeds them.
    deterministic
        True takes the middle action of a leaf; False draws among its actions.
    noise
        Standard deviation of Gaussian noise on the observed variables: one number, or one for each.
    horizon
        H, the greatest length of an episode.
    """
    env = make_env(env)
    episodes = check_integer("episodes", episodes)
    streams = check_seed(seed).spawn(2)
    rng, env_seed = np.random.default_rng(streams[0]), int(streams[1].generate_state(1)[0])
    world = compiled_world(env, tree.variables.space)
    starts = draw_starts(world, make_generator(env_seed), episodes)
    return run_tree(tree, env, starts, rng, deterministic, noise, horizon=horizon).rewards


def trajectories(tree: Tree, env: str | gym.Env, starts: ArrayLike) -> list[np.ndarray]:
    """Return the observations of an episode from each of these states, a row a step.

    A state is the system's own: angle and speed of the pendulum; position, speed, angle and angular speed of the cart
    and its pole.
    """
    starts = np.atleast_2d(np.asarray(starts, float))
    episodes = run_tree(tree, make_env(env), starts, np.random.default_rng(0), record=True)
    return np.split(episodes.seen, np.cumsum(episodes.steps)[:-1])


def noise_share(tree: Tree, env: str | gym.Env, episodes: int = 100, seed: int = 0) -> float:
    """Return how much of the variance of the actions along episodes comes from drawing within a leaf.

    The paper's policy draws uniformly in the best ball; the rest of the variance is between balls.

    Parameters
    ----------
    tree
        Of a policy with continuous actions, with the whole intervals: `policy.tree(deterministic=False)`.
    env
        The system it is for.
    episodes, seed
        How many to play, and what seeds them.
    """
    env, rng = make_env(env), np.random.default_rng(seed)
    starts = draw_starts(compiled_world(env, tree.variables.space), rng, episodes)
    leaves = tree.apply(run_tree(tree, env, starts, rng, deterministic=False, record=True).seen)
    low, high = tree.low[leaves, 0], tree.high[leaves, 0]
    within = np.mean((high - low) ** 2) / 12  # the variance of a uniform draw
    return float(within / (within + np.var((low + high) / 2)))


def in_words(tree: Tree, decimals: int = 2) -> str:
    """Return a small tree as sentences, one for each action: when it is taken."""
    conditions: dict[str, list[str]] = {}
    path: list[str] = []
    for place, node, depth in walk(tree):
        if place == "leaf":
            said = " and ".join(path[:depth]) or "always"
            conditions.setdefault(describe_action(tree, node, decimals), []).append(said)
        elif place != "end":
            path[depth:] = [describe_question(tree, node, {"<": "<", ">=": "≥"}[place], decimals)]
    action = tree.variables.action
    return " ".join(f"{action} {name}: if {'; or if '.join(when)}." for name, when in conditions.items())


# ---------------------------------------------------------------------------------------------------------------------
# Exports


def walk(tree: Tree, node: int = 0, depth: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield (place, node, depth): places "<" before a node's left part, ">=" before its right, "end" after; "leaf"."""
    if tree.feature[node] == LEAF:
        yield "leaf", node, depth
        return
    yield "<", node, depth
    yield from walk(tree, tree.left[node], depth + 1)
    yield ">=", node, depth
    yield from walk(tree, tree.right[node], depth + 1)
    yield "end", node, depth


def fixed(number: float, decimals: int) -> str:
    """Return a number with so many decimals, without a minus before zero."""
    text = f"{number:.{decimals}f}"
    return text[1:] if text.startswith("-") and not text.strip("-0.") else text


def signed(number: float, unit: str) -> str:
    """Return a discrete action: with its sign in its unit, if it has one."""
    return f"{number:+g} {unit}" if number and unit else f"{number:g} {unit}".strip()


def describe_action(tree: Tree, node: int, decimals: int = 2) -> str:
    """Return what a leaf does, in words with the unit."""
    names = tree.variables
    unit = f" {names.action_unit}" if names.action_unit else ""
    if names.box is None:
        run = range(int(tree.low[node, 0]), int(tree.high[node, 0]))
        return " or ".join(signed(names.choices[i], names.action_unit) for i in run)
    parts = []
    for i, (centre, half) in enumerate(zip(names.space.action_centre, names.space.action_half, strict=True)):
        low, high = (fixed(centre + half * bound[node, i], decimals) for bound in (tree.low, tree.high))
        parts.append(f"{low}{unit}" if low == high else f"{low} to {high}{unit}")
    return ", ".join(parts)


def describe_question(tree: Tree, node: int, sign: str, decimals: int = 2) -> str:
    """Return a node's question: variable, sign, threshold and unit."""
    names, feature = tree.variables, tree.feature[node]
    unit = f" {names.units[feature]}" if names.units[feature] else ""
    return f"{names.observed[feature]} {sign} {fixed(tree.threshold[node], decimals)}{unit}"


def export_text(tree: Tree, decimals: int = 2) -> str:
    """Return the tree as text, in the form of scikit-learn's `export_text`."""
    lines = []
    for place, node, depth in walk(tree):
        if place == "leaf":
            lines.append("|   " * depth + f"|--- {tree.variables.action}: {describe_action(tree, node, decimals)}")
        elif place != "end":
            lines.append("|   " * depth + f"|--- {describe_question(tree, node, place.ljust(2), decimals)}")
    return "\n".join(lines) + "\n"


def export_graphviz(tree: Tree, decimals: int = 2) -> str:
    """Return the tree in the language of Graphviz's `dot`: the left branch is where the question's answer is yes."""
    lines = ["digraph Tree {", 'node [shape=box, fontname="helvetica"];', 'edge [fontname="helvetica"];']
    for node in range(len(tree.feature)):
        if tree.feature[node] == LEAF:
            lines.append(f'{node} [label="{describe_action(tree, node, decimals)}", style="rounded"];')
            continue
        lines.append(f'{node} [label="{describe_question(tree, node, "<", decimals)}"];')
        for child, answer in ((tree.left[node], "yes"), (tree.right[node], "no")):
            lines.append(f'{node} -> {child} [label="{answer}"];')
    return "\n".join([*lines, "}"]) + "\n"


def export_python(tree: Tree, name: str = "policy") -> str:
    """Return the source of a Python function of the observed variables that needs nothing else.

    It returns the number of a discrete action, or a continuous one in its unit.
    """
    forms = {"<": "if {variable} < {threshold!r}:", ">=": "else:", "end": "", "leaf": "return {action!r}"}
    arguments = ", ".join(tree.variables.observed)
    return "\n".join([f"def {name}({arguments}):", f'    """{_says(tree)}"""', *_body(tree, name, forms)]) + "\n"


def export_c(tree: Tree, name: str = "policy") -> str:
    """Return the source of a C function of the observed variables that needs nothing else, as `export_python`."""
    forms = {"<": "if ({variable} < {threshold!r}) {{", ">=": "}} else {{", "end": "}}", "leaf": "return {action!r};"}
    names = tree.variables
    kind = "int" if names.box is None else "double"
    arguments = ", ".join(f"double {variable}" for variable in names.observed)
    # A variable the tree never asks for is no mistake: compilers need not warn of it.
    unused = [f"    (void){name};" for i, name in enumerate(names.observed) if i not in tree.feature]
    head = [f"/* {_says(tree)} */", f"{kind} {name}({arguments})", "{", *unused]
    return "\n".join([*head, *_body(tree, name, forms), "}"]) + "\n"


def _body(tree: Tree, name: str, forms: dict[str, str]) -> list[str]:
    """Return the indented lines of a function.

    Thresholds and actions are written with as many digits as it takes to read the same numbers back.
    """
    if not name.isidentifier() or not name.isascii() or keyword.iskeyword(name):
        raise ValueError(f"name must be a name for a function, not {name!r}")
    if tree.low.shape[1] > 1:
        raise ValueError("a function returns one number; this tree has actions of more dimensions")
    if tree.depth > 90:
        raise ValueError(f"Python indents no more than 100 times, and this tree has depth {tree.depth}")
    lines = []
    value = tree.value.reshape(len(tree.feature))
    for place, node, depth in walk(tree):
        line = forms[place].format(
            variable=tree.variables.observed[tree.feature[node]],
            threshold=float(tree.threshold[node]),
            action=value[node].item(),
        )
        if line:
            lines.append("    " * (depth + 1) + line)
    return lines


def _says(tree: Tree) -> str:
    """One line on what an exported function takes and returns."""
    names = tree.variables
    units = ", ".join(f"{v} in {u}" if u else v for v, u in zip(names.observed, names.units, strict=True))
    unit = f" in {names.action_unit}" if names.action_unit else ""
    if names.box is None:
        meanings = ", ".join(f"{i + names.start}: {choice:+g}" for i, choice in enumerate(names.choices))
        return f"From {units}: the number of the action ({names.action}{unit} {meanings})."
    return f"From {units}: the {names.action}{unit}."
