"""Spans, instants and counters as captures, on the writer's thread.

A capture of kind `spans` holds what has ended since the one before, of one cycle. Its
meta is `cycle` (0: of none) and `num_dropped` since the capture before. Its tables:

- `names`: name, category;
- `threads`: thread_id (native), name; the training thread's steps are a row of their own;
- `spans`: name and thread (rows of those), start_ns (wall clock, as below), duration_ns,
  step, depth (0: in no other span), state (0 skip, 1 warmup, 2 active, 3 active and
  save), args (row of the last table, or -1);
- `instants`: name, thread, time_ns, step, state, args;
- `counters`: name, time_ns, step, value;
- `args`: json.

Times come from a clock that never goes back, put on the wall clock once, where the
recording started: two of them are as far apart as the events were.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.format.records import Capture
from memboard.collector.steps.spans.log import (
    COUNTER_WIDTH,
    INSTANT_WIDTH,
    KEPT,
    SPAN_WIDTH,
    taken,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from memboard.collector.format.records import CaptureTable, IntArray
    from memboard.collector.steps.spans.log import SpanLog

Key = TypeVar("Key")
Rows: TypeAlias = "list[tuple[Any, ...]]"

SPAN_BYTES: Final = 8
"""Approximate bytes of a span on the disk: 3 to 7 were measured, without its texts."""

_TEXT_BYTES: Final = 0.3
"""Size of a byte of a text there, deflated."""

_CAPTURE_BYTES: Final = 1000
"""Further bytes of a capture."""

PER_SECOND: Final = 10_000
"""Highest rate for longer than a moment: spans beyond it are dropped and counted."""

MAX_BYTES: Final = 2**30
"""Disk that one rank's spans may take, about; then they are summed up per name alone."""

_BURST_SECONDS: Final = 5
_MAX_JSON: Final = 4000


class SpanCaptures:
    """Makes captures of what is in a log. Of the writer's thread."""

    def __init__(
        self,
        log: SpanLog,
        to_wall_ns: int,
        put: Callable[[Capture], bool],
    ) -> None:
        """`to_wall_ns`: add it to a time of the log to get a recorded one.

        `put` takes a capture; False: it had to be dropped.
        """
        self._log = log
        self._put = put
        self._to_wall = to_wall_ns
        self._burst = _BURST_SECONDS * PER_SECOND
        self._room = float(self._burst)
        self._since = time.monotonic()
        self._left_bytes: float = MAX_BYTES
        self._dropped_told = 0

    def write(self, phase: str) -> None:
        """Make captures of all that has come so far."""
        log = self._log
        spans = [row for row in _rows(log.take_spans(), SPAN_WIDTH) if row[7] & KEPT]
        instants = _rows(taken(log.instants), INSTANT_WIDTH)
        counters = _rows(taken(log.counters), COUNTER_WIDTH)
        logs = [(self._admitted(spans), 6), (self._admitted(instants), 4)]
        logs.append((self._admitted(counters), 2))
        for cycle in sorted({row[index][2] for rows, index in logs for row in rows}):
            them = (
                [row for row in rows if row[index][2] == cycle] for rows, index in logs
            )
            self._write_cycle(cycle, phase, *them)

    def _write_cycle(
        self,
        cycle: int,
        phase: str,
        span_rows: Rows,
        instant_rows: Rows,
        counter_rows: Rows,
    ) -> None:
        texts = _Texts()
        spans = _columns(span_rows, SPAN_WIDTH)
        instants = _columns(instant_rows, INSTANT_WIDTH)
        counters = _columns(counter_rows, COUNTER_WIDTH)
        tables: dict[str, CaptureTable] = {
            "spans": {
                "name": texts.names(spans[0], spans[1]),
                "thread": texts.threads(spans[2]),
                "start_ns": np.array(spans[3], np.int64) + self._to_wall,
                "duration_ns": np.array(spans[4], np.int64),
                "step": _ints(moment[0] for moment in spans[6]),
                "depth": _ints(spans[5]),
                "state": _ints(moment[1] for moment in spans[6]),
                "args": texts.args(spans[8]),
            },
            "instants": {
                "name": texts.names(instants[0], instants[1]),
                "thread": texts.threads(instants[2]),
                "time_ns": np.array(instants[3], np.int64) + self._to_wall,
                "step": _ints(moment[0] for moment in instants[4]),
                "state": _ints(moment[1] for moment in instants[4]),
                "args": texts.args(instants[5]),
            },
            "counters": {
                "name": texts.names(counters[0], ["counter"] * len(counters[0])),
                "time_ns": np.array(counters[1], np.int64) + self._to_wall,
                "step": _ints(moment[0] for moment in counters[2]),
                "value": np.array(counters[3], np.float64),
            },
        }
        tables |= texts.tables(self._log.threads)
        dropped = self._log.num_dropped
        capture = Capture(
            kind="spans",
            time_ns=now_ns(),
            step=max(moment[0] for moment in (*spans[6], *instants[4], *counters[2])),
            phase=phase,
            function="",
            iteration=0,
            meta={"cycle": cycle, "num_dropped": dropped - self._dropped_told},
            tables=tables,
        )
        if self._put(capture):
            self._dropped_told = dropped
            self._left_bytes -= _disk_bytes(tables)
        else:
            self._log.num_dropped += len(spans[0]) + len(instants[0]) + len(counters[0])

    def _admitted(self, rows: Rows) -> Rows:
        """As many of the rows as pace and disk leave room for; the rest is counted."""
        now = time.monotonic()
        passed, self._since = now - self._since, now
        self._room = min(self._burst, self._room + passed * PER_SECOND)
        admitted = rows[: int(self._room) if self._left_bytes > 0 else 0]
        self._room -= len(admitted)
        self._log.num_dropped += len(rows) - len(admitted)
        return admitted


