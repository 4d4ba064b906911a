"""The small lines beside the headline numbers: each the number itself, over the run.

A line has at most 120 values, one per window of steps. In each window columns are
taken at their highest, as everywhere, and then combined as the number combines them:
headroom is thus the lowest of its window.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.series.buckets import during, pooled, windows
from memboard.tb_plugin.analysis.series.heatmap import step_edges
from memboard.tb_plugin.analysis.series.rows import Rows
from memboard.tb_plugin.facts.ranks.columns import (
    ALLOCATED,
    DEVICE_USED,
    RESERVED,
    RESERVED_NOW,
    RSS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

_MOST_VALUES: Final = 120


class Sparklines:
    """Lines of single ranks; empty where the rank did not record what they need."""

    def __init__(self, reader: SeriesReader, run: Run) -> None:
        self._reader = reader
        self._run = run

    def highest(self, rank: int, column: str) -> Floats:
        """A column; of steps that were run twice, the higher value."""
        return self._lines([self._pieces(rank, column)])[0]

    def headroom(self, rank: int, capacity_bytes: float) -> Floats:
        """Capacity less what was used, by anyone where that was recorded."""
        pieces = [self._pieces(rank, column) for column in (DEVICE_USED, RESERVED)]
        lines = self._lines([piece for piece in pieces if piece])
        highest: Floats = np.fmax.reduce(lines)
        return capacity_bytes - highest

    def fragmentation(self, rank: int) -> Floats:
        reserved, allocated = self._lines(
            [self._pieces(rank, column) for column in (RESERVED, ALLOCATED)]
        )
        return np.fmax(reserved - allocated, 0.0)

    def non_torch(self, rank: int) -> Floats:
        """Used on the device beside what torch had reserved then."""
        beside = []
        for _, file in self._run.rank_files(rank):
            used, reserved = (
                self._rows(file, DEVICE_USED),
                self._rows(file, RESERVED_NOW),
            )
            if used is None or reserved is None:
                continue
            reserved_high = during(used.first, used.last, reserved.first, reserved.high)
            values = np.fmax(used.high - reserved_high, 0.0)
            beside.append(Rows(used.first, used.last, values, values, used.width))
        return self._lines([beside])[0]

    def host_headroom(
        self, ranks: Sequence[int], used: str, capacity_bytes: float
    ) -> Floats:
        """A host's memory less what was used of it, as any of its ranks recorded it.

        Where none did, the ranks' own are added up.
        """
        recorded = [pieces for rank in ranks if (pieces := self._pieces(rank, used))]
        if recorded:
            most: Floats = np.fmax.reduce(self._lines(recorded))
            return capacity_bytes - most
        own = self._lines(
            [pieces for rank in ranks if (pieces := self._pieces(rank, RSS))]
        )
        total = np.nansum(own, axis=0)
        total[np.isnan(own).all(axis=0)] = np.nan
        return capacity_bytes - np.asarray(total, np.float64)

    def _pieces(self, rank: int, column: str) -> list[Rows]:
        return [
            rows
            for _, file in self._run.rank_files(rank)
            if (rows := self._rows(file, column)) is not None
        ]

    def _rows(self, file: RankFile, column: str) -> Rows | None:
        key = self._run.catalogue.find(column, self._run.catalogue.phase(None))
        rows = None if key is None else self._reader.rollup(file, key, None)
        if rows is None or not bool(np.all(rows.first[1:] >= rows.first[:-1])):
            return None
        return rows

    def _lines(self, columns: Sequence[Sequence[Rows]]) -> list[Floats]:
        """Each column, given in pieces, on the same windows."""
        everything = [piece for pieces in columns for piece in pieces]
        if not everything:
            return [np.empty(0)] * max(1, len(columns))
        low = min(int(piece.first[0]) for piece in everything)
        high = max(int(piece.last[-1]) for piece in everything)
        edges, _ = step_edges(low, high, _MOST_VALUES)
        nothing = np.full(len(edges) - 1, np.nan)
        return [
            np.fmax.reduce(
                [
                    nothing,
                    *(
                        pooled(piece.high, *windows(piece.first, piece.last, edges))
                        for piece in pieces
                    ),
                ]
            )
            for pieces in columns
        ]
