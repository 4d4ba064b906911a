"""The route of comparison: what lives at a moment of one history, against another's."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Final, TypeAlias

from memboard.tb_plugin.analysis.allocator.moment.comparison import joined
from memboard.tb_plugin.api.base import f64, i32, u8
from memboard.tb_plugin.api.compare import (
    CompareResponse,
    CompareStacks,
    StackMatch,
)
from memboard.tb_plugin.contract.parameters import Moment, Text
from memboard.tb_plugin.facts.comparison.difference import (
    Difference,
    Figure,
    figures_of,
)
from memboard.tb_plugin.facts.comparison.moments import (
    MAX_TEXT,
    LiveSide,
    differences,
)
from memboard.tb_plugin.facts.comparison.sentences import moments_sentence
from memboard.tb_plugin.facts.histories.opening import (
    DeviceNumber,
    HistoryQuery,
)
from memboard.tb_plugin.server.routes import RouteRequest, route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from memboard.tb_plugin.analysis.allocator.moment.comparison import JoinedStacks
    from memboard.tb_plugin.analysis.arrays import Ints
    from memboard.tb_plugin.api.tables import ColumnUnit

    Rows: TypeAlias = Iterator[tuple[str, int, int]]

MAX_STACKS: Final = 10_000
_FIGURES: Final[tuple[tuple[str, ColumnUnit, str], ...]] = (
    ("Live", "bytes", "Requested bytes of blocks, with blocks pending free"),
    ("Allocated", "bytes", "Live blocks without those that wait to be freed"),
    ("Reserved", "bytes", "Memory that the allocator reserved on the device"),
    ("Blocks", "count", "Live blocks"),
)
"""Label, unit and what it is."""


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
    a = LiveSide(asked.state, query, query.device, query.moment)
    b = LiveSide(asked.state, other, query.b_device, query.b_moment)
    asked.decided_by(a.history.key, a.summary, b.history.key, b.summary)
    stacks = joined(a.as_side(), b.as_side(), lines=query.match == "exact")
    tables = tuple(differences(a, b))
    order = stacks.order()[:MAX_STACKS]
    num_bytes, blocks = stacks.sums(order)
    by_stack = Difference("stack", (), num_bytes, blocks)
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
        tables=tuple(table.sent() for table in (*tables, by_stack)),
        stacks=_stacks(stacks, order.tolist(), num_bytes),
    )


def _stacks(
    joined_stacks: JoinedStacks, order: list[int], num_bytes: Ints
) -> CompareStacks:
    place: dict[str, int] = {}

    def row_of(text: str) -> int:
        return place.setdefault(text[:MAX_TEXT], len(place))

    names = [row_of(function) for function, _, _ in joined_stacks.frames]
    files = [row_of(filename) for _, filename, _ in joined_stacks.frames]
    paths = [joined_stacks.paths[row] for row in order]
    return CompareStacks(
        strings=tuple(place),
        name=i32(names),
        filename=i32(files),
        line=i32([line for _, _, line in joined_stacks.frames]),
        kind=u8(joined_stacks.kinds),
        start=i32([0, *accumulate(map(len, paths))]),
        frame=i32([frame for path in paths for frame in path]),
        user_frame=i32([joined_stacks.user_frame[row] for row in order]),
        a_bytes=f64(num_bytes[:, 0]),
        b_bytes=f64(num_bytes[:, 1]),
        num_stacks=len(joined_stacks.paths),
    )
