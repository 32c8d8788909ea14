"""What users hold: AQL, SPAQL, SPAQLTS and Random agents that learn, predict, save and load."""

import contextlib
import math
import numbers
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from spaql import files, learning
from spaql.files import check_array
from spaql.learning import HISTORY, RULES, STATUS, Learner, Rules, Run
from spaql.partition import ARMS, BALLS, CELLS, NONE, Partition, copy, new_partition
from spaql.progress import progress
from spaql.systems import (
    PAPER_REFERENCES,
    Gym,
    Pendulum,
    compile_system,
    draw_starts,
    episode_limit,
    gym_reset,
    gym_step,
    make_space,
    paper_family,
    standardise,
    to_box,
)

FORMAT, VERSION = "saved agent", 1
STORED = Partition._fields[:-1]  # of a partition; the axes are the environment's
CHUNK = 0.2  # seconds of compiled learning between two looks at the keyboard
SLICE = 5000  # rollouts of a compiled evaluation between two


class Agent:
    """What the four algorithms share.  Use one of them: AQL, SPAQL, SPAQLTS or Random."""

    algorithm: ClassVar[int]

    def __init__(
        self,
        env: str | gym.Env,
        seed: int | np.random.SeedSequence | None,
        env_seed: int | None,
        horizon: int,
        slopes: Any,
        rules: str | Rules,
        xi: float = 0.0,
        tau_min: float = 0.01,
        u: float = 2.0,
        d: float = 0.8,
        lam: float = 1.2,
        reference: Any = None,
    ):
        self.env_id = env if isinstance(env, str) else None
        self.env = make_env(env)
        self.rules = check_rules(rules)
        self._space = make_space(self.env, slopes)
        reference = self._check_reference(reference)
        # What the algorithm's own constructor takes besides seeds and rules: enough to make the agent again.
        self.parameters = {"horizon": check_integer("horizon", horizon), "slopes": list(self._space.slope)}
        if self.algorithm != learning.RANDOM:
            self.parameters["xi"] = check_number("xi", xi, at_least=0.0)
        if self._keeps_best:
            self.parameters["tau_min"] = check_number("tau_min", tau_min, above=0.0)
            self.parameters["u"] = check_number("u", u, at_least=1.0)
            self.parameters["d"] = check_number("d", d, above=0.0)
        if self.algorithm == learning.SPAQL_TS:
            self.parameters["lam"] = check_number("lam", lam, above=0.0)
            self.parameters["reference"] = reference
        dimensions, discrete = len(self._space.centre), self._space.actions > 0
        self._learner = Learner(
            algorithm=self.algorithm,
            discrete=discrete,
            H=int(horizon),
            limit=min(int(horizon), episode_limit(self.env) or int(horizon)),
            xi=float(xi),
            tau_min=float(tau_min),
            d=float(d),
            lam=float(lam),
            reference=self._standard(reference),
            euclidean=self.rules.distance == "euclidean",
            heat_if_changed=self.rules.heating == "changed",
            reset_machine=self.rules.reset == "machine",
            absolute=self.rules.normalisation == "absolute",
            random_ties=self.rules.ties == "random",
        )
        self.seed = check_seed(seed)
        streams = check_seed(self.seed).spawn(3)
        self._rng, self._prediction_rng = np.random.default_rng(streams[0]), np.random.default_rng(streams[2])
        if env_seed is None:
            env_seed = int(streams[1].generate_state(1)[0])
        self.env_seed = check_integer("env_seed", env_seed, at_least=0)
        self._world = self._make_world(self.env_seed)
        self._starts = make_generator(self.env_seed)  # of a compiled system's first states, as Gymnasium draws them

        low, high = (0.0, float(self._space.actions)) if discrete else (-1.0, 1.0)
        action_dimensions = len(self._space.action_half)
        low, high = (np.broadcast_to(bound, action_dimensions) for bound in (low, high))
        roots = int(horizon) if self.algorithm == learning.AQL else 1
        self._trainee = self._best = new_partition(roots, dimensions, low, high, q=float(horizon))
        self._status = np.zeros(1, STATUS)
        # SPAQL evaluates the agent once before the first iteration (spaql_alg, line 4).
        self._status["iteration"], self._status["episode"] = (-1, 1) if self._keeps_best else (0, 0)
        self._status["tau"], self._status["u"], self._status["seen"] = tau_min, u, 1
        self._history = np.zeros(0, HISTORY)
        self._room = (np.empty(dimensions), np.empty(dimensions), np.empty(action_dimensions))

    @property
    def _keeps_best(self) -> bool:
        """Whether the agent kept is the best so far, not the last."""
        return self.algorithm in (learning.SPAQL, learning.SPAQL_TS)

    # -----------------------------------------------------------------------------------------------------------------
    # Learning

    def learn(self, iterations: int, evaluations: int = 20, progress_bar: bool = False) -> Self:
        """Train for some iterations: an episode to learn from, then rollouts to evaluate what was learnt.

        A second call goes on where the first one ended.  If it is interrupted (Ctrl-C) or the environment fails, the
        agent is left as it was after the last full iteration.

        Parameters
        ----------
        iterations
            How many training episodes.
        evaluations
            N, the rollouts after each of them.
        progress_bar
            Show how far it is, on standard error.
        """
        iterations, N = check_integer("iterations", iterations), check_integer("evaluations", evaluations)
        first = max(0, int(self._status["iteration"][0]))
        goal = first + iterations
        compiled = not isinstance(self._world, Gym)
        chunk = 100 if compiled else N + 1  # episodes that take about CHUNK seconds
        backup = self._snapshot()
        try:
            self._history = np.concatenate((self._history[:first], np.zeros(iterations, HISTORY)))
            with (
                deferred_interrupts() as check_interrupts,
                progress(iterations, type(self).__name__, shown=progress_bar) as bar,
            ):
                if not compiled:
                    self._world.between_steps = check_interrupts
                while self._status["iteration"][0] < goal:
                    episodes = self._next_episodes(chunk, N, goal)
                    before = time.perf_counter()
                    self._advance(episodes, N)
                    if compiled:
                        pace = episodes / max(1e-9, time.perf_counter() - before)
                        chunk = max(1, min(2 * chunk, int(CHUNK * pace)))
                    if self._status["episode"][0] == 0:
                        backup = self._snapshot()
                        self._report(bar, first)
                    check_interrupts()
        except BaseException:
            self._restore(backup)
            raise
        finally:
            self._history = self._history[: max(0, int(self._status["iteration"][0]))]
        return self

    def _next_episodes(self, chunk: int, N: int, goal: int) -> int:
        """How many episodes to play next: a part of this iteration, or up to the end of this or a later one.

        There a copy to fall back on can be taken.
        """
        rest = N + 1 - int(self._status["episode"][0])
        if chunk < rest:
            return chunk
        to_come = goal - int(self._status["iteration"][0]) - 1
        return rest + min((chunk - rest) // (N + 1), to_come) * (N + 1)

    def evaluate(
        self, episodes: int = 1000, seed: int | np.random.SeedSequence | None = None, deterministic: bool = False
    ) -> np.ndarray:
        """Return the sums of rewards of fresh episodes under the agent's policy; learning is not disturbed by it.

        Parameters
        ----------
        episodes
            How many.
        seed
            Seeds them, independently of the agent's own seed.
        deterministic
            As for `predict`; False is the paper's policy.
        """
        episodes = check_integer("episodes", episodes)
        streams = check_seed(seed).spawn(2)
        rng, env_seed = np.random.default_rng(streams[0]), int(streams[1].generate_state(1)[0])
        rewards, steps = np.empty(episodes), np.empty(episodes, np.int64)
        run = self._run()
        world = self._make_world(env_seed)
        if isinstance(world, Gym):
            stream = self._world.stream
            try:
                learning.evaluate.py_func(
                    learning.rollout.py_func, gym_reset, gym_step, world, None, range(episodes), deterministic, run,
                    rng, rewards, steps
                )  # fmt: skip
            finally:
                self._world.stream = stream
        else:
            starts = draw_starts(world, make_generator(env_seed), episodes)
            pendulum = isinstance(world, Pendulum)
            compiled = learning.evaluate_pendulum if pendulum else learning.evaluate_cartpole
            for part in (slice(first, first + SLICE) for first in range(0, episodes, SLICE)):
                compiled(world, starts[part], bool(deterministic), run, rng, rewards[part], steps[part])
        return rewards

    def _make_world(self, env_seed: int):
        """The compiled twin of the environment if there is one, else the environment itself."""
        raw_first = self.rules.first_observation == "raw"
        world = compile_system(self.env, self._space, raw_first)
        return world if world is not None else Gym(self.env, self._space, env_seed, raw_first)

    def _run(self) -> Run:
        """What the loops of `learning` take."""
        return Run(self._learner, self._trainee, self._best, self._status, self._history, *self._room)

    def _advance(self, episodes: int, N: int) -> None:
        run = self._run()
        if isinstance(self._world, Gym):
            self._trainee, self._best = learning.advance.py_func(
                learning.train.py_func, learning.rollout.py_func, gym_reset, gym_step, self._world, None,
                range(episodes), N, run, self._rng
            )  # fmt: skip
        else:
            starts = draw_starts(self._world, self._starts, episodes)
            pendulum = isinstance(self._world, Pendulum)
            compiled = learning.advance_pendulum if pendulum else learning.advance_cartpole
            self._trainee, self._best = compiled(self._world, starts, N, run, self._rng)

    def _streams(self) -> dict:
        """The states of the agent's random streams."""
        world = self._world.stream if isinstance(self._world, Gym) else self._starts.bit_generator.state
        return {
            "agent": self._rng.bit_generator.state,
            "environment": world,
            "prediction": self._prediction_rng.bit_generator.state,
        }

    def _set_streams(self, streams: dict) -> None:
        self._rng.bit_generator.state = streams["agent"]
        self._prediction_rng.bit_generator.state = streams["prediction"]
        if isinstance(self._world, Gym):
            self._world.stream = streams["environment"]
        else:
            self._starts.bit_generator.state = streams["environment"]

    def _snapshot(self) -> tuple:
        trainee = copy.py_func(self._trainee)
        best = copy.py_func(self._best) if self._keeps_best else trainee
        return trainee, best, self._status.copy(), self._streams()

    def _restore(self, snapshot: tuple) -> None:
        self._trainee, self._best, self._status, streams = snapshot
        self._set_streams(streams)

    def _report(self, bar: tqdm, first: int) -> None:
        """Show on the bar what has been done since the iteration `first`."""
        done = int(self._status["iteration"][0])
        if done > first:
            row = self._history[done - 1]
            bar.set_postfix({"reward": f"{row['rewards']:.1f}", "arms": int(row["arms"])}, refresh=False)
            bar.update(done - first - bar.n)

    @property
    def history(self) -> np.recarray:
        """One entry an iteration: rewards, arms, evaluations, trainee_arms, tau, steps, evaluation_steps.

        `rewards` is what the paper's curves show: the best mean of N rollouts so far for SPAQL and SPAQL-TS, the mean
        of this iteration for AQL and Random.  `evaluations` is always this iteration's.  `arms` counts the balls of
        the agent kept.
        """
        return self._history.copy().view(np.recarray)

    @property
    def arms(self) -> int:
        """The number of arms (balls with a domain) of the agent kept."""
        return int(self._best.counts[ARMS])

    # -----------------------------------------------------------------------------------------------------------------
    # Predicting

    def predict(
        self,
        observation: np.ndarray,
        state: Any = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = False,
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
        shape = self.env.observation_space.shape
        observation = np.asarray(observation, float)
        single = observation.shape == shape
        if not single and observation.shape[1:] != shape:
            raise ValueError(f"expected an observation of shape {shape} or (n, {', '.join(map(str, shape))}), "
                             f"not {observation.shape}")  # fmt: skip
        batch = observation.reshape(-1, len(self._space.centre))
        if np.isnan(batch).any():
            raise ValueError("the observation contains NaN; expected numbers")
        points = np.empty_like(batch)
        for row, point in zip(batch, points, strict=True):
            standardise(self._space, row, point)
        starts = np.zeros(len(batch), bool)
        if episode_start is not None:
            starts[:] = np.asarray(episode_start, bool).reshape(-1)
            if self.rules.first_observation == "raw":
                points[starts] = np.clip(batch[starts], -1.0, 1.0)
        steps = np.zeros(len(batch), np.int64)
        if self.algorithm == learning.AQL:
            if state is not None:
                steps[:] = np.where(starts, 0, np.asarray(state).reshape(-1))
            steps = np.clip(steps, 0, self._learner.H - 1)  # beyond the horizon its last policy goes on
            state = steps + 1
        else:
            state = None
        actions = np.empty((len(batch), len(self._space.action_half)))
        learning.act(
            self._best, steps, points, self._learner.discrete, bool(deterministic), self._prediction_rng, actions
        )
        if self._learner.discrete:
            result = actions[:, 0].astype(np.int64) + self.env.action_space.start
        else:
            result = to_box(self.env.action_space, self._space, actions)
        return (result[0] if single else result), state

    # -----------------------------------------------------------------------------------------------------------------
    # Saving and loading

    def save(self, path: str | os.PathLike) -> None:
        """Write the agent to one .npz file, without pickle; it replaces an older one only when complete."""
        header = {
            "format": FORMAT,
            "version": VERSION,
            "algorithm": type(self).__name__,
            "env_id": self.env_id,
            "parameters": self.parameters,
            "rules": self.rules._asdict(),
            "seed": {"entropy": self.seed.entropy, "spawn_key": list(self.seed.spawn_key)},
            "env_seed": self.env_seed,
            "streams": self._streams(),
        }
        arrays = {"status": self._status, "history": self._history}
        for name, partition in (("trainee", self._trainee), ("best", self._best)):
            arrays |= {f"{name}_{field}": getattr(copy.py_func(partition), field) for field in STORED}
        files.write(Path(path), header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike, env: gym.Env | None = None) -> Self:
        """Return a saved agent, which predicts the same and can go on learning.

        `env` is needed if the agent was made with an environment rather than an id.
        """
        header, arrays = files.read(Path(path), FORMAT, VERSION)
        if header["algorithm"] != cls.__name__:
            raise ValueError(f"{path} holds an agent of class {header['algorithm']}, not {cls.__name__}: "
                             f"load it with {header['algorithm']}.load")  # fmt: skip
        if env is None and header["env_id"] is None:
            raise ValueError(f"the agent in {path} was made with an environment, not an id: "
                             f"give load() such an environment, {cls.__name__}.load(path, env)")  # fmt: skip
        try:
            agent = cls(
                env if env is not None else header["env_id"],
                **header["parameters"],
                rules=Rules(**header["rules"]),
                seed=np.random.SeedSequence(header["seed"]["entropy"], spawn_key=tuple(header["seed"]["spawn_key"])),
                env_seed=header["env_seed"],
            )
            partitions = {name: read_partition(arrays, name, agent._best) for name in ("trainee", "best")}
            agent._trainee, agent._best = partitions["trainee"], partitions["best"]
            agent._status, agent._history = (
                check_array(arrays, "status", STATUS, 1),
                check_array(arrays, "history", HISTORY),
            )
            if len(agent._history) != max(0, agent._status["iteration"][0]):
                raise ValueError("its history and its number of iterations disagree")
            agent._set_streams(header["streams"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{path} is not a sound saved agent for this environment: {error}") from error
        return agent

    def __repr__(self) -> str:
        done = max(0, int(self._status["iteration"][0]))
        return f"{type(self).__name__}({self.env_id or self.env}, {done} iterations, {self.arms} arms)"

    # -----------------------------------------------------------------------------------------------------------------

    def _standard(self, reference: list | None) -> tuple[float, ...]:
        """A reference state in the standard space; zeros if there is none, for the algorithms without one."""
        point = np.zeros(len(self._space.centre))
        if reference is not None:
            standardise(self._space, np.asarray(reference, float), point)
        return tuple(map(float, point))

    def _check_reference(self, reference: Any) -> list | None:
        dimensions = len(self._space.centre)
        if reference is None:
            reference = PAPER_REFERENCES.get(paper_family(self.env))
            if reference is None and self.algorithm == learning.SPAQL_TS:
                raise ValueError("SPAQL-TS needs `reference`, the observation to steer to "
                                 f"({dimensions} numbers in the environment's units)")  # fmt: skip
            return None if reference is None else list(reference)
        reference = np.asarray(reference, float).ravel()
        if reference.size != dimensions or not np.all(np.isfinite(reference)):
            raise ValueError(
                f"reference must be {dimensions} finite numbers, one for each of the observation's, not {reference}"
            )
        if np.any(np.abs(reference - self._space.centre) > self._space.half):
            raise ValueError(f"reference must be within the observation's bounds, not {reference}")
        return reference.tolist()


class AQL(Agent):
    """Adaptive Q-learning (the paper's Algorithm 1): one partition of the state-action space for every time step.

    Parameters
    ----------
    env
        An id (`"Pendulum-v1"`, `"CartPole-v0"`, `"spaql/PendulumDiscrete-v1"`, `"spaql/PendulumScaled-v1"`, any other
        of Gymnasium's) or an environment with Box observations and Discrete or bounded Box actions.  The paper's
        systems run compiled, any other environment interpreted.  Observations outside their declared bounds are
        clipped to them, with a warning the first time.
    xi
        ξ, the scale of the upper confidence bound.
    seed
        Seeds everything: same seed, same numbers.
    env_seed
        Seeds the environment alone, for agents that shall see the same first states.
    horizon
        H, also the greatest length of an episode: 200 as in the paper, even if the environment would go on for longer.
    slopes
        The slope m at the origin of the sigmoid that bounds unbounded observations: one number, or one for each
        observation (those of bounded ones are not used).
    rules
        "paper", "released", or a `Rules` for a mixture.

    Examples
    --------
    >>> agent = AQL("Pendulum-v1", xi=20, seed=0).learn(iterations=100)
    >>> agent.history.rewards[-1]
    """

    algorithm = learning.AQL

    def __init__(self, env, *, xi, seed=None, env_seed=None, horizon=200, slopes=None, rules="paper"):
        super().__init__(env, seed, env_seed, horizon, slopes, rules, xi)


class SPAQL(Agent):
    """Single-partition adaptive Q-learning (the paper's Algorithm 3): a policy that does not depend on time.

    Parameters
    ----------
    env, seed, env_seed, horizon, slopes, rules
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

    algorithm = learning.SPAQL

    def __init__(
        self,
        env,
        *,
        xi,
        seed=None,
        env_seed=None,
        horizon=200,
        tau_min=0.01,
        u=2.0,
        d=0.8,
        slopes=None,
        rules="paper",
    ):
        super().__init__(env, seed, env_seed, horizon, slopes, rules, xi, tau_min, u, d)


class SPAQLTS(Agent):
    """SPAQL with terminal state: values are weighted by the distance to a reference state.

    Parameters
    ----------
    env, seed, env_seed, horizon, slopes, rules
        As for `AQL`.
    xi
        ξ, the scale of the upper confidence bound.
    tau_min, u, d
        Of the temperature, as for `SPAQL`.
    lam
        λ, the standard deviation of the Gaussian weight, in the standard space.
    reference
        The observation to steer to, in the environment's units; the paper's for Pendulum and CartPole.
    """

    algorithm = learning.SPAQL_TS

    def __init__(
        self,
        env,
        *,
        xi,
        seed=None,
        env_seed=None,
        horizon=200,
        tau_min=0.01,
        u=2.0,
        d=0.8,
        lam=1.2,
        reference=None,
        slopes=None,
        rules="paper",
    ):
        super().__init__(env, seed, env_seed, horizon, slopes, rules, xi, tau_min, u, d, lam, reference)


class Random(Agent):
    """The baseline that draws its actions uniformly; its `learn` only evaluates.

    Parameters
    ----------
    env, seed, env_seed, horizon, slopes, rules
        As for `AQL`.
    """

    algorithm = learning.RANDOM

    def __init__(self, env, *, seed=None, env_seed=None, horizon=200, slopes=None, rules="paper"):
        super().__init__(env, seed, env_seed, horizon, slopes, rules)


# ---------------------------------------------------------------------------------------------------------------------
# Checks


def make_env(env: str | gym.Env) -> gym.Env:
    """Return the environment, made if only its id is given."""
    if isinstance(env, str):
        with warnings.catch_warnings():
            # Gymnasium advises against CartPole-v0, which is the paper's.
            warnings.simplefilter("ignore", DeprecationWarning)
            return gym.make(env)
    if not isinstance(env, gym.Env):
        vector = " (one environment, not a vector of them)" if isinstance(env, gym.vector.VectorEnv) else ""
        raise TypeError(f"env must be an id or a gymnasium.Env, not {type(env).__name__}{vector}")
    return env


@contextlib.contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back; yield a function that raises it if it has come.

    Compiled code that hands its results to Python does not survive an exception at that moment.
    """
    come = []

    def check():
        if come:
            raise KeyboardInterrupt

    # Only the main thread is ever interrupted, and only if nobody has switched that off.
    if threading.current_thread() is not threading.main_thread() or not callable(signal.getsignal(signal.SIGINT)):
        yield check
        return
    before = signal.signal(signal.SIGINT, lambda *_: come.append(True))
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def make_generator(seed: int) -> np.random.Generator:
    """Return the generator a Gymnasium environment has after reset(seed=seed)."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))


def check_number(name: str, number: Any, at_least: float = -math.inf, above: float = -math.inf) -> float:
    """Return a finite number within bounds as a float, or say what is wrong with it."""
    bound = f" above {above:g}" if above > -math.inf else f" of at least {at_least:g}"
    if not isinstance(number, numbers.Real) or isinstance(number, bool) or not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number{bound}, not {number!r}")
    if number < at_least or number <= above:
        raise ValueError(f"{name} must be a number{bound}, not {number!r}")
    return float(number)


def check_integer(name: str, number: Any, at_least: int = 1) -> int:
    """Return a whole number as an int, or say what is wrong with it."""
    if not isinstance(number, numbers.Integral) or isinstance(number, bool) or number < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, not {number!r}")
    return int(number)


def check_seed(seed: Any) -> np.random.SeedSequence:
    """Return the seed sequence of a seed."""
    if isinstance(seed, np.random.SeedSequence):
        return np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)
    if seed is not None:
        seed = check_integer("seed", seed, at_least=0)
    return np.random.SeedSequence(seed)


def check_rules(rules: Any) -> Rules:
    """Return the rules of a name, or the rules themselves if they are sound."""
    if isinstance(rules, str) and rules in RULES:
        return RULES[rules]
    if not isinstance(rules, Rules):
        raise ValueError(f"rules must be {' or '.join(map(repr, RULES))} or a Rules, not {rules!r}")
    for name, choice in rules._asdict().items():
        choices = [getattr(known, name) for known in RULES.values()]
        if choice not in choices:
            raise ValueError(f"rule {name} must be {' or '.join(map(repr, choices))}, not {choice!r}")
    return rules


def read_partition(arrays: dict, name: str, like: Partition) -> Partition:
    """Return a partition of a saved agent, checked: compiled code follows its indices without looking."""
    read = Partition(
        *(check_array(arrays, f"{name}_{field}", getattr(like, field).dtype) for field in STORED), like.axes
    )
    balls, cells = len(read.balls), len(read.cells)
    halves = 2 ** len(like.axes)
    sound = (
        read.low.shape == read.high.shape == (balls, like.low.shape[1])
        and read.counts.shape == like.counts.shape
        and read.counts[BALLS] == balls
        and read.counts[CELLS] == cells
        and min(balls, cells) >= len(like.cells)
    )
    if sound:
        children, parent = read.cells["children"], read.cells["parent"]
        sound = (
            np.all((children == NONE) | ((children > np.arange(cells)) & (children + halves <= cells)))
            and np.all((parent >= NONE) & (parent < np.arange(cells)))
            and all(np.all((read.cells[field] >= NONE) & (read.cells[field] < balls)) for field in ("own", "first"))
            and np.all((read.cells["best"] >= np.where(children == NONE, 0, NONE)) & (read.cells["best"] < balls))
            and np.all((read.balls["cell"] >= 0) & (read.balls["cell"] < cells))
            and np.all((read.balls["next"] >= NONE) & (read.balls["next"] < np.arange(balls)))
            and np.all(np.isfinite(read.balls["q"]))
            and np.all(read.low < read.high)
            # the whole action space of this environment, which roots and all they split into cover
            and np.array_equal(read.low[: len(like.low)], like.low)
            and np.array_equal(read.high[: len(like.high)], like.high)
        )
    if not sound:
        raise ValueError(f"its {name} partition does not hold together, or belongs to another action space")
    return read
