"""Blocks as torch 2.0 wrote them: with a history of requests in place of frames.

Each block has a list `history` whose first entry is the request it serves or served
last: `addr`, `real_size` (bytes as asked for) and `frames`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.snapshots.columns import MAX_LINE, Table
from tb_plugin.analysis.snapshots.snapshot import NOTHING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[Any]
    Frame: TypeAlias = tuple[str, str, int]

_MAX_FRAMES: Final = 1024


@dataclass(frozen=True, slots=True)
class BlockHistories:
    """What the blocks' histories say, by block."""

    frames: Sequence[tuple[Frame, ...]]
    """Distinct stacks: name, filename and line of each frame, innermost first."""
    stack: Ints
    """Index in `frames`; -1: the block has no history."""
    requested_size: Ints
    """-1: likewise."""


def block_histories(
    tables: Mapping[str, Mapping[str, Any]], texts: Sequence[str]
) -> BlockHistories | None:
    """The histories of all blocks; None where no block has one."""
    table = Table("blocks", tables, texts)
    rows, values = table.values("history")
    if not values:
        return None
    known: dict[tuple[Frame, ...], int] = {}
    # The last entry is for blocks without a history.
    stacks, sizes = np.full((2, len(values) + 1), NOTHING, np.int64)
    for place, value in enumerate(values):
        entry = value[0] if isinstance(value, list) and value else None
        if isinstance(entry, dict):
            stacks[place] = known.setdefault(_frames_of(entry), len(known))
            sizes[place] = _number(entry.get("real_size"), NOTHING)
    return BlockHistories(tuple(known), stacks[rows], sizes[rows])


def _frames_of(entry: dict[str, Any]) -> tuple[Frame, ...]:
    frames = entry.get("frames")
    found = frames if isinstance(frames, list) else ()
    return tuple(_frame(frame) for frame in found[:_MAX_FRAMES])


def _frame(frame: Any) -> Frame:
    said = frame if isinstance(frame, dict) else {}
    return (
        str(said.get("name", "")),
        str(said.get("filename", "")),
        min(_number(said.get("line"), 0), MAX_LINE),
    )


def _number(value: Any, otherwise: int) -> int:
    """A size or a line; what cannot be one is `otherwise`."""
    if not isinstance(value, int) or isinstance(value, bool):
        return otherwise
    return value if 0 <= value < 1 << 48 else otherwise
