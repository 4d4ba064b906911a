"""The strip of ranks: each one's peak against its capacity, its growth and its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.ranks.spread import outliers
from memboard.tb_plugin.analysis.series.labels import column_label
from memboard.tb_plugin.api.base import f64, i32, u8
from memboard.tb_plugin.api.overview import RankStrip
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED, OOMS, RETRIES, RSS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.records import Header
    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.analysis.findings.growth import GrowingRank
    from memboard.tb_plugin.api.base import CapacityKind
    from memboard.tb_plugin.facts.ranks.rank_facts import FileFacts
    from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
    from memboard.tb_plugin.index.run import Run


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

    def growing_ranks(self) -> list[GrowingRank]:
        """Ranks whose device memory grows for sure."""
        columns = (self.ranks, self.growing, self.peak_bytes, self.capacity_bytes)
        return [
            grows
            for rank, facts, peak, size in zip(*columns, strict=True)
            if facts is not None
            and (grows := facts.growing(rank, peak, size if size > 0 else None))
        ]


def peak_column(run: Run, numbers: RankNumbers) -> str:
    """The column whose peak stands for a run: of the device, or of the process."""
    recorded = run.catalogue.find(ALLOCATED, run.catalogue.phase(None)) is not None
    return ALLOCATED if recorded or numbers.has(ALLOCATED) else RSS


def strip_of(run: Run, ranks: Sequence[int], numbers: RankNumbers) -> Strip:
    """Everything but what only the response needs."""
    peak = peak_column(run, numbers)
    headers = {rank: run.rank_files(rank)[-1][1].header for rank in _readable(run)}
    hosts = sorted({header.host for header in headers.values()})
    place = {host: place for place, host in enumerate(hosts)}
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
    peaks = (
        numbers.highest(everyone, strip.peak).value if not num_unread else np.empty(0)
    )
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
            rank for index in outliers(peaks) if (rank := everyone[index]) in shown
        ),
        num_unread=num_unread,
    )


_COLUMNS: Final = (
    Column("rank", "Rank", unit="rank", help="Click a row to open the rank"),
    Column("host", "Host", unit="text", help="The host of the rank"),
    Column(
        "peak_bytes",
        "Peak",
        unit="bytes",
        help="The highest value of all steps, and of what an error reports",
    ),
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
        colours=tuple("full" if used >= _FULL else "room" for used in share),
    )
    # An error may tell of a device of which no step was recorded.
    is_known = bool(peak_series) or numbers.has(strip.peak)
    empty = "No rank has recorded a step yet."
    return RankStrip(
        peak_series=peak_series,
        peak_label=column_label(strip.peak if is_known else ""),
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
    def column(attribute: str) -> Floats:
        sizes = [getattr(header, attribute, None) for header in headers]
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
