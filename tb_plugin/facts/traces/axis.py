"""Sources of a run on one clock: where each of them begins, and which tracks are meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, NamedTuple

from msgspec import Meta

from memboard.tb_plugin.analysis.ranks.clocks import (
    UNCOMPARED,
    RankClock,
    recorded_clocks,
)
from memboard.tb_plugin.api.time.trace import TraceClock
from memboard.tb_plugin.contract.errors import BadRequestError, NotFoundError
from memboard.tb_plugin.contract.parameters import Query
from memboard.tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.trace.trace import Trace
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.trace_sources import OpenSource

COUNTERS: Final = "counters-"
"""Prefix of the ids of a run's own numbers as sources; a rank follows."""

_MOST_NS: Final = 2**61
"""Times beyond it do not come from any clock; sums of a few still fit 64 bits."""

MAX_TRACKS: Final = 4_000
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Nanoseconds = Annotated[
    int, Meta(ge=-(2**63), le=2**63 - 1, description="whole nanoseconds")
]


class Tracks(tuple[tuple[str, tuple[int, ...]], ...]):
    """Sources by id, each with indices of its tracks."""

    __slots__ = ()

    EXPECTED: ClassVar = f"at most {MAX_TRACKS} tracks like id:0-4,7;id:1"

    @classmethod
    def parse(cls, text: str) -> Tracks:
        """Sources and indices, which are written as ranks are.

        Raises:
            ValueError: it is no such text, or has too many tracks.
        """
        parts = [part.partition(":") for part in text.split(";") if part]
        ranges = [(source_id, RankSet.parse(rows)) for source_id, _, rows in parts]
        number = sum(high - low + 1 for _, of in ranges for low, high in of.ranges)
        if number > MAX_TRACKS or not all(
            _ID.fullmatch(source_id) for source_id, _ in ranges
        ):
            raise ValueError(f"not {cls.EXPECTED}")
        return cls(
            (
                source_id,
                tuple(row for low, high in of.ranges for row in range(low, high + 1)),
            )
            for source_id, of in ranges
        )


class TracksQuery(Query, frozen=True):
    """Tracks in a window of nanoseconds since 1970."""

    tracks: Tracks = Tracks()
    t0: Nanoseconds | None = None
    t1: Nanoseconds | None = None


_FARTHEST_NS: Final = 2**62


@dataclass(frozen=True, slots=True)
class PlacedSource:
    """A source that is open, on the common clock."""

    source: OpenSource
    zero_ns: int
    """Nanoseconds since 1970 of its time 0, on the common clock."""
    clock: TraceClock

    @property
    def trace(self) -> Trace:
        return self.source.trace

    @property
    def id(self) -> str:
        return self.source.found.id

    def own_ns(self, time_ns: int) -> int:
        """A time of the common clock, in the trace's own."""
        return max(-_MOST_NS, min(time_ns - self.zero_ns, _MOST_NS))

    def track_of(self, index: int) -> str:
        """A track's name in answers."""
        return f"{self.id}:{index}"


@dataclass(frozen=True, slots=True)
class RunClocks:
    """The clocks of a run's ranks; every start of the job has its own."""

    attempts: tuple[tuple[int, Mapping[int, RankClock]], ...] = ()
    """When each began, ascending, and the clocks of its ranks."""

    def of(self, rank: int, at_ns: int) -> RankClock:
        """A rank's clock at a moment of its own times."""
        clock = UNCOMPARED
        for number, (started_ns, clocks) in enumerate(self.attempts):
            if rank in clocks and (started_ns <= at_ns or not number):
                clock = clocks[rank]
        return clock

    def offset_ns(self, rank: int) -> int:
        """What was added last to a rank's times; its own numbers are few per second."""
        for _, clocks in reversed(self.attempts):
            if rank in clocks:
                line = clocks[rank].line
                return line.at(line.readings[-1].at_ns).offset_ns
        return 0


def run_clocks(run: Run) -> RunClocks:
    """What a run's recordings say of their clocks; hold the run's lock."""
    return RunClocks(
        tuple(
            (attempt.started_ns, recorded_clocks(attempt.files))
            for attempt in run.attempts
        )
    )


def placed(
    sources: Sequence[OpenSource], clocks: RunClocks, first_ns: int
) -> list[PlacedSource]:
    """Put sources on the common clock by the clock of each rank.

    Those that know no wall clock begin where the others do, or with the run at
    `first_ns`.
    """
    offsets = {id(source): _shift(source, clocks) for source in sources}
    begins = [
        source.trace.base_ns + source.trace.start_ns + offsets[id(source)].offset_ns
        for source in sources
        if source.trace.has_wall_clock
    ]
    start = min(begins, default=first_ns)
    places = []
    for source in sources:
        offset, trace = offsets[id(source)], source.trace
        zero, method = trace.base_ns + offset.offset_ns, offset.method
        if not trace.has_wall_clock:
            zero, method = start - trace.start_ns, "none"
        places.append(
            PlacedSource(
                source,
                zero,
                TraceClock(
                    method,
                    float(zero - trace.base_ns) if trace.has_wall_clock else 0.0,
                    None if offset.error_ns is None else float(offset.error_ns),
                ),
            )
        )
    return places


class _Shift(NamedTuple):
    """What is added to a source's times, whole: floats have no room for nanoseconds."""

    offset_ns: int
    error_ns: int | None
    method: str


def _shift(source: OpenSource, clocks: RunClocks) -> _Shift:
    """By the clock of its rank in the middle of its times."""
    trace, rank = source.trace, source.found.rank
    if rank is None or not trace.has_wall_clock:
        return _Shift(0, None, "wall")
    middle = trace.base_ns + (trace.start_ns + trace.end_ns) // 2
    clock = clocks.of(rank, middle)
    # Spans have recorded times, which the wall clock may be ahead of.
    ahead_ns = 0 if source.found.kind == "spans" else clock.ahead_ns(middle)
    offset = clock.line.at(middle - ahead_ns)
    method = "wall" if clock is UNCOMPARED else clock.method
    return _Shift(offset.offset_ns - ahead_ns, offset.error_ns, method)


def chosen_tracks(
    query: TracksQuery, open_sources: Mapping[str, PlacedSource]
) -> Iterator[tuple[PlacedSource, list[int]]]:
    """The tracks of slices that a request names, by source.

    Raises:
        NotFoundError: one of them is not there.
    """
    for source_id, indices in query.tracks:
        if source_id.startswith(COUNTERS):
            continue
        source = open_sources[source_id]
        yield source, sorted(set(_known(source.trace, indices)))


def _known(trace: Trace, indices: Iterable[int]) -> Iterator[int]:
    for index in indices:
        if index >= len(trace.tracks):
            raise NotFoundError(
                "There is no such track.",
                f"track {index}",
                "Reload the page: the trace was replaced by another one.",
            )
        yield index


def window_of(query: TracksQuery) -> tuple[int, int]:
    """The query's window of time; at least 1 ns wide.

    Raises:
        BadRequestError: none is.
    """
    if query.t0 is None or query.t1 is None:
        raise BadRequestError(
            "A window of time must be given.", "t0, t1", "Reset the view."
        )
    t0, t1 = (
        max(-_FARTHEST_NS, min(edge_ns, _FARTHEST_NS))
        for edge_ns in (query.t0, query.t1)
    )
    return t0, max(t1, t0 + 1)
