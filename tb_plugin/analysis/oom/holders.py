"""Holders of memory at a moment: source lines, and kinds of things."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from memboard.tb_plugin.analysis.allocator.live import held_rows, live_rows
from memboard.tb_plugin.analysis.arrays import NOTHING, largest_groups
from memboard.tb_plugin.analysis.findings.text import size_text

if TYPE_CHECKING:
    import re

    from memboard.tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks

    Pattern: TypeAlias = re.Pattern[str] | None

MAX_HOLDERS: Final = 12


HoldingKind: TypeAlias = Literal[
    "graph_pools",
    "program_pools",
    "kv_cache",
    "model_copy",
    "checkpoint",
    "no_backward",
    "workspaces",
    "vocabulary",
    "prefetched",
]


@dataclass(frozen=True, slots=True)
class Holding:
    """Memory that a kind of thing holds, such as a cache of keys and values."""

    kind: HoldingKind
    num_bytes: int
    num: int
    """Of pools, blocks, or passes through the model."""
    lines: tuple[str, ...] = ()
    """What allocated most of it."""
    free_bytes: int = 0
    """Reserved and not in use, of pools."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One line, and what it holds."""

    label: str
    """`models.py:174 update_nodes`; empty where no stack was recorded."""
    num_bytes: int
    share: float
    """Of all that is live, with what rounding adds to it."""
    num_blocks: int
    stack: int
    """That of its stacks that holds most; NOTHING: none was recorded."""
    category: int
    """Category that most of its bytes are of; NOTHING where none was given."""
    is_pending: bool = False
    """Freed, and active until another stream is done with it: a row of its own."""


def holders(
    lives: Lifetimes,
    stacks: Stacks,
    moment: int,
    category: Ints | None = None,
    most: int = MAX_HOLDERS,
    *,
    with_pending: bool = False,
    of_bytes: int | None = None,
) -> list[Holder]:
    """The lines that hold most at a moment.

    Args:
        lives: all allocations.
        stacks: theirs.
        moment: the event after which they are looked at.
        category: of each life; None where categories are not known.
        most: lines at most.
        with_pending: whether what was freed and waits for another stream counts too, so
            that the lines add up to what is active, not only to what is allocated.
        of_bytes: the level that the allocator counts then: see `counted_bytes`.
    """
    rows = live_rows(lives, moment) if with_pending else held_rows(lives, moment)
    size = lives.size[rows]
    total = counted_bytes(int(size.sum()), of_bytes)
    if not len(rows) or total <= 0:
        return []
    is_pending = lives.freed[rows] <= moment
    groups = 2 * stacks.lines(lives.stack[rows]) + is_pending
    _, num_bytes, place = largest_groups(groups, size, most)
    largest = []
    for number, one_bytes in enumerate(num_bytes.tolist()):
        mine = rows[place == number]
        stack = heaviest(lives.stack[mine], lives.size[mine])
        largest.append(
            Holder(
                label=stacks.label(stack),
                num_bytes=one_bytes,
                share=one_bytes / total,
                num_blocks=len(mine),
                stack=stack,
                category=NOTHING
                if category is None
                else heaviest(category[mine], lives.size[mine]),
                is_pending=bool(is_pending[place == number][0]),
            )
        )
    return largest


def counted_bytes(requested: int, level: int | None) -> int:
    """What lines that requested so much are shares of, where the allocator counts a level.

    It counts blocks as it rounds them. What rounding adds is only news where it is seen.
    """
    if level is None or size_text(level) == size_text(requested):
        return requested
    return max(requested, level)


def heaviest(values: Ints, size: Ints) -> int:
    """The value that most bytes have."""
    return int(largest_groups(values, size, 1)[0][0])
