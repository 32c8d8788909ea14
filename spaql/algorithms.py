"""The algorithms users choose from, one class each: their parameters, and what they mean."""

import itertools
import logging
import os
from collections.abc import Sequence
from typing import Any, Self, Unpack

import gymnasium as gym
import numpy as np

from spaql import rules
from spaql.advice import CROWDED
from spaql.agent import Agent
from spaql.bisection import Bisection, copy, first_cell, leaves_of, with_nodes
from spaql.checks import check_integer, check_number
from spaql.learning import MOST_ITERATIONS, Callback
from spaql.memory import LEAST, with_room
from spaql.parameters import Shared
from spaql.partition import copy as copy_partition
from spaql.policies.policy import Policies, TreePolicy
from spaql.replay import (
    STOP,
    TAKEN,
    Memory,
    Replayer,
    ReplayRun,
    act,
    advance,
    copy_memory,
    find_tiles,
    follow_all,
    most_nodes,
    new_memory,
)
from spaql.spaces import SINE, check_circles, pairs_of
from spaql.state import State
from spaql.systems import CompiledWorld, begin, observe
from spaql.tiles import ANGLE, PLAIN, Tiles, count_of, largest_prime

log = logging.getLogger(__name__)


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
        Seeds the environment alone, for agents that shall see the same first states.
    horizon
        H, also the greatest length of an episode.  If not given it is the environment's own limit, which is the paper's
        200 for the paper's systems; where there is none it is 200, with a warning when an episode comes to it.
    slopes
        The slope m at the origin of the sigmoid that bounds unbounded observations: one number, or one for each
        observation (those of bounded ones are not used).  The sigmoid is steep within ±1/m and flat beyond a few
        times that.
    bounds
        Bounds to use in the place of the environment's own: one pair (low, high), or a list with a pair or None for
        each observation.  What lies outside is clipped to them.  For unbounded observations that are not near zero.
    initial
        The estimate Q of the first ball: H if not given, as in the paper.
    discount
        What the value of the next state is multiplied by: 1 as in the paper, which has none.
    rules
        "paper", "released", or a `Rules` for a mixture.

    Examples
    --------
    >>> agent = AQL("Pendulum-v1", xi=20, seed=0).learn(iterations=100)
    >>> agent.history.rewards[-1]
    """

    algorithm = rules.AQL

    def __init__(self, env: str | gym.Env, *, xi: float, **shared: Unpack[Shared]):
        super().__init__(env, {"xi": xi}, **shared)

    @property
    def policy(self) -> Policies:  # type: ignore[override]
        """The greedy policies, one for each time step: `agent.policy[0]` is the first step's."""
        return Policies(copy_partition(self._kept()), self._space, self.env, self._learner.H)


