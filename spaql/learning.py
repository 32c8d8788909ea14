"""AQL, SPAQL and SPAQL-TS: the update and exploration rules, and the training loop.

Every function here is plain Python over flat arrays that Numba compiles.  The loop itself (`advance`, `train`,
`rollout`) is handed the environment's `reset` and `step`: with a compiled system's the whole run is machine code, with
`gym_reset` and `gym_step` the same lines run interpreted on any Gymnasium environment.

Equation names are the paper's labels: `qval_update` is eqn:qval_update, and so on.
"""

import math
from typing import NamedTuple

import numpy as np

from spaql.compiling import entry, inlined, inner
from spaql.partition import (
    ARMS,
    NONE,
    SPLITS,
    Partition,
    best_ball,
    central_action,
    copy,
    draw_action,
    locate,
    split,
    update,
)
from spaql.systems import cartpole_reset, cartpole_step, pendulum_reset, pendulum_step

RANDOM, AQL, SPAQL, SPAQL_TS = range(4)


class Rules(NamedTuple):
    """What the paper's text and the authors' released program do differently; the defaults are the text's.

    Parameters
    ----------
    first_observation
        "mapped" to the standard space like any other, or "raw": an episode's first observation is not mapped.
    distance
        The norm in the weight of SPAQL-TS: "infinity", or "euclidean".
    heating
        The temperature rises after every iteration without improvement ("always"), or only once the number of arms has
        changed, and only below 10 ("changed").
    reset
        To the best agent after more than two splits without improvement ("splits"), or by the program's state machine
        ("machine"), which waits for the number of arms to change twice.
    normalisation
        Boltzmann exploration divides by the greatest Q ("max"), or by the greatest |Q| ("absolute").
    ties
        Which of equal balls wins the argmax: a choice drawn once for each ball ("random"; the text does not say), or
        the "last" child.

    Examples
    --------
    >>> Rules(ties="last")  # the text, but of equal balls the last wins
    >>> RULES["released"]._replace(reset="splits")  # the program, but the text's reset rule
    """

    first_observation: str = "mapped"
    distance: str = "infinity"
    heating: str = "always"
    reset: str = "splits"
    normalisation: str = "max"
    ties: str = "random"


RELEASED = Rules("raw", "euclidean", "changed", "machine", "absolute", "last")
RULES = {"paper": Rules(), "released": RELEASED}


class Learner(NamedTuple):
    """The parameters of an algorithm, in the form compiled code takes; the symbols are the paper's."""

    algorithm: int
    discrete: bool  # actions are a list, not an interval
    H: int
    limit: int  # the environment's own limit on the steps of an episode, at most H
    xi: float
    tau_min: float
    d: float
    lam: float
    reference: tuple[float, ...]  # x_ref in the standard space
    euclidean: bool
    heat_if_changed: bool
    reset_machine: bool
    absolute: bool
    random_ties: bool


STATUS = np.dtype(
    [
        ("iteration", np.int64),  # iterations done; -1 during the first evaluation of SPAQL
        ("episode", np.int64),  # within the iteration: 0 is the training episode, then come the N rollouts
        ("total", np.float64),  # reward of this iteration's rollouts so far
        ("steps", np.int64),  # of this iteration's training episode
        ("evaluation_steps", np.int64),
        ("tau", np.float64),
        ("u", np.float64),
        ("best", np.float64),  # mean reward of the best agent
        ("seen", np.int64),  # of the released reset rule: a number of arms
    ],
    align=True,
)
HISTORY = np.dtype(
    [
        ("rewards", np.float64),  # as the paper's curves: the best mean so far (SPAQL, SPAQL-TS) or this one's (AQL)
        ("arms", np.int64),  # of the agent kept
        ("evaluations", np.float64),  # mean reward of this iteration's N rollouts
        ("trainee_arms", np.int64),  # of the agent those rollouts evaluated
        ("tau", np.float64),  # temperature it was trained at
        ("steps", np.int64),  # environment steps in training
        ("evaluation_steps", np.int64),  # in the rollouts; the first entry includes the evaluation before it
    ],
    align=True,
)

# ---------------------------------------------------------------------------------------------------------------------
# The rules


@inner
def learning_rate(H, v):
    """α_v = (H + 1) / (H + v), eqn:learning_rate."""
    return (H + 1.0) / (H + v)


@inner
def bonus(xi, v):
    """b_ξ(v) = ξ / √v, eqn:conf_radius_practical."""
    return xi / math.sqrt(v)


@inner
def distance(x, reference, euclidean):
    """D(x, x_ref), the infinity norm in the standard space (metric_pendulum); Euclidean in the released program."""
    largest = total = 0.0
    for i in range(len(reference)):
        difference = abs(x[i] - reference[i])
        largest = max(largest, difference)
        total += difference * difference
    return math.sqrt(total) if euclidean else largest


