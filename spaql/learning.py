"""How an agent learns and evaluates: in pieces short enough for Ctrl-C, with a sound state to fall back on."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from spaql.advice import CROWDED, Advice
from spaql.checks import check_integer, check_number, check_seed
from spaql.compiling import records
from spaql.interrupts import deferred_interrupts
from spaql.loop import Run, advance, rollouts
from spaql.partition import ARMS, is_crowded
from spaql.progress import progress
from spaql.rules import HISTORY, Learner, Rules, evaluates_first
from spaql.spaces import Space
from spaql.state import State, check_finite, copy_of
from spaql.systems import ENDED, CompiledWorld, compiled_world
from spaql.systems.interpreted import InterpretedWorld, do_nothing, exclusively

CHUNK = 0.2  # seconds of machine code between two checks for Ctrl-C
FIRST_CHUNK = 20_000  # steps of the first piece, before the pace is known
SLICE = 10**6  # steps of a compiled evaluation between two such checks
MOST_ITERATIONS = 10**8  # of one call: each has its place in the history from the start
MANY_EPISODES = 5000  # as many as anybody may have meant to be samples
BUSY = "this agent is learning: until that ends its callbacks cannot train it, and other threads may only predict"

log = logging.getLogger(__name__)

Callback = Callable[[Any], Any]


class Nowhere(NamedTuple):
    """A world whose episodes end at once: loops are tried there, so that all that they need is compiled."""

    space: Space

    def call(self, function: Callable, *arguments: Any) -> Any:
        return function(self, *arguments)

    def room(self) -> None:
        """Return no room for a state."""

    def reset(self, state: Any, start: Any, x: np.ndarray) -> None:
        x[:] = 0.0

    def step(self, state: Any, action: Any, x: np.ndarray) -> tuple[float, int]:
        x[:] = 0.0
        return 0.0, ENDED


class Learning:
    """What learning needs of an agent, and does with it.  `Agent` adds the rest."""

    algorithm: ClassVar[int]
    env: gym.Env
    rules: Rules
    _space: Space
    _learner: Learner
    _world: Any  # a `CompiledWorld` or an `InterpretedWorld`
    _rng: np.random.Generator
    _prediction_rng: np.random.Generator
    _advice: Advice
    # All that learning changes, besides the random streams: see `State`.
    _trainee: Any  # a `Partition`; TileQ and SPAQL-R have representations of their own
    _best: Any
    _status: np.ndarray
    _history: np.ndarray
    _played: int
    _memory: Any  # of transitions; of TileQ and SPAQL-R
    _evaluations: ClassVar[int] = 20  # rollouts after each training episode, unless told otherwise
    _memory_size: ClassVar[int] = 0  # transitions that it remembers
    _counts_samples: ClassVar[bool] = False  # whether it can stop within an episode, so that rollouts are optional
    _rollouts: ClassVar[Callable] = staticmethod(rollouts)  # episodes under the policy of the agent kept

    def __init__(self) -> None:
        self._lock = threading.Lock()  # of the thread that learns
        self._thread = 0  # which that is
        self._backup: State | None = None  # while learning: what to fall back on, after a full iteration
        self._whole = True  # whether the agent itself is as after a full iteration
        self._played = 0
        self._fresh: tuple[int, int, float] | None = None  # iterations, episodes and mean of the last evaluation
        self._last_iteration = 0  # after which learning ends
        self._last_sample: int | None = None
        self._memory = None

    @property
    def compiled(self) -> bool:
        """Whether the environment runs as machine code; otherwise the same loop runs interpreted."""
        return self._world.compiled

    @property
    def num_timesteps(self) -> int:
        """The environment steps that it has learnt from, as Stable-Baselines3 calls them."""
        row = self._status[0]
        under_way = row["steps"] if row["iteration"] >= 0 and row["episode"] > 0 else 0
        return int(self._history["steps"][: self._done].sum() + under_way)

    @property
    def history(self) -> np.recarray:
        """One entry per iteration: rewards, arms, evaluations, trainee_arms, tau, steps, evaluation_steps.

        `rewards` is what the paper's curves show: the best mean of N rollouts so far for SPAQL and SPAQL-TS, the mean
        of this iteration for AQL and Random.  `evaluations` is always this iteration's.  `arms` counts the balls of
        the agent kept.
        """
        return self._history[: self._done].copy().view(np.recarray)

    @property
    def arms(self) -> int:
        """The number of arms (balls with a domain) of the agent kept."""
        return int(self._best.counts[ARMS])

    def learn(
        self,
        iterations: int | None = None,
        evaluations: int | None = None,
        progress_bar: bool = False,
        *,
        samples: int | None = None,
        total_timesteps: int | None = None,
        callback: Callback | Sequence[Callback] | None = None,
        stop_at: float | None = None,
        reevaluations: int = 0,
    ) -> Self:
        """Train for some iterations: an episode to learn from, then rollouts to evaluate what was learned.

        A second call goes on where the first one ended.  If it is interrupted (Ctrl-C), if the environment fails, or if
        sums of rewards become infinite (an OverflowError), the agent is left as it was after a full iteration.

        Parameters
        ----------
        iterations
            How many training episodes.
        evaluations
            N, the rollouts after each of them, 20 if not given.  SPAQL and SPAQL-TS keep the agent with the best mean
            of N so far, which is luck if N is small: the standard deviation of a return divided by √N should be small
            beside the differences that matter to you.  For TileQ and SPAQL-R rollouts only report, so that it is 0 if
            not given; `history.rewards` then has the returns of the training episodes.
        progress_bar
            Show how far it is, on standard error.
        samples, total_timesteps
            TileQ and SPAQL-R: how many environment steps to learn from, instead of `iterations`; the second is
            Stable-Baselines3's name for it.  The last episode is cut off there, so that learning from 3,000 samples
            twice is not learning from 6,000 at once: the second call begins with a new episode.
        callback
            One function, or several, of the agent, called after every iteration; learning stops if one returns False.
            In it the agent can be read, evaluated and saved (`spaql.hooks` has ready ones).
        stop_at
            Stop as soon as `history.rewards` reaches this.
        reevaluations
            SPAQL and SPAQL-TS: rollouts that the best agent plays again after every iteration.  The mean to beat is
            then that of all it has played, which no luck keeps high for long.  The paper's algorithms have none (0).
        """
        samples = total_timesteps if samples is None else samples
        if samples is not None and not self._counts_samples:
            raise ValueError(f"{type(self).__name__} learns by iterations, each an episode and its rollouts: "
                             "give iterations=, not samples")  # fmt: skip
        if (iterations is None) == (samples is None):
            raise ValueError(f"give either iterations or samples, not {iterations} and {samples}")
        name, number = ("samples", samples) if iterations is None else ("iterations", iterations)
        number = check_integer(name, number, at_most=MOST_ITERATIONS)
        if self._counts_samples and name == "iterations" and number >= MANY_EPISODES:
            log.warning("%s iterations are episodes, of up to %s steps each: did you mean samples=%s?",
                        f"{number:,}", self._learner.limit, number)  # fmt: skip
        N = self._evaluations if evaluations is None else evaluations
        N = check_integer("evaluations", N, at_least=0 if self._counts_samples else 1)
        M = check_integer("reevaluations", reevaluations, at_least=0)
        if M and not self._keeps_best:
            raise ValueError(f"{type(self).__name__} keeps its last agent, not its best: reevaluations must be 0")
        callbacks = list(callback) if isinstance(callback, Sequence) else [] if callback is None else [callback]
        if not all(map(callable, callbacks)):
            raise TypeError(f"callback must be a function of the agent, or several in a list, not {callback!r}")
        if stop_at is not None:
            goal = check_number("stop_at", stop_at)
            callbacks.append(lambda agent: agent.history.rewards[-1] < goal)
        for before in (each.before for each in callbacks if hasattr(each, "before")):
            before(self)  # as `keep_best` checks its file before hours of training

        if self._lock.locked():
            raise RuntimeError(BUSY)
        self._compile(N)
        with deferred_interrupts() as check_interrupts, self._alone():
            self._last_iteration = self._done + number
            self._last_sample = self.num_timesteps + number if name == "samples" else None
            self._backup, self._whole = self._state(), True
            self._world.between_steps = check_interrupts
            try:
                with self._environment(), progress(number, type(self).__name__, shown=progress_bar) as bar:
                    self._learn(number, N, M, callbacks, check_interrupts, bar)
            except BaseException:
                if not self._whole:
                    self._set_state(self._backup)
                raise
            finally:
                self._history = self._history[: self._done]
                self._world.between_steps = do_nothing
                self._backup = None
                self._played = self._played if M else -bool(self._played)
        return self

    def _compile(self, N: int) -> None:
        """Make or read the machine code before Ctrl-C is held back and a bar counts the time: it plays no episode."""
        if isinstance(self._world, CompiledWorld):
            self._advance(self._world.draw(np.random.default_rng(0), 1)[:0], N)
            return
        other = object.__new__(type(self))
        other.__dict__ |= vars(self)
        other._trainee, other._best, other._status, *_, other._memory = self._state()
        other._world, other._history = Nowhere(self._space), records(self._done + 2, HISTORY)
        other._rng = np.random.default_rng(0)
        other._advance(range(4), 1)

    def _learn(
        self, number: int, N: int, M: int, callbacks: list[Callback], check_interrupts: Callable, bar: tqdm
    ) -> None:
        """Train for at most so many iterations or samples, with a look at the keyboard now and then."""
        first, history = self._done, records(self._done + number, HISTORY)
        history[:first], self._history = self._history[:first], history
        copied = time.perf_counter()
        chunk = (
            max(1, FIRST_CHUNK // self._learner.limit) if self.compiled else N + 1
        )  # episodes of about CHUNK seconds
        while (missing := self._missing()) > 0:
            done = self._done
            episodes = self._next_episodes(chunk, N, 1 if callbacks or M else missing)
            # A copy costs as much as a short iteration, and machine code that ends with a full one needs none.
            if self._whole and (not self.compiled or episodes <= N or time.perf_counter() - copied > CHUNK):
                self._backup, copied = self._state(), time.perf_counter()
            began, self._whole = time.perf_counter(), False
            self._advance(self._world.starts(episodes), N)
            if self.compiled:
                pace = episodes / max(1e-9, time.perf_counter() - began)
                chunk = max(1, min(2 * chunk, int(CHUNK * pace)))
            if self._status["episode"][0] == 0:
                if M:
                    self._reevaluate(N, M)
                check_finite(self._trainee, self._best, self._status, self._history[done:][:episodes])
                self._whole = True
                if self._done > first:
                    self._report(bar, number)
                    answers = [callback(self) for callback in callbacks]
                    if any(isinstance(answer, (bool, np.bool_)) and not answer for answer in answers):
                        return
            check_interrupts()

    @property
    def _done(self) -> int:
        """How many iterations are done."""
        return max(0, int(self._status["iteration"][0]))

    def _missing(self) -> int:
        """Return how many iterations are sure to come before learning ends, the one under way included."""
        if self._last_sample is None:
            return self._last_iteration - int(self._status["iteration"][0])
        # No episode is longer than the limit, so that at least so many begin before the samples are taken.
        left, under_way = self._last_sample - self.num_timesteps, self._status["episode"][0] > 0
        return -(-left // self._learner.limit) + int(under_way)

    def _next_episodes(self, chunk: int, N: int, missing: int) -> int:
        """How many episodes to play next: a part of this iteration, or up to the end of this or a later one.

        There a copy to fall back on can be taken.
        """
        rest = N + 1 - int(self._status["episode"][0])
        if chunk < rest:
            return chunk
        return rest + min((chunk - rest) // (N + 1), missing - 1) * (N + 1)

    def _advance(self, starts: Any, N: int) -> None:
        """Play an episode from each of these starts, to learn or to evaluate."""
        run = Run(self._learner, self._trainee, self._best, self._status, self._history)
        self._trainee, self._best = self._world.call(advance, starts, N, run, self._rng)

    def _reevaluate(self, N: int, M: int) -> None:
        """Play M rollouts of the agent kept; its mean becomes that of all it has played since it is the best."""
        done, best = self._done, self._status["best"][0]
        new = done == 0 or self._history["evaluations"][done - 1] == best  # one that is not has a lower mean
        played = N if new or self._played <= 0 else self._played
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

    def _report(self, bar: tqdm, number: int) -> None:
        """Show how much of so many iterations or samples is done; warn, once each, of what would spoil the rest."""
        row = self._history[self._done - 1]
        name = "best" if self._keeps_best else "return"
        bar.set_postfix({name: f"{row['rewards']:.1f}", "arms": str(row["arms"])}, refresh=False)
        ahead = (
            self._last_iteration - self._done if self._last_sample is None else self._last_sample - self.num_timesteps
        )
        bar.update(number - ahead - bar.n)
        if self._advice.unlimited:
            self._advice.if_cut_off(self._history["steps"][: self._done].max(), self._learner.H)
        self._advice.if_crowded(self._done, self._crowded)

    def _crowded(self) -> bool:
        """Return whether nearly all observations so far may lie in one small cell."""
        return is_crowded(self._trainee, CROWDED)

    def evaluate(
        self,
        episodes: int = 1000,
        seed: int | np.random.SeedSequence | None = None,
        deterministic: bool = False,
        lengths: bool = False,
        starts: bool = False,
    ) -> Any:
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
        starts
            Return a pair: the above, and the first observation of each episode, one row each.

        Examples
        --------
        >>> returns, starts = agent.evaluate(10_000, seed=1, starts=True)
        >>> np.quantile(returns, [0.01, 0.05, 0.5])
        >>> returns.min(), starts[returns.argmin()]  # the worst episode, and where it began
        """
        episodes = check_integer("episodes", episodes)
        streams = check_seed(seed).spawn(2)
        rng, env_seed = np.random.default_rng(streams[0]), int(streams[1].generate_state(1)[0])
        rewards, steps = np.empty(episodes), np.empty(episodes, np.int64)
        world, kept, piece = self._make_world(env_seed), self._kept(), episodes
        begun: list[np.ndarray] = []
        if isinstance(world, CompiledWorld):
            piece = max(1, SLICE // self._learner.limit)
            nowhere = world.draw(np.random.default_rng(0), 1)[:0]  # compile before Ctrl-C is held back
            given = kept, self._learner, bool(deterministic), rng
            world.call(self._rollouts, nowhere, *given, rewards[:0], steps[:0])
        elif starts:
            world.begun = begun
        with deferred_interrupts() as check_interrupts, self._environment():
            world.between_steps = check_interrupts
            for part in (slice(first, first + piece) for first in range(0, episodes, piece)):
                places, found = world.starts(len(rewards[part])), (rewards[part], steps[part])
                world.call(self._rollouts, places, kept, self._learner, bool(deterministic), rng, *found)
                if starts and isinstance(world, CompiledWorld):
                    begun += map(world.first_observation, places)
                check_interrupts()
        self._fresh = self._done, episodes, float(rewards.mean())
        self._advice.if_cut_off(int(steps.max()), self._learner.H)
        returns = np.stack((rewards, steps)) if lengths else rewards
        return (returns, np.array(begun)) if starts else returns

    def _make_world(self, env_seed: int) -> CompiledWorld | InterpretedWorld:
        """The compiled twin of the environment if there is one, else the environment itself."""
        raw_first = self.rules.first_observation == "raw"
        world = compiled_world(self.env, self._space, env_seed, raw_first)
        return world or InterpretedWorld(self.env, self._space, env_seed, raw_first, self._advice)

    @property
    def _keeps_best(self) -> bool:
        """Whether the agent kept is the best so far, not the last."""
        return evaluates_first(self._learner)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Be the thread that learns, or refuse."""
        if not self._lock.acquire(blocking=False):
            raise RuntimeError(BUSY)
        self._thread = threading.get_ident()
        try:
            yield
        finally:
            self._thread = 0
            self._lock.release()

    def _environment(self) -> Any:
        """Have the environment for this thread alone, where there is only one."""
        return contextlib.nullcontext() if self.compiled else exclusively(self.env)

    def _kept(self) -> Any:
        """The partition that is kept, which nothing changes while it is read."""
        backup = self._backup if self._thread != threading.get_ident() else None
        return self._best if backup is None or self._keeps_best else backup.best

    def _settled(self) -> State:
        """Return a copy of the state after a full iteration: in a callback, and where nothing learns."""
        if self._thread == threading.get_ident():
            return self._state()
        with deferred_interrupts(), self._alone():  # an interrupt would leave the lock taken
            return self._state()

    def _state(self) -> State:
        """A copy of all that learning changes."""
        trainee = copy_of(self._trainee)
        best = copy_of(self._best) if self._keeps_best else trainee
        streams = {
            "agent": self._rng.bit_generator.state,
            "environment": self._world.stream,
            "prediction": self._prediction_rng.bit_generator.state,
        }
        history = self._history[: self._done].copy()
        return State(trainee, best, self._status.copy(), history, streams, self._played, copy_of(self._memory))

    def _set_state(self, state: State) -> None:
        self._trainee, self._best, self._status, self._history, streams, self._played, self._memory = state
        self._rng.bit_generator.state = streams["agent"]
        self._prediction_rng.bit_generator.state = streams["prediction"]
        self._world.stream = streams["environment"]
