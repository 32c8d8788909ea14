"""SPAQL-R: one partition that learns from every step many times, by replay of what it has met.

The partition is SPAQL's: it covers states and actions with balls, and it is refined where the visits are.  Here the
actions are a fixed set, each a ball of its own from the start, and the balls of a state cell split together: a leaf
cell c is a row of estimates Q(c, a), one for each action a.

A *transition* is (x, a, r, y), a state, the action taken there, the reward and the next state; the memory keeps the
last of them.  Write c(x) for the leaf cell of x and V(x) = max_a Q(c(x), a).  Learning from transition t follows its
episode for m steps, as long as it stays in the cell and repeats the action,

    target  G = r_t + γ r_{t+1} + ... + γ^(m-1) r_{t+m-1} + γ^m V(x_{t+m}),
    update  Q(c(x_t), a_t) ← (1 - α) Q(c(x_t), a_t) + α G,

where V is zero at a terminal state (and only there: an episode that is cut off has a future).  A greedy policy repeats
its action until it leaves a cell, so this is its own return, and within a large cell a value does not look at itself.
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.compiling import either, entry, inlined, inner, records
from spaql.loop import rollout
from spaql.partition import ARMS, BALL, BITS, CELL, CELLS, NONE, Partition, split, update
from spaql.rules import Learner
from spaql.systems import ENDED, reset, room, step

TAKEN, STOP = range(2)  # of a memory's counts: samples so far, and after how many learning stops
GOES_ON, CUT_OFF, TERMINAL = range(3)  # how an episode stands after a transition


class Replayer(NamedTuple):
    """The parameters of SPAQL-R, in the form compiled code takes."""

    gamma: float  # γ, the discount
    alpha: float  # α, the learning rate
    epsilon: float  # ε, the least share of random actions
    decay: float  # after how many samples the share of random actions has fallen to 1/e of its first value, 1
    replays: int  # transitions of the memory to learn from after each step, besides its own
    visits: int  # of a cell until it splits
    depth: int  # of the deepest cells
    steps: int  # the greatest m
    terminal: bool  # whether a terminal state has the value zero


class Memory(NamedTuple):
    """The last transitions: a ring, in which number t stands at t modulo its size."""

    x: np.ndarray  # states, in the standard space, one row per transition
    y: np.ndarray  # the next ones
    action: np.ndarray  # the place of the action in `actions`
    reward: np.ndarray
    end: np.ndarray  # GOES_ON, CUT_OFF or TERMINAL
    cell_x: np.ndarray  # a cell that holds x: the leaf, or one that has split since
    cell_y: np.ndarray
    actions: np.ndarray  # the actions to choose from, in the standard space, one row per action
    counts: np.ndarray


KEPT = ("x", "y", "action", "reward", "end")  # of a memory: what a file needs; the cells are found again


class ReplayRun(NamedTuple):
    """What the loop works on."""

    learner: Learner
    replayer: Replayer
    p: Partition
    memory: Memory
    status: np.ndarray
    history: np.ndarray


def new_memory(size: int, dimensions: int, actions: np.ndarray) -> Memory:
    """Return a memory with room for so many transitions."""
    states = np.zeros((2, size, dimensions))
    cells = np.zeros((2, size), np.int32)
    return Memory(
        states[0],
        states[1],
        np.zeros(size, np.int32),
        np.zeros(size),
        np.zeros(size, np.int8),
        cells[0],
        cells[1],
        actions,
        np.zeros(2, np.int64),
    )


def copy_memory(memory: Memory) -> Memory:
    """Return a copy that shares nothing with the original but the actions, which never change."""
    return Memory(*(array if array is memory.actions else array.copy() for array in memory))


def first_partition(dimensions: int, actions: np.ndarray, discrete: bool, q: float, ranks: np.ndarray) -> Partition:
    """Return a partition of one cell with a ball for each action and the estimate `q`.

    Of equal estimates the ball with the higher rank wins; a ball that splits hands its rank down.
    """
    count = len(actions)
    balls, cells = records(count, BALL), records(1, CELL)
    balls["next"] = [*range(1, count), NONE]
    balls["q"], balls["rank"] = q, ranks
    cells["children"] = cells["parent"] = NONE
    cells["best"] = cells["own"] = np.argmax(ranks)
    counts = np.array([count, 1, count, 0])
    high = actions + 1.0 if discrete else actions.copy()
    return Partition(balls, actions.copy(), high, cells, counts, tuple(range(dimensions)))


# ---------------------------------------------------------------------------------------------------------------------
# Cells and balls


@inlined
def descend(cells, axes, cell, x):
    """The leaf cell that holds the state `x`, looked for below a cell that holds it."""
    children = cells[cell].children
    shift = BITS - cells[cell].depth
    while children != NONE:
        half = 0
        for i in range(len(axes)):
            digits = min(int(math.floor(x[i] * 2.0**BITS)) + 2**BITS, 2 ** (BITS + 1) - 1)
            half |= ((digits >> shift) & 1) << i
        cell = children + half
        children = cells[cell].children
        shift -= 1
    return cell


@inlined
def ball_of(balls, lows, cells, cell, action):
    """The ball of a leaf cell for an action."""
    ball = cells[cell].first
    while True:
        same = True
        for i in range(action.size):
            same = same and lows[ball, i] == action[i]
        if same:
            return ball
        ball = balls[ball].next


@inner
def visits_of(balls, cells, cell):
    """How often a leaf cell was visited, which includes the visits it inherited."""
    total = 0
    ball = cells[cell].first
    while ball != NONE:
        total += balls[ball].visits
        ball = balls[ball].next
    return total


@entry
def refine(p, cell, discrete, rng):
    """Split all balls of a leaf cell: each half of it has a ball for each action again.  Return the partition."""
    ball = p.cells[cell].first
    while ball != NONE:
        after = p.balls[ball].next
        p = split(p, ball, discrete, False, rng)
        ball = after
    return p


@entry
def refine_to(p, depth, discrete, rng):
    """Split every cell down to a depth: a fixed grid.  Return the partition."""
    cell = 0
    while cell < p.counts[CELLS]:
        if p.cells[cell].depth < depth:
            p = refine(p, cell, discrete, rng)
        cell += 1
    return p


# ---------------------------------------------------------------------------------------------------------------------
# Learning


@inlined
def share_of_random(replayer, taken):
    """ε_t = max(ε, exp(-t / T)), the share of random actions after t samples."""
    return max(replayer.epsilon, math.exp(-taken / replayer.decay))


@entry
def choose_action(p, memory, replayer, cell, rng):
    """The place of the next action: a random one with probability ε_t, else that of the cell's best ball."""
    count = len(memory.actions)
    if rng.random() < share_of_random(replayer, memory.counts[TAKEN]):
        return int(rng.random() * count)
    best = p.cells[cell].best
    for a in range(count):
        if ball_of(p.balls, p.low, p.cells, cell, memory.actions[a]) == best:
            return a
    return 0


