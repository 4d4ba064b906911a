"""Opcodes that push plain values: texts, bytes, numbers, tuples, nothing."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, ClassVar, Final

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.formats.snapshots.pickles.stack import StackMachine
from memboard.tb_plugin.formats.snapshots.window import MAX_TEXT
from memboard.tb_plugin.worker.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.tb_plugin.formats.snapshots.window import Window

MAX_INT_BYTES: Final = 9

_BINFLOAT: Final = struct.Struct(">d")

# Bytes that objects take, about.
LIST_BYTES: Final = 56
NUMBER_BYTES: Final = 32
_TEXT: Final = 150
"""With its place among the texts that are known."""


class ValueMachine(StackMachine):
    """Carries out opcodes that need nothing but their arguments and the stack."""

    def __init__(self, window: Window) -> None:
        super().__init__(window)
        self._texts: dict[str, str] = {}

    def _text(self, width: int) -> None:
        length = self._unsigned(width)
        if length > MAX_TEXT:
            raise RefusedError(
                f"a text of {counted(length, 'byte')} is too long", self._at
            )
        try:
            text = self._bytes(length).decode()
        except UnicodeDecodeError:
            raise RefusedError("a text is not UTF-8", self._at) from None
        interned = self._texts.setdefault(text, text)
        self._push(interned, _TEXT + length if interned is text else 0)

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
            raise RefusedError(f"{counted(length, 'byte')} are too many", self._at)
        self._push(self._bytes(length), _TEXT + length)

    def _int1(self) -> None:
        self._push(self._unsigned(1))

    def _int2(self) -> None:
        self._push(self._unsigned(2))

    def _int4(self) -> None:
        self._push(int.from_bytes(self._bytes(4), "little", signed=True), NUMBER_BYTES)

    def _long1(self) -> None:
        length = self._unsigned(1)
        if length > MAX_INT_BYTES:
            raise RefusedError(
                f"a number of {counted(length, 'byte')} is too long", self._at
            )
        self._push(
            int.from_bytes(self._bytes(length), "little", signed=True), NUMBER_BYTES
        )

    def _float(self) -> None:
        self._push(_BINFLOAT.unpack(self._bytes(8))[0], NUMBER_BYTES)

    def _none(self) -> None:
        self._push(None)

    def _true(self) -> None:
        self._push(True)

    def _false(self) -> None:
        self._push(False)

    def _tuple_of(self, number: int) -> None:
        if len(self._stack) - number < self._fence:
            raise RefusedError("a tuple lacks its entries", self._at)
        items = tuple(self._stack[-number:])
        del self._stack[-number:]
        self._push_tuple(items)

    def _tuple1(self) -> None:
        self._tuple_of(1)

    def _tuple2(self) -> None:
        self._tuple_of(2)

    def _tuple3(self) -> None:
        self._tuple_of(3)

    def _tuple(self) -> None:
        items = tuple(self._from_mark())
        self._push_tuple(items)

    def _push_tuple(self, items: tuple[Any, ...]) -> None:
        self._push(items, LIST_BYTES + 8 * len(items))

    def _empty_tuple(self) -> None:
        self._push(())

    value_steps: ClassVar[dict[int, Callable[[ValueMachine], None]]] = {
        ord(")"): _empty_tuple,
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
    }
