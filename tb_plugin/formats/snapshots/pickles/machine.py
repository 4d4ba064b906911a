"""The pickle opcodes that build plain data, carried out one by one within limits.

Dicts that are allocator events become rows of `Events` as soon as they are complete;
runs of them are read by `EventReader` without coming through here, and runs of frames
by `FrameReader`. All other opcodes are refused: those that import or call, and those that
no snapshot needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from memboard.tb_plugin.formats.snapshots.event_reader import EventReader
from memboard.tb_plugin.formats.snapshots.events import Events
from memboard.tb_plugin.formats.snapshots.pickles.extent import MAX_DEPTH
from memboard.tb_plugin.formats.snapshots.pickles.frame_reader import FrameReader
from memboard.tb_plugin.formats.snapshots.pickles.stack import (
    MAX_STACK,
    FrameNumber,
    Memo,
    StackNumber,
)
from memboard.tb_plugin.formats.snapshots.pickles.values import (
    LIST_BYTES,
    NUMBER_BYTES,
    ValueMachine,
)
from memboard.tb_plugin.formats.snapshots.stacks import Stacks
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.formats.snapshots.window import Window

_EVENT: Final = object()
"""Stands where an event was that is a row now."""

_MAX_NUMBERS: Final = 1000
"""Keys of a dict that has numbers among them: many can be made to collide."""

_STOP: Final = ord(".")

# Bytes that objects take, about.
_DICT: Final = 64
_DICT_ENTRY: Final = 40
_ENTRY: Final = 80
_UNDER_WAY: Final = 100
"""Of a dict or list that is in the memo and is not filled yet."""
_FREE_NUMBERS: Final = 1 << 16
"""From here on a number's object is counted."""
_FRAME: Final = 24
"""In the columns of frames and in the memo."""
_FRAME_DICT: Final = 400

_MAY_BE_FRAMES: Final = frozenset((list, FrameNumber, StackNumber))
_NOT_SCALARS: Final = _MAY_BE_FRAMES | {dict, tuple}


