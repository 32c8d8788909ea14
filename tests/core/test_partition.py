"""Partitions: hand-worked splits, and invariants over random histories."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spaql import partition
from spaql.compiling import cached_jit
from spaql.partition import ARMS, CELLS, NONE, best_ball, new_partition, update
from tests.conftest import split

from .naive import NaivePartition


@cached_jit
def locate(cells, axes, root, x):
    return partition.locate(cells, axes, root, x)


def make(dimensions, actions=0, action_dimensions=1, roots=1):
    low, high = ([0.0], [float(actions)]) if actions else (-np.ones(action_dimensions), np.ones(action_dimensions))
    return new_partition(roots, dimensions, low, high, q=200.0)


def hanging(p, cell):
    ball, found = p.cells["first"][cell], []
    while ball != NONE:
        found.append(int(ball))
        ball = p.balls["next"][ball]
    return sorted(found)


def unsplit(p):
    return [ball for cell in range(p.counts[CELLS]) for ball in hanging(p, cell)]


def cube(p, cell):
    """Lower corner and side of a cell's states, read off its place in the tree."""
    halves, path = 2 ** len(p.axes), []
    while p.cells["parent"][cell] != NONE:
        parent = p.cells["parent"][cell]
        path.append(cell - p.cells["children"][parent])
        cell = parent
    corner, side = -np.ones(len(p.axes)), 2.0
    for half in reversed(path):
        assert 0 <= half < halves
        side /= 2
        corner += [side * (half >> i & 1) for i in range(len(p.axes))]
    return corner, side


def grow(p, points, discrete, rng, random_ranks=False):
    """Visit points as an agent would: update the best ball there, split it when it is due."""
    for point in points:
        ball = best_ball(p.cells, p.axes, 0, point)
        p.balls["visits"][ball] += 1
        update(p.balls, p.cells, 2 ** len(p.axes), ball, round(rng.uniform(0, 9)))  # few values, so that there are ties
        if p.balls["visits"][ball] >= 4 ** int(p.cells["depth"][p.balls["cell"][ball]]):
            p = split(p, ball, discrete, random_ranks, rng)
    return p


def test_first_split_of_cartpole_by_hand():
    p = make(4, actions=2)
    p.balls["q"], p.balls["visits"] = 123.0, 1
    p = split(p, 0, True, False, np.random.default_rng(0))
    assert hanging(p, 0) == []  # the parent's domain is empty now
    for cell in range(1, 17):
        children = hanging(p, cell)
        assert len(children) == 2
        assert sorted(p.low[children, 0]) == [0, 1]
        assert sorted(p.high[children, 0]) == [1, 2]
        assert (p.balls["q"][children] == 123.0).all()
        assert (p.balls["visits"][children] == 1).all()
        assert p.cells["depth"][cell] == 1
    # The state (0.5, -0.5, 0.5, -0.5) is in the upper half of coordinates 0 and 2: half 0b0101.
    assert locate(p.cells, p.axes, 0, np.array([0.5, -0.5, 0.5, -0.5])) == 1 + 0b0101
    # A ball with one action splits into states only.
    p = split(p, hanging(p, 1)[0], True, False, np.random.default_rng(0))
    assert p.counts[ARMS] == 32 + 15
    assert p.counts[CELLS] == 1 + 16 + 16


@pytest.mark.parametrize(("discrete", "winner"), [(False, (-1.0, -0.5)), (True, (3.0, 4.0))])
def test_of_equal_balls_the_last_child_wins(discrete, winner):
    # Children are listed from the upper action half down, lists from their first half on: FACTS of the released
    # program.
    p = make(2, actions=4 if discrete else 0)
    rng = np.random.default_rng(0)
    for _ in range(2):
        for ball in unsplit(p):
            p = split(p, ball, discrete, False, rng)
    ball = best_ball(p.cells, p.axes, 0, np.array([0.3, 0.3]))
    assert (p.low[ball, 0], p.high[ball, 0]) == winner


def test_random_ties_prefer_no_action():
    upper = 0
    for seed in range(400):
        p = split(make(2), 0, False, True, np.random.default_rng(seed))
        upper += p.low[best_ball(p.cells, p.axes, 0, np.array([0.3, 0.3])), 0] == 0.0
    assert 150 < upper < 250


