"""Each rank's clock on the reference's, by what its recording says of it.

Pure: the header's anchor and the notes of one attempt's recordings in, lines out. Both the
merged trace and the page's timeline are put on one clock by them.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from memboard.tb_plugin.analysis.ranks.clock_line import (
    SAME,
    ClockLine,
    Reading,
    clock_line,
    shifted,
    steady,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.collector.format.records import Header, Note

REFERENCE_RANK: Final = 0
_SAME_HOST_ERROR_NS: Final = 1_000
_MAX_NS: Final = 2**62

WALL: Final = steady(0, None)
"""Of clocks that nobody compared: taken for equal, with no bound."""


class RecordingClock(Protocol):
    """A recording, as far as clocks go."""

    @property
    def header(self) -> Header:
        """Who recorded, and the anchor of its times."""

    def notes(self) -> Iterable[Note]:
        """What it says of its clock, among all else."""


@dataclass(frozen=True, slots=True)
class RankClock:
    # One rank's clock

    line: ClockLine
    """From its recorded times to the reference's."""
    method: str
    """How it was compared: distributed, same_host, wall, barriers, reference; or
    `none`."""
    ahead: tuple[tuple[int, int], ...] = ()
    """How far the host's wall clock was ahead of recorded times, from when on: what others
    stamped with the wall clock (torch's profiler) is later by this."""

    def ahead_ns(self, at_ns: int) -> int:
        """The same at one moment."""
        index = bisect_right(self.ahead, at_ns, key=lambda reading: reading[0]) - 1
        return self.ahead[max(0, index)][1] if self.ahead else 0


UNCOMPARED: Final = RankClock(WALL, "none")


def recorded_clocks(files: Mapping[int, RecordingClock]) -> dict[int, RankClock]:
    """By rank, from the notes of one attempt's recordings."""
    told = {rank: _told(file) for rank, file in files.items()}
    reference = told.get(REFERENCE_RANK)
    return {rank: _clock(rank, of, reference) for rank, of in told.items()}


@dataclass(slots=True)
class _ClockNotes:
    """What one file's notes say."""

    to_reference: list[Reading]
    to_truth: list[Reading]
    ahead: list[tuple[int, int]]
    host: str
    to_wall_ns: int
    """Of recorded times, from the host's monotonic clock."""


def _told(file: RecordingClock) -> _ClockNotes:
    started = file.header.started
    told = _ClockNotes([], [], [], "", started.wall_ns - started.monotonic_ns)
    for note in file.notes():
        data = note.data
        ahead = _whole(data.get("wall_ahead_ns"))
        if note.kind in ("clock", "clock_jump") and ahead is not None:
            told.ahead.append((note.time_ns, ahead))
        offset = _whole(data.get("offset_ns"))
        if note.kind != "clock" or offset is None:
            continue
        monotonic_ns, error = (
            _whole(data.get("monotonic_ns")),
            _whole(data.get("error_ns")),
        )
        at_ns = note.time_ns if monotonic_ns is None else monotonic_ns + told.to_wall_ns
        known_error = None if error is None or error < 0 else error
        reading = Reading(at_ns, offset, known_error)
        if data.get("reference_rank") == REFERENCE_RANK:
            told.to_reference.append(reading)
        elif data.get("method") == "wall":
            told.to_truth.append(reading)
        if isinstance(data.get("host_id"), str):
            told.host = data["host_id"]
    told.ahead.sort()
    return told


def _clock(rank: int, told: _ClockNotes, reference: _ClockNotes | None) -> RankClock:
    ahead = tuple(told.ahead)
    if rank == REFERENCE_RANK:
        return RankClock(SAME, "reference", ahead)
    if reference is not None and told.host and told.host == reference.host:
        offset = reference.to_wall_ns - told.to_wall_ns
        return RankClock(steady(offset, _SAME_HOST_ERROR_NS), "same_host", ahead)
    if told.to_reference:
        line = clock_line(told.to_reference)
        return RankClock(line or WALL, "distributed", ahead)
    if reference is not None:
        mine, theirs = _last_line(told.to_truth), _last_line(reference.to_truth)
        if mine is not None and theirs is not None:
            other = theirs.readings[-1]
            line = shifted(mine, -other.offset_ns, other.error_ns)
            return RankClock(line, "wall", ahead)
    return RankClock(_last_line(told.to_truth) or WALL, "wall", ahead)


def _last_line(readings: Sequence[Reading]) -> ClockLine | None:
    """Wall clocks are kept by others: what was said last holds, and no drift is seen."""
    return steady(readings[-1].offset_ns, readings[-1].error_ns) if readings else None


def _whole(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < _MAX_NS else None
