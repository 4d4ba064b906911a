"""Parameters of the routes about allocator histories, checked once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from tb_plugin import api
from tb_plugin.parameters import (
    bad,
    integer_of,
    number_of,
    pixels_of,
    text_of,
    word_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

Axis: TypeAlias = Literal["event", "time"]

DEFAULT_PX: Final = 1200
DEFAULT_ROWS: Final = 800
MAX_RANK: Final = 10_000_000
_MOST: Final = 2**31 - 1
_MOST_AGAIN: Final = 2**53
_MAX_BYTES: Final = float(1 << 60)
_WHOLE: Final = re.compile(r"-?\d{1,10}")


@dataclass(frozen=True, slots=True)
class HistoriesQuery:
    """What is to be shown; see `api` for the meaning of each."""

    run: str = ""
    history: str | None = None
    device: int | None = None
    axis: Axis = "event"
    rank: int | None = None
    e0: int | None = None
    e1: int | None = None
    t0: float | None = None
    t1: float | None = None
    y0: float | None = None
    y1: float | None = None
    px: int = DEFAULT_PX
    rows: int = DEFAULT_ROWS
    order: api.AllocationOrder = "category"
    colour: api.AllocationColour = "category"
    stream: int | None = None
    pool: int | None = None
    moment: int | None = None
    life: int | None = None
    sort: api.SegmentSort = "size"
    size_class: api.SizeClass | None = None
    request: int | None = None
    count: int | None = None
    actions: tuple[str, ...] = ()
    b_run: str | None = None
    b_history: str | None = None
    b_device: int | None = None
    b_moment: int | None = None
    match: api.StackMatch = "exact"
    again: int | None = None

    @property
    def other(self) -> HistoriesQuery:
        """Side B of a comparison."""
        return replace(
            self,
            run=self.run if self.b_run is None else self.b_run,
            history=self.b_history,
            device=self.b_device,
            moment=self.b_moment,
        )


def parse_histories_query(args: Mapping[str, str]) -> HistoriesQuery:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    e0, e1 = _ordered(integer_of(args, "e0", _MOST), integer_of(args, "e1", _MOST))
    t0, t1 = _ordered(_number(args, "t0"), _number(args, "t1"))
    y0, y1 = _ordered(_number(args, "y0"), _number(args, "y1"))
    order = word_of(args, "order", get_args(api.AllocationOrder)) or "category"
    colour = word_of(args, "colour", get_args(api.AllocationColour)) or "category"
    return HistoriesQuery(
        run=text_of(args, "run") or "",
        history=text_of(args, "history"),
        device=integer_of(args, "device", _MOST),
        axis=word_of(args, "axis", get_args(Axis)) or "event",  # type: ignore[arg-type]  # one of these words
        rank=integer_of(args, "rank", MAX_RANK),
        e0=e0,
        e1=e1,
        t0=t0,
        t1=t1,
        y0=y0,
        y1=y1,
        px=pixels_of(args, "px", DEFAULT_PX),
        rows=pixels_of(args, "rows", DEFAULT_ROWS),
        order=order,  # type: ignore[arg-type]  # one of these words
        colour=colour,  # type: ignore[arg-type]  # one of these words
        stream=integer_of(args, "stream", _MOST),
        pool=integer_of(args, "pool", _MOST),
        moment=_moment(args, "moment"),
        life=integer_of(args, "life", _MOST),
        sort=word_of(args, "sort", get_args(api.SegmentSort)) or "size",  # type: ignore[arg-type]  # one of these words
        size_class=word_of(args, "size_class", get_args(api.SizeClass)),  # type: ignore[arg-type]  # one of these words
        request=integer_of(args, "request", int(_MAX_BYTES)),
        count=integer_of(args, "count", _MOST),
        actions=_actions(args),
        b_run=text_of(args, "b_run"),
        b_history=text_of(args, "b_history"),
        b_device=integer_of(args, "b_device", _MOST),
        b_moment=_moment(args, "b_moment"),
        match=word_of(args, "match", get_args(api.StackMatch)) or "exact",  # type: ignore[arg-type]  # one of these words
        again=integer_of(args, "again", _MOST_AGAIN),
    )


def _ordered(one: float | None, other: float | None) -> tuple[Any, Any]:
    """Two ends, the lower first."""
    if one is not None and other is not None and other < one:
        return other, one
    return one, other


def _moment(args: Mapping[str, str], name: str) -> int | None:
    text = args.get(name) or None
    if text is None:
        return None
    if not (text.isascii() and _WHOLE.fullmatch(text)):
        raise bad(name, text, "a whole number, -1 for before all events")
    return min(max(int(text), -1), _MOST)


def _actions(args: Mapping[str, str]) -> tuple[str, ...]:
    words = tuple((text_of(args, "actions") or "").split(","))
    known = get_args(api.AllocatorAction)
    for word in filter(None, words):
        if word not in known:
            raise bad("actions", word, f"one of {', '.join(known)}")
    return tuple(filter(None, words))


def _number(args: Mapping[str, str], name: str) -> float | None:
    value = number_of(args, name)
    return None if value is None else min(max(value, -_MAX_BYTES), _MAX_BYTES)
