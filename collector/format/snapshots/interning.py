"""Texts, frames and stacks by number, each distinct one once.

torch hands out one list of frames per captured context and shares the frames among the
lists, so both are first looked up by identity: a list costs a lookup, and only the few
distinct stacks are looked at by content. Identity holds as long as the snapshot lives,
which is why an `Interner` is used for one snapshot and not kept.

Long loops go in short turns, so that other threads get theirs: a loop inside the
interpreter's C code (`list(map(...))`) is four times as fast as one in Python, and nobody
else runs until it ends, a tenth of a second for a million values.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from memboard.collector.format.snapshots.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from memboard.collector.format.records import IntArray

    Value = TypeVar("Value")
    Result = TypeVar("Result")

MAX_KEYS: Final = 256
"""Keys that rows of one table may have; a snapshot with more is kept as values."""


class NotFramesError(Exception):
    """What should be lists of frames is something else."""


class StackTables(NamedTuple):
    """Stacks and their distinct frames, by number."""

    num_frames: IntArray
    frames: IntArray
    """Of all stacks, one after the other."""
    frame_rows: Sequence[dict[str, Any]]
    """Either all frames, or they are columns:"""
    frame_texts: Mapping[str, tuple[Sequence[str], IntArray]]
    """By key: texts, and which of them each frame has."""
    frame_numbers: Mapping[str, IntArray]
    """By key: each frame's integer."""


class Interner:
    """Numbers in the order of first sight."""

    def __init__(self, stack_number: Callable[[Any], int] | None = None) -> None:
        """`stack_number`: of a list of frames, where they are kept elsewhere."""
        self.strings: dict[str, int] = {}
        self._frames: list[dict[str, Any]] = []
        self._stacks: list[tuple[int, ...]] = []
        """Frames of each stack, by number."""
        self._stack_number = stack_number or self._by_frame_ids
        self._stack_of: dict[tuple[int, ...], int] = {}
        self._by_list: dict[int, int] = {}
        self._number_of_ids: dict[tuple[int, ...], int] = {}
        self._frame_by_id: dict[int, int] = {}
        self._frame_of: dict[Any, int] = {}
        self._frame_keys: set[str] = set()

    def texts(self, values: Sequence[str]) -> IntArray:
        """Number of each text.

        Raises:
            UnicodeEncodeError: one of them is not text that a file can hold.
        """
        strings = self.strings
        for text in distinct(values):
            if text not in strings:
                if not text.isascii():
                    text.encode()
                strings[text] = len(strings)
        return numbered(strings.__getitem__, values)

    def stack_numbers(self, values: Sequence[list[dict[str, Any]]]) -> IntArray:
        """Number of each list of frames.

        Raises:
            NotFramesError: one of them is no list of non-empty dicts with texts as keys.
        """
        ids = listed(id, values)
        by_list = self._by_list
        for key, frames in zip(ids, values, strict=True):
            if key not in by_list:
                by_list[key] = self._stack_number(frames)
        return numbered(by_list.__getitem__, ids)

    def stack_tables(self) -> StackTables:
        """All stacks that were numbered here."""
        lengths = np.fromiter(map(len, self._stacks), np.int64, len(self._stacks))
        frames = chain.from_iterable(self._stacks)
        numbers = np.fromiter(frames, np.int64, int(lengths.sum()))
        return StackTables(lengths, numbers, self._frames, {}, {})

    def _by_frame_ids(self, frames: list[dict[str, Any]]) -> int:
        """The stack of these frames, first looked up by their identity."""
        if type(frames) is not list:
            raise NotFramesError
        frame_ids = tuple(map(id, frames))
        number = self._number_of_ids.get(frame_ids)
        if number is None:
            number = self._number_of_ids[frame_ids] = self._stack(frames)
        return number

    def _stack(self, frames: list[dict[str, Any]]) -> int:
        stack = tuple(map(self._frame, frames))
        number = self._stack_of.setdefault(stack, len(self._stacks))
        if number == len(self._stacks):
            self._stacks.append(stack)
        return number

    def _frame(self, frame: dict[str, Any]) -> int:
        number = self._frame_by_id.get(id(frame))
        if number is None:
            self._check(frame)
            content: Any = tuple(frame.items())
            try:
                number = self._frame_of.setdefault(content, len(self._frames))
            except TypeError:  # a frame with a list or a dict in it
                content = plain_text(frame)
                number = self._frame_of.setdefault(content, len(self._frames))
            if number == len(self._frames):
                self._frames.append(frame)
            self._frame_by_id[id(frame)] = number
        return number

    def _check(self, frame: Any) -> None:
        if type(frame) is not dict or not frame:
            raise NotFramesError
        if not self._frame_keys.issuperset(frame):
            keys = self._frame_keys.union(frame)
            if len(keys) > MAX_KEYS or not all(map(is_name, frame)):
                raise NotFramesError
            self._frame_keys = keys


def is_name(key: Any) -> bool:
    """Whether a key is a text that a file can hold."""
    if type(key) is not str:
        return False
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


_TURN: Final = 1 << 14


def turns(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """The values, some at a time."""
    for start in range(0, len(values), _TURN):
        yield values[start : start + _TURN]


def listed(
    function: Callable[[Value], Result], values: Sequence[Value]
) -> list[Result]:
    # `list(map(function, values))`
    results: list[Result] = []
    for some in turns(values):
        results += map(function, some)
    return results


def numbered(function: Callable[[Any], int], values: Sequence[Any]) -> IntArray:
    """The same for a function that gives integers, as an array."""
    numbers = np.empty(len(values), np.int64)
    start = 0
    for some in turns(values):
        numbers[start : start + len(some)] = np.fromiter(map(function, some), np.int64)
        start += len(some)
    return numbers


def distinct(values: Sequence[Value]) -> dict[Value, None]:
    """The different ones, in the order of first sight."""
    unique: dict[Value, None] = {}
    for some in turns(values):
        unique.update(dict.fromkeys(some))
    return unique
