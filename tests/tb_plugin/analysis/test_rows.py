"""Rows that stay where steps were run twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.series.rows import NO_STEP, Rows, on_steps, on_time

STEPS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


def rows_of(steps, values=None, width=1) -> Rows:
    x = np.array(steps, np.int64)
    y = np.arange(len(x), dtype=float) if values is None else np.array(values, float)
    return Rows(x, x, y, y, width)


@given(STEPS, st.integers(0, 60))
def test_a_row_stays_only_where_every_later_row_has_a_higher_step(steps, cut):
    pieces = [rows_of(steps)]
    if 0 < cut < len(steps):
        values = np.arange(len(steps))
        pieces = [
            rows_of(steps[:cut], values[:cut]),
            rows_of(steps[cut:], values[cut:]),
        ]
    merged = on_steps(pieces)
    kept = [
        i for i, s in enumerate(steps) if all(s < later for later in steps[i + 1 :])
    ]
    assert merged.first.tolist() == [steps[i] for i in kept]
    assert merged.high.tolist() == kept
    assert merged.last.tolist() == merged.first.tolist()


@given(STEPS)
def test_on_time_axes_every_row_stays(times):
    merged = on_time([rows_of(times)])
    assert sorted(merged.high.tolist()) == list(range(len(times)))
    assert merged.first.tolist() == sorted(times)


def test_a_bucket_that_is_run_again_in_part_keeps_its_peak_and_its_other_part():
    before = Rows(
        np.array([0, 8]),
        np.array([7, 15]),
        np.array([1.0, 9.0]),
        np.array([1.0, 2.0]),
        8,
    )
    merged = on_steps([before, rows_of([12, 13], [3, 4])])
    assert merged.first.tolist() == [0, 8, 12, 13]
    assert merged.last.tolist() == [7, 11, 12, 13]
    assert merged.high.tolist() == [1, 9, 3, 4]


def test_several_samples_of_one_step_all_stay_where_that_is_usual():
    merged = on_steps([rows_of([1, 1, 1, 2, 2])], repeats=True)
    assert merged.high.tolist() == [0, 1, 2, 3, 4]


def test_rows_before_the_first_step_have_no_place_on_the_step_axis():
    merged = on_steps([rows_of([NO_STEP, NO_STEP, 0, 1])], repeats=True)
    assert merged.first.tolist() == [0, 1]
    bucket = Rows(
        np.array([NO_STEP, 5]),
        np.array([4, 9]),
        np.array([1.0, 2.0]),
        np.array([1.0, 2.0]),
        5,
    )
    assert on_steps([bucket]).first.tolist() == [4, 5]
