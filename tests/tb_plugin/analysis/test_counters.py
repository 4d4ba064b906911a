"""Counters of devices: their use as the summary sums it, and their memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memboard.tb_plugin.analysis.time.intervals import total_ns
from memboard.tb_plugin.analysis.trace.profile import TraceProfile
from memboard.tb_plugin.analysis.trace.timeline.counters import (
    DEVICE_USE,
    MAX_BUCKETS,
    utilization_buckets,
    with_counters,
)
from tests.traces_builder import MadeTrace, memory_events, trace_of


def kernels(*of: tuple[int, int, float]) -> MadeTrace:
    """Kernels of one device as (start, duration, blocks per SM)."""
    made = MadeTrace()
    for start, took, _ in of:
        made.kernel(start, start, took)
    return made


def built(*of: tuple[int, int, float]):
    trace = kernels(*of).build()
    work = trace.device_work
    blocks = np.array([one for _, _, one in sorted(of)])
    return replace(trace, device_work=replace(work, blocks_per_sm=blocks))


def lines_of(trace) -> dict[str, list[tuple[int, float]]]:
    return {
        trace.tracks[one.track].name: [
            (int(trace.counters.time_ns[at]), float(trace.counters.value[at]))
            for at in range(one.first_row, one.first_row + one.num_points)
        ]
        for one in trace.series
    }


def test_each_device_has_its_utilization_and_its_sm_efficiency_in_per_cent():
    trace = with_counters(built((0, 5_000, 0.5), (20_000, 12_000, 3.0)))
    assert lines_of(trace) == {
        "device 0 utilization": [
            (0, 50.0),
            (10_000, 0.0),
            (20_000, 100.0),
            (32_000, 0),
        ],
        "device 0 est. SM efficiency": [
            *[(0, 50.0), (5_000, 0.0), (20_000, 100.0), (32_000, 0.0)]
        ],
    }
    added = trace.tracks[-2:]
    assert {(one.process, one.kind, one.device) for one in added} == {
        (DEVICE_USE, "counter", 0)
    }


def test_without_blocks_there_is_no_sm_efficiency_and_without_kernels_nothing():
    assert list(lines_of(with_counters(built((0, 50_000, np.nan))))) == [
        "device 0 utilization"
    ]
    none = MadeTrace().build()
    assert with_counters(none) is none


def test_counters_come_after_those_there_are():
    made = kernels((0, 10_000, np.nan))
    made.counter("heap", "bytes", 5, 7.0)
    lines = lines_of(with_counters(made.build()))
    assert lines == {
        "heap": [(5, 7.0)],
        "device 0 utilization": [(0, 100.0), (10_000, 0.0)],
    }


def test_buckets_are_tens_of_microseconds_and_no_more_than_asked_for():
    edges, share = utilization_buckets(np.array([[0, 96_000]]), (0, 126_000), 100)
    assert np.diff(edges).tolist() == [10_000] * 11 + [16_000]
    assert share.tolist() == [1.0] * 9 + [0.6, 0, 0]
    edges, _ = utilization_buckets(np.array([[0, 1]]), (0, 1_010_000), 100)
    assert np.diff(edges).tolist() == [100_000] * 9 + [110_000]
    edges, share = utilization_buckets(np.array([[3, 5]]), (3, 7))
    assert (edges.tolist(), share.tolist()) == ([3, 7], [0.5])
    assert len(utilization_buckets(np.array([[3, 5]]), (7, 7))[0]) == 0
    edges, _ = utilization_buckets(np.array([[0, 5]]), (0, 10**18))
    assert len(edges) <= MAX_BUCKETS + 1


@given(
    st.lists(
        st.tuples(st.integers(0, 300_000), st.integers(0, 100_000), st.floats(0.01, 3)),
        min_size=1,
        max_size=12,
        unique_by=lambda one: one[0],
    )
)
def test_the_counters_say_over_time_what_the_summary_says_of_all(of):
    trace = built(*of)
    start = min(one[0] for one in of)
    end = max(one[0] + one[1] for one in of)
    ranges = np.array([[a, a + b] for a, b, _ in of])
    edges, share = utilization_buckets(ranges, (start, end))
    busy_ns = float((share * np.diff(edges)).sum())
    assert busy_ns == pytest.approx(total_ns(ranges), abs=1e-3)
    assert ((share >= 0) & (share <= 1)).all()
    (use,) = TraceProfile(trace).devices
    if use.sm_efficiency is None:
        return
    line = lines_of(with_counters(trace))["device 0 est. SM efficiency"]
    times, levels = np.array(line).T
    inside = np.clip(times, *TraceProfile(trace).steps.span_ns)
    filled = float((levels[:-1] / 100 * np.diff(inside)).sum())
    assert filled / use.span_ns == pytest.approx(use.sm_efficiency, abs=1e-6)


def test_each_device_has_a_counter_of_what_was_said():
    trace = trace_of([(0, 0, 100, "mm")], points=[(1, 5.0)])
    memory = memory_events(
        [
            (10, 0, 0, 1, 0, 100, 200),
            (30, 0, 0, 1, 0, 50, 200),
            (20, 0, 0, 0, -1, 7, 0),
            (25, 0, 0, 1, 0),
        ]
    )
    found = with_counters(replace(trace, memory=memory))
    names = [track.name for track in found.tracks[-3:]]
    assert names == ["Allocated, CPU", "Allocated, GPU 0", "Reserved, GPU 0"]
    by_track = {series.track: series for series in found.series}
    gpu = by_track[len(found.tracks) - 2]
    part = slice(gpu.first_row, gpu.first_row + gpu.num_points)
    assert found.counters.time_ns[part].tolist() == [10, 30]
    assert found.counters.value[part].tolist() == [100, 50]
    # What was there before is still there.
    assert found.counters.value[:1].tolist() == [5.0]


def test_a_trace_without_totals_stays_as_it_is():
    trace = trace_of([(0, 0, 100, "mm")])
    assert with_counters(trace) is trace
