"""Route `/host`: processors, memory, disks, network and sensors on one x axis."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memboard.tb_plugin.analysis.series.buckets import thinned, visible
from memboard.tb_plugin.analysis.series.labels import column_label
from memboard.tb_plugin.api.base import f64
from memboard.tb_plugin.api.host import HostLine, HostResponse, HostTrack
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.facts.series.marks import marks_of
from memboard.tb_plugin.facts.series.matrix import refined_rows
from memboard.tb_plugin.facts.series.selection import (
    DrawnQuery,
    RankRows,
    extent,
    visible_range,
    which_ranks,
    x_axis,
)
from memboard.tb_plugin.formats.recording.series import SeriesKey
from memboard.tb_plugin.server.views.run import of_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.tb_plugin.analysis.series.rows import Rows
    from memboard.tb_plugin.api.base import Unit
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.view import View
    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

MAX_HOSTS: Final = 16
"""More hosts than this are too many lines for one chart: the fullest are drawn."""

_FULLEST_BY: Final = "memory_used_bytes"


@dataclass(frozen=True, slots=True)
class _Track:
    key: Any
    title: str
    unit: Unit
    of_host: tuple[str, ...] = ()
    """Columns about the host: its lowest rank speaks for it."""
    of_rank: tuple[str, ...] = ()
    """Columns about the chosen rank's process or device."""
    limit_column: str | None = None
    """A column whose highest value is the limit."""
    limit: float | None = None
    limit_label: str = ""


_TRACKS: Final = (
    _Track(
        "cpu",
        "CPU",
        "percent",
        of_host=(
            "cpu_total_pct",
            "cpu_user_pct",
            "cpu_system_pct",
            "cpu_iowait_pct",
            "cpu_steal_pct",
        ),
        limit=100.0,
    ),
    _Track(
        "memory",
        "Host memory",
        "bytes",
        of_host=(
            "memory_used_bytes",
            "memory_available_bytes",
            "memory_cached_bytes",
            "memory_limit_used_bytes",
        ),
        limit_column="memory_total_bytes",
        limit_label="total",
    ),
    _Track(
        "process_memory",
        "Process memory",
        "bytes",
        of_rank=(
            "rss_bytes",
            "process_rss_bytes",
            "process_uss_bytes",
            "process_pss_bytes",
            "process_shared_bytes",
            "workers_rss_bytes",
            "pinned_allocated_bytes",
            "pinned_reserved_bytes",
        ),
        limit_column="memory_limit_bytes",
        limit_label="memory limit",
    ),
    _Track(
        "swap",
        "Swap",
        "bytes",
        of_host=("swap_used_bytes",),
        limit_column="swap_total_bytes",
        limit_label="total",
    ),
    _Track(
        "disk",
        "Disk",
        "bytes_per_second",
        of_host=("disk_read_bytes_per_second", "disk_write_bytes_per_second"),
    ),
    _Track(
        "network",
        "Network",
        "bytes_per_second",
        of_host=("network_sent_bytes_per_second", "network_received_bytes_per_second"),
    ),
    _Track(
        "gpu_utilization",
        "GPU utilization",
        "percent",
        of_rank=("gpu_utilization_pct", "gpu_memory_utilization_pct"),
        limit=100.0,
    ),
    _Track(
        "gpu_memory",
        "GPU memory",
        "bytes",
        of_rank=(
            "gpu_memory_used_bytes",
            "gpu_process_memory_bytes",
            "device_used_bytes",
        ),
        limit_column="device_total_bytes",
        limit_label="device capacity",
    ),
    _Track(
        "gpu_temperature",
        "GPU temperature",
        "celsius",
        of_rank=("gpu_temperature_celsius",),
    ),
    _Track("gpu_power", "GPU power", "watts", of_rank=("gpu_power_watts",)),
)


@of_run("host", DrawnQuery, seconds=None)
def host(view: View[DrawnQuery]) -> HostResponse:
    # Answer `/host`
    reader, run, query = view.series, view.run, view.query
    ranks_of_run = sorted({rank for attempt in run.attempts for rank in attempt.files})
    rank = query.rank if query.rank is not None else next(iter(ranks_of_run), 0)
    if query.rank is not None and query.rank not in run.ranks:
        raise NotFoundError(
            "This rank is not in the run.",
            f"rank={query.rank}",
            which_ranks(run),
        )
    speakers = _speakers(run, ranks_of_run)
    if query.rank is not None and query.rank in ranks_of_run:
        mine = _host_of(run, query.rank)
        speakers = {
            host_name: ranks
            for host_name, ranks in speakers.items()
            if host_name == mine
        }
    drawing = _Drawing(reader, run, query, view.budget)
    shown_hosts = drawing.fullest(speakers)
    lines = [
        (
            track,
            drawing.rows_of(
                track, rank, [speakers[host_name] for host_name in shown_hosts]
            ),
        )
        for track in _TRACKS
    ]
    low, high = extent(rows for _, line in lines for _, _, rows in line)
    x0, x1 = visible_range(query, low, high)
    tracks = tuple(
        HostTrack(
            key=track.key,
            title=track.title,
            unit=track.unit,
            limit_label=track.limit_label,
            limit=drawing.limit_of(track, rank),
            lines=drawing.lines(line, x0, x1),
        )
        for track, line in lines
        if line
    )
    shown = ("host", "process", "sensor")
    return HostResponse(
        run=view.summary,
        rank=rank,
        hosts=shown_hosts,
        num_hosts=len(speakers),
        x=query.x,
        x_low=low,
        x_high=high,
        tracks=tracks,
        absent=tuple(a for a in run.catalogue.absent() if a.group in shown),
        marks=marks_of(reader, run, drawing.axis, [rank]),
    )


