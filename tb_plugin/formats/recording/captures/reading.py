"""Captures of a rank's file: which it holds, and one of them decoded.

Digests list the captures since the one before, and point to the latest earlier digest
that lists any; what lies behind the last digest was met while following the file. So
listing touches a few digests and no capture. Where that chain is broken, what lies before
is read record by record. One capture is decoded at a time, only the tables wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from memboard.collector.format.capture import (
    CAPTURE,
    MAX_BODY_BYTES,
    TRACE_CONTEXTS,
    decode_capture,
    decode_part,
)
from memboard.collector.format.encoding.framing import Damage, FramedRecord, read_frames
from memboard.collector.format.errors import CorruptError, FormatError
from memboard.collector.format.sizes import counted
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.formats.recording.frames.parts import PartsReader
from memboard.tb_plugin.formats.recording.frames.scan import scan
from memboard.tb_plugin.formats.recording.tail import MAX_CAPTURES, CaptureLister, named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from memboard.collector.format.capture import CapturePart
    from memboard.collector.format.records import Capture, CaptureEntry
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.recording.rank_file import RankFile

TRACE: Final = "trace"
"""The kind of a trace of torch's profiler."""

_MAX_BYTES: Final = MAX_BODY_BYTES + (MAX_BODY_BYTES >> 7)
_SCAN_SECONDS: Final = 10.0


def captures_of(
    file: RankFile, budget: Budget | None = None
) -> tuple[CaptureEntry, ...]:
    """Captures in file order; the newest of them where the budget allows no more.

    What was listed once is kept with the file, so the next call goes on from there.
    """
    pieces = [file.behind.captures.found]
    digest_offset = 0 if file.digest is None else file.digest.offset
    with PartsReader(file.layout) as reader:
        while digest_offset and sum(map(len, pieces)) < MAX_CAPTURES:
            listed = file.listed_captures.get(digest_offset)
            if listed is None:
                if budget is not None and not budget.allows():
                    break
                listed = _listed(file, reader, digest_offset, budget)
            entries, before = listed
            pieces.append(entries)
            # A chain that does not lead backwards would never end.
            digest_offset = before if 0 < before < digest_offset else 0
    return tuple(entry for piece in reversed(pieces) for entry in piece)


def traces_of(
    file: RankFile, budget: Budget | None = None
) -> list[tuple[CaptureEntry, CaptureEntry]]:
    """Of each trace of torch's profiler the first capture and the one that counts.

    The first is there as soon as the trace has ended; where it was saved, and where it was
    read, a later one says that and more. A cycle without a trace has one, too.
    """
    entries_by_trace: dict[tuple[int, int], tuple[CaptureEntry, CaptureEntry]] = {}
    others = []
    for entry in captures_of(file, budget):
        key = entry.time_ns, entry.iteration
        if entry.kind != TRACE:
            continue
        if key not in entries_by_trace:
            entries_by_trace[key] = entry, entry
        elif _progress(entry) > _progress(entries_by_trace[key][1]):
            entries_by_trace[key] = entries_by_trace[key][0], entry
        else:
            others.append((entry, entry))
    both = [*entries_by_trace.values(), *others]
    return sorted(both, key=lambda first_and_latest: first_and_latest[0].offset)


def _progress(entry: CaptureEntry) -> int:
    """How far a trace had come when its capture was written."""
    is_trace = entry.context in TRACE_CONTEXTS
    return TRACE_CONTEXTS.index(entry.context if is_trace else "")


def read_capture(
    file: RankFile, entry: CaptureEntry, wanted: Collection[str] | None = None
) -> Capture:
    """A capture with the tables that are wanted, or with all of them.

    Raises:
        CorruptError: it is damaged, which is also kept as a fault of the file.
        OSError: the file cannot be read.
    """
    try:
        return capture_of(file, entry, wanted)
    except CorruptError as error:
        end = entry.offset + entry.num_bytes
        file.add_damage(entry.offset, end, str(error), is_named=True)
        raise


def capture_of(
    file: RankFile, entry: CaptureEntry, wanted: Collection[str] | None = None
) -> Capture:
    """The same, but changes nothing of the file: needs no lock.

    Raises:
        CorruptError: it is damaged.
        OSError: the file cannot be read.
    """
    try:
        return decode_capture(_read_parts(file, entry), wanted)
    except CorruptError as error:
        raise CorruptError(f"{named(entry)} cannot be read: {error}") from error


def _read_parts(
    file: RankFile, entry: CaptureEntry
) -> list[tuple[CapturePart, memoryview]]:
    """All records of a capture, which must be intact."""
    if entry.num_bytes > _MAX_BYTES:
        raise CorruptError(f"it claims {counted(entry.num_bytes, 'byte')}")
    with PartsReader(file.layout) as reader:
        data = reader.read(entry.offset, entry.num_bytes)
    parts = []
    for item in read_frames(data, entry.offset, last=True):
        if isinstance(item, Damage):
            raise CorruptError(item.what)
        if item.kind != CAPTURE:
            raise CorruptError("another record is there")
        parts.append(decode_part(item.payload))
    return parts


def _listed(
    file: RankFile, reader: PartsReader, offset: int, budget: Budget | None
) -> tuple[list[CaptureEntry], int]:
    """What the digest at `offset` lists; without one, all that lies before."""
    try:
        digest = file.digest
        if digest is None or digest.offset != offset:
            digest, _ = file.digest_at(reader, offset)
        entries = digest.captures()[:MAX_CAPTURES]
    except (FormatError, OSError):
        return _scanned(file, reader, offset, budget)
    sane = [e for e in entries if 0 < e.offset < e.offset + e.num_bytes <= offset]
    listed = file.listed_captures[offset] = sane, digest.captures_before
    return listed


def _scanned(
    file: RankFile, reader: PartsReader, stop: int, budget: Budget | None
) -> tuple[list[CaptureEntry], int]:
    """The captures before `stop`, found record by record; the next call goes on."""
    own = Budget(_SCAN_SECONDS) if budget is None else budget
    lister, start = file.capture_scans.pop(stop, (CaptureLister(), 0))
    for item in scan(reader, start, stop, own, open_end=False):
        start = item.end
        if isinstance(item, FramedRecord):
            try:
                lost = lister.feed(item)
            except FormatError as error:
                file.add_damage(item.offset, item.end, str(error))
                continue
            if lost is not None:
                file.add_damage(*lost)
    listed = lister.found, 0
    if own.exhausted:
        file.capture_scans[stop] = lister, start
    else:
        file.listed_captures[stop] = listed
    return listed


class CaptureMetas:
    """`meta` of captures, each decoded once while it is cached. Hold the run's lock."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def of(
        self, file: RankFile, entry: CaptureEntry, budget: Budget
    ) -> Mapping[str, Any] | None:
        """What a capture says; nothing where it cannot be read, a fault of the file then.

        None where the budget does not reach it.
        """
        key = (file.identity, entry.offset, "meta of a capture")
        meta: dict[str, Any] | None = self._cache.get(key)
        if meta is None:
            if not budget.allows():
                return None
            try:
                meta = dict(read_capture(file, entry, ()).meta)
            except OSError:
                return {}  # another time it may be readable
            except (FormatError, ValueError, TypeError):
                meta = {}
            # Nearly all of it are texts.
            self._cache.put(key, meta, len(repr(meta)))
        return meta
