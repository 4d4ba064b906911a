"""Rows that lay in chunks which are damaged: counted by what is left around them."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.records import ChunkRef


class LostRows(NamedTuple):
    """A gap in the rows of a table."""

    first_step: int | None
    """None: not known, as nothing precedes it."""
    last_step: int | None
    """None: not known, as nothing follows it."""
    num_rows: int


def lost_rows(
    chunks: Sequence[ChunkRef], lost_bytes: Sequence[tuple[int, int]], num_written: int
) -> list[LostRows]:
    """Gaps between the chunks of a table that are intact.

    Args:
        chunks: all that are known of the table, damaged or not.
        lost_bytes: stretches of the file that cannot be read: first byte and end.
        num_written: rows that the file was given.
    """
    stretches = _joined(lost_bytes)
    starts = [start for start, _ in stretches]

    def is_lost(chunk: ChunkRef) -> bool:
        index = bisect_right(starts, chunk.offset) - 1
        return index >= 0 and chunk.offset < stretches[index][1]

    ordered = sorted(chunks, key=lambda chunk: chunk.first_row)
    intact = [chunk for chunk in ordered if not is_lost(chunk)]
    listed = [chunk for chunk in ordered if is_lost(chunk)]
    all_lost: list[LostRows] = []
    row, before = 0, None
    for chunk in intact:
        if chunk.first_row > row:
            all_lost.append(_gap(row, chunk.first_row, before, chunk, listed))
        row, before = max(row, chunk.first_row + chunk.num_rows), chunk
    if num_written > row:
        all_lost.append(_gap(row, num_written, before, None, listed))
    return all_lost


def _gap(
    row: int,
    end: int,
    before: ChunkRef | None,
    after: ChunkRef | None,
    listed: Sequence[ChunkRef],
) -> LostRows:
    """The rows from `row` to `end`; `listed`: damaged chunks whose extent is known."""
    inside = [chunk for chunk in listed if row <= chunk.first_row < end]
    if sum(chunk.num_rows for chunk in inside) == end - row:
        first = min(chunk.first_step for chunk in inside)
        return LostRows(first, max(chunk.last_step for chunk in inside), end - row)
    return LostRows(
        None if before is None else before.last_step + 1,
        None if after is None else after.first_step - 1,
        end - row,
    )


def _joined(stretches: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted, and those that touch as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(stretches):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined
