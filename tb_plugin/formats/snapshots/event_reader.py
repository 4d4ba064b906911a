"""Runs of events out of a batch, into rows and into the memo.

What the machine passes over is only noted as a run; values are looked up and put into
columns when the batch is done, all at once. Until then the memo asks here.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.formats.snapshots.batch import (
    NO_ENTRY,
    PLAIN,
    REFERRED,
    Batch,
    Field,
)
from memboard.tb_plugin.formats.snapshots.events import is_pair
from memboard.tb_plugin.formats.snapshots.pickles.extent import is_container
from memboard.tb_plugin.formats.snapshots.pickles.shapes import HEAD, Shapes
from memboard.tb_plugin.formats.snapshots.pickles.stack import (
    FIRST_PAIR,
    FIRST_TEXT,
    NOTHING,
    FrameNumber,
    StackNumber,
)
from memboard.tb_plugin.formats.snapshots.stacks import RawStacks
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from memboard.tb_plugin.formats.snapshots.events import Events
    from memboard.tb_plugin.formats.snapshots.pickles.stack import Memo
    from memboard.tb_plugin.formats.snapshots.stacks import Stacks

    Numbers = npt.NDArray[Any]

_EARLY: Final = 1 << 16
"""Memo entries that a table holds the texts of."""
_UNKNOWN: Final = -1
_MAX_ALIKE: Final = 16
"""Different pairs that are looked for in all events at once."""
_MAX_PAIRS: Final = 1 << 20


class Run(NamedTuple):
    """Events of the batch that followed each other in the file."""

    first: int
    stop: int
    row: int
    entry: int
    """Of the memo: the first event's dict."""


class SkippedRun(NamedTuple):
    """What the machine passed over at once."""

    end: int
    """Where the last event ends."""
    batches: tuple[int, ...]
    """Events in each batch of the list's items; the last batch is still open."""


