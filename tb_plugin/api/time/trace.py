"""Responses about what ran when: tracks of slices and counters of many ranks, one clock."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
    U16Column,
    Unit,
)
from memboard.tb_plugin.api.tables import TableRows

TraceTrackKind: TypeAlias = Literal[
    "host", "device", "python", "span", "counter", "other"
]

TraceSourceKind: TypeAlias = Literal["trace", "spans", "counters"]
"""trace: a profiler's file. spans: what the recording itself timed. counters: numbers of
the recording's step and host tables over time."""

TraceFamily: TypeAlias = Literal[
    "kernel",
    "operator",
    "runtime",
    "python",
    "communication",
    "memory",
    "step",
    "forward",
    "backward",
    "optimizer",
    "dataloader",
    "annotation",
    "oom",
    "checkpoint",
    "instant",
    "other",
]
"""Kind of work of a slice: its colour. runtime: calls that launch work or wait for
it. memory: copies and fills on a device. oom, checkpoint, instant: of what takes no time."""

INSTANTS_LEVEL: Final = -1
"""Instants of a track lie above its outermost slices. Their rows are below 0, too."""

TraceReduced: TypeAlias = Literal["exact", "highest", "mean"]

TraceState: TypeAlias = Literal["opening", "ready", "failed"]


class TraceClock(Struct, frozen=True):
    """How a source's clock was put on the common one."""

    method: str
    """reference (rank 0's own), distributed, same_host, wall; or none: its times are no
    wall clock's, so it was put where the others begin."""
    offset_ns: float
    """What was added to its own times."""
    error_ns: float | None
    """How far off that may be; None: nobody measured it."""


class TraceSource(Struct, frozen=True, kw_only=True):
    """Something that holds tracks of one rank."""

    id: str
    kind: TraceSourceKind
    name: str
    """A file's name, or `spans`; may hold any text."""
    title: str
    rank: int | None
    cycle: int | None = None
    """The profiler's cycle it was traced in."""
    state: TraceState = "ready"
    progress: float = 1.0  # 0 to 1
    doing: str = ""
    problem: Problem | None = None
    """Why it failed; the others are shown."""
    num_bytes: float = 0.0
    num_slices: int = 0
    start_ns: float = 0.0
    """Since `TraceResponse.base_ns`; with end_ns; both 0 until it is ready."""
    end_ns: float = 0.0
    clock: TraceClock | None = None
    """None until it is ready."""
    notes: tuple[str, ...] = ()
    """What of it was set right or left out."""
    facts: tuple[str, ...] = ()
    """Its size and its clock in words."""
    has_file: bool = False


class TraceTrack(Struct, frozen=True, kw_only=True):
    """A thread, a stream, the spans of a recorder, or a counter."""

    source: int  # Index in `TraceResponse.sources`
    index: int
    """In its source: what `tracks` asks for."""
    key: str  # `id:index`
    name: str
    """May hold any text; likewise `process`."""
    process: str
    kind: TraceTrackKind
    rank: int | None
    device: int | None = None
    stream: int | None = None
    num_slices: int = 0
    num_levels: int = 0
    num_instants: int = 0
    unit: Unit | None = None
    most: float | None = None
    """A counter's highest value anywhere."""
    least: float | None = None


class TraceSteps(Columns, frozen=True):
    """Training steps; columns of equal length, by start; of the first rank shown."""

    number: I32Column
    start_ns: F64Column  # Since `TraceResponse.base_ns`
    end_ns: F64Column


class TraceFocus(Struct, frozen=True):
    """What is shown first: a step, without the empty time at its ends."""

    words: str
    """Which step of which rank that is, and why; empty: no step is marked."""
    start_ns: float  # Since `TraceResponse.base_ns`, as `end_ns`
    end_ns: float


class TraceChoice(Struct, frozen=True):
    """A trace or spans that a run has, shown or not."""

    id: str
    kind: TraceSourceKind
    name: str
    rank: int | None
    cycle: int | None
    num_bytes: float
    shown: bool


class TraceResponse(Struct, frozen=True):
    """Route `/trace` (run, rank, ranks, cycle, step, source): what is on the axis, and how far it is.

    Asking opens the sources; until none is `opening` the next answer has more.
    """

    run: RunSummary
    base_ns: str
    """A whole number, as a text because it needs 61 bits: nanoseconds since 1970 at 0."""
    end_ns: float
    """End of the last slice, since `base_ns`."""
    sources: tuple[TraceSource, ...]
    tracks: tuple[TraceTrack, ...]
    """By rank, source and the source's own order."""
    summary: str
    """How much there is, as a sentence."""
    steps: TraceSteps
    focus: TraceFocus | None
    """None: nothing is open yet."""
    choices: tuple[TraceChoice, ...]
    """Every file and recording of spans there is, at most 2,000."""
    num_ranks: int
    shown_ranks: tuple[int, ...]
    problems: tuple[Problem, ...]
    """Of files that no source could be made of."""
    still_reading: bool
    """The run is still being read: there may be more."""
    perfetto: Literal["hosted", "local"]
    """Where `Open in Perfetto` leads: to ui.perfetto.dev, or the build given by flag."""


