"""A snapshot to tables: about two microseconds per event, see tests/perf/history_cost.py."""

from __future__ import annotations

from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from collector.format.snapshots.columns import GAPS, are_rows, encoded
from collector.format.snapshots.held import gaps_of, rows_of
from collector.format.snapshots.interning import MAX_KEYS, Interner, is_name
from collector.format.snapshots.plain_text import plain_text
from collector.format.snapshots.turns import listed, turns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from collector.format.records import CaptureTable, FloatArray, IntArray
    from collector.format.snapshots.held import HeldEvents

    Row = dict[str, Any]
    Column = IntArray | FloatArray | tuple[str, ...]

NESTED: Final = {
    "segments": ("segments", "blocks", "segment", "num_blocks"),
    "host_segments": ("host_segments", "host_blocks", "segment", "num_blocks"),
    "device_traces": ("traces", "events", "device", "num_events"),
    "host_traces": ("host_traces", "host_events", "device", "num_events"),
}
"""By key of the snapshot: its table, that of the rows inside, the column there that
leads back, and the column here that counts them."""

FLAT: Final = {"external_annotations": "annotations", "host_traces": "host_events"}
"""By key of the snapshot: the table of its rows."""

BLOCKS: Final = "blocks"
FRAMES: Final = "frames"


def tables_of(
    snapshot: Any, held: HeldEvents | None = None
) -> Mapping[str, CaptureTable]:
    """The tables of a snapshot of torch's, or of one like it; it is not changed.

    Takes plain data alone: dicts, lists, tuples, texts, numbers, bytes, None. Of
    anything else the repr is kept. `held`: events that are not in their lists.
    """
    return _Encoder(held).tables_of(snapshot)


class _Encoder:
    def __init__(self, held: HeldEvents | None) -> None:
        self._interner = Interner()
        self._held = None if held is None else held.numbered(self._interner)
        self._tables: dict[str, dict[str, Column]] = {}
        self._layout: list[tuple[str, str, str, str, int]] = []

    def tables_of(self, snapshot: Any) -> Mapping[str, CaptureTable]:
        rows = [self._entry(key, value) for key, value in _entries(snapshot)]
        self._tables["root"] = _texts(("key", "kind", "value"), rows)
        interner = self._interner
        self._add_rows("frames", interner.frames, (), stacks=False)
        lengths = np.fromiter(map(len, interner.stacks), np.int64, len(interner.stacks))
        self._tables["stacks"] = {"num_frames": lengths}
        frames = chain.from_iterable(interner.stacks)
        number = int(lengths.sum())
        self._tables["stack_frames"] = {"frame": np.fromiter(frames, np.int64, number)}
        self._tables["strings"] = {"text": tuple(interner.strings)}
        names = ("table", "key", "column", "kind")
        layout = _texts(names, [row[:4] for row in self._layout])
        optional = [row[4] for row in self._layout]
        layout["optional"] = np.array(optional, np.int64)
        self._tables["layout"] = layout
        return self._tables

    def _entry(self, key: str, value: Any) -> tuple[str, str, str]:
        """A row of `root`; makes the entry's tables where it has the shape of any."""
        name = key or "segments"
        if name in FLAT and self._held is not None and id(value) in self._held.spans:
            self._add_held(FLAT[name], [self._held.span(value)], ())
            return key, "rows", ""
        if name in ("segments", "host_segments") and _are_segments(value):
            self._add_segments(name, value)
            return key, "segments", ""
        if name in ("device_traces", "host_traces") and _are_lists_of_rows(value):
            self._add_traces(name, value)
            return key, "traces", ""
        if name in FLAT and are_rows(value):
            self._add_rows(FLAT[name], value, ())
            return key, "rows", ""
        return key, "value", plain_text(value)

    def _add_segments(self, key: str, segments: list[Row]) -> None:
        table, inner, back, count = NESTED[key]
        lists = [segment.get(BLOCKS) for segment in segments]
        self._add_rows(table, segments, (count,), skip=BLOCKS)
        numbers = [-1 if blocks is None else len(blocks) for blocks in lists]
        lengths = self._tables[table][count] = np.array(numbers, np.int64)
        rows = list(chain.from_iterable(filter(None, lists)))
        self._add_rows(inner, rows, (back,))
        self._tables[inner][back] = _owners(np.maximum(lengths, 0))

    def _add_traces(self, key: str, traces: list[list[Row]]) -> None:
        table, inner, back, count = NESTED[key]
        lengths = np.array([len(trace) for trace in traces], np.int64)
        if self._held is not None and not lengths.any():
            spans = [self._held.span(trace) for trace in traces]
            lengths = np.array([stop - start for start, stop in spans], np.int64)
            self._add_held(inner, spans, (back,))
        else:
            self._add_rows(inner, list(chain.from_iterable(traces)), (back,))
        self._tables[table] = {count: lengths}
        self._tables[inner][back] = _owners(lengths)

    def _add_held(
        self, table: str, spans: Sequence[tuple[int, int]], own: tuple[str, ...]
    ) -> None:
        self._tables[table] = {}
        held = {} if self._held is None else self._held.columns
        for key, whole in held.items():
            column = rows_of(whole, spans)
            gaps = gaps_of(column)
            if not gaps.all():
                optional = bool(gaps.any())
                self._add_column(table, key, own, column.kind, column.arrays, optional)

    def _add_rows(
        self,
        table: str,
        rows: Sequence[Row],
        own: tuple[str, ...],
        *,
        skip: str = "",
        stacks: bool = True,
    ) -> None:
        """Add columns for every key but `skip`; `own` names are taken."""
        self._tables[table] = {}
        for key, values, places in _by_key(rows):
            if key == skip:
                continue
            kind, arrays = encoded(
                values,
                self._interner,
                is_stack=stacks and key == FRAMES,
                optional=places is not None,
            )
            spread = tuple(
                _spread(array, places, len(rows), GAPS[kind]) for array in arrays
            )
            self._add_column(table, key, own, kind, spread, places is not None)

    def _add_column(
        self,
        table: str,
        key: str,
        own: tuple[str, ...],
        kind: str,
        arrays: tuple[IntArray | FloatArray, ...],
        optional: bool,
    ) -> None:
        columns, name = self._tables[table], key
        while name in own or name in columns or f"{name}.0" in columns:
            name += "_"
        for place, array in enumerate(arrays):
            columns[f"{name}.{place}" if kind == "pair" else name] = array
        self._layout.append((table, key, name, kind, int(optional)))


