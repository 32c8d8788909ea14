"""Learning from remembered transitions: what TileQ and SPAQL-R share.

Both estimate Q(x, a), the discounted sum of the rewards after action a in state x.  They differ in how they represent
it: TileQ as a sum over tiles (`spaql.tileq`), SPAQL-R as one number for each cell and action (`spaql.spaqlr`).

A *transition* is (x, a, r, y): a state, the action taken there, the reward and the next state.  The memory keeps the
last `MEMORY` of them.  After every step the agent learns from the newest transition, and from `replays` others drawn
from the memory.  To learn from transition t is to follow its episode for m steps, at most `steps`, as long as each next
action is the one now thought best, and to move Q(x_t, a_t) towards

    target  G = r_t + γ r_{t+1} + ... + γ^(m-1) r_{t+m-1} + γ^m max_a Q(y_{t+m-1}, a).

The last term is zero if y is a terminal state, and only there: an episode that is cut off has a future.  Its maximum is
kept within what the rewards so far (and 0) allow, from Σ γ^k min r to Σ γ^k max r: else weights can grow without end.

The action is the best one or, with probability ε_t = max(ε, exp(-t / decay)) after t steps, a random one.

A representation is a named tuple of arrays and numbers with the methods that the loop calls.  The same text runs as
machine code and as plain Python; the compiler finds the methods by the type of the tuple.
"""

import itertools
import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numba.core import types
from numba.extending import overload_method

from spaql.agent import MOST_ACTIONS, Agent
from spaql.checks import MOST, check_integer
from spaql.compiling import INLINED, cached_jit, copy_row, non_owning, python_or_jit
from spaql.files import check_array
from spaql.loop import end_iteration
from spaql.parameters import Common, no_parameter
from spaql.partition import lengthened
from spaql.spaces import pairs_of
from spaql.systems import ENDED

MEMORY = 100_000  # transitions
GOES_ON, CUT_OFF, TERMINAL = range(3)  # how an episode stands after a transition
FOREVER = -1  # a number of samples that is never reached

# What the loop asks of a representation; `TileWeights` says what for.  `states` and `codes` have a row for each state:
# the state itself, and numbers by which the representation finds it again faster; `row` says which one is meant.

METHODS = {
    "place": lambda self, states, codes, row: self.instance_class.place,
    "greedy": lambda self, states, codes, row: self.instance_class.greedy,
    "visit": lambda self, states, codes, row: self.instance_class.visit,
    "learn": lambda self, states, codes, row, action, target: self.instance_class.learn,
    "arms": lambda self: self.instance_class.arms,
}
for name, method in METHODS.items():
    overload_method(types.NamedTuple, name, jit_options=INLINED)(method)

# The memory


class Memory(NamedTuple):
    """The last transitions: a ring, in which number t stands at t modulo its size."""

    x: np.ndarray  # states, in the standard space, one row per transition
    y: np.ndarray  # the next ones
    action: np.ndarray  # the place of the action among those to choose from
    reward: np.ndarray
    end: np.ndarray  # GOES_ON, CUT_OFF or TERMINAL
    codes_x: np.ndarray  # the representation's own numbers of x
    codes_y: np.ndarray
    taken: np.ndarray  # one number: samples so far
    extremes: np.ndarray  # two numbers: the least and the greatest of zero and all rewards so far

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        kept = min(int(self.taken[0]), len(self.reward))
        rows = {f"memory_{name}": getattr(self, name)[:kept] for name in ("x", "y", "action", "reward", "end")}
        return rows | {"memory_taken": self.taken, "memory_extremes": self.extremes}

    def restored(self, arrays: dict[str, np.ndarray], actions: int) -> "Memory":
        """Return this empty memory filled with what a file has kept, checked; there are so many `actions`."""
        self.taken[:] = check_array(arrays, "memory_taken", np.int64, (1,), low=0)
        self.extremes[:] = check_array(arrays, "memory_extremes", float, (2,))
        kept = min(int(self.taken[0]), MEMORY)
        memory, within = with_room(self, kept), (-1.0, 1.0)
        bounds: dict[str, Any] = {"x": within, "y": within, "action": (0, actions - 1), "end": (0, TERMINAL)}
        for name, limits in (bounds | {"reward": self.extremes}).items():
            into = getattr(memory, name)
            into[:kept] = check_array(arrays, f"memory_{name}", into.dtype, (kept, *into.shape[1:]), *limits)
        return memory


