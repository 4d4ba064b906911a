"""Responses about a run as a whole."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from memboard.tb_plugin.api.base import (
    CapacityKind,
    Columns,
    F64Column,
    I32Column,
    Problem,
    RunSummary,
    U8Column,
    Unit,
)
from memboard.tb_plugin.api.findings import Place
from memboard.tb_plugin.api.tables import TableRows


class Attempt(Struct, frozen=True):
    """One start of the job in the same logdir."""

    index: int  # 1 for the first
    started_ms: float
    ended_ms: float | None
    """None while it may still run."""
    first_step: int | None
    last_step: int | None
    num_ranks: int
    ended: Literal["closed", "exception", "signal", "lost", "running"]
    """The worst end of its ranks; exception: nobody caught it, or it left `record`'s
    with-block; signal: one that ends the process, where `oom.on_sigterm` records it;
    lost: no closing record and no new rows, killed or its machine or disk was lost."""
    overlaps_previous: bool
    """Two jobs wrote into this run at the same time."""

    @property
    def seconds(self) -> float | None:
        """None: it may still run."""
        if self.ended_ms is None:
            return None
        return (self.ended_ms - self.started_ms) / 1e3


class Headline(Columns, frozen=True):
    """One of the six headline numbers."""

    key: str
    title: str
    meaning: str
    line: str
    value: float | None
    unit: Unit
    rank: int | None
    """The worst rank, where the number is a rank's."""
    step: int | None
    sparkline: F64Column
    """At most 120 values over the run, of the worst rank."""
    caveats: tuple[str, ...]
    absent_reason: str | None
    """Why there is no value; set exactly when value is None."""
    other_end: float | None = None
    """Where the value is an end of an estimated range, the worse one: the other one."""


class RankStrip(Columns, frozen=True):
    """One entry per rank, in rank order."""

    peak_series: str
    """SeriesInfo.key of the peak shown."""
    peak_label: str
    capacity_kind: CapacityKind
    rank: I32Column
    peak_bytes: F64Column
    capacity_bytes: F64Column
    growth_bytes_per_step: F64Column
    num_ooms: F64Column
    lost: U8Column
    """1 where the rank's last attempt ended without a closing record."""
    median_peak_bytes: float | None
    """Of all ranks of the run, also where one is shown; None too while some are still
    being read."""
    outliers: tuple[int, ...]
    """Ranks shown that are far above all others (see analysis/ranks/outliers.py), worst first, at
    most 16."""
    num_unread: int
    """Ranks still being read: nothing is said of all ranks before it is 0."""
    table: TableRows
    """The same and more, by rank."""


class SourceStatus(Struct, frozen=True):
    """One source: was it recorded, and if not, why and what to do."""

    source: str
    status: Literal["recorded", "absent", "off", "failed"]
    num_ranks: int
    reason: str
    remedy: str
    cost: str = ""


class RecordedSource(Struct, frozen=True):
    """A source that was recorded."""

    source: str
    num_ranks: int
    cost: str
    elsewhere: str
    """Why other ranks leave it out, as a host is measured once; empty where none do."""


class MissingSources(Struct, frozen=True):
    """Sources that are missing on as many ranks for the same reason."""

    sources: tuple[str, ...]
    status: Literal["failed", "absent", "off", "elsewhere"]
    """elsewhere: left out here because another rank records it."""
    num_ranks: int
    reason: str
    remedy: str


class LostSteps(Struct, frozen=True):
    """Steps of one phase, one after the other, that lay in a damaged part of a file."""

    phase: str
    """Empty: not known, nor are the steps."""
    first_step: int | None
    """None: not known, as nothing before it is left."""
    last_step: int | None
    """None: not known, as nothing behind it is left."""
    num_steps: int


class LostTrace(Struct, frozen=True):
    """A cycle of the schedule that has no trace of torch's profiler."""

    cycle: int
    first_step: int | None
    """None: the recording does not say; likewise the next."""
    last_step: int | None
    why: str


