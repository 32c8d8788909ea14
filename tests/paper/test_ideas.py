"""The paper's ideas for later: neighbours that share an update, and mappings that are linear in each cell."""

import dataclasses

import numpy as np
import pytest

from spaql import SPAQL
from spaql.paper.audit import ideas
from spaql.paper.runs.algorithms import untrained
from spaql.partition import BALLS, CELLS, NONE, new_partition, split
from spaql.updates import choose, learn_from

# On a system without machine code, which would have to be compiled first.
JOBS = {idea: dataclasses.replace(job, system="Drift-v0", iterations=15, evaluations=3) for idea, job in ideas.tried(1)}


@pytest.mark.parametrize("idea", [idea for idea in JOBS if idea != "linear"])
def test_without_weight_neighbours_leave_spaql_as_it_is(idea):
    alone, text = ideas.with_neighbours(JOBS[idea], 0.0), untrained(JOBS[idea]).learn(15, 3)
    assert np.array_equal(alone.history, text.history)
    assert np.array_equal(alone._best.balls[: alone._best.counts[BALLS]], text._best.balls[: text._best.counts[BALLS]])
    shared = ideas.with_neighbours(JOBS[idea])
    assert not np.array_equal(shared.history, text.history)


@pytest.mark.parametrize("discrete", [False, True])
def test_a_neighbour_is_a_ball_of_the_same_size_that_touches(discrete):
    learner = SPAQL("Drift-v0", xi=1.0, horizon=4)._learner._replace(discrete=discrete)
    low, high = ([0.0], [4.0]) if discrete else ([-1.0], [1.0])
    rng, p = np.random.default_rng(0), new_partition(1, 2, low, high, q=4.0)
    shared = 0
    for _ in range(400):
        x, y, reward = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2), rng.random()
        ball = int(choose(p.balls, p.cells, p.axes, learner, 0, x, 10.0, rng))
        action = p.low[ball] + rng.random() * (p.high[ball] - p.low[ball])
        due = learn_from(p.balls, p.cells, p.axes, learner, 0, ball, x, y, reward)
        before = p.balls["q"][: p.counts[BALLS]].copy()
        ideas.pass_on(p, learner, 0, ball, x, action, y, reward, 0.5)
        changed = np.flatnonzero(p.balls["q"][: p.counts[BALLS]] != before)
        for other in changed:
            boxes = [box(p, each) for each in (ball, other)]
            gaps = np.maximum(boxes[0][0], boxes[1][0]) - np.minimum(boxes[0][1], boxes[1][1])
            assert gaps.max() == 0.0  # they share a face, and overlap in all else
            assert np.count_nonzero(gaps == 0.0) == 1
        shared += len(changed)
        if due:
            p = split(p, ball, discrete, True, rng)
        leaves = p.cells[: p.counts[CELLS]]
        assert p.balls["q"][leaves["best"][leaves["children"] == NONE]].min() >= 4  # the theorem
    assert shared > 400


def box(p, ball):
    """The lower and the upper corner of a ball, states and actions."""
    way, cell = [], int(p.balls["cell"][ball])
    while (parent := int(p.cells["parent"][cell])) != NONE:
        way.append(cell - int(p.cells["children"][parent]))
        cell = parent
    low, side = np.full(2, -1.0), 2.0
    for half in reversed(way):
        side /= 2
        low += side * np.array([half & 1, half >> 1])
    return np.append(low, p.low[ball]), np.append(low + side, p.high[ball])


def test_linear_mappings_are_searched_and_cells_split_as_often_as_spaql_says():
    found = ideas.Linear(JOBS["linear"])
    cells = found.p.cells[: found.p.counts[CELLS]]
    leaves = cells["children"] == NONE
    assert len(found.gains) == len(found.visits) == len(cells)
    assert leaves.sum() > 1
    assert (found.visits[~leaves] >= 4.0 ** cells["depth"][~leaves]).all()
    first = ideas.Linear(dataclasses.replace(JOBS["linear"], iterations=1))
    assert found.best > first.best
