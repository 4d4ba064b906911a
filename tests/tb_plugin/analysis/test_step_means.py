"""Means of what holds each value until the next one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.analysis.time.intervals import step_means


def test_a_piece_has_the_mean_of_what_lies_in_it():
    time = np.array([10, 15, 40])
    value = np.array([100.0, 0.0, 50.0])
    found = step_means(time, value, np.array([0, 10, 20, 30, 50]))
    assert np.isnan(found[0])
    assert found[1:].tolist() == [50.0, 0.0, 25.0]
    # Of a piece that begins before the first point what lies behind it counts.
    assert step_means(time, value, np.array([0, 15])).tolist() == [100.0]
    assert np.isnan(step_means(time[:0], value[:0], np.array([0, 1]))).all()


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0, 100)), min_size=1, max_size=40),
    st.integers(1, 30),
)
def test_the_whole_is_the_sum_of_its_pieces(steps, width):
    time = np.cumsum([gap for gap, _ in steps])
    value = np.array([one for _, one in steps])
    end = int(time[-1]) + 20
    edges = np.append(np.arange(time[0], end, width), end)
    edges = np.unique(edges)
    pieces = step_means(time, value, edges)
    whole = step_means(time, value, edges[[0, -1]])
    assert np.isclose((pieces * np.diff(edges)).sum(), whole[0] * (end - time[0]))
    assert pieces.min() >= value.min() - 1e-9
    assert pieces.max() <= value.max() + 1e-9
