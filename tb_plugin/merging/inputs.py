"""The inputs of a merge: ranks with their clocks, recordings and traces, and problems."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypedDict

from memboard.tb_plugin.analysis.ranks.clocks import UNCOMPARED

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.ranks.clocks import RankClock
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.traces.files.starts import TraceStart

MAX_PROBLEMS: Final = 1000

Window = tuple[float, float]
"""Recorded times, both ends included."""

EVER: Final[Window] = (-math.inf, math.inf)


class Ranks(Protocol):
    def __contains__(self, rank: int, /) -> bool:
        """Whether a rank is one of them."""


class Problem(NamedTuple):
    """What could not be merged, in words."""

    rank: int | None
    path: str
    what: str


class MergedRank(TypedDict):
    """What the metadata of a merged trace says of a rank."""

    rank: int | None
    host: str
    clock_method: str
    offset_ns: int
    """From its clock to the reference's at its beginning; then at its end."""
    end_offset_ns: int
    error_ns: int | None
    rows_per_counter_value: int
    num_trace_events: int
    """Of its traces, without what its recording holds."""
    files: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFile:
    """A trace of one rank."""

    path: str
    """Of a store a URL."""
    shown: str
    """As it is named to people."""
    start: TraceStart


@dataclass(slots=True, kw_only=True)
class RankInput:
    """All that is merged of one rank."""

    rank: int | None
    """None: its files do not say."""
    label: str
    clock: RankClock = UNCOMPARED
    recording: RankFile | None = None
    window: Window = EVER
    cycle: int | None = None
    traced_steps: list[tuple[int, int]] = field(default_factory=list)
    """First and last of steps that its traces mark themselves."""
    traces: list[TraceFile] = field(default_factory=list)

    def extent(self) -> tuple[int, int]:
        """First and last time by the rank's own clock, as far as known beforehand."""
        first_times = [
            trace.start.started_ns
            for trace in self.traces
            if trace.start.first_ns is not None
        ]
        lasts = list(first_times)
        if self.recording is not None:
            first_times.append(self.recording.header.started.wall_ns)
            lasts.append(self.recording.newest_ns)
        return min(first_times, default=0), max(lasts, default=0)


@dataclass(slots=True, kw_only=True)
class Inputs:
    ranks: list[RankInput]
    """In the order of the merged trace."""
    reference: str
    """Whose clock the merged trace is on, in words."""
    problems: list[Problem] = field(default_factory=list)
    done: list[MergedRank] = field(default_factory=list)
    """Grows while the merged trace is written, in the order of `ranks`."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to merge."""
        return not any(rank.recording or rank.traces for rank in self.ranks)

    def tell(self, rank: int | None, path: str, sentence: str) -> None:
        """Keep a problem, as far as there is room."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(rank, path, sentence))
