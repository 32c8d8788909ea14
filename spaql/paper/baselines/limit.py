"""The limit: the greatest return that an episode can have, by dynamic programming on a grid over the state.

Backward induction over the steps of an episode, h = H-1, …, 0, without a discount:

    V_h(s) = max_a [ r(s, a) + V_{h+1}(s') ],    V_H = 0,    V = 0 where the episode has ended,

with V between the nodes of the grid by multilinear interpolation.  The policy that looks one step ahead with these
values then *plays* episodes of the compiled system: what it earns no grid can flatter.  Halving the grid says how much
a finer one might add.
"""

import itertools
from typing import NamedTuple

import gymnasium as gym
import numpy as np

from spaql.compiling import cached_jit, python_or_jit
from spaql.paper.engine.algorithms import Trained
from spaql.paper.engine.job import seeds
from spaql.rules import HISTORY
from spaql.systems import begin, compiled_world, episode_limit, make_env, move, space_of


class Grid(NamedTuple):
    """Evenly spaced nodes over the variables of a state, the last of which varies fastest."""

    low: np.ndarray
    step: np.ndarray  # between nodes
    nodes: np.ndarray  # along each axis
    period: np.ndarray  # of each variable, zero if it has none; the first and the last node are then the same state
    corners: np.ndarray  # how far the nodes at the corners of a cell are from the first of them, in memory


def make_grid(low, high, nodes, period):
    """Return a grid with so many nodes along each axis."""
    low, high, nodes, period = (np.array(given) for given in (low, high, nodes, period))
    strides = np.append(np.cumprod(nodes[:0:-1])[::-1], 1)
    corners = np.array([np.dot(corner, strides) for corner in itertools.product((0, 1), repeat=len(nodes))])
    return Grid(low.astype(float), (high - low) / (nodes - 1), nodes, period.astype(float), corners)


@python_or_jit
def locate(grid, place, shares):
    """The first node of the cell that holds a place; write to `shares` how far along each axis of the cell it is."""
    at = 0
    for i in range(len(grid.nodes)):
        u = place[i] - grid.low[i]
        if grid.period[i] > 0.0:
            u -= grid.period[i] * np.floor(u / grid.period[i])
        u = min(max(u / grid.step[i], 0.0), grid.nodes[i] - 1.0)  # beyond the grid is as on its rim
        first = min(int(u), grid.nodes[i] - 2)
        shares[i] = u - first
        at = at * grid.nodes[i] + first
    return at


@python_or_jit
def between(corners, values, at, shares):
    """The value in a cell, by multilinear interpolation."""
    total, dimensions = 0.0, len(shares)
    for corner in range(len(corners)):
        weight = 1.0
        for i in range(dimensions):
            weight *= shares[i] if (corner >> (dimensions - 1 - i)) & 1 else 1.0 - shares[i]
        total += weight * values[at + corners[corner]]
    return total


@python_or_jit
def transitions(world, grid, actions, cells, shares, rewards):
    """Write which cell each action leads to from each node, -1 if the episode ends, where in it, and what it earns."""
    dimensions = len(grid.nodes)
    start, state, action = np.empty(dimensions), world.room(), np.empty(1)
    for node in range(len(cells)):
        rest = node
        for j in range(dimensions):
            i = dimensions - 1 - j
            start[i] = grid.low[i] + grid.step[i] * (rest % grid.nodes[i])
            rest //= grid.nodes[i]
        for a in range(len(actions)):
            begin(world.constants, start, state)
            action[0] = actions[a]
            rewards[node, a], over = move(world.constants, state, action)
            cells[node, a] = -1 if over else locate(grid, state, shares[node, a])


@cached_jit
def back_up(corners, cells, shares, rewards, after, before):
    """Write the values one step earlier."""
    for node in range(len(cells)):
        best = -np.inf
        for a in range(rewards.shape[1]):
            value = rewards[node, a]
            if cells[node, a] >= 0:
                value += between(corners, after, cells[node, a], shares[node, a])
            best = max(best, value)
        before[node] = best


