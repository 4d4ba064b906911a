"""The route of comparison: what lives at a moment of one history, against another's."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.allocator.comparison import Side, joined, table
from memboard.tb_plugin.analysis.allocator.groups import FOLDED, OUTSIDE, SITE_SHARE
from memboard.tb_plugin.analysis.allocator.live import (
    by_stack,
    live_rows,
    live_totals,
    summed,
)
from memboard.tb_plugin.analysis.categories.frames import stack_label
from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.compare import (
    CompareResponse,
    CompareSide,
    CompareStacks,
    StackMatch,
)
from memboard.tb_plugin.contract.parameters import Moment, Text
from memboard.tb_plugin.contract.routes import RouteRequest, route
from memboard.tb_plugin.contract.wire import f64, i32, u8
from memboard.tb_plugin.facts.histories.description import moment_of, moment_words
from memboard.tb_plugin.facts.histories.opening import (
    DeviceNumber,
    HistoryQuery,
    find,
    open_history,
)
from memboard.tb_plugin.pages.compare.difference import Difference, Figure, figures_of
from memboard.tb_plugin.pages.compare.words import moments_sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from memboard.tb_plugin.analysis.allocator.comparison import JoinedStacks
    from memboard.tb_plugin.analysis.allocator.live import StackSums
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.compare import CompareBy
    from memboard.tb_plugin.api.tables import ColumnUnit
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.jobs.open_history import OpenDevice

    Rows: TypeAlias = Iterator[tuple[str, int, int]]

MAX_STACKS: Final = 10_000
MAX_ROWS: Final = 2_000
_MAX_TEXT: Final = 1000
_UNKNOWN: Final = "unknown"
_FIGURES: Final[tuple[tuple[str, ColumnUnit, str], ...]] = (
    ("Live", "bytes", "Requested bytes of blocks, with blocks pending free"),
    ("Allocated", "bytes", "Live blocks without those that wait to be freed"),
    ("Reserved", "bytes", "Memory that the allocator reserved on the device"),
    ("Blocks", "count", "Live blocks"),
)
"""Label, unit and what it is."""


class _Live:
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
        words = (
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
            words=", ".join(filter(None, words)),
        )

    @cached_property
    def numbers(self) -> tuple[float, ...]:
        """In the order of `_FIGURES`."""
        totals = live_totals(self.device.lives, self.rows, self.moment)
        reserved = self.device.reserved.at(np.array([self.moment]))[0]
        held = (totals.active_bytes, totals.allocated_bytes, reserved, totals.num)
        return tuple(map(float, held))

    def by_category(self, site: str) -> Rows:
        """Key, bytes and number; of what has no category that line stands apart."""
        groups = self.device.categories.of_life
        sums = summed(self.device.lives, self.rows, groups, len(FOLDED))
        for at, name in enumerate(FOLDED):
            yield name, int(sums.num_bytes[at]), int(sums.num[at])
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
        known = rows[self.device.lives.stack[rows] >= 0]
        yield from self.by_stack(self.line, by_stack(self.device.lives, known))

    def by_size(self) -> Rows:
        size = self.device.lives.size[self.rows]
        power = np.frexp(np.maximum(size, 1).astype(np.float64))[1] - 1
        for at in np.unique(power).tolist():
            held = size[power == at]
            label = f"{_size_name(1 << at)} to {_size_name(2 << at)}"
            yield label, int(held.sum()), len(held)

    def line(self, stack: int) -> str:
        """The innermost line of the user's own."""
        return stack_label(self.history.snapshot.stacks, stack)

    def module(self, stack: int) -> str:
        """The innermost module whose forward it was."""
        modules = self.history.modules
        row = -1 if stack < 0 else int(modules.of_stack[stack])
        return OUTSIDE if row < 0 else modules.labels[row]


