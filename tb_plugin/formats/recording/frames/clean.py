"""Records whose fields have the types they should have.

The codec checks what it needs itself; anyone can write a file with intact checksums,
and a number where a text belongs must not surface as an error in some view.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from collector.format.errors import CorruptError
from collector.format.records import Header

if TYPE_CHECKING:
    from collector.format.records import Close, Note, Schema

_MAX_TEXT: Final = 10_000
_MAX_INT: Final = 2**63 - 1


def clean_header(header: Header) -> Header:
    """Every field of its type; what is not becomes unknown.

    Raises:
        CorruptError: the start time is missing.
    """
    started = header.started
    if not (_is_int(started.wall_ns) and _is_int(started.monotonic_ns)):
        raise CorruptError("the header's start time is not a number")
    return Header(
        rank=header.rank,
        local_rank=header.local_rank,
        pid=header.pid,
        started=started,
        planted=header.planted,
        run_id=_text(header.run_id),
        attempt=_text(header.attempt),
        job=_text(header.job),
        world_size=header.world_size if 0 < header.world_size <= _MAX_INT else 1,
        local_world_size=_int(header.local_world_size),
        node_rank=_int(header.node_rank),
        host=_text(header.host),
        device_type=_text(header.device_type),
        device_index=_int(header.device_index),
        device_name=_optional_text(header.device_name),
        device_uuid=_optional_text(header.device_uuid),
        device_total_bytes=_size(header.device_total_bytes),
        memory_limit_bytes=_size(header.memory_limit_bytes),
        memory_total_bytes=_size(header.memory_total_bytes),
        mesh={_text(k): v for k, v in _mapping(header.mesh).items() if _is_int(v)},
        versions={_text(k): _text(v) for k, v in _mapping(header.versions).items()},
        allocator_settings=_text(header.allocator_settings),
        config=_mapping(header.config),
        virtual_gpu=_text(header.virtual_gpu),
        simulated=header.simulated is True,
    )


def with_device(header: Header, note: Mapping[str, Any]) -> Header:
    """The header with what a note says of the device; what it does not say stays."""
    return replace(
        header,
        device_type=_text(note.get("device_type")) or header.device_type,
        device_index=_int(note.get("device_index")),
        device_name=_optional_text(note.get("device_name")),
        device_uuid=_optional_text(note.get("device_uuid")),
        device_total_bytes=_size(note.get("device_total_bytes")),
    )


def clean_schema(schema: Schema) -> Schema:
    """The schema itself.

    Raises:
        CorruptError: a field is not of its type.
    """
    texts = [schema.table, schema.phase]
    for column in schema.columns:
        texts += [column.name, column.unit, column.group]
    if not (_is_int(schema.schema_id) and all(isinstance(t, str) for t in texts)):
        raise CorruptError("a schema record misuses a field")
    if not isinstance(schema.rolled_up, bool):
        raise CorruptError("a schema record misuses a field")
    return schema


def clean_note(note: Note) -> Note:
    """Every field of its type.

    Raises:
        CorruptError: kind or time are not.
    """
    if not isinstance(note.kind, str) or not _is_int(note.time_ns):
        raise CorruptError("a note record misuses a field")
    return replace(note, step=_int(note.step), data=_mapping(note.data))


def clean_close(close: Close) -> Close:
    """Every field of its type.

    Raises:
        CorruptError: time, digest or count are not numbers.
    """
    numbers = (close.time_ns, close.digest_offset, close.num_dropped)
    if not all(map(_is_int, numbers)):
        raise CorruptError("a close record misuses a field")
    return replace(
        close,
        how=close.how if close.how in ("exception", "signal") else "closed",
        message=_text(close.message),
        step=_int(close.step),
        phase=_text(close.phase),
    )


def _is_int(value: Any) -> bool:
    return type(value) is int and abs(value) <= _MAX_INT


def _int(value: Any) -> int | None:
    return value if _is_int(value) else None


def _size(value: Any) -> int | None:
    return value if _is_int(value) and value > 0 else None


def _text(value: Any) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""


def _optional_text(value: Any) -> str | None:
    return value[:_MAX_TEXT] if isinstance(value, str) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