class SPAQL(Agent):
    """Single-partition adaptive Q-learning (the paper's Algorithm 3): a policy that does not depend on time.

    Parameters
    ----------
    env, seed, env_seed, horizon, slopes, bounds, initial, discount, rules
        As for `AQL`.
    xi
        ξ, the scale of the upper confidence bound.
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
    env, seed, env_seed, horizon, slopes, bounds, initial, discount, rules
        As for `AQL`.
    xi
        ξ, the scale of the upper confidence bound.
    tau_min, u, d
        Of the temperature, as for `SPAQL`.
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


MOST_ACTIONS = 1000  # that SPAQL-R can choose from
MOST_WEIGHTS = 4_000_000  # of tiles; of more tiles, several share theirs
MOST_WORK = 10**9  # steps of an episode, times transitions to learn from after each, times steps that they are followed
MANY_EPISODES = 5000  # as many as anybody may have meant to be samples
LOOKS = 10  # first states by which angles are checked
FOREVER = -1  # a number of samples that is never reached


class SPAQLR(Agent):
    """SPAQL, repaired: discounted values that end with the episode, and every transition learnt from many times.

    There is one agent, which is never reset and never selected by its rollouts.  As SPAQL it refines its partition
    where the visits are; the module `spaql.replay` has the equations.

    Parameters
    ----------
    env, seed, env_seed, horizon
        As for `AQL`.  There are no `rules`.
    discount
        γ, 0.995 if not given.
    initial
        The first estimates, 0 if not given.
    alpha
        α, the learning rate; None is SPAQL's, which falls with the visits.
    beta
        β, how much of α is the learning rate of the advantages of actions; the value of states has all of it.
    tilings, bins
        How many grids the estimates are learned on, a power of two, and how many tiles each has along an axis.  With 0
        tilings cells have estimates of their own.
    epsilon, decay
        After t samples a share of max(ε, exp(-t / decay)) of the actions is random.
    replays
        How many transitions are drawn from the memory after each step, to learn from them again.
    memory
        How many transitions are remembered: the last ones.  A hundred thousand take about 35 MB.
    visits
        Of a cell until it is cut in two; None halves cells by SPAQL's rule.
    steps
        An update follows its episode for at most so many steps, while that takes the actions now thought best.
    angles
        Pairs of places in the observation that hold cosine and sine of an angle, as [(0, 1)]: the angle is seen in
        their place.  If not given, those of a registered system; of other environments none.
    actions
        A continuous action is chosen from so many values of each of its dimensions, evenly spaced, both ends included;
        by default the ends alone, between which a policy can switch at every step.
    terminal
        Whether a terminal state has the value zero, as it should; False is SPAQL's way.
    slopes, bounds
        As for `AQL`, but slopes are 1 for every unbounded observation if not given.

    Examples
    --------
    >>> agent = SPAQLR("Pendulum-v1", seed=0).learn(samples=40_000)
    >>> agent.evaluate(episodes=1000, seed=1).mean()
    """

    algorithm = rules.SPAQL_R
    _memory: Memory
    _trainee: Bisection
    _best: Bisection
    _rollouts = staticmethod(follow_all)

    def __init__(
        self,
        env: str | gym.Env,
        *,
        alpha: float | None = 0.2,
        beta: float = 0.05,
        tilings: int = 32,
        bins: int = 8,
        epsilon: float = 0.1,
        decay: float = 2000.0,
        replays: int = 16,
        memory: int = 100_000,
        visits: int | None = 10,
        steps: int = 50,
        angles: Any = None,
        actions: int = 2,
        terminal: bool = True,
        **shared: Unpack[Shared],
    ):
        if shared.get("slopes") is None:
            shared["slopes"] = 1.0
        if shared.get("initial") is None:
            shared["initial"] = 0.0
        shared.setdefault("discount", 0.995)
        if rules.check_rules(shared.get("rules", "paper")) != rules.RULES["paper"]:
            raise ValueError(
                f"SPAQL-R follows no rules of the paper's, not even {shared['rules']!r}: leave `rules` out"
            )
        own: dict[str, Any] = {"alpha": alpha, "beta": beta, "tilings": tilings, "bins": bins, "epsilon": epsilon}
        own |= {"decay": decay, "replays": replays, "memory": memory, "visits": visits, "steps": steps}
        super().__init__(env, own | {"actions": actions, "terminal": terminal, "angles": angles}, **shared)
        self._check_circles()
        given = self.parameters
        plain = {name: given[name] for name in ("epsilon", "decay", "replays", "steps", "terminal")}
        gamma = given["discount"]
        reach = 1.0 / (1.0 - gamma) if gamma < 1.0 else float(given["horizon"])
        choices = self._choices()
        tiles = self._tiles(len(choices))
        self._replayer = Replayer(gamma=gamma, alpha=given["alpha"] or 0.0, beta=given["beta"], reach=reach,
                                  visits=given["visits"] or 0, tiles=tiles, **plain)  # fmt: skip
        first, room = given["initial"], min(LEAST, given["memory"])
        self._memory = new_memory(room, len(self._space.centre), tiles, len(choices), first)
        # By SPAQL's rule all of the space counts as seen, but for the places of sines: they are empty.
        whole = np.array([0.0 if sine == SINE else 1.0 for sine in self._space.sine])
        seen = np.full(len(whole), -np.inf) if given["visits"] else whole
        self._trainee = self._best = first_cell(seen, choices, 0.0 if tiles.tilings else first)

    def _tiles(self, actions: int) -> Tiles:
        """Return how the states are coded."""
        sines = enumerate(self._space.sine)
        places = [(place, ANGLE if sine >= 0 else PLAIN) for place, sine in sines if sine != SINE]
        tiles = Tiles(self.parameters["tilings"], self.parameters["bins"], np.array(places))
        return tiles._replace(numbers=min(count_of(tiles), largest_prime(MOST_WEIGHTS // (1 + actions))))

    def _crowded(self) -> bool:
        seen = self._memory.x[: self._memory.counts[TAKEN]]
        cells = np.floor((seen + 1.0) * 2.0 ** (CROWDED - 1)).clip(0, 2**CROWDED - 1).astype(np.uint64)
        numbers = cells @ (2 ** (CROWDED * np.arange(cells.shape[1], dtype=np.uint64)))  # rows take long to sort
        return bool(np.unique(numbers, return_counts=True)[1].max() >= 0.99 * len(seen))

    def _check_own(self, own: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters, or say what is wrong with them."""
        checked: dict[str, Any] = {
            "alpha": None if own["alpha"] is None else check_number("alpha", own["alpha"], above=0.0, at_most=1.0),
            "beta": check_number("beta", own["beta"], above=0.0, at_most=1.0),
            "tilings": check_integer("tilings", own["tilings"], at_least=0, at_most=256),
            "epsilon": check_number("epsilon", own["epsilon"], at_least=0.0, at_most=1.0),
            "decay": check_number("decay", own["decay"], above=0.0),
            "replays": check_integer("replays", own["replays"], at_least=0),
            "visits": None if own["visits"] is None else check_integer("visits", own["visits"]),
            "terminal": bool(own["terminal"]),
        }
        checked |= {name: check_integer(name, own[name]) for name in ("memory", "steps")}
        checked["bins"] = check_integer("bins", own["bins"], at_most=1000)
        if checked["tilings"] & (checked["tilings"] - 1):
            raise ValueError(
                f"tilings must be 0 or a power of two, not {checked['tilings']}: others are shifted unevenly"
            )
        if checked["tilings"] and (checked["alpha"] or 0.0) * (1.0 + checked["beta"]) >= 2.0:
            raise ValueError("alpha × (1 + beta), the learning rate of an estimate, must be below 2")
        checked["actions"] = check_integer("actions", own["actions"], at_least=2, at_most=MOST_ACTIONS)
        checked["angles"] = pairs_of(self._space)
        work = self.parameters["horizon"] * (checked["replays"] + 1) * checked["steps"]
        if work > MOST_WORK:
            raise ValueError(
                f"horizon × (replays + 1) × steps must be at most {MOST_WORK:,}, not {work:,}: an episode would take "
                "minutes in which nothing can interrupt it"
            )
        return checked

    def _check_circles(self) -> None:
        """Say if angles are none in the first states of a compiled system; an interpreted one looks at every state."""
        if isinstance(self._world, CompiledWorld) and self.parameters["angles"]:
            constants, state = self._world.model.constants, self._world.model.room()
            observation = np.empty(len(self._space.centre))
            for start in self._world.draw(np.random.default_rng(0), LOOKS):
                begin(constants, start, state)
                observe(constants, state, observation)
                check_circles(self.parameters["angles"], observation)

    def _choices(self) -> np.ndarray:
        """Return the actions to choose from, in the standard space, one row per action."""
        if self._learner.discrete:
            return np.arange(float(self._space.actions)).reshape(-1, 1)
        count, dimensions = self.parameters["actions"], len(self._space.action_half)
        if count**dimensions > MOST_ACTIONS:
            raise ValueError(
                f"{count} values of each of {dimensions} dimensions make {count**dimensions:,} actions; "
                f"expected at most {MOST_ACTIONS:,}: give fewer `actions`"
            )
        return np.array(list(itertools.product(np.linspace(-1.0, 1.0, count), repeat=dimensions)))

    def learn(
        self,
        iterations: int | None = None,
        evaluations: int = 0,
        progress_bar: bool = False,
        *,
        samples: int | None = None,
        total_timesteps: int | None = None,
        callback: Callback | Sequence[Callback] | None = None,
        stop_at: float | None = None,
        reevaluations: int = 0,
    ) -> Self:
        """Train for some iterations, an episode each, or for a number of samples; either goes on where it was.

        Parameters
        ----------
        iterations
            How many training episodes.
        evaluations
            N, rollouts after each of them, which only report: learning neither needs nor sees them.  The history's
            `rewards` is their mean, or, without them, the return of the training episode itself.
        progress_bar
            Show how far it is, on standard error.
        samples
            How many environment steps, instead of `iterations`; the last episode is cut off there.
        total_timesteps
            Another name for `samples`, Stable-Baselines3's.
        callback, stop_at
            As for the other algorithms.
        reevaluations
            None (0): no rollouts choose an agent.
        """
        samples = total_timesteps if samples is None else samples
        if (iterations is None) == (samples is None):
            raise ValueError(f"give either iterations or samples, not {iterations} and {samples}")
        name, number = ("samples", samples) if iterations is None else ("iterations", iterations)
        number = check_integer(name, number, at_most=MOST_ITERATIONS)
        if name == "iterations" and number >= MANY_EPISODES:
            log.warning("%s iterations are episodes, of up to %s steps each: did you mean samples=%s?",
                        f"{number:,}", self._learner.limit, number)  # fmt: skip
        N = check_integer("evaluations", evaluations, at_least=0)
        hooks = self._check_hooks(callback, stop_at, reevaluations)
        self._memory.counts[STOP] = FOREVER if samples is None else self._memory.counts[TAKEN] + number
        return self._learn(number, N, hooks, progress_bar)

    def _left(self) -> int | None:
        taken, stop = int(self._memory.counts[TAKEN]), int(self._memory.counts[STOP])
        return None if stop == FOREVER else stop - taken

    def _goes_on(self, goal: int) -> bool:
        left = self._left()
        under_way = bool(self._status["episode"][0] > 0)
        return super()._goes_on(goal) if left is None else left > 0 or under_way

    def _to_come(self, goal: int) -> int:
        left = self._left()
        if left is None:
            return super()._to_come(goal)
        # No episode is longer than the limit, so that at least this many begin before the samples are taken.
        episodes = -(-left // self._learner.limit)
        return min(super()._to_come(goal), episodes - 1 if self._status["episode"][0] == 0 else episodes)

    def _advance(self, starts: Any, N: int) -> None:
        steps = len(starts) * self._learner.limit
        self._memory = with_room(self._memory, int(self._memory.counts[TAKEN]) + steps, self.parameters["memory"])
        wanted = most_nodes(self._trainee, steps)
        if len(self._trainee.child) < wanted:
            self._trainee = self._best = with_nodes(self._trainee, wanted + len(self._trainee.child))
        run = ReplayRun(self._learner, self._replayer, self._trainee, self._memory, self._status, self._history)
        self._world.call(advance, starts, N, run, self._rng)

    def _copy(self, partition: Bisection) -> Bisection:  # type: ignore[override]
        return copy(partition)

    def _act(self, steps: np.ndarray, points: np.ndarray, deterministic: bool, actions: np.ndarray) -> None:
        act(self._best, points, actions)

    @property
    def policy(self) -> TreePolicy:
        """The greedy policy as something to read: a table, a decision tree (see `spaql.policies.Policy`)."""
        return TreePolicy(copy(self._kept()), self._space, self.env, self._learner.H)

    @property
    def arms(self) -> int:
        """The number of estimates: one for each cell and action."""
        return leaves_of(self._best) * len(self._best.actions)

    def _state(self) -> State:
        return super()._state()._replace(memory=copy_memory(self._memory))

    def _set_state(self, state: State) -> None:
        super()._set_state(state)
        if state.memory is not None:
            self._memory = state.memory

    @classmethod
    def load(cls, path: str | os.PathLike, env: gym.Env | None = None) -> Self:
        """Return a saved agent, as the other algorithms do; the tiles of what it remembers are found again."""
        agent = super().load(path, env)
        find_tiles(agent._replayer.tiles, agent._memory.x, agent._memory.tiles_x)
        find_tiles(agent._replayer.tiles, agent._memory.y, agent._memory.tiles_y)
        return agent


class Random(Agent):
    """The baseline that draws its actions uniformly; its `learn` only evaluates.

    Parameters
    ----------
    env, seed, env_seed, horizon, slopes, bounds, initial, discount, rules
        As for `AQL`.
    """

    algorithm = rules.RANDOM

    def __init__(self, env: str | gym.Env, **shared: Unpack[Shared]):
        super().__init__(env, {}, **shared)
