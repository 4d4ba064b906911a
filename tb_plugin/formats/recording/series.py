"""One series of one rank as `Rows`: from the rollup, or row by row from the chunks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol, TypeAlias, TypeVar

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.series.rows import Rows
from memboard.tb_plugin.formats.recording.captures.reading import CaptureMetas
from memboard.tb_plugin.formats.recording.chunks import chunks_between, read_chunks
from memboard.tb_plugin.formats.recording.rollups import STEP_AXIS, RollupReader

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import numpy.typing as npt

    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import ChunkRef, Schema
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.recording.rank_file import RankFile

    Floats: TypeAlias = npt.NDArray[np.float64]


class DerivedValue(Protocol):
    """A value that can be cached: an array, or a tuple of several."""

    @property
    def nbytes(self) -> int:
        """Bytes that it takes in memory."""


D = TypeVar("D", bound="DerivedValue | None")

TRAIN_PHASE: Final = "train"
DEFAULT_COLUMNS: Final = ("allocated_peak_bytes", "rss_bytes")
"""Columns that a run shows first: the first of these that it has."""

SECONDS_PER_CHUNK: Final = 1e-4
"""Approximate time to decode a column of one chunk; to decide before starting."""

_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")
"""At exactly the end of a step, this one and the next are both under way."""


@dataclass(frozen=True, slots=True)
class SeriesKey:
    """Which column of which rows."""

    table: str
    column: str
    phase: str = TRAIN_PHASE
    """Timed tables have no phases."""

    @property
    def text(self) -> str:
        # As `SeriesInfo.key` of `memboard.tb_plugin.api.timeline`
        return f"{self.table}/{self.column}"


@dataclass(frozen=True, slots=True)
class Clock:
    """How a rank's times become x: nanoseconds since `origin_ns`, plus `shift_ms`."""

    origin_ns: int
    shift_ms: float

    def x_of(self, ns: Values) -> Floats:
        return (ns - self.origin_ns) / 1e6 + self.shift_ms

    def x_at(self, ns: int) -> float:
        return (ns - self.origin_ns) / 1e6 + self.shift_ms

    def ns_of(self, x: float) -> float:
        # The inverse of `x_of`
        return (x - self.shift_ms) * 1e6 + self.origin_ns


WALL: Final = Clock(0, 0.0)


def stamp_of(file: RankFile) -> object:
    """Changes whenever a file holds something new."""
    offset = -1 if file.digest is None else file.digest.offset
    return file.identity, offset, sum(map(len, file.behind.chunks.values()))


