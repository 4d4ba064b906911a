"""Pieces of several sources as one tile: times on one clock, names and families by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.trace.timeline.families import (
    FAMILIES,
    family_of,
    family_of_instant,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.trace.timeline.instants import Marks
    from memboard.tb_plugin.analysis.trace.timeline.tiles import Tile
    from memboard.tb_plugin.analysis.trace.trace import Instants, Slices, Trace

NO_NAME: Final = 0xFFFF
MAX_NAME: Final = 160

_MOST: Final = 2**31 - 1


class SourcePieces(NamedTuple):
    """Pieces of a source, in its own time: of lanes of slices, or of one of instants."""

    trace: Trace
    zero_ns: int
    """The trace's time 0 on the clock of all sources."""
    table: Slices | Instants
    row: Ints
    """Of the table: what a piece is named after."""
    start_ns: Ints
    end_ns: Ints
    num: Ints
    busy_ns: Ints
    sizes: Ints
    """(lanes,): how many pieces each lane has."""

    @property
    def is_instants(self) -> bool:
        return self.table is self.trace.instants


def slice_pieces(trace: Trace, zero_ns: int, tile: Tile) -> SourcePieces:
    pieces = tile.pieces
    return SourcePieces(
        trace=trace,
        zero_ns=zero_ns,
        table=trace.slices,
        row=pieces.longest,
        start_ns=pieces.start_ns,
        end_ns=pieces.end_ns,
        num=pieces.count,
        busy_ns=pieces.busy_ns,
        sizes=np.diff(tile.lane_start),
    )


def instant_pieces(trace: Trace, zero_ns: int, marks: Marks) -> SourcePieces:
    """The instants of one track: one lane, whose pieces take no time."""
    time_ns = trace.instants.time_ns[marks.row].astype(np.int64)
    return SourcePieces(
        trace=trace,
        zero_ns=zero_ns,
        table=trace.instants,
        row=marks.row,
        start_ns=time_ns,
        end_ns=time_ns,
        num=marks.count,
        busy_ns=np.zeros_like(time_ns),
        sizes=np.array([len(marks)]),
    )


def num_tracks_with_instants(trace: Trace, tracks: Iterable[int]) -> int:
    return len(np.intersect1d(trace.instants.track, list(tracks)))


@dataclass(frozen=True, slots=True, eq=False)
class DrawnPieces:
    """Columns (pieces,) in order of lanes; times count from the window's begin, by `unit_ns`."""

    unit_ns: int
    """The power of two by which all times are whole 32 bit numbers."""
    lane_start: Ints
    """(lanes + 1,): the first piece of each lane."""
    start: Floats
    duration: Floats
    row: Ints
    """Of slices; `~row` of an instant."""
    name: Ints
    """Place in `names`; NO_NAME beyond those."""
    family: Ints
    """Place in `FAMILIES`; of an instant that of its category."""
    count: Ints
    busy: Floats
    names: tuple[str, ...]


def drawn_pieces(parts: Sequence[SourcePieces], window_start_ns: int) -> DrawnPieces:
    """Pieces of all sources behind each other, relative to a time of the common clock."""
    begin = _joined([part.start_ns + part.zero_ns - window_start_ns for part in parts])
    stop = _joined([part.end_ns + part.zero_ns - window_start_ns for part in parts])
    busy_ns = _joined([part.busy_ns for part in parts])
    unit = _unit(begin, stop)
    start = np.rint(begin / unit)
    names, name, family = _named(parts)
    return DrawnPieces(
        unit_ns=unit,
        lane_start=np.cumsum(
            _joined([np.zeros(1, np.int64), *(part.sizes for part in parts)])
        ),
        start=start,
        duration=np.rint(stop / unit) - start,
        row=_joined([~part.row if part.is_instants else part.row for part in parts]),
        name=name,
        family=family,
        count=_joined([part.num for part in parts]),
        busy=np.minimum(np.rint(busy_ns / unit), _MOST),
        names=names,
    )


def _joined(parts: Sequence[Ints]) -> Ints:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _unit(begin: Ints, stop: Ints) -> int:
    if not len(begin):
        return 1
    most = max(abs(int(begin.min())), abs(int(begin.max())), abs(int(stop.max())))
    longest = int((stop - begin).max())
    unit = 1
    while max(most, longest) // unit > _MOST - 2:
        unit *= 2
    return unit


def _named(parts: Sequence[SourcePieces]) -> tuple[tuple[str, ...], Ints, Ints]:
    """Names, and by piece which of them and which family."""
    names: dict[str, int] = {}
    of_name, of_family = [], []
    for part in parts:
        strings = part.trace.strings
        name = np.asarray(part.table.name[part.row], np.int64)
        keys = name << 32 | np.asarray(part.table.category[part.row], np.int64)
        keys, which = np.unique(keys, return_inverse=True)
        table = np.full((2, len(keys)), NO_NAME, np.int64)
        for column, key in enumerate(keys.tolist()):
            text, category = strings[key >> 32], strings[key & 0xFFFFFFFF]
            family = (
                family_of_instant(category)
                if part.is_instants
                else family_of(category, text)
            )
            number = names.setdefault(_shortened(text), len(names))
            table[:, column] = (min(number, NO_NAME), FAMILIES.index(family))
        of_name.append(table[0][which])
        of_family.append(table[1][which])
    return tuple(names)[:NO_NAME], _joined(of_name), _joined(of_family)


def _shortened(text: str) -> str:
    """A name as tiles have it; told apart at its end too, where templates differ."""
    if len(text) <= MAX_NAME:
        return text
    return f"{text[: MAX_NAME - 41]}…{text[-40:]}"