def new_memory(dimensions: int, width: int) -> Memory:
    """Return an empty memory, without room; the representation has `width` numbers of its own for a state."""
    states, codes = np.empty((0, dimensions)), np.empty((0, width), np.int32)
    numbers = np.empty(0, np.int32), np.empty(0), np.empty(0, np.int8)
    return Memory(states, states, *numbers, codes, codes, taken=np.zeros(1, np.int64), extremes=np.zeros(2))


def with_room(memory: Memory, wanted: int) -> Memory:
    """Return a memory with room for at least so many transitions, or for all that it may hold."""
    held = len(memory.reward)
    if held >= min(wanted, MEMORY):
        return memory
    more = min(max(wanted, 2 * held), MEMORY) - held  # so far nothing is forgotten, and all stays in its place
    return memory._replace(**{name: lengthened(getattr(memory, name), more) for name in Memory._fields[:-2]})


# The loop


class Replay(NamedTuple):
    """The parameters that both share, in the form compiled code takes."""

    discount: float  # γ
    epsilon: float  # ε, the least share of random actions
    decay: float  # after how many samples the share of random actions has fallen to 1/e of its first value, 1
    replays: int  # transitions of the memory to learn from after each step, besides its own
    steps: int  # the greatest m
    reach: float  # Σ γ^k
    limit: int  # steps of an episode


class Run(NamedTuple):
    """What the loop works on."""

    what: Any  # the representation
    memory: Memory
    how: Replay
    stop: int  # after how many samples an episode is cut off, or FOREVER
    status: np.ndarray
    history: np.ndarray


@python_or_jit
def share_of_random(how, taken):
    """ε_t = max(ε, exp(-t / decay)), the share of random actions after t samples."""
    return max(how.epsilon, math.exp(-taken / how.decay))


@cached_jit
def decide(what, memory, how, rng):
    """Return the place of the action to take in the newest state of the memory."""
    at = memory.taken[0] % len(memory.reward)
    what.place(memory.x, memory.codes_x, at)
    if rng.random() < share_of_random(how, memory.taken[0]):
        return int(rng.random() * len(what.actions))
    return int(what.greedy(memory.x, memory.codes_x, at)[0])


@cached_jit
def keep(what, memory, a, reward, end):
    """Complete the newest transition, whose states stand in the memory, and begin the next one where it ended."""
    size = len(memory.reward)
    at = memory.taken[0] % size
    memory.taken[0] += 1
    memory.action[at], memory.reward[at], memory.end[at] = a, reward, end
    memory.extremes[0], memory.extremes[1] = min(memory.extremes[0], reward), max(memory.extremes[1], reward)
    what.place(memory.y, memory.codes_y, at)
    what.visit(memory.x, memory.codes_x, at)


@cached_jit
def learn(what, memory, how, rng):
    """Learn from the newest transition, and from some drawn from the memory, each as likely as the others."""
    what, memory = non_owning(what), non_owning(memory)
    size, taken = len(memory.reward), memory.taken[0]
    newest, kept = (taken - 1) % size, min(taken, size)
    lowest, highest = how.reach * memory.extremes[0], how.reach * memory.extremes[1]
    for n in range(how.replays + 1):
        at = newest if n == 0 else int(rng.random() * kept)
        last, target, power = at, memory.reward[at], how.discount
        best, q = what.greedy(memory.y, memory.codes_y, last)
        for _ in range(1, how.steps):
            following = last + 1 if last + 1 < size else 0
            if last == newest or memory.end[last] != GOES_ON or memory.action[following] != best:
                break
            last = following
            target += power * memory.reward[last]
            power *= how.discount
            best, q = what.greedy(memory.y, memory.codes_y, last)
        if memory.end[last] != TERMINAL:
            target += power * min(highest, max(lowest, q))
        what.learn(memory.x, memory.codes_x, at, memory.action[at], target)


