"""Columns of many ranks for numbers per rank: each file is read once for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tb_plugin.readers.rank_file import RankFile
    from tb_plugin.readers.series import SeriesKey, SeriesReader
    from tb_plugin.run import AttemptFiles, Run

    Floats: TypeAlias = npt.NDArray[np.float64]
    Ints: TypeAlias = npt.NDArray[np.int64]

Aggregate: TypeAlias = Literal["max", "min", "mean"]
Wanted: TypeAlias = tuple[str, Aggregate]


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One column of one rank in one attempt."""

    first: Ints
    """First step of each bucket."""
    last: Ints
    values: Floats
    width: int


class RankColumns:
    """The wanted columns of every rank and attempt, by their column's name."""

    def __init__(
        self, reader: SeriesReader, run: Run, wanted: Sequence[Wanted]
    ) -> None:
        self._reader = reader
        self._run = run
        catalogue = run.catalogue
        phase = catalogue.phase(None)
        groups: dict[tuple[str, bool], tuple[SeriesKey, list[Wanted]]] = {}
        for column, aggregate in wanted:
            key = catalogue.find(column, phase)
            if key is not None:
                headline = catalogue.info(key.table, key.column).headline
                group = groups.setdefault((key.table, headline), (key, []))
                group[1].append((column, aggregate))
        self._groups = list(groups.values())
        self._pieces: dict[tuple[int, str], dict[Wanted, Piece]] = {}

    def has(self, column: str) -> bool:
        """Whether any rank recorded it."""
        return any(w[0] == column for _, group in self._groups for w in group)

    def pieces(self, rank: int, wanted: Wanted) -> list[tuple[AttemptFiles, Piece]]:
        """A rank's column by attempt; attempts without it are left out."""
        found = []
        for attempt, file in self._run.rank_files(rank):
            piece = self.of_file(file).get(wanted)
            if piece is not None:
                found.append((attempt, piece))
        return found

    def of_file(self, file: RankFile) -> dict[Wanted, Piece]:
        """All wanted columns of one file that it recorded."""
        key = (file.rank, file.attempt)
        known = self._pieces.get(key)
        if known is None:
            known = self._pieces[key] = self._read(file)
        return known

    def _read(self, file: RankFile) -> dict[Wanted, Piece]:
        found: dict[Wanted, Piece] = {}
        for key, group in self._groups:
            names = ["step_first", "step_last", *(f"{c}:{a}" for c, a in group)]
            columns, width = self._reader.aggregates(file, key, names)
            first, last = columns["step_first"], columns["step_last"]
            for wanted, name in zip(group, names[2:], strict=True):
                values = columns[name]
                if len(values) and not np.isnan(values).all():
                    found[wanted] = Piece(first, last, values, width)  # type: ignore[arg-type]
        return found


@dataclass(frozen=True, slots=True, eq=False)
class PerRank:
    """A number per rank; NaN where it has none."""

    value: Floats
    step: Floats
    widest: int
    """Rows in the widest bucket it came from."""


def peaks(columns: RankColumns, ranks: Sequence[int], wanted: Wanted) -> PerRank:
    """The highest value of each rank over all attempts, and its step."""
    value = np.full(len(ranks), np.nan)
    step = np.full(len(ranks), np.nan)
    widest = 1
    for index, rank in enumerate(ranks):
        for _, piece in columns.pieces(rank, wanted):
            at = int(np.nanargmax(piece.values))
            highest = piece.values[at]
            if not highest <= value[index]:
                value[index], step[index] = highest, piece.first[at]
                widest = max(widest, piece.width)
    return PerRank(value, step, widest)


def totals(columns: RankColumns, ranks: Sequence[int], wanted: Wanted) -> Floats:
    """A running count summed over attempts: each attempt counts from zero."""
    value = np.full(len(ranks), np.nan)
    for index, rank in enumerate(ranks):
        for _, piece in columns.pieces(rank, wanted):
            value[index] = np.nan_to_num(value[index]) + np.nanmax(piece.values)
    return value


def medians(
    columns: RankColumns, ranks: Sequence[int], wanted: Wanted, skip_fraction: float
) -> PerRank:
    """The median of each rank behind the first rows of each attempt."""
    value = np.full(len(ranks), np.nan)
    widest = 1
    for index, rank in enumerate(ranks):
        kept = []
        for _, piece in columns.pieces(rank, wanted):
            start = int(len(piece.values) * skip_fraction)
            kept.append(piece.values[start:])
            widest = max(widest, piece.width)
        if kept:
            present = np.concatenate(kept)
            present = present[~np.isnan(present)]
            if len(present):
                value[index] = np.median(present)
    return PerRank(value, np.full(len(ranks), np.nan), widest)
