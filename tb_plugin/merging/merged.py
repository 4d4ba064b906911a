"""The merged trace as text, piece by piece, while its inputs are read."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

from collector.format.errors import FormatError
from tb_plugin.jobs.worker.errors import ImportFailedError
from tb_plugin.merging.events import encoded, object_bytes
from tb_plugin.merging.heads import MERGED_KEY, RELATIVE_BELOW_NS
from tb_plugin.merging.opening import opened
from tb_plugin.merging.places import Numbers, Places
from tb_plugin.merging.recorded import SPANS, Recorded, entries_of
from tb_plugin.merging.rewriting import Rewriting, Shift

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.merging.inputs import Inputs, RankInput, TraceFile

_MINUTE_NS: Final = 60 * 10**9
_MOST_COUNTERS: Final = 5_000_000
_LEAST_COUNTERS: Final = 5_000
"""Values of counters in all, and of each rank at least: viewers hold some millions."""
_FAULTS: Final = (ImportFailedError, FormatError, OSError)


def merged(inputs: Inputs) -> Iterator[bytes]:
    """The trace; what goes wrong with one input costs nothing of the others.

    Afterwards `inputs.problems` holds all that could not be merged, as the trace's own
    metadata does.
    """
    zero_ns = _zero_ns(inputs)
    head = {
        "schemaVersion": 1,
        MERGED_KEY: {
            "ranks": _ranges(
                [one.rank for one in inputs.ranks if one.rank is not None]
            ),
            "others": any(one.rank is None for one in inputs.ranks),
        },
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": zero_ns,
    }
    yield object_bytes(head)[:-1] + b',"traceEvents":[\n'
    numbers, files = Numbers(), count(1)
    told, comma = [], b""
    for order, one in enumerate(inputs.ranks):
        places = Places(one.label, order, numbers)
        rank = _Rank(one, inputs, places, files, zero_ns)
        for piece in rank.pieces():
            yield comma + piece
            comma = b",\n"
        told.append(rank.told())
    metadata = {
        "tool": "memboard merge",
        "clock": inputs.reference,
        "ranks": told,
        "problems": [problem._asdict() for problem in inputs.problems],
    }
    yield b'\n],"metadata":' + object_bytes(metadata) + b"}\n"


class _Rank:
    """One rank's share."""

    def __init__(
        self,
        one: RankInput,
        inputs: Inputs,
        places: Places,
        files: Iterator[int],
        zero_ns: int,
    ) -> None:
        self._one = one
        self._inputs = inputs
        self._places = places
        self._files = files
        self._zero_ns = zero_ns
        self._merged: list[str] = []
        self._rows_per_value = 1
        num_traces = sum(len(other.traces) for other in inputs.ranks)
        self._is_alone = num_traces == 1 and one.recording is None

    def pieces(self) -> Iterator[bytes]:
        if self._one.recording is not None:
            yield from self._recorded()
        for trace in self._one.traces:
            yield from self._trace(trace)
        names = encoded(list(self._places.names()))
        if names:
            yield names

    def told(self) -> dict[str, Any]:
        """What the metadata says of the rank."""
        one, clock = self._one, self._one.clock
        first, last = _extent(one)
        offset = clock.line.at(first)
        return {
            "rank": one.rank,
            "host": "" if one.recording is None else one.recording.header.host,
            "clock_method": clock.method,
            "offset_ns": offset.offset_ns,
            "end_offset_ns": clock.line.at(last).offset_ns,
            "error_ns": clock.line.worst_error_ns(first, last),
            "rows_per_counter_value": self._rows_per_value,
            "files": self._merged,
        }

    def _recorded(self) -> Iterator[bytes]:
        file = self._one.recording
        assert file is not None  # noqa: S101  # asked before
        shift = Shift(
            base_ns=0,
            relative_base_ns=0,
            line=self._one.clock.line,
            zero_ns=self._zero_ns,
        )
        recorded = Recorded(file, shift, self._places, self._one.window)
        self._merged.append(file.shown_path)
        try:
            entries = [e for e, _ in entries_of(file, SPANS, self._one.cycle)]
        except _FAULTS as error:
            self._tell(file.shown_path, error)
            entries = []
        num_ranks = len(self._inputs.ranks)
        for part in (
            recorded.steps(),
            recorded.spans(entries),
            recorded.counters(max(_LEAST_COUNTERS, _MOST_COUNTERS // num_ranks)),
            recorded.marks(),
        ):
            try:
                for events in part:
                    if events:
                        yield encoded(events)
            except _FAULTS as error:  # noqa: PERF203  # one costs none of the others
                self._tell(file.shown_path, error)
        self._rows_per_value = recorded.width
        for fault in file.faults:
            self._inputs.tell(self._one.rank, file.shown_path, fault.what)

    def _trace(self, trace: TraceFile) -> Iterator[bytes]:
        head = trace.head
        first = (head.first_ns or 0) + _base_ns(trace)
        ahead = self._one.clock.ahead_ns(first)
        shift = Shift(
            base_ns=-ahead,
            relative_base_ns=head.base_ns or 0,
            line=self._one.clock.line,
            zero_ns=self._zero_ns,
        )
        self._merged.append(trace.shown)
        try:
            with opened(trace.path) as file:
                rewriting = Rewriting(file, shift, self._places, next(self._files))
                yield from rewriting
                for what in rewriting.problems():
                    self._inputs.tell(self._one.rank, trace.shown, what)
        except _FAULTS as error:
            self._tell(trace.shown, error)
        if _is_unplaced(trace) and not self._is_alone:
            self._inputs.tell(
                self._one.rank,
                trace.shown,
                "Its times are relative to a moment that it does not say: it is not on"
                " the common clock.",
            )

    def _tell(self, path: str, error: BaseException) -> None:
        self._inputs.tell(self._one.rank, path, f"Only a part was merged: {error}")


def _ranges(ranks: list[int]) -> str:
    """Ranks as `0-7,64`: so many of them stay a short text."""
    found: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if found and found[-1][1] == rank - 1:
            found[-1][1] = rank
        else:
            found.append([rank, rank])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _base_ns(trace: TraceFile) -> int:
    """What leads from a trace's times to those since 1970."""
    is_relative = (trace.head.first_ns or 0) < RELATIVE_BELOW_NS
    return (trace.head.base_ns or 0) if is_relative else 0


def _is_unplaced(trace: TraceFile) -> bool:
    head = trace.head
    return head.base_ns is None and (head.first_ns or 0) < RELATIVE_BELOW_NS


def _extent(one: RankInput) -> tuple[int, int]:
    """First and last time of a rank by its own clock, as far as known beforehand."""
    firsts = [
        trace.head.first_ns + _base_ns(trace)
        for trace in one.traces
        if trace.head.first_ns is not None
    ]
    lasts = list(firsts)
    if one.recording is not None:
        firsts.append(one.recording.header.started.wall_ns)
        lasts.append(one.recording.newest_ns)
    return min(firsts, default=0), max(lasts, default=0)


def _zero_ns(inputs: Inputs) -> int:
    """A whole minute before everything: times stay small, and exact as floats."""
    firsts = []
    for one in inputs.ranks:
        first, _ = _extent(one)
        if first:
            firsts.append(first + one.clock.line.at(first).offset_ns)
    # Times that say nothing of their moment must not pull the others far away.
    placed = [first for first in firsts if first >= RELATIVE_BELOW_NS]
    earliest = min(placed or firsts, default=0)
    return max(0, earliest // _MINUTE_NS * _MINUTE_NS - _MINUTE_NS)
