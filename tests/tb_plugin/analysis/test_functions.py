"""Snaps paired into calls: known numbers, any order, what is missing stays missing."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.series.functions import (
    CONTEXTS,
    NO_STEP,
    NO_TIME,
    CapturedCall,
    Snap,
    calls_of,
    joined,
    sides,
    table_of,
    unit_of,
    with_captures,
)


def snap(iteration, context, value=0.0, **fields):
    known = {"rank": 0, "function": "f", "phase": "train", "time_ns": iteration * 10}
    values = {"a": value, **fields.pop("values", {})}
    return Snap(
        **{**known, **fields}, iteration=iteration, context=context, values=values
    )


def test_pairs_and_differences():
    table = table_of(
        [
            snap(2, "start", 100.0, time_ns=20, step=7),
            snap(2, "end", 350.0, time_ns=29, step=7),
            snap(3, "start", 110.0, time_ns=30, step=8, values={"b": 1.0}),
            snap(3, "end", 90.0, time_ns=39, step=8),
        ]
    )
    calls = calls_of(table)
    assert calls.iteration.tolist() == [2, 3]
    assert calls.step.tolist() == [7, 8]
    assert calls.start_ns.tolist() == [20, 30]
    assert calls.end_ns.tolist() == [29, 39]
    start, end, difference = sides(table, calls, "a")
    assert start.tolist() == [100.0, 110.0]
    assert end.tolist() == [350.0, 90.0]
    assert difference.tolist() == [250.0, -20.0]
    start, end, difference = sides(table, calls, "b")
    assert np.isnan([start[0], end[0], end[1], difference[1]]).all()
    assert start[1] == 1.0
    assert np.isnan(sides(table, calls, "none such")).all()


def test_a_call_that_never_ended_has_no_end_and_no_difference():
    table = table_of([snap(1, "start", 5.0), snap(2, "end", 6.0)])
    calls = calls_of(table)
    assert calls.end_ns.tolist() == [NO_TIME, 20]
    assert calls.start_ns.tolist() == [10, NO_TIME]
    start, end, difference = sides(table, calls, "a")
    assert start[0] == 5.0
    assert end[1] == 6.0
    assert np.isnan([start[1], end[0], *difference]).all()


def test_the_later_of_two_snaps_of_one_side_counts():
    table = table_of([snap(1, "start", 5.0), snap(1, "start", 6.0)])
    assert sides(table, calls_of(table), "a")[0].tolist() == [6.0]


def test_another_attempt_counts_from_one_again():
    first = table_of([snap(1, "start", 1.0), snap(2, "start", 2.0)])
    again = table_of([snap(1, "start", 3.0, attempt=2, time_ns=5)])
    table = joined([again, first])
    calls = calls_of(table)
    pairs = zip(calls.attempt.tolist(), calls.iteration.tolist(), strict=True)
    assert list(pairs) == [(1, 1), (1, 2), (2, 1)]
    assert sides(table, calls, "a")[0].tolist() == [1.0, 2.0, 3.0]


def test_reports_without_times_keep_the_order_of_their_iterations():
    table = table_of(
        [snap(n, c, time_ns=None) for n in (10, 2, 1) for c in ("end", "start")]
    )
    calls = calls_of(table)
    assert calls.iteration.tolist() == [1, 2, 10]
    assert set(calls.start_ns.tolist()) == {NO_TIME}
    assert set(calls.step.tolist()) == {NO_STEP}


def test_stats_of_one_table_are_missing_in_another():
    one = table_of([snap(1, "start", 1.0, values={"b": 5.0})])
    other = table_of([snap(2, "start", 2.0, values={"c": 6.0})])
    table = joined([one, other])
    assert list(table.stats) == ["a", "b", "c"]
    assert table.stats["a"].tolist() == [1.0, 2.0]
    assert np.array_equal(table.stats["b"], [5.0, np.nan], equal_nan=True)
    assert np.array_equal(table.stats["c"], [np.nan, 6.0], equal_nan=True)
    assert len(joined([])) == len(calls_of(joined([]))) == 0


def test_captures_add_calls_and_bits():
    calls = calls_of(table_of([snap(1, "start"), snap(2, "start")]))
    calls = with_captures(
        calls,
        [
            CapturedCall(1, 2, 7, 25, 2),
            CapturedCall(1, 3, 9, 30, 2),
            CapturedCall(1, 3, 9, 31, 8),
            CapturedCall(1, 0, NO_STEP, 5, 16),
        ],
    )
    assert calls.iteration.tolist() == [0, 1, 2, 3]
    assert calls.kinds.tolist() == [16, 1, 3, 10]
    assert calls.step.tolist() == [NO_STEP, NO_STEP, NO_STEP, 9]
    assert calls.end_ns.tolist() == [5, NO_TIME, NO_TIME, 31]


def test_units_by_name():
    assert unit_of("allocated_bytes.all.current") == "bytes"
    assert unit_of("rss_bytes") == "bytes"
    assert unit_of("hook.rss_diff") == "bytes"
    assert unit_of("allocation.all.allocated") == "count"
    assert unit_of("num_ooms") == "count"


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 3), st.integers(1, 9), st.sampled_from(CONTEXTS)),
        st.floats(-1e12, 1e12),
        max_size=30,
    ),
    st.randoms(),
)
def test_any_order_of_snaps_gives_the_same_calls(values, random):
    snaps = [
        snap(iteration, context, value, attempt=attempt)
        for (attempt, iteration, context), value in values.items()
    ]
    random.shuffle(snaps)
    table = table_of(snaps)
    calls = calls_of(table)
    start, end, difference = sides(table, calls, "a")
    found = {}
    for row in range(len(calls)):
        call = int(calls.attempt[row]), int(calls.iteration[row])
        for context, side in zip(CONTEXTS, (start, end), strict=True):
            if not np.isnan(side[row]):
                found[(*call, context)] = side[row]
        both = [values.get((*call, context)) for context in CONTEXTS]
        if None not in both:
            assert difference[row] == both[1] - both[0]
        else:
            assert np.isnan(difference[row])
    assert found == values
    assert len(set(zip(calls.attempt, calls.iteration, strict=True))) == len(calls)
