"""The pickle opcodes that build plain data, carried out one by one within limits.

Dicts that are allocator events become rows of `Events` as soon as they are complete;
runs of them are read by `EventReader` without coming through here. All other opcodes
are refused: those that import or call, and those that no snapshot needs.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tb_plugin.readers.snapshots.errors import RefusedError
from tb_plugin.readers.snapshots.events import Events
from tb_plugin.readers.snapshots.memo import Memo
from tb_plugin.readers.snapshots.patterns import EventReader, Key
from tb_plugin.readers.snapshots.stacks import Stacks

if TYPE_CHECKING:
    from collections.abc import Callable

    Buffer = Any  # bytes or a memory map

MAX_TEXT: Final = 1 << 20
MAX_INT_BYTES: Final = 9
MAX_BYTES: Final = 384 << 20
"""Estimate of what everything but events takes in memory."""
MAX_DEPTH: Final = 64
_MAX_BATCH: Final = 1 << 20
"""Entries between a mark and its end; Python's picklers write a thousand."""

_EVENT: Final = object()
"""Stands where an event was that is a row now."""

_MAX_NUMBERS: Final = 1000
"""Keys of a dict that has numbers among them: many can be made to collide."""

_STOP: Final = ord(".")
_BINFLOAT: Final = struct.Struct(">d")

# Bytes that objects take, about.
_DICT: Final = 64
_DICT_ENTRY: Final = 40
_LIST: Final = 56
_TEXT: Final = 150
"""With its place among the texts that are known."""
_NUMBER: Final = 32
_ENTRY: Final = 80
"""In the memo."""


