"""Statistics against SciPy and closed forms."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spaql.paper.engine.statistics import (
    bootstrap_interval,
    holm,
    paired,
    probability_of_improvement,
    student_interval,
    summarise,
    welch,
    with_holm,
)
from spaql.policies.interval import paper_interval

floats = st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=12)


def test_the_papers_interval_by_hand():
    # Mean 4, population standard deviation 2: 1.96 · 2 / √4.
    assert paper_interval([2, 2, 6, 6]) == pytest.approx((4, 4 - 1.96, 4 + 1.96))
    assert paper_interval([7.0]) == (7, 7, 7)


def test_bootstrap_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    samples = [rng.exponential(1.0, 40) for _ in range(200)]
    intervals = [bootstrap_interval(sample, resamples=400) for sample in samples]
    covered = np.mean([i.low <= 1.0 <= i.high for i in intervals])
    assert 0.88 <= covered <= 0.98
    assert bootstrap_interval([200.0] * 5) == (200, 200, 200)
    assert bootstrap_interval([1, 2, 3, 9]) == bootstrap_interval([1, 2, 3, 9])


def test_welch_where_no_number_varies():
    assert welch([200, 200], [200, 200]).p == 1.0
    assert welch([200, 200], [199, 199]).p == 0.0


def test_paired_comparisons_against_scipy():
    rng = np.random.default_rng(2)
    a = rng.normal(0, 5, 20)
    b = a - 1 + rng.normal(0, 0.5, 20)  # the same agents, a little lower
    test, compared = stats.ttest_rel(a, b), paired(a, b)
    assert (compared.p, compared.low, compared.high) == pytest.approx((test.pvalue, *test.confidence_interval()))
    assert compared.p < 1e-6 < welch(a, b).p
    assert paired(a, a).p == 1.0
    assert paired(np.array([2.0, 3.0, 5.0]), np.array([1.0, 2.0, 4.0])).p == 0.0  # by one, every time
    two = with_holm(paired, {"x": (a, b), "y": (a, a)})
    assert (two["x"].p_holm, two["y"].p_holm) == pytest.approx((2 * test.pvalue, 1.0))


def test_students_interval_covers_as_often_as_it_says():
    rng = np.random.default_rng(0)
    found = [(student_interval(x), paper_interval(x)) for x in rng.normal(0, 1, (4000, 5))]
    student, paper = (np.mean([i.low <= 0 <= i.high for i in each]) for each in zip(*found, strict=True))
    assert student == pytest.approx(0.95, abs=0.01)
    assert paper < 0.9  # 1.96 population deviations are too few


def test_holm_by_hand():
    # Sorted 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1: 0.02, 0.03, 0.06, 0.04, and never decreasing.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]


@given(floats, floats)
def test_probability_of_improvement_counts_pairs(a, b):
    wins = np.mean([(x > y) + 0.5 * (x == y) for x in a for y in b])
    assert probability_of_improvement(a, b) == pytest.approx(wins)


def test_a_summary_has_the_interval_of_each_column_by_group():
    frame = pd.DataFrame({"a": [1, 1, 2], "b": ["x", "x", "y"], "c": [3.0, 5.0, 7.0]})
    found = summarise(frame, ["a", "b"], c=student_interval)
    half = stats.t.ppf(0.975, 1)  # of 3 and 5, whose mean has a standard error of 1
    assert found.loc[0].tolist() == [1, "x", 2, 4.0, pytest.approx(4 - half), pytest.approx(4 + half)]
    assert found.loc[1].tolist() == [2, "y", 1, 7.0, 7.0, 7.0]


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [[1.0]], [np.inf]])
def test_bad_numbers_are_refused(values):
    with pytest.raises(ValueError, match="finite numbers"):
        paper_interval(values)
