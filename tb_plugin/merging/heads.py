"""The beginning of a trace's file names its rank, its clock and its writer."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.file_size import size_of
from memboard.tb_plugin.formats.traces.bytes.inflated import InflatedFile
from memboard.tb_plugin.formats.traces.bytes.pieces import repairs
from memboard.tb_plugin.formats.traces.files.names import parse_names
from memboard.tb_plugin.formats.traces.times import NO_TIME
from memboard.tb_plugin.formats.traces.torch_clock import RELATIVE_BELOW_NS, base_at
from memboard.tb_plugin.merging.events import Event, WholeEvents, plain
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from typing import IO

    from memboard.tb_plugin.formats.traces.bytes.chunks import Chunk

AnyPath: TypeAlias = "str | os.PathLike[str]"
Writer: TypeAlias = Literal["torch", "composer", "merged"]

MERGED_KEY: Final = "memboardMerged"
"""Top-level key of traces that were merged here."""

_TAIL_BYTES: Final = 1 << 16
_CYCLE_IN_NAME: Final = re.compile(r"(ep\d+-ba\d+)-rank")
_BASE: Final = re.compile(rb'"baseTimeNanoseconds"\s*:\s*"?(\d{1,19})')
_RANK: Final = re.compile(
    rb'"distributedInfo"\s*:\s*\{[^{}\[\]]*"rank"\s*:\s*"?(\d{1,7})'
)
_COMPOSER_MERGED_SORT: Final = 99999
"""Sort index that Composer's own merger gives every thread."""


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

    @property
    def started_ns(self) -> int:
        """The earliest time, since 1970 where the file says enough."""
        base_ns = self.base_ns if self.is_relative else None
        return (self.first_ns or 0) + (base_ns or 0)

    @property
    def is_relative(self) -> bool:
        """Whether its earliest time is since some moment of torch's."""
        return (self.first_ns or 0) < RELATIVE_BELOW_NS


def opened(path: str) -> IO[bytes]:
    """A plain file, to be read; links are followed.

    Raises:
        OSError: it cannot be opened.
    """
    files = storage.at(path)
    return files.open(files.realpath(path))[0]


def read_head(path: AnyPath) -> TraceHead:
    """Read the beginning of a trace, and its end where that is needed.

    Raises:
        ImportFailedError: it is not a trace.
        OSError: it cannot be read.
    """
    named = PurePath(path)
    with opened(os.fspath(path)) as file:
        chunks = WholeEvents(InflatedFile(file))
        first = next(iter(chunks), None)
        top, said = _object(chunks.around.head), _metadata(first)
        if not chunks.around.is_list and first is None and not top:
            raise RefusedError("It holds no events: it is not a trace.", 0)
        info = top.get("distributedInfo")
        base = _whole(top.get("baseTimeNanoseconds"))
        rank = _whole(info.get("rank")) if isinstance(info, dict) else None
        is_composers = "global_rank" in said
        if not is_composers and (base is None or rank is None):
            tail = chunks.around.tail or _tail(file)
            base = _last(_BASE, tail) if base is None else base
            rank = _last(_RANK, tail) if rank is None else rank
    is_composers |= "clock_sync_timestamp_us" in top
    times = [] if first is None else first.times_ns[first.times_ns != NO_TIME]
    if is_composers:  # torch's events among Composer's do not say what they count from
        since_1970 = [ns for ns in times if ns >= RELATIVE_BELOW_NS]
        base = base_at(int(min(since_1970))) if since_1970 else None
    said_by = (rank, said.get("global_rank"), _whole(top.get("global_rank")))
    ranks = [one for one in said_by if one is not None]
    cycle = _CYCLE_IN_NAME.search(named.name)
    is_merged = MERGED_KEY in top or said.get("") == _COMPOSER_MERGED_SORT
    return TraceHead(
        writer="merged" if is_merged else "composer" if is_composers else "torch",
        rank=ranks[0] if ranks else parse_names(named.name, (named.parent.name,)).rank,
        base_ns=base,
        first_ns=int(min(times)) if len(times) else None,
        cycle=cycle[1] if cycle else named.name,
        sync=_sync(said) or _sync({key: _whole(value) for key, value in top.items()}),
    )


def _metadata(chunk: Chunk | None) -> dict[str, int | None]:
    """What metadata among the first events say; under "" how the first sorts a thread."""
    said: dict[str, int | None] = {}
    events: Any = () if chunk is None else chunk.events
    for index, event in enumerate(events):
        if isinstance(event, Event):
            phase, name, args = event.ph, event.name, event.args
        elif event is not None:
            phase, name = plain(event.get("ph")), event.get("name")
            args = event.get("args")
        if event is None or phase != "M":
            continue
        name, values = plain(name), plain(args)
        if not (isinstance(name, str) and isinstance(values, dict)):
            continue
        said[name] = _whole(values.get("value"))
        if index == 0 and name == "thread_sort_index":
            said[""] = _whole(values.get("sort_index"))
    return said


def _sync(said: dict[str, int | None]) -> ClockSync | None:
    time_us = said.get("clock_sync_timestamp_us")
    bound_us = said.get("clock_sync_error_bound") or 0
    return None if time_us is None else ClockSync(time_us, bound_us)


def _object(head: bytes) -> dict[str, Any]:
    """The keys before the events."""
    for text in (head + b"[]}", *(repairs(head + b"[]}") if head else ())):
        found = plain(text)
        if isinstance(found, dict):
            return found
    return {}


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
    stream = InflatedFile(file)
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
