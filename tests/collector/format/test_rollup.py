"""A rollup keeps peaks exactly, however the rows arrive and however long the run is."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from collector.format.encoding.numeric import ABSENT
from collector.format.rollup import Rollup, rollup_names


def oracle(rows: np.ndarray, width: int) -> list[tuple[float, float, float]]:
    """(max, min, mean) of each run of `width` rows, in plain Python."""
    buckets = []
    for start in range(0, len(rows), width):
        present = [v for v in rows[start : start + width] if v != ABSENT]
        if present:
            mean = sum(present) / len(present)
            buckets.append((max(present), min(present), mean))
        else:
            buckets.append((np.nan, np.nan, np.nan))
    return buckets


@given(
    st.lists(st.integers(0, 2**50) | st.just(ABSENT), max_size=300),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.sampled_from([2, 8, 33]),
)
def test_buckets_equal_a_plain_loop_over_the_rows(values, batches, max_buckets):
    rows = np.array(values, np.int64)
    rollup = Rollup(1, max_buckets=max_buckets)
    start = 0
    while start < len(rows):
        for size in batches:
            part = slice(start, start + size)
            index = np.arange(len(rows), dtype=np.int64)[part]
            rollup.add(index * 10, index, [rows[part]])
            start += size
    result = dict(
        zip(rollup_names(["x"], max_only=False), rollup.columns(), strict=True)
    )
    expected = oracle(rows, rollup.rows_per_bucket)
    assert rollup.num_rows == len(rows)
    assert len(result["x:max"]) == len(expected) <= max_buckets
    for index, name in enumerate(("x:max", "x:min", "x:mean")):
        np.testing.assert_allclose(
            result[name], [bucket[index] for bucket in expected], rtol=1e-12
        )
    width = rollup.rows_per_bucket
    firsts = np.arange(0, len(rows), width)
    assert np.array_equal(result["step_first"], firsts)
    lasts = np.minimum(firsts + width, len(rows)) - 1
    assert np.array_equal(result["step_last"], lasts)
    assert np.array_equal(result["ns_first"], firsts * 10)
    assert np.array_equal(result["ns_last"], lasts * 10)


def test_max_only_keeps_the_maxima_alone():
    rollup = Rollup(1, max_buckets=4, max_only=True)
    index = np.arange(100, dtype=np.int64)
    rollup.add(index, index, [index])
    result = dict(
        zip(rollup_names(["x"], max_only=True), rollup.columns(), strict=True)
    )
    assert set(result) == {"step_first", "step_last", "ns_first", "ns_last", "x:max"}
    assert result["x:max"][-1] == 99
