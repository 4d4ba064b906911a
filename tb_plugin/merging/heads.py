"""What a trace's file says of itself before it is merged: whose it is, from when, by whom."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from tb_plugin.formats.file_size import size_of
from tb_plugin.formats.traces.bytes.inflated import Inflated
from tb_plugin.formats.traces.bytes.pieces import repairs
from tb_plugin.formats.traces.files.names import parse_names
from tb_plugin.formats.traces.times.exact_times import NO_TIME
from tb_plugin.jobs.worker.errors import RefusedError
from tb_plugin.merging.events import Event, WholeEvents, plain
from tb_plugin.merging.opening import opened

if TYPE_CHECKING:
    from typing import IO

    from tb_plugin.formats.traces.bytes.chunks import Chunk
    from tb_plugin.merging.opening import AnyPath

Writer: TypeAlias = Literal["torch", "composer", "merged"]

MERGED_KEY: Final = "memboardMerged"
"""Top-level key of traces that were merged here."""

RELATIVE_BELOW_NS: Final = 8 * 10**15
"""Torch writes times since a moment at most three months ago; other times are since
1970."""

_TAIL_BYTES: Final = 1 << 16
_CYCLE_IN_NAME: Final = re.compile(r"(ep\d+-ba\d+)-rank")
_BASE: Final = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})')
_RANK: Final = re.compile(
    rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*"rank"\s*:\s*"?(\d{1,7})'
)
_COMPOSER_MERGED_SORT: Final = 99999
"""What Composer's own merger writes first of every thread."""


class ClockSync(NamedTuple):
    """Composer's: all ranks read their clocks between two barriers."""

    time_us: int
    bound_us: int
    """How long this rank was between reading before and after; 0: it does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHead:
    """What is known of a trace."""

    writer: Writer
    rank: int | None
    base_ns: int | None
    """Added to times below `RELATIVE_BELOW_NS`; None: the file does not say."""
    first_ns: int | None
    """The earliest time at its beginning, as written; None: no event says one."""
    cycle: str = ""
    """Of Composer's files: equal on all ranks."""
    sync: ClockSync | None = None


def read_head(path: AnyPath) -> TraceHead:
    """Read the beginning of a trace, and its end where that is needed.

    Raises:
        ImportFailedError: it is no trace.
        OSError: it cannot be read.
    """
    named = PurePath(path)
    with opened(os.fspath(path)) as file:
        chunks = WholeEvents(Inflated(file))
        first = next(iter(chunks), None)
        top = _object(chunks.around.head)
        meta = _Meta(first)
        if not chunks.around.is_list and first is None and not top:
            raise RefusedError("It holds no events: it is no trace.", 0)
        base, rank = _whole(top.get("baseTimeNanoseconds")), _rank_of(top)
        if not meta.is_composer and (base is None or rank is None):
            tail = chunks.around.tail or _tail(file)
            base = _last(_BASE, tail) if base is None else base
            rank = _last(_RANK, tail) if rank is None else rank
    writer: Writer = "torch"
    if MERGED_KEY in top or meta.is_merged:
        writer = "merged"
    elif meta.is_composer or "clock_sync_timestamp_us" in top:
        writer = "composer"
    if rank is None:
        rank = meta.rank
    if rank is None:
        rank = _whole(top.get("global_rank"))
    if rank is None:
        rank = parse_names(named.name, (named.parent.name,)).rank
    cycle = _CYCLE_IN_NAME.search(named.name)
    return TraceHead(
        writer=writer,
        rank=rank,
        base_ns=_composer_base(meta) if writer == "composer" else base,
        first_ns=meta.first_ns,
        cycle=cycle[1] if cycle else named.name,
        sync=meta.sync or _top_sync(top),
    )


class _Meta:
    """Metadata among the first events."""

    def __init__(self, chunk: Chunk | None) -> None:
        self.rank: int | None = None
        self.is_composer = False
        self.is_merged = False
        self.first_ns: int | None = None
        self.epoch_ns: int | None = None
        """The earliest time that is one since 1970."""
        time_us: int | None = None
        bound_us = 0
        if chunk is None:
            self.sync: ClockSync | None = None
            return
        for index, event in enumerate(chunk.events):
            phase, name, args = _parts(event)
            if phase != "M":
                continue
            value = _whole(args.get("value"))
            if name == "global_rank":
                self.is_composer = True
                self.rank = value
            elif name == "clock_sync_timestamp_us":
                time_us = value
            elif name == "clock_sync_error_bound":
                bound_us = max(0, value or 0)
            elif index == 0 and name == "thread_sort_index":
                self.is_merged = args.get("sort_index") == _COMPOSER_MERGED_SORT
        self.sync = None if time_us is None else ClockSync(time_us, bound_us)
        times = chunk.times_ns[chunk.times_ns != NO_TIME]
        if len(times):
            self.first_ns = int(times.min())
        since_1970 = times[times >= RELATIVE_BELOW_NS]
        if len(since_1970):
            self.epoch_ns = int(since_1970.min())


_TORCH_PERIOD_NS: Final = 7_889_238 * 10**9
"""Torch counts from the last multiple of a quarter of a year."""


def _composer_base(meta: _Meta) -> int | None:
    """Of torch's events among Composer's, which leaves out what they count from."""
    if meta.epoch_ns is None:
        return None
    return meta.epoch_ns // _TORCH_PERIOD_NS * _TORCH_PERIOD_NS


def _top_sync(top: dict[str, Any]) -> ClockSync | None:
    time_us = _whole(top.get("clock_sync_timestamp_us"))
    if time_us is None:
        return None
    return ClockSync(time_us, max(0, _whole(top.get("clock_sync_error_bound")) or 0))


def _parts(event: Any) -> tuple[Any, Any, dict[str, Any]]:
    if event is None:
        return None, None, {}
    if isinstance(event, Event):
        if event.ph != "M":
            return event.ph, None, {}
        name, args = plain(event.name), plain(event.args)
    else:
        phase = plain(event.get("ph"))
        if phase != "M":
            return phase, None, {}
        name, args = plain(event.get("name")), plain(event.get("args"))
    return "M", name, args if isinstance(args, dict) else {}


def _object(head: bytes) -> dict[str, Any]:
    """The keys before the events."""
    for text in (head + b"[]}", *(repairs(head + b"[]}") if head else ())):
        found = plain(text)
        if isinstance(found, dict):
            return found
    return {}


def _rank_of(top: dict[str, Any]) -> int | None:
    info = top.get("distributedInfo")
    return _whole(info.get("rank")) if isinstance(info, dict) else None


def _whole(value: Any) -> int | None:
    """A whole number that is not negative, also one that was written as text."""
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value) if len(value) < 20 else None
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value < 2**62 else None


def _tail(file: IO[bytes]) -> bytes:
    """The last bytes of the content; of a deflated file that means to read it all."""
    size = size_of(file)
    file.seek(0)
    stream = Inflated(file)
    if not stream.is_deflated:
        file.seek(max(0, size - _TAIL_BYTES))
        return file.read(_TAIL_BYTES)
    tail = b""
    while block := stream.read():
        tail = (tail + block)[-_TAIL_BYTES:]
    return tail


def _last(pattern: re.Pattern[bytes], text: bytes) -> int | None:
    found = pattern.findall(text)
    return int(found[-1]) if found else None
