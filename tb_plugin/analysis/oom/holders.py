"""What held the memory at a moment, by source line."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from tb_plugin.analysis.allocator.live import held_rows
from tb_plugin.analysis.arrays import NOTHING, largest_groups
from tb_plugin.analysis.categories.frames import NO_STACK, stack_label

if TYPE_CHECKING:
    import re
    from collections.abc import Sequence

    from tb_plugin.analysis.allocator.lifetimes import Lifetimes
    from tb_plugin.analysis.arrays import Flags, Ints
    from tb_plugin.analysis.snapshots.snapshot import Stacks

    Pattern: TypeAlias = re.Pattern[str] | None

MAX_HOLDERS: Final = 12
_NO_STACK: Final = -1


@dataclass(frozen=True, slots=True)
class Holder:
    """One line, and what it holds."""

    label: str
    """`models.py:174 update_nodes`; empty where no stack was recorded."""
    num_bytes: int
    share: float
    """Of all that is live."""
    num_blocks: int
    stack: int
    """That of its stacks that holds most; NOTHING: none was recorded."""
    category: int
    """Category that most of its bytes are of; NOTHING where none was given."""


def _found(pattern: Pattern, texts: Sequence[str]) -> set[str]:
    """Those in which the pattern is found; many frames have one name, and one file."""
    if pattern is None:
        return set()
    return {text for text in set(texts) if pattern.search(text)}


@dataclass(frozen=True, slots=True)
class Lines:
    """Source lines of stacks."""

    stacks: Stacks
    _matched: dict[tuple[Pattern, Pattern], Flags] = field(default_factory=dict)

    def has(self, marks: int) -> Flags:
        """By stack, and last for no stack: whether it bears one of these marks."""
        return np.append((self.stacks.marks & marks) != 0, np.False_)

    def calls(self, name: str) -> Flags:
        """By stack, and last for no stack: whether a function of this name is in it."""
        return self.of_frames([one == name for one in self.stacks.name])

    def matching(self, name: Pattern, filename: Pattern) -> Flags:
        """By stack, and last for no stack: whether a frame has such a name or file.

        Asked for each error of a history, looked for once.
        """
        found = self._matched.get((name, filename))
        if found is None:
            names = _found(name, self.stacks.name)
            files = _found(filename, self.stacks.filename)
            chosen = [
                one in names or file in files
                for one, file in zip(
                    self.stacks.name, self.stacks.filename, strict=True
                )
            ]
            found = self._matched[name, filename] = self.of_frames(chosen)
        return found

    def of_frames(self, chosen: Sequence[bool]) -> Flags:
        """By stack, and last for no stack: whether one of its frames is chosen."""
        stacks = self.stacks
        found = np.zeros(len(stacks) + 1, np.bool_)
        flags = np.array(chosen, np.bool_)[stacks.frame]
        found[stacks.owner[flags]] = True
        return found

    def groups(self, stack: Ints) -> Ints:
        """A number for each line, by column of stacks.

        Stacks that have no line are each one of their own; no stack is -1.
        """
        if not len(self.stacks):
            return np.full(len(stack), _NO_STACK, np.int64)
        frame = self.stacks.user_frame[np.maximum(stack, 0)]
        alone = len(self.stacks.name) + stack
        group = np.where(frame == NOTHING, alone, frame)
        return np.where(stack < 0, _NO_STACK, group)

    def label(self, stack: int) -> str:
        """The line of a stack in short; empty where there is none."""
        label = stack_label(self.stacks, stack)
        return "" if label == NO_STACK else label

    def largest(self, stack: Ints, size: Ints, most: int) -> tuple[str, ...]:
        """The lines of some stacks that have most bytes."""
        place = largest_groups(self.groups(stack), size, most)[2]
        firsts = np.unique(place, return_index=True)[1][:most]
        labels = [self.label(one) for one in stack[firsts].tolist()]
        return tuple(label for label in labels if label)


def holders(
    lives: Lifetimes,
    lines: Lines,
    moment: int,
    category: Ints | None = None,
    most: int = MAX_HOLDERS,
) -> list[Holder]:
    """The lines that hold most at a moment, without what only waits to be free.

    `category`: of each life; None where categories are not known.
    """
    rows = held_rows(lives, moment)
    size = lives.size[rows]
    total = int(size.sum())
    if total <= 0:
        return []
    groups = lines.groups(lives.stack[rows])
    _, num_bytes, place = largest_groups(groups, size, most)
    held = []
    for at, one_bytes in enumerate(num_bytes.tolist()):
        mine = rows[place == at]
        stack = _heaviest(lives.stack[mine], lives.size[mine])
        held.append(
            Holder(
                label=lines.label(stack),
                num_bytes=one_bytes,
                share=one_bytes / total,
                num_blocks=len(mine),
                stack=stack,
                category=NOTHING
                if category is None
                else _heaviest(category[mine], lives.size[mine]),
            )
        )
    return held


def _heaviest(values: Ints, size: Ints) -> int:
    """The value that most bytes have."""
    return int(largest_groups(values, size, 1)[0][0])
