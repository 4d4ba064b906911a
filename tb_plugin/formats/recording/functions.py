"""Functions around whose calls something was collected, and the snaps of one of them.

Snaps are rows of tables named `function/<name>`, one table per phase and set of columns,
kept row by row: their newest rows are decoded once and added to while the file grows. A
run imported from MemProfiler's files answers the same questions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.series.functions import (
    CONTEXTS,
    NO_STEP,
    NO_TIME,
    SnapTable,
    joined,
)
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.cache import Cache
from memboard.tb_plugin.formats.memprofiler.names import FunctionKey
from memboard.tb_plugin.formats.recording.captures.reading import captures_of
from memboard.tb_plugin.formats.recording.chunks import chunks_between, read_chunks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.collector.format.columns import Column
    from memboard.collector.format.encoding.numeric import Values
    from memboard.collector.format.records import CaptureEntry, ChunkRef, Schema
    from memboard.tb_plugin.formats.memprofiler.imports import Imports
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run

TABLE_PREFIX: Final = "function/"

KINDS: Final = ("snaps", "hooks", "activations", "modules", "history")
"""Kinds of data around a call; the bit of a kind is 1 shifted by its index."""

MAX_ROWS: Final = 4096
"""Of one table that are decoded: the newest."""

_MAX_STATS: Final = 1000
_KEY: Final = ("time_ns", "step", "iteration", "context")
_MAX_INDEX: Final = 2**31 - 1


def bit_of(kind: str) -> int:
    """The bit of a kind; 0 for one that is not shown here."""
    return 1 << KINDS.index(kind) if kind in KINDS else 0


@dataclass(frozen=True, slots=True, eq=False)
class Snaps:
    """The newest snaps of one function on one rank."""

    table: SnapTable
    columns: Mapping[str, Column] = field(default_factory=dict)
    """By stat, where files say more of it than its name."""
    num_left_out: int = 0


class Entry(NamedTuple):
    """A capture, and where it lies."""

    attempt: int
    file: RankFile
    entry: CaptureEntry


class FunctionsReader:
    """Reads through a cache; each run under its lock."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def collected(self, run: Run, budget: Budget) -> dict[FunctionKey, dict[int, int]]:
        """Which functions have what: bits of `KINDS` by function and rank."""
        functions: dict[FunctionKey, dict[int, int]] = {}
        for file in run.files.values():
            of_file = dict.fromkeys(snapped(file), bit_of("snaps"))
            for entry in captures_of(file, budget):
                bit = bit_of(entry.kind)
                if entry.function and bit:
                    key = FunctionKey(entry.function, entry.phase)
                    of_file[key] = of_file.get(key, 0) | bit
            for key, bits in of_file.items():
                ranks = functions.setdefault(key, {})
                ranks[file.rank] = ranks.get(file.rank, 0) | bits
        if run.imported is not None:
            _add_imported(functions, run.imported, budget)
        return functions

    def entries(self, run: Run, rank: int, budget: Budget) -> list[Entry]:
        """A rank's captures, in the order they were written."""
        return [
            Entry(attempt.index, file, entry)
            for attempt, file in run.rank_files(rank)
            for entry in captures_of(file, budget)
        ]

    def snaps(self, run: Run, rank: int, key: FunctionKey, budget: Budget) -> Snaps:
        """A function's snaps on a rank, in the order they were taken."""
        if run.imported is not None and not run.files:
            table = run.imported.snaps(rank).get(key)
            return Snaps(joined([]) if table is None else table)
        tables, num_left_out = [], 0
        columns: dict[str, Column] = {}
        for attempt, file in run.rank_files(rank):
            for schema in _schemas_of(file, key):
                rows, left_out = self._rows(file, schema, budget)
                tables.append(_snap_table(attempt.index, rows))
                num_left_out += left_out
                for column in schema.columns:
                    columns.setdefault(column.name, column)
        return Snaps(joined(tables), columns, num_left_out)

    def stat_of_call(
        self,
        run: Run,
        rank: int,
        key: FunctionKey,
        call: tuple[int, int, int],
        stat: str,
        budget: Budget,
    ) -> tuple[float, float]:
        """A stat at start and end of one call; NaN where it was not recorded.

        `call`: attempt, iteration and step, `NO_STEP` where that is unknown.
        """
        attempt, iteration, step = call
        if run.imported is not None and not run.files:
            table = run.imported.snaps(rank).get(key)
            return (_NAN, _NAN) if table is None else _sides(table, iteration, stat)
        sides = (_NAN, _NAN)
        for of_attempt, file in run.rank_files(rank):
            if of_attempt.index != attempt:
                continue
            for schema in _schemas_of(file, key):
                if any(column.name == stat for column in schema.columns):
                    own_sides = self._call(file, schema, iteration, step, stat, budget)
                    sides = _filled(sides, own_sides)
        return sides

    def _call(
        self,
        file: RankFile,
        schema: Schema,
        iteration: int,
        step: int,
        stat: str,
        budget: Budget,
    ) -> tuple[float, float]:
        """The same in one table: most often the rows of the call's step hold it."""
        key = (file.identity, "call", schema.schema_id, iteration, stat)
        sides: tuple[float, float] | None = self._cache.get(key)
        if sides is not None:
            return sides
        sides = (_NAN, _NAN)
        spans = [(float(step), float(step))] if step != NO_STEP else []
        for low, high in (*spans, (-np.inf, np.inf)):
            if np.isnan(sides).any():
                refs = chunks_between(
                    file, schema.schema_id, "step", low, high, self._cache, budget
                )
                read = read_chunks(file, schema, _newest(refs), (*_KEY, stat))
                table = _snap_table(0, _joined_columns(read))
                sides = _filled(sides, _sides(table, iteration, stat))
        if not np.isnan(sides).any():
            self._cache.put(key, sides, 0)
        return sides

    def _rows(
        self, file: RankFile, schema: Schema, budget: Budget
    ) -> tuple[dict[str, Values], int]:
        """The newest rows of a table, by column, and how many older ones there are."""
        names = [c.name for c in schema.columns if c.name not in _KEY][:_MAX_STATS]
        refs = chunks_between(
            file, schema.schema_id, "ns", -np.inf, np.inf, self._cache, budget
        )
        num_rows = sum(ref.num_rows for ref in refs)
        newest = _newest(refs)
        key = (file.identity, "rows", schema.schema_id)
        read_before: tuple[int, dict[str, Values]] | None = self._cache.get(key)
        fresh = [
            ref for ref in newest if read_before is None or ref.offset > read_before[0]
        ]
        rows = _joined_columns(read_chunks(file, schema, fresh, (*_KEY, *names)))
        if read_before is not None:
            rows = {n: np.concatenate([read_before[1][n], v]) for n, v in rows.items()}
        rows = {name: values[-MAX_ROWS:] for name, values in rows.items()}
        if fresh and not budget.exhausted:
            size = sum(values.nbytes for values in rows.values())
            self._cache.put(key, (fresh[-1].offset, rows), size)
        return rows, max(0, num_rows - len(rows["step"]))


