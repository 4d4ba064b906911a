"""The events that a reader made columns of, as `memboard.collector.format.snapshots` takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.snapshots import HeldColumn
from memboard.collector.format.snapshots.interning import (
    MAX_KEYS,
    NotFramesError,
    StackTables,
    is_name,
)
from memboard.tb_plugin.formats.snapshots.events import NOTHING
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    from memboard.tb_plugin.formats.snapshots.events import Column, Events
    from memboard.tb_plugin.formats.snapshots.pickles.packed import PackedNumbers
    from memboard.tb_plugin.formats.snapshots.stacks import Stacks

    Numbers = npt.NDArray[Any]

_TURN: Final = 1 << 16


class EventTables:
    # Implements `HeldEvents`

    def __init__(
        self, events: Events, stacks: Stacks, spans: Mapping[int, tuple[int, int]]
    ) -> None:
        """`spans`: by id of a list the rows that it held; the lists must live on.

        Raises:
            NotFramesError: stacks hold what are no frames.
        """
        self.texts = events.text_list
        self._stacks = stacks
        self._columns = events.columns
        self._spans = spans
        self._frame_keys: set[str] = set()
        self._expect_frames(stacks.frames.odd.values())
        self._maps: dict[str, Numbers | None] = {}
        new_numbers = stacks.unify()
        if new_numbers is not None:
            self._maps["stack"] = _with_gap(new_numbers)

    def renumber(self, texts: Numbers) -> None:
        """Texts have these numbers from now on."""
        self._maps["text"] = self._maps["value"] = _with_gap(texts)

    def stack_number(self, frames: Any) -> int:
        """The number of a list of frames, as columns of stacks have it.

        Raises:
            NotFramesError: it is none.
        """
        if type(frames) is not list:
            raise NotFramesError
        self._expect_frames(
            frame for frame in frames if not self._stacks.frames.has(frame)
        )
        try:
            return self._stacks.number_of(frames, 0)
        except RefusedError:
            raise NotFramesError from None

    def stacks(self) -> StackTables:
        """All stacks and the frames in them."""
        lengths, places, order = self._stacks.columns()
        frames = self._stacks.frames
        if frames.odd:
            rows = [frames.frame(number) for number in order.tolist()]
            return StackTables(lengths, places, rows, {}, {})
        if not len(order):
            return StackTables(lengths, places, (), {}, {})
        lines = {"line": frames.lines(order)}
        return StackTables(lengths, places, (), frames.texts(order), lines)

    def _expect_frames(self, frames: Iterable[Any]) -> None:
        for frame in frames:
            if type(frame) is not dict or not frame or not all(map(is_name, frame)):
                raise NotFramesError
            self._frame_keys.update(frame)
            if len(self._frame_keys) > MAX_KEYS:
                raise NotFramesError

    def has(self, rows: Any) -> bool:
        """Whether events stood in this list."""
        return id(rows) in self._spans

    def span(self, rows: Any) -> tuple[int, int]:
        """The rows of a list, from and to; of one without events none."""
        return self._spans.get(id(rows), (0, 0))

    def columns(self, spans: Sequence[tuple[int, int]]) -> Iterator[HeldColumn]:
        """The columns of some lists, one list after the other."""
        spans = _joined(spans)
        for key, column in self._columns.items():
            numbers = self._maps.get(column.kind)
            arrays = tuple(PackedRows(part, spans, numbers) for part in column.parts)
            num_gaps = _num_gaps(column, spans)
            if num_gaps < len(arrays[0]):
                yield HeldColumn(key, column.kind, arrays, num_gaps > 0)

    def owners(self, lengths: Sequence[int]) -> Owners:
        """The numbers of lists, each repeated for all that are in it."""
        return Owners(lengths)


class PackedRows:
    """Some spans of a packed column's rows; a `ChunkedColumn`, or an array if need be."""

    def __init__(
        self,
        packed: PackedNumbers,
        spans: Sequence[tuple[int, int]],
        numbers: Numbers | None = None,
    ) -> None:
        """`numbers`: what the column's numbers stand for; None: themselves."""
        self._packed = packed
        self._spans = spans
        self._numbers = numbers

    def __len__(self) -> int:
        return sum(stop - start for start, stop in self._spans)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        kind = np.float64 if self.is_float else np.int64
        pieces = [np.empty(0, kind), *self.chunks()]
        return np.concatenate(pieces).astype(dtype or kind, copy=bool(copy))

    @property
    def is_float(self) -> bool:
        return self._packed.is_float

    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest."""
        each = [(int(chunk.min()), int(chunk.max())) for chunk in self.chunks()]
        return min(least for least, _ in each), max(most for _, most in each)

    def chunks(self) -> Iterator[Numbers]:
        """Its numbers, some at a time."""
        for chunk in self._packed.rows(self._spans):
            yield chunk if self._numbers is None else self._numbers[chunk]


class Owners:
    """0, 0, 0, 1, 1, ...: a `ChunkedColumn`, or an array if need be."""

    is_float = False

    def __init__(self, lengths: Sequence[int]) -> None:
        self._lengths = lengths

    def __len__(self) -> int:
        return sum(self._lengths)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        owners = np.arange(len(self._lengths), dtype=dtype or np.int64)
        return np.repeat(owners, self._lengths)

    def bounds(self) -> tuple[int, int]:
        """The smallest and the largest, or more."""
        return 0, len(self._lengths)

    def chunks(self) -> Iterator[Numbers]:
        """Its numbers, some at a time."""
        for owner, length in enumerate(self._lengths):
            for start in range(0, length, _TURN):
                yield np.full(min(_TURN, length - start), owner)


def _with_gap(numbers: Numbers) -> Numbers:
    """-1 leads to the last one, which is -1."""
    return np.append(numbers, NOTHING)


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same rows in as few spans as possible."""
    joined: list[tuple[int, int]] = []
    for start, stop in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        elif start < stop:
            joined.append((start, stop))
    return joined


def _num_gaps(column: Column, spans: Sequence[tuple[int, int]]) -> int:
    """Rows that lack the key."""
    is_float, gap = column.kind == "float", column.gap
    return sum(
        int(np.count_nonzero(np.isnan(chunk) if is_float else chunk == gap))
        for chunk in column.parts[0].rows(spans)
    )
