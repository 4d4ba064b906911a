"""A snapshot to tables: about 1.5 us per event, see tests/perf/capture_cost.py."""

from __future__ import annotations

from itertools import chain, compress
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np

from memboard.collector.format.snapshots.columns import GAPS, are_rows, encoded
from memboard.collector.format.snapshots.interning import (
    MAX_KEYS,
    Interner,
    StackTables,
    is_name,
    turns,
)
from memboard.collector.format.snapshots.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from memboard.collector.format.records import CaptureTable, FloatArray, IntArray

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
    snapshot: Any, events: HeldEvents | None = None
) -> Mapping[str, CaptureTable]:
    """The tables of a snapshot of torch's, or of one like it; it is not changed.

    Takes plain data alone: dicts, lists, tuples, texts, numbers, bytes, None. Of
    anything else the repr is kept. `events`: those that are not in their lists; their
    columns are those that it gives.
    """
    return _Encoder(events).tables_of(snapshot)


class _Encoder:
    def __init__(self, events: HeldEvents | None) -> None:
        self._interner = Interner(None if events is None else events.stack_number)
        self._held = events
        if events is not None:
            events.renumber(self._interner.texts(events.texts))
        self._tables: dict[str, dict[str, Column]] = {}
        self._layout: list[tuple[str, str, str, str, int]] = []

    def tables_of(self, snapshot: Any) -> Mapping[str, CaptureTable]:
        rows = [self._entry(key, value) for key, value in _entries(snapshot)]
        self._tables["root"] = _texts(("key", "kind", "value"), rows)
        self._add_stacks()
        self._tables["strings"] = {"text": tuple(self._interner.strings)}
        names = ("table", "key", "column", "kind")
        layout = _texts(names, [row[:4] for row in self._layout])
        optional = [row[4] for row in self._layout]
        layout["optional"] = np.array(optional, np.int64)
        self._tables["layout"] = layout
        return self._tables

    def _add_stacks(self) -> None:
        interner = self._interner
        stacks = interner.stack_tables() if self._held is None else self._held.stacks()
        self._add_rows("frames", stacks.frame_rows, (), stacks=False)
        for key, (texts, places) in stacks.frame_texts.items():
            numbers = interner.texts(texts)[places]
            self._add_column("frames", key, (), "text", (numbers,), False)
        for key, numbers in stacks.frame_numbers.items():
            self._add_column("frames", key, (), "int", (numbers,), False)
        self._tables["stacks"] = {"num_frames": stacks.num_frames}
        self._tables["stack_frames"] = {"frame": stacks.frames}

    def _entry(self, key: str, value: Any) -> tuple[str, str, str]:
        """A row of `root`; makes the entry's tables where it has the shape of any."""
        part = key or "segments"
        if part in FLAT and self._held is not None and self._held.has(value):
            self._add_held(FLAT[part], [self._held.span(value)], ())
            return key, "rows", ""
        if part in ("segments", "host_segments") and _are_segments(value):
            self._add_segments(part, value)
            return key, "segments", ""
        if part in ("device_traces", "host_traces") and _are_lists_of_rows(value):
            self._add_traces(part, value)
            return key, "traces", ""
        if part in FLAT and are_rows(value):
            self._add_rows(FLAT[part], value, ())
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
        events = self._held
        if events is not None and not any(traces):
            spans = [events.span(trace) for trace in traces]
            numbers = [stop - start for start, stop in spans]
            self._add_held(inner, spans, (back,))
            self._tables[inner][back] = events.owners(numbers)
        else:
            numbers = [len(trace) for trace in traces]
            self._add_rows(inner, list(chain.from_iterable(traces)), (back,))
            self._tables[inner][back] = _owners(np.array(numbers, np.int64))
        self._tables[table] = {count: np.array(numbers, np.int64)}

    def _add_held(
        self, table: str, spans: Sequence[tuple[int, int]], own: tuple[str, ...]
    ) -> None:
        self._tables[table] = {}
        for column in () if self._held is None else self._held.columns(spans):
            self._add_column(
                table, column.key, own, column.kind, column.arrays, column.is_optional
            )

    def _add_rows(
        self,
        table: str,
        rows: Sequence[Row],
        own: tuple[str, ...],
        *,
        skip: str | None = None,
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
        arrays: tuple[Any, ...],
        optional: bool,
    ) -> None:
        columns, column = self._tables[table], key
        while column in own or column in columns or f"{column}.0" in columns:
            column += "_"
        for place, array in enumerate(arrays):
            columns[f"{column}.{place}" if kind == "pair" else column] = array
        self._layout.append((table, key, column, kind, int(optional)))


