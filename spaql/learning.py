"""How an agent learns and evaluates: in pieces short enough for Ctrl-C, with a sound state to fall back on."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
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
from spaql.partition import copy as copy_partition
from spaql.progress import progress
from spaql.replay import Memory
from spaql.rules import HISTORY, Learner, Rules, evaluates_first, keeps_best
from spaql.spaces import Space
from spaql.state import State, check_finite
from spaql.systems import CompiledWorld, compiled_world
from spaql.systems.interpreted import InterpretedWorld, do_nothing, exclusively

CHUNK = 0.2  # seconds of machine code between two checks for Ctrl-C
FIRST_CHUNK = 20_000  # steps of the first piece, before the pace is known
SLICE = 10**6  # steps of a compiled evaluation between two such checks
MOST_ITERATIONS = 10**8  # of one call: each has its place in the history from the start
GLANCE = 2.0  # seconds of learning between two evaluations of the agent kept for a progress bar

Callback = Callable[[Any], Any]


class Hooks(NamedTuple):
    """What `learn` does besides learning."""

    callbacks: Sequence[Callback] = ()
    stop_at: float | None = None
    reevaluations: int = 0

    @property
    def any(self) -> bool:
        """Whether there is something to do after every iteration."""
        return bool(self.callbacks or self.reevaluations) or self.stop_at is not None


class Learning:
    """What learning needs of an agent, and does with it.  `Agent` adds the rest."""

    algorithm: ClassVar[int]
    env: gym.Env
    rules: Rules
    _space: Space
    _learner: Learner
    _world: CompiledWorld | InterpretedWorld
    _rng: np.random.Generator
    _prediction_rng: np.random.Generator
    _advice: Advice
    # All that learning changes, besides the random streams: see `State`.
    _trainee: Any  # a `Partition`; SPAQL-R's is a `Bisection`
    _best: Any
    _status: np.ndarray
    _history: np.ndarray
    _played: int
    _memory: Memory | None
    _rollouts: ClassVar[Callable] = staticmethod(rollouts)  # episodes under the policy of the agent kept

    def __init__(self) -> None:
        self._learning, self._evaluating = threading.Lock(), threading.Lock()
        self._backup: State | None = None  # while learning: what to fall back on, after a full iteration
        self._whole = True  # whether the agent itself is as after a full iteration
        self._calling = 0  # the thread in which a callback runs
        self._played = 0
        self._fresh: tuple[int, int, float] | None = None  # policy, episodes and mean of the last evaluation
        self._glanced = 0.0  # when a progress bar last evaluated the agent
        self._memory = None

    @property
    def _evaluates_first(self) -> bool:
        """Whether the agent is one of the two algorithms that know what theirs earns before they learn."""
        return evaluates_first(self._learner)

    @property
    def _keeps_best(self) -> bool:
        """Whether the agent kept is the best so far, not the last."""
        return keeps_best(self._learner)

    @property
    def compiled(self) -> bool:
        """Whether the environment runs as machine code; otherwise the same loop runs interpreted."""
        return self._world.compiled

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
        """Train for some iterations: an episode to learn from, then rollouts to evaluate what was learned.

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
        with deferred_interrupts() as check_interrupts:  # around all else: it must not come between lock and backup
            if not self._learning.acquire(blocking=False):
                where = "this is its callback" if self._calling == threading.get_ident() else "in another thread"
                raise RuntimeError(f"this agent is learning already, {where}: wait for it, or train another agent")
            try:
                self._backup, self._whole = self._state(), True
                self._world.between_steps = check_interrupts
                with (
                    contextlib.nullcontext() if self.compiled else exclusively(self.env),
                    progress(iterations, type(self).__name__, shown=progress_bar) as bar,
                ):
                    self._learn_until(iterations, N, hooks, check_interrupts, bar)
            except BaseException:
                if self._backup is not None and not self._whole:
                    self._set_state(self._backup)
                raise
            finally:
                self._history = self._history[: max(0, int(self._status["iteration"][0]))]
                self._world.between_steps = do_nothing
                self._backup = None
                self._played = self._played if hooks.reevaluations else -bool(self._played)
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
        for before in (each.before for each in callbacks if hasattr(each, "before")):
            before(self)  # as `keep_best` checks its file before hours of training
        return Hooks(callbacks, None if stop_at is None else check_number("stop_at", stop_at), M)

    def _learn_until(self, iterations: int, N: int, hooks: Hooks, check_interrupts: Any, bar: tqdm) -> None:
        """Train until so many iterations more are done, with a look at the keyboard now and then."""
        compiled, first = self.compiled, max(0, int(self._status["iteration"][0]))
        goal = first + iterations
        rows = self._history[:first], records(iterations, HISTORY)
        self._history = np.concatenate(rows).view(type(rows[1]))
        self._glanced = copied = time.perf_counter()
        chunk = max(1, FIRST_CHUNK // self._learner.limit) if compiled else N + 1  # episodes of about CHUNK seconds
        ready = not compiled
        while self._goes_on(goal):
            done = int(self._status["iteration"][0])
            episodes = self._next_episodes(chunk, N, done + 1 if hooks.any else goal)
            # A copy costs as much as a short iteration, and machine code that ends with a full one needs none.
            if self._whole and (not compiled or episodes <= N or time.perf_counter() - copied > CHUNK):
                self._backup, copied = self._state(), time.perf_counter()
            starts = self._world.starts(episodes)
            if not ready:  # no episodes yet, but the machine code for them: no bar should count that time
                self._advance(starts[:0], N)
                bar.reset()
                ready = True
            before, self._whole = time.perf_counter(), False
            self._advance(starts, N)
            if compiled:
                pace = episodes / max(1e-9, time.perf_counter() - before)
                chunk = max(1, min(2 * chunk, int(CHUNK * pace)))
            if self._status["episode"][0] == 0:
                if hooks.reevaluations:
                    self._reevaluate(N, hooks.reevaluations)
                check_finite(self._trainee, self._best, self._status, self._history[max(0, done) :][:episodes])
                self._whole = True
                self._report(bar, first)
                self._advise(N)
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

    def _advise(self, N: int) -> None:
        """Warn, once each, if only the paper's horizon ends episodes, and if nearly all that is seen is one state."""
        done = max(0, int(self._status["iteration"][0]))
        if self._advice.unlimited:  # otherwise nobody needs to look through the whole history
            longest = self._history["steps"][:done].max(initial=0)
            if N:  # of rollouts only the mean length is known; the first entry has those before learning, too
                longest = max(longest, self._history["evaluation_steps"][1:done].max(initial=0) / N / 0.9)
            self._advice.if_cut_off(longest, self._learner.H)
        self._advice.if_crowded(done, self._crowded)

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
        with deferred_interrupts() as check_interrupts:
            self._play(env_seed, bool(deterministic), rng, rewards, steps, check_interrupts)
        self._fresh = self._policy_number(), episodes, float(rewards.mean())
        self._advice.if_cut_off(int(steps.max()), self._learner.H)
        return np.stack((rewards, steps)) if lengths else rewards

    def _play(
        self,
        env_seed: int,
        central: bool,
        rng: np.random.Generator,
        rewards: np.ndarray,
        steps: np.ndarray,
        check_interrupts: Callable[[], None],
    ) -> None:
        """Write the sums of rewards and the lengths of episodes under the policy of the agent kept."""
        world, kept, episodes = self._make_world(env_seed), self._kept(), len(rewards)
        if world.compiled:
            piece = max(1, SLICE // self._learner.limit)
            for part in (slice(first, first + piece) for first in range(0, episodes, piece)):
                starts = world.starts(len(rewards[part]))
                world.call(self._rollouts, starts, kept, self._learner, central, rng, rewards[part], steps[part])
                check_interrupts()
            return
        if self._learning.locked() and self._calling != threading.get_ident():
            raise RuntimeError("the agent is learning in another thread, in the environment that evaluate() needs")
        world.between_steps = check_interrupts
        with self._evaluating, exclusively(self.env):  # there is only one
            world.call(self._rollouts, world.starts(episodes), kept, self._learner, central, rng, rewards, steps)

    def _make_world(self, env_seed: int) -> CompiledWorld | InterpretedWorld:
        """The compiled twin of the environment if there is one, else the environment itself."""
        raw_first = self.rules.first_observation == "raw"
        world = compiled_world(self.env, self._space, env_seed, raw_first)
        return world or InterpretedWorld(self.env, self._space, env_seed, raw_first, self._advice)

    def _copy(self, partition: Any) -> Any:
        """Return a partition that shares nothing with this one."""
        return copy_partition(partition)

    def _kept(self) -> Any:
        """The partition that is kept, which nothing changes while it is read."""
        backup = self._backup if self._calling != threading.get_ident() else None
        return self._best if backup is None or self._keeps_best else backup.best

    def _settled(self) -> State:
        """The state after a full iteration: the last one, or the one copied last if another thread learns."""
        backup = self._backup if self._calling != threading.get_ident() else None
        return backup or self._state()

    def _policy_number(self) -> int:
        """Return the iteration that the policy kept is of, or the last one where that is not known."""
        done = max(0, int(self._status["iteration"][0]))
        if not self._keeps_best or self._played:
            return done
        rows = self._history[:done]
        return int(np.flatnonzero(rows["evaluations"] >= rows["rewards"]).max(initial=-1)) + 1

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
        trainee = self._copy(self._trainee)
        best = self._copy(self._best) if self._keeps_best else trainee
        done = max(0, int(self._status["iteration"][0]))
        return State(trainee, best, self._status.copy(), self._history[:done].copy(), self._streams(), self._played)

    def _set_state(self, state: State) -> None:
        self._trainee, self._best, self._status, self._history, streams, self._played, _ = state
        self._set_streams(streams)

    def _report(self, bar: tqdm, first: int) -> None:
        """Show on the bar what has been done since the iteration `first`."""
        done = int(self._status["iteration"][0])
        if done > first and not bar.disable:
            row = self._history[done - 1]
            shown = {"best" if self._keeps_best else "return": f"{row['rewards']:.1f}"}
            if self._keeps_best and self.compiled:  # the best of many means is partly luck
                if time.perf_counter() - self._glanced > GLANCE:
                    self.evaluate(50, seed=done)
                    self._glanced = time.perf_counter()
                if self._fresh and self._fresh[0] == self._policy_number():
                    shown["fresh"] = f"{self._fresh[2]:.1f}"
            bar.set_postfix(shown | {"arms": str(row["arms"])}, refresh=False)
            left = self._left()
            bar.update((done - first if left is None else bar.total - left) - bar.n)

    def _left(self) -> int | None:
        """Return how many samples are left to take, or None if iterations are counted."""
        return None

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
