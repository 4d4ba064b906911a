"""Walks the frames of a file in blocks of bounded size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collector.format.framing import Damage, Framed, read_frames

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.frames.parts import PartsReader

_BLOCK_BYTES: Final = 1 << 18
_MAX_BLOCK_BYTES: Final = 1 << 26
"""A record longer than this is given up. Ours stay far below."""

MISSING: Final = "a segment of the file is missing"


def scan(
    reader: PartsReader, start: int, stop: int, budget: Budget, *, open_end: bool
) -> Iterator[Framed | Damage]:
    """Intact records and damage between two offsets, in order.

    A gap, where segments are missing, is damage; what precedes it is cut off for good.
    With `open_end`, `stop` is where a file ends that may still grow: a record cut off
    there, and damage that reaches it, are not yielded; scan again from the last `end`
    when there is more. Ends early when the budget is exhausted.
    """
    at, block = start, _BLOCK_BYTES
    while at < stop and budget.allows():
        resumed = reader.layout.resumes_at(at)
        if resumed is not None:
            yield Damage(at, min(resumed, stop), MISSING)
            at = resumed
            continue
        here = min(stop, reader.layout.end_of_run(at))
        is_open = open_end and here >= stop
        data = reader.read(at, min(block, here - at))
        if not data:
            return
        end_of_data = at + len(data)
        last = end_of_data >= here
        before = at
        for item in read_frames(data, at, last=last and not is_open):
            unsure = isinstance(item, Damage) and item.end == end_of_data
            if unsure and (is_open or not last) and block < _MAX_BLOCK_BYTES:
                # The next intact record may begin inside and end behind this block.
                break
            yield item
            at = item.end
        if at > before:
            continue_with = _BLOCK_BYTES
        elif last:
            return
        elif block < _MAX_BLOCK_BYTES:
            continue_with = block * 4
        else:
            yield Damage(at, end_of_data, "a record is too long to be one of ours")
            at, continue_with = end_of_data, _BLOCK_BYTES
        block = continue_with
