"""Parts and what they leave make up the step, whatever grain they were kept at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from memboard.tb_plugin.analysis.series.step_parts import (
    StepRows,
    median_ranks,
    middle_values,
    other_part,
    pooled_means,
    relative_pct,
    slowest_in,
    slowest_parts,
    worst_ranks,
)

TIMES = st.floats(0, 100, allow_nan=False)


def rows_of(
    parts: np.ndarray, rest: np.ndarray, width: int
) -> tuple[StepRows, np.ndarray]:
    """Buckets of `width` steps, by loops; and the slowest step of each."""
    total = parts.sum(axis=0) + rest
    starts = range(0, parts.shape[1], width)
    groups = [slice(start, start + width) for start in starts]
    slowest = np.array([total[g].max() for g in groups])
    first = np.array([g.start for g in groups])
    return (
        StepRows(
            first,
            first + width - 1,
            first.astype(float),
            first.astype(float),
            0.0,
            slowest,
            np.array([total[g].mean() for g in groups]),
            np.array([[part[g].max() for g in groups] for part in parts]),
            np.array([[part[g].mean() for g in groups] for part in parts]),
            width,
        ),
        slowest,
    )


@given(
    hnp.arrays(float, (3, 12), elements=TIMES), hnp.arrays(float, 12, elements=TIMES)
)
def test_parts_of_single_steps_are_what_was_recorded(parts, rest):
    rows, total = rows_of(parts, rest, 1)
    found = slowest_parts(rows)
    np.testing.assert_array_equal(found, parts)
    np.testing.assert_allclose(other_part(rows.high, found), rest, atol=1e-9)
    np.testing.assert_allclose(found.sum(axis=0) + rest, total)


@given(
    hnp.arrays(float, (4, 24), elements=TIMES),
    hnp.arrays(float, 24, elements=TIMES),
    st.sampled_from([2, 4, 8]),
)
def test_parts_of_a_bucket_make_up_its_slowest_step(parts, rest, width):
    rows, slowest = rows_of(parts, rest, width)
    found = slowest_parts(rows)
    other = other_part(rows.high, found)
    assert (found <= rows.part_high + 1e-9).all()
    assert (found >= rows.part_mean - 1e-9).all()
    np.testing.assert_allclose(found.sum(axis=0) + other, slowest, rtol=1e-9, atol=1e-9)


def test_the_slow_step_of_a_bucket_is_told_by_the_part_that_varies():
    parts = np.array([[10.0, 10, 10, 250], [30, 30, 30, 30]])
    rows, _ = rows_of(parts, np.zeros(4), 4)
    assert slowest_parts(rows)[:, 0].tolist() == [250, 30]


def test_what_was_not_recorded_is_no_part_and_no_zero():
    parts = np.array([[np.nan, 1.0], [np.nan, np.nan]])
    found = other_part(np.array([5.0, 5.0]), parts)
    assert np.isnan(found[0])
    assert found[1] == 4.0


@given(hnp.arrays(float, (5, 9), elements=st.floats(0, 9) | st.just(np.nan)))
def test_worst_and_middle_ranks_equal_a_sort_of_each_column(matrix):
    worst, middle = worst_ranks(matrix), median_ranks(matrix)
    for column in range(matrix.shape[1]):
        known = sorted(value for value in matrix[:, column] if value == value)
        if not known:
            assert worst[column] == middle[column] == -1
            continue
        assert matrix[worst[column], column] == known[-1]
        assert matrix[middle[column], column] == known[(len(known) - 1) // 2]


def test_a_rank_is_compared_with_the_middle_one():
    seconds = np.array([[0.1, 0.1], [0.1, 0.2], [0.15, 0.1]])
    np.testing.assert_allclose(
        relative_pct(seconds, seconds), [[0, 0], [0, 100], [50, 0]], atol=1e-9
    )
    loader = np.array([[0.0, 0.0], [0.0, 0.05], [0.0, 0.0]])
    # Of the step's time: a part that usually takes nothing has no per cent of its own.
    np.testing.assert_allclose(
        relative_pct(loader, seconds), [[0, 0], [0, 50], [0, 0]], atol=1e-9
    )
    assert np.isnan(middle_values(np.full((3, 1), np.nan))).all()


@pytest.mark.parametrize("num", [1, 7])
def test_pooling(num):
    values = np.array([[1.0, np.nan, 3.0, 8.0, 2.0, 4.0, np.nan]])[:, :num]
    start, stop = np.array([0, 1, 2, 6]), np.array([3, 1, 6, 7])
    stop = np.minimum(stop, num)
    expected = [
        np.nanmean(values[0, a:b]) if np.isfinite(values[0, a:b]).any() else np.nan
        for a, b in zip(start, stop, strict=True)
    ]
    np.testing.assert_allclose(
        pooled_means(values, np.minimum(start, num), stop)[0], expected
    )
    slowest = slowest_in(values[0], start, stop)
    for at, a, b in zip(slowest, start, stop, strict=True):
        known = [v for v in values[0, a:b] if v == v]
        assert (at == -1) if not known else values[0, at] == max(known)
