"""Decision trees in flat arrays, and the names of what they ask for and do.

The arrays are scikit-learn's: node 0 is the root, and the children of a node come after it.  One thing is different: a
state goes left if its variable is *below* the threshold, not at it, since a state on a border of the partition belongs
to its upper side.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from spaql.checks import check_name
from spaql.compiling import cached_jit, python_or_jit
from spaql.spaces import Space, pairs_of, rows_of, to_box, turn
from spaql.systems import Variable, space_of, system_of
from spaql.systems.environments import wrappers_of

LEAF = -1


def counted(leaves: int) -> str:
    """Return `1 leaf` or `n leaves`."""
    return "1 leaf" if leaves == 1 else f"{leaves} leaves"


class Variables(NamedTuple):
    """What a system's observations and actions are called, and their units."""

    system: str  # the environment's id
    observed: tuple[str, ...]
    units: tuple[str, ...]
    asked: tuple[str, ...]  # what is asked for in the place of each: itself, or the angle it is the cosine of
    asked_units: tuple[str, ...]
    actions: tuple[str, ...]  # one name for each number of an action
    action_units: tuple[str, ...]
    choices: tuple[float, ...]  # the discrete actions in their unit, or their numbers; empty for continuous ones
    start: int  # the number of the first discrete action
    box: gym.spaces.Box | None  # of continuous actions
    space: Space  # the map to the standard space

    @property
    def action(self) -> str:
        """The action in words."""
        return " and ".join(self.actions)

    @property
    def action_unit(self) -> str:
        """The unit that all numbers of an action share; empty if there is none."""
        return self.action_units[0] if len(set(self.action_units)) == 1 else ""

    def given(self, actions: np.ndarray) -> np.ndarray:
        """Return actions of the standard space, a row each, as the environment takes them."""
        if self.box is None:
            return actions[:, 0].astype(np.int64) + self.start
        return to_box(self.box, self.space, actions)


NUMBERED = "action number"  # what a discrete action is called where nothing says what its numbers do


def variables_of(env: gym.Env, space: Space | None = None) -> Variables:
    """Return the names and units of an environment's variables: its system's, those in its metadata, or numbers."""
    space = space_of(env) if space is None else space
    system = system_of(env)
    discrete = isinstance(env.action_space, gym.spaces.Discrete)
    start = int(env.action_space.start) if discrete else 0
    count = len(space.action_half)
    if system is None:
        observed = named(env, "observations", [f"observation_{i}" for i in range(len(space.centre))])
        actions = named(env, "action", ["action"] if count == 1 else [f"action_{i}" for i in range(count)])
        told = None if is_changed(env, "action") else env.metadata.get("choices")
    else:
        observed, actions = system.observed, system.actions
        told = None if system.choices is None else system.choices(env)
    asked = list(observed)
    known = {pair: name for name, pair in system.angles.items()} if system else {}
    for cosine, sine in pairs_of(space):
        name = known.get((observed[cosine].name, observed[sine].name), f"angle_{cosine}")
        asked[cosine], asked[sine] = Variable(check_name("an angle", name), unit="rad"), Variable("")
    choices: tuple[float, ...] = () if told is None or not discrete else tuple(map(float, told))
    if discrete and not choices:
        choices, actions = tuple(float(start + i) for i in range(space.actions)), (Variable(NUMBERED),)
    if discrete and len(choices) != space.actions:
        raise ValueError(f"choices of {system.name if system else 'the environment'} must be {space.actions} numbers, "
                         f"one for each action, not {choices}")  # fmt: skip
    return Variables(
        system=env.spec.id if env.spec else type(env.unwrapped).__name__,
        observed=tuple(variable.name for variable in observed),
        units=tuple(variable.unit for variable in observed),
        asked=tuple(variable.name for variable in asked),
        asked_units=tuple(variable.unit for variable in asked),
        actions=tuple(variable.name for variable in actions),
        action_units=tuple(variable.unit for variable in actions),
        choices=choices,
        start=start,
        box=None if discrete else env.action_space,
        space=space,
    )


def named(env: gym.Env, kind: str, plain: list[str]) -> tuple[Variable, ...]:
    """Return the variables that an environment's metadata name, or plain ones; say what is wrong with their names."""
    given = (not is_changed(env, kind) and env.metadata.get(kind)) or dict.fromkeys(plain, "")
    if not isinstance(given, Mapping) or len(given) != len(plain):
        raise ValueError(f"the metadata's {kind} must be {len(plain)} names with their units, as {{'x': 'm'}}, "
                         f"not {given!r}")  # fmt: skip
    return tuple(Variable(check_name("a variable", name), unit=unit) for name, unit in given.items())


def is_changed(env: gym.Env, kind: str) -> bool:
    """Return whether a wrapper changes observations or actions, and has no metadata of its own that name them."""
    outer, inner = (getattr(one, f"{kind.rstrip('s')}_space") for one in (env, env.unwrapped))
    changing = gym.ActionWrapper if kind == "action" else gym.ObservationWrapper
    changed = outer != inner or any(isinstance(one, changing) for one in wrappers_of(env))
    return changed and not getattr(env, "_metadata", None)


class Tree(NamedTuple):
    """A decision tree: arrays with an entry for each node, and the names of what it asks for."""

    feature: np.ndarray  # the variable that is asked for, that of a cosine for the angle; -1 in a leaf
    threshold: np.ndarray  # in the variable's own unit: below it the left child comes next, otherwise the right one
    left: np.ndarray  # -1 in a leaf
    right: np.ndarray
    action: np.ndarray  # of a leaf, in the standard space, one row for each node
    variables: Variables
    visits: np.ndarray | None = None  # states seen, of an exact tree those of its cells' best balls; None if not known
    report: Any = None  # of an imitation: what it earns, and how often it does what the policy does

    def __repr__(self) -> str:
        said = f"{counted(self.leaves)} of {', '.join(filter(None, self.variables.asked))}"
        return f"Tree({said}{'' if self.report is None else f'; {self.report}'})"

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
        """The action of each node as the environment takes it."""
        return self.variables.given(self.action)

    def apply(self, observations: ArrayLike) -> np.ndarray:
        """Return the leaf each observation comes to; `observations` has a row each."""
        rows, _ = rows_of(observations, (len(self.variables.observed),))
        return leaves_of(*self[:4], turned(self.variables.space, rows))

    def predict(
        self, observation: ArrayLike, state: None = None, episode_start: None = None, deterministic: bool = True
    ) -> tuple[np.ndarray, None]:
        """Return the action for an observation or an array of them, and None: Stable-Baselines3's protocol."""
        actions = self.value[self.apply(observation)]
        return (actions[0] if np.ndim(observation) == 1 else actions), None


@python_or_jit
def descend(feature, threshold, left, right, observation):
    """The leaf that an observation comes to, with angles in the places of their cosines."""
    node = 0
    while feature[node] >= 0:
        node = left[node] if observation[feature[node]] < threshold[node] else right[node]
    return node


@cached_jit
def leaves_of(feature, threshold, left, right, points):
    """Return the leaf that each observation comes to, with angles in the places of their cosines."""
    nodes = np.empty(len(points), np.int64)
    for i in range(len(points)):
        nodes[i] = descend(feature, threshold, left, right, points[i])
    return nodes


@cached_jit
def turned(space, points):
    """Return what trees ask for of each observation: angles in the places of their cosines."""
    seen = np.empty_like(points)
    for i in range(len(points)):
        turn(space, points[i], seen[i])
    return seen
