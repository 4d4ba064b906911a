"""Chunks of a table: which hold a stretch of it, and columns of them.

Each digest lists the chunks since the one before it, so the digests are walked backwards.
The walk stops where the part that is read begins: looking at the end of a long run reads one
or two digests. Where the chain is broken, what lies before is read frame by frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import numpy as np

from memboard.collector.format.encoding.framing import FramedRecord
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.format.errors import CorruptError, FormatError
from memboard.collector.format.records import (
    CHUNK,
    ChunkRef,
    decode_chunk,
    decode_chunk_ref,
)
from memboard.tb_plugin.formats.recording.frames.parts import PartsReader
from memboard.tb_plugin.formats.recording.frames.scan import scan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import IntArray, Schema
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.recording.rank_file import RankFile

Axis: TypeAlias = Literal["step", "ns"]

_AXES: Final = ("time_ns", "step")
_FIRST: Final[dict[Axis, int]] = {
    "step": ChunkRef._fields.index("first_step"),
    "ns": ChunkRef._fields.index("first_ns"),
}
"""Field of a chunk's first step or time; the last follows."""


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
    first = _FIRST[axis]
    pieces = [_as_array(file.behind.chunks.get(schema_id, ()))]
    offset = 0 if file.digest is None else file.digest.offset
    with PartsReader(file.layout) as reader:
        while offset and budget.allows():
            listed, previous = _listed(file, reader, offset, cache, budget)
            mine = listed[listed[:, 2] == schema_id]
            pieces.append(mine)
            if len(mine) and mine[0, first] < low:
                break
            # A chain that does not lead backwards would never end.
            offset = previous if 0 < previous < offset else 0
    refs = np.concatenate(pieces[::-1])
    refs = refs[(refs[:, first + 1] >= low) & (refs[:, first] <= high)]
    return [ChunkRef(*map(int, row)) for row in refs]


def read_chunks(
    file: RankFile, schema: Schema, refs: Sequence[ChunkRef], columns: Sequence[str]
) -> dict[str, list[Values]]:
    """Columns of some chunks, each of the length its ref says.

    The axes are integers, all else float64 with NaN where nothing was recorded. A chunk
    that cannot be decoded becomes a fault of the file and reads as rows without values,
    like a column the chunk's table has not.
    """
    names = [column.name for column in schema.columns]
    # A table may have got more columns later: what it has not yet is not recorded.
    recorded_columns = [column for column in columns if column in names]
    indices = [names.index(column) for column in recorded_columns]
    result: dict[str, list[Values]] = {column: [] for column in columns}
    with PartsReader(file.layout) as reader:
        for ref in refs:
            try:
                payload = file.behind.held_chunk(ref.offset)
                if payload is None:
                    payload = file.read_record(reader, CHUNK, ref.offset, ref.end)
                decoded = decode_chunk(payload, indices)
                if any(len(values) != ref.num_rows for values in decoded):
                    raise CorruptError("a chunk has not the rows its directory says")
            except (FormatError, OSError) as error:
                file.add_damage(ref.offset, ref.end, str(error))
                values_by_column: dict[str, Values] = {}
            else:
                values_by_column = dict(zip(recorded_columns, decoded, strict=True))
            for column in columns:
                values = values_by_column.get(column)
                if values is None:
                    values = _stand_in(column, ref)
                elif column not in _AXES:
                    values = as_numbers(values)
                result[column].append(values)
    return result


def as_numbers(values: Values) -> Values:
    """float64 with NaN where nothing was recorded; infinities count as such too."""
    if values.dtype == np.int64:
        floats = values.astype(np.float64)
        floats[values == ABSENT] = np.nan
        return floats
    odd = np.isinf(values)
    return np.where(odd, np.nan, values) if odd.any() else values


def _listed(
    file: RankFile, reader: PartsReader, offset: int, cache: Cache, budget: Budget
) -> tuple[IntArray, int]:
    """The chunks one digest lists, as rows of `ChunkRef`, and the digest before it."""
    key = (file.identity, "directory", offset)
    chunks_and_offset: tuple[IntArray, int] | None = cache.get(key)
    if chunks_and_offset is None:
        try:
            digest, payload = file.digest_at(reader, offset)
            chunks_and_offset = digest.chunks(payload), digest.previous_offset
        except FormatError:
            return _scanned(reader, offset, budget), 0
        cache.put(key, chunks_and_offset, chunks_and_offset[0].nbytes)
    return chunks_and_offset


def _scanned(reader: PartsReader, stop: int, budget: Budget) -> IntArray:
    """The chunks before `stop`, found frame by frame."""
    refs = []
    for item in scan(reader, 0, stop, budget, open_end=False):
        if isinstance(item, FramedRecord) and item.kind == CHUNK:
            try:
                refs.append(decode_chunk_ref(item.payload, item.offset, item.end)[0])
            except FormatError:
                continue
    return _as_array(refs)


def _as_array(refs: Sequence[ChunkRef]) -> IntArray:
    return np.array(refs, np.int64).reshape(-1, len(ChunkRef._fields))


def _stand_in(column: str, ref: ChunkRef) -> Values:
    if column == "step":
        return np.full(ref.num_rows, ref.last_step, np.int64)
    if column == "time_ns":
        return np.full(ref.num_rows, ref.last_ns, np.int64)
    return np.full(ref.num_rows, np.nan)
