"""Captures of a rank's file: which it holds, and one of them decoded.

Digests list the captures since the one before, and point to the latest earlier digest
that lists any; what lies behind the last digest was met while following the file. So
listing touches a few digests and no capture. Where that chain is broken, what lies before
is read record by record. One capture is decoded at a time, only the tables wanted.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.format.capture_parts import (
    CAPTURE,
    MAX_BODY_BYTES,
    decode_capture,
    decode_part,
)
from collector.format.codec import DIGEST
from collector.format.errors import CorruptError, FormatError
from collector.format.framing import Damage, Framed, read_frames
from tb_plugin.budget import Budget
from tb_plugin.formats.recording.digest import decode_captures, listed_captures
from tb_plugin.formats.recording.frames.capture_lister import (
    MAX_CAPTURES,
    CaptureLister,
    named,
)
from tb_plugin.formats.recording.frames.parts import PartsReader
from tb_plugin.formats.recording.frames.scan import scan

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from collector.format.capture_parts import CapturePart
    from collector.format.records import Capture, CaptureEntry
    from tb_plugin.formats.recording.rank_file import RankFile

TRACE: Final = "trace"
"""The kind of a trace of torch's profiler."""
_DIGEST_OF_TRACE: Final = "digest"
"""The context of what was read out of one."""

_LENGTH: Final = struct.Struct("<Q")
_FRAME_BYTES: Final = 16
"""Of a frame, besides its data."""
_MAX_DIGEST_BYTES: Final = 1 << 26
_MAX_BYTES: Final = MAX_BODY_BYTES + (MAX_BODY_BYTES >> 8)
"""Of a capture's frames."""
_SCAN_SECONDS: Final = 10.0


class Listed(NamedTuple):
    """What one digest lists."""

    entries: tuple[CaptureEntry, ...]
    before: int
    """Where the next earlier digest that lists captures starts; 0: there is none."""


def captures_of(
    file: RankFile, budget: Budget | None = None
) -> tuple[CaptureEntry, ...]:
    """Captures in file order; the newest of them where the budget allows no more.

    What was listed once is kept with the file, so the next call goes on from there.
    """
    pieces: list[Sequence[CaptureEntry]] = [file.behind.captures.found]
    at = 0 if file.digest is None else file.digest.offset
    with PartsReader(file.layout) as reader:
        while at and sum(map(len, pieces)) < MAX_CAPTURES:
            listed = file.listed_captures.get(at)
            if listed is None:
                if budget is not None and not budget.allows():
                    break
                listed = _listed(file, reader, at, budget)
            pieces.append(listed.entries)
            # A chain that does not lead backwards would never end.
            at = listed.before if 0 < listed.before < at else 0
    return tuple(entry for piece in reversed(pieces) for entry in piece)


def traces_of(
    file: RankFile, budget: Budget | None = None
) -> list[tuple[CaptureEntry, CaptureEntry]]:
    """Of each trace of torch's profiler the first capture and the one that counts.

    The first is there as soon as the trace is saved; where the trace was read, a later one
    says that and more.
    """
    found: dict[tuple[int, int], tuple[CaptureEntry, CaptureEntry]] = {}
    others = []
    for entry in captures_of(file, budget):
        key = entry.time_ns, entry.iteration
        if entry.kind != TRACE:
            continue
        if entry.context == _DIGEST_OF_TRACE and key in found:
            found[key] = found[key][0], entry
        elif key in found:
            others.append((entry, entry))
        else:
            found[key] = entry, entry
    both = [*found.values(), *others]
    return sorted(both, key=lambda one: one[0].offset)


def read_capture(
    file: RankFile, entry: CaptureEntry, wanted: Collection[str] | None = None
) -> Capture:
    """A capture with the tables that are wanted, or with all of them.

    Raises:
        CorruptError: it is damaged, which is also kept as a fault of the file.
        TooNewError: a newer MemBoard wrote it.
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
        TooNewError: a newer MemBoard wrote it.
        OSError: the file cannot be read.
    """
    try:
        return decode_capture(entry, _read_parts(file, entry), wanted)
    except CorruptError as error:
        raise CorruptError(f"{named(entry)} cannot be read: {error}") from error


def _read_parts(file: RankFile, entry: CaptureEntry) -> list[CapturePart]:
    """All records of a capture, which must be intact."""
    if entry.num_bytes > _MAX_BYTES:
        raise CorruptError(f"it claims {entry.num_bytes} bytes")
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
) -> Listed:
    """What the digest at `offset` lists; without one, all that lies before."""
    digest = file.digest
    try:
        if digest is not None and digest.offset == offset:
            entries, before = (
                decode_captures(digest.captures_json),
                digest.captures_before,
            )
        else:
            end = _end_of_frame(reader, offset)
            payload = file.read_record(reader, DIGEST, offset, end)
            before, entries = listed_captures(payload)
    except (FormatError, OSError):
        return _scanned(file, reader, offset, budget)
    sane = tuple(e for e in entries if 0 < e.offset < e.offset + e.num_bytes <= offset)
    listed = file.listed_captures[offset] = Listed(sane, before)
    return listed


def _scanned(
    file: RankFile, reader: PartsReader, stop: int, budget: Budget | None
) -> Listed:
    """The captures before `stop`, found record by record."""
    own = Budget(_SCAN_SECONDS) if budget is None else budget
    lister = CaptureLister()
    for item in scan(reader, 0, stop, own, open_end=False):
        if isinstance(item, Framed):
            try:
                lost = lister.feed(item)
            except FormatError as error:
                file.add_damage(item.offset, item.end, str(error))
                continue
            if lost is not None:
                file.add_damage(*lost)
    listed = Listed(tuple(lister.found), 0)
    if not own.exhausted:
        file.listed_captures[stop] = listed
    return listed


def _end_of_frame(reader: PartsReader, offset: int) -> int:
    """Where the frame at `offset` ends, by its length, which its reader checks."""
    head = reader.read(offset, _LENGTH.size)
    if len(head) < _LENGTH.size:
        raise CorruptError(f"the file ends at {offset}")
    (length,) = _LENGTH.unpack(head)
    if length > _MAX_DIGEST_BYTES:
        raise CorruptError(f"no digest at {offset}")
    return offset + _FRAME_BYTES + int(length)
