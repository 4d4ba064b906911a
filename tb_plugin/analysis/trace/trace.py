"""A timeline of slices as analyses and views take it, whatever it was read from.

Times are whole nanoseconds since `Trace.base_ns`, which is a wall clock time where the
source says one (`Trace.has_wall_clock`). Texts are rows of `Trace.strings`. Slices lie
by track, in a track by level, in a level by start; slices of one level do not overlap,
so both `start_ns` and `start_ns + duration_ns` ascend there and what is visible is found
by bisection: see `Trace.rows_of_level`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import numpy as np

from memboard.tb_plugin.analysis.arrays import NOTHING, Table, places_in
from memboard.tb_plugin.analysis.trace.details import NO_REPLAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.trace.details import (
        Collectives,
        DeviceWork,
        Launches,
        MemoryEvents,
        Operators,
        Replays,
        Synchronisations,
    )


CAPTURED: Final = "captured in graphs"
"""Process of the tracks of calls that were made when a graph was captured; its slices lie
where the graph's kernels ran, and took no time of the host."""
CAPTURED_OPERATOR: Final = "captured_op"
"""Category of such slices, as the next two; no other ones have it."""
CAPTURED_ANNOTATION: Final = "captured_annotation"
CAPTURED_MODULE: Final = "captured_module"

TrackKind: TypeAlias = Literal["host", "device", "python", "span", "counter", "other"]
LinkKind: TypeAlias = Literal["launch", "captured", "fwdbwd", "flow"]


ArgsSource: TypeAlias = "Callable[[int], Mapping[str, Any]]"
"""All arguments of slices and instants by the handle of their `args` column, as plain JSON
data. Raises OSError where they are no longer there; the text says why."""


@dataclass(frozen=True, slots=True)
class Track:
    """One line of slices, or of one counter: a thread, a stream, a recorder's spans."""

    name: str
    """What its process calls it, or `thread 7`; never empty."""
    process: str
    """Name of the process, with its id where the source gives one."""
    kind: TrackKind
    rank: int = NOTHING
    pid: str = ""
    """As the source writes it; no number in some traces."""
    tid: str = ""
    device: int = NOTHING
    """Index of the device that ran the slices."""
    stream: int = NOTHING
    sort_index: int = 0
    """Order that the source asks for; `Trace.tracks` follows it already."""
    first_row: int = 0
    num_slices: int = 0
    level_rows: tuple[int, ...] = (0,)
    """(num_levels + 1,): slices of level k are rows level_rows[k] to level_rows[k + 1]."""

    @property
    def num_levels(self) -> int:
        """Depth of nesting; 0 without slices."""
        return len(self.level_rows) - 1


@dataclass(frozen=True, eq=False)
class Slices(Table):
    """What took a time; columns of equal length, sorted by (track, level, start)."""

    track: Ints  # Index in `Trace.tracks`
    level: Ints
    """Depth in its track; 0 outermost."""
    start_ns: Ints
    duration_ns: Ints  # Never negative
    name: Ints  # Row of `Trace.strings`
    category: Ints
    """Row of `Trace.strings`; the empty text where the source gives none."""
    parent: Ints
    """Row of the innermost slice of the track that holds it whole, or NOTHING.

    Its level is lower, by more than one where siblings overlap without nesting.
    """
    args: Ints
    """Handle for `Trace.args`, or NOTHING."""

    def starts(self, rows: Ints | slice = slice(None)) -> Ints:
        """Of some of them, in 64 bits."""
        starts: Ints = self.start_ns[rows].astype(np.int64)
        return starts

    def ends(self, rows: Ints | slice = slice(None)) -> Ints:
        """Where some of them end."""
        return self.starts(rows) + self.duration_ns[rows]

    def ranges(self, rows: Ints | slice = slice(None)) -> Ints:
        """(rows, 2): where some of them begin and end."""
        return np.stack((self.starts(rows), self.ends(rows)), axis=1)

    @cached_property
    def by_level(self) -> tuple[Ints, ...]:
        """Rows of each level over all tracks, ascending; the outermost level first."""
        order = np.argsort(self.level, kind="stable")
        return tuple(np.split(order, np.cumsum(np.bincount(self.level))[:-1]))


