"""One entry per rank: peak, capacity, growth, errors; feeds the strip and the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tb_plugin.analysis.ranks.outliers import outliers
from tb_plugin.api.overview import RankStrip
from tb_plugin.contract.wire import f64, finite, i32, u8
from tb_plugin.pages.overview.facts import OOMS, RETRIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collector.format.records import Header
    from tb_plugin.analysis.arrays import Floats
    from tb_plugin.api.base import CapacityKind
    from tb_plugin.index.run import Run
    from tb_plugin.pages.overview.rank_numbers import RankNumbers

NOTHING: Final = np.empty(0)


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
    growth: Floats
    num_steps: int
    """Steps the growth was measured over."""
    host: list[int]
    """Index into `hosts` of each chosen rank."""
    hosts: tuple[str, ...]
    host_of: dict[int, int]
    """The same for every rank of the run."""


def strip_of(run: Run, ranks: Sequence[int], numbers: RankNumbers, peak: str) -> Strip:
    """Everything but what only the response needs; `peak` is the column shown."""
    headers = {rank: run.rank_files(rank)[-1][1].header for rank in _readable(run)}
    hosts = sorted({header.host for header in headers.values()})
    host_of = {rank: hosts.index(header.host) for rank, header in headers.items()}
    kind, capacity = _capacity(
        [headers.get(rank) for rank in ranks], device=peak.startswith("allocated")
    )
    highest = numbers.highest(ranks, peak)
    growth, num_steps = numbers.growth(ranks)
    return Strip(
        ranks=ranks,
        peak=peak,
        capacity_kind=kind,
        capacity_bytes=capacity,
        peak_bytes=highest.value,
        peak_step=highest.step,
        growth=growth,
        num_steps=num_steps,
        host=[host_of.get(rank, 0) for rank in ranks],
        hosts=tuple(hosts) or ("",),
        host_of=host_of,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Standing:
    """What tells ranks apart."""

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
        median_bytes=finite(float(np.median(present))) if len(present) else None,
        outliers=tuple(
            rank for at in outliers(peaks) if (rank := everyone[at]) in shown
        ),
        num_unread=num_unread,
    )


def strip_response(
    run: Run, strip: Strip, numbers: RankNumbers, peak_series: str
) -> RankStrip:
    """The strip as the page gets it."""
    ranks, standing = strip.ranks, standing_of(run, strip, numbers)
    return RankStrip(
        peak_series=peak_series,
        capacity_kind=strip.capacity_kind,
        rank=i32(ranks),
        host=i32(strip.host),
        peak_bytes=f64(strip.peak_bytes),
        peak_step=f64(strip.peak_step),
        capacity_bytes=f64(strip.capacity_bytes),
        growth_bytes_per_step=f64(strip.growth),
        num_alloc_retries=f64(numbers.total(ranks, RETRIES)),
        num_ooms=f64(standing.num_ooms),
        last_step=f64(numbers.last_steps(ranks)),
        lost=u8(standing.lost),
        hosts=strip.hosts,
        median_peak_bytes=standing.median_bytes,
        outliers=standing.outliers,
        num_unread=standing.num_unread,
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
