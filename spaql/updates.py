"""The paper's equations: learning rate, bonus, value, Boltzmann exploration, and the update of Q.

Names in the docstrings are the labels of the paper's source: eqn:qval_update, alg:aux, and so on.
"""

import math

from spaql.compiling import cached_jit, python_or_jit
from spaql.partition import NONE, best_ball, locate, update
from spaql.rules import AQL, SPAQL_TS


@python_or_jit
def learning_rate(H, v):
    """α_v = (H + 1) / (H + v), eqn:learning_rate."""
    return (H + 1.0) / (H + v)


@python_or_jit
def bonus(xi, v):
    """b_ξ(v) = ξ / √v, eqn:conf_radius_practical."""
    return xi / math.sqrt(v)


@python_or_jit
def distance(x, reference, euclidean):
    """D(x, x_ref), the infinity norm in the standard space (metric_pendulum); Euclidean in the released program."""
    largest = total = 0.0
    for i in range(len(reference)):
        difference = abs(x[i] - reference[i])
        largest = max(largest, difference)
        total += difference * difference
    return math.sqrt(total) if euclidean else largest


@python_or_jit
def value(balls, cells, axes, learner, h, x, y):
    """V(y) of the state y reached from x at step h.

    min(H, max Q), eqn:future_value, zero beyond the horizon for AQL; for SPAQL-TS with the Gaussian weight of x, the
    state before the step, as eqn:future_value_control has it.  A pole that fell is no exception: only the horizon ends
    the future, and only AQL's.
    """
    if learner.algorithm == AQL:
        if h + 1 == learner.H:
            return 0.0
        return min(float(learner.H), balls[best_ball(cells, axes, h + 1, y)].q)
    v = min(float(learner.H), balls[best_ball(cells, axes, 0, y)].q)
    if learner.algorithm == SPAQL_TS:
        ratio = distance(x, learner.reference, learner.euclidean) / learner.lam
        v *= math.exp(-(ratio * ratio))  # not ratio ** 2, which plain Python rounds otherwise
    return v


@python_or_jit
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


@python_or_jit
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


@cached_jit
def choose(balls, cells, axes, learner, h, x, tau, rng):
    """The ball to learn from: argmax Q(B) for AQL (aql_alg), a Boltzmann sample for SPAQL (spaql_alg)."""
    if learner.algorithm == AQL:
        return best_ball(cells, axes, h, x)
    return boltzmann_sample(balls, cells, axes, x, tau, learner.absolute, rng)


@cached_jit
def learn_from(balls, cells, axes, learner, h, ball, x, y, reward):
    """Learn from one step: count the visit, update Q (eqn:qval_update).  Return whether the ball must split."""
    visits = balls[ball].visits + 1
    balls[ball].visits = visits
    alpha = learning_rate(learner.H, visits)
    target = reward + learner.discount * value(balls, cells, axes, learner, h, x, y) + bonus(learner.xi, visits)
    update(balls, cells, 2 ** len(axes), ball, (1.0 - alpha) * balls[ball].q + alpha * target)
    return visits >= 4 ** int(cells[balls[ball].cell].depth)  # (d_max / r)²: every split halves r
