"""Slices in any order to the sorted form of `trace`: with levels and parents, exactly.

`nesting` says which lies in which.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from memboard.tb_plugin.analysis.arrays import place_of
from memboard.tb_plugin.analysis.trace.details import (
    Collectives,
    DeviceWork,
    Launches,
    MemoryEvents,
    Operators,
    Synchronisations,
)
from memboard.tb_plugin.analysis.trace.nesting import nest
from memboard.tb_plugin.analysis.trace.trace import (
    Counters,
    Flows,
    Instants,
    Slices,
    Trace,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.trace.trace import Track


Table = TypeVar("Table")


@dataclass(frozen=True, slots=True, eq=False)
class PlacedSlices:
    tracks: tuple[Track, ...]
    """As given, each knowing its rows."""
    slices: Slices
    order: Ints
    """(rows,): the given slice that stands at each row."""
    row_of: Ints
    """(slices,): the row of each given slice."""
    num_overlapping: int
    """Slices that begin in another of their track and end after it."""


def place(
    tracks: Sequence[Track],
    *,
    track: Ints,
    start_ns: Ints,
    duration_ns: Ints,
    name: Ints,
    category: Ints,
    args: Ints,
) -> PlacedSlices:
    """Sort slices, give them levels and parents, and tell tracks where theirs are.

    Args:
        tracks: their places in rows are not looked at.
        track: (slices,) index in `tracks`; the other columns as in `trace.Slices`.
        start_ns: (slices,)
        duration_ns: (slices,) none negative.
        name: (slices,)
        category: (slices,)
        args: (slices,)
    """
    nested = nest(track, start_ns, start_ns + duration_ns, len(tracks))
    order = nested.order
    row_of = place_of(order, len(order))
    slices = Slices(
        track[order],
        nested.level,
        start_ns[order],
        duration_ns[order],
        name[order],
        category[order],
        nested.parent,
        args[order],
    )
    tracks_of_slices = tuple(
        replace(
            track,
            first_row=rows[0],
            num_slices=rows[-1] - rows[0],
            level_rows=rows,
        )
        for track, rows in zip(tracks, nested.level_rows, strict=True)
    )
    return PlacedSlices(tracks_of_slices, slices, order, row_of, nested.num_overlapping)


def no_rows(table: type[Table]) -> Table:
    """A table of `trace` or `trace_details` without rows."""
    columns = fields(table)  # type: ignore[arg-type]  # all of them are dataclasses
    kinds = (
        np.float64 if "Floats" in str(column.type) else np.int64 for column in columns
    )
    return table(*(np.empty(0, kind) for kind in kinds))


EMPTY_TRACE: Final = Trace(
    tracks=(),
    strings=("",),
    slices=no_rows(Slices),
    instants=no_rows(Instants),
    series=(),
    counters=no_rows(Counters),
    flows=no_rows(Flows),
    operators=no_rows(Operators),
    launches=no_rows(Launches),
    device_work=no_rows(DeviceWork),
    synchronisations=no_rows(Synchronisations),
    collectives=no_rows(Collectives),
    memory=no_rows(MemoryEvents),
)
"""Of it others are made with `dataclasses.replace`."""