_NAN: Final = float("nan")


def snapped(file: RankFile) -> Iterator[FunctionKey]:
    """Functions that have a table of snaps."""
    for schema in file.schemas.values():
        if _is_snaps(schema):
            yield _key_of(schema)


def every_snap(file: RankFile) -> dict[FunctionKey, SnapTable]:
    """All snaps of a rank's file, of whatever age, as files for other tools have them."""
    tables: dict[FunctionKey, list[SnapTable]] = {}
    for _, schema in sorted(file.schemas.items()):
        if _is_snaps(schema):
            refs = chunks_between(
                file,
                schema.schema_id,
                "ns",
                -np.inf,
                np.inf,
                Cache(),
                Budget(math.inf),
            )
            names = [column.name for column in schema.columns]
            rows = _joined_columns(read_chunks(file, schema, refs, names))
            tables.setdefault(_key_of(schema), []).append(_snap_table(0, rows))
    return {key: joined(of_key) for key, of_key in tables.items()}


def _key_of(schema: Schema) -> FunctionKey:
    return FunctionKey(schema.table.removeprefix(TABLE_PREFIX), schema.phase)


def _is_snaps(schema: Schema) -> bool:
    if schema.rolled_up or not schema.table.startswith(TABLE_PREFIX):
        return False
    return set(_KEY) <= {column.name for column in schema.columns}