@python_or_jit
def train(world, state, start, run, rng, action):
    """Play one episode, and learn after each of its steps; return the sum of rewards and the number of steps."""
    what, memory, how = run.what, run.memory, run.how
    size = len(memory.reward)
    total = 0.0
    h = 0
    end = GOES_ON
    world.reset(state, start, memory.x[memory.taken[0] % size])
    while end == GOES_ON:
        at = memory.taken[0] % size
        a = decide(what, memory, how, rng)
        copy_row(what.actions, a, action)
        reward, over = world.step(state, action, memory.y[at])
        total += reward
        h += 1
        if over == ENDED:
            end = TERMINAL
        elif over or h == how.limit or memory.taken[0] + 1 == run.stop:
            end = CUT_OFF
        keep(what, memory, a, reward, end)
        learn(what, memory, how, rng)
        if end == GOES_ON:
            copy_row(memory.y, at, memory.x[memory.taken[0] % size])
    return total, h


@cached_jit
def best_action(what, x, codes):
    """Return the place of the best action in the first of some states."""
    what.place(x, codes, 0)
    return int(what.greedy(x, codes, 0)[0])


@python_or_jit
def follow(world, state, start, what, limit, x, codes, action):
    """Play one episode with the greedy policy; return the sum of rewards and the number of steps."""
    total = 0.0
    h = 0
    over = False
    world.reset(state, start, x[0])
    while h < limit and not over:
        copy_row(what.actions, best_action(what, x, codes), action)
        reward, over = world.step(state, action, x[0])
        total += reward
        h += 1
    return total, h


@python_or_jit
def advance(world, starts, N, run, rng):
    """As `advance` of `spaql.loop`: training episodes, each followed by N rollouts, which only report."""
    what, memory, how, status = run.what, run.memory, run.how, run.status
    state, action = world.room(), np.empty(what.actions.shape[1])
    x, codes = np.empty((1, memory.x.shape[1])), np.empty((1, what.width), np.int32)
    for i in range(len(starts)):
        if status["episode"][0] == 0:
            status["tau"][0] = share_of_random(how, memory.taken[0])
            total, steps = train(world, state, starts[i], run, rng, action)
            status["steps"][0] = steps
            if N == 0:
                status["total"][0] = total
        else:
            total, steps = follow(world, state, starts[i], what, how.limit, x, codes, action)
            status["total"][0] += total
            status["evaluation_steps"][0] += steps
        status["episode"][0] += 1
        if status["episode"][0] > N:
            mean, arms = status["total"][0] / max(1, N), what.arms()
            status["best"][0] = mean
            end_iteration(status, run.history, mean, arms, arms, status["tau"][0])


@python_or_jit
def follow_all(world, starts, what, learner, central, rng, rewards, steps):
    """Write the sum of rewards and the number of steps of an episode from each row of `starts`, as `loop.rollouts`."""
    state, action = world.room(), np.empty(what.actions.shape[1])
    x, codes = np.empty((1, len(world.space.centre))), np.empty((1, what.width), np.int32)
    for i in range(len(starts)):
        rewards[i], steps[i] = follow(world, state, starts[i], what, learner.limit, x, codes, action)


@cached_jit
def act(what, points, actions):
    """Write the best action at each of many points of the standard space."""
    codes = np.empty((1, what.width), np.int32)
    for i in range(len(points)):
        copy_row(what.actions, best_action(what, points[i : i + 1], codes), actions[i])


