"""Two live sets side by side: the same stacks, lines and sizes found in both.

Two histories number their frames and stacks each in its own way, so stacks are told to
be the same by what their frames say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.analysis.snapshots.snapshot import Stacks


Frame: TypeAlias = tuple[str, str, int]

_FOLDER: Final = re.compile(r"^.*[/\\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Side:
    """What lives on one side, by stack of its history."""

    stacks: Stacks
    stack: Ints
    """Those that occur; NOTHING: without one."""
    num_bytes: Ints
    num: Ints


@dataclass(slots=True)
class JoinedStacks:
    """Stacks of both sides, each once."""

    frames: dict[Frame, int] = field(default_factory=dict)
    kinds: list[int] = field(default_factory=list)
    paths: list[tuple[int, ...]] = field(default_factory=list)
    """By stack: its frames, innermost first."""
    user_frame: list[int] = field(default_factory=list)
    num_bytes: list[list[int]] = field(default_factory=list)
    """By stack: of side A and of side B."""
    num: list[list[int]] = field(default_factory=list)

    def order(self) -> Ints:
        """Stacks, the largest difference first; of equal ones those that hold most."""
        sizes = np.array(self.num_bytes, np.int64).reshape(-1, 2)
        return np.lexsort((-sizes.max(axis=1), -np.abs(sizes[:, 1] - sizes[:, 0])))

    def sums(self, order: Ints) -> tuple[Ints, Ints]:
        """(stacks, 2) each: bytes and number of both sides, of stacks in an order."""
        num_bytes, num = (
            np.array(column, np.int64).reshape(-1, 2)[order]
            for column in (self.num_bytes, self.num)
        )
        return num_bytes, num


def joined(a: Side, b: Side, *, lines: bool) -> JoinedStacks:
    """The stacks of both; without `lines` functions of files of one name are the same."""
    stacks = JoinedStacks()
    number_by_path: dict[tuple[int, ...], int] = {}
    for place, side in enumerate((a, b)):
        numbers = _FrameNumbers(side, stacks, lines=lines)
        for row, stack in enumerate(side.stack.tolist()):
            path = numbers.path(stack)
            number = number_by_path.setdefault(path, len(number_by_path))
            if number == len(stacks.paths):
                stacks.paths.append(path)
                stacks.user_frame.append(numbers.user_frame(stack))
                stacks.num_bytes.append([0, 0])
                stacks.num.append([0, 0])
            stacks.num_bytes[number][place] += int(side.num_bytes[row])
            stacks.num[number][place] += int(side.num[row])
    return stacks


class _FrameNumbers:
    """Frames of one side as numbers of the joined ones."""

    def __init__(self, side: Side, into: JoinedStacks, *, lines: bool) -> None:
        self._side = side
        self._into = into
        self._lines = lines
        self._numbers: dict[int, int] = {}

    def path(self, stack: int) -> tuple[int, ...]:
        return tuple(map(self._number, self._side.stacks.of(stack).tolist()))

    def user_frame(self, stack: int) -> int:
        frame = NOTHING if stack < 0 else int(self._side.stacks.user_frame[stack])
        return NOTHING if frame < 0 else self._number(frame)

    def _number(self, frame: int) -> int:
        number = self._numbers.get(frame)
        if number is None:
            stacks, into = self._side.stacks, self._into
            key = (
                stacks.name[frame],
                stacks.filename[frame],
                int(stacks.line[frame]),
            )
            if not self._lines:
                key = (key[0], _FOLDER.sub("", key[1]), 0)
            number = into.frames.setdefault(key, len(into.frames))
            if number == len(into.kinds):
                into.kinds.append(int(stacks.kinds[frame]))
            self._numbers[frame] = number
        return number


@dataclass(frozen=True, slots=True)
class Table:
    """Bytes and number of both sides by key, the largest difference first."""

    keys: tuple[Hashable, ...]
    num_bytes: Ints  # (keys, 2)
    num: Ints


def table(sides: Sequence[Iterable[tuple[Hashable, int, int]]], most: int) -> Table:
    """Of each side: key, bytes and number, a key as often as one likes."""
    rows: dict[Hashable, list[int]] = {}
    for place, side in enumerate(sides):
        for key, num_bytes, num in side:
            row = rows.setdefault(key, [0, 0, 0, 0])
            row[place] += num_bytes
            row[2 + place] += num
    figures = np.array(list(rows.values()), np.int64).reshape(-1, 4)
    change = np.abs(figures[:, 1] - figures[:, 0])
    order = np.lexsort((-figures[:, :2].max(axis=1, initial=0), -change))[:most]
    keys = tuple(rows)
    return Table(
        tuple(keys[row] for row in order.tolist()),
        figures[order, :2],
        figures[order, 2:],
    )
