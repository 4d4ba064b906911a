"""Columns of a rank's table at the grain the writer kept: any rank, at once.

A table reads as the rollup of its latest digest with the rows behind it appended. Each
column is an array of that common length, named as in the digest: the axes
`step_first`, `step_last`, `ns_first`, `ns_last`, and `<column>:max`, `:min`, `:mean`.
For the rows behind the digest all of these are the row itself. Where the rollup kept
maxima only (columns that are no headlines), minimum and mean read as the maximum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.codec import decode_chunk
from collector.format.errors import CorruptError, FormatError
from collector.format.numeric import block_num_rows
from tb_plugin.formats.recording.digest import as_numbers, decode_columns
from tb_plugin.formats.recording.frames.parts import PartsReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from collector.format.numeric import Values
    from collector.format.records import Schema
    from tb_plugin.cache import Cache
    from tb_plugin.formats.recording.digest import BlockSpan
    from tb_plugin.formats.recording.frames.chunk_ref import ChunkRef
    from tb_plugin.formats.recording.rank_file import RankFile

AXES: Final = ("step_first", "step_last", "ns_first", "ns_last")
_STEP_AXES: Final = ("step_first", "step_last")
MAX_BUCKETS: Final = 1 << 16
"""A rollup that claims more is corrupt: the writer keeps about a thousand."""

_MAX_SHARED: Final = 512


class ColumnReader:
    """Reads columns through a cache; many threads may, each file one at a time."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._shared: dict[tuple[int, int], npt.NDArray[np.int64]] = {}

    def read(
        self,
        file: RankFile,
        schema: Schema,
        wanted: Sequence[str],
        *,
        keep: bool = True,
    ) -> tuple[dict[str, Values], int]:
        """The wanted columns, and how many rows the widest bucket holds.

        All wanted columns but the axes must be headlines, or none of them.
        """
        rolled, width = self._rolled_up(file, schema, wanted, keep=keep)
        tail = file.tail.get(schema.schema_id)
        if not tail:
            return rolled, width
        late = self._tail(file, schema, tail, wanted)
        joined: dict[str, Values] = {}
        for name in wanted:
            before = rolled.get(name)
            column = late[name]
            if before is not None and len(before):
                column = np.concatenate([before, column])
            joined[name] = self._share(column) if name in _STEP_AXES else column
        return joined, width

    def decode_tail(
        self, file: RankFile, schema: Schema, columns: Sequence[str]
    ) -> None:
        """Decode columns of the rows behind the digest in one pass, and keep them.

        `read` asks for headlines and for others apart; a chunk holds both.
        """
        tail = file.tail.get(schema.schema_id)
        if tail:
            self._tail(file, schema, tail, [f"{column}:max" for column in columns])

    def _rolled_up(
        self, file: RankFile, schema: Schema, wanted: Sequence[str], *, keep: bool
    ) -> tuple[dict[str, Values], int]:
        empty = {name: _EMPTY_INTS if name in AXES else _EMPTY for name in wanted}
        if file.digest is None or schema.schema_id not in file.digest.tables:
            return empty, 1
        spans = file.digest.tables[schema.schema_id]
        span = spans.coarse if _is_coarse(schema, wanted) else spans.fine
        key = (file.identity, file.digest.offset, span.start)
        found = {name: self._cache.get((key, name)) for name in wanted}
        missing = [name for name, column in found.items() if column is None]
        if missing:
            found.update(self._decode(file, span, missing))
            for name in missing if keep else ():
                column = found[name]
                self._cache.put((key, name), column, column.nbytes)
        return found, span.rows_per_bucket

    def _decode(
        self, file: RankFile, span: BlockSpan, wanted: Sequence[str]
    ) -> dict[str, Values]:
        instead = {name: _held_name(span, name) for name in wanted}
        try:
            payload = file.read_digest()
            num_rows = _num_buckets(memoryview(payload)[span.start : span.end])
            held = {name for name in instead.values() if name is not None}
            decoded = decode_columns(payload, span, sorted(held))
        except (FormatError, OSError):
            # `read_digest` has named the damage. Without the rollup the table is empty.
            return {n: _EMPTY_INTS if n in AXES else _EMPTY for n in wanted}
        columns: dict[str, Values] = {}
        for name, held_name in instead.items():
            if held_name is None:
                columns[name] = np.full(num_rows, np.nan)
            elif name in AXES:
                axis = decoded[held_name]
                shared = name in _STEP_AXES
                columns[name] = self._share(axis) if shared else axis
            else:
                columns[name] = as_numbers(decoded[held_name])
        return columns

    def _tail(
        self,
        file: RankFile,
        schema: Schema,
        tail: Sequence[ChunkRef],
        wanted: Iterable[str],
    ) -> dict[str, Values]:
        """Columns of the rows behind the digest; only new chunks are read."""
        needed = {name: _column_of(name) for name in wanted}
        behind = -1 if file.digest is None else file.digest.offset
        key = (file.identity, behind, schema.schema_id)
        known: dict[str, tuple[int, Values]] = {}
        for column in set(needed.values()):
            cached = self._cache.get((key, column))
            known[column] = (0, _EMPTY_INTS) if cached is None else cached
        stale = [column for column, (count, _) in known.items() if count < len(tail)]
        if stale:
            start = min(known[column][0] for column in stale)
            fresh = read_chunks(file, schema, tail[start:], stale)
            for column in stale:
                count, before = known[column]
                values = _joined(column, fresh[column][count - start :])
                if count:
                    values = np.concatenate([before, values])
                known[column] = (len(tail), values)
                self._cache.put((key, column), known[column], values.nbytes)
        return {name: known[column][1] for name, column in needed.items()}

    def _share(self, axis: Values) -> npt.NDArray[np.int64]:
        """The one array of these values: ranks that run in step share their axes."""
        ints = np.asarray(axis, np.int64)
        key = (len(ints), hash(ints.tobytes()))
        shared = self._shared.get(key)
        if shared is None or not np.array_equal(shared, ints):
            if len(self._shared) >= _MAX_SHARED:
                self._shared.clear()
            shared = self._shared[key] = ints
        return shared


