"""Levels, parents, what touches a range of time, and links between slices."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.trace.nesting import nest
from tests.traces_builder import MadeTrace


def test_children_lie_a_level_below_and_the_rest_of_the_time_is_the_slices_own():
    made = MadeTrace()
    outer = made.slice("main", "outer", 0, 100)
    first = made.slice("main", "first", 0, 30)
    second = made.slice("main", "second", 30, 20)
    inner = made.slice("main", "inner", 35, 5)
    trace = made.build()
    rows = made.rows
    assert trace.slices.level[rows[[outer, first, second, inner]]].tolist() == [
        0,
        1,
        1,
        2,
    ]
    assert trace.children_of(rows[outer]).tolist() == sorted(rows[[first, second]])
    assert trace.self_ns(rows[outer]) == 50
    assert trace.self_ns(rows[second]) == 15
    assert trace.tracks[0].level_rows == (0, 1, 3, 4)


def test_siblings_that_overlap_are_put_side_by_side_and_counted():
    made = MadeTrace()
    numbers = [
        made.slice("main", "a", 0, 10),
        made.slice("main", "b", 5, 10),
        made.slice("main", "in both", 6, 2),
        made.slice("main", "after a", 12, 1),
    ]
    trace = made.build()
    rows = made.rows[numbers]
    assert trace.slices.level[rows].tolist() == [0, 1, 2, 2]
    parents = trace.slices.parent[rows].tolist()
    assert parents == [-1, -1, rows[1], rows[1]]
    track = np.zeros(4, int)
    start, end = np.array([0, 5, 6, 12]), np.array([10, 15, 8, 13])
    assert nest(track, start, end, 1).num_overlapping == 1


def test_launch_and_kernel_are_linked_both_ways_and_so_are_flows():
    made = MadeTrace()
    launch = made.slice("main", "launch", 10, 2, "cuda_runtime", correlation=7)
    forward = made.slice("main", "forward", 20, 2)
    made.track("stream", kind="device", device=0, stream=7)
    kernel = made.slice("stream", "gemm", 30, 9, "kernel", correlation=7)
    backward = made.slice("autograd", "backward", 50, 2)
    made.flow("ac2g", launch, kernel)
    made.flow("fwdbwd", forward, backward)
    trace = made.build()
    rows = made.rows
    (link,) = trace.links_of(rows[launch])
    assert (link.kind, link.row, link.outgoing) == ("launch", rows[kernel], True)
    (link,) = trace.links_of(rows[kernel])
    assert (link.kind, link.row, link.outgoing) == ("launch", rows[launch], False)
    (link,) = trace.links_of(rows[backward])
    assert (link.kind, link.row, link.outgoing) == ("fwdbwd", rows[forward], False)


slices = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 20)), max_size=40
)


def repeated(pattern: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Steps that are alike, which begin in one slice and end in another."""
    steps = [
        (track, start + 50 * step, duration)
        for step in range(60)
        for track, start, duration in pattern
    ]
    return [(0, 0, 1000), (0, 20, 2500), *steps]


many_slices = st.one_of(
    slices,
    st.lists(
        st.tuples(st.just(0), st.integers(0, 50), st.integers(0, 6)),
        min_size=5,
        max_size=8,
    ).map(repeated),
)
"""Those of a step may reach into the next one."""


@given(many_slices)
def test_nesting_is_as_a_walk_over_all_pairs_says(made):
    track, start, duration = (
        np.array([row[column] for row in made], np.int64) for column in range(3)
    )
    end = start + duration
    found = nest(track, start, end, 3)
    assert sorted(found.order.tolist()) == list(range(len(made)))
    track, start, end = track[found.order], start[found.order], end[found.order]
    by_time = np.lexsort((found.level, -end, start, track))
    place = {int(row): index for index, row in enumerate(by_time)}
    for row in range(len(made)):
        parent = int(found.parent[row])
        if parent < 0:
            continue
        assert track[parent] == track[row]
        assert found.level[parent] < found.level[row]
        assert start[parent] <= start[row]
        assert end[row] <= end[parent]
        assert place[parent] < place[row]
    for index, rows in enumerate(found.level_rows):
        for level, (first, stop) in enumerate(itertools.pairwise(rows)):
            assert first < stop
            assert (track[first:stop] == index).all()
            assert (found.level[first:stop] == level).all()
            assert (start[first + 1 : stop] >= end[first : stop - 1]).all()


@given(many_slices)
def test_parents_are_the_innermost_that_hold_a_slice_and_levels_the_lowest_free(made):
    track = np.zeros(len(made), np.int64)
    start = np.array([row[1] for row in made], np.int64)
    end = start + np.array([row[2] for row in made], np.int64)
    found = nest(track, start, end, 1)
    start, end = start[found.order], end[found.order]
    by_time = np.lexsort((found.level, -end, start)).tolist()
    overlapping = 0
    for at, row in enumerate(by_time):
        still = [one for one in by_time[:at] if end[one] > start[row]]
        holding = [one for one in still if end[one] >= end[row]]
        parent = holding[-1] if holding else -1
        assert found.parent[row] == parent
        taken = {int(found.level[one]) for one in still}
        lowest = int(found.level[parent]) + 1 if holding else 0
        while lowest in taken:
            lowest += 1
        assert found.level[row] == lowest
        overlapping += len(still) > len(holding)
    assert found.num_overlapping == overlapping


@given(slices)
def test_a_range_of_time_finds_every_slice_that_touches_it(made):
    trace = MadeTrace()
    for track, start, duration in made:
        trace.slice(f"track {track}", "name", start, duration)
    built = trace.build()
    slices = built.slices
    for index, track in enumerate(built.tracks):
        for level in range(track.num_levels):
            first, stop = built.rows_of_level(index, level, 10, 20)
            low, high = track.level_rows[level : level + 2]
            ends = slices.start_ns + slices.duration_ns
            touching = [
                row
                for row in range(low, high)
                if slices.start_ns[row] <= 20 and ends[row] >= 10
            ]
            assert list(range(first, stop)) == touching
