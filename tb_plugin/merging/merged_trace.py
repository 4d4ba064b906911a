"""The merged trace as text, piece by piece, while its inputs are read."""

# ruff: noqa: PTH119
# os.path: pathlib would change the URLs that paths at a store are.

from __future__ import annotations

import os
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Final

from memboard.collector.format.errors import FormatError
from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.file_size import size_of
from memboard.tb_plugin.formats.traces.files.heads import (
    MAX_MARKS,
    MERGED_KEY,
    mark_of,
)
from memboard.tb_plugin.formats.traces.files.starts import open_trace
from memboard.tb_plugin.formats.traces.torch_clock import RELATIVE_BELOW_NS
from memboard.tb_plugin.merging.output import encoded, joined
from memboard.tb_plugin.merging.places import Numbers, Places
from memboard.tb_plugin.merging.recorded import SPANS, RankEvents, entries_of
from memboard.tb_plugin.merging.trace_events import MovedTrace, Shift
from memboard.tb_plugin.rank_set import RankSet
from memboard.tb_plugin.worker.errors import ImportFailedError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.merging.inputs import (
        Inputs,
        MergedRank,
        RankInput,
        TraceFile,
    )

_MINUTE_NS: Final = 60 * 10**9
_MOST_COUNTERS: Final = 5_000_000
_LEAST_COUNTERS: Final = 5_000
"""Values of counters in all, and of each rank at least: viewers hold some millions."""
_FAULTS: Final = (ImportFailedError, FormatError, OSError)


def merged(inputs: Inputs) -> Generator[bytes, None, None]:
    """The trace; what goes wrong with one input costs nothing of the others.

    Afterwards `inputs.problems` holds all that could not be merged, as the trace's own
    metadata does.
    """
    zero_ns = _zero_ns(inputs)
    rank_numbers = [rank.rank for rank in inputs.ranks if rank.rank is not None]
    head = {
        "schemaVersion": 1,
        MERGED_KEY: {
            "ranks": str(RankSet.of(rank_numbers)),
            "others": len(rank_numbers) < len(inputs.ranks),
            "of": "".join(sorted(_marks(inputs))[:MAX_MARKS]),
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": zero_ns,
    }
    yield encoded(head)[:-1] + b',"traceEvents":[\n'
    numbers, files = Numbers(), count(1)
    comma = b""
    for order, rank_input in enumerate(inputs.ranks):
        rank = _Rank(
            rank_input, inputs, Places(rank_input.label, order, numbers), files, zero_ns
        )
        for piece in rank.pieces():
            yield comma + piece
            comma = b",\n"
        inputs.done.append(rank.said())
    metadata = {
        "tool": "memboard merge",
        "clock": inputs.reference,
        "ranks": inputs.done,
        "problems": [problem._asdict() for problem in inputs.problems],
    }
    yield b'\n],"metadata":' + encoded(metadata) + b"}\n"


def _marks(inputs: Inputs) -> set[str]:
    """Of what it is merged from: with a recording come the traces that it saved."""
    marks = set()
    for rank in inputs.ranks:
        if rank.recording is not None:
            marks.add(mark_of(os.path.basename(rank.recording.parts[0].path)))
            continue
        for trace in rank.traces:
            file_name = os.path.basename(storage.at(trace.path).realpath(trace.path))
            # One that cannot be opened is told where it is merged.
            with suppress(OSError), open_trace(trace.path) as file:
                marks.add(mark_of(file_name, size_of(file)))
    return marks


class _Rank:
    def __init__(
        self,
        rank_input: RankInput,
        inputs: Inputs,
        places: Places,
        files: Iterator[int],
        zero_ns: int,
    ) -> None:
        self._one = rank_input
        self._inputs = inputs
        self._places = places
        self._files = files
        self._zero_ns = zero_ns
        self._merged: list[str] = []
        self._num_events = 0
        self._rows_per_value = 1
        num_traces = sum(len(other.traces) for other in inputs.ranks)
        self._is_alone = num_traces == 1 and rank_input.recording is None

    def pieces(self) -> Iterator[bytes]:
        if self._one.recording is not None:
            yield from self._recorded(self._one.recording)
        for trace in self._one.traces:
            yield from self._trace(trace)
        if names := joined(list(self._places.names())):
            yield names

    def said(self) -> MergedRank:
        rank_input, line = self._one, self._one.clock.line
        first, last = rank_input.extent()
        return {
            "rank": rank_input.rank,
            "host": ""
            if rank_input.recording is None
            else rank_input.recording.header.host,
            "clock_method": rank_input.clock.method,
            "offset_ns": line.at(first).offset_ns,
            "end_offset_ns": line.at(last).offset_ns,
            "error_ns": line.worst_error_ns(first, last),
            "rows_per_counter_value": self._rows_per_value,
            "num_trace_events": self._num_events,
            "files": self._merged,
        }

    def _recorded(self, file: RankFile) -> Iterator[bytes]:
        shift = Shift(self._one.clock.line, self._zero_ns)
        rank_input = self._one
        recorded = RankEvents(
            file, shift, self._places, rank_input.window, rank_input.traced_steps
        )
        self._merged.append(file.shown_path)
        try:
            entries = [e for e, _ in entries_of(file, SPANS, self._one.cycle)]
        except _FAULTS as error:
            self._tell(file.shown_path, _cut_short(error))
            entries = []
        most = max(_LEAST_COUNTERS, _MOST_COUNTERS // len(self._inputs.ranks))
        for part in (
            recorded.steps(),
            recorded.spans(entries),
            recorded.counters(most),
            recorded.marks(),
        ):
            try:
                yield from filter(None, map(joined, part))
            except _FAULTS as error:  # noqa: PERF203  # one costs none of the others
                self._tell(file.shown_path, _cut_short(error))
        self._rows_per_value = recorded.width
        for fault in file.faults:
            self._tell(file.shown_path, fault.what)

    def _trace(self, trace: TraceFile) -> Iterator[bytes]:
        start, clock = trace.start, self._one.clock
        shift = Shift(
            clock.line,
            self._zero_ns,
            base_ns=-clock.ahead_ns(start.started_ns),
            relative_base_ns=start.base_ns or 0,
        )
        self._merged.append(trace.shown)
        try:
            with open_trace(trace.path) as file:
                moved = MovedTrace(file, shift, self._places, next(self._files))
                yield from moved
                self._num_events += moved.num_events
                for problem in moved.problems():
                    self._tell(trace.shown, problem)
        except _FAULTS as error:
            self._tell(trace.shown, _cut_short(error))
        if start.base_ns is None and start.is_relative and not self._is_alone:
            self._tell(
                trace.shown,
                "Its times are relative to a moment that it does not say: it is not on"
                " the common clock.",
            )

    def _tell(self, path: str, sentence: str) -> None:
        self._inputs.tell(self._one.rank, path, sentence)


def _cut_short(error: BaseException) -> str:
    return f"Only a part was merged: {error}"


def _zero_ns(inputs: Inputs) -> int:
    """A whole minute before everything: times stay small, and exact as floats."""
    firsts = []
    for rank_input in inputs.ranks:
        first, _ = rank_input.extent()
        if first:
            firsts.append(first + rank_input.clock.line.at(first).offset_ns)
    # Times that say nothing of their moment must not pull the others far away.
    placed = [first for first in firsts if first >= RELATIVE_BELOW_NS]
    earliest = min(placed or firsts, default=0)
    return max(0, earliest // _MINUTE_NS * _MINUTE_NS - _MINUTE_NS)
