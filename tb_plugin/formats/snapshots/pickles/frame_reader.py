"""Frames that a pickle spells out one after the other, read without an opcode's step each.

torch's pickles refer to the texts of a frame and hold a dict of every frame. Programs
that make stacks of their own spell all frames of all stacks.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.formats.snapshots.frames import KEYS
from memboard.tb_plugin.formats.snapshots.pickles.shapes import HEAD

if TYPE_CHECKING:
    from memboard.tb_plugin.formats.snapshots.frames import Frames
    from memboard.tb_plugin.formats.snapshots.pickles.stack import FrameNumber, Memo

_REFERENCE: Final = rb"(h.|j.{4})"
_INTEGER: Final = rb"(K.|M..|J.{4})"
_SIGNED: Final = ord("J")
_MAX_TEXTS: Final = 1 << 16
"""References whose texts are known."""


class FrameReader:
    """Reads frames of torch's keys whose texts were written before."""

    def __init__(self, memo: Memo, frames: Frames) -> None:
        self._memo = memo
        self._frames = frames
        self._pattern: re.Pattern[bytes] | None = None
        self._texts: dict[bytes, str] = {}

    def learn(self, keys: tuple[str, ...]) -> None:
        """Recognise such frames from now on, if these are their keys."""
        if self._pattern is not None or keys != KEYS:
            return
        references = [self._memo.reference_to(key) for key in keys]
        if None not in references:
            function, filename, line = (re.escape(key or b"") for key in references)
            parts = (re.escape(HEAD), function, _REFERENCE, filename, _REFERENCE)
            pattern = b"".join((*parts, line, _INTEGER, b"u"))
            self._pattern = re.compile(pattern, re.DOTALL)

    def read(self, data: bytes, offset: int) -> tuple[list[FrameNumber], int]:
        """The frames from here on, and where they end.

        Raises:
            RefusedError: one refers to what is not there.
        """
        read: list[FrameNumber] = []
        if self._pattern is None:
            return read, offset
        memo, number_of = self._memo, self._frames.number
        while match := self._pattern.match(data, offset):
            name_reference, file_reference, integer = match.groups()
            function = self._text(name_reference, offset)
            filename = self._text(file_reference, offset)
            if function is None or filename is None:
                break
            is_signed = integer[0] == _SIGNED
            line = int.from_bytes(integer[1:], "little", signed=is_signed)
            frame = number_of(function, filename, line)
            memo.add_frame(memo.skip(1, offset), frame)
            read.append(frame)
            offset = match.end()
        return read, offset

    def _text(self, reference: bytes, offset: int) -> str | None:
        text = self._texts.get(reference)
        if text is None:
            entry: Any = self._memo.get(int.from_bytes(reference[1:], "little"), offset)
            if type(entry) is not str:
                return None
            if len(self._texts) < _MAX_TEXTS:
                self._texts[reference] = entry
            text = entry
        return text