@dataclass(frozen=True, slots=True, eq=False)
class Instants(Table):
    """What happened at one time; columns of equal length, sorted by (track, time)."""

    track: Ints
    time_ns: Ints
    name: Ints
    category: Ints
    args: Ints


@dataclass(frozen=True, slots=True)
class Series:
    """One line of numbers of a counter."""

    track: int
    """Index in `Trace.tracks`, of kind "counter"; series of one counter share it."""
    name: str
    first_row: int
    num_points: int


@dataclass(frozen=True, slots=True, eq=False)
class Counters(Table):
    """Points of all series, one series after the other, each sorted by time."""

    time_ns: Ints
    value: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Flows(Table):
    """Arrows between slices; columns of equal length, sorted by `from_ns`."""

    category: Ints
    """Row of `Trace.strings`: `fwdbwd`, `ac2g`, ..."""
    from_row: Ints
    """Slice it leaves, or NOTHING where none lies there."""
    to_row: Ints
    from_track: Ints
    to_track: Ints
    from_ns: Ints


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of the source that was set right or left out."""

    what: str
    """With what was done about it."""
    count: int = 1
    where: str = ""
    """Of the first: `event 17`, `byte 1234`."""
    event: int = NOTHING
    """Handle of the first slice's arguments, where one is meant."""
    is_usual: bool = False
    """Nothing is wrong with the source: recording began or ended amid what ran."""


@dataclass(frozen=True, slots=True)
class TraceFacts:
    """What the source says of itself; empty or NOTHING where it does not."""

    rank: int = NOTHING
    world_size: int = NOTHING
    host_name: str = ""
    trace_id: str = ""
    backend: str = ""
    devices: tuple[Mapping[str, Any], ...] = ()  # `deviceProperties` as they are
    distributed: Mapping[str, Any] = field(default_factory=dict)
    """`distributedInfo` with lists where older traces have text."""
    flags: Mapping[str, bool] = field(default_factory=dict)
    """with_stack, profile_memory, record_shapes, with_modules, with_flops."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Everything else beside the events, cut where it is long."""
    base_time_ns: int = 0
    """`baseTimeNanoseconds`; 0 where there is none."""
    resolution_ns: int = 1
    """Of its times: 1, or 1,000 where all are whole microseconds."""


@dataclass(frozen=True, slots=True)
class Link:
    """What a slice is connected with."""

    kind: LinkKind
    category: str
    """Of the flow, or `correlation`."""
    row: int
    outgoing: bool
    """Whether it leads from the chosen slice to the other one."""


