"""What the algorithms share: an agent that learns, evaluates, predicts, saves and loads."""

import copy
import os
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np

from spaql import files
from spaql.advice import BLIND
from spaql.checks import Seed, check_number, check_seed
from spaql.interrupts import alone, deferred_interrupts
from spaql.learning import Learning, copy_of
from spaql.loop import act
from spaql.parameters import RANGES, Shared, check_reference, make_learner, no_parameter
from spaql.partition import new_partition
from spaql.policies.policy import Policy
from spaql.policies.tree import variables_of
from spaql.rules import AQL, HISTORY, SPAQL, SPAQL_TS, STATUS, Rules, check_rules
from spaql.spaces import check_bounds, check_circles, is_flat, pairs_of, rows_of, standardised
from spaql.systems import episode_limit, explain_interpreted, horizon_of, make_env, space_of

MOST_ACTIONS = 1000  # to choose from
LONGEST = 10**6  # steps of an episode, which machine code does not interrupt


class Agent(Learning):
    """What the algorithms share.  Use one of them: AQL, SPAQL, SPAQLTS, SPAQLR, TileQ or Random.

    One thread an agent: while it learns, others may only predict.
    """

    _shared: ClassVar[Any] = Shared  # the parameters besides its own
    _policy: ClassVar[Any] = Policy

    def __init__(
        self,
        env: str | gym.Env,
        own: dict[str, Any],
        *,
        seed: Seed = None,
        env_seed: int | None = None,
        horizon: int | None = None,
        slopes: Any = None,
        bounds: Any = None,
        initial: float | None = None,
        discount: float = 1.0,
        rules: str | Rules = "paper",
        **unknown: Any,
    ):
        for name, given in unknown.items():
            raise TypeError(no_parameter(type(self), self._shared, name, given))
        self.env_id = env if isinstance(env, str) else None
        env = make_env(env)
        if (count := getattr(env.action_space, "n", 1)) > MOST_ACTIONS:
            raise ValueError(f"{env.action_space} has {count:,} actions; expected at most {MOST_ACTIONS:,}")
        if not self._replays and isinstance(env.action_space, gym.spaces.MultiDiscrete):
            raise TypeError(
                f"{type(self).__name__} cannot take {env.action_space}: TileQ and SPAQLR choose among all combinations"
            )
        space = space_of(env, slopes, bounds, own.get("angles", ()))
        self._variables = variables_of(env, space)  # names that do not fit are refused before hours of training
        super().__init__(env, space, check_rules(rules), seed, env_seed)
        H = horizon_of(env, horizon, at_most=LONGEST)
        # What the algorithm's own constructor takes besides seeds and rules: enough to make the agent again.
        self.parameters: dict[str, Any] = {
            "horizon": H,
            "slopes": list(space.slope),
            "bounds": None if bounds is None else check_bounds(bounds, len(space.centre)),
            "initial": check_number("initial", H if initial is None else initial),
            "discount": check_number("discount", discount, at_least=0.0, at_most=1.0),
        }
        self.parameters |= self._check_own(own)
        self._learner = make_learner(self.algorithm, self.parameters, self.rules, env, space)
        self._unlimited = horizon is None and episode_limit(env) is None
        if self.compiled:  # an interpreted world looks at its states itself
            for start in self._world.draw(np.random.default_rng(0), 10):
                observation = self._world.first_observation(start)
                check_circles(pairs_of(space), observation)
                if is_flat(space, observation):
                    self._advice.once(BLIND, observation)
        else:
            explain_interpreted(env)

        self._trainee = self._best = self._representation()
        self._history, self._status = np.zeros(0, HISTORY), np.zeros(1, STATUS)
        # SPAQL evaluates the agent once before the first iteration (spaql_alg, line 4).
        self._status["iteration"], self._status["episode"] = (-1, 1) if self.algorithm in (SPAQL, SPAQL_TS) else (0, 0)
        self._status["tau"], self._status["u"] = self._learner.tau_min, self.parameters.get("u", 1.0)
        self._status["seen"] = 1

    def _representation(self) -> Any:
        """Return what the agent learns in, as it begins: one ball, or one for every time step."""
        ends = (0.0, float(self._space.actions)) if self._learner.discrete else (-1.0, 1.0)
        low, high = (np.broadcast_to(end, len(self._space.action_half)) for end in ends)
        roots = self._learner.H if self.algorithm == AQL else 1
        return new_partition(roots, len(self._space.centre), low, high, q=self.parameters["initial"])

    def _check_own(self, own: dict[str, Any]) -> dict[str, Any]:
        """Return the algorithm's own parameters, or say what is wrong with them."""
        checked: dict[str, Any] = {
            name: check_number(name, own[name], **bounds) for name, bounds in RANGES.items() if name in own
        }
        if "reference" in own:
            checked["reference"] = check_reference(own["reference"], self.env, self._space)
        return checked

    @property
    def policy(self) -> Any:
        """The greedy policy as a table or a tree, see `spaql.policies`; AQL's, one for each time step, are a list."""
        return self._policy(copy_of(self._kept()), self._space, self.env, self._learner.H)

    def predict(
        self, observation: np.ndarray, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[np.ndarray, Any]:
        """Return the action for an observation, or an array of actions for an array of observations.

        This is Stable-Baselines3's protocol, so its `evaluate_policy` runs on the agent.

        Parameters
        ----------
        observation
            One observation of the environment, or several stacked.
        state
            What the last call returned: for AQL, whose policy depends on it, the time step; for the others None.
        episode_start
            Which of the observations begin an episode.
        deterministic
            True takes the centre of the best ball; False is the paper's policy, uniform in that ball.
        """
        batch, single = rows_of(observation, self.env.observation_space.shape)
        points = standardised(self._space, batch)
        steps, starts = np.zeros(len(batch), np.int64), np.zeros(len(batch), bool)
        if episode_start is not None:
            starts[:] = np.asarray(episode_start, bool).reshape(-1)
        if self.rules.first_observation == "raw":
            points[starts] = np.clip(batch[starts], -1.0, 1.0)
        if self.algorithm == AQL:
            if state is not None:
                steps[:] = np.where(starts, 0, np.asarray(state).reshape(-1))
            steps = np.clip(steps, 0, self._learner.H - 1)  # beyond the horizon its last policy goes on
        actions = np.empty((len(batch), len(self._space.action_half)))
        self._act(steps, points, bool(deterministic), actions)
        given = self._variables.given(actions)
        return (given[0] if single else given), (steps + 1 if self.algorithm == AQL else None)

    def _act(self, steps: np.ndarray, points: np.ndarray, deterministic: bool, actions: np.ndarray) -> None:
        """Write the action at each of some points of the standard space, at these time steps."""
        act(self._kept(), steps, points, self._space, deterministic, self._prediction_rng, actions)

    def save(self, path: str | os.PathLike) -> None:
        """Write the agent to one .npz file, without pickle; it replaces an older one only when complete."""
        with deferred_interrupts(), alone(self):  # in a callback, or where nothing learns
            header = {
                "algorithm": type(self).__name__,
                "env_id": self.env_id,
                "parameters": self.parameters,
                "rules": self.rules._asdict(),
                "seed": {"entropy": self.seed.entropy, "spawn_key": list(self.seed.spawn_key)},
                "env_seed": self.env_seed,
                "streams": self._streams(),
            }
            files.write(path, header, self._arrays())

    @classmethod
    def load(cls, path: str | os.PathLike, env: gym.Env | None = None) -> Self:
        """Return a saved agent, which predicts the same and can go on learning.

        `env` is needed if the agent was made with an environment rather than an id, or with an id that names a module.
        """
        header, arrays = files.read(path, cls.__name__)
        made_for = files.check_env_id(header["env_id"], path) if env is None else env
        try:
            given = header["parameters"] | ({} if cls._replays else {"rules": Rules(**header["rules"])})
            seed = check_seed(header["seed"]["entropy"], header["seed"]["spawn_key"])
            agent = cls(made_for, **given, seed=seed, env_seed=header["env_seed"])
            agent._restore(header["streams"], arrays)
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ValueError(f"{path} is not a sound saved agent for this environment: {error}") from error
        return agent

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle and copy keep.  While it learns it is refused."""
        if self._backup is not None:
            raise RuntimeError("the agent is learning: copy it when that has ended, or save it in a callback")
        return vars(self) | {"_trainee": copy_of(self._trainee)}  # without its room

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__ |= kept
        self._set_state(self._state())  # copies: joblib hands arrays over as files that only can be read

    def __copy__(self) -> Self:
        """Return an independent agent: one that shared its arrays would be changed by the other's learning."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        history = self.history
        said = [str(self.env_id or self.env), f"{len(history)} iterations", f"{self.arms} arms"]
        if len(history):
            one = "last mean" if history.evaluation_steps[-1] else "last episode"
            said.append(f"{'best mean' if self._keeps_best else one} {history.rewards[-1]:.5g}")
        if self._fresh and self._fresh[0] == len(history):
            said.append(f"{self._fresh[2]:.5g} on {self._fresh[1]:,} fresh episodes")
        return f"{type(self).__name__}({', '.join(said)})"
