"""The ranks and the x axis of a request, and the ranks' rows on that axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import numpy as np
from msgspec.structs import replace

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.series.rows import (
    Rows,
    on_steps,
    on_time,
    with_value,
)
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.contract.parameters import Number, Pixels, Query, Rank, Text
from memboard.tb_plugin.formats.recording.series import (
    DEFAULT_COLUMNS,
    TRAIN_PHASE,
    WALL,
    Clock,
    SeriesKey,
    main_phase,
    schemas_of,
    stamp_of,
)
from memboard.tb_plugin.rank_set import RankSet

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    import numpy.typing as npt

    from memboard.collector.format.records import Header
    from memboard.tb_plugin.api.base import CapacityKind
    from memboard.tb_plugin.api.timeline import SeriesInfo
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.error_states import ErrorState
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import AttemptFiles, Run

XKind: TypeAlias = Literal["step", "relative", "wall"]

_FLAT: Final = "series that never change"
CAPACITY_GROUPS: Final = {"device": "device", "process": "memory", "host": "memory"}


class OfRanksQuery(Query, frozen=True):
    """Ranks of a run: one, some, or where none is named all."""

    rank: Rank | None = None
    ranks: RankSet | None = None

    def wants(self, rank: int) -> bool:
        """Whether it is about a rank."""
        if self.rank is not None:
            return rank == self.rank
        return self.ranks is None or rank in self.ranks


class RanksQuery(OfRanksQuery, frozen=True):
    """Ranks of a run, in one phase."""

    phase: Text | None = None
    """Whose steps are meant; the training phase where none is named."""


class DrawnQuery(RanksQuery, frozen=True):
    """Series of ranks over a range of x, on so many pixels."""

    series: Text | None = None  # `SeriesInfo.key`
    x: XKind = "step"
    x0: Number | None = None
    """In units of x; likewise x1."""
    x1: Number | None = None
    px: Pixels = 1200


class MatrixQuery(DrawnQuery, frozen=True):
    """Cells of ranks and steps, on `rows` pixels of height."""

    rows: Pixels = 800


def prefetcher(reader: SeriesReader, query: RanksQuery) -> Callable[[RankFile], None]:
    """Decodes what the query will draw of a file while its bytes are still at hand."""
    series, on_steps = None, True
    if isinstance(query, DrawnQuery):
        series, on_steps = query.series, query.x == "step"

    def prefetch(file: RankFile) -> None:
        key = _likely_series(file, series, query.phase)
        if key is not None:
            clock = None if on_steps else WALL
            reader.rollup(file, key, clock)
        for schema in file.schemas.values():
            if schema.rolled_up and any(c.name == "num_ooms" for c in schema.columns):
                key = SeriesKey(schema.table, "num_ooms", schema.phase)
                reader.rollup(file, key, None)

    return prefetch


def _likely_series(
    file: RankFile, series: str | None, phase: str | None
) -> SeriesKey | None:
    table, _, column = (series or "").partition("/")
    wanted = [(table, column)] if column else []
    wanted += [(STEP_TABLE, column) for column in DEFAULT_COLUMNS]
    for table, column in wanted:
        key = SeriesKey(table, column, phase or TRAIN_PHASE)
        if schemas_of(file, key):
            return key
    return None


def chosen_ranks(run: Run, query: RanksQuery) -> list[int]:
    """The ranks a request is about, ascending; none where files tell no rank.

    Raises:
        NotFoundError: none of them is in the run.
    """
    ranks = run.ranks
    if not ranks and query.rank is None:
        return []
    ranks = [rank for rank in ranks if query.wants(rank)]
    if not ranks:
        raise NotFoundError(
            "None of these ranks is in the run.",
            f"rank={query.rank}" if query.rank is not None else "ranks",
            which_ranks(run),
        )
    return ranks


def which_ranks(run: Run) -> str:
    """The ranks there are, for a query that names another one."""
    if not run.ranks:
        return "The names of the run's files hold no rank: leave the rank out."
    first, last = run.ranks[0], run.ranks[-1]
    if first == last:
        return f"The run has rank {first} alone."
    return f"The run has ranks {first} to {last}."


@dataclass(frozen=True, slots=True)
class XAxis:
    """One x axis over all attempts of a run."""

    kind: XKind
    clocks: dict[int, Clock | None]
    """By attempt index; None on the step axis."""

    def x_of_event(
        self, attempt: AttemptFiles, step: int | None, time_ns: int
    ) -> float | None:
        """Where an event stands; None where that is not known on this axis."""
        clock = self.clocks[attempt.index]
        if clock is None:
            return None if step is None else float(step)
        return clock.x_at(time_ns)


def x_axis(run: Run, kind: XKind) -> XAxis:
    """The axis of that kind.

    Relative time is the time the job has run: where it was restarted, an attempt
    goes on where the one before it wrote its last row, so that x ascends.
    """
    clocks: dict[int, Clock | None] = {}
    elapsed_ms = 0.0
    for attempt in run.attempts:
        if kind == "step":
            clocks[attempt.index] = None
        elif kind == "wall":
            clocks[attempt.index] = WALL
        else:
            clocks[attempt.index] = Clock(attempt.started_ns, elapsed_ms)
            elapsed_ms += max(0.0, (attempt.last_ns - attempt.started_ns) / 1e6)
    return XAxis(kind, clocks)


def errors_within(
    run: Run, facts: FactsReader, budget: Budget
) -> Callable[[RankFile], Sequence[ErrorState]]:
    """The states of a rank's file at its errors, as far as the budget allows."""
    failed = {(event.rank, event.attempt) for event in run.notes.events("oom")}

    def states(file: RankFile) -> Sequence[ErrorState]:
        if (file.rank, file.attempt) not in failed:
            return ()
        file_facts = facts.within(file, budget)
        return () if file_facts is None else file_facts.error_states

    return states