class EventReader:
    """Reads events of known shapes."""

    def __init__(self, memo: Memo, stacks: Stacks, events: Events) -> None:
        self._memo = memo
        self._stacks = stacks
        self._events = events
        self._shapes = Shapes(memo, events.columns)
        self._raws = RawStacks(stacks, memo, self._object)
        self._batch: Batch | None = None
        self._before = np.empty(0, np.int64)
        """Memo entries of the batch's events before each."""
        self._runs: list[Run] = []
        self._at = 0
        """Where in the window the batch is, for messages."""
        self._pairs: dict[tuple[int, int], int] = {}
        """Their places in the memo's list."""
        self._text_of_entry = np.full(_EARLY, _UNKNOWN, np.int64)
        memo.texts = events.text_list
        memo.pending = self.pending
        events.settle = self.settle
        events.kinds_changed = self._kinds_changed

    def read(self, data: bytes, offset: int) -> SkippedRun | None:
        """Pass over the events at `offset` of a window."""
        if not self._shapes.known or data[offset : offset + len(HEAD)] != HEAD:
            return None
        batch = self._batch
        if batch is None:
            self._at = offset
            shapes = self._shapes.known
            batch = self._batch = Batch(data, offset, shapes, self._text, self._raws)
            sums = np.cumsum(batch.num_entries)
            self._before = np.concatenate((np.zeros(1, np.int64), sums))
        first, stop = batch.chain(offset)
        if first == stop:
            return None
        count = stop - first
        num_entries = int(self._before[stop] - self._before[first])
        entry = self._memo.skip(num_entries, offset)
        self._runs.append(Run(first, stop, self._events.num_rows, entry))
        self._events.num_rows += count
        closed = np.flatnonzero(batch.closes[first : stop - 1]) + 1
        edges = np.concatenate((np.zeros(1, np.int64), closed, [count]))
        return SkippedRun(int(batch.ends[stop - 1]), tuple(np.diff(edges).tolist()))

    def learn(self, names: Iterable[str]) -> None:
        """Recognise events of these keys, in this order, from now on."""
        if self._shapes.learn(names):
            self.leave()

    def leave(self) -> None:
        if self._runs:
            self.settle()
        self._batch = None

    def pending(self, number: int, offset: int) -> Any:
        """What a memo entry of a run is that is not settled yet; None: it is of none."""
        place = bisect_right(self._runs, number, key=lambda run: run.entry) - 1
        if place < 0 or self._batch is None:
            return None
        run, before = self._runs[place], self._before
        inside = int(before[run.first]) + number - run.entry
        if inside >= int(before[run.stop]):
            return None
        event = int(np.searchsorted(before, inside, side="right")) - 1
        own = inside - int(before[event])
        for field in self._batch.fields.values():
            if own and int(field.own[event]) == own:
                first = int(field.numbers[event])
                if field.kind == "stack":
                    return StackNumber(self._stack(first, offset))
                if field.kind == "pair":
                    return first, int(field.second[event])
                return self._events.text_list[first]
        return None

    def settle(self) -> None:
        """Put the runs' values into columns and into the memo."""
        batch, runs = self._batch, self._runs
        if batch is None or not runs:
            self._events.settle_singles()
            return
        self._runs = []
        events = np.concatenate([np.arange(run.first, run.stop) for run in runs])
        lengths = np.array([run.stop - run.first for run in runs])
        shifts = np.array([run.row - run.first for run in runs])
        rows = events + np.repeat(shifts, lengths)
        starts = self._before[[run.first for run in runs]]
        bases = np.array([run.entry for run in runs]) - starts
        entries = self._before[events] + np.repeat(bases, lengths)
        self._add_to_memo(batch, runs, events, entries)
        first, count = self._events.num_settled, self._events.num_rows
        values = {
            name: self._values(field, events, entries)
            for name, field in batch.fields.items()
        }
        self._absent(batch, events, values)
        whole = len(rows) == count - first
        self._events.settle_rows(None if whole else rows, values)

    def _kinds_changed(self) -> None:
        self._shapes.forget()
        self._batch = None

    def _absent(
        self, batch: Batch, events: Numbers, values: dict[str, tuple[Numbers, ...]]
    ) -> None:
        """Set gaps where an event's shape lacks a key."""
        for place, shape in enumerate(batch.shapes):
            names = {key.name for key in shape.keys}
            lacking = values.keys() - names
            if lacking:
                there = np.flatnonzero(batch.shape[events] == place)
                for name in lacking if len(there) else ():
                    for column in values[name]:
                        column[there] = self._events.columns[name].gap

    def _add_to_memo(
        self, batch: Batch, runs: list[Run], events: Numbers, entries: Numbers
    ) -> None:
        first = runs[0].entry
        codes = np.full(self._memo.count - first, NOTHING, np.int64)
        for field in batch.fields.values():
            own = field.own[events]
            there = np.flatnonzero(own)
            if len(there):
                places = entries[there] + own[there] - first
                codes[places] = self._codes(field, events[there], entries[there])
        self._memo.add_codes(first, codes)

    def _codes(self, field: Field, events: Numbers, entries: Numbers) -> Numbers:
        """Of what the events themselves enter into the memo."""
        if field.kind == "stack":
            return self._stacks_of(field.numbers[events], entries)
        if field.kind == "text":
            return FIRST_TEXT - 2 * field.numbers[events]
        return self._codes_of_pairs(field.numbers[events], field.second[events])

    def _codes_of_pairs(self, first: Numbers, second: Numbers) -> Numbers:
        """Pools are few, so each distinct pair is looked for in all of them at once."""
        codes = np.empty(len(first), np.int64)
        left = np.arange(len(first))
        for _ in range(_MAX_ALIKE):
            if not len(left):
                return codes
            pair = int(first[left[0]]), int(second[left[0]])
            same = (first[left] == pair[0]) & (second[left] == pair[1])
            codes[left[same]] = self._code_of_pair(pair)
            left = left[~same]
        pairs = zip(first[left].tolist(), second[left].tolist(), strict=True)
        codes[left] = [self._code_of_pair(pair) for pair in pairs]
        return codes

    def _code_of_pair(self, pair: tuple[int, int]) -> int:
        number = self._pairs.setdefault(pair, len(self._memo.pairs))
        if number == len(self._memo.pairs):
            if number >= _MAX_PAIRS:
                raise RefusedError("events have too many different pairs", self._at)
            self._memo.pairs.append(pair)
        return FIRST_PAIR - 2 * number

    def _values(
        self, field: Field, events: Numbers, entries: Numbers
    ) -> tuple[Numbers, ...]:
        numbers = field.numbers[events]
        if field.kind == "float":
            return (numbers.view(np.float64),)
        if field.kind == "stack":
            own = np.flatnonzero(field.own[events])
            numbers[own] = self._stacks_of(numbers[own], entries[own])
        elif field.kind == "value":
            plain = np.array([self._events.plain(value, self._at) for value in PLAIN])
            numbers = plain[numbers]
        columns: tuple[Numbers, ...] = (numbers,)
        if field.kind == "pair":
            columns = numbers, field.second[events]
        if field.kind in REFERRED:
            references = field.entries[events]
            there = np.flatnonzero(references != NO_ENTRY)
            if len(there):
                if (references[there] >= entries[there]).any():
                    raise RefusedError("refers to what comes later", self._at)
                referred = self._referred(field.kind, references[there])
                for column, values in zip(columns, referred, strict=True):
                    column[there] = values
        return columns

    def _referred(self, kind: str, references: Numbers) -> tuple[Numbers, ...]:
        if kind == "stack":
            return (self._stacks_before(references),)
        if kind == "text":
            return (self._texts(references),)
        distinct, places = np.unique(references, return_inverse=True)
        look_up = self._pair_at if kind == "pair" else self._value_at
        values = np.array([look_up(entry) for entry in distinct.tolist()], np.int64)
        return tuple(values.reshape(len(distinct), -1)[places.reshape(-1)].T)

    def _stacks_of(self, spellings: Numbers, entries: Numbers) -> Numbers:
        """Stacks by the numbers of their spellings."""
        if (self._raws.last_entries(spellings) >= entries).any():
            raise RefusedError("refers to what comes later", self._at)
        return self._raws.stacks(spellings, self._at)

    def _stack(self, spelling: int, offset: int) -> int:
        return int(self._raws.stacks(np.array([spelling]), offset)[0])

    def _stacks_before(self, references: Numbers) -> Numbers:
        """Stacks of lists of frames that were written before."""
        stacks = self._memo.stacks(references)
        for place in np.flatnonzero(stacks == NOTHING).tolist():
            entry = int(references[place])
            frames = self._object(entry, self._at)
            if type(frames) is StackNumber:
                stacks[place] = frames
            elif type(frames) is not list:
                raise RefusedError("an event's frames are something else", self._at)
            else:
                number = self._stacks.number_of(frames, self._at)
                self._memo.replace(entry, StackNumber(number))
                stacks[place] = number
        return stacks

    def _texts(self, references: Numbers) -> Numbers:
        """Numbers of texts that were written before."""
        early = np.minimum(references, _EARLY - 1)
        numbers = self._text_of_entry[early]
        numbers[references >= _EARLY - 1] = _UNKNOWN
        unknown = np.flatnonzero(numbers == _UNKNOWN)
        if len(unknown):
            distinct, places = np.unique(references[unknown], return_inverse=True)
            texts = np.array([self._text_at(entry) for entry in distinct.tolist()])
            numbers[unknown] = texts[places.reshape(-1)]
            here = distinct < _EARLY - 1
            self._text_of_entry[distinct[here]] = texts[here]
        return numbers

    def _text_at(self, entry: int) -> int:
        text = self._memo.get(entry, self._at)
        if type(text) is not str:
            raise RefusedError("an event's text is something else", self._at)
        return self._events.text(text, self._at)

    def _pair_at(self, entry: int) -> tuple[int, int]:
        pair = self._memo.get(entry, self._at)
        if not is_pair(pair):
            raise RefusedError("an event's pair is something else", self._at)
        first, second = pair
        return first, second

    def _value_at(self, entry: int) -> int:
        value = self._memo.get(entry, self._at)
        parts = value if type(value) is tuple else (value,)
        if type(value) in (StackNumber, FrameNumber) or any(map(is_container, parts)):
            raise RefusedError("an event's value is a list or a dict", self._at)
        return self._events.plain(value, self._at)

    def _text(self, raw: bytes) -> int:
        try:
            return self._events.text(raw.decode(), self._at)
        except UnicodeDecodeError:
            return _UNKNOWN

    def _object(self, entry: int, offset: int) -> Any:
        return self._memo.get(entry, offset)