@entry
def remember(p, memory, x, a, reward, y, end, cell):
    """Put a transition into the memory; return the leaf cell of the next state."""
    at = memory.counts[TAKEN] % len(memory.reward)
    memory.counts[TAKEN] += 1
    for i in range(x.size):
        memory.x[at, i], memory.y[at, i] = x[i], y[i]
    memory.action[at], memory.reward[at], memory.end[at] = a, reward, end
    memory.cell_x[at] = cell
    after = descend(p.cells, p.axes, 0, y)
    memory.cell_y[at] = after
    return after


@inner
def target_of(p, memory, replayer, at, cell, newest):
    """G, what transition `at` says of its cell and action."""
    cells, axes = p.cells, p.axes
    action, total, discount, steps = memory.action[at], memory.reward[at], replayer.gamma, 1
    after = descend(cells, axes, memory.cell_y[at], memory.y[at])
    memory.cell_y[at] = after
    while after == cell and steps < replayer.steps and at != newest and memory.end[at] == GOES_ON:
        following = at + 1 if at + 1 < len(memory.reward) else 0
        if memory.action[following] != action:
            break
        at = following
        total += discount * memory.reward[at]
        discount *= replayer.gamma
        steps += 1
        after = descend(cells, axes, memory.cell_y[at], memory.y[at])
        memory.cell_y[at] = after
    if memory.end[at] == TERMINAL and replayer.terminal:
        return total
    return total + discount * p.balls[cells[after].best].q


