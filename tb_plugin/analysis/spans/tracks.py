"""Spans, instants and counters that a recording holds, as a `Trace` of tracks.

The captures of kind `spans` of one rank's file are put one after the other: each has
names and threads of its own, so those are made common first. Times are wall clock times;
see `memboard.collector.steps.spans.captures`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import begins
from memboard.tb_plugin.analysis.spans.columns import (
    MAX_TEXT,
    Rows,
    Texts,
    checkpoint_events,
    event_rows,
    joined,
    names_of,
    points_of,
    rows_of,
    threads_of,
)
from memboard.tb_plugin.analysis.spans.events import TRACK
from memboard.tb_plugin.analysis.trace.build import EMPTY_TRACE
from memboard.tb_plugin.analysis.trace.nesting import nest
from memboard.tb_plugin.analysis.trace.trace import (
    Counters,
    Instants,
    Problem,
    Series,
    Slices,
    Trace,
    TraceFacts,
    Track,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.collector.format.records import Capture
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.spans.events import SpanEvent


STATES: Final = ("skip", "warmup", "active", "active and save")
STEP: Final = "step"
"""Category of the spans of whole training steps."""

_LEAST_SLACK_NS: Final = 10**9
"""Events this near the spans are always among them."""


class SpanFile(NamedTuple):
    rank: int
    pid: int
    process: str


def span_trace(
    captures: Iterable[Capture], of: SpanFile, events: Sequence[SpanEvent] = ()
) -> Trace | None:
    """The tracks of a rank's captures, with what else happened; None without spans.

    Columns of unequal length, rows that do not exist and negative durations, which only
    a damaged or hostile file has, lose their capture, and are counted as a problem.
    """
    texts = Texts()
    threads: dict[tuple[int, str], int] = {}
    spans: list[Rows] = []
    instants: list[Rows] = []
    points: list[tuple[Ints, Ints, Ints]] = []
    args: list[str] = []
    dropped = damaged = 0
    for capture in captures:
        try:
            names = names_of(capture, texts)
            thread = threads_of(capture, threads)
            own = rows_of(capture, "spans", names, thread, len(args))
            moments = rows_of(capture, "instants", names, thread, len(args))
            values = points_of(capture, names[0])
        except (KeyError, ValueError, TypeError, IndexError):
            damaged += 1
            continue
        spans.append(own)
        instants.append(moments)
        points.append(values)
        args += map(str, capture.tables.get("args", {}).get("json", ()))
        number = capture.meta.get("num_dropped", 0)
        dropped += number if isinstance(number, int) else 0
    span, instant = joined(spans), joined(instants)
    named = sorted(threads, key=threads.__getitem__)
    happened = [*_near(events, span, instant), *checkpoint_events(span, texts)]
    if happened:
        # Their track is the first.
        named = [(0, TRACK), *named]
        span = replace(span, thread=span.thread + 1)
        instant = replace(instant, thread=instant.thread + 1)
        instant = joined((instant, event_rows(happened, texts, args)))
    time, value, series = (
        np.concatenate(column) if points else np.empty(0)
        for column in (zip(*points, strict=True) if points else ((), (), ()))
    )
    begins = [
        times.min() for times in (span.start_ns, instant.start_ns, time) if len(times)
    ]
    ends = [times.max() for times in (span.end_ns, instant.end_ns, time) if len(times)]
    if not begins:
        return None
    base = int(min(begins))
    return _made(
        of,
        texts.strings,
        named,
        span,
        instant,
        (time, value, series),
        args,
        base,
        int(max(ends)),
        _problems(dropped, damaged),
    )


def _near(events: Sequence[SpanEvent], span: Rows, instant: Rows) -> list[SpanEvent]:
    """Events as far from the spans as these are long: others would dwarf them."""
    times = np.concatenate((span.start_ns, span.end_ns, instant.start_ns))
    if not len(times):
        return []
    first, last = int(times.min()), int(times.max())
    slack = max(last - first, _LEAST_SLACK_NS)
    return [event for event in events if first - slack <= event.time_ns <= last + slack]


def _problems(dropped: int, damaged: int) -> tuple[Problem, ...]:
    problems = []
    if dropped:
        problems.append(
            Problem("Spans that came faster than they are kept were left out", dropped)
        )
    if damaged:
        problems.append(Problem("Captures of spans were damaged and left out", damaged))
    return tuple(problems)


def _made(
    of: SpanFile,
    strings: Sequence[str],
    threads: Sequence[tuple[int, str]],
    span: Rows,
    instant: Rows,
    points: tuple[Ints, Ints, Ints],
    args: Sequence[str],
    base: int,
    end: int,
    problems: tuple[Problem, ...],
) -> Trace:
    start = span.start_ns - base
    nested = nest(span.thread, start, start + span.duration_ns, len(threads))
    span = span.take(nested.order)
    instant = instant.take(np.lexsort((instant.start_ns, instant.thread)))
    tracks = [
        Track(
            name=label[:MAX_TEXT] or f"thread {tid}",
            process=of.process,
            kind="span",
            rank=of.rank,
            pid=str(of.pid),
            tid=str(tid),
            first_row=rows[0],
            num_slices=rows[-1] - rows[0],
            level_rows=rows,
        )
        for (tid, label), rows in zip(threads, nested.level_rows, strict=True)
    ]
    series, counters = _counters(points, strings, of, base, tracks)
    return replace(
        EMPTY_TRACE,
        tracks=tuple(tracks),
        strings=strings,
        slices=Slices(
            track=span.thread.astype(np.uint32),
            level=nested.level.astype(np.uint16),
            start_ns=span.start_ns - base,
            duration_ns=span.duration_ns,
            name=span.name.astype(np.uint32),
            category=span.category.astype(np.uint32),
            parent=nested.parent,
            args=np.arange(len(span)),
        ),
        instants=Instants(
            instant.thread,
            instant.start_ns - base,
            instant.name,
            instant.category,
            np.arange(len(span), len(span) + len(instant)),
        ),
        series=series,
        counters=counters,
        base_ns=base,
        start_ns=0,
        end_ns=end - base,
        facts=TraceFacts(rank=of.rank),
        problems=problems,
        args=_SpanArgs(joined((span, instant)), args),
    )


class _SpanArgs:
    """What is known of spans, then of instants, besides their times, by handle."""

    def __init__(self, rows: Rows, texts: Sequence[str]) -> None:
        self._rows, self._texts = rows, texts

    def __call__(self, handle: int) -> Mapping[str, Any]:
        details: dict[str, Any] = {}
        rows = self._rows
        step, state = int(rows.step[handle]), int(rows.state[handle])
        if step >= 0:
            details["step"] = step
        if 0 <= state < len(STATES):
            details["schedule"] = STATES[state]
        index = int(rows.args[handle])
        if 0 <= index < len(self._texts):
            try:
                own = json.loads(self._texts[index])
            except (ValueError, RecursionError):
                own = {"args": self._texts[index]}
            details.update(own if isinstance(own, dict) else {"args": own})
        return details


def _counters(
    points: tuple[Ints, Ints, Ints],
    strings: Sequence[str],
    of: SpanFile,
    base: int,
    tracks: list[Track],
) -> tuple[tuple[Series, ...], Counters]:
    time, value, name = points
    order = np.lexsort((time, name))
    time, value, name = time[order], value[order], name[order]
    series = []
    starts = np.flatnonzero(begins(name)).tolist()
    for first, stop in pairwise([*starts, len(name)]):
        label = strings[int(name[first])]
        series.append(Series(len(tracks), label, first, stop - first))
        tracks.append(
            Track(
                name=label,
                process=of.process,
                kind="counter",
                rank=of.rank,
                pid=str(of.pid),
            )
        )
    return tuple(series), Counters((time - base).astype(np.int64), value)
