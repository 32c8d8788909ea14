"""What the algorithms take: checked once, whoever gives it, and turned into what compiled code takes."""

import difflib
import inspect
from typing import Any, TypedDict

import gymnasium as gym
import numpy as np

from spaql.checks import Seed
from spaql.rules import Learner, Rules
from spaql.spaces import Space, standardise
from spaql.systems import episode_limit, system_of

RANGES: dict[str, dict[str, float]] = {
    "xi": {"at_least": 0.0},
    "tau_min": {"above": 0.0},
    "u": {"at_least": 1.0},
    "d": {"above": 0.0},
    "lam": {"above": 0.0},
    "alpha": {"above": 0.0, "at_most": 1.0},
    "epsilon": {"at_least": 0.0, "at_most": 1.0},
    "decay": {"above": 0.0},
}


class Common(TypedDict, total=False):
    """The parameters that all algorithms have; `AQL` says what they mean."""

    seed: Seed
    env_seed: int | None
    horizon: int | None
    slopes: Any
    bounds: Any
    initial: float | None
    discount: float


class Shared(Common, total=False):
    """The parameters that the paper's algorithms have."""

    rules: str | Rules


def no_parameter(algorithm: Any, shared: Any, name: str, given: Any) -> str:
    """Say that an algorithm does not have a parameter, and which it has."""
    own = [known for known in inspect.signature(algorithm).parameters if known not in ("env", "shared")]
    known, elsewhere = [*own, *shared.__annotations__], {"gamma": "discount", "learning_rate": "alpha"}.get(name)
    near = difflib.get_close_matches(name, known, 1)
    way_out = f"did you mean {near[0]}?" if near else "leave it out."
    if elsewhere in known:
        way_out = f"it is called {elsewhere} here."
    return f"{algorithm.__name__} has no parameter {name}={given!r}: {way_out}  It has {', '.join(known)}"


def check_reference(reference: Any, env: gym.Env, space: Space) -> list[float]:
    """Return the observation to steer to, the system's if none is given, or say what is wrong with it."""
    dimensions = len(space.centre)
    if reference is None and (reference := getattr(system_of(env), "reference", None)) is None:
        raise ValueError(f"SPAQL-TS needs `reference`, the observation to steer to: {dimensions} numbers in its units")
    reference = np.asarray(reference, float).ravel()
    if reference.size != dimensions or not np.all(np.isfinite(reference)):
        raise ValueError(f"reference must be {dimensions} finite numbers, as an observation has, not {reference}")
    if np.any(np.abs(reference - space.centre) > space.half):
        raise ValueError(f"reference must be within the observation's bounds, not {reference}")
    return reference.tolist()


def make_learner(algorithm: int, given: dict[str, Any], rules: Rules, env: gym.Env, space: Space) -> Learner:
    """Return the parameters in the form compiled code takes."""
    reference = np.zeros(len(space.centre))  # of the algorithms without one, too
    if "reference" in given:
        standardise(space, np.asarray(given["reference"], float), reference)
    return Learner(
        algorithm=algorithm,
        discrete=space.actions > 0,
        H=given["horizon"],
        limit=min(given["horizon"], episode_limit(env) or given["horizon"]),
        **{name: given[name] for name in ("xi", "tau_min", "d", "lam") if name in given},
        reference=tuple(map(float, reference)),
        discount=given["discount"],
        euclidean=rules.distance == "euclidean",
        heat_if_changed=rules.heating == "changed",
        reset_machine=rules.reset == "machine",
        absolute=rules.normalisation == "absolute",
        random_ties=rules.ties == "random",
    )
