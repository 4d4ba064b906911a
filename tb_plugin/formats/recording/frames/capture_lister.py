"""Finds whole captures among the records of a file, fed in the order they lie there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.format.capture_parts import CAPTURE, decode_entry, decode_part

if TYPE_CHECKING:
    from collector.format.capture_parts import CapturePart
    from collector.format.framing import Framed
    from collector.format.records import CaptureEntry

MAX_CAPTURES: Final = 100_000
"""Of one file, that are listed."""


class Lost(NamedTuple):
    """A capture that will never be whole."""

    offset: int
    end: int
    what: str


class CaptureLister:
    """A capture is listed once its last part was fed; one that lacks a part never is."""

    def __init__(self) -> None:
        self.found: list[CaptureEntry] = []
        self._entry: CaptureEntry | None = None
        """Of the capture whose parts are coming in; its size grows with them."""
        self._last: CapturePart | None = None

    @property
    def unfinished(self) -> CaptureEntry | None:
        """The capture that lacks parts which may still be written."""
        return self._entry

    def feed(self, item: Framed) -> Lost | None:
        """Take the next record, whatever its kind; tells what is lost for want of it.

        Raises:
            FormatError: it is a part of a capture that does not decode.
        """
        cut_off, last = self._entry, self._last
        self._entry = self._last = None
        if item.kind == CAPTURE:
            part = decode_part(item.payload)
            if cut_off is not None and last is not None and part.follows(last):
                size = item.end - cut_off.offset
                if item.offset == cut_off.offset + cut_off.num_bytes:
                    self._take(replace(cut_off, num_bytes=size), part)
                    return None
            self._last = part
            if part.part == 0:
                size = item.end - item.offset
                self._take(decode_entry(part, offset=item.offset, num_bytes=size), part)
            elif cut_off is None and (last is None or last.checksum != part.checksum):
                # Of parts that come without their first, one is worth a word.
                return Lost(item.offset, item.end, "the start of a capture is lost")
        if cut_off is None:
            return None
        end = cut_off.offset + cut_off.num_bytes
        return Lost(cut_off.offset, end, f"{named(cut_off)} is not whole")

    def clear(self) -> None:
        """Forget what was found, and what was coming in."""
        self.found.clear()
        self._entry = self._last = None

    def _take(self, entry: CaptureEntry, part: CapturePart) -> None:
        self._entry, self._last = entry, part
        if part.part + 1 == part.num_parts:
            self._entry = None
            if len(self.found) < MAX_CAPTURES:
                self.found.append(entry)


def named(entry: CaptureEntry) -> str:
    """A capture in words, e.g. `the capture "modules" of step, call 2`."""
    words = f'the capture "{entry.kind[:40]}"'
    if entry.function:
        words += f" of {entry.function[:80]}, call {entry.iteration}"
    if entry.label:
        words += f" ({entry.label[:80]})"
    return words
