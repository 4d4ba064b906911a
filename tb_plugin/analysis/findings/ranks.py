"""Findings about all ranks: who ran out, who peaks above, whom the others wait for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from memboard.collector.format.sizes import agreeing, counted, part_of, the_other
from memboard.tb_plugin.analysis.findings.text import (
    num_bytes,
    of_rank,
    share_text,
    size_text,
    some_of,
)
from memboard.tb_plugin.analysis.ranks.spread import DEVIATIONS, FLOOR
from memboard.tb_plugin.api.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.arrays import Floats
    from memboard.tb_plugin.api.base import CapacityKind

_CAPACITY: Final[dict[CapacityKind, str]] = {
    "device": "the device's {}",
    "cgroup_limit": "the memory limit of {}",
    "host_memory": "the host's {}",
    "none": "{}",
}


@dataclass(frozen=True, slots=True, eq=False)
class Peaks:
    """What is known of the ranks: a number each; NaN: not recorded."""

    ranks: Sequence[int]
    peak_bytes: Floats
    peak_step: Floats
    capacity_bytes: Floats
    capacity_kind: CapacityKind
    median_bytes: float | None
    growth: Floats
    num_ooms: Floats
    outliers: Sequence[int]
    """Ranks far above the others, the worst first."""
    unreadable: Mapping[int, str]
    """Reasons by rank, each a sentence; empty where none is known."""
    empty: Sequence[int]
    """Ranks whose file was made just now, and holds no record yet."""
    num_unread: int
    """Ranks that are still being read: what is said of all may change."""


def peak_findings(
    peaks: Peaks,
    rank: int | None,
    *,
    has_errors: bool,
    growing: Container[int | None] = (),
) -> Iterator[Finding]:
    """Of all ranks, or of one; `has_errors`: reports say more about errors.

    `growing`: ranks of which another finding says that they grow.
    """
    if peaks.num_unread:
        unread = part_of(peaks.num_unread, len(peaks.ranks), "rank")
        are = agreeing(peaks.num_unread, "is", "are")
        sentence = f"{unread} {are} still being read."
        yield Finding(
            id="reading",
            key="reading",
            severity="info",
            title="Reading",
            sentence=sentence,
        )
    ran_out = [
        failed_rank
        for failed_rank, num in zip(peaks.ranks, peaks.num_ooms, strict=True)
        if num > 0
    ]
    shown = [failed_rank for failed_rank in ran_out if rank in (None, failed_rank)]
    if shown and not has_errors:
        yield _ran_out(peaks, shown, len(ran_out))
    lost = [
        unread_rank for unread_rank in peaks.unreadable if rank in (None, unread_rank)
    ]
    if lost:
        yield Finding(
            id="unreadable",
            key="unreadable",
            severity="error",
            title="Not readable",
            sentence=f"{_name(lost, peaks)} could not be read{_reason(lost, peaks)}.",
            rank=lost[0],
        )
    empty = [empty_rank for empty_rank in peaks.empty if rank in (None, empty_rank)]
    if empty:
        has = "has" if len(empty) == 1 else "have"
        yield Finding(
            id="empty",
            key="empty",
            severity="info",
            title="Nothing recorded yet",
            sentence=f"{_name(empty, peaks)} {has} recorded nothing yet: no record"
            " is in the file so far. If it stays so, the process died or the disk was full.",
            rank=empty[0],
        )
    # That a rank which ran out or grows peaks above the others is the same fault.
    outliers = [
        outlier
        for outlier in peaks.outliers
        if outlier not in ran_out and outlier not in growing
    ]
    above = [outlier for outlier in outliers if rank in (None, outlier)]
    if above and not peaks.num_unread:
        yield _uneven(peaks, above, outliers)
    is_whole = rank is not None or not peaks.num_unread
    if is_whole and not (has_errors or shown):
        yield from _highest(peaks, rank, is_even=not (ran_out or above))


def _ran_out(peaks: Peaks, ranks: Sequence[int], num_of_all: int) -> Finding:
    """Errors that were counted, and of which no report is left."""
    sizes = dict(zip(peaks.ranks, peaks.peak_bytes.tolist(), strict=True))
    worst = max(ranks, key=lambda rank: np.nan_to_num(sizes[rank], nan=-1.0))
    index, others = list(peaks.ranks).index(worst), len(peaks.ranks) - 1
    rest = (
        "" if num_of_all > 1 or not others else f"; {the_other(others, 'rank')} did not"
    )
    growth = peaks.growth[index]
    grew = f"; it grew {size_text(growth)} per step" if growth > 0 else ""
    whose = "Its peak" if len(ranks) == 1 else f"The highest peak, on rank {worst},"
    return Finding(
        id="ran_out",
        key="ran_out",
        severity="error",
        title="Out of memory",
        sentence=f"{_name(ranks, peaks)} ran out of memory{rest}. {whose} is"
        f" {_peak_text(peaks, index)}{_against_median(peaks, index)}{grew}.",
        rank=worst,
        place=of_rank("timeline", worst),
    )


def _reason(ranks: Sequence[int], peaks: Peaks) -> str:
    """Why they could not be read, where it is the same of all; else of the first."""
    reasons = [peaks.unreadable[rank].rstrip(".") for rank in ranks]
    if not reasons[0]:
        return ""
    whose = "" if len(set(reasons)) == 1 else f"rank {ranks[0]}: "
    return f": {whose}{reasons[0][:1].lower()}{reasons[0][1:]}"


def _uneven(peaks: Peaks, above: Sequence[int], outliers: Sequence[int]) -> Finding:
    worst, median = above[0], peaks.median_bytes or 0.0
    peak = float(peaks.peak_bytes[list(peaks.ranks).index(worst)])
    others = "No other rank stands out."
    also = [outlier for outlier in outliers if outlier != worst]
    if also:
        named = _name(also, peaks).split(" of ")[0]
        others = f"Also far above: {named[0].lower()}{named[1:]}."
    return Finding(
        id=f"uneven-{worst}",
        key="uneven_peaks",
        severity="warning",
        title="Uneven peaks",
        sentence=f"Rank {worst} peaks {size_text(peak - median)} above the median of"
        f" {counted(len(peaks.ranks), 'rank')}. {others}",
        rank=worst,
        cost=peak - median,
        evidence=(
            num_bytes("peak", "peak", peak, f"rank {worst}"),
            num_bytes("median", "median peak", median, "all ranks"),
        ),
        place=of_rank("timeline", worst),
        rule=f"above the median by {share_text(FLOOR)} and {DEVIATIONS:g} robust"
        " deviations of the ranks",
    )


def _highest(peaks: Peaks, rank: int | None, *, is_even: bool) -> Iterator[Finding]:
    """The highest peak, or the one of a rank; and that nothing is wrong with it."""
    rows = np.flatnonzero(~np.isnan(peaks.peak_bytes))
    if rank is not None:
        rows = rows[np.asarray(peaks.ranks)[rows] == rank]
    if not len(rows):
        return
    index = int(rows[int(np.argmax(peaks.peak_bytes[rows]))])
    whose, step = peaks.ranks[index], peaks.peak_step[index]
    # Without a device errors would not have been seen.
    seen = peaks.capacity_kind == "device" and not np.isnan(peaks.num_ooms[index])
    even = " No rank stands out." if len(peaks.ranks) > 1 and rank is None else ""
    sentence = f"The highest peak is {_peak_text(peaks, index)}, on rank {whose}."
    if rank is not None:
        against = _against_median(peaks, index)
        sentence = f"The peak of rank {rank} is {_peak_text(peaks, index)}{against}."
    yield Finding(
        id="peak",
        key="peak",
        severity="info",
        title="No out-of-memory error" if seen and is_even else "Peak",
        sentence=sentence + (even if is_even else ""),
        rank=whose,
        step=None if np.isnan(step) else int(step),
        place=of_rank("timeline", whose),
    )


def _name(ranks: Sequence[int], peaks: Peaks) -> str:
    """`Rank 3`, `Ranks 1, 2 and 3 of 8`, `All 8 ranks`."""
    total = f"{len(peaks.ranks):,}"
    if len(ranks) == 1:
        return f"Rank {ranks[0]}"
    if len(ranks) == len(peaks.ranks):
        return f"All {total} ranks"
    return f"Ranks {some_of(ranks)} of {total}"


def _peak_text(peaks: Peaks, index: int) -> str:
    """`76.9 GiB, 96.2 % of the device's 80.0 GiB`."""
    peak, capacity = float(peaks.peak_bytes[index]), float(peaks.capacity_bytes[index])
    if np.isnan(peak):
        return "not recorded"
    if not capacity > 0:
        return size_text(peak)
    size = _CAPACITY[peaks.capacity_kind].format(size_text(capacity))
    return f"{size_text(peak)}, {share_text(peak / capacity)} of {size}"


def _against_median(peaks: Peaks, index: int) -> str:
    peak, median = float(peaks.peak_bytes[index]), peaks.median_bytes
    if median is None or np.isnan(peak) or len(peaks.ranks) < 2:
        return ""
    if abs(peak - median) < 1:
        return ", the median of all ranks"
    side = "above" if peak > median else "below"
    return f", {size_text(abs(peak - median))} {side} the median of all ranks"