class TraceLane(Struct, frozen=True):
    """A level of a track in a tile."""

    track: str  # `id:index`, as in `tracks`
    level: int  # `INSTANTS_LEVEL`: of its instants


class TraceLine(Columns, frozen=True):
    """A counter in a tile: it has a value from one point to the next."""

    track: str
    series: str
    """Of several series of one counter: which; may hold any text."""
    time_ns: F64Column
    """Since `t0` of the tile."""
    value: F64Column
    """Where several points fall into one pixel: one of them, as `reduced` says."""
    reduced: TraceReduced
    """exact: every point of the window is there. highest: of each pixel. mean: over the
    time of each pixel; so are shares of time."""


class TraceSlicesResponse(Columns, frozen=True):
    """Route `/trace_slices` (run, tracks, t0, t1, px): what is drawn in a window of time.

    A piece is a slice, or a block: short slices of one level that lie next to each
    other. Which ones depends on `zoom` alone. Columns are by piece, in order of lanes.
    Instants are pieces without duration; those that a few pixels cannot tell apart are
    one, of the first of them.
    """

    t0: str
    """Nanoseconds since 1970, a whole number."""
    unit_ns: float
    """What start and duration count: 1 for windows below 2 seconds."""
    zoom: int
    """Of the coarsest source: pieces of one slice are at least 2^zoom ns."""
    lanes: tuple[TraceLane, ...]
    lane_start: I32Column
    """One more than lanes: where the pieces of each begin."""
    start: I32Column
    """Units since `t0`; below 0: before it."""
    duration: I32Column
    row: I32Column
    """The slice; of a block its longest."""
    name: U16Column
    """Index in `names`: of the slice; of a block, of its longest; 65,535: of too many."""
    family: U8Column  # Index in `families`
    count: I32Column
    busy: I32Column
    """Units: their durations summed up."""
    names: tuple[str, ...]
    """At most 160 characters each; may hold any text."""
    families: tuple[TraceFamily, ...]
    lines: tuple[TraceLine, ...]


class TraceArg(Struct, frozen=True):
    """One argument of a slice."""

    name: str
    value: str
    """As JSON where it is no text; at most 4,000 characters."""


class TracePartner(Struct, frozen=True):
    """A slice that stands in a relation to another one."""

    relation: Literal["parent", "launch", "captured", "fwdbwd", "flow"]
    words: str
    """How it is related: `launched by`."""
    when: str
    """How long before or after: `12.0 µs into it`."""
    category: str
    outgoing: bool
    """Whether an arrow leads to it."""
    source: str
    row: int
    track: str  # `id:index`
    level: int
    name: str
    start_ns: float
    """Since the query's slice began."""
    duration_ns: float


class TraceSliceResponse(Struct, frozen=True):
    """Route `/trace_slice` (run, source, row): everything of one slice or instant."""

    source: str
    row: int
    track: str
    level: int
    name: str
    category: str
    family: TraceFamily
    start_ns: str
    """Nanoseconds since 1970 on the common clock, a whole number."""
    duration_ns: float
    self_ns: float
    """Without the slices directly in it."""
    num_children: int
    args: tuple[TraceArg, ...]
    args_problem: str
    """Why the arguments cannot be read; empty where they can."""
    stack: tuple[TracePartner, ...]
    """The slices it lies in, innermost first; at most 200. Their times are since those
    of the slice inside, or since the instant."""
    partners: tuple[TracePartner, ...]  # At most 200


class TraceSearchResponse(Columns, frozen=True):
    """Route `/trace_search` (run, tracks, text, only): what has a text in its name.

    Columns by hit, in order of time; at most 10,000. `only=instants` leaves slices out,
    and then needs no text.
    """

    t0: str
    num_hits: int
    num_names: int
    """Different names among those in the columns."""
    tracks: tuple[str, ...]  # `id:index`
    track: U16Column  # Index in `tracks`
    level: I32Column
    row: I32Column
    start_ns: F64Column  # Since `t0`
    duration_ns: F64Column


class TraceRangeResponse(Columns, frozen=True):
    """Route `/trace_range` (run, tracks, t0, t1, by): sums by name over a range of time.

    Rows by name, or with `by=track` also by track, longest in all first; at most 20,000.
    """

    table: TableRows
    row: I32Column
    """The longest slice of each name."""
    source: U16Column
    """Index in `sources`: where it is."""
    sources: tuple[str, ...]


class TraceTable(Struct, frozen=True):
    """What an analysis says of one trace."""

    state: TraceState  # `opening`: ask again
    sentences: tuple[str, ...]
    """Of each device: how idle it was, why, and what helps; what the path is made of."""
    table: TableRows
    """Empty where there is nothing to tell; at most 200 rows."""
    problems: tuple[Problem, ...] = ()
    """What of the trace is left out, or set right."""


class TraceIdleResponse(TraceTable, frozen=True):
    """Route `/trace_idle` (run, source, rank): devices, each before its streams."""


class TracePathResponse(TraceTable, frozen=True):
    """Route `/trace_path` (run, source, rank, step): the critical path, by name."""
