"""Slices in any order to the sorted form of `trace`."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from tb_plugin.analysis.trace.nesting import nest
from tb_plugin.analysis.trace.trace import Slices

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from tb_plugin.analysis.trace.trace import Track

    Ints: TypeAlias = npt.NDArray[Any]

Table = TypeVar("Table")


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """Slices where they belong."""

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
) -> Placed:
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
    row_of = np.empty(len(order), np.int64)
    row_of[order] = np.arange(len(order))
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
    known = tuple(
        replace(
            track,
            first_row=rows[0],
            num_slices=rows[-1] - rows[0],
            level_rows=rows,
        )
        for track, rows in zip(tracks, nested.level_rows, strict=True)
    )
    return Placed(known, slices, order, row_of, nested.num_overlapping)


def no_rows(table: type[Table]) -> Table:
    """A table of `trace` or `trace_details` without rows."""
    columns = fields(table)  # type: ignore[arg-type]  # all of them are dataclasses
    kinds = (np.float64 if "Floats" in str(one.type) else np.int64 for one in columns)
    return table(*(np.empty(0, kind) for kind in kinds))