@entry
def learn_again(p, memory, replayer, rng):
    """Learn from the newest transition, and from some drawn from the memory, each as likely as the others."""
    size, taken = len(memory.reward), memory.counts[TAKEN]
    newest, kept = (taken - 1) % size, min(taken, size)
    balls, cells, halves = p.balls, p.cells, 2 ** len(p.axes)
    for i in range(replayer.replays + 1):
        at = newest if i == 0 else int(rng.random() * kept)
        cell = descend(cells, p.axes, memory.cell_x[at], memory.x[at])
        memory.cell_x[at] = cell
        ball = ball_of(balls, p.low, cells, cell, memory.actions[memory.action[at]])
        target = target_of(p, memory, replayer, at, cell, newest)
        update(balls, cells, halves, ball, (1.0 - replayer.alpha) * balls[ball].q + replayer.alpha * target)


@entry
def count_visit(p, replayer, cell, action, discrete, rng):
    """Count a visit of a leaf cell, which splits when it has had `visits` of its own.  Return the partition."""
    balls, cells = p.balls, p.cells
    balls[ball_of(balls, p.low, cells, cell, action)].visits += 1
    depth = cells[cell].depth
    # The balls of a cell inherit the visits of the one it is a half of, which split after `visits` times its depth + 1.
    if depth < replayer.depth and visits_of(balls, cells, cell) >= replayer.visits * (depth + 1):
        p = refine(p, cell, discrete, rng)
    return p


@either
def train_again(world, state, start, p, learner, replayer, memory, rng, x, y, action):
    """Play one episode, and learn after each of its steps; return the partition, the sum of rewards, the steps."""
    total = 0.0
    h = 0
    end = GOES_ON
    reset(world, state, start, x)
    cell = descend(p.cells, p.axes, 0, x)
    while end == GOES_ON:
        a = choose_action(p, memory, replayer, cell, rng)
        action[:] = memory.actions[a]
        reward, over = step(world, state, action, y)
        total += reward
        h += 1
        if over == ENDED:
            end = TERMINAL
        elif over or h == learner.limit or memory.counts[TAKEN] + 1 == memory.counts[STOP]:
            end = CUT_OFF
        after = remember(p, memory, x, a, reward, y, end, cell)
        p = count_visit(p, replayer, cell, memory.actions[a], learner.discrete, rng)
        learn_again(p, memory, replayer, rng)
        x, y = y, x
        cell = descend(p.cells, p.axes, after, x)
    return p, total, h


@either
def advance_again(world, starts, N, run, rng):
    """Play as many episodes as there are rows in `starts`: training episodes, each followed by N rollouts.

    The rollouts only report.  As `advance` of `spaql.loop` it may stop and go on between any two episodes.
    """
    learner, replayer, p, memory, status = run.learner, run.replayer, run.p, run.memory, run.status
    state, x, y, action = room(world), np.empty(len(p.axes)), np.empty(len(p.axes)), np.empty(p.low.shape[1])
    for i in range(len(starts)):
        if status["episode"][0] == 0:
            status["tau"][0] = share_of_random(replayer, memory.counts[TAKEN])
            p, total, steps = train_again(world, state, starts[i], p, learner, replayer, memory, rng, x, y, action)
            status["steps"][0] = steps
            if N == 0:
                status["total"][0] = total
        else:
            total, steps = rollout(world, state, starts[i], p, learner, False, rng, x, action)
            status["total"][0] += total
            status["evaluation_steps"][0] += steps
        status["episode"][0] += 1
        if status["episode"][0] > N:
            write_row(p, max(1, N), status, run.history)
    return p


@entry
def write_row(p, episodes, statuses, history):
    """End an iteration: write what it gave to the history."""
    status = statuses[0]
    row = history[status.iteration]
    row.rewards = row.evaluations = status.best = status.total / episodes
    row.arms = row.trainee_arms = p.counts[ARMS]
    row.tau = status.tau
    row.steps = status.steps
    row.evaluation_steps = status.evaluation_steps
    status.evaluation_steps = 0
    status.iteration += 1
    status.episode = 0
    status.total = 0.0
