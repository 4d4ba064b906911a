"""JSON of any length, a few megabytes of it at a time.

Long lists are handed out in batches of whole elements, found by counting brackets outside
of texts; whether a batch is JSON is for a decoder to say.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from tb_plugin.readers.imports.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from tb_plugin.readers.snapshots.window import Window

MAX_VALUE: Final = 64 << 20
"""Bytes of one element of a list, or of one value that is no list."""

_MAX_KEY: Final = 1 << 16
_TEXT: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_GLANCE: Final = 1 << 12
_BATCH: Final = 1 << 20
_SPACE: Final = b" \t\r\n"
_SPACES: Final = re.compile(rb"[ \t\r\n]*")
_QUOTE, _BACKSLASH, _COMMA = ord('"'), ord("\\"), ord(",")
_STEPS: Final = np.zeros(256, np.int8)
"""By byte: how much deeper it leads."""
_STEPS[[ord("["), ord("{")]] = 1
_STEPS[[ord("]"), ord("}")]] = -1


class JsonText:
    """A place in a JSON text that moves forward."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._at = 0

    @property
    def at(self) -> int:
        """The place in the window, for errors."""
        return self._at

    def peek(self) -> bytes:
        """The next byte that is no space; none at the end."""
        while True:
            data = self._window.data
            found = _SPACES.match(data, self._at)
            self._at = self._at if found is None else found.end()
            if self._at < len(data) or self._window.at_end:
                return data[self._at : self._at + 1]
            self._more(1)

    def take(self, expected: bytes) -> None:
        """Move over one byte, which must be this one."""
        if self.peek() != expected:
            raise RefusedError(f"the JSON has no {expected.decode()!r} here", self._at)
        self._at += 1

    def took(self, wanted: bytes) -> bool:
        """Move over one byte, if it is this one."""
        if self.peek() != wanted:
            return False
        self._at += 1
        return True

    def key(self) -> str:
        """A key of an object, and over its colon."""
        self.peek()
        self._more(_MAX_KEY)
        found = _TEXT.match(self._window.data, self._at)
        if found is None:
            raise RefusedError("the JSON has no key here", self._at)
        self._at = found.end()
        self.take(b":")
        return str(msgspec.json.decode(found[0], type=str))

    def batches(self) -> Iterator[bytes]:
        """The rest of a list, some whole elements at a time, separated by commas.

        To be asked for behind the opening bracket; leads behind the closing one.
        """
        end = -1
        while end < 0:
            comma, end = self._scan(_BATCH)
            length = end if end >= 0 else comma
            batch = self._window.data[self._at : self._at + length]
            self._at += length + 1
            if end < 0 or batch.strip(_SPACE):
                yield batch

    def value(self) -> bytes:
        """One value of a list or an object; leads to the comma or bracket behind it."""
        comma, end = self._scan(0)
        length = comma if comma >= 0 else end
        value = self._window.data[self._at : self._at + length]
        self._at += length
        return value

    def _scan(self, enough: int) -> tuple[int, int]:
        """Where the last comma between elements is, and the closing bracket, from here.

        -1: not in sight. Stops at the bracket, or at a comma once there is `enough`; at
        the first comma if that is 0.
        """
        brackets = _Brackets()
        seen, comma, length = 0, -1, _GLANCE  # most lists and values are short
        while True:
            self._more(seen + length)
            start = self._at + seen
            held = np.frombuffer(self._window.data[start : start + length], np.uint8)
            if not len(held):
                raise RefusedError("the JSON ends too early", self._at)
            commas, end = brackets.feed(held)
            if len(commas):
                comma = seen + int(commas[-1 if enough else 0])
            if end >= 0:
                return comma, seen + end
            seen += len(held)
            if comma >= 0 and seen >= enough:
                return comma, -1
            if seen > MAX_VALUE:
                raise RefusedError("an entry is longer than any snapshot's", self._at)
            length = min(4 * length, _BATCH)

    def _more(self, num_bytes: int) -> None:
        """Have so many bytes from here on, if there are as many."""
        if len(self._window.data) - self._at < num_bytes and not self._window.at_end:
            self._at = self._window.fill(self._at, num_bytes)


class _Brackets:
    """Brackets and commas outside of texts, piece by piece."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_text = False
        self._escapes = False
        """Whether the last byte takes the next one's meaning away."""

    def feed(self, held: Any) -> tuple[Any, int]:
        """Places of commas at the depth of the start, and of the bracket that leaves it."""
        inside = self._texts(held)
        steps = _STEPS[held]
        steps[inside] = 0
        depth = np.cumsum(steps, dtype=np.int32)
        depth += self._depth
        self._depth = int(depth[-1])
        ends = np.flatnonzero(depth < 0)
        end = int(ends[0]) if len(ends) else -1
        commas = np.flatnonzero((held == _COMMA) & (depth == 0) & ~inside)
        return (commas if end < 0 else commas[commas < end]), end

    def _texts(self, held: Any) -> npt.NDArray[np.bool_]:
        """Which bytes are within texts."""
        quotes = held == _QUOTE
        slashes = np.flatnonzero(held == _BACKSLASH)
        if self._escapes:
            quotes[0] = False
            slashes = slashes[slashes > 0]
        self._escapes = False
        if len(slashes):
            # Of backslashes in a row, each second one is escaped by the one before.
            begins = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)
            lengths = np.diff(np.append(begins, len(slashes)))
            behind = (slashes[begins] + lengths)[lengths % 2 == 1]
            self._escapes = bool(len(behind)) and int(behind[-1]) == len(held)
            quotes[behind[behind < len(held)]] = False
        inside: npt.NDArray[np.bool_] = np.cumsum(quotes, dtype=np.int32) % 2 == 1
        if self._in_text:
            inside = ~inside
        self._in_text = bool(inside[-1])
        return inside