def read_chunks(
    file: RankFile, schema: Schema, refs: Sequence[ChunkRef], columns: Sequence[str]
) -> dict[str, list[Values]]:
    """Columns of some chunks as they are on disk, each of the length its ref says.

    A chunk that cannot be decoded becomes a fault of the file and reads as rows
    without values, like a column the chunk's table has not.
    """
    names = [column.name for column in schema.columns]
    # A table may have got more columns later: what it has not yet is not recorded.
    held = [column for column in columns if column in names]
    missing = [column for column in columns if column not in names]
    indices = [names.index(column) for column in held]
    result: dict[str, list[Values]] = {column: [] for column in columns}
    with PartsReader(file.layout) as reader:
        for ref in refs:
            try:
                decoded = _decoded(file.read_chunk(reader, ref), indices, ref)
            except (FormatError, OSError) as error:
                file.add_damage(ref.offset, ref.end, str(error))
                decoded = tuple(_stand_in(column, ref) for column in held)
            for column, values in zip(held, decoded, strict=True):
                result[column].append(values)
            for column in missing:
                result[column].append(_stand_in(column, ref))
    return result


def as_values(column: str, values: Values) -> Values:
    """What `read_chunks` gave as numbers, with NaN for what was not recorded."""
    return values if column in ("time_ns", "step") else as_numbers(values)


def _joined(column: str, pieces: Sequence[Values]) -> Values:
    if all(piece.dtype == np.int64 for piece in pieces):
        ints: npt.NDArray[np.int64] = np.concatenate(pieces)
        return as_values(column, ints)
    return np.concatenate([as_values(column, piece) for piece in pieces])


def _num_buckets(block: memoryview) -> int:
    num_rows = block_num_rows(block)
    if num_rows > MAX_BUCKETS:
        raise CorruptError(f"a rollup claims {num_rows} buckets")
    return num_rows


def _decoded(
    payload: bytes, indices: Sequence[int], ref: ChunkRef
) -> tuple[Values, ...]:
    columns = decode_chunk(payload, indices).columns
    if any(len(values) != ref.num_rows for values in columns):
        raise CorruptError("a chunk has not the rows its directory says")
    return columns


def _stand_in(column: str, ref: ChunkRef) -> Values:
    if column == "step":
        return np.full(ref.num_rows, ref.last_step, np.int64)
    if column == "time_ns":
        return np.full(ref.num_rows, ref.last_ns, np.int64)
    return np.full(ref.num_rows, np.nan)


def _column_of(name: str) -> str:
    """The schema's column behind a name such as `step_first` or `rss_bytes:max`."""
    if name in AXES:
        return "step" if name in _STEP_AXES else "time_ns"
    return name.rpartition(":")[0]


def _held_name(span: BlockSpan, name: str) -> str | None:
    if name in span.names:
        return name
    maximum = f"{name.rpartition(':')[0]}:max"
    return maximum if maximum in span.names else None


def _is_coarse(schema: Schema, wanted: Iterable[str]) -> bool:
    values = {_column_of(name) for name in wanted if name not in AXES}
    if not values:
        return not any(column.headline for column in schema.columns)
    return any(c.name in values and not c.headline for c in schema.columns)


_EMPTY = np.empty(0, np.float64)
_EMPTY_INTS = np.empty(0, np.int64)
