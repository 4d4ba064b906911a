"""A capture's body in a file: numbered parts, one record each.

Parts are a quarter MiB, one behind the other in the file (tag `memboard/capture`)::

    part  u8 version | u8 0 | u16 0 | u32 part | u32 num_parts | u64 body_bytes
          | u32 CRC-32 of the body | u64 digest_offset | u32 entry_bytes
          | entry, JSON (first part only) | bytes of the body

The entry says which capture it is, so that captures are listed without decoding them.
Small parts cost nothing, no record outgrows a reader's block, and a file that was cut
off inside a capture still tells, near its end, where its last digest lies.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from collector.format.capture import MAX_CAPTURE_BYTES, decode_body
from collector.format.errors import CorruptError, TooNewError
from collector.format.names import FORMAT_VERSION
from collector.format.records import Capture, CaptureEntry

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

CAPTURE: Final = "capture"
"""The kind these records are tagged with."""

PART_BYTES: Final = 1 << 18
MAX_BODY_BYTES: Final = MAX_CAPTURE_BYTES + (1 << 24)
"""More than any capture takes: what does not deflate may grow a little."""

_HEAD: Final = struct.Struct("<BxxxIIQIQI")
_TEXTS: Final = ("kind", "phase", "function", "context", "label")
_FIELDS: Final = (*_TEXTS, "time_ns", "iteration", "step")
_MAX_TEXT: Final = 10_000


@dataclass(frozen=True, slots=True)
class CapturePart:
    """One record of a capture."""

    part: int
    num_parts: int
    body_bytes: int
    checksum: int
    digest_offset: int
    """Where the file's latest digest record starts; 0 where there is none yet."""
    entry_json: bytes
    """Empty in all parts but the first."""
    data: memoryview

    def follows(self, before: CapturePart) -> bool:
        """Whether this is the next part of the same capture."""
        return (
            self.part == before.part + 1
            and self.num_parts == before.num_parts
            and self.body_bytes == before.body_bytes
            and self.checksum == before.checksum
        )


def split_body(capture: Capture, body: bytes, *, digest_offset: int) -> list[bytes]:
    """The payloads of a capture's records, in their order."""
    plain = {name: getattr(capture, name) for name in _FIELDS}
    plain.update({name: _text(plain[name]) for name in _TEXTS})
    entry = json.dumps(plain, separators=(",", ":")).encode()
    num_parts = max(1, -(-len(body) // PART_BYTES))
    checksum = zlib.crc32(body)
    view = memoryview(body)
    parts = []
    for part in range(num_parts):
        mine = b"" if part else entry
        head = _HEAD.pack(
            FORMAT_VERSION,
            part,
            num_parts,
            len(body),
            checksum,
            digest_offset,
            len(mine),
        )
        data = view[part * PART_BYTES : (part + 1) * PART_BYTES]
        parts.append(b"".join((head, mine, data)))
    return parts


def decode_part(payload: bytes | memoryview) -> CapturePart:
    """One record of a capture.

    Raises:
        CorruptError: the bytes are none.
        TooNewError: a newer MemBoard wrote it.
    """
    if len(payload) < _HEAD.size:
        raise CorruptError(f"a part of a capture has only {len(payload)} bytes")
    version, part, num_parts, size, checksum, digest, entry_bytes = _HEAD.unpack_from(
        payload
    )
    if version > FORMAT_VERSION:
        raise TooNewError(
            f"capture format {version}, this MemBoard reads up to {FORMAT_VERSION}"
        )
    view = memoryview(payload)
    at = _HEAD.size + entry_bytes
    if part >= num_parts or at > len(view) or (entry_bytes > 0) != (part == 0):
        raise CorruptError("a part of a capture contradicts itself")
    entry = bytes(view[_HEAD.size : at])
    return CapturePart(part, num_parts, size, checksum, digest, entry, view[at:])


def decode_entry(first: CapturePart, *, offset: int, num_bytes: int) -> CaptureEntry:
    """What the first part of a capture says of it.

    Raises:
        CorruptError: it does not.
    """
    try:
        plain = json.loads(first.entry_json)
    except (ValueError, RecursionError) as error:
        raise CorruptError(f"a capture's entry is not JSON: {error}") from error
    if not isinstance(plain, dict):
        raise CorruptError("a capture's entry is not a JSON object")
    return clean_entry({**plain, "offset": offset, "num_bytes": num_bytes})


def plain_entry(entry: CaptureEntry) -> dict[str, Any]:
    """The entry as a digest lists it."""
    return asdict(entry)


def clean_entry(plain: Mapping[str, Any]) -> CaptureEntry:
    """A listed capture from plain data, every field of its type.

    Raises:
        CorruptError: a field is missing or is not.
    """
    texts = [plain.get(name) for name in _TEXTS]
    numbers = [plain.get(n) for n in ("offset", "num_bytes", "time_ns", "iteration")]
    step = plain.get("step")
    if not (
        all(isinstance(text, str) and len(text) <= _MAX_TEXT for text in texts)
        and all(map(_is_int, numbers))
        and (step is None or _is_int(step))
        and plain["offset"] >= 0
        and plain["num_bytes"] >= 0
    ):
        raise CorruptError("a capture's entry lacks or misuses a field")
    known: dict[str, Any] = {name: plain.get(name) for name in _FIELDS}
    return CaptureEntry(offset=plain["offset"], num_bytes=plain["num_bytes"], **known)


def join_parts(parts: Sequence[CapturePart]) -> bytes:
    """The body, from all its parts in order.

    Raises:
        CorruptError: one is missing, or is another capture's.
    """
    if not parts or parts[0].part != 0 or len(parts) != parts[0].num_parts:
        raise CorruptError("a part of the capture is missing")
    for before, part in pairwise(parts):
        if not part.follows(before):
            raise CorruptError("a part of the capture belongs to another one")
    body = b"".join(part.data for part in parts)
    if len(body) != parts[0].body_bytes or zlib.crc32(body) != parts[0].checksum:
        raise CorruptError("the parts of the capture do not make up what was written")
    return body


def decode_capture(
    entry: CaptureEntry,
    parts: Sequence[CapturePart],
    wanted: Collection[str] | None = None,
) -> Capture:
    """A capture with the tables that are wanted, or with all of them.

    Raises:
        CorruptError: a part is missing or damaged, or claims too much.
    """
    meta, tables = decode_body(join_parts(parts), wanted)
    known = {name: getattr(entry, name) for name in _FIELDS}
    return Capture(**known, meta=meta, tables=tables)


def _text(value: Any) -> str:
    """Bounded, and such that any UTF-8 holds it: digests repeat it."""
    text = str(value)[:_MAX_TEXT]
    return text.encode("utf-8", "replace").decode("utf-8")


def _is_int(value: Any) -> bool:
    return type(value) is int and -(2**63) <= value < 2**63
