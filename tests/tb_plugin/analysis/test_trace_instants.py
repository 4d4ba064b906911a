"""Instants: which are drawn as one, which a text finds, and what they fall into."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.trace.timeline.instants import marks, slices_around
from memboard.tb_plugin.analysis.trace.timeline.totals import found_rows
from memboard.tb_plugin.analysis.trace.trace import Instants
from tests.traces_builder import trace_of


def with_instants(rows, slices=((0, 0, 100, "step"), (0, 10, 50, "forward"))):
    """A trace with instants (track, time)."""
    trace = trace_of(list(slices), num_tracks=2)
    rows = sorted(rows)
    columns = np.array(rows, np.int64).reshape(-1, 2).T
    name = np.full(len(rows), trace.strings.index("step"))
    none = np.full(len(rows), -1)
    return replace(trace, instants=Instants(columns[0], columns[1], name, name, none))


def test_those_of_one_cell_are_one_and_the_rest_stand_alone():
    trace = with_instants([(0, 0), (0, 3), (0, 4), (0, 9), (1, 2)])
    found = marks(trace, 0, 0, 100, zoom=0, most=100)
    # Cells of 4 ns: 0 and 3 fall together.
    assert found.row.tolist() == [0, 2, 3]
    assert found.count.tolist() == [2, 1, 1]
    assert marks(trace, 1, 0, 100, 0, 100).row.tolist() == [4]
    assert len(marks(trace, 0, 50, 100, 0, 100)) == 0


@given(
    st.lists(st.integers(0, 10_000), max_size=60),
    st.integers(0, 6),
    st.integers(1, 20),
    st.integers(0, 10_000),
    st.integers(1, 5_000),
)
def test_none_is_lost_and_the_bound_holds(times, zoom, most, start, length):
    trace = with_instants([(0, time) for time in times])
    found = marks(trace, 0, start, start + length, zoom, most)
    inside = [time for time in times if start <= time <= start + length]
    assert len(found) <= most
    assert found.count.sum() >= len(inside)
    rows = {
        row
        for first, count in zip(found.row, found.count, strict=True)
        for row in range(first, first + count)
    }
    known = sorted(times)
    assert {i for i, t in enumerate(known) if start <= t <= start + length} <= rows


def test_the_same_ones_are_one_wherever_the_window_lies():
    trace = with_instants([(0, time) for time in range(0, 400, 7)])
    whole = marks(trace, 0, 0, 400, 2, 1_000)
    cells = dict(zip(whole.row.tolist(), whole.count.tolist(), strict=True))
    for start in range(0, 300, 11):
        part = marks(trace, 0, start, start + 80, 2, 1_000)
        for row, count in zip(part.row.tolist(), part.count.tolist(), strict=True):
            assert cells[row] == count


def test_they_are_found_by_name_or_all_in_order_of_time():
    trace = with_instants([(0, 30), (1, 10), (0, 20)])
    rows, number = found_rows(trace.instants, [0, 1], None, most=2)
    assert (trace.instants.time_ns[rows].tolist(), number) == ([10, 20], 3)
    nothing = np.zeros(len(trace.strings), bool)
    assert found_rows(trace.instants, [0, 1], nothing, most=2)[1] == 0


def test_one_lies_in_the_slices_of_its_own_track():
    trace = with_instants([(0, 30), (0, 70), (1, 30)])
    names = [
        [trace.name_of(row) for row in slices_around(trace, instant)]
        for instant in range(3)
    ]
    assert names == [["forward", "step"], ["step"], []]
