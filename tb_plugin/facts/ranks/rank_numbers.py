"""Facts of many ranks as columns, over all their attempts; and the strip made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.ranks.spread import outliers
from memboard.tb_plugin.analysis.series.growth import MIN_ROWS, warmup_rows
from memboard.tb_plugin.analysis.series.labels import column_label
from memboard.tb_plugin.api.overview import RankStrip
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.contract.wire import f64, finite, i32, u8
from memboard.tb_plugin.facts.ranks.rank_facts import OOMS, RETRIES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.format.records import Header
    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.base import CapacityKind
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.rank_facts import (
        FactsReader,
        FileFacts,
        Reading,
    )
    from memboard.tb_plugin.index.run import AttemptFiles, Run

NOTHING: Final = np.empty(0)


class PerRank(NamedTuple):
    """A number per rank; NaN where it has none."""

    value: Floats
    step: Floats
    widest: int
    """Rows in the widest bucket that gave one of them."""


class RankNumbers:
    """Facts by rank and attempt."""

    def __init__(self, reader: FactsReader, run: Run, budget: Budget) -> None:
        """Ranks the budget does not reach are as they were, or have no numbers yet."""
        self._facts: dict[int, list[tuple[AttemptFiles, FileFacts]]] = {}
        self._attempts = run.attempts
        self._unread: set[int] = set()
        reader.make_missing(run.files.values(), budget)
        for attempt in run.attempts:
            for rank, file in attempt.files.items():
                found = self._facts.setdefault(rank, [])
                facts = reader.within(file, budget)
                if facts is None:
                    self._unread.add(rank)
                else:
                    found.append((attempt, facts))

    def has(self, column: str) -> bool:
        """Whether any rank recorded the column."""
        return any(
            column in facts.readings
            for found in self._facts.values()
            for _, facts in found
        )

    def num_unread(self, ranks: Sequence[int]) -> int:
        """Ranks of which files are still being read: what is said of all may change."""
        return sum(rank in self._unread for rank in ranks)

    def of_rank(self, rank: int) -> list[FileFacts]:
        """A rank's facts by attempt."""
        return [facts for _, facts in self._facts.get(rank, [])]

    def highest(self, ranks: Sequence[int], column: str) -> PerRank:
        """The highest reading of each rank."""
        return self._worst(ranks, lambda facts: facts.readings.get(column))

    def non_torch(self, ranks: Sequence[int]) -> PerRank:
        """Most that was used on each rank's device beside torch."""
        return self._worst(ranks, lambda facts: facts.non_torch)

    def fragmentation(self, ranks: Sequence[int], reserved: str) -> PerRank:
        """That of the attempt that reserved most."""

        def of(rank: int) -> Reading | None:
            found = [f for f in self.of_rank(rank) if f.fragmentation is not None]
            most = max(found, key=lambda f: f.readings[reserved].value, default=None)
            return None if most is None else most.fragmentation

        return _columns([of(rank) for rank in ranks])

    def total(self, ranks: Sequence[int], column: str) -> Floats:
        """A running count summed over attempts: each of them counts from zero."""
        totals = np.full(len(ranks), np.nan)
        for index, rank in enumerate(ranks):
            counts = [
                facts.readings[column].value
                for facts in self.of_rank(rank)
                if column in facts.readings
            ]
            if counts:
                totals[index] = sum(counts)
        return totals

    def last_steps(self, ranks: Sequence[int]) -> Floats:
        """The last step of each rank's last attempt."""
        steps = np.full(len(ranks), np.nan)
        for index, rank in enumerate(ranks):
            for facts in self.of_rank(rank):
                if facts.last_step is not None:
                    steps[index] = facts.last_step
        return steps

    def growing(self, ranks: Sequence[int]) -> tuple[list[FileFacts | None], int]:
        """Facts of one attempt, by rank, and its steps: a restart empties the memory.

        The latest attempt that is long enough to tell growth, else the longest.
        """
        best: tuple[int, int] = (0, 0)
        for attempt in reversed(self._attempts):
            num_steps = max(
                (
                    facts.num_steps
                    for rank in ranks
                    for of, facts in self._facts.get(rank, [])
                    if of.index == attempt.index
                ),
                default=0,
            )
            best = max(best, (num_steps, attempt.index))
            if num_steps - warmup_rows(num_steps) >= MIN_ROWS:
                best = (num_steps, attempt.index)
                break
        found: list[FileFacts | None] = [
            next(
                (f for of, f in self._facts.get(rank, []) if of.index == best[1]), None
            )
            for rank in ranks
        ]
        return found, best[0]

    def _worst(
        self, ranks: Sequence[int], pick: Callable[[FileFacts], Reading | None]
    ) -> PerRank:
        worst: list[Reading | None] = []
        for rank in ranks:
            found = [reading for f in self.of_rank(rank) if (reading := pick(f))]
            worst.append(max(found, key=lambda r: r.value, default=None))
        return _columns(worst)


