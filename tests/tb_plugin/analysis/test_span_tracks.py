"""Spans of captures as tracks: what else happened is a track of its own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from memboard.collector.format.records import Capture, Note
from memboard.tb_plugin.analysis.spans.events import MAX_EVENTS, SpanEvent, events_of
from memboard.tb_plugin.analysis.spans.tracks import SpanFile, span_trace
from tests.builders import START_NS
from tests.tb_plugin.pages.test_trace import MS, STEPS, spans_of

FILE = SpanFile(0, 1, "spans of rank 0")


def capture(tables: dict[str, Any]) -> Capture:
    return Capture(
        kind="spans",
        time_ns=START_NS,
        step=0,
        phase="train",
        function="",
        iteration=0,
        meta={"num_dropped": 0},
        tables=tables,
    )


def event(time_ns: int, name: str = "out of memory") -> SpanEvent:
    return SpanEvent(time_ns, name, "oom", 3, {"message": "no room"})


def test_events_are_the_first_track_with_their_data():
    trace = span_trace([capture(spans_of(STEPS))], FILE, [event(START_NS + 36 * MS)])
    assert [track.name for track in trace.tracks][:2] == ["events", "MainThread"]
    assert trace.tracks[0].num_slices == 0
    assert trace.slices.track.tolist() == [1] * len(STEPS)
    assert trace.instants.track.tolist() == [0]
    assert trace.args_at(int(trace.instants.args[0])) == {
        "step": 3,
        "message": "no room",
    }
    # Spans keep theirs.
    row = [trace.name_of(row) for row in range(len(STEPS))].index("step")
    assert trace.args_of(row)["batch"] == 4


def test_only_what_is_near_the_spans_is_among_them():
    long_ns = 40 * MS + 10**9
    far = [event(START_NS - 2 * long_ns), event(START_NS + 3 * long_ns, "later")]
    near = event(START_NS - 10**9 // 2, "before")
    trace = span_trace([capture(spans_of(STEPS))], FILE, [*far, near])
    assert [trace.strings[name] for name in trace.instants.name] == ["before"]
    assert span_trace([], FILE, [near]) is None


def test_a_checkpoint_inside_another_is_no_event_of_its_own():
    saves = [
        ("save", "checkpoint", 0, 9 * MS, 1),
        ("save", "checkpoint", 2 * MS, 3 * MS, 1),
        ("save", "checkpoint", 20 * MS, MS, 2),
    ]
    trace = span_trace([capture(spans_of(saves))], FILE)
    assert (trace.instants.time_ns + trace.base_ns - START_NS).tolist() == [
        9 * MS,
        21 * MS,
    ]
    said = trace.args_at(int(trace.instants.args[1]))
    assert said == {"step": 2, "span": "save", "seconds": 0.001}


def test_a_damaged_capture_is_lost_whole_and_shifts_no_arguments():
    damaged = spans_of(STEPS)
    damaged["counters"]["value"] = np.array([1.0])
    good = spans_of([("later", "user", 90 * MS, MS, 9)])
    good["args"]["json"] = (json.dumps({"good": True}),)
    trace = span_trace([capture(damaged), capture(good)], FILE)
    assert len(trace.slices) == 1
    assert trace.args_of(0)["good"] is True
    assert [problem.count for problem in trace.problems] == [1]


def test_notes_that_happen_at_a_time_are_events_up_to_a_bound():
    notes = [
        Note(kind="oom", time_ns=5, step=2, data={"message": "x"}),
        Note(kind="clock", time_ns=6, step=None, data={}),
        Note(kind="epoch", time_ns=7, step=None, data={"epoch": 3}),
        Note(kind="mark", time_ns=8, step=4, data={"label": ["no", "text"]}),
    ]
    assert [(one.name, one.category, one.step) for one in events_of(notes)] == [
        ("out of memory", "oom", 2),
        ("epoch 3", "epoch", -1),
        ("mark", "mark", 4),
    ]
    many = [notes[0]] * (MAX_EVENTS + 5)
    assert len(list(events_of(many))) == MAX_EVENTS
