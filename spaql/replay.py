"""SPAQL-R: estimates on tiles, actions on one partition of the states, and every step learned from many times.

The estimate of an action is the value of the state, which all actions share, and an advantage of its own,

    Q(x, a) = V(x) + U(x, a),    V(x) = v_1(x) + ... + v_n(x),    U(x, a) = u_1(x, a) + ... + u_n(x, a),

where v_k(x) and u_k(x, a) are weights of the tile that holds x in the k-th of n tilings (see `spaql.tiles`).  The
action is chosen by the cell c of x (see `spaql.bisection`), whose A(c, a) is a running mean of U(x, a) over the states
in it that are learned from: the best action is the same in all of a cell, so the policy is a decision tree.  A cell
that has had `visits` visits is halved across the axis along which it is widest, as a share of all states seen so far;
what no state has reached yet is no part of its width.

A *transition* is (x, a, r, y), a state, the action taken there, the reward and the next state; the memory keeps the
last of them.  Learning from transition t follows its episode for m steps, as long as each next action is the one now
thought best, and at most `steps`,

    target  G = r_t + γ r_{t+1} + ... + γ^(m-1) r_{t+m-1} + γ^m Q(x_{t+m}, a*),    a* the best of the cell of x_{t+m},
    update  v_k(x_t) ← v_k(x_t) + (α/n) δ,    u_k(x_t, a_t) ← u_k(x_t, a_t) + β (α/n) δ,    δ = G - Q(x_t, a_t),
    then    A(c, a) ← A(c, a) + α (U(x_t, a) - A(c, a)) for every action a, with c the cell of x_t.

The last term is zero at a terminal state (and only there: an episode that is cut off has a future), and it is cut to
what the rewards met so far allow, Σ γ^k r with the lowest and the highest r: without that, weights can grow beyond all
bounds.  Without tiles, Q(x, a) = A(c, a), which learns from δ itself.
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.bisection import Bisection, box_around, cut, first_best, leaf_below, widest
from spaql.compiling import borrowed, either, entry, inlined
from spaql.rules import Learner
from spaql.systems import ENDED, reset, room, step
from spaql.tiles import Tiles, active, sum_of

TAKEN, STOP = range(2)  # of a memory's counts: samples so far, and after how many learning stops
GOES_ON, CUT_OFF, TERMINAL = range(3)  # how an episode stands after a transition
V, U = 0, 1  # columns of the weights: of the value, and from where on those of the actions' advantages stand


class Replayer(NamedTuple):
    """The parameters of SPAQL-R, in the form compiled code takes."""

    gamma: float  # γ, the discount
    alpha: float  # α, the learning rate; 0 for SPAQL's, (H + 1)/(H + n)
    beta: float  # β, how much of it is that of the advantages
    epsilon: float  # ε, the least share of random actions
    decay: float  # after how many samples the share of random actions has fallen to 1/e of its first value, 1
    replays: int  # transitions of the memory to learn from after each step, besides its own
    visits: int  # of a cell until it is cut; 0 for SPAQL's rule
    steps: int  # the greatest m
    terminal: bool  # whether a terminal state has the value zero
    reach: float  # Σ γ^k
    tiles: Tiles


class Memory(NamedTuple):
    """The last transitions: a ring, in which number t stands at t modulo its size.  And the weights of the tiles."""

    x: np.ndarray  # states, in the standard space, one row per transition
    y: np.ndarray  # the next ones
    action: np.ndarray  # the place of the action among those to choose from
    reward: np.ndarray
    end: np.ndarray  # GOES_ON, CUT_OFF or TERMINAL
    cell_x: np.ndarray  # a cell that holds x: the leaf, or one that was cut since
    cell_y: np.ndarray
    tiles_x: np.ndarray  # the tiles that hold x
    tiles_y: np.ndarray
    counts: np.ndarray
    rewards: np.ndarray  # the lowest and the highest so far, and zero
    weights: np.ndarray  # of the tiles, one row each: v, and u of each action

    def arrays(self) -> dict[str, np.ndarray]:
        """Return what a file keeps."""
        kept = min(int(self.counts[TAKEN]), len(self.reward))
        arrays = {f"memory_{name}": getattr(self, name)[:kept] for name in KEPT}
        return arrays | {
            "memory_taken": self.counts[[TAKEN]],
            "memory_rewards": self.rewards,
            "memory_weights": self.weights,
        }

    def restored(self, arrays: dict, size: int, actions: int) -> "Memory":
        """Return this empty memory filled with what a file has kept, checked; `size` is the most it may hold."""
        from spaql.files import check_array
        from spaql.memory import with_room

        memory = self
        taken = int(check_array(arrays, "memory_taken", np.int64, 1)[0])
        kept = min(taken, size)
        if kept != len(arrays["memory_reward"]):
            raise ValueError("its memory is not as long as it says")
        memory = with_room(memory, kept, size)
        for name in KEPT:
            into = getattr(memory, name)
            read = check_array(arrays, f"memory_{name}", into.dtype, kept)
            if read.shape[1:] != into.shape[1:] or not np.all(np.isfinite(read)):
                raise ValueError(f"its memory has a wrong {name}")
            into[:kept] = read
        inside = all(np.all(np.abs(states) <= 1.0) for states in (memory.x, memory.y))
        known = np.all((memory.action >= 0) & (memory.action < actions))
        rewards = check_array(arrays, "memory_rewards", float, 2)
        met = memory.reward.min(initial=0.0), memory.reward.max(initial=0.0)
        forgot = taken > kept  # whatever rewards there were before
        known &= bool(np.isfinite(rewards).all() and rewards[0] <= met[0] and met[1] <= rewards[1])
        known &= forgot or tuple(rewards) == met
        weights = check_array(arrays, "memory_weights", float, len(memory.weights))
        known &= weights.shape == memory.weights.shape and bool(np.isfinite(weights).all())
        if taken < 0 or not inside or not known or not np.all((memory.end >= GOES_ON) & (memory.end <= TERMINAL)):
            raise ValueError("its memory holds what no learning gives")
        memory.counts[TAKEN], memory.rewards[:], memory.weights[:] = taken, rewards, weights
        return memory


KEPT = ("x", "y", "action", "reward", "end")  # what a file needs of a transition; cells and tiles are found again


class ReplayRun(NamedTuple):
    """What the loop works on."""

    learner: Learner
    replayer: Replayer
    tree: Bisection
    memory: Memory
    status: np.ndarray
    history: np.ndarray


def new_memory(size: int, dimensions: int, tiles: Tiles, actions: int, value: float) -> Memory:
    """Return a memory with room for so many transitions, in which all states have the same value."""
    states = np.zeros((2, size, dimensions))
    cells = np.zeros((2, size), np.int32)
    numbers = np.zeros((2, size, tiles.tilings), np.int32)
    weights = np.zeros((tiles.numbers, 1 + actions))
    weights[:, V] = value / max(1, tiles.tilings)
    return Memory(
        states[0],
        states[1],
        np.zeros(size, np.int32),
        np.zeros(size),
        np.zeros(size, np.int8),
        cells[0],
        cells[1],
        numbers[0],
        numbers[1],
        np.zeros(2, np.int64),
        np.zeros(2),
        weights,
    )


def copy_memory(memory: Memory) -> Memory:
    """Return a copy that shares nothing with the original."""
    return Memory(*(array.copy() for array in memory))


def most_nodes(tree: Bisection, steps: int) -> int:
    """Return how many nodes there can be after so many steps more.

    Each step may cut: a cell that was a point has gathered many visits when states begin to differ.
    """
    return int(tree.nodes[0]) + 2 * steps


# ---------------------------------------------------------------------------------------------------------------------
# Learning.  Compiled code counts references whenever it takes an array out of a tuple, so the arrays are borrowed.


@inlined
def share_of_random(replayer, taken):
    """ε_t = max(ε, exp(-t / T)), the share of random actions after t samples."""
    return max(replayer.epsilon, math.exp(-taken / replayer.decay))


@entry
def choose_action(tree, memory, replayer, cell, rng):
    """The place of the next action: a random one with probability ε_t, else the best of the cell."""
    if rng.random() < share_of_random(replayer, memory.counts[TAKEN]):
        return int(rng.random() * len(tree.actions))
    return int(tree.best[cell])


@entry
def find_tiles(tiles, states, found):
    """Write the tiles that hold each of many states."""
    for i in range(len(states)):
        active(tiles, states[i], found, i)


@inlined
def estimate(weights, numbers, at, q, cell, a):
    """Q(x, a); there may be no tiles."""
    if numbers.shape[1] == 0:
        return q[cell, a]
    return sum_of(weights, numbers, at, V) + sum_of(weights, numbers, at, U + a)


@entry
def remember(memory, tiles, x, a, reward, y, end, cell):
    """Put a transition from a leaf into the memory; return its place there."""
    at = memory.counts[TAKEN] % len(memory.reward)
    memory.counts[TAKEN] += 1
    for i in range(x.shape[1]):
        memory.x[at, i], memory.y[at, i] = x[0, i], y[0, i]
    memory.action[at], memory.reward[at], memory.end[at] = a, reward, end
    memory.cell_x[at], memory.cell_y[at] = cell, 0
    active(tiles, x[0], memory.tiles_x, at)
    active(tiles, y[0], memory.tiles_y, at)
    memory.rewards[0], memory.rewards[1] = min(memory.rewards[0], reward), max(memory.rewards[1], reward)
    return at


@entry
def count_visit(tree, replayer, x, cell, a):
    """Count a visit to a leaf, which is cut when it has had enough of its own.

    Cells inherit their visits.  By SPAQL's rule a cell of radius 2^-n has 4^n, and all of the space counts as seen.
    """
    tree.visits[cell, a] += 1
    axes, visits, depth = 0, 0, tree.depth[cell]
    for i in range(x.shape[1]):
        tree.seen[0, i], tree.seen[1, i] = min(tree.seen[0, i], x[0, i]), max(tree.seen[1, i], x[0, i])
        axes += tree.seen[1, i] > tree.seen[0, i]
    for b in range(tree.visits.shape[1]):
        visits += tree.visits[cell, b]
    if visits < (4.0 ** (depth / axes) if replayer.visits == 0 else replayer.visits * (depth + 1)):
        return
    box = box_around(tree, x, 0)
    across = widest(box, tree.seen)
    if across >= 0:
        cut(tree, cell, across, (box[0, across] + box[1, across]) / 2.0)


@entry
def learn(tree, memory, learner, replayer, rng):
    """Learn from the newest transition, and from some drawn from the memory, each as likely as the others."""
    size, taken = len(memory.reward), memory.counts[TAKEN]
    newest, kept = (taken - 1) % size, min(taken, size)
    child, axis, border, q, best = map_tree(tree)
    visits, weights = borrowed(tree.visits), borrowed(memory.weights)
    tiles_x, tiles_y = borrowed(memory.tiles_x), borrowed(memory.tiles_y)
    x, y, cell_x, cell_y = borrowed(memory.x), borrowed(memory.y), borrowed(memory.cell_x), borrowed(memory.cell_y)
    action, reward, end = borrowed(memory.action), borrowed(memory.reward), borrowed(memory.end)
    gamma = replayer.gamma
    lowest, highest = replayer.reach * memory.rewards[0], replayer.reach * memory.rewards[1]
    for n in range(replayer.replays + 1):
        at = newest if n == 0 else int(rng.random() * kept)
        cell = leaf_below(child, axis, border, cell_x[at], x, at)
        cell_x[at] = cell
        last, total, discount = at, reward[at], gamma
        for _ in range(1, replayer.steps):
            if last == newest or end[last] != GOES_ON:
                break
            following = last + 1 if last + 1 < size else 0
            there = leaf_below(child, axis, border, cell_x[following], x, following)
            cell_x[following] = there
            if action[following] != best[there]:
                break
            last = following
            total += discount * reward[last]
            discount *= gamma
        if end[last] != TERMINAL or not replayer.terminal:
            there = leaf_below(child, axis, border, cell_y[last], y, last)
            cell_y[last] = there
            value = estimate(weights, tiles_y, last, q, there, best[there])
            total += discount * min(highest, max(lowest, value))
        a = action[at]
        alpha = replayer.alpha
        if alpha == 0.0:
            alpha = (learner.H + 1.0) / (learner.H + visits[cell, a])
        delta = total - estimate(weights, tiles_x, at, q, cell, a)
        tilings = tiles_x.shape[1]
        if tilings == 0:
            q[cell, a] += alpha * delta
        else:
            for i in range(tilings):
                weights[tiles_x[at, i], V] += alpha / tilings * delta
                weights[tiles_x[at, i], U + a] += replayer.beta * alpha / tilings * delta
            for b in range(q.shape[1]):
                q[cell, b] += alpha * (sum_of(weights, tiles_x, at, U + b) - q[cell, b])
        best[cell] = first_best(q, cell)


@inlined
def map_tree(tree):
    """The arrays that lead to a cell and to its best action."""
    return borrowed(tree.child), borrowed(tree.axis), borrowed(tree.border), borrowed(tree.q), borrowed(tree.best)


@either
def train(world, state, start, tree, learner, replayer, memory, rng, x, y, action):
    """Play one episode, and learn after each of its steps; return the sum of rewards and the number of steps."""
    total = 0.0
    h = 0
    end = GOES_ON
    reset(world, state, start, x[0])
    while end == GOES_ON:
        cell = leaf_below(tree.child, tree.axis, tree.border, 0, x, 0)
        a = choose_action(tree, memory, replayer, cell, rng)
        action[:] = tree.actions[a]
        reward, over = step(world, state, action, y[0])
        total += reward
        h += 1
        if over == ENDED:
            end = TERMINAL
        elif over or h == learner.limit or memory.counts[TAKEN] + 1 == memory.counts[STOP]:
            end = CUT_OFF
        remember(memory, replayer.tiles, x, a, reward, y, end, cell)
        count_visit(tree, replayer, x, cell, a)
        learn(tree, memory, learner, replayer, rng)
        x, y = y, x
    return total, h


@either
def advance(world, starts, N, run, rng):
    """Play as many episodes as there are rows in `starts`: training episodes, each followed by N rollouts.

    The rollouts only report.  As `advance` of `spaql.loop` it may stop and go on between any two episodes.
    """
    learner, replayer, tree, memory, status = run.learner, run.replayer, run.tree, run.memory, run.status
    dimensions = tree.seen.shape[1]
    state, action = room(world), np.empty(tree.actions.shape[1])
    x, y = np.empty((1, dimensions)), np.empty((1, dimensions))
    for i in range(len(starts)):
        if status["episode"][0] == 0:
            status["tau"][0] = share_of_random(replayer, memory.counts[TAKEN])
            total, steps = train(world, state, starts[i], tree, learner, replayer, memory, rng, x, y, action)
            status["steps"][0] = steps
            if N == 0:
                status["total"][0] = total
        else:
            total, steps = follow(world, state, starts[i], tree, learner, x, action)
            status["total"][0] += total
            status["evaluation_steps"][0] += steps
        status["episode"][0] += 1
        if status["episode"][0] > N:
            write_row(tree, max(1, N), status, run.history)


@either
def follow(world, state, start, tree, learner, x, action):
    """Play one episode with the greedy policy; return the sum of rewards and the number of steps."""
    total = 0.0
    h = 0
    over = False
    reset(world, state, start, x[0])
    while h < learner.limit and not over:
        action[:] = tree.actions[tree.best[leaf_below(tree.child, tree.axis, tree.border, 0, x, 0)]]
        reward, ended = step(world, state, action, x[0])
        total += reward
        h += 1
        over = ended != 0
    return total, h


@either
def follow_all(world, starts, tree, learner, central, rng, rewards, steps):
    """Write the sum of rewards and the number of steps of an episode from each row of `starts`, as `loop.rollouts`."""
    state, x, action = room(world), np.empty((1, tree.seen.shape[1])), np.empty(tree.actions.shape[1])
    for i in range(len(starts)):
        rewards[i], steps[i] = follow(world, state, starts[i], tree, learner, x, action)


@entry
def act(tree, points, actions):
    """Write the greedy policy's action at each of many points of the standard space."""
    for i in range(len(points)):
        actions[i] = tree.actions[tree.best[leaf_below(tree.child, tree.axis, tree.border, 0, points, i)]]


@entry
def write_row(tree, episodes, statuses, history):
    """End an iteration: write what it gave to the history."""
    status = statuses[0]
    row = history[status.iteration]
    row.rewards = row.evaluations = status.best = status.total / episodes
    row.arms = row.trainee_arms = (tree.nodes[0] + 1) // 2 * len(tree.actions)
    row.tau = status.tau
    row.steps = status.steps
    row.evaluation_steps = status.evaluation_steps
    status.evaluation_steps = 0
    status.iteration += 1
    status.episode = 0
    status.total = 0.0