@inner
def value(p, learner, h, x, y):
    """V(y) of the state y reached from x at step h.

    min(H, max Q), eqn:future_value, zero beyond the horizon for AQL; with the Gaussian weight of
    eqn:future_value_control for SPAQL-TS.  A pole that fell is no exception: only the horizon ends the future, and
    only AQL's.
    """
    if learner.algorithm == AQL:
        if h + 1 == learner.H:
            return 0.0
        return min(float(learner.H), p.balls[best_ball(p.cells, p.axes, h + 1, y)].q)
    v = min(float(learner.H), p.balls[best_ball(p.cells, p.axes, 0, y)].q)
    if learner.algorithm == SPAQL_TS:
        v *= math.exp(-((distance(x, learner.reference, learner.euclidean) / learner.lam) ** 2))
    return v


@inner
def boltzmann_sample(p, root, x, tau, absolute, rng):
    """Draw a ball of RELEVANT(x) with probability proportional to exp(Q / (Q_max τ)): Boltzmann Sample, alg:aux.

    Q_max is max Q, as the text has it; below zero it prefers the worst ball.  The released program takes max |Q|.
    """
    balls, cells = p.balls, p.cells
    leaf = locate(cells, p.axes, root, x)
    highest = balls[cells[leaf].best].q
    scale, preferred = highest, highest
    if absolute or highest < 0.0:
        lowest = lowest_estimate(balls, cells, leaf)
        if absolute:
            scale = max(abs(highest), abs(lowest))
        else:
            preferred = lowest
    if scale == 0.0:
        scale = 1.0
    # Taking the preferred ball's exponent off every exponent changes no probability, and nothing overflows.
    factor = 1.0 / (scale * tau)
    # One pass that keeps ball i with probability w_i / (w_1 + ... + w_i) leaves each with probability w_i / Σw.
    chosen = cells[leaf].best
    total = 0.0
    cell = leaf
    while cell != NONE:
        ball = cells[cell].first
        while ball != NONE:
            w = math.exp((balls[ball].q - preferred) * factor)
            total += w
            if w == total or rng.random() * total < w:
                chosen = ball
            ball = balls[ball].next
        cell = cells[cell].parent
    return chosen


@inner
def lowest_estimate(balls, cells, leaf):
    """The least Q of the balls relevant to a leaf cell."""
    lowest = math.inf
    cell = leaf
    while cell != NONE:
        ball = cells[cell].first
        while ball != NONE:
            lowest = min(lowest, balls[ball].q)
            ball = balls[ball].next
        cell = cells[cell].parent
    return lowest


@entry
def choose(p, learner, h, x, tau, rng):
    """The ball to learn from: argmax Q(B) for AQL (aql_alg), a Boltzmann sample for SPAQL (spaql_alg)."""
    if learner.algorithm == RANDOM:
        return 0
    if learner.algorithm == AQL:
        return best_ball(p.cells, p.axes, h, x)
    return boltzmann_sample(p, 0, x, tau, learner.absolute, rng)


@entry
def learn(p, learner, h, ball, x, y, reward):
    """Learn from one step: count the visit, update Q (eqn:qval_update).  Return whether the ball must split."""
    balls, cells = p.balls, p.cells
    visits = balls[ball].visits + 1
    balls[ball].visits = visits
    alpha = learning_rate(learner.H, visits)
    target = reward + value(p, learner, h, x, y) + bonus(learner.xi, visits)
    update(balls, cells, 2 ** len(p.axes), ball, (1.0 - alpha) * balls[ball].q + alpha * target)
    return visits >= 4 ** int(cells[balls[ball].cell].depth)  # (d_max / r)² of a ball that so many splits made


# ---------------------------------------------------------------------------------------------------------------------
# The loop


@inlined
def rollout(reset, step, system, state, start, p, learner, central, rng, x, action):
    """Play one episode with the greedy policy: Rollout, alg:aux.  Return the sum of rewards and the number of steps.

    Its actions are drawn within the best ball, as in the paper, or `central` in it.
    """
    cells, axes, low, high = p.cells, p.axes, p.low, p.high
    root_step = 1 if learner.algorithm == AQL else 0
    total = 0.0
    h = 0
    over = False
    reset(system, state, start, x)
    while h < learner.limit and not over:
        ball = best_ball(cells, axes, h * root_step, x)
        if central:
            central_action(low, high, ball, learner.discrete, action)
        else:
            draw_action(low, high, ball, learner.discrete, rng, action)
        reward, over = step(system, state, action, x)
        total += reward
        h += 1
    return total, h


@inlined
def train(reset, step, system, state, start, p, learner, tau, rng, x, y, action):
    """Play one episode and learn from each of its steps; return the partition and the number of steps.

    `x`, `y` and `action` are room for an observation, the next one and an action, in the standard space.
    """
    h = 0
    over = False
    reset(system, state, start, x)
    while h < learner.limit and not over:
        ball = choose(p, learner, h, x, tau, rng)
        draw_action(p.low, p.high, ball, learner.discrete, rng, action)
        reward, over = step(system, state, action, y)
        if learner.algorithm != RANDOM and learn(p, learner, h, ball, x, y, reward):
            p = split(p, ball, learner.discrete, learner.random_ties, rng)
        x, y = y, x
        h += 1
    return p, h