class CompareQuery(HistoryQuery, frozen=True):
    """Side A, and by `b_` side B, which is of the same run where none is named.

    Without a moment: at the peak of active bytes.
    """

    device: DeviceNumber | None = None
    moment: Moment | None = None
    b_run: Text | None = None
    b_history: Text | None = None
    b_device: DeviceNumber | None = None
    b_moment: Moment | None = None
    match: StackMatch = "exact"


@route("compare", CompareQuery)
def compare(asked: RouteRequest[CompareQuery]) -> CompareResponse:
    """Two live sets, each opened first."""
    query = asked.query
    other = HistoryQuery(
        run=query.b_run or query.run, history=query.b_history, again=query.again
    )
    a = _Live(asked.state, query, query.device, query.moment)
    b = _Live(asked.state, other, query.b_device, query.b_moment)
    asked.decided_by(a.history.key, a.summary, b.history.key, b.summary)
    found = joined(a.as_side(), b.as_side(), lines=query.match == "exact")
    tables = tuple(_tables(a, b))
    order = found.order()[:MAX_STACKS]
    held = np.array(found.num_bytes).reshape(-1, 2)[order]
    blocks = np.array(found.num).reshape(-1, 2)[order]
    by_stack = Difference("stack", (), held, blocks)
    return CompareResponse(
        a=a.described(),
        b=b.described(),
        sentence=moments_sentence(a.numbers[0], b.numbers[0], tables),
        figures=figures_of(
            "Numbers at these moments",
            [
                Figure(label, unit, of_a, of_b, hint)
                for (label, unit, hint), of_a, of_b in zip(
                    _FIGURES, a.numbers, b.numbers, strict=True
                )
            ],
        ),
        tables=tuple(one.sent() for one in (*tables, by_stack)),
        stacks=_stacks(found, order.tolist(), held),
    )


def _size_name(num_bytes: int) -> str:
    """A power of two without its zeros."""
    return re.sub(r"\.0+ ", " ", size_text(num_bytes))


def _tables(a: _Live, b: _Live) -> Iterator[Difference]:
    site = _site(a, b)
    rows: dict[CompareBy, tuple[Rows, Rows]] = {
        "category": (a.by_category(site), b.by_category(site)),
        "module": (a.by_stack(a.module), b.by_stack(b.module)),
        "line": (a.by_stack(a.line), b.by_stack(b.line)),
        "size": (a.by_size(), b.by_size()),
    }
    for by, sides in rows.items():
        found = table(sides, MAX_ROWS)
        kept = np.flatnonzero(found.num.any(axis=1))
        labels = [str(found.keys[row])[:_MAX_TEXT] for row in kept.tolist()]
        yield Difference(by, labels, found.num_bytes[kept], found.num[kept])


def _site(a: _Live, b: _Live) -> str:
    """The line whose uncategorised bytes differ most; none where that is little."""
    found = table([a.without_category(), b.without_category()], 1)
    if not found.keys:
        return ""
    of_a, of_b = found.num_bytes[0].tolist()
    least = SITE_SHARE * abs(b.numbers[0] - a.numbers[0])
    return str(found.keys[0]) if abs(of_b - of_a) > least else ""


def _stacks(found: JoinedStacks, order: list[int], held: Ints) -> CompareStacks:
    place: dict[str, int] = {}

    def row_of(text: str) -> int:
        return place.setdefault(text[:_MAX_TEXT], len(place))

    names = [row_of(name) for name, _, _ in found.frames]
    files = [row_of(filename) for _, filename, _ in found.frames]
    paths = [found.paths[row] for row in order]
    return CompareStacks(
        strings=tuple(place),
        name=i32(names),
        filename=i32(files),
        line=i32([line for _, _, line in found.frames]),
        kind=u8(found.kinds),
        start=i32(np.cumsum([0, *map(len, paths)])),
        frame=i32([frame for path in paths for frame in path]),
        user_frame=i32([found.user_frame[row] for row in order]),
        a_bytes=f64(held[:, 0]),
        b_bytes=f64(held[:, 1]),
        num_stacks=len(found.paths),
    )