class _Texts:
    """Names, threads and args of one capture, each once."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], int] = {}
        self._threads: dict[int, int] = {}
        self._args: dict[str, int] = {}

    def names(self, names: Iterable[str], categories: Iterable[str]) -> IntArray:
        """Rows of names, each with its category."""
        return _rows_of(zip(names, categories, strict=True), self._names)

    def threads(self, idents: Iterable[int]) -> IntArray:
        return _rows_of(idents, self._threads)

    def args(self, args: Iterable[dict[str, Any] | None]) -> IntArray:
        """Rows of args; -1 where there are none."""
        return _ints(
            -1
            if argument is None
            else self._args.setdefault(_json(argument), len(self._args))
            for argument in args
        )

    def tables(
        self, thread_by_ident: Mapping[int, tuple[int, str]]
    ) -> dict[str, CaptureTable]:
        """The tables that the rows are of; `thread_by_ident`: threads by their idents."""
        threads = [
            thread_by_ident.get(ident, (-1, f"thread {ident}"))
            for ident in self._threads
        ]
        return {
            "names": {
                "name": tuple(name for name, _ in self._names),
                "category": tuple(category for _, category in self._names),
            },
            "threads": {
                "thread_id": _ints(native for native, _ in threads),
                "name": tuple(name for _, name in threads),
            },
            "args": {"json": tuple(self._args)},
        }


def _rows_of(keys: Iterable[Key], numbers: dict[Key, int]) -> IntArray:
    return _ints(numbers.setdefault(key, len(numbers)) for key in keys)


def _ints(values: Iterable[int]) -> IntArray:
    return np.fromiter(values, np.int64)


def _rows(values: list[Any], width: int) -> Rows:
    return list(zip(*[iter(values)] * width, strict=True))


def _columns(rows: Rows, width: int) -> Sequence[tuple[Any, ...]]:
    return list(zip(*rows, strict=True)) or [()] * width


def _json(args: dict[str, Any]) -> str:
    """As a JSON object; what is too long or no JSON is said to be so."""
    try:
        text = json.dumps(args, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        try:
            text = json.dumps({str(key): str(value) for key, value in args.items()})
        except ValueError:  # a whole number of thousands of digits
            return '{"too_long":true}'
    return text if len(text) <= _MAX_JSON else '{"too_long":true}'


def _disk_bytes(tables: Mapping[str, CaptureTable]) -> float:
    """What a capture of these takes there, about."""
    num_rows = sum(
        len(next(iter(tables[name].values())))
        for name in ("spans", "instants", "counters")
    )
    texts = sum(
        len(text)
        for name in ("names", "threads", "args")
        for column in tables[name].values()
        if isinstance(column, tuple)
        for text in column
    )
    return _CAPTURE_BYTES + SPAN_BYTES * num_rows + _TEXT_BYTES * texts
