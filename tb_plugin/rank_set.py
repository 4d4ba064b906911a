"""Sets of ranks as people write them: `0-7,64`. Parsed and written here alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_RANGES: Final = 10_000
_RANGE: Final = re.compile(r"(\d{1,8})(?:-(\d{1,8}))?", re.ASCII)


class RankSet:
    """Ranges of ranks; both ends belong to them."""

    __slots__ = ("ranges",)

    EXPECTED: ClassVar = "ranks and ranges of ranks, e.g. 0-7,64"

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self.ranges: Final = tuple(ranges)

    @classmethod
    def parse(cls, text: str) -> RankSet:
        """The ranks of a text; the ends of a range may stand in any order.

        Raises:
            ValueError: it is no such text, or has more than 10,000 ranges.
        """
        parts = [part.strip() for part in text.split(",", _MAX_RANGES + 1)]
        matches = [_RANGE.fullmatch(part) for part in parts if part]
        if None in matches or len(matches) > _MAX_RANGES:
            raise ValueError(f"not {cls.EXPECTED}")
        ends = [
            (int(match[1]), int(match[2] or match[1])) for match in matches if match
        ]
        return cls((min(pair), max(pair)) for pair in ends)

    @classmethod
    def of(cls, ranks: Iterable[int]) -> RankSet:
        """These ranks, in as few ranges as possible."""
        ranges: list[tuple[int, int]] = []
        for rank in sorted(set(ranks)):
            if ranges and ranges[-1][1] == rank - 1:
                ranges[-1] = ranges[-1][0], rank
            else:
                ranges.append((rank, rank))
        return cls(ranges)

    def __str__(self) -> str:
        return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in self.ranges)

    def __len__(self) -> int:
        return sum(high - low + 1 for low, high in self.ranges)

    def __iter__(self) -> Iterator[int]:
        for low, high in self.ranges:
            yield from range(low, high + 1)

    def __contains__(self, rank: int) -> bool:
        return any(low <= rank <= high for low, high in self.ranges)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RankSet) and self.ranges == other.ranges

    def __hash__(self) -> int:
        return hash(self.ranges)

    def __repr__(self) -> str:
        return f"RankSet({self.ranges})"
