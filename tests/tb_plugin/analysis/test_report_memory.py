"""Memory by category in columns: peaks stay, levels hold on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.trace_memory.pictures import memory_columns


def test_a_column_has_its_highest_moment_and_levels_hold_on():
    x = np.array([10.0, 12.0, 13.0, 30.0])
    held = np.array([[5, 0], [5, 9], [6, 0], [1, 1]])
    found = memory_columns(x, held, 0.0, 40.0, 4)
    assert np.isnan(found.held.T[0]).all()
    assert found.held.T[1:].tolist() == [[5, 9], [6, 0], [1, 1]]
    # Where nothing changes the column's begin is the moment.
    assert found.peak_x.tolist() == [0, 12, 20, 30]


def test_what_held_before_may_be_the_highest():
    x = np.array([0.0, 15.0])
    held = np.array([[9], [3]])
    found = memory_columns(x, held, 10.0, 20.0, 1)
    assert (found.held.T.tolist(), found.peak_x.tolist()) == ([[9]], [10])


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 99), st.integers(0, 99)),
        min_size=1,
        max_size=50,
    ),
    st.integers(1, 40),
)
def test_the_peak_of_all_is_the_peak_of_the_columns(moments, num):
    x = np.cumsum([gap for gap, *_ in moments]).astype(float)
    held = np.array([levels for _, *levels in moments])
    found = memory_columns(x, held, 0.0, float(x[-1]) + 1, num)
    totals = found.held.T.sum(axis=1)
    assert np.nanmax(totals) == held.sum(axis=1).max()
    known = ~np.isnan(totals)
    rows = np.searchsorted(x, found.peak_x[known], "right") - 1
    assert (held[rows] == found.held.T[known]).all()
