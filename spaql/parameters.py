"""What the algorithms take: checked once, whoever gives it, and turned into what compiled code takes."""

import difflib
import inspect
from typing import Any, TypedDict

import gymnasium as gym
import numpy as np

from spaql.checks import check_number
from spaql.rules import SPAQL_TS, Learner, Rules
from spaql.spaces import Space, check_bounds, standardise
from spaql.systems import episode_limit, horizon_of, system_of

LONGEST = 10**6  # steps of an episode, which machine code does not interrupt

RANGES: dict[str, dict[str, float]] = {
    "xi": {"at_least": 0.0},
    "tau_min": {"above": 0.0},
    "u": {"at_least": 1.0},
    "d": {"above": 0.0},
    "lam": {"above": 0.0},
}


class Shared(TypedDict, total=False):
    """The parameters that all algorithms have; `AQL` says what they mean."""

    seed: int | np.random.SeedSequence | None
    env_seed: int | None
    horizon: int | None
    slopes: Any
    bounds: Any
    initial: float | None
    discount: float
    rules: str | Rules


def no_parameter(algorithm: Any, name: str, given: Any) -> str:
    """Say that an algorithm does not have a parameter, and which it has."""
    own = [known for known in inspect.signature(algorithm).parameters if known not in ("env", "shared")]
    shared = [known for known in Shared.__annotations__ if known != "rules" or algorithm.follows_rules]
    known, elsewhere = [*own, *shared], {"gamma": "discount", "learning_rate": "alpha"}.get(name)
    near = difflib.get_close_matches(name, known, 1)
    way_out = f"did you mean {near[0]}?" if near else "leave it out."
    if elsewhere in known:
        way_out = f"it is called {elsewhere} here."
    return f"{algorithm.__name__} has no parameter {name}={given!r}: {way_out}  It has {', '.join(known)}"


def check_shared(
    env: gym.Env, space: Space, horizon: int | None, bounds: Any, initial: float | None, discount: float
) -> dict[str, Any]:
    """Return the parameters that all algorithms have, by name: enough, with its own, to make an agent again."""
    H = horizon_of(env, horizon, at_most=LONGEST)
    checked: dict[str, Any] = {"horizon": H, "slopes": list(space.slope)}
    if bounds is not None:
        checked["bounds"] = check_bounds(bounds, len(space.centre))
    return checked | {
        "initial": check_number("initial", H if initial is None else initial),
        "discount": check_number("discount", discount, at_least=0.0, at_most=1.0),
    }


def check_own(own: dict[str, Any], algorithm: int, env: gym.Env, space: Space) -> dict[str, Any]:
    """Return an algorithm's own parameters, or say what is wrong with them."""
    checked: dict[str, Any] = {
        name: check_number(name, given, **RANGES[name]) for name, given in own.items() if name != "reference"
    }
    if "reference" in own:
        checked["reference"] = check_reference(own["reference"], algorithm, env, space)
    return checked


def check_reference(reference: Any, algorithm: int, env: gym.Env, space: Space) -> list | None:
    """Return the observation to steer to, the system's if none is given, or say what is wrong with it."""
    dimensions = len(space.centre)
    if reference is None:
        system = system_of(env)
        reference = system.reference if system else None
        if reference is None and algorithm == SPAQL_TS:
            raise ValueError("SPAQL-TS needs `reference`, the observation to steer to "
                             f"({dimensions} numbers in the environment's units)")  # fmt: skip
        return None if reference is None else list(reference)
    reference = np.asarray(reference, float).ravel()
    if reference.size != dimensions or not np.all(np.isfinite(reference)):
        raise ValueError(
            f"reference must be {dimensions} finite numbers, one for each of the observation's, not {reference}"
        )
    if np.any(np.abs(reference - space.centre) > space.half):
        raise ValueError(f"reference must be within the observation's bounds, not {reference}")
    return reference.tolist()


def standard(reference: list | None, space: Space) -> tuple[float, ...]:
    """Return a reference state in the standard space; zeros if there is none, for the algorithms without one."""
    point = np.zeros(len(space.centre))
    if reference is not None:
        standardise(space, np.asarray(reference, float), point)
    return tuple(map(float, point))


def make_learner(algorithm: int, given: dict[str, Any], rules: Rules, env: gym.Env, space: Space) -> Learner:
    """Return the parameters in the form compiled code takes."""
    return Learner(
        algorithm=algorithm,
        discrete=space.actions > 0,
        H=given["horizon"],
        limit=min(given["horizon"], episode_limit(env) or given["horizon"]),
        xi=given.get("xi", 0.0),
        tau_min=given.get("tau_min", 0.01),
        d=given.get("d", 1.0),
        lam=given.get("lam", 1.0),
        reference=standard(given.get("reference"), space),
        discount=given["discount"],
        euclidean=rules.distance == "euclidean",
        heat_if_changed=rules.heating == "changed",
        reset_machine=rules.reset == "machine",
        absolute=rules.normalisation == "absolute",
        random_ties=rules.ties == "random",
    )