class Machine(ValueMachine):
    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self.memo = Memo()
        self.stacks = Stacks()
        self.events = Events(self.stacks)
        self.spans: dict[int, tuple[int, int]] = {}
        """By id of a list: the rows of `events` that it held, from and to."""
        self._reader = EventReader(self.memo, self.stacks, self.events)
        self._frame_reader = FrameReader(self.memo, self.stacks.frames)
        self._entry_of: dict[int, int] = {}
        """By id of a dict or list under way: its number in the memo."""

    def run(self) -> Any:
        """What the pickle makes.

        Raises:
            RefusedError: it is damaged, hostile or no plain data.
            OSError: the file cannot be read.
        """
        try:
            return self._carried_out()
        except RefusedError as error:
            # While reading, places are those in the window.
            offset = self._window.offset(error.offset)
            raise type(error)(error.what, offset, remedy=error.remedy) from None

    def _carried_out(self) -> Any:
        steps, window = self._steps, self._window
        while True:
            if self._at >= window.low:
                self._fill()
                if self._at == len(self._data):
                    raise RefusedError("the pickle ends too early", self._at)
            opcode = self._data[self._at]
            step = steps.get(opcode)
            if step is None:
                raise RefusedError(_refusal(opcode), self._at)
            self._at += 1
            if opcode == _STOP:
                return self._result()
            step(self)

    def _fill(self) -> None:
        if len(self._stack) > MAX_STACK:
            raise RefusedError("a list or dict is too long", self._at)
        self._reader.leave()
        self._at = self._window.fill(self._at)
        self._data = self._window.data
        if self._stack and self._stack[-1] is _EVENT:
            self._read_events()

    def _result(self) -> Any:
        if len(self._stack) != 1 or self._marks:
            raise RefusedError("the pickle is not one value", self._at)
        if self._window.is_cut_off:
            raise RefusedError("the last frame is longer than the file", self._at)
        self._reader.leave()
        self.events.settle()
        return self._plain(self._stack[0])

    def _proto(self) -> None:
        version = self._unsigned(1)
        if not 2 <= version <= 5:
            raise RefusedError(f"pickle protocol {version} is not read", self._at)

    def _frame(self) -> None:
        length = self._unsigned(8)
        self._reader.leave()
        self._window.frame(self._at, length)
        self._data = self._window.data
        if self._stack and self._stack[-1] is _EVENT:
            self._read_events()

    def _mark(self) -> None:
        if len(self._marks) >= MAX_DEPTH:
            raise RefusedError("lists and dicts are nested too deep", self._at)
        self._fence = len(self._stack)
        self._marks.append(self._fence)
        self._read_events()

    def _read_events(self) -> None:
        """Events that follow here, and the batches of list items that they fill."""
        passed = self._reader.read(self._data, self._at)
        if passed is None:
            return
        self._at = passed.end
        first, *others = passed.batches
        self._stack.extend([_EVENT] * first)
        if others:
            *closed, last = others
            self.events.num_rows -= sum(others)
            self._appends()
            self.events.num_rows += sum(closed)
            target = self._stack[-1]
            start, stop = self.spans[id(target)]
            self.spans[id(target)] = start, stop + sum(closed)
            self._fence = len(self._stack)
            self._marks.append(self._fence)
            self.events.num_rows += last
            self._stack.extend([_EVENT] * last)

    def _empty_dict(self) -> None:
        frames, end = self._frame_reader.read(self._data, self._at - 1)
        if frames:
            self._at = end
            self._spend(_FRAME * len(frames))
            self._stack += frames
        else:
            self._push({}, _DICT)

    def _empty_list(self) -> None:
        self._push([], LIST_BYTES)

    def _memoize(self) -> None:
        value = self._top()
        if value is _EVENT:
            raise RefusedError("an event is entered after it was made", self._at)
        number = self.memo.add(value, self._at)
        self._spend(_ENTRY)
        if type(value) in (dict, list) and not value:
            self._entry_of[id(value)] = number
            self._spend(_UNDER_WAY)

    def _put(self) -> None:
        self._put_under(self._unsigned(1))

    def _long_put(self) -> None:
        self._put_under(self._unsigned(4))

    def _put_under(self, number: int) -> None:
        if number != self.memo.count:
            raise RefusedError("entries are not numbered in order", self._at)
        self._memoize()

    def _get(self) -> None:
        self._get_entry(self._unsigned(1))

    def _long_get(self) -> None:
        self._get_entry(self._unsigned(4))

    def _get_entry(self, number: int) -> None:
        value = self.memo.get(number, self._at)
        if type(value) is list and id(value) in self.spans:
            raise RefusedError("refers to a list of events", self._at)
        self._push(value)

    def _append(self) -> None:
        value = self._pop()
        self._extend(self._top(), [value])

    def _appends(self) -> None:
        items = self._from_mark()
        self._extend(self._top(), items)

    def _extend(self, target: Any, items: list[Any]) -> None:
        if type(target) is not list:
            raise RefusedError("entries are appended to no list", self._at)
        self._expect_new(target)
        if not items or items[0] is not _EVENT:
            if _EVENT in items:
                raise RefusedError("a list mixes events with other things", self._at)
            self._spend(8 * len(items))
            # Frames alone stay numbers until it is known whose they are.
            kinds = {*map(type, items), *map(type, target[-1:])}
            if kinds != {FrameNumber} and not kinds.isdisjoint(_MAY_BE_FRAMES):
                self._plain(target)
                items = list(map(self._plain, items))
            target.extend(items)
        else:
            self._hold(target, items)

    def _expect_new(self, target: Any) -> None:
        """No pickler fills what it referred to already."""
        if id(target) in self.memo.fetched:
            raise RefusedError("a list or dict is changed after it was made", self._at)

    def _hold(self, target: list[Any], items: list[Any]) -> None:
        if target or items.count(_EVENT) != len(items):
            raise RefusedError("a list mixes events with other things", self._at)
        stop = self.events.num_rows
        start, reached = self.spans.get(id(target), (stop - len(items),) * 2)
        if reached != stop - len(items):
            raise RefusedError("lists of events overlap", self._at)
        self.spans[id(target)] = (start, stop)

    def _set_item(self) -> None:
        value, key = self._pop(), self._pop()
        self._update([key, value])

    def _set_items(self) -> None:
        self._update(self._from_mark())

    def _update(self, items: list[Any]) -> None:
        target = self._top()
        if type(target) is not dict:
            raise RefusedError("entries are set in no dict", self._at)
        if len(items) % 2:
            raise RefusedError("a dict's entry lacks its value", self._at)
        keys = items[::2]
        if not all(type(key) is str for key in keys) and (
            len(target) + len(keys) > _MAX_NUMBERS or not _are_numbers(keys)
        ):
            raise RefusedError("a dict's key is no text", self._at)
        if _EVENT in items:
            raise RefusedError("an event stands where none can be", self._at)
        self._expect_new(target)
        self._spend(_DICT_ENTRY * len(keys))
        target.update(zip(keys, items[1::2], strict=True))
        entry = self._entry_of.pop(id(target), None)
        if entry is not None and is_event(target):
            self._take_event(target, entry)
        elif entry is None or not self._take_frame(target, entry):
            for key, value in zip(keys, items[1::2], strict=True):
                if type(value) in _MAY_BE_FRAMES:
                    target[key] = self._plain(value)

    def _plain(self, value: Any) -> Any:
        """The value with dicts for frames, where it is no event that has them."""
        before = self.stacks.frames.num_dicts
        if type(value) is FrameNumber:
            value = self.stacks.frames.frame(value)
        elif type(value) is StackNumber:
            value = self.stacks.frames_of(value)
            self._spend(8 * len(value))
        elif type(value) is list and value and type(value[0]) is FrameNumber:
            value[:] = map(self.stacks.frames.frame, value)
        self._spend(_FRAME_DICT * (self.stacks.frames.num_dicts - before))
        return value

    def _push_tuple(self, items: tuple[Any, ...]) -> None:
        if not _MAY_BE_FRAMES.isdisjoint(map(type, items)):
            items = tuple(map(self._plain, items))
        super()._push_tuple(items)

    def _take_frame(self, frame: dict[str, Any], entry: int) -> bool:
        """Make a number of a dict that is a frame and holds nothing else."""
        if "line" not in frame or "filename" not in frame:
            return False
        if not _NOT_SCALARS.isdisjoint(map(type, frame.values())):
            return False
        before = self.stacks.frames.num_dicts
        number = self.stacks.frames.number_of(frame)
        self.memo.forget(entry)
        self.memo.add_frame(entry, number)
        self._stack[-1] = number
        self._frame_reader.learn(tuple(frame))
        if self.stacks.frames.num_dicts == before:
            self._spent += _FRAME - _bytes_of(frame)
        return True

    def _take_event(self, event: dict[str, Any], entry: int) -> None:
        self._spent -= _bytes_of(event)
        for key, value in event.items():
            if key != "frames":
                event[key] = self._plain(value)
            elif type(value) is list:
                event[key] = self._stack_of(value)
        self.events.add(event, self._at)
        self.memo.forget(entry)
        self._stack[-1] = _EVENT
        self._reader.learn(event)
        self._read_events()

    def _stack_of(self, frames: list[Any]) -> StackNumber:
        """The stack of an event's list."""
        number = StackNumber(self.stacks.number_of(frames, self._at))
        entry = self._entry_of.pop(id(frames), None)
        if entry is not None:
            # What the memo would keep is a list; the number of its stack does as well.
            self.memo.replace(entry, number)
            self._spent -= _UNDER_WAY + LIST_BYTES + 8 * len(frames)
        return number

    def _stop(self) -> None:
        """The end; `run` minds it."""

    _steps: ClassVar[dict[int, Callable[[Machine], None]]] = {
        **ValueMachine.value_steps,
        0x80: _proto,
        0x95: _frame,
        ord("."): _stop,
        ord("("): _mark,
        ord("}"): _empty_dict,
        ord("]"): _empty_list,
        0x94: _memoize,
        ord("q"): _put,
        ord("r"): _long_put,
        ord("h"): _get,
        ord("j"): _long_get,
        ord("a"): _append,
        ord("e"): _appends,
        ord("s"): _set_item,
        ord("u"): _set_items,
    }