class RankRows:
    """Rows of one series for many ranks of a run, on one axis.

    The step that runs out of memory is in no table: with `errors`, its state is a row.
    """

    def __init__(
        self,
        reader: SeriesReader,
        run: Run,
        key: SeriesKey,
        axis: XAxis,
        errors: Callable[[RankFile], Sequence[ErrorState]] = lambda _: (),
    ) -> None:
        self._reader = reader
        self._run = run
        self._key = key
        self._axis = axis
        self._errors = errors
        self._repeats = key.table != STEP_TABLE

    def stamps(self, ranks: Iterable[int]) -> Hashable:
        """Changes whenever a file of these ranks holds something new."""
        files = [file for rank in ranks for _, file in self._run.rank_files(rank)]
        clocks = tuple(self._axis.clocks.items())
        errors = tuple(
            states for file in files if (states := tuple(self._errors(file)))
        )
        return self._key, clocks, tuple(stamp_of(file) for file in files), errors

    def rollup(self, rank: int, *, low: bool = False) -> Rows | None:
        """Everything of a rank at the grain that was kept; None where it has nothing."""
        pieces = []
        for attempt, file in self._run.rank_files(rank):
            clock = self._axis.clocks[attempt.index]
            piece = self._reader.rollup(file, self._key, clock, low=low)
            piece = self._with_errors(piece, file, clock)
            if piece is not None:
                pieces.append(piece)
        return self._merged(pieces)

    def refined(
        self, rank: int, coarse: Rows | None, low: float, high: float, budget: Budget
    ) -> Rows | None:
        """The rows in `low..high` themselves; `coarse` where the budget forbids it."""
        pieces = []
        files = self._run.rank_files(rank)
        for index, (attempt, file) in enumerate(files):
            clock = self._axis.clocks[attempt.index]
            reach_low, reach_high = low, high
            if clock is None:
                reach_high = min(high, self._replaced_from(files[index + 1 :]) - 1)
                if self._goes_back(file):
                    # Only all of its rows tell which of them were replaced.
                    reach_low, reach_high = -np.inf, np.inf
            if reach_high < reach_low:
                continue
            piece = self._reader.row_by_row(
                file, self._key, clock, reach_low, reach_high, budget
            )
            if piece is None:
                return coarse
            piece = self._with_errors(piece, file, clock, reach_low, reach_high)
            if piece is not None and len(piece):
                pieces.append(piece)
        merged = self._merged(pieces)
        return coarse if merged is None else merged

    def _with_errors(
        self,
        rows: Rows | None,
        file: RankFile,
        clock: Clock | None,
        low: float = -np.inf,
        high: float = np.inf,
    ) -> Rows | None:
        if self._key.table != STEP_TABLE or self._key.phase != main_phase(file):
            return rows
        for state in self._errors(file):
            value = state.peaks.get(self._key.column)
            x = state.step if clock is None else clock.x_at(state.time_ns)
            if value is not None and x is not None and low <= x <= high:
                rows = with_value(rows, x, value)
        return rows

    def _merged(self, pieces: Sequence[Rows]) -> Rows | None:
        if not pieces:
            return None
        if self._axis.kind == "step":
            merged = on_steps(pieces, repeats=self._repeats)
        else:
            merged = on_time(pieces)
        return merged if len(merged) else None

    def _replaced_from(self, later: Iterable[tuple[AttemptFiles, RankFile]]) -> float:
        """The lowest step that a later attempt ran again."""
        lowest = np.inf
        for _, file in later:
            rows = self._reader.rollup(file, self._key, None)
            if rows is not None:
                lowest = min(lowest, float(rows.first.min()))
        return lowest

    def _goes_back(self, file: RankFile) -> bool:
        rows = self._reader.rollup(file, self._key, None)
        return rows is not None and bool(np.any(rows.first[1:] < rows.last[:-1]))


