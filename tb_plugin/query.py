"""A request's parameters, checked once: what views get is typed and bounded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tb_plugin.functions_query import FunctionsQuery, parse_functions_query
from tb_plugin.modules_query import ModulesQuery, parse_modules_query
from tb_plugin.parameters import bad, integer_of, number_of, pixels_of
from tb_plugin.steps_query import StepsQuery, parse_steps_query

if TYPE_CHECKING:
    from collections.abc import Mapping

XKind: TypeAlias = Literal["step", "relative", "wall"]

MAX_RANK: Final = 10_000_000
_MAX_PARTS: Final = 10_000
_DEFAULT_PX: Final = 1200
_DEFAULT_ROWS: Final = 800
_MOST_X: Final = 1e18
_RANK_PART = re.compile(r"(\d{1,8})(?:-(\d{1,8}))?")


@dataclass(frozen=True, slots=True)
class RankSet:
    """Ranks as the user writes them: `0-7,64`."""

    spans: tuple[tuple[int, int], ...]
    """Both ends belong to it."""

    def __contains__(self, rank: int) -> bool:
        return any(low <= rank <= high for low, high in self.spans)


@dataclass(frozen=True, slots=True)
class Query:
    """The parameters of any data route; see `api` for their meaning."""

    run: str
    rank: int | None
    ranks: RankSet | None
    pinned: RankSet
    series: str | None
    x: XKind
    x0: float | None
    x1: float | None
    px: int
    rows: int
    phase: str | None
    modules: ModulesQuery
    functions: FunctionsQuery
    steps: StepsQuery


def parse_query(args: Mapping[str, str]) -> Query:
    """Check the parameters of a request.

    Raises:
        BadRequestError: one of them means nothing; names it.
    """
    x = args.get("x") or "step"
    if x not in ("step", "relative", "wall"):
        raise bad("x", x, "step, relative or wall")
    x0, x1 = (number_of(args, name, _MOST_X) for name in ("x0", "x1"))
    if x0 is not None and x1 is not None and x1 < x0:
        x0, x1 = x1, x0
    ranks = args.get("ranks")
    return Query(
        run=args.get("run") or "",
        rank=integer_of(args, "rank", MAX_RANK),
        ranks=_ranks("ranks", ranks) if ranks else None,
        pinned=_ranks("pinned", args.get("pinned") or ""),
        series=args.get("series") or None,
        x=x,  # type: ignore[arg-type]  # checked above
        x0=x0,
        x1=x1,
        px=pixels_of(args, "px", _DEFAULT_PX),
        rows=pixels_of(args, "rows", _DEFAULT_ROWS),
        phase=args.get("phase") or None,
        modules=parse_modules_query(args),
        functions=parse_functions_query(args),
        steps=parse_steps_query(args),
    )


def _ranks(name: str, text: str) -> RankSet:
    spans: list[tuple[int, int]] = []
    for part in text.split(",")[: _MAX_PARTS + 1]:
        if not part.strip():
            continue
        match = _RANK_PART.fullmatch(part.strip())
        if match is None or len(spans) >= _MAX_PARTS:
            raise bad(name, text, "ranks and ranges of ranks, e.g. 0-7,64")
        low = int(match[1])
        high = int(match[2] or low)
        spans.append((min(low, high), max(low, high)))
    return RankSet(tuple(spans))
