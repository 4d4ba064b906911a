"""Numbers about one rank in one attempt, made once from its columns and then kept.

A run of thousands of ranks is summed up from these; while it is live, only the ranks
that wrote something new are read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.arrays import median, neighbour_spread
from memboard.tb_plugin.analysis.findings.growth import GrowingRank
from memboard.tb_plugin.analysis.series.buckets import during
from memboard.tb_plugin.analysis.series.growth import (
    STILL,
    WARMUP_FRACTION,
    Trend,
    trend,
)
from memboard.tb_plugin.analysis.series.profiler_steps import usual_columns
from memboard.tb_plugin.analysis.series.rows import NO_STEP
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.ranks.columns import (
    ALLOCATED,
    ALLOCATED_NOW,
    CPU,
    DEVICE_USED,
    FULL_COLLECTIONS,
    LATEST,
    NUM_WORKERS,
    PEAKS,
    PINNED,
    RESERVED,
    RESERVED_NOW,
    RSS,
    STEP_TIME,
    WANTED,
    WORKERS,
)
from memboard.tb_plugin.facts.ranks.error_states import error_states
from memboard.tb_plugin.facts.steps.profiler_steps import profiler_steps_of
from memboard.tb_plugin.formats.recording.series import SeriesKey, main_phase, stamp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from memboard.collector.format.records import Schema
    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.time.steps import ProfilerStep
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.facts.ranks.error_states import ErrorState
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader

_CAPTURES_SECONDS: Final = 2.0
"""Time for reading which steps of a file are the profiler's own."""

_HOST_SHARE: Final = 0.1
"""Of resident memory at first: what it must grow by, or it is not said to."""
_BESIDE_SHARE: Final = 0.25
"""The same beside a device, where a process also grows for other reasons."""
_FIRST_STEPS: Final = 100
"""Every process grows while it starts: within so many steps its memory must double."""


class Reading(NamedTuple):
    """A number, the step it stands at and the rows of the bucket it came from."""

    value: float
    step: int | None
    """None: an error's, of a step that is not known."""
    width: int
    spread: float = 0.0
    """Noise from step to step: `analysis.arrays.neighbour_spread` of the rows."""


@dataclass(slots=True)
class FileFacts:
    """What the overview needs to know of one file."""

    readings: dict[str, Reading] = field(default_factory=dict)
    """By column: the peak, or the median for the columns in `MEDIANS`. A step's time is
    this one on every page.

    A peak of the device or of the process is the highest of the steps and of the state
    at each error.
    """
    fragmentation: Reading | None = None
    """Reserved at its peak less the most that was allocated while it stood there.

    Reserved memory often stands at its peak for thousands of steps; the step that used
    most of it tells what could not be used even then.
    """
    non_torch: Reading | None = None
    """Most that was used on the device beside what torch had reserved then."""
    growth: float = float("nan")
    """Bytes per step of what is allocated when a step ends; of the steps' peaks where that
    is not recorded, and of resident memory without a device."""
    rise: float = float("nan")
    """What that memory rose by in the steps behind the warm-up."""
    growth_steps: int = 0
    late_growth: float = float("nan")
    """Bytes per step in the last third of the steps, where that differs."""
    is_growing: bool = False
    """Whether a device's memory grows for sure, to the end."""
    host_growth: dict[str, Trend] = field(default_factory=dict)
    """Of resident memory, of the process and of its workers, by column: where it grows
    for sure."""
    pinned_rise: float | None = None
    """What pinned memory grew by for sure, 0 where it does not; None: not recorded."""
    num_full_collections: int | None = None
    """Of Python's garbage collector in these steps; None: not recorded."""
    num_workers: int | None = None
    """The most dataloader workers at a time; None: not recorded."""
    num_steps: int = 0
    last_step: int | None = None
    error_states: tuple[ErrorState, ...] = ()
    """In the order they were written."""
    latest: dict[str, float] = field(default_factory=dict)
    """By column: the highest of its last steps."""

    @property
    def rose_for_long(self) -> bool:
        """Whether the pace of all steps explains the rise: most of them took part in it."""
        explained = self.growth * self.growth_steps
        return self.growth > 0 and self.rise > 0 and explained >= STILL * self.rise

    def growing(
        self, rank: int, peak: float, capacity: float | None
    ) -> GrowingRank | None:
        """What is said of a rank with these facts, if it grows."""
        if not self.is_growing:
            return None
        return GrowingRank(
            rank=rank,
            slope=self.growth if np.isnan(self.late_growth) else self.late_growth,
            rise=self.rise,
            num_steps=self.growth_steps,
            last_step=self.last_step or 0,
            peak=peak,
            capacity=capacity,
            num_full_collections=self.num_full_collections,
        )


class _Column(NamedTuple):
    first: npt.NDArray[np.int64]
    last: npt.NDArray[np.int64]
    values: Floats
    width: int


