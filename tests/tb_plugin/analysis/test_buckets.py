"""Reducing to pixels keeps every peak, at its own place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.series.buckets import pooled, thinned, visible, windows
from memboard.tb_plugin.analysis.series.rows import Rows

VALUES = st.lists(st.floats(0, 1e6) | st.just(float("nan")), min_size=1, max_size=300)


def rows_of(values, x=None) -> Rows:
    y = np.array(values, float)
    at = np.arange(len(y)) if x is None else np.array(x)
    return Rows(at, at, y, y, 1)


@given(VALUES, st.integers(1, 50))
def test_thinning_keeps_the_highest_and_the_lowest_of_every_column(values, points):
    rows = rows_of(values)
    high = float(len(values) - 1)
    fewer, width = thinned(rows, 0.0, high, points)
    if len(values) <= points or high == 0:
        assert fewer.high.tobytes() == rows.high.tobytes()
        assert width == 1
        return
    assert len(fewer) <= points + 2
    assert np.all(np.diff(fewer.first) > 0)
    column = np.clip(np.floor(np.arange(len(values)) * (points / high)), -1, points)
    for index, group in enumerate(np.unique(column)):
        inside = rows.high[column == group]
        present = inside[~np.isnan(inside)]
        if len(present) == 0:
            assert np.isnan(fewer.high[index])
            continue
        assert fewer.high[index] == present.max()
        assert fewer.low[index] == present.min()
        assert rows.high[fewer.first[index]] == present.max(), "at the peak's own x"
    assert width == max(np.count_nonzero(column == g) for g in np.unique(column))


def test_entries_at_the_same_x_become_one():
    fewer, width = thinned(rows_of([1, 5, 3, 2], [0, 1, 1, 2]), 0, 2, 100)
    assert fewer.first.tolist() == [0, 1, 2]
    assert fewer.high.tolist() == [1, 5, 2]
    assert fewer.low.tolist() == [1, 3, 2]
    assert width == 2


def test_the_visible_part_has_a_neighbour_on_each_side():
    assert visible(rows_of(range(100)), 40, 50).first.tolist() == list(range(39, 52))
    assert visible(rows_of(range(100)), 0, 99).first.tolist() == list(range(100))
    assert visible(rows_of(range(10)), 40, 50).first.tolist() == [9]


@given(
    st.lists(
        st.tuples(st.integers(1, 5), st.integers(0, 4), st.floats(0, 9)),
        min_size=1,
        max_size=40,
    ),
    st.lists(st.integers(0, 200), min_size=2, max_size=20, unique=True),
)
def test_pooling_equals_a_plain_loop(buckets, cuts):
    first, last, at = [], [], 0
    for length, gap, _ in buckets:
        first.append(at + gap)
        last.append(at + gap + length - 1)
        at += gap + length
    values = np.array([[value for _, _, value in buckets]])
    edges = np.array(sorted(cuts), float)
    start, stop = windows(np.array(first), np.array(last), edges)
    found = pooled(values, start, stop)[0]
    for column in range(len(edges) - 1):
        inside = [
            v
            for f, z, (_, _, v) in zip(first, last, buckets, strict=True)
            if z >= edges[column] and f < edges[column + 1]
        ]
        assert found[column] == max(inside) if inside else np.isnan(found[column])