@python_or_jit
def play(world, grid, actions, values, every, limit, depth, starts, returns):
    """Play an episode from each start; each action is the first of the best `depth` ones.

    What comes after them is worth what `values` says, which has every so-manyth step's.
    """
    state, ahead = world.room(), world.room()
    action, shares, count = np.empty(1), np.empty(len(grid.nodes)), len(actions)
    for episode in range(len(starts)):
        begin(world.constants, starts[episode], state)
        total, over, h = 0.0, False, 0
        while h < limit and not over:
            best, chosen = -np.inf, 0
            for plan in range(count**depth):
                ahead[:] = state
                value, ended, steps, rest = 0.0, False, 0, plan
                while steps < min(depth, limit - h) and not ended:
                    action[0] = actions[rest % count]
                    reward, ended = move(world.constants, ahead, action)
                    value += reward
                    rest //= count
                    steps += 1
                if not ended:
                    at = locate(grid, ahead, shares)
                    value += between(grid.corners, values[(h + steps) // every], at, shares)
                if value > best:
                    best, chosen = value, plan % count
            action[0] = actions[chosen]
            reward, over = move(world.constants, state, action)
            total += reward
            h += 1
        returns[episode] = total


GRIDS = {  # what `find_limit` takes for each system; CartPole's limit is its number of steps
    "Pendulum-v1": {"nodes": (201, 201), "actions": 21},
    "MountainCar-v0": {"nodes": (401, 401)},
    "MountainCarContinuous-v0": {"nodes": (201, 201), "actions": 21},
    "Acrobot-v1": {
        "nodes": (45, 45, 41, 41),  # along each variable of the state
        "ends": {"theta_1_dot": 7.0, "theta_2_dot": 14.0},  # the speeds' own ranges are wider than good policies need
        "stored": 1,  # of how many steps the values are kept; steps in between use an earlier one's
        "depth": 5,  # steps that the policy looks ahead, which makes up for a coarse grid
    },
}


def find_limit(system, nodes, actions=2, ends=None, episodes=1000, seed=0, stored=200, depth=1):
    """Return the returns of episodes under the best policy of a registered system with one action variable."""
    env = make_env(system)
    world, limit, box = compiled_world(env, space_of(env)), episode_limit(env), env.action_space
    discrete = isinstance(box, gym.spaces.Discrete)
    chosen = np.arange(float(box.n)) if discrete else np.linspace(box.low[0], box.high[0], actions)
    variables = world.system.state
    wide = {variable.name: variable.ends for variable in variables}
    wide |= {name: (-end, end) for name, end in (ends or {}).items()}
    low, high = zip(*(wide[variable.name] for variable in variables), strict=True)
    grid = make_grid(low, high, nodes, [variable.period for variable in variables])
    size = int(np.prod(nodes)), len(chosen)
    cells, rewards = np.empty(size, np.int32), np.empty(size, np.float32)
    shares = np.empty((*size, len(nodes)), np.float32)
    world.call(transitions, grid, chosen, cells, shares, rewards)
    every = -(-limit // stored)
    values = np.zeros((limit // every + 1, size[0]), np.float32)
    after, before = np.zeros(size[0], np.float32), np.empty(size[0], np.float32)
    for h in range(limit - 1, -1, -1):
        back_up(grid.corners, cells, shares, rewards, after, before)
        after, before = before, after
        if h % every == 0:
            values[h // every] = after
        if np.array_equal(after, before):  # as it stays for all earlier steps
            values[: h // every + 1] = after
            break
    returns = np.empty(episodes)
    starts = world.draw(np.random.default_rng(seed), episodes)
    world.call(play, grid, chosen, values, every, limit, depth, starts, returns)
    return returns


def compute(job):
    """Find the limit of a system; with the job's parameters in place of those above, as two actions or half a grid."""
    given = GRIDS[job.system] | dict(job.parameters)
    returns = find_limit(job.system, episodes=job.fresh, seed=seeds(job)[1], **given)
    history = np.zeros(1, HISTORY)
    history["rewards"] = history["evaluations"] = returns.mean()
    return Trained(history, returns)
