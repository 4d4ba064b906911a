"""Totals of the allocator in a trace as counters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tb_plugin.analysis.trace.details import MemoryEvents
from tb_plugin.analysis.trace.trace import NOTHING
from tb_plugin.analysis.trace_memory.totals import with_memory
from tests.tb_plugin.analysis.traces import trace_of


def events(*rows: tuple[int, int, int, int, int]) -> MemoryEvents:
    """Of (time, device type, device, allocated, reserved)."""
    time, kind, device, allocated, reserved = np.array(rows, np.int64).T
    none = np.zeros(len(rows), np.int64)
    return MemoryEvents(
        time_ns=time,
        track=none,
        num_bytes=none,
        address=none,
        device_type=kind,
        device=device,
        allocated_bytes=allocated,
        reserved_bytes=reserved,
        args=none,
    )


def test_each_device_has_a_counter_of_what_was_said():
    trace = trace_of([(0, 0, 100, "mm")], points=[(1, 5.0)])
    memory = events(
        (10, 1, 0, 100, 200),
        (30, 1, 0, 50, 200),
        (20, 0, -1, 7, 0),
        (25, 1, 0, NOTHING, NOTHING),
    )
    found = with_memory(replace(trace, memory=memory))
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
    assert with_memory(trace) is trace
