"""How an agent learns and evaluates: in pieces short enough for Ctrl-C, with a sound state to fall back on."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import gymnasium as gym
import numpy as np
from tqdm import tqdm

from spaql.advice import BLIND, Advice
from spaql.checks import Seed, check_integer, check_seed
from spaql.files import check_array
from spaql.interrupts import alone, deferred_interrupts
from spaql.loop import Run, advance, rollouts
from spaql.partition import ARMS, Partition, with_room
from spaql.partition import copy as copy_partition
from spaql.progress import progress
from spaql.rules import HISTORY, RANDOM, SPAQL, SPAQL_TS, STATUS, Learner, Rules
from spaql.spaces import Space
from spaql.systems import compiled_world
from spaql.systems.interpreted import InterpretedWorld

CHUNK = 0.2  # seconds of machine code between two checks for Ctrl-C
SLICE = 10**6  # steps of a compiled evaluation between two such checks
MOST_ITERATIONS = 10**8  # of one call: each has its place in the history from the start
MANY_EPISODES = 5000  # as many as anybody may have meant to be samples
BUSY = "this agent is learning: until that ends its callbacks cannot train it"

CUT_OFF = "episodes come to %s steps, the paper's horizon, as nothing else ends them.  Give horizon=, or a TimeLimit"

log = logging.getLogger(__name__)


class State(NamedTuple):
    """All that learning changes in an agent: what it falls back on."""

    trainee: Any  # a `Partition`; a representation of its own for TileQ and SPAQL-R
    best: Any
    status: np.ndarray
    history: np.ndarray
    streams: dict[str, Any]
    memory: Any  # of transitions; of TileQ and SPAQL-R


def copy_of(part: Any) -> Any:
    """Return a copy that shares no array that learning changes."""
    if isinstance(part, Partition):
        return copy_partition(part)
    if hasattr(part, "_replace"):
        return part._replace(**{name: copy_of(value) for name, value in part._asdict().items()})
    return part.copy() if hasattr(part, "copy") else part


class Learning:
    """What learning needs of an agent, and does with it.  `Agent` adds the rest."""

    algorithm: ClassVar[int]
    _replays: ClassVar[bool] = False  # whether it is TileQ or SPAQL-R: rollouts only report, and samples are counted
    _rollouts: ClassVar[Callable] = staticmethod(rollouts)  # episodes under the policy of the agent kept
    _learner: Learner
    _unlimited: bool  # nothing but the paper's horizon ends episodes
    _trainee: Any  # for this and the next three see `State`
    _best: Any
    _status: np.ndarray
    _history: np.ndarray

    def __init__(self, env: gym.Env, space: Space, rules: Rules, seed: Any, env_seed: int | None):
        self.env, self._space, self.rules = env, space, rules
        self.seed = check_seed(seed)
        streams = check_seed(self.seed).spawn(3)
        self._rng, self._prediction_rng = np.random.default_rng(streams[0]), np.random.default_rng(streams[2])
        if env_seed is None:
            env_seed = int(streams[1].generate_state(1)[0])
        self.env_seed = check_integer("env_seed", env_seed, at_least=0, at_most=None)
        self._advice = Advice(BLIND) if self.algorithm == RANDOM else Advice()  # which does not look
        self._world = self._make_world(self.env_seed)
        self._thread = 0  # the one that learns
        self._backup: State | None = None  # while learning: what to fall back on, after a full iteration
        self._fresh: tuple[int, int, float] | None = None  # iterations, episodes and mean of the last evaluation
        self._by_samples, self._goal = False, 0  # after which sample, or iteration, learning ends
        self._memory: Any = None

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
        """One entry per iteration, with rewards, arms, evaluations, trainee_arms, tau, steps, evaluation_steps.

        `rewards` is what the paper's curves show: the best mean of N rollouts so far for SPAQL and SPAQL-TS, the mean
        of this iteration for AQL and Random.  `evaluations` is always this iteration's.  `arms` counts the balls of
        the agent kept.
        """
        return self._history[: self._done].copy().view(np.recarray)

    @property
    def arms(self) -> int:
        """The number of arms (balls that are not split) of the agent kept."""
        return int(self._best.counts[ARMS])

    def learn(
        self,
        iterations: int | None = None,
        evaluations: int | None = None,
        progress_bar: bool = False,
        *,
        samples: int | None = None,
        callback: Callable | Sequence[Callable] | None = None,
    ) -> Self:
        """Train for some iterations: an episode to learn from, then rollouts to evaluate what was learned.

        A second call goes on where the first one ended.  If it is interrupted (Ctrl-C), if the environment fails, or if
        sums of rewards become infinite (an OverflowError), the agent is left as it was after a full iteration.

        Parameters
        ----------
        iterations
            How many training episodes.
        progress_bar
            Show how far it is, on standard error.
        callback
            One function, or several, of the agent, called after every iteration; learning stops if one returns False.
            In it the agent can be read, evaluated and saved (`spaql.hooks` has ready ones).
        evaluations
            The paper's algorithms: N, the rollouts after each training episode, 20 if not given.  SPAQL and SPAQL-TS
            keep the agent with the best mean of N so far, which is luck if N is small: the standard deviation of a
            return divided by √N should be small beside the differences that matter to you.
            TileQ and SPAQL-R: rollouts that only report, 0 if not given; `history.rewards` then has training's returns.
        samples
            TileQ and SPAQL-R only: how many environment steps to learn from, instead of `iterations`.  The last episode
            is cut off there, so that learning from 3,000 samples twice is not learning from 6,000 at once.
        """
        number, N, callbacks = self._checked(iterations, evaluations, samples, callback)
        for before in (each.before for each in callbacks if hasattr(each, "before")):
            before(self)  # as `keep_best` checks its file before hours of training

        with deferred_interrupts(not self.compiled) as check_interrupts, alone(self), self._in_its_environment():
            if self._backup is not None:  # a callback asks
                raise RuntimeError(BUSY)
            self._thread, self._by_samples = threading.get_ident(), samples is not None
            self._goal = number + (self.num_timesteps if self._by_samples else self._done)
            self._world.between_steps = check_interrupts
            try:
                with progress(number, type(self).__name__, shown=progress_bar) as bar:
                    self._learn(number, N, callbacks, check_interrupts, bar)
            finally:
                self._history = self._history[: self._done]
                self._world.between_steps = None
                self._backup, self._thread = None, 0
        return self

    def _checked(self, iterations: Any, evaluations: Any, samples: Any, callback: Any) -> tuple[int, int, list]:
        """Return how many iterations or samples, how many rollouts, and the callbacks, or say what is wrong."""
        if samples is not None and not self._replays:
            raise ValueError(f"{type(self).__name__} learns by iterations, each an episode and its rollouts: "
                             "give iterations=, not samples")  # fmt: skip
        if (iterations is None) == (samples is None):
            raise ValueError(f"give either iterations or samples, not {iterations} and {samples}")
        name, number = ("samples", samples) if iterations is None else ("iterations", iterations)
        number = check_integer(name, number, at_most=MOST_ITERATIONS)
        if self._replays and samples is None and number >= MANY_EPISODES:
            log.warning("%s iterations are episodes, of up to %s steps each: did you mean samples=%s?",
                        f"{number:,}", self._learner.limit, number)  # fmt: skip
        N = (0 if self._replays else 20) if evaluations is None else evaluations
        N = check_integer("evaluations", N, at_least=0 if self._replays else 1)
        callbacks = list(callback) if isinstance(callback, Sequence) else [] if callback is None else [callback]
        if not all(map(callable, callbacks)):
            raise TypeError(f"callback must be a function of the agent, or several in a list, not {callback!r}")
        return number, N, callbacks

    def _learn(self, number: int, N: int, callbacks: list[Callable], check_interrupts: Callable, bar: tqdm) -> None:
        """Train for at most so many iterations or samples, with a look at the keyboard now and then."""
        first, history = self._done, np.zeros(self._done + number, HISTORY)
        history[:first], self._history = self._history[:first], history
        # Episodes of about CHUNK seconds; of an interpreted world, which looks at the keyboard itself, an iteration.
        chunk = 1 if self.compiled else N + 1
        backup, whole, copied = self._state(), True, time.perf_counter()
        self._backup = backup
        while (missing := self._missing()) > 0:
            done, began = self._done, time.perf_counter()
            episodes = self._next_episodes(chunk, N, 1 if callbacks else missing)
            # A copy costs as much as a short iteration, and machine code that ends with a full one needs none.
            if whole and (not self.compiled or episodes <= N or began - copied > CHUNK):
                backup = self._state()
                self._backup, copied = backup, began
            try:
                self._advance(self._world.starts(episodes), N)
                whole = self._status["episode"][0] == 0
                if whole:
                    self._check_finite(self._history[done:][:episodes])
                else:
                    check_interrupts()
            except BaseException:
                self._set_state(backup)
                raise
            if self.compiled:
                pace = episodes / max(1e-9, time.perf_counter() - began)
                chunk = max(1, min(2 * chunk, int(CHUNK * pace)))
            if whole and self._done > first:
                self._report(bar, number)
                answers = [callback(self) for callback in callbacks]
                if any(isinstance(answer, (bool, np.bool_)) and not answer for answer in answers):
                    return
            check_interrupts()

    @property
    def _done(self) -> int:
        """How many iterations are done."""
        return max(0, int(self._status["iteration"][0]))

    def _left(self) -> int:
        """Return how many samples, or iterations, are left before learning ends."""
        return self._goal - (self.num_timesteps if self._by_samples else self._done)

    def _missing(self) -> int:
        """Return how many iterations are sure to come before learning ends, the one under way included."""
        if not self._by_samples:
            return self._goal - int(self._status["iteration"][0])
        # No episode is longer than the limit, so that at least so many begin before the samples are taken.
        return -(-self._left() // self._learner.limit) + int(self._status["episode"][0] > 0)

    def _next_episodes(self, chunk: int, N: int, missing: int) -> int:
        """How many episodes to play next: a part of this iteration, or up to the end of this or a later one."""
        rest = N + 1 - int(self._status["episode"][0])
        if chunk < rest:
            return chunk
        return rest + min((chunk - rest) // (N + 1), missing - 1) * (N + 1)

    def _advance(self, starts: Any, N: int) -> None:
        """Play an episode from each of these starts, to learn or to evaluate."""
        while len(starts):
            if self.algorithm != RANDOM:  # which never splits
                self._trainee = with_room(self._trainee, self._learner.limit)
            run = Run(self._learner, self._trainee, self._best, self._status, self._history)
            self._best, played = self._world.call(advance, starts, N, run, self._rng)
            starts = starts[played:]

    def _check_finite(self, rows: np.ndarray) -> None:
        """Raise an error unless estimates and rewards are finite: by others nothing can be chosen, nor saved."""
        numbers = self._trainee.estimates(), self._best.estimates(), self._status["best"], rows["evaluations"]
        if not all(np.isfinite(each).all() for each in numbers):
            raise OverflowError(
                "estimates or sums of rewards have become infinite or NaN: the rewards or ξ are too large; scale them"
            )

    def _report(self, bar: tqdm, number: int) -> None:
        """Show how much of so many iterations or samples is done."""
        row = self._history[self._done - 1]
        name = "best" if self._keeps_best else "return"
        bar.set_postfix({name: f"{row['rewards']:.1f}", "arms": str(row["arms"])}, refresh=False)
        bar.update(number - self._left() - bar.n)
        self._warn_if_cut_off(self._history["steps"][: self._done])

    def _warn_if_cut_off(self, steps: np.ndarray) -> None:
        """Warn if episodes of so many steps run into the paper's horizon, and nothing else would have ended them."""
        if self._unlimited and steps.max() >= self._learner.H:
            self._advice.once(CUT_OFF, self._learner.H)

    def evaluate(
        self, episodes: int = 1000, seed: Seed = None, deterministic: bool = False, starts: bool = False
    ) -> Any:
        """Return the sums of rewards of fresh episodes under the agent's policy; learning is not disturbed by it.

        (Unless the environment, or a wrapper of one's own, remembers something from one episode to the next.)

        Parameters
        ----------
        episodes
            How many.
        seed
            Seeds them, independently of the agent's own seed.
        deterministic
            As for `predict`; False is the paper's policy.
        starts
            Return a pair: these sums, and the first observation of each episode, one row each.

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
        world, kept = self._make_world(env_seed), self._kept()
        begun: list[np.ndarray] = []
        if starts and not self.compiled:
            world.begun = begun
        piece = max(1, SLICE // self._learner.limit) if self.compiled else episodes
        with deferred_interrupts() as check_interrupts, self._in_its_environment():
            world.between_steps = check_interrupts
            for part in (slice(first, first + piece) for first in range(0, episodes, piece)):
                places, found = world.starts(len(rewards[part])), (rewards[part], steps[part])
                world.call(self._rollouts, places, kept, self._learner, bool(deterministic), rng, *found)
                if starts and self.compiled:
                    begun += map(world.first_observation, places)
                check_interrupts()
        self._fresh = self._done, episodes, float(rewards.mean())
        self._warn_if_cut_off(steps)
        return (rewards, np.array(begun)) if starts else rewards

    def _make_world(self, env_seed: int) -> Any:
        """Return the compiled twin of the environment if there is one, else the environment itself."""
        raw_first = self.rules.first_observation == "raw"
        world = compiled_world(self.env, self._space, env_seed, raw_first)
        return world or InterpretedWorld(self.env, self._space, env_seed, raw_first, self._advice)

    @property
    def _keeps_best(self) -> bool:
        """Whether the agent kept is the best so far, not the last."""
        return self.algorithm in (SPAQL, SPAQL_TS)

    def _in_its_environment(self) -> contextlib.AbstractContextManager:
        """Be the only thread that plays there, unless it is compiled: then each has its own."""
        return contextlib.nullcontext() if self.compiled else alone(self.env.unwrapped)

    def _kept(self) -> Any:
        """The partition that is kept, which nothing changes while it is read."""
        backup = self._backup if self._thread != threading.get_ident() else None
        return self._best if backup is None or self._keeps_best else backup.best

    def _state(self) -> State:
        """Return a copy of all that learning changes."""
        trainee = copy_of(self._trainee)
        best = copy_of(self._best) if self._keeps_best else trainee
        history = self._history[: self._done].copy()
        return State(trainee, best, self._status.copy(), history, self._streams(), copy_of(self._memory))

    def _set_state(self, state: State) -> None:
        self._trainee, self._best, self._status, self._history, streams, self._memory = state
        self._rng.bit_generator.state = streams["agent"]
        self._prediction_rng.bit_generator.state = streams["prediction"]
        self._world.stream = streams["environment"]

    def _streams(self) -> dict[str, Any]:
        """The states of the random streams."""
        return {
            "agent": self._rng.bit_generator.state,
            "environment": self._world.stream,
            "prediction": self._prediction_rng.bit_generator.state,
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        """Return what a file keeps of the state, besides the streams."""
        arrays = {"status": self._status, "history": self._history[: self._done]} | self._trainee.arrays("trainee")
        return arrays | (self._best.arrays("best") if self._keeps_best else {})

    def _restore(self, streams: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take the state that a file holds, checked, in the place of a new agent's."""
        if different := arrays.keys() ^ self._arrays().keys():
            raise ValueError(f"it was written by another version of spaql, whose agents are not the same "
                             f"({', '.join(sorted(different)[:3])}): train the agent again")  # fmt: skip
        trainee = self._trainee.restored(arrays, "trainee")
        best = self._best.restored(arrays, "best") if self._keeps_best else trainee
        status = check_array(arrays, "status", STATUS, (1,))
        row = status[0]
        history = check_array(arrays, "history", HISTORY, (max(0, int(row["iteration"])),))
        begins = self._keeps_best and row["iteration"] == -1 and row["episode"] == 1
        sound = (
            begins or (row["iteration"] >= 0 and row["episode"] == 0),
            np.isfinite([row["total"], row["best"], row["u"]]).all() and row["u"] > 0,
            row["tau"] >= 0,  # infinite, too: then every ball is as likely as the others
            np.isfinite(history["rewards"]).all() and np.isfinite(history["evaluations"]).all(),
            not self._keeps_best or (best.counts <= trainee.counts).all(),  # a reset copies the one into the other
        )
        if not all(sound):
            raise ValueError("its history and its status have numbers that no learning gives")
        self._set_state(State(trainee, best, status, history, streams, self._memory))