def _bytes_of(taken: dict[str, Any]) -> int:
    """What was spent on a dict that is one no more, its place in the memo included."""
    num_numbers = sum(
        type(value) is float or (type(value) is int and not 0 <= value < _FREE_NUMBERS)
        for value in taken.values()
    )
    entries = _DICT_ENTRY * len(taken) + NUMBER_BYTES * num_numbers
    return _ENTRY + _UNDER_WAY + _DICT + entries


def _are_numbers(keys: list[Any]) -> bool:
    return {int, str}.issuperset(map(type, keys))


def is_event(plain: dict[str, Any]) -> bool:
    """Whether a dict is an entry of an allocator's history."""
    return (
        type(plain.get("action")) is str
        and ("addr" in plain or "size" in plain)
        and set(map(type, plain)) == {str}
    )


def _refusal(opcode: int) -> str:
    action = _REFUSED.get(opcode)
    if action is None:
        return f"opcode {opcode:#04x} is not one of plain data"
    return f"{action}, which plain data never does: it is not carried out"


_REFUSED: Final = {
    **dict.fromkeys(b"c\x93i", "names a class or function"),
    **dict.fromkeys(b"Ro\x81\x92b", "calls something"),
    **dict.fromkeys(b"PQ", "names an object outside the file"),
    **dict.fromkeys(b"\x82\x83\x84", "uses a registered extension"),
}