class Machine:
    """Carries out one pickle."""

    def __init__(self, data: Buffer) -> None:
        self.memo = Memo()
        self.stacks = Stacks(self.memo)
        self.events = Events(self.stacks)
        self.spans: dict[int, tuple[int, int]] = {}
        """By id of a list: the rows of `events` that it held, from and to."""
        self._reader = EventReader(self.memo, self.stacks, self.events)
        self._data = data
        self._end = len(data)
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._spent = 0
        """Bytes, of `MAX_BYTES`."""
        self._texts: dict[str, str] = {}
        self._entry_of: dict[int, int] = {}
        """By id of a dict or list under way: its number in the memo."""

    def run(self) -> Any:
        """What the pickle makes.

        Raises:
            RefusedError: it is damaged, hostile or no plain data.
        """
        data, end = self._data, self._end
        try:
            while self._at < end:
                opcode = data[self._at]
                step = self._steps.get(opcode)
                if step is None:
                    raise RefusedError(_refusal(opcode), self._at)
                self._at += 1
                if opcode == _STOP:
                    return self._result()
                step(self)
        except (IndexError, struct.error):
            raise RefusedError("the pickle ends too early", self._at) from None
        raise RefusedError("the pickle ends too early", self._at)

    def _result(self) -> Any:
        if len(self._stack) != 1 or self._marks:
            raise RefusedError("the pickle is not one value", self._at)
        return self._stack[0]

    # Reading arguments.

    def _bytes(self, number: int) -> bytes:
        start = self._at
        self._at += number
        if self._at > self._end:
            raise RefusedError("the pickle ends too early", start)
        return bytes(self._data[start : self._at])

    def _unsigned(self, width: int) -> int:
        return int.from_bytes(self._bytes(width), "little")

    def _spend(self, num_bytes: int) -> None:
        self._spent += num_bytes
        if self._spent > MAX_BYTES:
            raise RefusedError("more objects than a snapshot can have", self._at)

    def _push(self, value: Any, num_bytes: int = 8) -> None:
        """`num_bytes`: what it takes beside its place on the stack."""
        self._spend(num_bytes)
        self._stack.append(value)

    def _from_mark(self) -> list[Any]:
        if not self._marks:
            raise RefusedError("a list or dict ends that was never begun", self._at)
        mark = self._marks.pop()
        items = self._stack[mark:]
        if len(items) > _MAX_BATCH:
            raise RefusedError("a list or dict is too long", self._at)
        del self._stack[mark:]
        return items

    # Opcodes.

    def _proto(self) -> None:
        version = self._unsigned(1)
        if not 2 <= version <= 5:
            raise RefusedError(f"pickle protocol {version} is not read", self._at)

    def _frame(self) -> None:
        self._bytes(8)
        self._read_events()

    def _mark(self) -> None:
        if len(self._marks) >= MAX_DEPTH:
            raise RefusedError("lists and dicts are nested too deep", self._at)
        self._marks.append(len(self._stack))
        self._read_events()

    def _read_events(self) -> None:
        """Events that follow here, as many as a batch may hold."""
        self._at, count = self._reader.read(self._data, self._at, _MAX_BATCH)
        self._stack.extend([_EVENT] * count)

    def _empty_dict(self) -> None:
        self._push({}, _DICT)

    def _empty_list(self) -> None:
        self._push([], _LIST)

    def _memoize(self) -> None:
        value = self._stack[-1]
        number = self.memo.add(value, self._at)
        self._spend(_ENTRY)
        if type(value) in (dict, list) and not value:
            self._entry_of[id(value)] = number

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
        found = self.memo.get(number, self._at)
        if type(found) is int:  # the frames of an event
            found = self.stacks.lists[found]
        self._push(found)

    def _text(self, width: int) -> None:
        length = self._unsigned(width)
        if length > MAX_TEXT:
            raise RefusedError(f"a text of {length} bytes is too long", self._at)
        try:
            text = self._bytes(length).decode()
        except UnicodeDecodeError:
            raise RefusedError("a text is not UTF-8", self._at) from None
        known = self._texts.setdefault(text, text)
        self._push(known, _TEXT + length if known is text else 8)

    def _short_text(self) -> None:
        self._text(1)

    def _long_text(self) -> None:
        self._text(4)

    def _short_bytes(self) -> None:
        self._some_bytes(self._unsigned(1))

    def _long_bytes(self) -> None:
        self._some_bytes(self._unsigned(4))

    def _some_bytes(self, length: int) -> None:
        if length > MAX_TEXT:
            raise RefusedError(f"{length} bytes are too many", self._at)
        self._push(self._bytes(length), _TEXT + length)

    def _int1(self) -> None:
        self._push(self._unsigned(1))

    def _int2(self) -> None:
        self._push(self._unsigned(2))

    def _int4(self) -> None:
        self._push(int.from_bytes(self._bytes(4), "little", signed=True), _NUMBER)

    def _long1(self) -> None:
        length = self._unsigned(1)
        if length > MAX_INT_BYTES:
            raise RefusedError(f"a number of {length} bytes is too long", self._at)
        self._push(int.from_bytes(self._bytes(length), "little", signed=True), _NUMBER)

    def _float(self) -> None:
        self._push(_BINFLOAT.unpack(self._bytes(8))[0], _NUMBER)

    def _none(self) -> None:
        self._push(None)

    def _true(self) -> None:
        self._push(True)

    def _false(self) -> None:
        self._push(False)

    def _tuple_of(self, number: int) -> None:
        if len(self._stack) < number:
            raise RefusedError("a tuple lacks its entries", self._at)
        items = tuple(self._stack[-number:])
        del self._stack[-number:]
        self._push(items, _LIST)

    def _tuple1(self) -> None:
        self._tuple_of(1)

    def _tuple2(self) -> None:
        self._tuple_of(2)

    def _tuple3(self) -> None:
        self._tuple_of(3)

    def _tuple(self) -> None:
        items = tuple(self._from_mark())
        self._push(items, _LIST + 8 * len(items))

    def _empty_tuple(self) -> None:
        self._push(())

    def _append(self) -> None:
        value = self._stack.pop()
        self._extend(self._stack[-1], [value])

    def _appends(self) -> None:
        items = self._from_mark()
        self._extend(self._stack[-1], items)

    def _extend(self, target: Any, items: list[Any]) -> None:
        if type(target) is not list:
            raise RefusedError("entries are appended to no list", self._at)
        if not items or items[0] is not _EVENT:
            if _EVENT in items:
                raise RefusedError("a list mixes events with other things", self._at)
            self._spend(8 * len(items))
            target.extend(items)
        else:
            self._hold(target, items)

    def _hold(self, target: list[Any], items: list[Any]) -> None:
        if target or items.count(_EVENT) != len(items):
            raise RefusedError("a list mixes events with other things", self._at)
        stop = self.events.num_rows
        start, reached = self.spans.get(id(target), (stop - len(items),) * 2)
        if reached != stop - len(items):
            raise RefusedError("lists of events overlap", self._at)
        self.spans[id(target)] = (start, stop)

    def _set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def _set_items(self) -> None:
        self._update(self._from_mark())

    def _update(self, items: list[Any]) -> None:
        target = self._stack[-1]
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
        self._spend(_DICT_ENTRY * len(keys))
        target.update(zip(keys, items[1::2], strict=True))
        entry = self._entry_of.pop(id(target), None)
        if entry is not None and is_event(target):
            self._take_event(target, entry)

    def _take_event(self, event: dict[str, Any], entry: int) -> None:
        self.events.add(event, self._at)
        self.memo.forget(entry)
        self._spent -= _DICT + (_DICT_ENTRY + _NUMBER) * len(event)
        frames = event.get("frames")
        if type(frames) is list:
            # What the memo would keep is a list; the number of its stack does as well.
            of_frames = self._entry_of.pop(id(frames), None)
            if of_frames is not None:
                self.memo.as_stack(of_frames, self.stacks.number_of(frames, self._at))
                self._spent -= _LIST + 8 * len(frames)
        self._stack[-1] = _EVENT
        self._learn(event)
        self._read_events()

    def _learn(self, event: dict[str, Any]) -> None:
        """Look back at how the pickle refers to the keys: only if it does."""
        keys = []
        for name in event:
            reference = self.memo.reference_to(name)
            if reference is None:
                return
            keys.append(Key(reference, name, self.events.columns[name]))
        self._reader.learn(keys)

    def _stop(self) -> None:
        """The end; `run` minds it."""

    _steps: ClassVar[dict[int, Callable[[Machine], None]]] = {
        0x80: _proto,
        0x95: _frame,
        ord("."): _stop,
        ord("("): _mark,
        ord("}"): _empty_dict,
        ord("]"): _empty_list,
        ord(")"): _empty_tuple,
        0x94: _memoize,
        ord("q"): _put,
        ord("r"): _long_put,
        ord("h"): _get,
        ord("j"): _long_get,
        0x8C: _short_text,
        ord("X"): _long_text,
        ord("C"): _short_bytes,
        ord("B"): _long_bytes,
        ord("K"): _int1,
        ord("M"): _int2,
        ord("J"): _int4,
        0x8A: _long1,
        ord("G"): _float,
        ord("N"): _none,
        0x88: _true,
        0x89: _false,
        0x85: _tuple1,
        0x86: _tuple2,
        0x87: _tuple3,
        ord("t"): _tuple,
        ord("a"): _append,
        ord("e"): _appends,
        ord("s"): _set_item,
        ord("u"): _set_items,
    }


def _are_numbers(keys: list[Any]) -> bool:
    """Or texts."""
    return {int, str}.issuperset(map(type, keys))


def is_event(plain: dict[str, Any]) -> bool:
    """Whether a dict is an entry of an allocator's history."""
    return type(plain.get("action")) is str and ("addr" in plain or "size" in plain)


def _refusal(opcode: int) -> str:
    what = _REFUSED.get(opcode)
    if what is None:
        return f"opcode {opcode:#04x} is not one of a snapshot"
    return f"{what}, which no snapshot needs: it is not carried out"


_REFUSED: Final = {
    **dict.fromkeys(b"c\x93i", "names a class or function"),
    **dict.fromkeys(b"Ro\x81\x92b", "calls something"),
    **dict.fromkeys(b"PQ", "names an object outside the file"),
    **dict.fromkeys(b"\x82\x83\x84", "uses a registered extension"),
}
