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

from spaql.compiling import borrowed, either, entry, inlined, inner, records
from spaql.loop import rollout
from spaql.partition import ARMS, BALL, BITS, CELL, CELLS, NONE, Partition, digits, locate, split, update
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


# Compiled code counts references whenever it takes an array out of a tuple or a row out of an array, so the functions
# that an update calls are handed the arrays, and the number of the row.


@inlined
def leaf_below(cells, axes, cell, states, at):
    """The leaf cell that holds a state of the memory, looked for below a cell that holds it."""
    children = cells[cell].children
    shift = BITS - int(cells[cell].depth)
    while children > NONE:
        half = 0
        for i in range(len(axes)):
            half |= ((digits(states[at, i]) >> shift) & 1) << i
        cell = children + half
        children = cells[cell].children
        shift -= 1
    return cell


@inlined
def is_action(lows, ball, actions, a):
    """Whether a ball is that of action number `a`."""
    same = True
    for i in range(actions.shape[1]):
        same = same and lows[ball, i] == actions[a, i]
    return same


@inlined
def ball_of(balls, lows, cells, cell, actions, a):
    """The ball of a leaf cell for action number `a`."""
    ball = cells[cell].first
    while not is_action(lows, ball, actions, a):
        ball = balls[ball].next
    return ball


@inner
def visits_of(balls, cells, cell):
    """How often a leaf cell was visited, which includes the visits it inherited."""
    total = 0
    ball = cells[cell].first
    while ball > NONE:
        total += balls[ball].visits
        ball = balls[ball].next
    return total


@entry
def refine(p, cell, discrete, rng):
    """Split all balls of a leaf cell: each half of it has a ball for each action again.  Return the partition."""
    ball = p.cells[cell].first
    while ball > NONE:
        after = p.balls[ball].next
        p = split(p, ball, discrete, False, rng)
        ball = after
    return p


@entry
def refine_to(p, depth, discrete, rng):
    """Split every cell down to a depth: a fixed grid.  Return the partition."""
    for level in range(depth):
        for cell in range(p.counts[CELLS]):
            if p.cells[cell].depth == level:
                p = refine(p, cell, discrete, rng)
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
    a = 0
    while not is_action(p.low, p.cells[cell].best, memory.actions, a):
        a += 1
    return a


@entry
def remember(memory, x, a, reward, y, end, cell):
    """Put a transition from a leaf cell into the memory."""
    at = memory.counts[TAKEN] % len(memory.reward)
    memory.counts[TAKEN] += 1
    for i in range(x.size):
        memory.x[at, i], memory.y[at, i] = x[i], y[i]
    memory.action[at], memory.reward[at], memory.end[at] = a, reward, end
    memory.cell_x[at], memory.cell_y[at] = cell, 0


@inlined
def replayed_target(balls, cells, axes, replayer, y, cell_y, action, reward, end, at, cell, newest):
    """G, what transition `at` of the memory says of its cell and action."""
    a, total, discount, steps = action[at], reward[at], replayer.gamma, 1
    after = leaf_below(cells, axes, cell_y[at], y, at)
    cell_y[at] = after
    while after == cell and steps < replayer.steps and at != newest and end[at] == GOES_ON:
        following = at + 1 if at + 1 < len(reward) else 0
        if action[following] != a:
            break
        at = following
        total += discount * reward[at]
        discount *= replayer.gamma
        steps += 1
        after = leaf_below(cells, axes, cell_y[at], y, at)
        cell_y[at] = after
    if end[at] == TERMINAL and replayer.terminal:
        return total
    return total + discount * balls[cells[after].best].q


@entry
def learn_again(p, memory, replayer, rng):
    """Learn from the newest transition, and from some drawn from the memory, each as likely as the others."""
    size, taken = len(memory.reward), memory.counts[TAKEN]
    newest, kept = (taken - 1) % size, min(taken, size)
    balls, cells, lows, axes, halves = borrowed(p.balls), borrowed(p.cells), borrowed(p.low), p.axes, 2 ** len(p.axes)
    x, y, cell_x, cell_y = borrowed(memory.x), borrowed(memory.y), borrowed(memory.cell_x), borrowed(memory.cell_y)
    action, actions, reward = borrowed(memory.action), borrowed(memory.actions), borrowed(memory.reward)
    end, alpha = borrowed(memory.end), replayer.alpha
    for i in range(replayer.replays + 1):
        at = newest if i == 0 else int(rng.random() * kept)
        cell = leaf_below(cells, axes, cell_x[at], x, at)
        cell_x[at] = cell
        ball = ball_of(balls, lows, cells, cell, actions, action[at])
        target = replayed_target(balls, cells, axes, replayer, y, cell_y, action, reward, end, at, cell, newest)
        update(balls, cells, halves, ball, (1.0 - alpha) * balls[ball].q + alpha * target)


@entry
def count_visit(p, replayer, cell, actions, a, discrete, rng):
    """Count a visit of a leaf cell, which splits when it has had `visits` of its own.  Return the partition."""
    balls, cells = p.balls, p.cells
    balls[ball_of(balls, p.low, cells, cell, actions, a)].visits += 1
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
    while end == GOES_ON:
        cell = locate(p.cells, p.axes, 0, x)
        a = choose_action(p, memory, replayer, cell, rng)
        action[:] = memory.actions[a]
        reward, over = step(world, state, action, y)
        total += reward
        h += 1
        if over == ENDED:
            end = TERMINAL
        elif over or h == learner.limit or memory.counts[TAKEN] + 1 == memory.counts[STOP]:
            end = CUT_OFF
        remember(memory, x, a, reward, y, end, cell)
        p = count_visit(p, replayer, cell, memory.actions, a, learner.discrete, rng)
        learn_again(p, memory, replayer, rng)
        x, y = y, x
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