def test_a_ball_that_falls_loses_the_cells_deep_below_it_where_another_is_better_now():
    rng, x = np.random.default_rng(0), np.array([-0.9, -0.9])
    p = split(make(2), 0, False, False, rng)
    above, second = hanging(p, locate(p.cells, p.axes, 0, x))
    p = split(p, second, False, False, rng)
    p = split(p, hanging(p, locate(p.cells, p.axes, 0, x))[0], False, False, rng)
    deep, _ = hanging(p, locate(p.cells, p.axes, 0, x))
    for ball in set(unsplit(p)) - {above, deep}:
        update(p.balls, p.cells, 4, ball, 0.0)
    update(p.balls, p.cells, 4, above, 9.0)
    update(p.balls, p.cells, 4, deep, 5.0)
    assert best_ball(p.cells, p.axes, 0, x) == above
    update(p.balls, p.cells, 4, above, 2.0)  # which is still the best of the cells between
    assert best_ball(p.cells, p.axes, 0, x) == deep


def test_a_point_on_a_border_is_in_the_upper_half_and_one_just_below_is_not():
    p = make(2)
    rng = np.random.default_rng(0)
    for _ in range(2):
        for ball in unsplit(p):
            p = split(p, ball, False, False, rng)
    at = locate(p.cells, p.axes, 0, np.array([0.5, 0.5]))
    assert cube(p, at)[0].tolist() == [0.5, 0.5]
    assert cube(p, locate(p.cells, p.axes, 0, np.array([np.nextafter(0.5, 0), 1.0])))[0].tolist() == [0.0, 0.5]
    assert locate(p.cells, p.axes, 0, np.array([1.0, 1.0])) == at
    assert cube(p, locate(p.cells, p.axes, 0, np.array([-1.0, 0.0])))[0].tolist() == [-1.0, 0.0]


spaces = st.sampled_from([(2, 0, 1), (2, 0, 2), (2, 5, 1), (4, 2, 1)])  # two numbers of axes: each is compiled anew


@settings(max_examples=40)
@given(spaces, st.integers(0, 2**32), st.integers(1, 200), st.booleans())
def test_invariants(space, seed, visits, random_ranks):
    dimensions, actions, action_dimensions = space
    rng = np.random.default_rng(seed)
    p = make(dimensions, actions, action_dimensions)
    p = grow(
        p, rng.uniform(-1, 1, (visits, dimensions)) * rng.uniform(0, 1, dimensions), actions > 0, rng, random_ranks
    )
    balls = unsplit(p)
    assert len(balls) == len(set(balls)) == p.counts[ARMS]

    # The balls tile the space: their volumes add up to the whole, and a point of it is in one ball only.
    cubes = {ball: cube(p, p.balls["cell"][ball]) for ball in balls}
    volume = sum(side**dimensions * np.prod(p.high[ball] - p.low[ball]) for ball, (_, side) in cubes.items())
    assert volume == pytest.approx(2.0**dimensions * (actions or 2.0**action_dimensions), rel=1e-12)
    for _ in range(20):
        x = rng.uniform(-1, 1, dimensions)
        a = rng.uniform(0, actions, 1) // 1 if actions else rng.uniform(-1, 1, action_dimensions)
        relevant = [b for b, (corner, side) in cubes.items() if np.all((corner <= x) & (x < corner + side))]
        holding = [b for b in relevant if np.all((p.low[b] <= a) & (a < p.high[b]))]
        assert len(holding) == 1
        # The leaf's best ball is the argmax over the relevant ones.
        best = max(relevant, key=lambda b: (p.balls["q"][b], p.balls["rank"][b]))
        assert best_ball(p.cells, p.axes, 0, x) == best


@settings(max_examples=25)
@given(spaces, st.integers(0, 2**32), st.integers(1, 150))
def test_equals_a_naive_partition(space, seed, visits):
    dimensions, actions, action_dimensions = space
    if action_dimensions > 1:
        action_dimensions = 1
    points = np.random.default_rng(seed).uniform(-1, 1, (visits, dimensions))
    p = grow(make(dimensions, actions), points, actions > 0, np.random.default_rng(1))
    naive, rng = NaivePartition(dimensions, actions, 200.0), np.random.default_rng(1)
    for point in points:
        ball = naive.best(point)
        ball.visits += 1
        ball.q = round(rng.uniform(0, 9))
        if ball.visits >= 1 / ball.radius**2:
            naive.split(ball)
    ours = {
        (tuple(cube(p, p.balls["cell"][b])[0]), p.low[b, 0], p.high[b, 0], p.balls["q"][b], p.balls["visits"][b])
        for b in unsplit(p)
    }
    assert ours == {(tuple(np.subtract(b.centre, b.radius)), b.low, b.high, b.q, b.visits) for b in naive.leaves()}