@cached_jit
def place_all(what, memory):
    """Write the numbers of all states in the memory, after it has been read from a file."""
    for i in range(min(memory.taken[0], len(memory.reward))):
        what.place(memory.x, memory.codes_x, i)
        what.place(memory.y, memory.codes_y, i)


# The agent


class Replaying(Common, total=False):
    """The parameters that both have; `TileQ` says what they mean."""

    alpha: float
    epsilon: float
    decay: float
    replays: int
    steps: int
    actions: int
    angles: Any


# Their values if not given.
OWN = {"alpha": 0.2, "epsilon": 0.1, "decay": 2000.0, "replays": 16, "steps": 50, "actions": 2, "angles": None}
DEFAULTS = OWN | {"slopes": 1.0, "initial": 0.0, "discount": 0.995}
COUNTS = {  # the least, and the most
    "replays": (0, MOST),
    "steps": (1, MOST),
    "actions": (2, MOST_ACTIONS),
    "tilings": (1, 256),
    "bins": (1, 1000),
    "visits": (1, MOST),
}


class ReplayAgent(Agent):
    """What TileQ and SPAQL-R share as agents."""

    _shared = Replaying
    _replays = True
    _memory: Memory
    _rollouts = staticmethod(follow_all)

    def __init__(self, env: str | gym.Env, own: dict[str, Any], **shared: Any):
        if "rules" in shared:
            raise TypeError(no_parameter(type(self), Replaying, "rules", shared["rules"]))
        given = DEFAULTS | {name: value for name, value in shared.items() if value is not None}
        super().__init__(env, own | {name: given.pop(name) for name in OWN}, **given)
        chosen, gamma = self.parameters, self.parameters["discount"]
        self._how = Replay(
            **{name: chosen[name] for name in Replay._fields if name in chosen},
            reach=1.0 / (1.0 - gamma) if gamma < 1.0 else float(chosen["horizon"]),
            limit=self._learner.limit,
        )
        self._memory = new_memory(len(self._space.centre), self._best.width)

    def _check_own(self, own: dict[str, Any]) -> dict[str, Any]:
        counts = {name: check_integer(name, own[name], *limits) for name, limits in COUNTS.items() if name in own}
        return own | super()._check_own(own) | counts | {"angles": pairs_of(self._space)}

    def _choices(self) -> np.ndarray:
        """Return the actions to choose from, in the standard space, one row per action."""
        if self._learner.discrete:
            return np.arange(float(self._space.actions)).reshape(-1, 1)
        box = self.env.action_space
        several = isinstance(box, gym.spaces.MultiDiscrete)
        counts = box.nvec.ravel().tolist() if several else [self.parameters["actions"]] * len(self._space.action_half)
        if (number := math.prod(counts)) > MOST_ACTIONS:
            raise ValueError(f"{number:,} combinations of `actions`; expected at most {MOST_ACTIONS:,}: give fewer")
        return np.array(list(itertools.product(*(np.linspace(-1.0, 1.0, count) for count in counts))))

    def _advance(self, starts: Any, N: int) -> None:
        steps = len(starts) * self._learner.limit
        self._memory = with_room(self._memory, int(self._memory.taken[0]) + steps)
        self._trainee = self._best = self._best.with_room(steps)
        stop = self._goal if self._by_samples else FOREVER
        run = Run(self._best, self._memory, self._how, stop, self._status, self._history)
        self._world.call(advance, starts, N, run, self._rng)

    def _act(self, steps: np.ndarray, points: np.ndarray, deterministic: bool, actions: np.ndarray) -> None:
        act(self._kept(), points, actions)

    @property
    def arms(self) -> int:
        """The number of estimates."""
        return self._best.arms()

    def _arrays(self) -> dict[str, np.ndarray]:
        return super()._arrays() | self._memory.arrays()

    def _restore(self, streams: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._restore(streams, arrays)
        self._memory = self._memory.restored(arrays, len(self._best.actions))
        place_all(self._best, self._memory)
