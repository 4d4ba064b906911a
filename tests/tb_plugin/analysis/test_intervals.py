"""Unions and overlays of ranges against counting every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tb_plugin.analysis.time.intervals import Overlay, total_ns, union

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
