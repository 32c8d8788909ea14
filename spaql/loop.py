"""The training loop of AQL, SPAQL and SPAQL-TS: episodes to learn from, rollouts to evaluate, and what they decide.

The loop is written once, for any world (see `spaql.systems`): on a compiled system the whole run is machine code, on
any other Gymnasium environment the same lines run as plain Python.
"""

from typing import NamedTuple

import numpy as np

from spaql.compiling import cached_jit, non_owning, python_or_jit
from spaql.partition import ARMS, SPLITS, Partition, best_ball, copy, draw_action, has_room, restore, split
from spaql.rules import AQL, RANDOM, SPAQL, Learner
from spaql.updates import choose, learn_from


@python_or_jit
def rollout(world, state, start, p, learner, central, rng, x, action):
    """Rollout, alg:aux: an episode with actions drawn in the best balls, or `central`; return its reward and steps."""
    _, low, high, cells, _, axes = non_owning(p)
    state, x, action = non_owning(state), non_owning(x), non_owning(action)
    total = 0.0
    world.reset(state, start, x)
    for h in range(learner.limit):
        ball = best_ball(cells, axes, h if learner.algorithm == AQL else 0, x)
        draw_action(low, high, ball, world.space, central, rng, action)
        reward, over = world.step(state, action, x)
        total += reward
        if over:
            break
    return total, h + 1


@python_or_jit
def train(world, state, start, p, learner, tau, rng, x, y, action):
    """Play one episode and learn from each of its steps; return their number."""
    balls, low, high, cells, _, axes = non_owning(p)
    state, x, y, action = non_owning(state), non_owning(x), non_owning(y), non_owning(action)
    world.reset(state, start, x)
    for h in range(learner.limit):
        ball = choose(balls, cells, axes, learner, h, x, tau, rng)
        draw_action(low, high, ball, world.space, False, rng, action)
        reward, over = world.step(state, action, y)
        if learner.algorithm != RANDOM and learn_from(balls, cells, axes, learner, h, ball, x, y, reward):
            split(p, ball, learner.discrete, learner.random_ties, rng)
        for i in range(len(axes)):
            x[i] = y[i]
        if over:
            break
    return h + 1


class Run(NamedTuple):
    """What the loop works on."""

    learner: Learner
    trainee: Partition  # P', which learns
    best: Partition  # P, which is kept; AQL keeps its trainee
    status: np.ndarray
    history: np.ndarray


@python_or_jit
def advance(world, starts, N, run, rng):
    """Play an episode from each start, to train or one of N rollouts, as `status` says, while there is room to train.

    Return the partition that is kept, and how many episodes were played.
    """
    learner, trainee, best, status = run.learner, run.trainee, run.best, run.status
    state, x, y, action = world.room(), np.empty(len(best.axes)), np.empty(len(best.axes)), np.empty(best.low.shape[1])
    for i in range(len(starts)):
        if status["episode"][0] == 0:
            if learner.algorithm != RANDOM and not has_room(trainee, learner.limit):
                return best, i
            status["steps"][0] = train(world, state, starts[i], trainee, learner, status["tau"][0], rng, x, y, action)
        else:
            total, steps = rollout(world, state, starts[i], trainee, learner, False, rng, x, action)
            status["total"][0] += total
            status["evaluation_steps"][0] += steps
        status["episode"][0] += 1
        if status["episode"][0] > N:
            best = conclude(trainee, best, learner, N, status, run.history)
    return best, len(starts)


@python_or_jit
def rollouts(world, starts, p, learner, central, rng, rewards, steps):
    """Write the sum of rewards and the number of steps of a rollout from each row of `starts`."""
    state, x, action = world.room(), np.empty(len(p.axes)), np.empty(p.low.shape[1])
    for i in range(len(starts)):
        rewards[i], steps[i] = rollout(world, state, starts[i], p, learner, central, rng, x, action)


@cached_jit
def conclude(trainee, best, learner, N, statuses, history):
    """End an iteration (the end of spaql_alg): adapt the temperature, reset the trainee, return the agent kept."""
    status = statuses[0]
    mean = status.total / N
    tau = status.tau
    now = trainee.counts[ARMS]
    if learner.algorithm >= SPAQL:
        if status.seen == best.counts[ARMS] and now != status.seen:
            status.seen = now
        if status.iteration < 0 or mean >= status.best:
            best = copy(trainee)  # and `seen` stays as it is, as in the released program
            status.best = mean
            status.tau = learner.tau_min
            if status.iteration >= 0:
                status.u = status.u**learner.d
        else:
            changed = (status.seen if learner.reset_machine else now) != best.counts[ARMS]
            if not learner.heat_if_changed or (changed and status.tau < 10.0):
                status.tau *= status.u
            if learner.reset_machine:
                reset_due = changed and now != status.seen
            else:
                reset_due = trainee.counts[SPLITS] - best.counts[SPLITS] > 2
            if reset_due:
                status.seen = best.counts[ARMS]
                status.tau = learner.tau_min
                restore(trainee, best)
    else:
        best = trainee
        status.best = mean
    end_iteration(statuses, history, mean, best.counts[ARMS], now, tau)
    return best


@cached_jit
def end_iteration(statuses, history, mean, arms, trainee_arms, tau):
    """Write what an iteration gave to the history, but for SPAQL's first evaluation, and begin the next one."""
    status = statuses[0]
    if status.iteration >= 0:
        row = history[status.iteration]
        row.rewards, row.evaluations = status.best, mean
        row.arms, row.trainee_arms = arms, trainee_arms
        row.tau = tau
        row.steps, row.evaluation_steps = status.steps, status.evaluation_steps
        status.evaluation_steps = 0
    status.iteration += 1
    status.episode = 0
    status.total = 0.0


@cached_jit
def act(p, roots, points, space, central, rng, actions):
    """Write the greedy policy's action at each of many points of the standard space."""
    for i in range(len(points)):
        ball = best_ball(p.cells, p.axes, roots[i], points[i])
        draw_action(p.low, p.high, ball, space, central, rng, actions[i])
