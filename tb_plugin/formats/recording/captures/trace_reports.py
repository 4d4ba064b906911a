"""Reports in our own recordings on the traces they saved: captures of kind `trace`.

A report holds what torch's profiler summed up while training: a text of its tables, the
operators as numbers, and memory by category. It needs no trace file, which may be gone.
Files may hold anything: what is not of its type is taken as not known, texts are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from memboard.collector.format.memory import CATEGORIES
from memboard.tb_plugin.analysis.operators.operator_sums import OPERATOR_COLUMNS
from memboard.tb_plugin.formats.recording.captures.meta import Meta
from memboard.tb_plugin.formats.recording.captures.reading import (
    CaptureMetas,
    capture_of,
    traces_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from memboard.collector.format.records import CaptureEntry, CaptureTable
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.run import Run

    Ints: TypeAlias = npt.NDArray[Any]

MAX_REPORTS: Final = 5_000
"""Of one run: the newest."""
MAX_SUMMARY: Final = 500_000
MAX_OPERATORS: Final = 20_000
MAX_MOMENTS: Final = 1_000_000
MAX_DEVICES: Final = 64
_MAX_TEXT: Final = 500


@dataclass(frozen=True, slots=True)
class FoundReport:
    """A report, and what its `meta` says; nothing of its tables was read."""

    id: str
    """`{rank}-{attempt}-{offset}`; stays when what was read out of the trace comes."""
    file: RankFile
    entry: CaptureEntry
    meta: Meta


@dataclass(frozen=True, slots=True, eq=False)
class ReportTables:
    """What a report holds besides its `meta`; columns of equal length."""

    names: tuple[str, ...]
    operators: Mapping[str, Ints]
    """By each of `OPERATOR_COLUMNS`; empty where operators were not summed up."""
    memory: Mapping[str, tuple[Ints, Ints]]
    """By device: time_ns (moments,) ascending, and bytes (moments, categories)."""
    categories: tuple[str, ...]


class TraceReports:
    """Reports of runs; what `meta` says is cached. Hold the run's lock."""

    def __init__(self, capture_metas: CaptureMetas) -> None:
        self._metas = capture_metas

    def of(self, run: Run, budget: Budget) -> list[FoundReport]:
        """All of a run, by rank and time; the newest of each where there are many."""
        reports = []
        for rank in run.ranks:
            for _, file in run.rank_files(rank):
                for first, entry in traces_of(file, budget)[-MAX_REPORTS:]:
                    meta = self._metas.of(file, entry, budget)
                    if meta:
                        report_id = f"{file.rank}-{file.attempt}-{first.offset}"
                        reports.append(FoundReport(report_id, file, entry, Meta(meta)))
        return reports[-MAX_REPORTS:]


def tables_of(report: FoundReport) -> ReportTables:
    """What a report holds.

    Raises:
        FormatError: its capture is damaged.
        OSError: the file cannot be read.
    """
    tables = capture_of(report.file, report.entry).tables
    try:
        names, operators = _operators(tables.get("operators", {}))
    except (KeyError, TypeError, ValueError, OverflowError):
        names, operators = (), {}
    try:
        categories, memory = _memory(tables.get("memory_timeline", {}))
    except (KeyError, TypeError, ValueError, OverflowError):
        categories, memory = (), {}
    return ReportTables(names, operators, memory, categories)


def _operators(table: CaptureTable) -> tuple[tuple[str, ...], Mapping[str, Ints]]:
    if not table:
        return (), {}
    names = tuple(str(name)[:_MAX_TEXT] for name in table["name"][:MAX_OPERATORS])
    columns = {
        name: np.asarray(table[name], np.int64)[:MAX_OPERATORS]
        for name in OPERATOR_COLUMNS
        if name in table
    }
    if any(len(column) != len(names) for column in columns.values()):
        raise ValueError("columns of unequal length")
    none = np.zeros(len(names), np.int64)
    return names, {name: columns.get(name, none) for name in OPERATOR_COLUMNS}


def _memory(
    table: CaptureTable,
) -> tuple[tuple[str, ...], Mapping[str, tuple[Ints, Ints]]]:
    if not table:
        return (), {}
    categories = tuple(
        category for category in CATEGORIES if f"{category}_bytes" in table
    )
    time_ns = np.asarray(table["time_ns"], np.int64)[:MAX_MOMENTS]
    device = np.asarray(table["device"], dtype=object)[:MAX_MOMENTS]
    columns = [
        np.asarray(table[f"{category}_bytes"], np.int64) for category in categories
    ]
    sizes = np.stack([column[:MAX_MOMENTS] for column in columns], axis=1)
    if not len(time_ns) == len(device) == len(sizes):
        raise ValueError("columns of unequal length")
    memory_by_device: dict[str, tuple[Ints, Ints]] = {}
    for device_name in dict.fromkeys(device.tolist()):
        if len(memory_by_device) >= MAX_DEVICES:
            break
        rows = np.flatnonzero(device == device_name)
        rows = rows[np.argsort(time_ns[rows], kind="stable")]
        memory_by_device[str(device_name)[:_MAX_TEXT]] = (
            time_ns[rows],
            np.maximum(sizes[rows], 0),
        )
    return categories, memory_by_device


def device_shown(devices: Sequence[str], asked: str | None) -> str | None:
    """The query's device, else the first accelerator, else any; None: there is none."""
    if asked in devices:
        return asked
    accelerators = [device for device in devices if not device.startswith("cpu")]
    return next(iter([*accelerators, *devices]), None)
