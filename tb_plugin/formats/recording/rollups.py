"""Columns of a rank's table at the grain the writer kept: any rank, at once.

A table reads as the rollup of its latest digest with the rows behind it appended. Each
column is an array of that common length, named as in the digest: the axes
`step_first`, `step_last`, `ns_first`, `ns_last`, and `<column>:max`, `:min`, `:mean`.
For the rows behind the digest all of these are the row itself. Where the rollup has
maxima only (columns that are no headlines), minimum and mean read as the maximum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.errors import FormatError
from memboard.collector.format.rollup import AXES
from memboard.tb_plugin.formats.recording.chunks import as_numbers, read_chunks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from memboard.collector.format.digest import RollupSpan
    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import ChunkRef, Schema
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.recording.rank_file import RankFile

STEP_AXIS: Final = ("step_first", "step_last")
_MAX_SHARED: Final = 512
_EMPTY: Final = np.empty(0, np.float64)
_EMPTY_INTS: Final = np.empty(0, np.int64)


class RollupReader:
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

        All wanted columns but the axes must be headlines, or none of them. Without
        `keep`, only steps are cached of what is decoded.
        """
        rolled, width = self._rolled_up(file, schema, wanted, keep=keep)
        tail = file.behind.chunks.get(schema.schema_id)
        if not tail:
            return rolled, width
        late = self._tail(file, schema, tail, wanted)
        joined: dict[str, Values] = {}
        for name in wanted:
            column = late[name]
            if len(rolled[name]):
                column = np.concatenate([rolled[name], column])
            joined[name] = self._share(column) if name in STEP_AXIS else column
        return joined, width

    def decode_tail(
        self, file: RankFile, schema: Schema, columns: Sequence[str]
    ) -> None:
        """Decode columns of the rows behind the digest in one pass, and cache them.

        `read` takes headlines and others apart; a chunk holds both.
        """
        tail = file.behind.chunks.get(schema.schema_id)
        if tail:
            self._tail(file, schema, tail, [f"{column}:max" for column in columns])

    def _rolled_up(
        self, file: RankFile, schema: Schema, wanted: Sequence[str], *, keep: bool
    ) -> tuple[dict[str, Values], int]:
        if file.digest is None or schema.schema_id not in file.digest.tables:
            return _nothing(wanted), 1
        table = file.digest.tables[schema.schema_id]
        span = table.coarse if _is_coarse(schema, wanted) else table.fine
        key = (file.identity, file.digest.offset, span.start)
        values_by_name = {name: self._cache.get((key, name)) for name in wanted}
        missing = [name for name, column in values_by_name.items() if column is None]
        if missing:
            try:
                values_by_name.update(self._decode(file.read_digest(), span, missing))
            except (FormatError, OSError):
                # `read_digest` has named the damage. Without the rollup nothing is left.
                return _nothing(wanted), 1
            # Steps are read again, and one array serves all ranks in step.
            for name in missing if keep else set(STEP_AXIS) & set(missing):
                self._cache.put(
                    (key, name), values_by_name[name], values_by_name[name].nbytes
                )
        return values_by_name, span.rows_per_bucket

    def _decode(
        self, payload: bytes, span: RollupSpan, wanted: Sequence[str]
    ) -> dict[str, Values]:
        recorded_names = {name: _held_name(span, name) for name in wanted}
        decoded = span.columns(payload, sorted(set(recorded_names.values())))
        columns: dict[str, Values] = {}
        for name, held_name in recorded_names.items():
            column = decoded.get(held_name)
            if column is None:
                column = np.full(span.num_buckets(payload), np.nan)
            elif name not in AXES:
                column = as_numbers(column)
            columns[name] = self._share(column) if name in STEP_AXIS else column
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
        cached_by_column: dict[str, tuple[int, Values]] = {}
        for column in set(needed.values()):
            cached = self._cache.get((key, column))
            cached_by_column[column] = (0, _EMPTY_INTS) if cached is None else cached
        stale = [
            column
            for column, (count, _) in cached_by_column.items()
            if count < len(tail)
        ]
        if stale:
            start = min(cached_by_column[column][0] for column in stale)
            fresh = read_chunks(file, schema, tail[start:], stale)
            for column in stale:
                count, before = cached_by_column[column]
                pieces = fresh[column][count - start :]
                values = np.concatenate([before, *pieces] if count else pieces)
                cached_by_column[column] = (len(tail), values)
                self._cache.put((key, column), cached_by_column[column], values.nbytes)
        return {name: cached_by_column[column][1] for name, column in needed.items()}

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


def _nothing(wanted: Iterable[str]) -> dict[str, Values]:
    return {name: _EMPTY_INTS if name in AXES else _EMPTY for name in wanted}


def _column_of(name: str) -> str:
    """The schema's column behind a name such as `step_first` or `rss_bytes:max`."""
    if name in AXES:
        return "step" if name in STEP_AXIS else "time_ns"
    return name.rpartition(":")[0]


def _held_name(span: RollupSpan, name: str) -> str:
    return name if name in span.names else f"{name.rpartition(':')[0]}:max"


def _is_coarse(schema: Schema, wanted: Iterable[str]) -> bool:
    values = {_column_of(name) for name in wanted if name not in AXES}
    if not values:
        return not any(column.headline for column in schema.columns)
    return any(c.name in values and not c.headline for c in schema.columns)