def has_entries(snapshot: Any) -> bool:
    """Whether it is a dict that has tables by key, and not one value as a whole."""
    return (
        type(snapshot) is dict
        and len(snapshot) <= MAX_KEYS
        and all(key and is_name(key) for key in snapshot)
    )


def _entries(snapshot: Any) -> list[tuple[str, Any]]:
    """Key and value of the snapshot's entries; of one that is a bare list: key ""."""
    return list(snapshot.items()) if has_entries(snapshot) else [("", snapshot)]


def _by_key(
    rows: Sequence[Row],
) -> Iterator[tuple[str, list[Any], IntArray | None]]:
    """Each key with its values and the rows that have it; None: all of them."""
    values: dict[str, list[Any]] = {}
    places: dict[str, list[IntArray]] = {}
    start = 0
    for some in turns(rows):
        for key, values_of_key, mine in _turn_by_key(some):
            values.setdefault(key, []).extend(values_of_key)
            places.setdefault(key, []).append(mine + start)
        start += len(some)
    for key in list(values):
        column, its_places = values.pop(key), places.pop(key)
        if len(column) == len(rows):
            yield key, column, None
        else:
            yield key, column, np.concatenate(its_places)


def _turn_by_key(
    rows: Sequence[Row],
) -> Iterator[tuple[str, list[Any], IntArray]]:
    """The same for a few rows, with the places of those that have the key.

    Rows of one length mostly have the same keys. If they do is seen by looking them up:
    a row that has as many keys as another, and each of its keys, has no other.
    """
    lengths = list(map(len, rows))
    shapes = [tuple(rows[lengths.index(length)]) for length in dict.fromkeys(lengths)]
    try:
        yield from list(_looked_up(rows, shapes, lengths, [len(s) for s in shapes]))
    except KeyError:
        mine = list(map(tuple, rows))
        shapes = list(dict.fromkeys(mine))
        yield from _looked_up(rows, shapes, mine, shapes)


def _looked_up(
    rows: Sequence[Row],
    shapes: Sequence[tuple[str, ...]],
    marks: Sequence[Any],
    mark_of_shape: Sequence[Any],
) -> Iterator[tuple[str, list[Any], IntArray]]:
    """`marks` tell each row's shape. Raises KeyError where one does not."""
    every = np.arange(len(rows))
    for key in dict.fromkeys(chain.from_iterable(shapes)):
        having = {
            mark
            for mark, shape in zip(mark_of_shape, shapes, strict=True)
            if key in shape
        }
        if len(having) == len(shapes):
            yield key, list(map(itemgetter(key), rows)), every
        else:
            is_mine = list(map(having.__contains__, marks))
            mine = compress(rows, is_mine)
            yield key, list(map(itemgetter(key), mine)), np.flatnonzero(is_mine)


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
    return {
        column: tuple(row[index] for row in rows) for index, column in enumerate(names)
    }


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


class HeldColumn(NamedTuple):
    """One key of the events in some rows, at least one of which has it."""

    key: str
    kind: str  # See `memboard.collector.format.snapshots`
    arrays: tuple[Any, ...]
    """Two of a pair, else one; a row without the key has the kind's gap. Arrays, or
    whatever has a length and becomes one by `numpy.asarray`."""
    is_optional: bool
    """Whether a row lacks the key."""


class HeldEvents(Protocol):
    """All events of a snapshot, of every list, where they are columns already.

    A reader of dumped snapshots makes columns while it reads, without an object per event.
    Its lists of events are empty then; what they held are rows here. Their columns may be
    longer than memory is meant to be, so they go into the tables as they are.
    """

    @property
    def texts(self) -> Sequence[str]:
        """What columns of kind `text` and `value` number."""

    def renumber(self, texts: IntArray) -> None:
        """Texts have these numbers from now on; to be called once."""

    def stack_number(self, frames: Any) -> int:
        """What columns of kind `stack` number a list of frames with.

        Raises:
            NotFramesError: it is none.
        """

    def stacks(self) -> StackTables:
        """All stacks that have a number; to be called last."""

    def has(self, rows: Any) -> bool:
        """Whether events stood in this list."""

    def span(self, rows: Any) -> tuple[int, int]:
        """The rows of a list, from and to; of one without events none."""

    def columns(self, spans: Sequence[tuple[int, int]]) -> Iterator[HeldColumn]:
        """The columns of some lists, one list after the other."""

    def owners(self, lengths: Sequence[int]) -> Any:
        """The numbers of lists, each repeated for all that are in it."""