def _host_of(run: Run, rank: int) -> str:
    return run.rank_files(rank)[-1][1].header.host


def _speakers(run: Run, ranks: Sequence[int]) -> dict[str, list[int]]:
    # Ranks by host, ascending
    ranks_by_host: dict[str, list[int]] = {}
    for rank in ranks:
        ranks_by_host.setdefault(_host_of(run, rank), []).append(rank)
    return ranks_by_host


_Found = tuple[str, int, "Rows"]


class _Drawing:
    """Reads and thins the lines of the tracks."""

    def __init__(
        self, reader: SeriesReader, run: Run, query: DrawnQuery, budget: Budget
    ) -> None:
        self._reader = reader
        self._run = run
        self._query = query
        self._budget = budget
        self._sources: dict[str, RankRows] = {}
        self.axis = x_axis(run, query.x)

    def fullest(self, hosts: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        """The hosts that are drawn, in their order: those whose memory was fullest."""
        if len(hosts) <= MAX_HOSTS:
            return tuple(hosts)
        peaks = {
            host_name: self._peak(_FULLEST_BY, ranks)
            for host_name, ranks in hosts.items()
        }
        chosen = set(sorted(peaks, key=lambda host_name: -peaks[host_name])[:MAX_HOSTS])
        return tuple(host_name for host_name in hosts if host_name in chosen)

    def _peak(self, column: str, ranks: Sequence[int]) -> float:
        for speaker in self._recorders(column, ranks)[:1]:
            rows = self._rows(column, speaker)
            if rows is not None and rows.peak is not None:
                return rows.peak
        return -1.0

    def _rows(self, column: str, rank: int) -> Rows | None:
        """All of a rank; None where nothing was recorded."""
        rows = self._source(column).rollup(rank, low=True)
        return None if rows is None or rows.peak is None else rows

    def rows_of(
        self, track: _Track, rank: int, hosts: Sequence[Sequence[int]]
    ) -> list[_Found]:
        """(column, rank, all its rows) of every line of a track."""
        found_rows = []
        for column in track.of_host:
            for ranks in hosts:
                # Not every rank samples the host: the lowest that does speaks for it.
                for speaker in self._recorders(column, ranks):
                    rows = self._rows(column, speaker)
                    if rows is not None:
                        found_rows.append((column, speaker, rows))
                        break
        for column in track.of_rank:
            for speaker in self._recorders(column, [rank]):
                rows = self._rows(column, speaker)
                if rows is not None:
                    found_rows.append((column, speaker, rows))
        return found_rows

    def lines(
        self, track_rows: Sequence[_Found], x0: float, x1: float
    ) -> tuple[HostLine, ...]:
        """What is drawn of a track's rows."""
        lines = []
        for column, rank, rows in track_rows:
            (finer,) = refined_rows(
                self._source(column),
                [rank],
                [rows],
                x0,
                x1,
                self._query.px,
                self._budget,
            )
            shown = visible(finer or rows, x0, x1)
            drawn, _ = thinned(shown, x0, x1, 2 * self._query.px)
            lines.append(
                HostLine(
                    name=column,
                    label=column_label(column),
                    rank=rank,
                    host=_host_of(self._run, rank),
                    x=f64(drawn.first),
                    y=f64(drawn.high),
                    y_low=f64(drawn.low),
                    is_flat=rows.is_flat,
                )
            )
        return tuple(lines)

    def limit_of(self, track: _Track, rank: int) -> float | None:
        """The highest value of the limit's column, or what the header says."""
        if track.limit_column is None:
            return track.limit
        for speaker in self._recorders(
            track.limit_column, [rank, *self._run.ranks[:1]]
        ):
            rows = self._rows(track.limit_column, speaker)
            if rows is not None:
                return rows.peak
        for _, file in self._run.rank_files(rank)[-1:]:
            size = getattr(file.header, track.limit_column, None)
            return None if size is None else float(size)
        return None

    def _recorders(self, column: str, ranks: Sequence[int]) -> list[int]:
        key = self._run.catalogue.find(column)
        if key is None:
            return []
        recorded = self._run.catalogue.ranks_of(key)
        return [rank for rank in ranks if rank in recorded]

    def _source(self, column: str) -> RankRows:
        source = self._sources.get(column)
        if source is None:
            key = self._run.catalogue.find(column) or SeriesKey("", column)
            source = RankRows(self._reader, self._run, key, self.axis)
            self._sources[column] = source
        return source
