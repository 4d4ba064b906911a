"""Compares the live memory at a moment of one history with that of another."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.allocator.groups import FOLDED, OUTSIDE, SITE_SHARE
from memboard.tb_plugin.analysis.allocator.live import (
    by_stack,
    live_rows,
    live_totals,
    summed,
)
from memboard.tb_plugin.analysis.allocator.moment.comparison import Side, table
from memboard.tb_plugin.analysis.categories.frames import stack_label
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.compare import CompareSide
from memboard.tb_plugin.facts.comparison.difference import Difference
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.opening import (
    HistoryQuery,
    find,
    open_history,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.tb_plugin.analysis.allocator.live import StackSums
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.compare import CompareBy
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.jobs.open_history import OpenDevice

    Rows: TypeAlias = Iterator[tuple[str, int, int]]

MAX_ROWS: Final = 2_000
MAX_TEXT: Final = 1000
_UNKNOWN: Final = "unknown"


class LiveSide:
    """What lives at the moment of one side.

    Raises:
        NotFoundError: there is no such history, or no such device in it.
    """

    def __init__(
        self,
        readers: RunReaders,
        query: HistoryQuery,
        device: int | None,
        moment: int | None,
    ) -> None:
        self.history = open_history(readers, query)
        with readers.reading(query.run) as reading:
            self.summary = readers.summary(reading.run)
            self.reference = find(reading, query).reference
        self.device: OpenDevice = self.history.device(device)
        self.moment = moment_of(self.device, moment, self.device.peak_moment)

    @cached_property
    def rows(self) -> Ints:
        return live_rows(self.device.lives, self.moment)

    @cached_property
    def sums(self) -> StackSums:
        return by_stack(self.device.lives, self.rows)

    def as_side(self) -> Side:
        sums = self.sums
        return Side(self.history.snapshot.stacks, sums.stack, sums.num_bytes, sums.num)

    def described(self) -> CompareSide:
        moment, rank = moment_words(self.device, self.moment), self.reference.rank
        parts = (
            "" if rank is None else f"rank {rank}",
            self.device.title,
            "start" if moment.moment < 0 else f"event {moment.moment:,}",
            "" if moment.step is None else f"step {moment.step:,}",
            moment.phase,
        )
        return CompareSide(
            run=self.summary,
            reference=self.reference,
            device=self.device.number,
            moment=moment,
            words=", ".join(filter(None, parts)),
        )

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """Live, allocated and reserved bytes, and the number of live blocks."""
        totals = live_totals(self.device.lives, self.rows, self.moment)
        reserved = self.device.reserved.at(np.array([self.moment]))[0]
        figures = (totals.active_bytes, totals.allocated_bytes, reserved, totals.num)
        return tuple(map(float, figures))

    def by_category(self, site: str) -> Rows:
        """Key, bytes and number; of what has no category that line stands apart."""
        groups = self.device.categories.of_life
        sums = summed(self.device.lives, self.rows, groups, len(FOLDED))
        for index, category in enumerate(FOLDED):
            yield category, int(sums.num_bytes[index]), int(sums.num[index])
        for line, num_bytes, num in self.without_category():
            if line == site:
                yield line, num_bytes, num
                yield _UNKNOWN, -num_bytes, -num

    def by_stack(
        self, label: Callable[[int], str], of: StackSums | None = None
    ) -> Rows:
        """By what a stack is called."""
        sums = of or self.sums
        columns = (sums.stack, sums.num_bytes, sums.num)
        rows = zip(*(column.tolist() for column in columns), strict=True)
        for stack, num_bytes, num in rows:
            yield label(stack), num_bytes, num

    def without_category(self) -> Rows:
        """By line, what has a stack."""
        groups = self.device.categories.of_life
        rows = self.rows[groups[self.rows] == FOLDED.index(_UNKNOWN)]
        with_stack = rows[self.device.lives.stack[rows] >= 0]
        yield from self.by_stack(self.line, by_stack(self.device.lives, with_stack))

    def by_size(self) -> Rows:
        size = self.device.lives.size[self.rows]
        power = np.frexp(np.maximum(size, 1).astype(np.float64))[1] - 1
        for exponent in np.unique(power).tolist():
            sizes = size[power == exponent]
            label = f"{_size_name(1 << exponent)} to {_size_name(2 << exponent)}"
            yield label, int(sizes.sum()), len(sizes)

    def line(self, stack: int) -> str:
        """The innermost line of the user's own."""
        return stack_label(self.history.snapshot.stacks, stack)

    def module(self, stack: int) -> str:
        """The innermost module whose forward it was."""
        modules = self.history.modules
        row = -1 if stack < 0 else int(modules.of_stack[stack])
        return OUTSIDE if row < 0 else modules.labels[row]


def _size_name(num_bytes: int) -> str:
    """A power of two without its zeros."""
    return re.sub(r"\.0+ ", " ", size_text(num_bytes))


def differences(a: LiveSide, b: LiveSide) -> Iterator[Difference]:
    """By category, module, line and size of blocks."""
    site = _site(a, b)
    rows: dict[CompareBy, tuple[Rows, Rows]] = {
        "category": (a.by_category(site), b.by_category(site)),
        "module": (a.by_stack(a.module), b.by_stack(b.module)),
        "line": (a.by_stack(a.line), b.by_stack(b.line)),
        "size": (a.by_size(), b.by_size()),
    }
    for by, sides in rows.items():
        largest = table(sides, MAX_ROWS)
        kept = np.flatnonzero(largest.num.any(axis=1))
        labels = [str(largest.keys[row])[:MAX_TEXT] for row in kept.tolist()]
        yield Difference(by, labels, largest.num_bytes[kept], largest.num[kept])


def _site(a: LiveSide, b: LiveSide) -> str:
    """The line whose uncategorised bytes differ most; none where that is little."""
    largest = table([a.without_category(), b.without_category()], 1)
    if not largest.keys:
        return ""
    of_a, of_b = largest.num_bytes[0].tolist()
    least = SITE_SHARE * abs(b.numbers[0] - a.numbers[0])
    return str(largest.keys[0]) if abs(of_b - of_a) > least else ""
