"""First records of rank files: headers, what segments repeat, and shared schemas."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec

from memboard.collector.format.encoding.framing import Damage, read_frames
from memboard.collector.format.errors import FormatError
from memboard.collector.format.names import started_ns_of
from memboard.collector.format.records import (
    SEGMENT,
    ClockAnchor,
    DeviceIdentity,
    Header,
    Note,
    Schema,
    Segment,
    decode_record,
)
from memboard.tb_plugin import storage
from memboard.tb_plugin.formats.recording.frames.parts import (
    PartsReader,
    end_to_end,
    lay_out,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from memboard.collector.format.encoding.framing import FramedRecord
    from memboard.tb_plugin.formats.recording.frames.parts import Layout, Part

_HEAD_BYTES: Final = (1 << 13, 1 << 20)
"""Bytes read of a file's start; more where its first record is longer."""

_MAX_SHARED: Final = 256

_shared: dict[tuple[int, ...], dict[int, Schema]] = {}


def first_record(reader: PartsReader) -> tuple[int, bytes, FramedRecord | None]:
    """Where the file begins, its first bytes, and its first record, if that is whole.

    Raises:
        OSError: the file cannot be read.
    """
    gap = reader.layout.gap_at(0)
    start, head = 0 if gap is None else gap.end, b""
    for reach in _HEAD_BYTES:
        head = reader.read(start, reach)
        for item in read_frames(head):
            if isinstance(item, Damage):  # reading from the start will name it
                return start, head, None
            if item.kind:
                return start, head, item
        if start + reach >= reader.size_bytes:
            break
    return start, head, None


class SegmentHeads:
    """What the segments of one file say of themselves; a finished one is read once."""

    def __init__(self) -> None:
        self.newest: Header | None = None
        """Of the newest segment: its rank may have come out after the first."""
        self._bases: dict[Part, int | None] = {}

    def lay_out(self, parts: tuple[Part, ...]) -> Layout:
        """Where parts lie that may not all be there.

        Raises:
            OSError: one cannot be read.
        """
        self._bases = {
            part: base for part, base in self._bases.items() if part in parts
        }

        def base_of(part: Part) -> int | None:
            if part not in self._bases:
                head = _head_of(part)
                self._bases[part] = None if head is None else head.base_offset
                if head is not None and part is parts[-1]:
                    self.newest = head.header
            return self._bases[part]

        return lay_out(parts, base_of)


def _head_of(part: Part) -> Segment | None:
    """What a segment says of itself; None where it does not say."""
    if storage.at(part.path).stat(part.path).st_ino != part.inode:
        return None
    with PartsReader(end_to_end((part,))) as reader:
        _, _, first = first_record(reader)
    if first is None or first.kind != SEGMENT:
        return None
    try:
        record = decode_record(first.kind, first.payload)
    except FormatError:
        return None
    return record if isinstance(record, Segment) else None


def header_by_name(rank: int, attempt: str) -> Header:
    """A header that holds rank and start, all else unknown."""
    return Header(
        run_id="",
        attempt=attempt,
        job="",
        rank=rank,
        local_rank=0,
        world_size=0,
        local_world_size=None,
        node_rank=None,
        host="",
        pid=0,
        started=ClockAnchor(wall_ns=started_ns_of(attempt), monotonic_ns=0),
        device_type="",
    )


def with_device(header: Header, notes: Callable[[], Iterable[Note]]) -> Header:
    """The header with what its latest note says of the device that training uses.

    `notes` are read where the header names no device of its own.
    """
    if header.device_name is not None or header.device_type in ("cpu", ""):
        return header
    devices = [note.data for note in notes() if note.kind == "device"]
    if not devices:
        return header
    try:
        device = msgspec.convert(devices[-1], DeviceIdentity)
    except msgspec.ValidationError:
        return header
    return msgspec.structs.replace(header, **msgspec.structs.asdict(device))


@lru_cache(maxsize=1024)
def _same(schema: Schema) -> Schema:
    """The same object for equal schemas."""
    return schema


def with_schema(schemas: Mapping[int, Schema], added: Schema) -> dict[int, Schema]:
    """A dictionary with one more schema; ranks with the same schemas get the same one.

    Never to be changed. What is derived from schemas is then derived once.
    """
    wanted = {**schemas, added.schema_id: _same(added)}
    # Schemas in the value keep the identities in its key from being given anew.
    key = tuple(map(id, wanted.values()))
    shared = _shared.get(key)
    if shared is None:
        if len(_shared) >= _MAX_SHARED:
            _shared.clear()
        shared = _shared[key] = wanted
    return shared