@dataclass(frozen=True, eq=False)
class Trace:
    tracks: tuple[Track, ...]
    strings: Sequence[str]
    slices: Slices
    instants: Instants
    series: tuple[Series, ...]
    counters: Counters
    flows: Flows
    operators: Operators
    launches: Launches
    device_work: DeviceWork
    synchronisations: Synchronisations
    collectives: Collectives
    memory: MemoryEvents
    replays: Replays = NO_REPLAYS
    base_ns: int = 0
    """What times count from, in nanoseconds since 1970 if `has_wall_clock`."""
    has_wall_clock: bool = True
    """Whether times can be compared with those of other traces."""
    start_ns: int = 0
    """Of the first that is shown; relative, as all times."""
    end_ns: int = 0
    facts: TraceFacts = TraceFacts()
    problems: tuple[Problem, ...] = ()
    num_events: Mapping[str, int] = field(default_factory=dict)
    """Events of the source by phase and category: `X|cpu_op`, `M|None`."""
    num_overlapping: int = 0
    """Slices that begin in another of their track and end after it."""
    args: ArgsSource | None = None

    def name_of(self, row: int) -> str:
        """The name of a slice."""
        return self.strings[int(self.slices.name[row])]

    def category_of(self, row: int) -> str:
        """The category of a slice."""
        return self.strings[int(self.slices.category[row])]

    def args_of(self, row: int) -> Mapping[str, Any]:
        """All arguments of a slice; empty where it has none.

        Raises:
            OSError: the source is no longer as it was.
        """
        return self.args_at(int(self.slices.args[row]))

    def args_at(self, handle: int) -> Mapping[str, Any]:
        """All arguments by a handle of an `args` column.

        Raises:
            OSError: the source is no longer as it was.
        """
        return {} if handle < 0 or self.args is None else self.args(handle)

    def rows_of_level(
        self, track: int, level: int, start_ns: int, end_ns: int
    ) -> tuple[int, int]:
        """First and one past the last row of a level that touch a range of time."""
        rows = self.tracks[track].level_rows
        first, stop = rows[level], rows[level + 1]
        starts = self.slices.start_ns[first:stop]
        end = int(np.searchsorted(starts, end_ns, "right"))
        begin = max(int(np.searchsorted(starts, start_ns, "left")) - 1, 0)
        # Only one that began before the range can reach into it.
        if begin < end and _end(self.slices, first + begin) < start_ns:
            begin += 1
        return first + begin, first + end

    def self_ns(self, row: int) -> int:
        """The time of a slice without that of the slices directly in it."""
        children = self.children_of(row)
        inner = int(self.slices.duration_ns[children].sum(dtype=np.int64))
        return max(int(self.slices.duration_ns[row]) - inner, 0)

    def children_of(self, row: int) -> Ints:
        """Rows of the slices directly in one, ascending."""
        order, parents = self._by_parent
        first, stop = np.searchsorted(parents, (row, row + 1))
        return np.sort(order[int(first) : int(stop)])

    def links_of(self, row: int) -> tuple[Link, ...]:
        """Launch and kernel, forward and backward, and other arrows of one slice."""
        links = [
            Link("launch", "correlation", other, outgoing)
            for column, outgoing in ((0, True), (1, False))
            for other in self._launches_of(row, column)
        ]
        replays = self.replays
        links += [
            Link("captured", "correlation", int(other), row in replays.caller)
            for other in (
                *replays.caller[replays.row == row],
                *replays.row[replays.caller == row],
            )
        ]
        linked = {link.row for link in links}
        for flow in np.flatnonzero(
            (self.flows.from_row == row) | (self.flows.to_row == row)
        ).tolist():
            outgoing = int(self.flows.from_row[flow]) == row
            ends = self.flows.to_row if outgoing else self.flows.from_row
            other, category = (
                int(ends[flow]),
                self.strings[int(self.flows.category[flow])],
            )
            if other != NOTHING and other not in linked:
                kind: LinkKind = "fwdbwd" if category == "fwdbwd" else "flow"
                links.append(Link(kind, category, other, outgoing))
        return tuple(links)

    def _launches_of(self, row: int, column: int) -> list[int]:
        """The other ends of pairs that have a slice at one end."""
        pairs = self.launch_pairs
        others: list[int] = pairs[pairs[:, column] == row, 1 - column].tolist()
        return others

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show; its problems say why."""
        shown = (self.slices, self.instants, self.counters, self.memory)
        return not any(len(table) for table in shown)

    @cached_property
    def _by_parent(self) -> tuple[Ints, Ints]:
        """Rows ordered by their parents, and these."""
        order = np.argsort(self.slices.parent, kind="stable").astype(np.int32)
        return order, self.slices.parent[order]

    @cached_property
    def launch_pairs(self) -> Ints:
        """(pairs, 2): a slice that launched and what ran on a device, by correlation."""
        return _paired(self.launches, self.device_work)


def _end(slices: Slices, row: int) -> int:
    return int(slices.start_ns[row]) + int(slices.duration_ns[row])


def _paired(launches: Launches, work: DeviceWork) -> Ints:
    """Rows of both that have the same correlation; a launch may start several."""
    valid = launches.correlation > 0
    # Of launches with one correlation (a runtime call and the driver's in it) the
    # first that was made counts.
    correlations, first = np.unique(launches.correlation[valid], return_index=True)
    place = places_in(correlations, work.correlation)
    launched = launches.row[valid][first][place[place != NOTHING]]
    pairs = np.stack((launched, work.row[place != NOTHING]), axis=1)
    return pairs.astype(np.int64)
