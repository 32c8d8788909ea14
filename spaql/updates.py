"""The paper's equations: learning rate, bonus, value, Boltzmann exploration, and the update of Q.

Names in the docstrings are the labels of the paper's source: eqn:qval_update, alg:aux, and so on.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

from spaql.compiling import entry, inlined, inner
from spaql.partition import BALLS, NONE, SPLITS, best_ball, locate, single_ball, split, update
from spaql.rules import AQL, FIXED, RANDOM, SPAQL_TS, VISITS


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
def value(balls, cells, axes, learner, h, x, y):
    """V(y) of the state y reached from x at step h.

    min(H, max Q), eqn:future_value, zero beyond the horizon for AQL; with the Gaussian weight of
    eqn:future_value_control for SPAQL-TS, which is the
    weight of x, the state before the step, as the paper's equation has it.  A pole that fell is no exception: only the
    horizon ends the future, and only AQL's.
    """
    cap = float(learner.H - h - 1 if learner.shrinking_cap else learner.H)
    if learner.algorithm == AQL:
        if h + 1 == learner.H:
            return 0.0
        return min(cap, balls[best_ball(cells, axes, h + 1, y)].q)
    v = min(cap, balls[best_ball(cells, axes, 0, y)].q)
    if learner.algorithm == SPAQL_TS:
        ratio = distance(x, learner.reference, learner.euclidean) / learner.lam
        v *= math.exp(-(ratio * ratio))  # not ratio ** 2, which plain Python rounds otherwise
    return v


@inner
def boltzmann_sample(balls, cells, axes, x, tau, absolute, rng):
    """Draw a ball of RELEVANT(x) with probability proportional to exp(Q / (Q_max τ)): Boltzmann Sample, alg:aux.

    Q_max is max Q, as the text has it; below zero it prefers the worst ball.  The released program takes max |Q|.
    """
    leaf = locate(cells, axes, 0, x)
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
    while cell > NONE:
        ball = cells[cell].first
        while ball > NONE:
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
    while cell > NONE:
        ball = cells[cell].first
        while ball > NONE:
            lowest = min(lowest, balls[ball].q)
            ball = balls[ball].next
        cell = cells[cell].parent
    return lowest


@entry
def choose(balls, cells, axes, learner, h, x, tau, rng):
    """The ball to learn from: argmax Q(B) for AQL (aql_alg), a Boltzmann sample for SPAQL (spaql_alg)."""
    if learner.algorithm == RANDOM:
        return 0
    if learner.algorithm == AQL:
        return best_ball(cells, axes, h, x)
    return boltzmann_sample(balls, cells, axes, x, tau, learner.absolute, rng)


@entry
def learn_from(balls, cells, axes, learner, h, ball, x, y, reward, ended=False):
    """Learn from one step: count the visit, update Q (eqn:qval_update).  Return whether the ball must split.

    `ended` says whether y is a state in which the episode has ended, not by the passing of time.
    """
    visits = balls[ball].visits + 1
    balls[ball].visits = visits
    if learner.estimate != FIXED:
        q = learner.H + bonus(learner.xi, visits)
        if learner.estimate != VISITS:
            q = new_estimate(balls, cells, axes, learner, h, ball, x, y, reward, ended)
        update(balls, cells, 2 ** len(axes), ball, q)
    return visits >= 4 ** int(cells[balls[ball].cell].depth)  # (d_max / r)²: every split halves r


@inlined
def new_estimate(balls, cells, axes, learner, h, ball, x, y, reward, ended):
    """The estimate of a ball after a visit that is counted already: eqn:qval_update."""
    visits = balls[ball].visits
    alpha = learning_rate(learner.H, visits)
    future = 0.0 if ended and learner.zero_at_end else learner.discount * value(balls, cells, axes, learner, h, x, y)
    target = (0.0 if learner.no_reward else reward) + future + bonus(learner.xi, visits)
    return (1.0 - alpha) * balls[ball].q + alpha * target


@entry
def draw_estimates(p, first, H, rng):
    """Draw the estimates of the balls from `first` on between 0 and H."""
    for ball in range(first, p.counts[BALLS]):
        update(p.balls, p.cells, 2 ** len(p.axes), ball, H * rng.random())


def redrawn(p, learner, rng):
    """The partition of an iteration: a new one, drawn at random, where the rules say so."""
    return random_partition(p, learner, rng) if learner.random_partition else p


@overload(redrawn)
def _redrawn(p, learner, rng):
    # The rule is part of the learner's type, so that nobody waits for a control to be compiled.
    if isinstance(learner.types[learner.fields.index("random_partition")], types.NoneType):
        return lambda p, learner, rng: p
    return lambda p, learner, rng: random_partition(p, learner, rng)


@entry
def random_partition(p, learner, rng):
    """Return a new partition with as many splits as the given one, of balls drawn at random, with random estimates."""
    splits, halves = p.counts[SPLITS], 2 ** len(p.axes)
    drawn = single_ball(p)
    draw_estimates(drawn, 0, learner.H, rng)
    whole = np.ones(1 + splits * halves * 2 ** p.low.shape[1], np.bool_)
    for _ in range(splits):
        ball = 0
        while not whole[ball]:
            ball = int(rng.random() * drawn.counts[BALLS])
        whole[ball] = False
        drawn.balls[ball].visits = 4 ** int(drawn.cells[drawn.balls[ball].cell].depth)  # which are due
        first = drawn.counts[BALLS]
        drawn = split(drawn, ball, learner.discrete, learner.random_ties, rng)
        draw_estimates(drawn, first, learner.H, rng)
    return drawn