class FactsReader:
    """Facts by file, kept until the file changes."""

    def __init__(self, reader: SeriesReader, cache: Cache) -> None:
        self.series: Final = reader
        self._cache: Final = cache
        self._known: WeakKeyDictionary[RankFile, tuple[object, FileFacts]] = (
            WeakKeyDictionary()
        )

    def of_file(self, file: RankFile, part_of: Budget | None = None) -> FileFacts:
        """The facts of a file as it is now.

        Where captures are left to be read they are made once more the next time, of all
        that was read by then; `part_of` learns it.
        """
        stamped = self._known.get(file)
        stamp = _stamp(file)
        if stamped is None or stamped[0] != stamp:
            columns = self._columns(file)
            facts = _facts(columns)
            budget = Budget(_CAPTURES_SECONDS, part_of)
            if STEP_TIME in columns:
                steps = profiler_steps_of(self.series, file, main_phase(file), budget)
                _include_step_time(facts, columns[STEP_TIME], steps)
            facts.error_states = tuple(error_states(file, self._cache))
            for state in facts.error_states:
                _include(facts, state)
            stamped = self._known[file] = (None if budget.exhausted else stamp, facts)
        return stamped[1]

    def make_missing(self, files: Iterable[RankFile], budget: Budget) -> None:
        """Make the facts of files that have none yet, before any are made anew."""
        for file in files:
            if file not in self._known:
                self.within(file, budget)

    def within(self, file: RankFile, budget: Budget) -> FileFacts | None:
        """The same, if they need not be made or the budget allows to.

        Else what was known of the file when it was last looked at, if it was.
        """
        stamped = self._known.get(file)
        if (stamped is None or stamped[0] != _stamp(file)) and budget.allows():
            return self.of_file(file, budget)
        return None if stamped is None else stamped[1]

    def is_current(self, file: RankFile) -> bool:
        """Whether the facts of a file were made of all that it has now."""
        stamped = self._known.get(file)
        return stamped is not None and stamped[0] == _stamp(file)

    def _columns(self, file: RankFile) -> dict[str, _Column]:
        """The wanted columns the file has, in as few reads as there are blocks."""
        groups: dict[tuple[str, bool], list[str]] = {}
        for schema in file.schemas.values():
            if not schema.rolled_up:
                continue
            if schema.table == STEP_TABLE and schema.phase != main_phase(file):
                continue
            wanted_here = _wanted_of(schema)
            if len({headline for _, headline in wanted_here}) > 1:
                self.series.rollups.decode_tail(
                    file, schema, [n for n, _ in wanted_here]
                )
            for column, headline in wanted_here:
                names = groups.setdefault((schema.table, headline), [])
                if column not in names:
                    names.append(column)
        column_by_name: dict[str, _Column] = {}
        for (table, _), names in groups.items():
            wanted = [f"{column}:{WANTED[column]}" for column in names]
            key = SeriesKey(table, names[0], main_phase(file))
            columns, width = self.series.aggregates(
                file, key, ["step_first", "step_last", *wanted], keep=False
            )
            first = np.asarray(columns["step_first"], np.int64)
            last = np.asarray(columns["step_last"], np.int64)
            for column, aggregate in zip(names, wanted, strict=True):
                values = np.asarray(columns[aggregate], np.float64)
                if column not in column_by_name and not _is_empty(values):
                    column_by_name[column] = _Column(first, last, values, width)
        return column_by_name


def _stamp(file: RankFile) -> object:
    """Changes with the rows of a file, and with the ends that it tells of."""
    return stamp_of(file), len(file.behind.captures.found), len(file.behind.notes)


def _is_empty(values: Floats) -> bool:
    """Whether nothing was recorded; most columns tell by their first row."""
    return len(values) == 0 or (
        bool(np.isnan(values[0])) and bool(np.isnan(values).all())
    )


def _wanted_of(schema: Schema) -> list[tuple[str, bool]]:
    return [(c.name, c.headline) for c in schema.columns if c.name in WANTED]


