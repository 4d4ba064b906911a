"""Reads the beginning of a trace from its file's start: its clock and its rank.

Its end is read where only that says what its times count from, or its rank.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.file_size import size_of
from memboard.tb_plugin.formats.traces.bytes.chunks import Chunks
from memboard.tb_plugin.formats.traces.bytes.decoding import WholeDecoder
from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
from memboard.tb_plugin.formats.traces.columns.events import (
    EventByKey,
    WholeEvent,
    plain,
)
from memboard.tb_plugin.formats.traces.columns.times import NO_TIME
from memboard.tb_plugin.formats.traces.files.heads import RANK, head_in, rank_beside
from memboard.tb_plugin.formats.traces.files.names import parse_names
from memboard.tb_plugin.formats.traces.top_level import (
    base_of,
    rank_of,
    top_level,
    whole_number,
)
from memboard.tb_plugin.formats.traces.torch_clock import RELATIVE_BELOW_NS, base_at

if TYPE_CHECKING:
    from typing import IO

    from memboard.tb_plugin.formats.traces.bytes.chunks import Chunk

_TAIL_BYTES: Final = 1 << 16
_CYCLE_IN_NAME: Final = re.compile(r"(ep\d+-ba\d+)-rank")
_BASE: Final = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})')


class ClockSync(NamedTuple):
    """Composer's: all ranks read their clocks between two barriers."""

    time_us: int
    bound_us: int
    """How long this rank was between reading before and after; 0: it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStart:
    """A trace's rank, and where it begins on which clock."""

    rank: int | None
    is_merged: bool
    """Whether it was made of other traces, here or by Composer."""
    base_ns: int | None
    """Added to times below `RELATIVE_BELOW_NS`; None: the file does not say."""
    first_ns: int | None
    """The earliest time at its beginning, as written; None: no event says one."""
    cycle: str = ""
    """Of Composer's files: equal on all ranks."""
    sync: ClockSync | None = None

    @property
    def started_ns(self) -> int:
        """The earliest time, since 1970 where the file says enough."""
        base_ns = self.base_ns if self.is_relative else None
        return (self.first_ns or 0) + (base_ns or 0)

    @property
    def is_relative(self) -> bool:
        """Whether its earliest time is since some moment of torch's."""
        return (self.first_ns or 0) < RELATIVE_BELOW_NS


def open_trace(path: str) -> IO[bytes]:
    """A plain file, to be read; links are followed.

    Raises:
        OSError: it cannot be opened.
    """
    files = storage.at(path)
    return files.open(files.realpath(path))[0]


def read_start(path: str | os.PathLike[str]) -> TraceStart:
    """Read the beginning of a trace, and its end where that is needed.

    Raises:
        ImportFailedError: it is not a trace.
        OSError: it cannot be read.
    """
    named = PurePath(path)
    with open_trace(os.fspath(path)) as file:
        chunks = Chunks(InflatedFile(file), WholeDecoder())
        head = head_in(chunks.peek())
        first = next(iter(chunks), None)
        top, metadata = top_level(chunks.around)[0], _metadata(first)
        base, rank = base_of(top), rank_of(top)
        is_composers = "global_rank" in metadata
        if not is_composers and (base is None or rank is None):
            tail = chunks.around.tail or _tail(file)
            base = _last(_BASE, tail) if base is None else base
            rank = _last(RANK, tail) if rank is None else rank
    is_composers |= "clock_sync_timestamp_us" in top
    times = [] if first is None else first.times_ns[first.times_ns != NO_TIME]
    if is_composers:  # torch's events among Composer's do not say what they count from
        since_1970 = [ns for ns in times if ns >= RELATIVE_BELOW_NS]
        base = base_at(int(min(since_1970))) if since_1970 else None
    by_source = (
        rank,
        metadata.get("global_rank"),
        _number(top.get("global_rank")),
        rank_beside(os.fspath(path)),
    )
    ranks = [number for number in by_source if number is not None]
    cycle = _CYCLE_IN_NAME.search(named.name)
    return TraceStart(
        rank=ranks[0] if ranks else parse_names(named.name, (named.parent.name,)).rank,
        is_merged=head.merged is not None,
        base_ns=base,
        first_ns=int(min(times)) if len(times) else None,
        cycle=cycle[1] if cycle else named.name,
        sync=_sync(metadata) or _sync({key: _number(top[key]) for key in top}),
    )


def _metadata(chunk: Chunk[WholeEvent | EventByKey] | None) -> dict[str, int | None]:
    """Values of metadata among the first events, by name."""
    numbers: dict[str, int | None] = {}
    for event in () if chunk is None else chunk.events:
        if isinstance(event, WholeEvent):
            if event.ph != "M":
                continue
            event_name, args = plain(event.name), plain(event.args)
        elif event is None or plain(event.get("ph")) != "M":
            continue
        else:
            event_name, args = plain(event.get("name")), plain(event.get("args"))
        if isinstance(event_name, str) and isinstance(args, dict):
            numbers[event_name] = _number(args.get("value"))
    return numbers


def _number(value: Any) -> int | None:
    number = whole_number(value)
    return None if number < 0 else number


def _sync(numbers: dict[str, int | None]) -> ClockSync | None:
    time_us = numbers.get("clock_sync_timestamp_us")
    bound_us = numbers.get("clock_sync_error_bound") or 0
    return None if time_us is None else ClockSync(time_us, bound_us)


def _tail(file: IO[bytes]) -> bytes:
    """The last bytes of the content; of a deflated file that means to read it all."""
    size = size_of(file)
    file.seek(0)
    stream = InflatedFile(file)
    if not stream.is_deflated:
        file.seek(max(0, size - _TAIL_BYTES))
        return file.read(_TAIL_BYTES)
    tail = b""
    while block := stream.read():
        tail = (tail + block)[-_TAIL_BYTES:]
    return tail


def _last(pattern: re.Pattern[bytes], text: bytes) -> int | None:
    numbers = pattern.findall(text)
    return int(numbers[-1]) if numbers else None
