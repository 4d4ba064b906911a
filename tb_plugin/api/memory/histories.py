"""Responses about allocator histories: which there are, and what one of them says.

A *history* is one allocator snapshot with the events that led to it. A *moment* is the
index of an event of one device and means the state just after it; -1 is the state before
all of them.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
)
from memboard.tb_plugin.api.memory.calls import HistoryReference
from memboard.tb_plugin.api.overview import SourceStatus
from memboard.tb_plugin.api.tables import TableRows

HistoryOrigin: TypeAlias = Literal[
    "call", "by_hand", "oom", "exception", "signal", "file"
]
"""Its origin: a collected call's side; `rec.snapshot`; an out-of-memory error; an
exception nobody caught; a signal that ended the process. `file`: another tool wrote it."""

HistoryState: TypeAlias = Literal["closed", "opening", "ready", "failed"]
"""closed: nobody opened it yet."""

HistoryLevel: TypeAlias = Literal["active", "allocated", "reserved"]
"""As torch counts: active until free_completed, allocated until free_requested; reserved
is what the segments take of the device."""

HistoryMarkKind: TypeAlias = Literal["oom", "snapshot", "annotation", "step", "tag"]
"""An event `oom` or `snapshot`; a span of `external_annotations`; a step of our tags;
a span of events whose `user_metadata` is the program's own."""


class HistoryChoice(Struct, frozen=True):
    """One history of the list."""

    reference: HistoryReference
    """`id` names it in requests (`history`)."""
    origin: HistoryOrigin
    state: HistoryState
    problem: str
    """Why it cannot be opened, where it failed; else empty."""


class HistoriesResponse(Struct, frozen=True):
    """Route `/histories` (run, rank): every history of a run, of all ranks, by time."""

    run: RunSummary
    histories: tuple[HistoryChoice, ...]  # The newest 1,000
    num_histories: int
    """All that were found so far."""
    ranks: tuple[int, ...]
    """Ranks that have any, ascending, whatever `rank` asks for."""
    default: str | None
    """`id` of what is opened first: the first out-of-memory error's, else the newest."""
    still_reading: bool
    """Files of some ranks were not looked through yet: ask again."""
    absent: tuple[SourceStatus, ...]
    """Why there is none, or less than could be, and how to record it."""
    problems: tuple[Problem, ...]


class HistoryPeak(Struct, frozen=True):
    """The highest level of one kind."""

    level: HistoryLevel
    bytes: float
    """active and allocated: of blocks, as torch counts them; pictures show requests."""
    moment: int
    """The first event that reached it; -1: it was so before all of them."""


class HistoryMarks(Columns, frozen=True):
    """Events and spans that have names; columns of equal length, by `moment`."""

    kind: U8Column  # Index in `kinds`
    kinds: tuple[HistoryMarkKind, ...]
    moment: I32Column
    """Of spans: the last event before it began, -1 where it began before all."""
    end: I32Column
    """Of spans: the last event of it; equal to `moment` where it is no span."""
    label: I32Column  # Index in `labels`
    labels: tuple[str, ...]
    """May hold any text, at most 200 characters each."""
    bytes: F64Column
    """oom: requested; snapshot: active; else NaN."""
    device_free: F64Column
    """oom: bytes the device had free; else NaN."""
    step: F64Column
    """The step under way; NaN where unknown."""
    num_marks: int
    """All of the device. Of a whole history the columns hold at most 2,000, of a part of
    it (`AllocationsResponse`) 600: out-of-memory errors first, then, everywhere in it,
    the longest."""


class HistoryCurve(Columns, frozen=True):
    """The whole history in at most 2,000 columns of equally many events."""

    event: I32Column
    """First event of each column."""
    peak: I32Column
    """The event inside it with the highest active level."""
    active: F64Column
    """Bytes at `peak`, of blocks as torch counts them; likewise `allocated`."""
    allocated: F64Column
    """Highest bytes inside the column."""
    reserved: F64Column
    """Highest bytes inside the column."""
    time_ms: F64Column
    """Since the epoch, of the first event; NaN where the file has no times."""


class HistoryNote(Struct, frozen=True):
    """A sentence about what pictures of a history show or lack."""

    text: str
    warns: bool
    """Something in the file is wrong, rather than not there."""


class HistoryDevice(Struct, frozen=True):
    """One device of a history, or pinned host memory as if it were one."""

    device: int
    """-1: pinned host memory; `reserved` is what is pinned, its cached blocks too."""
    title: str
    """In sentences: `device 0`, `pinned host memory`."""
    num_events: int
    num_allocations: int
    """With those from before the first event; `life` counts to this."""
    has_times: bool
    first_ms: float | None
    """Since the epoch, of the first event; None without times."""
    last_ms: float | None
    capacity_bytes: float | None
    """Of the device; None where it was not recorded."""
    active_bytes: float
    """At the end, blocks as rounded by the allocator; likewise the next two."""
    allocated_bytes: float
    reserved_bytes: float
    num_before: int
    """Allocations from before the first event: their stack and birth are not known,
    unless they were still there at the end."""
    before_bytes: float
    num_lost: int
    """Frees of what was free already: events in between were lost, or are wrong."""
    rounding_bytes: float
    """What blocks have beyond their requests, which pictures show, at the active peak."""
    notes: tuple[HistoryNote, ...]
    """What is missing of the history, or odd about it."""
    peaks: tuple[HistoryPeak, ...]  # One per `HistoryLevel`
    marks: HistoryMarks
    curve: HistoryCurve


class HistoryOddity(Struct, frozen=True):
    """Something that contradicts itself in the file: set right, or drawn as it is."""

    what: str
    """In words that go on "The file contradicts itself: ..."."""
    count: int


class HistorySetting(Struct, frozen=True):
    """One of the allocator's settings."""

    name: str
    value: str
    """As text; may hold any."""


class HistoryFacts(Struct, frozen=True):
    """What a history that was opened says."""

    devices: tuple[HistoryDevice, ...]
    """By number, pinned host memory last."""
    default_device: int | None
    """Where an out-of-memory error happened, else the one with the highest peak; None:
    there is no device."""
    streams: tuple[str, ...]
    """By row: `default`, or its pointer in hexadecimal."""
    pools: tuple[str, ...]
    """By row: `default` (always row 0), or the private pool's id, e.g. `(0, 1)`."""
    settings: tuple[HistorySetting, ...]
    num_stacks: int
    holder_table: TableRows
    """Of live bytes by stack at the pointer: the browser alone knows its rows."""
    frame_table: TableRows
    """The same by frame, to choose one of them."""


class HistoryResponse(Struct, frozen=True):
    """Route `/history` (run, history, again): opens it, and says what it holds.

    `again`: any number that was not used before, e.g. the time, has a history that could
    not be opened tried once more.

    Answers within about a second: while `state` is `opening`, ask again.
    """

    run: RunSummary
    reference: HistoryReference
    origin: HistoryOrigin
    state: HistoryState
    progress: float  # 0 to 1
    doing: str
    """What is being done, in words; empty when it is ready."""
    facts: HistoryFacts | None
    """None unless it is ready."""
    problem: Problem | None
    """Why it failed, or what could not be read of it."""
