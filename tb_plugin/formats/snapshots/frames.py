"""The distinct frames of a snapshot's stacks, as columns while a file is read.

torch's frames have a name, a file and a line: three numbers, where a dict, its line and
its place among others take a kilobyte. Frames of other keys stay dicts. Equal frames are
found among the last ones while the file is read, and among all of them at its end: a
dict of millions of contents would take more than the frames.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.format.encoding.numeric import ABSENT
from memboard.tb_plugin.formats.snapshots.pickles.stack import FrameNumber

if TYPE_CHECKING:
    import numpy.typing as npt

    Numbers = npt.NDArray[Any]

Frame = dict[str, Any]

KEYS: Final = ("name", "filename", "line")
MOST_RECENT: Final = 1 << 17
"""Contents that are looked up while a file is read; few programs have more frames."""
_NARROW: Final = 1 << 31


class Frames:
    def __init__(self) -> None:
        self.odd: dict[int, Frame] = {}
        """Those of other keys or types than torch's, by number."""
        self._texts: list[str] = []
        self._number_of_text: dict[str, int] = {}
        self._names = array("i")
        self._files = array("i")
        self._lines = array("q")
        self._recent: dict[Any, FrameNumber] = {}
        self.is_distinct = True
        """Whether equal frames are known to have one number."""
        self._dicts: dict[int, Frame] = {}
        """Frames that were needed as dicts, by number."""
        self._number_by_id: dict[int, FrameNumber] = {}
        """Of `_dicts` and `odd`, which keep the ids theirs."""

    @property
    def num_dicts(self) -> int:
        """Frames that are dicts too."""
        return len(self._dicts) + len(self.odd)

    def __len__(self) -> int:
        return len(self._lines)

    def has(self, frame: Any) -> bool:
        """Whether it is a dict of these."""
        return id(frame) in self._number_by_id

    def number_of(self, frame: Frame) -> FrameNumber:
        """The number of a frame; it must not change any more."""
        number = self._number_by_id.get(id(frame))
        if number is not None:
            return number
        if tuple(frame) == KEYS:
            function, filename, line = frame.values()
            if (
                type(function) is str
                and type(filename) is str
                and type(line) is int
                and ABSENT < line < -ABSENT
            ):
                return self.number(function, filename, line)
        content: Any = tuple((key, type(it), it) for key, it in frame.items())
        try:
            number = self._recent.get(content)
        except TypeError:  # it holds a list or a dict
            content = id(frame)
        if number is None:
            number = self._add(content, 0, 0, 0)
            self.odd[number] = frame
            self._number_by_id[id(frame)] = number
        return number

    def number(self, function: str, filename: str, line: int) -> FrameNumber:
        """The number of a frame of torch's keys; `line` has 64 bits and is not `ABSENT`."""
        content = function, filename, line
        number = self._recent.get(content)
        if number is None:
            number = self._add(
                content, self._text(function), self._text(filename), line
            )
        return number

    def frame(self, number: int) -> Frame:
        """The frame as torch has it, the same dict every time."""
        frame = self.odd.get(number)
        if frame is None:
            frame = self._dicts.get(number)
        if frame is None:
            frame = self._dicts[number] = {
                "name": self._texts[self._names[number]],
                "filename": self._texts[self._files[number]],
                "line": self._lines[number],
            }
            self._number_by_id[id(frame)] = FrameNumber(number)
        return frame

    def unify(self) -> Numbers:
        """Give equal frames one number; returns the new number of each."""
        self._recent = {}
        keys = np.frombuffer(self._names, np.int32) * np.int64(len(self._texts))
        keys += np.frombuffer(self._files, np.int32)
        keys = _narrowed(keys)
        keys <<= 32
        keys |= _narrowed(np.array(self._lines, np.int64))
        odd = np.fromiter(self.odd, np.int64, len(self.odd))
        keys[odd] = -1 - odd
        order = np.argsort(keys)
        keys = keys[order]
        is_new = np.ones(len(keys), np.bool_)
        np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
        del keys
        numbers = np.empty(len(order), np.int32)
        numbers[order] = np.cumsum(is_new, dtype=np.int32) - 1
        first = order[is_new]
        del order
        self._names = _taken(self._names, first)
        self._files = _taken(self._files, first)
        self._lines = _taken(self._lines, first)
        self.odd = {int(numbers[old]): frame for old, frame in self.odd.items()}
        self._dicts = {int(numbers[old]): frame for old, frame in self._dicts.items()}
        self._number_by_id = {
            key: FrameNumber(numbers[old]) for key, old in self._number_by_id.items()
        }
        self.is_distinct = True
        return numbers

    def texts(self, numbers: Numbers) -> dict[str, tuple[list[str], Numbers]]:
        """Names and files of some frames, by key.

        Of each the distinct texts in the order of first sight, and every frame's place
        among them.
        """
        columns = {}
        for key, column in (("name", self._names), ("filename", self._files)):
            text_numbers = np.frombuffer(column, np.int32)[numbers]
            order, places = first_seen(text_numbers, len(self._texts))
            columns[key] = [self._texts[text] for text in order.tolist()], places
        return columns

    def lines(self, numbers: Numbers) -> Numbers:
        return np.frombuffer(self._lines, np.int64)[numbers]

    def _text(self, text: str) -> int:
        number = self._number_of_text.setdefault(text, len(self._texts))
        if number == len(self._texts):
            self._texts.append(text)
        return number

    def _add(
        self, content: Any, function: int, filename: int, line: int
    ) -> FrameNumber:
        if len(self._recent) >= MOST_RECENT:
            self._recent.clear()
            self.is_distinct = False
        number = self._recent[content] = FrameNumber(len(self._lines))
        self._names.append(function)
        self._files.append(filename)
        self._lines.append(line)
        return number


def first_seen(numbers: Numbers, most: int) -> tuple[Numbers, Numbers]:
    """The different ones of some numbers below `most`, and the place of each among them.

    They are in the order of first sight.
    """
    first = np.full(most, len(numbers), np.int64)
    # Of equal places the last one is what stays.
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    order = order[: np.count_nonzero(first < len(numbers))]
    del first
    places = np.zeros(most, np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return order, places[numbers]


def _narrowed(numbers: Numbers) -> Numbers:
    """Numbers below 2**31 that are equal where these are; these may change."""
    least, most = int(numbers.min()), int(numbers.max())
    if most - least < _NARROW:
        numbers -= least
        return numbers
    return np.unique(numbers, return_inverse=True)[1].reshape(-1)


def _taken(column: array[int], places: Numbers) -> array[int]:
    values = np.frombuffer(column, f"i{column.itemsize}")[places]
    return array(column.typecode, values.tobytes())
