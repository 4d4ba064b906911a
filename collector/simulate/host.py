"""The timed tables of a simulated run: process, GPU sensors, host.

Every rank samples its process and its GPU; the first rank of each host samples the
host too. Rows are cut off where a rank's last step ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from collector.format import columns as catalogue
from collector.format.numeric import ABSENT
from collector.simulate.curves import DEVICE_TOTAL_BYTES, NON_TORCH_BYTES
from collector.simulate.faults import RANKS_PER_HOST, WORKER_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from collector.format.columns import Column
    from collector.simulate.faults import Fault
    from collector.simulate.ranks import RankBatch

    Ints: TypeAlias = npt.NDArray[np.int64]
    Floats: TypeAlias = npt.NDArray[np.float64]
    Columns: TypeAlias = Mapping[str, Ints | Floats]

HOST_MEMORY_BYTES: Final = 2 << 40
NUM_WORKERS: Final = 8
"""Dataloader workers of each rank."""

_GIB: Final = 1 << 30
_MIB: Final = 1 << 20
_PAGE: Final = 4096
_WORKER_BYTES: Final = 1600 * _MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedTable:
    """A timed source's columns and pace."""

    name: str
    interval_seconds: float
    columns: tuple[Column, ...]
    per_host: bool = False
    """Only the first rank of each host samples it."""


TIMED_TABLES: Final = (
    TimedTable(name="device_free", interval_seconds=1, columns=catalogue.DEVICE_FREE),
    TimedTable(name="gpu", interval_seconds=1, columns=catalogue.GPU),
    TimedTable(name="pinned", interval_seconds=1, columns=catalogue.PINNED),
    TimedTable(name="process", interval_seconds=1, columns=catalogue.PROCESS),
    TimedTable(
        name="process_full", interval_seconds=60, columns=catalogue.PROCESS_FULL
    ),
    TimedTable(name="workers", interval_seconds=2, columns=catalogue.WORKERS),
    TimedTable(name="cpu", interval_seconds=1, columns=catalogue.CPU, per_host=True),
    TimedTable(
        name="memory", interval_seconds=1, columns=catalogue.MEMORY, per_host=True
    ),
    TimedTable(name="swap", interval_seconds=10, columns=catalogue.SWAP, per_host=True),
    TimedTable(name="disk", interval_seconds=2, columns=catalogue.DISK, per_host=True),
    TimedTable(
        name="network", interval_seconds=2, columns=catalogue.NETWORK, per_host=True
    ),
)


@dataclass(frozen=True, slots=True)
class TimedRows:
    """Samples of one table; arrays have the shape (ranks, samples)."""

    table: TimedTable
    rows: Sequence[int]
    """Rows of the batch that sampled it, one per row of the arrays."""
    num_samples: Ints
    """How many each of them took."""
    time_ns: Ints
    step: Ints
    columns: Columns


def timed_rows(batch: RankBatch, faults: Sequence[Fault], seed: int) -> list[TimedRows]:
    """All timed tables of a batch of ranks."""
    random = np.random.default_rng([seed, batch.ranks.start, 1])
    hungry = {
        rank - batch.ranks.start
        for fault in faults
        if fault.kind == "dataloader"
        for rank in fault.ranks
        if rank in batch.ranks
    }
    result = []
    for table in TIMED_TABLES:
        rows = [
            row
            for row, rank in enumerate(batch.ranks)
            if not table.per_host or rank % RANKS_PER_HOST == 0
        ]
        if rows:
            result.append(_sample(table, rows, batch, hungry, random))
    return result


