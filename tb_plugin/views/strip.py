"""One entry per rank: peak, capacity, growth, errors; feeds the strip and the table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from tb_plugin import api
from tb_plugin.analysis.growth import MIN_ROWS, slopes, warmup_rows
from tb_plugin.analysis.heatmap import step_edges
from tb_plugin.analysis.ranks import outliers
from tb_plugin.analysis.rows import NO_STEP, Rows
from tb_plugin.views.matrix import matrix
from tb_plugin.views.rank_columns import RankColumns, peaks, totals
from tb_plugin.wire import f64, finite, i32, u8

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from collector.format.records import Header
    from tb_plugin.run import Run
    from tb_plugin.views.rank_columns import Wanted

    Floats: TypeAlias = npt.NDArray[np.float64]

CapacityKind: TypeAlias = Literal["device", "cgroup_limit", "host_memory", "none"]

_GROWTH_COLUMNS = 512


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """Columns over the chosen ranks, before they become a response."""

    ranks: Sequence[int]
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


def strip_of(
    run: Run, ranks: Sequence[int], columns: RankColumns, peak: Wanted
) -> Strip:
    """Everything but what only the response needs."""
    headers = {rank: run.rank_files(rank)[-1][1].header for rank in _readable(run)}
    hosts = sorted({header.host for header in headers.values()})
    host_of = {rank: hosts.index(header.host) for rank, header in headers.items()}
    kind, capacity = _capacity(
        [headers.get(rank) for rank in ranks], device=peak[0].startswith("allocated")
    )
    highest = peaks(columns, ranks, peak)
    growth, num_steps = _growth(run, ranks, columns, peak)
    return Strip(
        ranks=ranks,
        capacity_kind=kind,
        capacity_bytes=capacity,
        peak_bytes=highest.value,
        peak_step=highest.step,
        growth=growth,
        num_steps=num_steps,
        host=[host_of.get(rank, 0) for rank in ranks],
        hosts=tuple(hosts),
        host_of=host_of,
    )


def strip_response(
    run: Run, strip: Strip, columns: RankColumns, peak: Wanted, peak_series: str
) -> api.RankStrip:
    """The strip as the page gets it."""
    ranks = strip.ranks
    present = strip.peak_bytes[~np.isnan(strip.peak_bytes)]
    retries = totals(columns, ranks, ("num_alloc_retries", "max"))
    ooms = totals(columns, ranks, ("num_ooms", "max"))
    for event in run.notes.events("oom"):
        if event.rank in strip.host_of and event.rank in ranks:
            index = ranks.index(event.rank)
            ooms[index] = max(np.nan_to_num(ooms[index]), 1.0)
    return api.RankStrip(
        peak_series=peak_series,
        capacity_kind=strip.capacity_kind,
        rank=i32(ranks),
        host=i32(strip.host),
        peak_bytes=f64(strip.peak_bytes),
        peak_step=f64(strip.peak_step),
        capacity_bytes=f64(strip.capacity_bytes),
        growth_bytes_per_step=f64(strip.growth),
        num_alloc_retries=f64(retries),
        num_ooms=f64(ooms),
        last_step=f64(_last_steps(columns, ranks, peak)),
        lost=u8([_is_lost(run, rank) for rank in ranks]),
        hosts=strip.hosts,
        median_peak_bytes=finite(float(np.median(present))) if len(present) else None,
        outliers=tuple(ranks[index] for index in outliers(strip.peak_bytes)),
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


def _growth(
    run: Run, ranks: Sequence[int], columns: RankColumns, peak: Wanted
) -> tuple[Floats, int]:
    """Growth per step in one attempt: a restart empties the memory.

    The latest attempt that is long enough to tell, else the longest.
    """
    nothing = np.full(len(ranks), np.nan)
    best: tuple[int, list[Rows | None]] | None = None
    for attempt in reversed(run.attempts):
        rows: list[Rows | None] = []
        for rank in ranks:
            file = attempt.files.get(rank)
            piece = None if file is None else columns.of_file(file).get(peak)
            if piece is None or piece.first[0] == NO_STEP:
                rows.append(None)
            else:
                values = piece.values
                rows.append(Rows(piece.first, piece.last, values, values, piece.width))
        num_steps = max((len(row) * row.width for row in rows if row), default=0)
        if best is None or num_steps > best[0]:
            best = (num_steps, rows)
        if num_steps - warmup_rows(num_steps) >= MIN_ROWS:
            best = (num_steps, rows)
            break
    if best is None or best[0] == 0:
        return nothing, 0
    num_steps, rows = best
    found = [row for row in rows if row]
    low = min(int(row.first.min()) for row in found)
    high = max(int(row.last.max()) for row in found)
    edges, _ = step_edges(low, high, _GROWTH_COLUMNS)
    values = matrix([row if _ascends(row) else None for row in rows], edges)
    recorded = ~np.isnan(values).all(axis=0)
    return slopes(edges[:-1][recorded], values[:, recorded]), num_steps


def _ascends(row: Rows | None) -> bool:
    return row is not None and bool(np.all(row.first[1:] > row.first[:-1]))


def _last_steps(columns: RankColumns, ranks: Sequence[int], peak: Wanted) -> Floats:
    """The last step of each rank's last attempt."""
    last = np.full(len(ranks), np.nan)
    for index, rank in enumerate(ranks):
        for _, piece in columns.pieces(rank, peak):
            last[index] = piece.last[-1]
    return last


def _is_lost(run: Run, rank: int) -> bool:
    """Whether the rank's last attempt ended without a closing record."""
    files = run.rank_files(rank)
    if not files:
        return True
    _, file = files[-1]
    return file.close is None and not run.file_is_live(file)
