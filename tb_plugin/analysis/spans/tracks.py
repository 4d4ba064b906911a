"""Spans, instants and counters that a recording holds, as a `Trace` of tracks.

The captures of kind `spans` of one rank's file are put one after the other: each has
names and threads of its own, so those are made common first. Times are wall clock times;
see `collector.steps.spans.captures`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from tb_plugin.analysis.spans.columns import (
    MAX_TEXT,
    Texts,
    checkpoint_events,
    event_rows,
    instants_of,
    names_of,
    points_of,
    spans_of,
    stacked,
    threads_of,
)
from tb_plugin.analysis.spans.events import TRACK
from tb_plugin.analysis.trace.build import EMPTY_TRACE, nest
from tb_plugin.analysis.trace.trace import (
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

    import numpy.typing as npt

    from collector.format.records import Capture
    from tb_plugin.analysis.spans.events import SpanEvent

    Ints: TypeAlias = npt.NDArray[Any]

STATES: Final = ("skip", "warmup", "active", "active and save")
STEP: Final = "step"
"""Category of the spans of whole training steps."""

_LEAST_SLACK_NS: Final = 10**9
"""Events this near the spans are always among them."""


class SpanFile(NamedTuple):
    """Whose spans they are."""

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
    spans: list[Ints] = []
    instants: list[Ints] = []
    points: list[tuple[Ints, Ints, Ints]] = []
    args: list[str] = []
    dropped = damaged = 0
    for capture in captures:
        try:
            name, category = names_of(capture, texts)
            thread = threads_of(capture, threads)
            own = spans_of(capture, name, category, thread, len(args))
            moments = instants_of(capture, name, category, thread, len(args))
            values = points_of(capture, name)
        except (KeyError, ValueError, TypeError, IndexError):
            damaged += 1
            continue
        spans.append(own)
        instants.append(moments)
        points.append(values)
        args += map(str, capture.tables.get("args", {}).get("json", ()))
        number = capture.meta.get("num_dropped", 0)
        dropped += number if isinstance(number, int) else 0
    problems = _problems(dropped, damaged)
    span = stacked(spans, 8)
    instant = stacked(instants, 7)
    named = sorted(threads, key=threads.__getitem__)
    happened = [*_near(events, span, instant), *checkpoint_events(span, texts)]
    if happened:
        # Their track is the first.
        named = [(0, TRACK), *named]
        span[0] += 1
        instant[0] += 1
        instant = np.concatenate((instant, event_rows(happened, texts, args)), axis=1)
    time, value, series = (
        np.concatenate(column) if points else np.empty(0)
        for column in (zip(*points, strict=True) if points else ((), (), ()))
    )
    if not (span.shape[1] or instant.shape[1] or len(time)):
        return None
    begins = [column.min() for column in (span[1], instant[1], time) if len(column)]
    ends = [
        column.max() for column in (span[1] + span[2], instant[1], time) if len(column)
    ]
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
        problems,
    )


def _near(events: Sequence[SpanEvent], span: Ints, instant: Ints) -> list[SpanEvent]:
    """Events as far from the spans as these are long: others would dwarf them."""
    if not (span.shape[1] or instant.shape[1]):
        return []
    times = np.concatenate((span[1], span[1] + span[2], instant[1]))
    first, last = int(times.min()), int(times.max())
    slack = max(last - first, _LEAST_SLACK_NS)
    return [one for one in events if first - slack <= one.time_ns <= last + slack]


def _problems(dropped: int, damaged: int) -> tuple[Problem, ...]:
    found = []
    if dropped:
        found.append(
            Problem("Spans that came faster than they are kept were left out", dropped)
        )
    if damaged:
        found.append(Problem("Captures of spans were damaged and left out", damaged))
    return tuple(found)


def _made(
    of: SpanFile,
    strings: Sequence[str],
    threads: Sequence[tuple[int, str]],
    span: Ints,
    instant: Ints,
    points: tuple[Ints, Ints, Ints],
    args: Sequence[str],
    base: int,
    end: int,
    problems: tuple[Problem, ...],
) -> Trace:
    track, start, duration, name, category, step, state, arg = span
    start = start - base
    nested = nest(track, start, start + duration, len(threads))
    order = nested.order
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
    by_time = np.lexsort((instant[1], instant[0]))
    series, counters = _counters(points, strings, of, base, tracks)
    return replace(
        EMPTY_TRACE,
        tracks=tuple(tracks),
        strings=strings,
        slices=Slices(
            track=track[order].astype(np.uint32),
            level=nested.level.astype(np.uint16),
            start_ns=start[order],
            duration_ns=duration[order],
            name=name[order].astype(np.uint32),
            category=category[order].astype(np.uint32),
            parent=nested.parent,
            args=np.arange(len(order)),
        ),
        instants=Instants(
            instant[0][by_time],
            instant[1][by_time] - base,
            instant[2][by_time],
            instant[3][by_time],
            np.arange(len(order), len(order) + len(by_time)),
        ),
        series=series,
        counters=counters,
        base_ns=base,
        start_ns=0,
        end_ns=end - base,
        facts=TraceFacts(rank=of.rank),
        problems=problems,
        args=_SpanArgs(
            np.concatenate((step[order], instant[4][by_time])),
            np.concatenate((state[order], instant[5][by_time])),
            np.concatenate((arg[order], instant[6][by_time])),
            args,
        ),
    )


class _SpanArgs:
    """What is known of spans, then of instants, besides their times, by handle."""

    def __init__(
        self, step: Ints, state: Ints, args: Ints, texts: Sequence[str]
    ) -> None:
        self._step, self._state, self._args = step, state, args
        self._texts = texts

    def __call__(self, handle: int) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        step, state = int(self._step[handle]), int(self._state[handle])
        if step >= 0:
            found["step"] = step
        if 0 <= state < len(STATES):
            found["schedule"] = STATES[state]
        at = int(self._args[handle])
        if 0 <= at < len(self._texts):
            try:
                own = json.loads(self._texts[at])
            except (ValueError, RecursionError):
                own = {"args": self._texts[at]}
            found.update(own if isinstance(own, dict) else {"args": own})
        return found


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
    for first, stop in _groups(name):
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


def _groups(values: Ints) -> Iterable[tuple[int, int]]:
    if not len(values):
        return
    begins = np.flatnonzero(np.diff(values, prepend=values[0] - 1)).tolist()
    yield from zip(begins, [*begins[1:], len(values)], strict=True)