def _schemas_of(file: RankFile, key: FunctionKey) -> list[Schema]:
    return [
        schema
        for _, schema in sorted(file.schemas.items())
        if schema.table == TABLE_PREFIX + key.function
        and schema.phase == key.phase
        and _is_snaps(schema)
    ]


def _newest(refs: Sequence[ChunkRef]) -> list[ChunkRef]:
    """The last chunks, as many as hold `MAX_ROWS`."""
    num_rows, start = 0, len(refs)
    while start and num_rows < MAX_ROWS:
        start -= 1
        num_rows += refs[start].num_rows
    return list(refs[start:])


def _joined_columns(pieces: Mapping[str, Sequence[Values]]) -> dict[str, Values]:
    """What `read_chunks` gave, end to end; whole numbers in the columns of the key.

    A chunk that could not be decoded reads as rows without values: -1 there.
    """
    rows: dict[str, Values] = {}
    for column, pieces_of_column in pieces.items():
        joined = np.concatenate([np.empty(0, np.int64), *pieces_of_column])
        if column in _KEY and joined.dtype != np.int64:
            joined = np.nan_to_num(joined, nan=-1.0).astype(np.int64)
        rows[column] = joined
    return rows


def _snap_table(attempt: int, rows: Mapping[str, Values]) -> SnapTable:
    iteration, context = rows["iteration"], rows["context"]
    sane = (iteration >= 0) & (iteration <= _MAX_INDEX)
    sane &= (context >= 0) & (context < len(CONTEXTS))
    time_ns, step = rows["time_ns"][sane], rows["step"][sane]
    return SnapTable(
        attempt=np.full(int(sane.sum()), attempt, np.int64),
        iteration=np.asarray(iteration[sane], np.int64),
        context=np.asarray(context[sane], np.int64),
        time_ns=np.asarray(np.where(time_ns < 0, NO_TIME, time_ns), np.int64),
        step=np.asarray(np.where(step < 0, NO_STEP, step), np.int64),
        stats={
            name: np.asarray(values[sane], np.float64)
            for name, values in rows.items()
            if name not in _KEY
        },
    )


def _sides(table: SnapTable, iteration: int, stat: str) -> tuple[float, float]:
    values = table.stats.get(stat)
    sides = [_NAN, _NAN]
    for context in range(len(CONTEXTS)):
        here = (table.iteration == iteration) & (table.context == context)
        rows = np.flatnonzero(here)
        if len(rows) and values is not None:
            sides[context] = float(values[rows[-1]])
    return sides[0], sides[1]


def _filled(
    sides: tuple[float, float], more: tuple[float, float]
) -> tuple[float, float]:
    """What is known, and where nothing is, what more is known."""
    start, end = (b if np.isnan(a) else a for a, b in zip(sides, more, strict=True))
    return start, end


def _add_imported(
    functions: dict[FunctionKey, dict[int, int]], imports: Imports, budget: Budget
) -> None:
    def add(function: str, phase: str, rank: int, kind: str) -> None:
        ranks = functions.setdefault(FunctionKey(function, phase), {})
        ranks[rank] = ranks.get(rank, 0) | bit_of(kind)

    for rank in imports.found.ranks:
        for key in imports.snaps(rank) if budget.allows() else ():
            add(key.function, key.phase, rank, "snaps")
        for file in imports.snapshots.of_rank(rank):
            file_name = file.said
            add(file_name.function or file_name.label, file_name.phase, rank, "history")
    for window, files in imports.windows.items():
        for rank in files:
            add(window.function, window.phase, rank, "modules")
