"""Files of Composer's JSONTraceHandler: its own events with torch's between them."""

from __future__ import annotations

import json

import pytest

from memboard.tb_plugin.formats.traces.torch_clock import base_at
from tests.tb_plugin.readers.traces.reading import event, names_of, problems_of, read

NOW_US = 1_790_900_000_000_000
QUARTER_US = 7_889_238 * 10**6
BASE_US = NOW_US // QUARTER_US * QUARTER_US
"""What torch's times of that day count from."""


def span(name, begin, end=None, **more):
    """What Composer writes of an event of its own, at microseconds after `NOW_US`."""
    shared = {"name": name, "cat": "", "pid": 0, "tid": 70, **more}
    found = [{**shared, "ph": "B", "ts": NOW_US + begin}]
    return found if end is None else [*found, {**shared, "ph": "E", "ts": NOW_US + end}]


def torchs(begin, base_us=BASE_US):
    at = NOW_US + begin - base_us
    return [
        event("aten::mm", ts=at + 0.25, dur=5, pid=7, tid=7),
        {**event("[memory]", ts=at + 1.5, pid=7, tid=7), "ph": "i", "s": "t"},
        {**event("sent", ts=at + 2, pid=7, tid=7), "ph": "s", "id": 1, "cat": "fwdbwd"},
    ]


def listed(events):
    return json.dumps(events).encode()


def test_torchs_events_lie_where_composers_say_they_ran():
    trace = read(listed(span("event/batch", 0, 40) + torchs(10)))
    at = dict(zip(names_of(trace), trace.slices.start_ns.tolist(), strict=True))
    assert at == {"event/batch": 0, "aten::mm": 10_250}
    assert trace.base_ns == NOW_US * 1000
    assert trace.end_ns - trace.start_ns == 40_000
    assert problems_of(trace) == {}
    assert trace.facts.metadata["nanoseconds added to torch's times"] == BASE_US * 1000


def test_a_process_that_began_in_the_quarter_before():
    events = span("event/batch", 0, 40) + torchs(10, BASE_US - QUARTER_US)
    trace = read(listed(events))
    at = dict(zip(names_of(trace), trace.slices.start_ns.tolist(), strict=True))
    assert at == {"event/batch": 0, "aten::mm": 10_250}


def test_times_that_would_lie_elsewhere_stay_as_they_are():
    trace = read(listed(span("event/batch", 0, 40) + torchs(10_000_000)))
    assert trace.end_ns - trace.start_ns > 10**17
    assert "nanoseconds added to torch's times" not in trace.facts.metadata


@pytest.mark.parametrize("time_us", [NOW_US, BASE_US, BASE_US - 1])
def test_torchs_quarters_begin_where_they_do(time_us):
    base_ns = base_at(time_us * 1000)
    assert base_ns % (QUARTER_US * 1000) == 0
    assert 0 <= time_us * 1000 - base_ns < QUARTER_US * 1000


def test_an_end_belongs_to_what_has_its_name():
    events = [
        *span("event/init", -5, 3)[1:],  # it began before recording did
        *span("event/fit", 1),
        *span("event/batch", 5),
        *span("event/forward", 6, 9),
        *span("callback/event/epoch_start", 8, 10)[1:],
        *span("event/batch", 5, 20)[1:],
        *span("event/batch", 25),
        {"ph": "E", "ts": NOW_US + 30, "pid": 0, "tid": 70},
    ]
    trace = read(listed(events))
    rows = zip(
        names_of(trace),
        trace.slices.start_ns.tolist(),
        trace.slices.duration_ns.tolist(),
        strict=True,
    )
    assert sorted(rows) == [
        ("event/batch", 4_000, 15_000),
        ("event/batch", 24_000, 5_000),
        ("event/fit", 0, 29_000),
        ("event/forward", 5_000, 3_000),
    ]
    assert problems_of(trace) == {
        "ends of what never began are not shown": 2,
        "slices that never ended are shown until the trace's end": 1,
    }
    assert all(problem.is_usual for problem in trace.problems)