def _sample(
    table: TimedTable,
    rows: Sequence[int],
    batch: RankBatch,
    hungry: set[int],
    random: np.random.Generator,
) -> TimedRows:
    step_ends = batch.time_ns[rows]
    last = np.array(
        [step_ends[i, batch.num_steps[row] - 1] for i, row in enumerate(rows)]
    )
    pace = int(table.interval_seconds * 1e9)
    first = batch.started_ns[rows][:, None]
    most = max(1, int((last - first[:, 0]).max()) // pace)
    wobble = random.integers(0, 2_000_000, (len(rows), most))
    time_ns = first + np.arange(1, most + 1) * pace + wobble
    # A run shorter than the interval is sampled once, at its end.
    time_ns[:, 0] = np.minimum(time_ns[:, 0], last)
    step = np.stack(
        [
            np.searchsorted(ends, times)
            for ends, times in zip(step_ends, time_ns, strict=True)
        ]
    )
    step = np.minimum(step, batch.num_steps[rows][:, None] - 1)
    view = _View(batch, rows, step, hungry, random)
    values = _MEASURE[table.name](view)
    names = [column.name for column in table.columns]
    return TimedRows(
        table,
        rows,
        (time_ns <= last[:, None]).sum(axis=1),
        time_ns,
        step,
        dict(zip(names, values, strict=True)),
    )


class _View:
    """What a table's samples are computed from."""

    def __init__(
        self,
        batch: RankBatch,
        rows: Sequence[int],
        step: Ints,
        hungry: set[int],
        random: np.random.Generator,
    ) -> None:
        self.shape = step.shape
        self.random = random
        self._batch, self._rows, self._step = batch, rows, step
        self._hungry = [row in hungry for row in rows]

    def at_step(self, name: str) -> Ints:
        """A step column's value at each sample."""
        column = self._batch.columns[name][self._rows]
        return np.take_along_axis(column, self._step, axis=1).astype(np.int64)

    def around(self, mean: float, spread: float, digits: int = 1) -> Floats:
        """Noise around a mean, never below zero, as coarse as the real counters."""
        noise = mean + spread * self.random.standard_normal(self.shape)
        positive: Floats = np.maximum(noise, 0.0, dtype=np.float64)
        return np.round(positive, digits)

    def count(self, value: int) -> Ints:
        """The same number everywhere."""
        return np.full(self.shape, value, np.int64)

    def pages(self, mean_bytes: float, spread_bytes: float) -> Ints:
        """Bytes in whole pages around a mean."""
        noise = self.around(mean_bytes, spread_bytes, 0)
        return noise.astype(np.int64) // _PAGE * _PAGE

    def progress(self) -> Floats:
        """0 at the first step, 1 at the run's last."""
        num_steps = self._batch.time_ns.shape[1]
        share: Floats = self._step / max(1, num_steps - 1)
        return share

    def worker_bytes(self) -> Ints:
        """Resident memory of the largest worker; it grows on the hungry host."""
        grown = np.where(
            np.array(self._hungry)[:, None],
            self.progress() * (WORKER_BYTES - _WORKER_BYTES),
            self.progress() * 40 * _MIB,
        )
        return (_WORKER_BYTES + grown).astype(np.int64) // _PAGE * _PAGE


def _device_free(view: _View) -> list[Ints | Floats]:
    used = view.at_step("reserved_bytes") + NON_TORCH_BYTES
    total = view.count(DEVICE_TOTAL_BYTES)
    return [total - used, total, used]


def _gpu(view: _View) -> list[Ints | Floats]:
    used = view.at_step("reserved_bytes") + NON_TORCH_BYTES
    return [
        np.minimum(100.0, view.around(97, 2, 0)),
        np.minimum(100.0, view.around(61, 5, 0)),
        view.around(66, 1.5, 0),
        view.around(655, 18, 3),
        used,
        used - 4 * _MIB,
    ]


def _pinned(view: _View) -> list[Ints | Floats]:
    block = 64 * _MIB
    live = view.random.integers(2, 6, view.shape) * block
    return [live, view.count(6 * block), view.count(8 * block)]


def _process(view: _View) -> list[Ints | Floats]:
    rss = view.at_step("rss_bytes")
    return [
        rss,
        rss + 38 * _GIB,
        view.count(1180 * _MIB),
        view.count(97),
        view.count(214),
        view.around(118, 9),
    ]


def _process_full(view: _View) -> list[Ints | Floats]:
    rss = view.at_step("rss_bytes")
    return [rss - 1180 * _MIB, rss - 1040 * _MIB]


def _workers(view: _View) -> list[Ints | Floats]:
    largest = view.worker_bytes()
    others = (largest * 0.97).astype(np.int64) // _PAGE * _PAGE
    return [
        view.count(NUM_WORKERS),
        largest + (NUM_WORKERS - 1) * others,
        largest,
    ]


def _cpu(view: _View) -> list[Ints | Floats]:
    user, system, iowait = (
        view.around(31, 3),
        view.around(5, 0.8),
        view.around(0.6, 0.4),
    )
    return [np.round(user + system, 1), user, system, iowait]


def _memory(view: _View) -> list[Ints | Floats]:
    workers = RANKS_PER_HOST * NUM_WORKERS * view.worker_bytes()
    used = view.pages(118 * _GIB, 0.4 * _GIB) + workers
    cached = view.pages(160 * _GIB, 0.6 * _GIB)
    total = view.count(HOST_MEMORY_BYTES)
    return [total, used, total - used, cached, view.count(ABSENT), view.count(ABSENT)]


def _swap(view: _View) -> list[Ints | Floats]:
    return [view.count(0), view.count(0)]


def _disk(view: _View) -> list[Ints | Floats]:
    return [
        view.around(420e6, 90e6, 0),
        view.around(6e6, 3e6, 0),
        view.around(2900, 600, 1),
    ]


def _network(view: _View) -> list[Ints | Floats]:
    return [view.around(2.1e9, 0.2e9, 0), view.around(2.1e9, 0.2e9, 0)]


_MEASURE: Final = {
    "device_free": _device_free,
    "gpu": _gpu,
    "pinned": _pinned,
    "process": _process,
    "process_full": _process_full,
    "workers": _workers,
    "cpu": _cpu,
    "memory": _memory,
    "swap": _swap,
    "disk": _disk,
    "network": _network,
}
