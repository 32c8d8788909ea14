"""What the algorithms share: an agent that learns, evaluates, predicts, saves and loads."""

import contextlib
import copy
import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypedDict

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from spaql import saving
from spaql.checks import MOST, check_integer, check_number, check_seed
from spaql.compiling import joined, records
from spaql.interrupts import deferred_interrupts
from spaql.loop import Run, act, advance, rollouts
from spaql.partition import ARMS, Partition, is_crowded, new_partition
from spaql.partition import copy as copy_partition
from spaql.progress import progress
from spaql.replay import Memory
from spaql.rules import (
    AQL,
    CHOICES,
    FIXED,
    HISTORY,
    RANDOM,
    SPAQL,
    SPAQL_TS,
    STATUS,
    Learner,
    Rules,
    check_rules,
)
from spaql.spaces import check_bounds, standardise, to_box
from spaql.systems import (
    CompiledWorld,
    compiled_world,
    episode_limit,
    explain_interpreted,
    horizon_of,
    make_env,
    space_of,
    system_of,
)
from spaql.systems.interpreted import InterpretedWorld, do_nothing, exclusively

if TYPE_CHECKING:
    from spaql.policies.policy import Policy

CHUNK = 0.2  # seconds of machine code between two checks for Ctrl-C
SLICE = 5000  # rollouts of a compiled evaluation between two such checks
MOST_ROOTS = 10**6  # time steps that AQL can have a partition for
MOST_ITERATIONS = 10**8  # of one call: each has its place in the history from the start
FIRST_LOOK = 10  # iterations after which an agent looks at what it sees, and again whenever they have doubled
GLANCE = 2.0  # seconds of learning between two looks of a progress bar at fresh episodes of the agent kept
CROWDED = 4  # depth of a cell that should not hold nearly all that is seen: 1/16 of the range of every variable


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


Callback = Callable[["Agent"], Any]


class Hooks(NamedTuple):
    """What `learn` does besides learning."""

    callbacks: Sequence[Callback] = ()
    stop_at: float | None = None
    reevaluations: int = 0

    @property
    def any(self) -> bool:
        """Whether there is something to do after every iteration."""
        return bool(self.callbacks or self.reevaluations) or self.stop_at is not None


class State(NamedTuple):
    """All that learning changes in an agent."""

    trainee: Partition
    best: Partition
    status: np.ndarray
    history: np.ndarray
    streams: dict
    played: int  # rollouts behind the best mean, where the best agent is evaluated again; 0: those of one iteration
    memory: Memory | None = None  # SPAQL-R's


def check_finite(state: State) -> State:
    """Return a state if its estimates and rewards are finite: by others nothing can be chosen, nor saved."""
    numbers = state.trainee.balls["q"], state.best.balls["q"], state.status["best"], state.history["evaluations"]
    if not all(np.isfinite(each).all() for each in numbers):
        raise OverflowError(
            "estimates or sums of rewards have become infinite or NaN: the rewards or ξ are too large for "
            "floating-point numbers, scale them down (the agent is left as it was before)"
        )
    return state


