"""Slices and instants of several sources that a search finds, in order of time."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from memboard.tb_plugin.analysis.arrays import Table
from memboard.tb_plugin.analysis.trace.timeline.totals import found_rows
from memboard.tb_plugin.api.time.trace import INSTANTS_LEVEL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Flags, Ints
    from memboard.tb_plugin.analysis.trace.trace import Trace


@dataclass(frozen=True, slots=True, eq=False)
class Hits(Table):
    """Columns (hits,) in order of time."""

    start_ns: Ints
    """On the clock of all sources."""
    duration_ns: Ints
    track: Ints
    """Place among the tracks that were searched, all sources together."""
    level: Ints
    row: Ints
    """Of slices; `~row` of an instant."""


class Search:
    """Hits in one source after the other; at most `most` are kept, the earliest."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._parts: list[Hits] = []
        self._num_tracks = 0
        self.num_hits = 0
        self.num_names = 0
        """Names that differ, of each source by itself."""

    def add(
        self,
        trace: Trace,
        zero_ns: int,
        tracks: Sequence[int],
        wanted: Flags | None,
        *,
        with_slices: bool,
    ) -> None:
        """Search tracks of a source.

        Args:
            trace: the source's.
            zero_ns: its time 0 on the clock of all sources.
            tracks: their indices.
            wanted: (strings,), of `matching`; None: every name is.
            with_slices: whether slices are searched beside instants.
        """
        rows, number = found_rows(trace.instants, tracks, wanted, self._most)
        names = [trace.instants.name[rows]]
        parts = [_instants(trace, rows)]
        self.num_hits += number
        if with_slices:
            rows, number = found_rows(trace.slices, tracks, wanted, self._most)
            names.append(trace.slices.name[rows])
            parts.append(_slices(trace, rows))
            self.num_hits += number
        self.num_names += len(np.unique(np.concatenate(names)))
        place = np.zeros(len(trace.tracks) + 1, np.int64)
        place[list(tracks)] = np.arange(len(tracks)) + self._num_tracks
        self._num_tracks += len(tracks)
        self._parts += [
            Hits(
                part.start_ns + zero_ns,
                part.duration_ns,
                place[part.track],
                part.level,
                part.row,
            )
            for part in parts
        ]

    def hits(self) -> Hits:
        columns = [
            np.concatenate([getattr(part, field.name) for part in self._parts])
            if self._parts
            else np.empty(0, np.int64)
            for field in fields(Hits)
        ]
        every = Hits(*columns)
        return every.take(np.argsort(every.start_ns, kind="stable")[: self._most])


def _slices(trace: Trace, rows: Ints) -> Hits:
    slices = trace.slices
    return Hits(
        start_ns=slices.start_ns[rows].astype(np.int64),
        duration_ns=slices.duration_ns[rows].astype(np.int64),
        track=slices.track[rows].astype(np.int64),
        level=slices.level[rows].astype(np.int64),
        row=rows.astype(np.int64),
    )


def _instants(trace: Trace, rows: Ints) -> Hits:
    instants = trace.instants
    return Hits(
        start_ns=instants.time_ns[rows].astype(np.int64),
        duration_ns=np.zeros(len(rows), np.int64),
        track=instants.track[rows].astype(np.int64),
        level=np.full(len(rows), INSTANTS_LEVEL, np.int64),
        row=~rows.astype(np.int64),
    )
