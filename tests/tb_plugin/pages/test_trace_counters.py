"""Counters of a trace in a window: every point, or one of each pixel."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from memboard.tb_plugin.analysis.trace.timeline.counters import DEVICE_USE
from memboard.tb_plugin.analysis.trace.trace import Counters, Series, Track
from memboard.tb_plugin.facts.traces.timeline.counters import trace_lines
from tests.traces_builder import trace_of


def with_counter(process, points):
    trace = trace_of([(0, 0, 1_000, "step")])
    times, values = zip(*points, strict=True)
    return replace(
        trace,
        tracks=(*trace.tracks, Track(name="it", process=process, kind="counter")),
        series=(Series(1, "", 0, len(points)),),
        counters=Counters(np.array(times), np.array(values, np.float64)),
    )


def floats(column):
    return np.frombuffer(column.data)


def test_shares_of_time_are_the_means_of_pixels():
    """A device that works every other 2 ns is busy half of the time, not always."""
    points = [(at, 100.0 * (at % 4 == 0)) for at in range(0, 1_000, 2)]
    trace = with_counter(DEVICE_USE, points)
    (far,) = trace_lines(trace, "a:1", 1, 0, 1_000, px=40)
    assert far.reduced == "mean"
    inside = floats(far.value)[floats(far.time_ns) < 984]
    assert (inside == 50).all()
    (near,) = trace_lines(trace, "a:1", 1, 100, 120, px=40)
    assert near.reduced == "exact"
    assert set(floats(near.value).tolist()) == {0.0, 100.0}


def test_of_other_numbers_no_peak_is_lost():
    points = [(at, float(at == 500)) for at in range(0, 1_000, 2)]
    (line,) = trace_lines(with_counter("Memory", points), "a:1", 1, 0, 1_000, px=40)
    assert line.reduced == "highest"
    assert floats(line.value).max() == 1
