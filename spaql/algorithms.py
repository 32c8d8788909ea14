"""The algorithms users choose from, one class each: their parameters, and what they mean."""

from typing import Any, Unpack

import gymnasium as gym

from spaql import rules
from spaql.agent import Agent
from spaql.parameters import Shared
from spaql.policies.policy import Policies


class AQL(Agent):
    """Adaptive Q-learning (the paper's Algorithm 1): one partition of the state-action space for every time step.

    Parameters
    ----------
    env
        An id (`"Pendulum-v1"`, `"CartPole-v0"`, `"spaql/PendulumDiscrete-v1"`, `"spaql/PendulumScaled-v1"`, any other
        of Gymnasium's) or an environment with Box observations and Discrete or bounded Box actions.  Registered
        systems (Gymnasium's classic control, and your own) run compiled, any other environment interpreted, and
        `agent.compiled` tells which; the log names a wrapper that hides a registered system.  Observations outside
        their declared bounds are clipped to them, with a warning the first time.
    xi
        ξ, the scale of the upper confidence bound.
    seed
        Seeds everything: same seed, same numbers.
    env_seed
        Seeds the environment alone, so that agents can share their start states.
    horizon
        H, also the greatest length of an episode.  If not given, the environment's own limit, which is 200 for the
        paper's systems; without such a limit 200, with a warning if an episode gets there.
    slopes
        The slope m at the origin of the sigmoid that bounds unbounded observations: one number, or one for each
        observation (those of bounded ones are not used).  The sigmoid is steep within ±1/m and flat beyond a few
        times that.
    bounds
        Bounds to use instead of the environment's own: one pair (low, high), or a list with a pair or None for each
        observation.  What lies outside is clipped.  Useful for unbounded observations that are not near zero.
    initial
        The estimate Q of the first ball: H if not given, as in the paper.
    discount
        What the value of the next state is multiplied by; 1 in the paper, which has no discount.
    rules
        "paper", "released", or a `Rules` for a mixture.

    Examples
    --------
    >>> agent = AQL("Pendulum-v1", xi=20, seed=0).learn(iterations=100)
    >>> agent.history.rewards[-1]
    """

    algorithm = rules.AQL
    _policy = Policies

    def __init__(self, env: str | gym.Env, *, xi: float, **shared: Unpack[Shared]):
        super().__init__(env, {"xi": xi}, **shared)


class SPAQL(Agent):
    """Single-partition adaptive Q-learning (the paper's Algorithm 3): a policy that does not depend on time.

    Parameters
    ----------
    env, xi, seed, env_seed, horizon, slopes, bounds, initial, discount, rules
        As for `AQL`.
    tau_min
        τ_min, the lowest temperature of the Boltzmann exploration.
    u
        The factor by which the temperature rises after an iteration without improvement.
    d
        After an improvement u becomes u^d; below 1 in the paper.
    """

    algorithm = rules.SPAQL

    def __init__(
        self,
        env: str | gym.Env,
        *,
        xi: float,
        tau_min: float = 0.01,
        u: float = 2.0,
        d: float = 0.8,
        **shared: Unpack[Shared],
    ):
        super().__init__(env, {"xi": xi, "tau_min": tau_min, "u": u, "d": d}, **shared)


class SPAQLTS(Agent):
    """SPAQL with terminal state: values are weighted by the distance to a reference state.

    Parameters
    ----------
    env, xi, seed, env_seed, horizon, slopes, bounds, initial, discount, rules
        As for `AQL`.
    tau_min, u, d
        As for `SPAQL`.
    lam
        λ, the width of the weight exp(-(D/λ)²), in the standard space (the paper calls it a standard deviation).
    reference
        The observation to steer to, in the environment's units; the paper's for Pendulum and CartPole.
    """

    algorithm = rules.SPAQL_TS

    def __init__(
        self,
        env: str | gym.Env,
        *,
        xi: float,
        tau_min: float = 0.01,
        u: float = 2.0,
        d: float = 0.8,
        lam: float = 1.2,
        reference: Any = None,
        **shared: Unpack[Shared],
    ):
        own = {"xi": xi, "tau_min": tau_min, "u": u, "d": d, "lam": lam, "reference": reference}
        super().__init__(env, own, **shared)


class Random(Agent):
    """The baseline that draws its actions uniformly.  `learn` only evaluates.  Parameters as for `AQL`, without ξ."""

    algorithm = rules.RANDOM

    def __init__(self, env: str | gym.Env, **shared: Unpack[Shared]):
        super().__init__(env, {}, **shared)