class Agent:
    """What the algorithms share.  Use one of them: AQL, SPAQL, SPAQLTS, SPAQLR or Random."""

    algorithm: ClassVar[int]

    def __init__(
        self,
        env: str | gym.Env,
        own: dict[str, Any],
        *,
        seed: int | np.random.SeedSequence | None = None,
        env_seed: int | None = None,
        horizon: int | None = None,
        slopes: Any = None,
        bounds: Any = None,
        initial: float | None = None,
        discount: float = 1.0,
        rules: str | Rules = "paper",
    ):
        self.env_id = env if isinstance(env, str) else None
        self.env = make_env(env)
        self.rules = check_rules(rules)
        self._space = space_of(self.env, slopes, bounds)
        # What the algorithm's own constructor takes besides seeds and rules: enough to make the agent again.
        self.parameters: dict[str, Any] = {
            "horizon": horizon_of(self.env, horizon, at_most=MOST_ROOTS if self.algorithm == AQL else MOST),
            "slopes": list(self._space.slope),
        }
        if bounds is not None:
            self.parameters["bounds"] = check_bounds(bounds, len(self._space.centre))
        first = self.parameters["horizon"] if initial is None else initial
        self.parameters |= {
            "initial": check_number("initial", first),
            "discount": check_number("discount", discount, at_least=0.0, at_most=1.0),
        }
        self.parameters |= self._check_own(own)
        self._learner = self._make_learner()
        self.seed = check_seed(seed)
        streams = check_seed(self.seed).spawn(3)
        self._rng, self._prediction_rng = np.random.default_rng(streams[0]), np.random.default_rng(streams[2])
        if env_seed is None:
            env_seed = int(streams[1].generate_state(1)[0])
        self.env_seed = check_integer("env_seed", env_seed, at_least=0, at_most=None)
        self._world = self._make_world(self.env_seed)
        if not self.compiled:
            explain_interpreted(self.env)
        self._learning, self._evaluating = threading.Lock(), threading.Lock()
        self._backup: State | None = None  # after the last full iteration, while learning
        self._calling = 0  # the thread in which a callback runs
        self._played = 0
        self._fresh: tuple[int, int, float] | None = None  # iterations, episodes and mean of the last evaluation
        self._glanced = 0.0  # when a progress bar last looked at fresh episodes
        # What a user should be told once: that nothing but the paper's horizon ends episodes, and what is seen.
        self._unlimited = horizon is None and episode_limit(self.env) is None
        self._look, self._told = FIRST_LOOK, self.algorithm == RANDOM
        self._memory: Memory | None = None

        ends = (0.0, float(self._space.actions)) if self._learner.discrete else (-1.0, 1.0)
        low, high = (np.broadcast_to(end, len(self._space.action_half)) for end in ends)
        roots = self._learner.H if self.algorithm == AQL else 1
        self._trainee = self._best = new_partition(
            roots, len(self._space.centre), low, high, q=self.parameters["initial"]
        )
        self._status = records(1, STATUS)
        # SPAQL evaluates the agent once before the first iteration (spaql_alg, line 4).
        self._status["iteration"], self._status["episode"] = (-1, 1) if self._evaluates_first else (0, 0)
        self._status["tau"], self._status["u"] = self._learner.tau_min, self.parameters.get("u", 1.0)
        self._status["seen"] = 1
        self._history = records(0, HISTORY)

    def _check_own(self, own: dict[str, Any]) -> dict[str, Any]:
        """Return the algorithm's own parameters, or say what is wrong with them."""
        bounds: dict[str, dict[str, float]] = {
            "xi": {"at_least": 0.0},
            "tau_min": {"above": 0.0},
            "u": {"at_least": 1.0},
            "d": {"above": 0.0},
            "lam": {"above": 0.0},
        }
        checked: dict[str, Any] = {
            name: check_number(name, own[name], **bounds[name]) for name in own if name != "reference"
        }
        if "reference" in own:
            checked["reference"] = self._check_reference(own["reference"])
        return checked

    def _make_learner(self) -> Learner:
        """Return the parameters in the form compiled code takes."""
        given, rules = self.parameters, self.rules
        random_partition = rules.partition == "random" and self._evaluates_first
        return Learner(
            algorithm=self.algorithm,
            discrete=self._space.actions > 0,
            H=given["horizon"],
            limit=min(given["horizon"], episode_limit(self.env) or given["horizon"]),
            xi=given.get("xi", 0.0),
            tau_min=given.get("tau_min", 0.01),
            d=given.get("d", 1.0),
            lam=given.get("lam", 1.0),
            reference=self._standard(given.get("reference")),
            discount=given["discount"],
            euclidean=rules.distance == "euclidean",
            heat_if_changed=rules.heating == "changed",
            reset_machine=rules.reset == "machine",
            never_reset=rules.reset == "never",
            absolute=rules.normalisation == "absolute",
            random_ties=rules.ties == "random",
            no_reward=rules.reward == "deleted",
            estimate=FIXED if random_partition else CHOICES["estimate"].index(rules.estimate),
            keep_last=rules.kept == "last",
            random_partition=random_partition,
            zero_at_end=rules.termination == "zero",
        )

    @property
    def _evaluates_first(self) -> bool:
        """Whether the agent is one of the two algorithms that know what theirs earns before they learn."""
        return self.algorithm in (SPAQL, SPAQL_TS)

    @property
    def _keeps_best(self) -> bool:
        """Whether the agent kept is the best so far, not the last."""
        return self._evaluates_first and self.rules.kept == "best"

    @property
    def compiled(self) -> bool:
        """Whether the environment runs as machine code; otherwise the same loop runs interpreted."""
        return self._world.compiled

    # -----------------------------------------------------------------------------------------------------------------
    # Learning

    def learn(
        self,
        iterations: int,
        evaluations: int = 20,
        progress_bar: bool = False,
        *,
        callback: Callback | Sequence[Callback] | None = None,
        stop_at: float | None = None,
        reevaluations: int = 0,
    ) -> Self:
        """Train for some iterations: an episode to learn from, then rollouts to evaluate what was learnt.

        A second call goes on where the first one ended.  If it is interrupted (Ctrl-C) or the environment fails, the
        agent is left as it was after the last full iteration.  If rewards or ξ are so large that sums of them are no
        finite numbers any more, it raises OverflowError and leaves the agent as it was some iterations before.

        Parameters
        ----------
        iterations
            How many training episodes.
        evaluations
            N, the rollouts after each of them.  SPAQL and SPAQL-TS keep the agent with the best mean of N so far, and
            with few rollouts the best of many means is luck: choose N so large that the standard deviation of a
            return divided by √N is small beside the differences that matter to you (20 to 100 in the paper).
        progress_bar
            Show how far it is, on standard error.
        callback
            One function, or several, of the agent, called after every iteration; learning stops if one returns False.
            In it the agent can be read, evaluated and saved (`spaql.hooks` has ready ones).
        stop_at
            Stop as soon as `history.rewards` reaches this.
        reevaluations
            Rollouts that the best agent plays again after every iteration, for SPAQL and SPAQL-TS; the mean to beat,
            and `history.rewards`, is then that of all it has played, which no luck keeps high for long.  But N lucky
            rollouts of another agent beat that more easily, so N should not be small.  The paper's algorithms have
            none (0).
        """
        iterations = check_integer("iterations", iterations, at_most=MOST_ITERATIONS)
        N, hooks = check_integer("evaluations", evaluations), self._check_hooks(callback, stop_at, reevaluations)
        return self._learn(iterations, N, hooks, progress_bar)

    def _learn(self, iterations: int, N: int, hooks: Hooks, progress_bar: bool) -> Self:
        """Train for at most some iterations, each with N rollouts, and leave a sound agent whatever happens."""
        if not self._learning.acquire(blocking=False):
            where = "this is its callback" if self._calling == threading.get_ident() else "in another thread"
            raise RuntimeError(f"this agent is learning already, {where}: wait for it, or train another agent")
        try:
            self._glanced = time.perf_counter()
            first = max(0, int(self._status["iteration"][0]))
            self._backup = backup = self._state()
            self._history = joined(self._history[:first], records(iterations, HISTORY))
            with (
                contextlib.nullcontext() if self.compiled else exclusively(self.env),
                deferred_interrupts() as check_interrupts,
                progress(iterations, type(self).__name__, shown=progress_bar) as bar,
            ):
                self._learn_until(first + iterations, N, hooks, check_interrupts, bar)
        except BaseException:
            self._set_state(self._backup or backup)
            raise
        finally:
            self._history = self._history[: max(0, int(self._status["iteration"][0]))]
            self._world.between_steps = do_nothing
            self._backup = None
            self._played = self._played if hooks.reevaluations else 0
            self._learning.release()
        return self

    def _check_hooks(self, callback: Any, stop_at: Any, reevaluations: Any) -> Hooks:
        """Return what is to be done after every iteration, or say what is wrong with it."""
        M = check_integer("reevaluations", reevaluations, at_least=0)
        if M and not self._keeps_best:
            raise ValueError(f"{type(self).__name__} keeps its last agent, not its best: reevaluations must be 0")
        callbacks = list(callback) if isinstance(callback, Sequence) else [] if callback is None else [callback]
        if not all(map(callable, callbacks)):
            raise TypeError(f"callback must be a function of the agent, or several in a list, not {callback!r}")
        return Hooks(callbacks, None if stop_at is None else check_number("stop_at", stop_at), M)

    def _learn_until(self, goal: int, N: int, hooks: Hooks, check_interrupts: Any, bar: tqdm) -> None:
        """Train until so many iterations are done, with a look at the keyboard now and then."""
        compiled, first = self.compiled, max(0, int(self._status["iteration"][0]))
        chunk = 100 if compiled else N + 1  # episodes that take about CHUNK seconds
        self._world.between_steps = check_interrupts
        ready = not compiled
        while self._goes_on(goal):
            done = int(self._status["iteration"][0])
            episodes = self._next_episodes(chunk, N, done + 1 if hooks.any else goal)
            starts = self._world.starts(episodes)
            if not ready:  # no episodes yet, but the machine code for them: no bar should count that time
                self._advance(starts[:0], N)
                bar.reset()
                ready = True
            before = time.perf_counter()
            self._advance(starts, N)
            if compiled:
                pace = episodes / max(1e-9, time.perf_counter() - before)
                chunk = max(1, min(2 * chunk, int(CHUNK * pace)))
            if self._status["episode"][0] == 0:
                if hooks.reevaluations:
                    self._reevaluate(N, hooks.reevaluations)
                self._backup = check_finite(self._state())
                self._report(bar, first)
                self._look_around(N)
                if self._status["iteration"][0] > first and self._stops(hooks):
                    return
            check_interrupts()

    def _goes_on(self, goal: int) -> bool:
        """Return whether there is more to do until so many iterations are done."""
        return bool(self._status["iteration"][0] < goal)

    def _advance(self, starts: Any, N: int) -> None:
        """Play an episode from each of these starts, to learn or to evaluate."""
        run = Run(self._learner, self._trainee, self._best, self._status, self._history)
        self._trainee, self._best = self._world.call(advance, starts, N, run, self._rng)

    def _stops(self, hooks: Hooks) -> bool:
        """Call the callbacks; return whether one of them, or a reward, ends the learning."""
        self._calling = threading.get_ident()
        try:
            answers = [callback(self) for callback in hooks.callbacks]
            stopped = [isinstance(answer, (bool, np.bool_)) and not answer for answer in answers]
        finally:
            self._calling = 0
        return any(stopped) or (hooks.stop_at is not None and self.history.rewards[-1] >= hooks.stop_at)

    def _reevaluate(self, N: int, M: int) -> None:
        """Play M rollouts of the agent kept; its mean becomes that of all it has played since it is the best."""
        done, best = int(self._status["iteration"][0]), self._status["best"][0]
        new = done == 0 or self._history["evaluations"][done - 1] == best  # one that is not has a lower mean
        played = N if new or not self._played else self._played
        rewards, steps = np.empty(M), np.empty(M, np.int64)
        starts = self._world.starts(M)
        self._world.call(rollouts, starts, self._best, self._learner, False, self._rng, rewards, steps)
        self._played = played + M
        self._status["best"] = (best * played + rewards.sum()) / self._played
        if done:
            self._history["rewards"][done - 1] = self._status["best"][0]
            self._history["evaluation_steps"][done - 1] += steps.sum()
        else:
            self._status["evaluation_steps"] += steps.sum()

    def _look_around(self, N: int) -> None:
        """Warn, once each, if only the paper's horizon ends episodes, and if nearly all that is seen is one state."""
        done = max(0, int(self._status["iteration"][0]))
        if self._unlimited:  # otherwise nobody needs to look through the whole history
            longest = self._history["steps"][:done].max(initial=0)
            if N:  # of rollouts only the mean length is known; the first entry has those before learning, too
                longest = max(longest, self._history["evaluation_steps"][1:done].max(initial=0) / N / 0.9)
            self._say_if_cut(longest, 5)
        if not self._told and done >= self._look:
            self._look = 2 * done
            self._told = self._crowded()
            if self._told:
                warnings.warn(
                    "nearly all observations fall into one cell, 1/16 of the range of every variable: to the agent "
                    "they are one state.  Give bounds=[(low, high), ...] where they vary, or other slopes= "
                    "(this is said once)",
                    stacklevel=4,
                )

    def _say_if_cut(self, longest: float, level: int) -> None:
        """Warn, once, if episodes so long run into the paper's horizon, and nothing else would have ended them."""
        if self._unlimited and longest >= self._learner.H:
            self._unlimited = False
            warnings.warn(
                f"episodes come to {self._learner.H} steps, the paper's horizon, and end there: the environment "
                "declares no limit of its own.  Give horizon=, or a gymnasium.wrappers.TimeLimit (this is said once)",
                stacklevel=level,
            )

    def _crowded(self) -> bool:
        """Return whether nearly all observations so far may lie in one small cell."""
        return is_crowded(self._trainee, CROWDED)

    def _next_episodes(self, chunk: int, N: int, goal: int) -> int:
        """How many episodes to play next: a part of this iteration, or up to the end of this or a later one.

        There a copy to fall back on can be taken.
        """
        rest = N + 1 - int(self._status["episode"][0])
        if chunk < rest:
            return chunk
        return rest + min((chunk - rest) // (N + 1), self._to_come(goal)) * (N + 1)

    def _to_come(self, goal: int) -> int:
        """Return how many whole iterations are sure to come after this one."""
        return goal - int(self._status["iteration"][0]) - 1

    def evaluate(
        self,
        episodes: int = 1000,
        seed: int | np.random.SeedSequence | None = None,
        deterministic: bool = False,
        lengths: bool = False,
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
        lengths
            Return two rows: the sums of rewards, and the numbers of steps.
        """
        episodes = check_integer("episodes", episodes)
        streams = check_seed(seed).spawn(2)
        rng, env_seed = np.random.default_rng(streams[0]), int(streams[1].generate_state(1)[0])
        rewards, steps = np.empty(episodes), np.empty(episodes, np.int64)
        world, kept = self._make_world(env_seed), self._kept()
        if world.compiled:
            for part in (slice(first, first + SLICE) for first in range(0, episodes, SLICE)):
                starts = world.starts(len(rewards[part]))
                world.call(rollouts, starts, kept, self._learner, bool(deterministic), rng, rewards[part], steps[part])
        else:
            if self._learning.locked() and self._calling != threading.get_ident():
                raise RuntimeError("the agent is learning in another thread, in the environment that evaluate() needs")
            with self._evaluating, exclusively(self.env):  # there is only one
                starts = world.starts(episodes)
                world.call(rollouts, starts, kept, self._learner, bool(deterministic), rng, rewards, steps)
        self._fresh = len(self.history), episodes, float(rewards.mean())
        self._say_if_cut(int(steps.max()), 3)
        return np.stack((rewards, steps)) if lengths else rewards

    def _make_world(self, env_seed: int) -> CompiledWorld | InterpretedWorld:
        """The compiled twin of the environment if there is one, else the environment itself."""
        raw_first = self.rules.first_observation == "raw"
        world = compiled_world(self.env, self._space, env_seed, raw_first)
        return world or InterpretedWorld(self.env, self._space, env_seed, raw_first)

    def _kept(self) -> Partition:
        """The partition that is kept, which nothing changes while it is read."""
        return self._best if self._backup is None or self._keeps_best else self._backup.best

    def _streams(self) -> dict:
        """The states of the agent's random streams."""
        return {
            "agent": self._rng.bit_generator.state,
            "environment": self._world.stream,
            "prediction": self._prediction_rng.bit_generator.state,
        }

    def _set_streams(self, streams: dict) -> None:
        self._rng.bit_generator.state = streams["agent"]
        self._prediction_rng.bit_generator.state = streams["prediction"]
        self._world.stream = streams["environment"]

    def _state(self) -> State:
        """A copy of all that learning changes."""
        trainee = copy_partition(self._trainee)
        best = copy_partition(self._best) if self._keeps_best else trainee
        done = max(0, int(self._status["iteration"][0]))
        return State(trainee, best, self._status.copy(), self._history[:done].copy(), self._streams(), self._played)

    def _set_state(self, state: State) -> None:
        self._trainee, self._best, self._status, self._history, streams, self._played, _ = state
        self._set_streams(streams)

    def _report(self, bar: tqdm, first: int) -> None:
        """Show on the bar what has been done since the iteration `first`."""
        done = int(self._status["iteration"][0])
        if done > first:
            row = self._history[done - 1]
            shown = {"best" if self._keeps_best else "reward": f"{row['rewards']:.1f}"}
            if self._keeps_best and self.compiled and not bar.disable:  # the best of many means is partly luck
                if time.perf_counter() - self._glanced > GLANCE:
                    self.evaluate(50, seed=done)
                    self._glanced = time.perf_counter()
                if self._fresh:
                    shown["fresh"] = f"{self._fresh[2]:.1f}"
            bar.set_postfix(shown | {"arms": str(row["arms"])}, refresh=False)
            bar.update(done - first - bar.n)

    @property
    def history(self) -> np.recarray:
        """One entry per iteration: rewards, arms, evaluations, trainee_arms, tau, steps, evaluation_steps.

        `rewards` is what the paper's curves show: the best mean of N rollouts so far for SPAQL and SPAQL-TS, the mean
        of this iteration for AQL and Random.  `evaluations` is always this iteration's.  `arms` counts the balls of
        the agent kept.
        """
        return self._history[: max(0, int(self._status["iteration"][0]))].copy().view(np.recarray)

    @property
    def arms(self) -> int:
        """The number of arms (balls with a domain) of the agent kept."""
        return int(self._best.counts[ARMS])

    @property
    def policy(self) -> "Policy":
        """The greedy policy as something to read: a table, a decision tree (see `spaql.policies.Policy`)."""
        from spaql.policies.policy import Policy

        return Policy(self)

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
        if self.algorithm == AQL:
            if state is not None:
                steps[:] = np.where(starts, 0, np.asarray(state).reshape(-1))
            steps = np.clip(steps, 0, self._learner.H - 1)  # beyond the horizon its last policy goes on
            state = steps + 1
        else:
            state = None
        actions = np.empty((len(batch), len(self._space.action_half)))
        act(self._best, steps, points, self._space, bool(deterministic), self._prediction_rng, actions)
        if self._learner.discrete:
            result = actions[:, 0].astype(np.int64) + self.env.action_space.start
        else:
            result = to_box(self.env.action_space, self._space, actions)
        return (result[0] if single else result), state

    # -----------------------------------------------------------------------------------------------------------------
    # Saving, loading and copying

    def save(self, path: str | os.PathLike) -> None:
        """Write the agent to one .npz file, without pickle; it replaces an older one only when complete."""
        saving.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike, env: gym.Env | None = None) -> Self:
        """Return a saved agent, which predicts the same and can go on learning.

        `env` is needed if the agent was made with an environment rather than an id, or with an id that names a module.
        """
        return saving.load(cls, path, env)

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle and copy keep: all but the locks.  While another thread learns it is refused."""
        if self._backup is not None:
            raise RuntimeError("the agent is learning in another thread: copy it when it has ended")
        return {name: value for name, value in vars(self).items() if name not in ("_learning", "_evaluating")}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__ |= kept
        self._learning, self._evaluating = threading.Lock(), threading.Lock()

    def __copy__(self) -> Self:
        """Return an independent agent: one that shared its arrays would be changed by the other's learning."""
        return copy.deepcopy(self)

    def __repr__(self) -> str:
        history = self.history
        said = [str(self.env_id or self.env), f"{len(history)} iterations", f"{self.arms} arms"]
        if len(history):
            said.append(f"{'best' if self._keeps_best else 'last'} mean {history.rewards[-1]:.5g}")
        if self._fresh and self._fresh[0] == len(history):
            said.append(f"{self._fresh[2]:.5g} on {self._fresh[1]:,} fresh episodes")
        return f"{type(self).__name__}({', '.join(said)})"

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
            system = system_of(self.env)
            reference = system.reference if system else None
            if reference is None and self.algorithm == SPAQL_TS:
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