class RankLoss(Struct, frozen=True, kw_only=True):
    """Steps and traces of one rank and start that the recording lacks, or may lack."""

    rank: int
    attempt: int  # `Attempt.index`
    num_steps: int
    """All that training took, of all phases; of a rank that runs or was stopped, as far as
    that is known."""
    num_dropped: int
    """Found no room in the queue, or a fault of the recorder cost them."""
    num_unwritten: int
    """Waited when the program ended, and were not written."""
    num_damaged: int
    """Were written, and cannot be read, as far as was looked."""
    damaged: tuple[LostSteps, ...]
    num_summed_up: int
    """Behind `max_file_bytes`: not lost, but known by sums and maxima alone."""
    is_stopped: bool
    """It did not close its recording and is not running: nobody knows what is cut off."""
    cut_seconds: float
    """Where it was stopped: the longest that a step waits for the disk; else 0."""
    cut_steps: float | None
    """About so many steps in that time, at the median pace; None where that is not known."""
    num_traces: int
    """Cycles whose steps torch's profiler was to trace."""
    num_lost_traces: int
    """Those of them that have no trace."""
    lost_traces: tuple[LostTrace, ...]

    @property
    def num_lost(self) -> int:
        """Steps that are missing for sure."""
        return self.num_dropped + self.num_unwritten + self.num_damaged


class RunFact(Struct, frozen=True):
    """A fact of the run's headers, e.g. torch version, as text to show."""

    label: str
    value: str


class LedgerRow(Struct, frozen=True):
    """What takes memory of a real device, of a run on a virtual one."""

    label: str
    low_bytes: float | None
    """None: nobody knows, it did not run its steps; likewise the next."""
    high_bytes: float | None
    mark: str  # `estimated`, `measured` or nothing
    source: str
    """Where the size comes from."""
    is_total: bool = False


class Prediction(Struct, frozen=True):
    """Whether a run on a virtual GPU fits a real one, as `memboard run --on` says it."""

    fit: Literal["fits", "does not fit", "too close to call", "cannot say"]
    """Of all ranks of the query: the worst counts."""
    sentences: tuple[str, ...]
    """Why, whose answer it is among several, and what would decide."""
    rows: tuple[LedgerRow, ...]


class EmptyTab(Struct, frozen=True):
    """A tab of the page that this run has no data for."""

    tab: str
    """Its word in the address."""
    missing: str
    """What is not there: the title of the empty page."""
    how: str
    """One sentence: how to get it."""


class OverviewResponse(Struct, frozen=True):
    # Route `/overview` (run, rank)

    run: RunSummary
    rank: int | None
    headlines: tuple[Headline, ...]
    strip: RankStrip
    """Of all ranks, also where the query names one."""
    recorded: tuple[RecordedSource, ...]
    missing: tuple[MissingSources, ...]
    about: str
    """Of files that other tools wrote: what they tell, and what they do not."""
    attempts: tuple[Attempt, ...]
    attempt_table: TableRows
    """The same, as the page lists them."""
    losses: tuple[RankLoss, ...]
    """Of ranks that lack steps, or may lack some."""
    problems: tuple[Problem, ...]
    logdir_problems: tuple[Problem, ...]
    """Of files and directories that belong to no run."""
    facts: tuple[RunFact, ...]
    planted: tuple[str, ...]
    """Simulated runs say which faults were planted; empty for real runs."""
    empty: tuple[EmptyTab, ...]
    """Tabs without data; none of which that is not certain."""
    prediction: Prediction | None
    """Of a run on a virtual GPU; None: of a real one, or nothing was predicted."""


class PeakPart(Struct, frozen=True):
    """Bytes of a category, of a line or of a module at a peak."""

    label: str
    """Empty: no stack was recorded."""
    category: str
    """Of most of its bytes; `unknown` where no category is known."""
    bytes: float


class PeakComposition(Struct, frozen=True, kw_only=True):
    """All that was live at a peak, by category, and the largest holders of it."""

    title: str
    """Which peak: a tracked step, or a history, seldom has the run's highest one."""
    sentence: str
    """The largest part of it, and of which peak."""
    bytes: float
    """What the categories sum to."""
    reserved_bytes: float | None
    """Of the allocator at the same moment; None: modules were tracked, not the allocator."""
    capacity_bytes: float | None
    categories: tuple[PeakPart, ...]
    """By their bytes, the largest first."""
    holders_title: str
    holders: tuple[PeakPart, ...]
    """Modules without those below them, or lines; the largest first, at most eight."""
    not_recorded: tuple[str, ...]
    """What the source lacks, and how to record it: a sentence each."""
    place: Place


class PeakCompositionResponse(Struct, frozen=True):
    """Route `/peak_composition` (run, rank): what the memory at the peak is made of.

    Of a recording: its highest tracked step, else its newest history that no error ended;
    of snapshots the fullest file. An out-of-memory error has all this in its finding.
    """

    run: RunSummary
    composition: PeakComposition | None
    how: str
    """Why there is none, and how to record it; empty where nothing would help."""
    still_reading: bool