def _facts(columns: dict[str, _Column]) -> FileFacts:
    facts = FileFacts()
    for column in PEAKS:
        if column in columns:
            facts.readings[column] = _peak(columns[column])
    for column in LATEST:
        if column in columns:
            facts.latest[column] = float(columns[column].values[-1])
    if CPU in columns:
        _include_median(facts, CPU, columns[CPU], columns[CPU].values)
    main = columns.get(ALLOCATED) or columns.get(RSS)
    if main is not None:
        facts.last_step = int(main.last[-1])
        facts.num_steps = len(main.values) * main.width
        if main.first[0] != NO_STEP:
            main_column = columns.get(ALLOCATED_NOW) or main
            rise = trend(main_column.first, main_column.values)
            facts.growth, facts.rise, facts.late_growth = rise[:3]
            facts.growth_steps = rise.num_steps
            facts.is_growing = rise.is_steady and ALLOCATED in columns
    least = _BESIDE_SHARE if ALLOCATED in columns else _HOST_SHARE
    for column in (RSS, WORKERS):
        process = columns.get(column)
        if process is not None and process.first[0] != NO_STEP:
            much = _much(process, least)
            rise = trend(process.first, process.values, least_rise=much)
            if rise.is_steady:
                facts.host_growth[column] = rise
    pinned = columns.get(PINNED)
    if pinned is not None and pinned.first[0] != NO_STEP:
        rise = trend(pinned.first, pinned.values, least_rise=0.0)
        facts.pinned_rise = rise.rise if rise.is_steady else 0.0
    if FULL_COLLECTIONS in columns:
        runs = columns[FULL_COLLECTIONS].values
        facts.num_full_collections = int(np.nanmax(runs) - np.nanmin(runs))
    if NUM_WORKERS in columns:
        facts.num_workers = int(np.nanmax(columns[NUM_WORKERS].values))
    facts.fragmentation = _fragmentation(columns)
    facts.non_torch = _non_torch(columns)
    return facts


def _include(facts: FileFacts, state: ErrorState) -> None:
    """Let the peaks include the state at an error, as if it were one more step."""
    allocated, reserved = state.allocated, state.reserved
    most = facts.readings.get(RESERVED)
    if allocated is not None and reserved is not None:
        unused = Reading(float(max(0, reserved - allocated)), state.step, 1)
        is_higher = most is None or reserved > most.value
        is_equal = most is not None and reserved == most.value
        least = facts.fragmentation
        if is_higher or (is_equal and (least is None or unused.value < least.value)):
            facts.fragmentation = unused
    if state.device_used is not None and state.reserved_now is not None:
        beside = Reading(
            float(max(0, state.device_used - state.reserved_now)), state.step, 1
        )
        facts.non_torch = _higher(facts.non_torch, beside)
    for column, size in state.peaks.items():
        at_error = Reading(size, state.step, 1)
        facts.readings[column] = _higher(facts.readings.get(column), at_error)


def _include_step_time(
    facts: FileFacts, column: _Column, profiled: Sequence[ProfilerStep]
) -> None:
    """The median of the steps behind the warm-up that are not the profiler's own."""
    edges = np.append(column.first, column.last[-1] + 1).astype(np.float64)
    is_usual = usual_columns(profiled, edges)
    is_usual[: int(len(is_usual) * WARMUP_FRACTION)] = False
    _include_median(facts, STEP_TIME, column, column.values[is_usual])


def _include_median(
    facts: FileFacts, headline: str, column: _Column, values: Floats
) -> None:
    present = values[~np.isnan(values)]
    if len(present):
        last = int(column.last[-1])
        spread = neighbour_spread(present)
        facts.readings[headline] = Reading(median(present), last, column.width, spread)


def _higher(peak: Reading | None, at_error: Reading) -> Reading:
    return at_error if peak is None or at_error.value > peak.value else peak


def _much(column: _Column, share: float) -> float:
    """What a process must rise by: what it takes from its host comes and goes in pieces."""
    first = float(column.values[np.argmax(~np.isnan(column.values))])
    least = share if len(column.values) * column.width >= _FIRST_STEPS else 1.0
    return max(0.0, least * first)


def _peak(column: _Column) -> Reading:
    row = _argmax(column.values)
    return Reading(
        float(column.values[row]),
        int(column.first[row]),
        column.width,
        neighbour_spread(column.values[~np.isnan(column.values)]),
    )


def _argmax(values: Floats) -> int:
    """Index of the highest value that is not NaN; there must be one."""
    row = int(np.argmax(values))  # a NaN comes before everything
    return row if values[row] == values[row] else int(np.nanargmax(values))


def _fragmentation(columns: dict[str, _Column]) -> Reading | None:
    reserved, allocated = columns.get(RESERVED), columns.get(ALLOCATED)
    if reserved is None or allocated is None:
        return None
    peak = reserved.values[_argmax(reserved.values)]
    there = np.flatnonzero(reserved.values == peak)
    used = allocated.values[there]
    if np.isnan(used).all():
        return None
    row = int(there[_argmax(used)])
    return Reading(
        float(peak - allocated.values[row]), int(reserved.first[row]), reserved.width
    )


def _non_torch(columns: dict[str, _Column]) -> Reading | None:
    used, reserved = columns.get(DEVICE_USED), columns.get(RESERVED_NOW)
    if used is None or reserved is None:
        return None
    beside = used.values - during(
        used.first, used.last, reserved.first, reserved.values
    )
    if np.isnan(beside).all():
        return None
    row = _argmax(beside)
    width = max(used.width, reserved.width)
    return Reading(max(0.0, float(beside[row])), int(used.first[row]), width)