def _columns(readings: Sequence[Reading | None]) -> PerRank:
    nothing = float("nan")
    return PerRank(
        np.array([nothing if r is None else r.value for r in readings], np.float64),
        np.array([nothing if r is None else r.step for r in readings], np.float64),
        max((r.width for r in readings if r is not None), default=1),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """Columns over the chosen ranks, before they become a response."""

    ranks: Sequence[int]
    peak: str
    """The column whose peak is shown."""
    capacity_kind: CapacityKind
    capacity_bytes: Floats
    peak_bytes: Floats
    peak_step: Floats
    growing: list[FileFacts | None]
    """Whose growth counts; see `RankNumbers.growing`."""
    num_steps: int
    """Steps the growth was measured over."""
    host: list[int]
    """Index into `hosts` of each chosen rank."""
    hosts: tuple[str, ...]
    host_of: dict[int, int]
    """The same for every rank of the run."""

    @property
    def growth(self) -> Floats:
        """Bytes per step of each rank."""
        return np.array([np.nan if f is None else f.growth for f in self.growing])


def strip_of(run: Run, ranks: Sequence[int], numbers: RankNumbers, peak: str) -> Strip:
    """Everything but what only the response needs; `peak` is the column shown."""
    headers = {rank: run.rank_files(rank)[-1][1].header for rank in _readable(run)}
    hosts = sorted({header.host for header in headers.values()})
    place = {host: at for at, host in enumerate(hosts)}
    host_of = {rank: place[header.host] for rank, header in headers.items()}
    kind, capacity = _capacity(
        [headers.get(rank) for rank in ranks], device=peak.startswith("allocated")
    )
    highest = numbers.highest(ranks, peak)
    growing, num_steps = numbers.growing(ranks)
    return Strip(
        ranks=ranks,
        peak=peak,
        capacity_kind=kind,
        capacity_bytes=capacity,
        peak_bytes=highest.value,
        peak_step=highest.step,
        growing=growing,
        num_steps=num_steps,
        host=[host_of.get(rank, 0) for rank in ranks],
        hosts=tuple(hosts) or ("",),
        host_of=host_of,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    num_ooms: Floats
    lost: list[bool]
    median_bytes: float | None
    """Of all ranks' peaks, whichever are shown."""
    outliers: tuple[int, ...]
    """Shown ranks far above the others."""
    num_unread: int


def standing_of(run: Run, strip: Strip, numbers: RankNumbers) -> Standing:
    """The median and the outliers of all ranks, whichever are shown.

    None of those read so far, which may be others in a moment.
    """
    ranks, everyone = strip.ranks, _readable(run)
    num_unread = numbers.num_unread(everyone)
    peaks = numbers.highest(everyone, strip.peak).value if not num_unread else NOTHING
    present = peaks[~np.isnan(peaks)]
    ooms = numbers.total(ranks, OOMS)
    noted = {event.rank for event in run.notes.events("oom")}
    for index, rank in enumerate(ranks):
        if rank in noted:
            ooms[index] = max(float(np.nan_to_num(ooms[index])), 1.0)
    shown = set(ranks)
    return Standing(
        num_ooms=ooms,
        lost=_lost(run, ranks),
        median_bytes=finite(median(present)) if len(present) else None,
        outliers=tuple(
            rank for at in outliers(peaks) if (rank := everyone[at]) in shown
        ),
        num_unread=num_unread,
    )


_COLUMNS: Final = (
    Column("rank", "Rank", unit="rank", help="Click a row to open the rank"),
    Column("host", "Host", unit="text", help="The host of the rank"),
    Column("peak_bytes", "Peak", unit="bytes", help="The highest value of all steps"),
    Column("peak_step", "At step", help="The step of its peak"),
    Column(
        "share",
        "Of capacity",
        unit="share",
        help="Peak ÷ device memory, host memory or memory limit",
        bar="row",
    ),
    Column("capacity_bytes", unit="bytes"),
    Column(
        "growth_bytes_per_step",
        "Growth/step",
        unit="bytes",
        help="Theil-Sen slope over the steps: the median of the slopes between all pairs,"
        " after the warm-up (the first tenth, at least 5 steps). Single spikes do not"
        " move it. Not known where there are too few steps.",
    ),
    Column(
        "num_alloc_retries",
        "Retries",
        help="Times the allocator freed cached segments and tried again; each slows"
        " its step",
    ),
    Column("num_ooms", "OOMs", unit="errors", help="Recorded out-of-memory errors"),
    Column("last_step", "Last step", help="The last recorded step"),
    Column(
        "lost",
        "Ended",
        unit="problem",
        help="The recording was not closed: the process was killed, or its host or disk"
        " failed",
    ),
)
_FULL: Final = 0.97


def strip_response(
    run: Run, strip: Strip, numbers: RankNumbers, peak_series: str
) -> RankStrip:
    """The strip as the page gets it."""
    ranks, standing = strip.ranks, standing_of(run, strip, numbers)
    share = np.where(strip.capacity_bytes > 0, strip.peak_bytes, np.nan)
    share /= np.maximum(strip.capacity_bytes, 1)
    columns = {
        "rank": ranks,
        "host": [strip.hosts[host] for host in strip.host],
        "peak_bytes": strip.peak_bytes,
        "peak_step": strip.peak_step,
        "share": share,
        "capacity_bytes": strip.capacity_bytes,
        "growth_bytes_per_step": strip.growth,
        "num_alloc_retries": numbers.total(ranks, RETRIES),
        "num_ooms": standing.num_ooms,
        "last_step": numbers.last_steps(ranks),
        "lost": ["lost" if lost else "" for lost in standing.lost],
    }
    table = table_of(
        _COLUMNS,
        columns,
        "peak_bytes",
        more={"share": {"longest": 1.0}},
        colours=tuple("full" if one >= _FULL else "room" for one in share),
    )
    empty = "No rank has recorded a step yet."
    return RankStrip(
        peak_series=peak_series,
        peak_label=column_label(peak_series.rpartition("/")[2]),
        capacity_kind=strip.capacity_kind,
        rank=i32(ranks),
        peak_bytes=f64(strip.peak_bytes),
        capacity_bytes=f64(strip.capacity_bytes),
        growth_bytes_per_step=f64(strip.growth),
        num_ooms=f64(standing.num_ooms),
        lost=u8(standing.lost),
        median_peak_bytes=standing.median_bytes,
        outliers=standing.outliers,
        num_unread=standing.num_unread,
        table=titled(table, "Ranks", empty=empty),
    )


def _readable(run: Run) -> list[int]:
    return sorted({rank for attempt in run.attempts for rank in attempt.files})


def _capacity(
    headers: Sequence[Header | None], *, device: bool
) -> tuple[CapacityKind, Floats]:
    def column(name: str) -> Floats:
        sizes = [getattr(header, name, None) for header in headers]
        return np.array([np.nan if s is None else float(s) for s in sizes], np.float64)

    if device:
        sizes = column("device_total_bytes")
        return ("none" if np.isnan(sizes).all() else "device"), sizes
    limits, totals_ = column("memory_limit_bytes"), column("memory_total_bytes")
    if not np.isnan(limits).all():
        return "cgroup_limit", np.where(np.isnan(limits), totals_, limits)
    return ("none" if np.isnan(totals_).all() else "host_memory"), totals_


def _lost(run: Run, ranks: Sequence[int]) -> list[bool]:
    """Whether each rank's last attempt ended without a closing record.

    What was not read to its end yet is not called lost.
    """
    unread = run.unread_ranks
    return [rank not in unread and _is_lost(run, rank) for rank in ranks]


def _is_lost(run: Run, rank: int) -> bool:
    files = run.rank_files(rank)
    if not files:  # another tool's files do not say how it ended
        return run.made_of == "recording"
    _, file = files[-1]
    return file.close is None and not run.file_is_live(file)
