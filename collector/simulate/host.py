"""The timed tables of a simulated rank: its process, its GPU's sensors, its host.

Every rank samples its process and its GPU; the first rank of each host samples the host
too. Rows end with the rank's last step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.collector.format import columns as catalogue
from memboard.collector.format.encoding.numeric import ABSENT
from memboard.collector.simulate.device import GIB, MIB
from memboard.collector.simulate.faults import RANKS_PER_HOST, WORKER_BYTES
from memboard.collector.simulate.memory import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.collector.format.columns import Column
    from memboard.collector.simulate.memory import Ints
    from memboard.collector.simulate.series import Floats, RankSeries

HOST_MEMORY_BYTES: Final = 2 << 40
NUM_WORKERS: Final = 8
"""Dataloader workers of each rank."""

_PAGE: Final = 4096
_WORKER_BYTES: Final = 1600 * MIB
_SHARED_BYTES: Final = 1180 * MIB


class TimedTable(NamedTuple):
    """A timed source's columns and pace."""

    name: str
    interval_seconds: float
    columns: tuple[Column, ...]
    is_per_host: bool = False
    """Only the first rank of each host samples it."""


TIMED_TABLES: Final = (
    TimedTable("device_free", 1, catalogue.DEVICE_FREE),
    TimedTable("gpu", 1, catalogue.GPU),
    TimedTable("pinned", 1, catalogue.PINNED),
    TimedTable("process", 1, catalogue.PROCESS),
    TimedTable("process_full", 60, catalogue.PROCESS_FULL),
    TimedTable("workers", 2, catalogue.WORKERS),
    TimedTable("cpu", 1, catalogue.CPU, is_per_host=True),
    TimedTable("memory", 1, catalogue.MEMORY, is_per_host=True),
    TimedTable("swap", 10, catalogue.SWAP, is_per_host=True),
    TimedTable("disk", 2, catalogue.DISK, is_per_host=True),
    TimedTable("network", 2, catalogue.NETWORK, is_per_host=True),
)


class TimedRows(NamedTuple):
    """The samples of one table: the axes first, then its columns."""

    table: TimedTable
    columns: list[Ints | Floats]


def timed_rows(series: RankSeries, *, is_hungry: bool) -> list[TimedRows]:
    """All timed tables of a rank; `is_hungry`: its dataloader workers grow."""
    tables = []
    for table in TIMED_TABLES:
        if table.is_per_host and series.rank % RANKS_PER_HOST:
            continue
        samples = _Samples(series, table.interval_seconds, is_hungry=is_hungry)
        values = samples.measured(table.name)
        tables.append(TimedRows(table, [samples.time_ns, samples.step, *values]))
    return tables


class _Samples:
    """When a table was sampled, and what there was."""

    def __init__(
        self, series: RankSeries, interval_seconds: float, *, is_hungry: bool
    ) -> None:
        self._series, self._random = series, series.random
        self._is_hungry = is_hungry
        pace = int(interval_seconds * 1e9)
        ended = series.began_ns(series.num_rows)
        number = max(1, (ended - series.started_ns) // pace)
        time_ns = series.started_ns + np.arange(1, number + 1) * pace
        time_ns += self._random.integers(0, 2_000_000, number)
        # A run shorter than the interval is sampled once, at its end.
        time_ns[0] = min(time_ns[0], ended)
        self.time_ns = time_ns[time_ns <= ended]
        self.step = np.minimum(
            np.searchsorted(series.time_ns, self.time_ns), max(0, series.num_rows - 1)
        )

    def measured(self, source: str) -> Sequence[Ints | Floats]:
        """The columns of a table behind its axes."""
        around, count = self._around, self._count
        used = self._at_step("reserved_bytes") + NON_TORCH_BYTES
        rss = self._at_step("rss_bytes")
        if source == "device_free":
            return [DEVICE_TOTAL_BYTES - used, count(DEVICE_TOTAL_BYTES), used]
        if source == "gpu":
            busy = np.minimum(100.0, around(97, 2, 0))
            return [
                busy,
                np.minimum(100.0, around(61, 5, 0)),
                around(66, 1.5, 0),
                around(655, 18, 3),
                used,
                used - 4 * MIB,
            ]
        if source == "pinned":
            block = 64 * MIB
            live = self._random.integers(2, 6, len(self.step)) * block
            return [live, count(6 * block), count(8 * block)]
        if source == "process":
            more = (count(97), count(214), around(118, 9))
            return [rss, rss + 38 * GIB, count(_SHARED_BYTES), *more]
        if source == "process_full":
            return [rss - _SHARED_BYTES, rss - _SHARED_BYTES + 140 * MIB]
        if source == "workers":
            largest = self._worker_bytes()
            others = (largest * 0.97).astype(np.int64) // _PAGE * _PAGE
            together = largest + (NUM_WORKERS - 1) * others
            return [count(NUM_WORKERS), together, largest]
        if source == "cpu":
            user, system = around(31, 3), around(5, 0.8)
            busy = np.round(user + system, 1)
            return [busy, user, system, around(0.6, 0.4), 0 * busy, busy]
        if source == "memory":
            workers = RANKS_PER_HOST * NUM_WORKERS * self._worker_bytes()
            in_use = self._pages(118 * GIB, 0.4 * GIB) + workers
            total, cached = count(HOST_MEMORY_BYTES), self._pages(160 * GIB, 0.6 * GIB)
            no_limit = (count(ABSENT), count(ABSENT))
            return [total, in_use, total - in_use, cached, *no_limit]
        if source == "swap":
            return [count(0), count(0)]
        if source == "disk":
            return [around(420e6, 90e6, 0), around(6e6, 3e6, 0), around(2900, 600)]
        return [around(2.1e9, 0.2e9, 0), around(2.1e9, 0.2e9, 0)]

    def _at_step(self, column: str) -> Ints:
        """A step column's value at each sample."""
        return self._series.columns[column][self.step].astype(np.int64)

    def _around(self, mean: float, spread: float, digits: int = 1) -> Floats:
        """Noise around a mean, never below zero, as coarse as the real counters."""
        noise = mean + spread * self._random.standard_normal(len(self.step))
        positive: Floats = np.maximum(noise, 0.0, dtype=np.float64)
        return np.round(positive, digits)

    def _pages(self, mean_bytes: float, spread_bytes: float) -> Ints:
        """Bytes in whole pages around a mean."""
        noise = self._around(mean_bytes, spread_bytes, 0)
        return noise.astype(np.int64) // _PAGE * _PAGE

    def _count(self, value: int) -> Ints:
        return np.full(len(self.step), value, np.int64)

    def _worker_bytes(self) -> Ints:
        """Resident memory of the largest worker."""
        progress = self.step / max(1, len(self._series.time_ns) - 1)
        growth = WORKER_BYTES - _WORKER_BYTES if self._is_hungry else 40 * MIB
        return (_WORKER_BYTES + progress * growth).astype(np.int64) // _PAGE * _PAGE