class Run(NamedTuple):
    """What the loop works on."""

    learner: Learner
    trainee: Partition  # P', which learns
    best: Partition  # P, which is kept; AQL keeps its trainee
    status: np.ndarray
    history: np.ndarray
    x: np.ndarray  # room for an observation, in the standard space
    y: np.ndarray  # for the next one
    action: np.ndarray


@inlined
def advance(train, rollout, reset, step, system, state, starts, N, run, rng):
    """Play as many episodes as there are rows in `starts`: training episodes, each followed by N rollouts.

    It may stop and go on between any two episodes: what it needs to know is in `status`.  Returns both partitions.
    """
    learner, trainee, best, status = run.learner, run.trainee, run.best, run.status
    x, y, action = run.x, run.y, run.action
    for i in range(len(starts)):
        if status["episode"][0] == 0:
            tau = status["tau"][0]
            trainee, steps = train(reset, step, system, state, starts[i], trainee, learner, tau, rng, x, y, action)
            status["steps"][0] = steps
        else:
            total, steps = rollout(reset, step, system, state, starts[i], trainee, learner, False, rng, x, action)
            status["total"][0] += total
            status["evaluation_steps"][0] += steps
        status["episode"][0] += 1
        if status["episode"][0] > N:
            trainee, best = conclude(trainee, best, learner, N, status, run.history)
    return trainee, best


@inlined
def evaluate(rollout, reset, step, system, state, starts, central, run, rng, rewards, steps):
    """Write the sum of rewards and the number of steps of a rollout of the best agent from each row of `starts`."""
    for i in range(len(starts)):
        rewards[i], steps[i] = rollout(
            reset, step, system, state, starts[i], run.best, run.learner, central, rng, run.x, run.action
        )


@entry
def conclude(trainee, best, learner, N, statuses, history):
    """End an iteration: keep the better agent, adapt the temperature, reset the trainee (the end of spaql_alg)."""
    status = statuses[0]
    mean = status.total / N
    tau = status.tau
    now = trainee.counts[ARMS]
    if learner.algorithm >= SPAQL:
        if status.seen == best.counts[ARMS] and now != status.seen:
            status.seen = now
        if status.iteration < 0 or mean >= status.best:
            best = copy(trainee)
            status.best = mean
            status.tau = learner.tau_min
            if status.iteration >= 0:
                status.u = status.u**learner.d
        else:
            changed = (status.seen if learner.reset_machine else now) != best.counts[ARMS]
            if not learner.heat_if_changed or (changed and status.tau < 10.0):
                status.tau *= status.u
            if learner.reset_machine:
                exhausted = changed and now != status.seen
            else:
                exhausted = trainee.counts[SPLITS] - best.counts[SPLITS] > 2
            if exhausted:
                status.seen = best.counts[ARMS]
                status.tau = learner.tau_min
                trainee = copy(best)
    else:
        best = trainee
        status.best = mean
    if status.iteration >= 0:
        row = history[status.iteration]
        row.rewards = status.best
        row.arms = best.counts[ARMS]
        row.evaluations = mean
        row.trainee_arms = now
        row.tau = tau
        row.steps = status.steps
        row.evaluation_steps = status.evaluation_steps
        status.evaluation_steps = 0
    status.iteration += 1
    status.episode = 0
    status.total = 0.0
    return trainee, best


# The two loops as machine code, on each compiled system.  (Functions handed over from Python would defeat the cache
# of machine code, hence a function for each.)


@entry
def advance_pendulum(system, starts, N, run, rng):
    """`advance` on the compiled pendulum."""
    return advance(train, rollout, pendulum_reset, pendulum_step, system, np.empty(3), starts, N, run, rng)


@entry
def advance_cartpole(system, starts, N, run, rng):
    """`advance` on the compiled cart and pole."""
    return advance(train, rollout, cartpole_reset, cartpole_step, system, np.empty(4), starts, N, run, rng)


@entry
def evaluate_pendulum(system, starts, central, run, rng, rewards, steps):
    """`evaluate` on the compiled pendulum."""
    evaluate(rollout, pendulum_reset, pendulum_step, system, np.empty(3), starts, central, run, rng, rewards, steps)


@entry
def evaluate_cartpole(system, starts, central, run, rng, rewards, steps):
    """`evaluate` on the compiled cart and pole."""
    evaluate(rollout, cartpole_reset, cartpole_step, system, np.empty(4), starts, central, run, rng, rewards, steps)


@entry
def act(p, roots, points, discrete, central, rng, actions):
    """Write the greedy policy's action at each of many points of the standard space."""
    for i in range(len(points)):
        ball = best_ball(p.cells, p.axes, roots[i], points[i])
        if central:
            central_action(p.low, p.high, ball, discrete, actions[i])
        else:
            draw_action(p.low, p.high, ball, discrete, rng, actions[i])
