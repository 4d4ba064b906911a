"""Where a chunk lies in its file and what it covers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collector.format.framing import Framed
    from collector.format.records import ChunkSpan

MAX_CHUNK_ROWS: Final = 1 << 20
"""A chunk that claims more rows is corrupt: writers flush every few seconds."""


class ChunkRef(NamedTuple):
    """Where a chunk lies and what it covers."""

    offset: int
    end: int
    """No byte of the chunk's frame lies at or behind this."""
    schema_id: int
    num_rows: int
    first_step: int
    last_step: int
    first_ns: int
    last_ns: int


def chunk_ref(item: Framed, span: ChunkSpan) -> ChunkRef:
    """A chunk's place and extent."""
    return ChunkRef(
        item.offset,
        item.end,
        span.schema_id,
        span.num_rows,
        span.first_step,
        span.last_step,
        span.first_ns,
        span.last_ns,
    )
