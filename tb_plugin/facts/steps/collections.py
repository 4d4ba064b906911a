"""Runs of Python's garbage collector in a rank's steps, and the memory they freed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.collector.format.columns import STEP_TABLE
from memboard.tb_plugin.analysis.findings.cycles import (
    CollectedSteps,
    Collections,
    sawtooth,
)
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED_NOW, FULL_COLLECTIONS, RSS
from memboard.tb_plugin.formats.recording.series import SeriesKey, schemas_of

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.arrays import Floats, Ints
    from memboard.tb_plugin.analysis.findings.cycles import Sawtooth
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.formats.recording.series import SeriesReader

MAX_STEPS: Final = 2000
_COUNTS: Final = (
    "gc_partial_collections",
    FULL_COLLECTIONS,
    "gc_collected_objects",
)
DEVICE_MEMORY: Final = "device memory"
_MEMORY: Final = {ALLOCATED_NOW: DEVICE_MEMORY, RSS: "host memory"}
"""Columns that a collection may lower, the first one that it does lower counts."""


class MemoryInCycles(NamedTuple):
    """The sawtooth of one rank, and the memory that it is of."""

    memory: str
    """`device memory` or `host memory`."""
    teeth: Sawtooth


def memory_in_cycles(
    file: RankFile, series: SeriesReader, budget: Budget
) -> MemoryInCycles | None:
    """Of the last training steps of a file; None too where the budget ends before."""
    for column, memory in _MEMORY.items():
        key = SeriesKey(STEP_TABLE, column)
        if schemas_of(file, key):
            teeth = _sawtooth_of(file, series, key, budget)
            if teeth is not None:
                return MemoryInCycles(memory, teeth)
    return None


def _sawtooth_of(
    file: RankFile, series: SeriesReader, key: SeriesKey, budget: Budget
) -> Sawtooth | None:
    counts = SeriesKey(STEP_TABLE, _COUNTS[-1])
    first_and_last = series.steps(file)
    if first_and_last is None or not schemas_of(file, counts):
        return None
    wanted = ["step", "time_ns", key.column, *_COUNTS]
    low = max(first_and_last[0], first_and_last[1] - MAX_STEPS)
    columns = series.rows_between(file, key, wanted, low, first_and_last[1], budget)
    if columns is None:
        return None
    rows = columns["step"] >= low
    memory, partial, full, objects = (
        np.asarray(columns[name], np.float64)[rows] for name in (key.column, *_COUNTS)
    )
    return sawtooth(memory, Collections(partial, full, objects))


def collected_steps(
    file: RankFile, series: SeriesReader, phase: str, steps: Ints, budget: Budget
) -> CollectedSteps | None:
    """Which of these steps had a full collection; None where the file does not say it.

    `steps`: ascending.
    """
    key = SeriesKey(STEP_TABLE, FULL_COLLECTIONS, phase)
    if not len(steps) or not schemas_of(file, key):
        return None
    wanted = ["step", "time_ns", FULL_COLLECTIONS]
    low, high = int(steps[0]) - 1, int(steps[-1])
    columns = series.rows_between(file, key, wanted, low, high, budget)
    if columns is None:
        return None
    counts: Floats = np.asarray(columns[FULL_COLLECTIONS], np.float64)
    recorded = np.asarray(columns["step"], np.int64)[~np.isnan(counts)]
    ran = np.diff(counts[~np.isnan(counts)]) > 0
    has_run = np.where(np.isin(steps, recorded[1:]), 0.0, np.nan)
    has_run[np.isin(steps, recorded[1:][ran])] = 1.0
    in_cycles = memory_in_cycles(file, series, budget)
    return CollectedSteps(has_run, frees_cycles=in_cycles is not None)