class Capacity(NamedTuple):
    """What memory may grow to, and what sets that bound."""

    size_bytes: float | None
    kind: CapacityKind


def capacity_of(run: Run, ranks: Iterable[int], group: str) -> Capacity:
    """The smallest device, or memory limit, among the ranks."""
    smallest = Capacity(None, "none")
    for rank in ranks:
        for _, file in run.rank_files(rank)[-1:]:
            capacity = _capacity(file.header, CAPACITY_GROUPS.get(group))
            if capacity.size_bytes is None:
                continue
            if smallest.size_bytes is None or capacity.size_bytes < smallest.size_bytes:
                smallest = capacity
    return smallest


def _capacity(header: Header, kind: str | None) -> Capacity:
    if kind == "device" and header.device_total_bytes is not None:
        return Capacity(float(header.device_total_bytes), "device")
    if kind == "memory" and header.memory_limit_bytes:
        return Capacity(float(header.memory_limit_bytes), "cgroup_limit")
    if kind == "memory" and header.memory_total_bytes is not None:
        return Capacity(float(header.memory_total_bytes), "host_memory")
    return Capacity(None, "none")


def extent(rows: Iterable[Rows | None]) -> tuple[float, float]:
    """Lowest and highest x; (0, 0) where there is nothing."""
    present = [r for r in rows if r is not None and len(r)]
    if not present:
        return 0.0, 0.0
    unique = {id(r.first): r for r in present}.values()
    return (
        min(float(r.first[0]) for r in unique),
        max(float(r.last.max()) for r in unique),
    )


def visible_range(query: DrawnQuery, low: float, high: float) -> tuple[float, float]:
    """The query's part, inside the extent."""
    x0 = low if query.x0 is None else min(max(query.x0, low), high)
    x1 = high if query.x1 is None else max(min(query.x1, high), low)
    return (x0, x1) if x0 <= x1 else (low, high)


def drawable_series(
    reader: SeriesReader, run: Run, ranks: Sequence[int], axis: XAxis, phase: str
) -> tuple[SeriesInfo, ...]:
    """All series of a run; of a single rank, also which of them never change."""
    infos = run.catalogue.series
    if len(ranks) != 1:
        return infos

    def rows_of(info: SeriesInfo) -> RankRows:
        table, _, column = info.key.partition("/")
        return RankRows(reader, run, SeriesKey(table, column, phase), axis)

    def judged() -> npt.NDArray[np.bool_]:
        all_rows = (rows_of(info).rollup(ranks[0], low=True) for info in infos)
        return np.array([rows is None or rows.is_flat for rows in all_rows], np.bool_)

    names = tuple(info.key for info in infos)
    stamps = rows_of(infos[0]).stamps(ranks) if infos else ()
    is_flat = reader.derived((_FLAT, names, phase, stamps), judged)
    return tuple(
        replace(info, is_flat=flat)
        for info, flat in zip(infos, is_flat.tolist(), strict=True)
    )