def _entries(snapshot: Any) -> list[tuple[str, Any]]:
    """Key and value of the snapshot's entries; of one that is a bare list: key ""."""
    if (
        type(snapshot) is dict
        and len(snapshot) <= MAX_KEYS
        and all(key and is_name(key) for key in snapshot)
    ):
        return list(snapshot.items())
    return [("", snapshot)]


def _by_key(
    rows: Sequence[Row],
) -> Iterator[tuple[str, list[Any], IntArray | None]]:
    """Each key with its values and the rows that have it; None: all of them."""
    shapes: dict[tuple[str, ...], int] = {}
    of_row = np.empty(len(rows), np.int64)
    start = 0
    for some in turns(rows):
        mine = list(map(tuple, some))
        for shape in dict.fromkeys(mine):
            shapes.setdefault(shape, len(shapes))
        numbers = np.fromiter(map(shapes.__getitem__, mine), np.int64)
        of_row[start : start + len(mine)] = numbers
        start += len(mine)
    for key in dict.fromkeys(chain.from_iterable(shapes)):
        has_key = np.array([key in shape for shape in shapes])
        if has_key.all():
            yield key, listed(itemgetter(key), rows), None
        else:
            places = np.flatnonzero(has_key[of_row])
            yield key, [rows[place][key] for place in places.tolist()], places


def _spread(
    array: IntArray | FloatArray,
    places: IntArray | None,
    num_rows: int,
    gap: float,
) -> IntArray | FloatArray:
    if places is None:
        return array
    column = np.empty_like(array, shape=num_rows)
    column.fill(gap)
    column[places] = array
    return column


def _owners(lengths: IntArray) -> IntArray:
    return np.repeat(np.arange(len(lengths)), lengths)


def _texts(
    names: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> dict[str, Column]:
    return {name: tuple(row[at] for row in rows) for at, name in enumerate(names)}


def _are_lists_of_rows(value: Any) -> bool:
    return (
        type(value) is list
        and all(type(rows) is list for rows in value)
        and are_rows(list(chain.from_iterable(value)))
    )


def _are_segments(value: Any) -> bool:
    if not are_rows(value):
        return False
    lists = [segment[BLOCKS] for segment in value if BLOCKS in segment]
    return _are_lists_of_rows(lists)