class SeriesReader:
    """Reads series through a cache; many threads may, each file one at a time."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.rollups = RollupReader(cache)
        self.capture_metas: Final = CaptureMetas(cache)

    def chunks_of(
        self, file: RankFile, schema_id: int, budget: Budget
    ) -> list[ChunkRef]:
        """All chunks of a table that are known, in file order; none is read."""
        return chunks_between(
            file, schema_id, "step", -np.inf, np.inf, self._cache, budget
        )

    def aggregates(
        self,
        file: RankFile,
        key: SeriesKey,
        wanted: Sequence[str],
        *,
        keep: bool = True,
    ) -> tuple[dict[str, Values], int]:
        """Columns of `RollupReader.read` over all schemas of the table, in file order.

        Empty arrays where the file has no such column. Without `keep`, what is decoded
        is not kept for the next time.
        """
        pieces, width = [], 1
        for schema in schemas_of(file, key):
            columns, rows = self.rollups.read(file, schema, wanted, keep=keep)
            lengths = {len(column) for column in columns.values()}
            if len(lengths) == 1 and lengths != {0}:  # damage may have cost some
                pieces.append(columns)
                width = max(width, rows)
        if len(pieces) == 1:
            return pieces[0], width
        empty = np.empty(0)
        return {
            column: np.concatenate([piece[column] for piece in pieces])
            if pieces
            else empty
            for column in wanted
        }, width

    def derived(
        self,
        key: Hashable,
        make: Callable[[], D],
        *,
        is_final: Callable[[D], bool] = lambda _: True,
    ) -> D:
        """What was made of columns, cached like a column; `key` says of which.

        What is not final is made anew the next time.
        """
        cached: D | None = self._cache.get(key)
        if cached is not None:
            return cached
        derived = make()
        if derived is not None and is_final(derived):
            self._cache.put(key, derived, derived.nbytes)
        return derived

    def rollup(
        self,
        file: RankFile,
        key: SeriesKey,
        clock: Clock | None,
        *,
        low: bool = False,
    ) -> Rows | None:
        """All of the series at the grain that was kept; on steps without a clock.

        None where the file has nothing of it. `low` asks for minima too.
        """
        axis = "step" if clock is None else "ns"
        names = [f"{axis}_first", f"{axis}_last", f"{key.column}:max"]
        if low:
            names.append(f"{key.column}:min")
        schemas = schemas_of(file, key)
        if len(schemas) > 1 and clock is None:
            names.append("ns_first")
        columns, width = self.aggregates(file, key, names)
        high = np.asarray(columns[names[2]], np.float64)
        if len(high) == 0:
            return None
        first, last = columns[names[0]], columns[names[1]]
        if clock is not None:
            first, last = clock.x_of(first), clock.x_of(last)
        minimum = np.asarray(columns[names[3]], np.float64) if low else high
        rows = Rows(first, last, high, minimum, width)
        if "ns_first" in names[3:]:
            # Schemas may take turns: their rows are in order only by time.
            rows = rows.take(np.argsort(columns["ns_first"], kind="stable"))
        return rows

    def row_by_row(
        self,
        file: RankFile,
        key: SeriesKey,
        clock: Clock | None,
        low: float,
        high: float,
        budget: Budget,
    ) -> Rows | None:
        """The rows with x in `low..high`; None where the budget does not allow that."""
        wanted = ["step" if clock is None else "time_ns", key.column]
        # One table on the step axis needs no times: a third less to decode.
        if clock is None and len(schemas_of(file, key)) > 1:
            wanted.append("time_ns")
        columns = self.rows_between(file, key, wanted, low, high, budget, clock)
        if columns is None:
            return None
        x = columns[wanted[0]]
        x = x if clock is None else clock.x_of(x)
        values = np.asarray(columns[key.column], np.float64)
        return Rows(x, x, values, values, 1)

    def rows_between(
        self,
        file: RankFile,
        key: SeriesKey,
        wanted: Sequence[str],
        low: float,
        high: float,
        budget: Budget,
        clock: Clock | None = None,
    ) -> dict[str, Values] | None:
        """Columns of the chunks that touch the steps `low..high`, in order of time.

        With a clock `low` and `high` are its x. `wanted` must hold `time_ns` where the
        series has several tables. A column that a table has not reads as not recorded.
        None where the budget does not allow to read them.
        """
        axis: Literal["step", "ns"] = "step"
        if clock is not None:
            axis, low, high = "ns", clock.ns_of(low), clock.ns_of(high)
        refs_by_schema = [
            (
                schema,
                chunks_between(
                    file, schema.schema_id, axis, low, high, self._cache, budget
                ),
            )
            for schema in schemas_of(file, key)
        ]
        num_chunks = sum(len(refs) for _, refs in refs_by_schema)
        if not budget.allows(num_chunks * SECONDS_PER_CHUNK * len(wanted) / 2):
            return None
        pieces = [
            self._chunks(file, schema, refs, wanted)
            for schema, refs in refs_by_schema
            if refs
        ]
        columns = {
            column: np.concatenate([piece[index] for piece in pieces] or [_NO_INTS])
            for index, column in enumerate(wanted)
        }
        if len(pieces) > 1:
            order = np.argsort(columns["time_ns"], kind="stable")
            columns = {column: values[order] for column, values in columns.items()}
        return columns

    def steps(self, file: RankFile) -> tuple[int, int] | None:
        """First and last step of a file's step tables, whatever their phase."""
        first, last = [], []
        for schema in file.schemas.values():
            if schema.table == STEP_TABLE:
                columns, _ = self.rollups.read(file, schema, STEP_AXIS)
                if len(columns["step_first"]):
                    first.append(int(columns["step_first"].min()))
                    last.append(int(columns["step_last"].max()))
        return (min(first), max(last)) if first else None

    def train_step_at(self, file: RankFile, time_ns: int, noted: int) -> int:
        """The training step under way at a time: the noted one, if that can be.

        A row is written at the end of its step. Where rows were rolled up, only the
        bucket is known, and the noted step decides inside it.
        """
        for _, schema in sorted(file.schemas.items()):
            if schema.table != STEP_TABLE or schema.phase != TRAIN_PHASE:
                continue
            wanted = [*STEP_AXIS, "ns_last"]
            columns, _ = self.rollups.read(file, schema, wanted)
            ends = columns["ns_last"]
            if len(ends) == 0 or len({len(c) for c in columns.values()}) > 1:
                continue
            low, high = (int(np.searchsorted(ends, time_ns, s)) for s in _SIDES)
            first = int(columns["step_first"][min(low, len(ends) - 1)])
            last = int(columns["step_last"][min(high, len(ends) - 1)])
            return min(max(noted, first), max(first, last))
        return noted

    def _chunks(
        self,
        file: RankFile,
        schema: Schema,
        refs: Sequence[ChunkRef],
        wanted: Sequence[str],
    ) -> list[Values]:
        """Columns of some chunks end to end, each decoded once while it is kept."""
        values_of_chunk: dict[tuple[int, str], Values] = {}
        missing = []
        for ref in refs:
            for column in wanted:
                values = self._cache.get((file.identity, ref.offset, column))
                if values is not None:
                    values_of_chunk[ref.offset, column] = values
            if any((ref.offset, column) not in values_of_chunk for column in wanted):
                missing.append(ref)
        if missing:
            fresh = read_chunks(file, schema, missing, wanted)
            for column in wanted:
                for ref, values in zip(missing, fresh[column], strict=True):
                    values_of_chunk[ref.offset, column] = values
                    key = (file.identity, ref.offset, column)
                    self._cache.put(key, values, values.nbytes)
        return [
            np.concatenate([values_of_chunk[ref.offset, column] for ref in refs])
            for column in wanted
        ]


def main_phase(file: RankFile) -> str:
    """The phase that counts a file's steps: training, if it was recorded."""
    phases = [s.phase for s in file.schemas.values() if s.table == STEP_TABLE]
    return TRAIN_PHASE if TRAIN_PHASE in phases or not phases else phases[0]


def schemas_of(file: RankFile, key: SeriesKey) -> list[Schema]:
    """The file's schemas that hold the series, in the order they were written."""
    return [
        schema
        for _, schema in sorted(file.schemas.items())
        if schema.table == key.table
        and schema.rolled_up
        and (schema.phase == key.phase or schema.interval_seconds is not None)
        and any(column.name == key.column for column in schema.columns)
    ]


_NO_INTS = np.empty(0, np.int64)
