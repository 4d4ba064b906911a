"""Unions, overlays and means of ranges against counting every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.time.intervals import (
    Overlay,
    step_means,
    total_ns,
    union,
)

END = 40
RANGES = st.lists(
    st.tuples(st.integers(0, END), st.integers(0, END)).map(lambda r: (min(r), max(r))),
    max_size=12,
).map(lambda ranges: np.array(ranges, np.int64).reshape(-1, 2))


def moments(ranges) -> set[int]:
    return {moment for start, end in ranges.tolist() for moment in range(start, end)}


@given(RANGES)
def test_a_union_is_the_same_set_in_ranges_apart(ranges):
    whole = union(ranges)
    assert moments(whole) == moments(ranges)
    assert total_ns(ranges) == len(moments(ranges))
    assert (whole[:, 0] < whole[:, 1]).all()
    assert (whole[1:, 0] > whole[:-1, 1]).all()


@given(st.lists(RANGES, max_size=4))
def test_an_overlay_says_of_each_moment_which_sets_cover_it(sets):
    overlay = Overlay(sets)
    wanted = [moments(ranges) for ranges in sets]
    first = dict.fromkeys(range(len(sets) + 1), 0)
    for start, length, claimed in zip(
        overlay.start_ns, overlay.length_ns, overlay.first(), strict=True
    ):
        for moment in range(start, start + length):
            covering = [n for n, known in enumerate(wanted) if moment in known]
            assert claimed == (covering[0] if covering else len(sets))
        first[int(claimed)] += int(length)
    assert sum(first.values()) - first[len(sets)] == len(set().union(*wanted))
    for one in range(len(sets)):
        for other in range(len(sets)):
            both = wanted[one] & wanted[other]
            assert overlay.overlap_ns(one, other) == len(both)
    assert overlay.overlap_ns() == 0


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
