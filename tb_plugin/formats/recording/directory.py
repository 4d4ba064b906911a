"""Which chunks hold a stretch of a table: the digests' directories, walked backwards.

Each digest lists the chunks since the one before it. The walk stops where what was
asked for begins, so looking at the end of a long run reads one or two digests. Where
the chain is broken, what lies before it is read frame by frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from collector.format.codec import CHUNK, DIGEST, decode_chunk_span
from collector.format.errors import FormatError
from collector.format.framing import Framed
from tb_plugin.formats.recording.digest import listed_chunks
from tb_plugin.formats.recording.frames.chunk_ref import (
    MAX_CHUNK_ROWS,
    ChunkRef,
    chunk_ref,
)
from tb_plugin.formats.recording.frames.parts import PartsReader
from tb_plugin.formats.recording.frames.scan import scan

if TYPE_CHECKING:
    import numpy.typing as npt

    from collector.format.numeric import Values
    from tb_plugin.budget import Budget
    from tb_plugin.cache import Cache
    from tb_plugin.formats.recording.rank_file import RankFile

Axis: TypeAlias = Literal["step", "ns"]

_FIRST: Final[dict[Axis, int]] = {"step": 4, "ns": 6}
"""Index of a `ChunkRef`'s first step or time; the last follows."""


def chunks_between(
    file: RankFile,
    schema_id: int,
    axis: Axis,
    low: float,
    high: float,
    cache: Cache,
    budget: Budget,
) -> list[ChunkRef]:
    """Chunks of a table that overlap `low..high`, in file order.

    Where the steps of a file go back, only the later rows are sure to be in the
    answer: they win on the step axis.
    """
    tail = np.array(file.tail.get(schema_id, ()), np.int64).reshape(-1, 8)
    found = [_overlapping(tail, axis, low, high)]
    offset = end = 0
    if file.digest is not None:
        offset, end = file.digest.offset, file.digest.end
    with PartsReader(file.layout) as reader:
        while offset and budget.allows():
            try:
                listed, previous = _listed(file, reader, offset, end, cache)
            except FormatError:
                listed, previous = _scanned(reader, offset, budget), 0
            mine = listed[listed[:, 2] == schema_id]
            found.append(_overlapping(mine, axis, low, high))
            if len(mine) and mine[0, _FIRST[axis]] < low:
                break
            end = int(listed[0, 0]) if len(listed) else offset
            # A chain that does not lead backwards would never end.
            offset = previous if 0 < previous < min(offset, end) else 0
    rows = np.concatenate(found[::-1])
    return [ChunkRef(*map(int, row)) for row in rows]


def _overlapping(
    refs: npt.NDArray[np.int64], axis: Axis, low: float, high: float
) -> npt.NDArray[np.int64]:
    first = _FIRST[axis]
    return refs[(refs[:, first + 1] >= low) & (refs[:, first] <= high)]


def _listed(
    file: RankFile, reader: PartsReader, offset: int, end: int, cache: Cache
) -> tuple[npt.NDArray[np.int64], int]:
    """The chunks one digest lists, as rows of `ChunkRef`, and the digest before it.

    Raises:
        FormatError: there is no such digest.
    """
    key = (file.identity, "directory", offset)
    known: tuple[npt.NDArray[np.int64], int] | None = cache.get(key)
    if known is None:
        payload = file.read_record(reader, DIGEST, offset, end)
        previous, tables = listed_chunks(payload)
        known = (_as_rows(tables, offset), previous)
        cache.put(key, known, known[0].nbytes)
    return known


def _as_rows(
    by_schema: dict[int, dict[str, Values]], digest_offset: int
) -> npt.NDArray[np.int64]:
    tables = []
    for schema_id, held in by_schema.items():
        columns = list(held.values())
        rows = np.empty((len(columns[0]), 8), np.int64)
        rows[:, 0], rows[:, 2] = columns[0], schema_id
        for index, column in enumerate(columns[1:], start=3):
            rows[:, index] = column
        tables.append(rows)
    if not tables:
        return np.empty((0, 8), np.int64)
    listed = np.concatenate(tables)
    listed = listed[np.argsort(listed[:, 0], kind="stable")]
    # A chunk's frame ends at or before the next one, and before the digest.
    listed[:, 1] = np.append(listed[1:, 0], digest_offset)[: len(listed)]
    sane = (listed[:, 0] > 0) & (listed[:, 1] > listed[:, 0])
    sane &= (listed[:, 3] >= 0) & (listed[:, 3] <= MAX_CHUNK_ROWS)
    return listed[sane]


def _scanned(reader: PartsReader, stop: int, budget: Budget) -> npt.NDArray[np.int64]:
    """The chunks before `stop`, found frame by frame."""
    refs = []
    for item in scan(reader, 0, stop, budget, open_end=False):
        if isinstance(item, Framed) and item.kind == CHUNK:
            try:
                refs.append(chunk_ref(item, decode_chunk_span(item.payload)))
            except FormatError:
                continue
    return np.array(refs, np.int64).reshape(-1, 8)
