"""Traces made to take memory or time: what is too much is left out, and said."""

from __future__ import annotations

import numpy as np

from memboard.tb_plugin.formats.traces.columns import assembling, details
from tests.tb_plugin.readers.traces.reading import (
    document,
    event,
    names_of,
    problems_of,
    read,
)


def test_slices_that_all_overlap_take_no_time_that_grows_with_their_square():
    """Of so many that took three minutes."""
    num = 60_000
    trace = read(document([event("a", at, num) for at in range(num)]))
    assert len(trace.slices) == assembling.MAX_LEVELS
    left_out = num - assembling.MAX_LEVELS
    assert problems_of(trace) == {"slices beyond 2,048 levels are not shown": left_out}


def test_slices_that_overlap_side_by_side_stand_on_levels_of_their_own():
    trace = read(document([event("a", at, 1_500) for at in range(1_500)]))
    assert trace.slices.level.tolist() == list(range(1_500))
    assert trace.num_overlapping == 1_499


def test_levels_that_no_program_has_are_not_shown(monkeypatch):
    monkeypatch.setattr(assembling, "MAX_LEVELS", 50)
    events = []
    for at in range(60):
        link = {"args": {"correlation": at + 1}}
        events.append(event(f"call {at}", at, 200 - 2 * at, cat="cuda_runtime", **link))
        args = {"device": 0, "stream": 7, "correlation": at + 1}
        events.append(event(f"k {at}", 300 + at, 1, cat="kernel", tid=7, args=args))
    trace = read(document(events))
    assert problems_of(trace) == {"slices beyond 50 levels are not shown": 10}
    assert len(trace.slices) == 110
    assert len(trace.launches.row) == 50
    pairs = trace.launch_pairs
    for call, kernel in pairs.tolist():
        assert trace.name_of(call)[5:] == trace.name_of(kernel)[2:]
    assert len(pairs) == 50
    assert names_of(trace)[49] == "call 49"


def test_texts_beyond_those_that_profilers_write_are_one(monkeypatch):
    monkeypatch.setattr(details, "MAX_TEXTS", 10)
    events = [event(f"n{at}", at, args={"Input Dims": [[at, at]]}) for at in range(100)]
    trace = read(document(events))
    assert len(trace.slices) == 100
    assert len(set(trace.strings)) == len(trace.strings) <= 11
    names = names_of(trace)
    assert names[:3] == ["n0", "n1", "n2"]
    assert names[-1] == details.BEYOND
    assert trace.args_of(99) == {"Input Dims": [[99, 99]]}
    (problem,) = trace.problems
    assert problem.what.startswith("texts beyond the first ")
    assert problem.count > 150


def test_threads_beyond_those_that_programs_have_are_one_more(monkeypatch):
    monkeypatch.setattr(details, "MAX_TRACKS", 20)
    trace = read(document([event("a", at, 3, tid=at) for at in range(100)]))
    assert len(trace.slices) == 100
    assert len(trace.tracks) == 21
    assert np.bincount(trace.slices.track).max() == 80
    (problem,) = trace.problems
    assert "threads beyond the first" in problem.what
