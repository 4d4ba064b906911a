"""Ranks whose memory is held by reference cycles, from the last rows of their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from collector.format.columns import STEP_TABLE
from tb_plugin.analysis.findings.cycles import (
    Collections,
    reference_cycles,
    sawtooth,
)
from tb_plugin.formats.recording.series import SeriesKey, schemas_of
from tb_plugin.pages.overview.facts import ALLOCATED_NOW, RSS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tb_plugin.analysis.findings.cycles import Sawtooth
    from tb_plugin.api.findings import Finding
    from tb_plugin.budget import Budget
    from tb_plugin.formats.recording.rank_file import RankFile
    from tb_plugin.formats.recording.series import SeriesReader
    from tb_plugin.index.run import Run

MAX_STEPS: Final = 2000
MAX_RANKS: Final = 8
"""Ranks of one program have the same cycles: no more are read."""
_COUNTS: Final = (
    "gc_partial_collections",
    "gc_full_collections",
    "gc_collected_objects",
)


def cycle_findings(
    run: Run, ranks: Sequence[int], series: SeriesReader, budget: Budget
) -> Iterator[Finding]:
    """The rank with the largest fall, of at most `MAX_RANKS`."""
    worst: tuple[float, Finding] | None = None
    for rank in [rank for rank in ranks if run.rank_files(rank)][:MAX_RANKS]:
        file = run.rank_files(rank)[-1][1]
        for column, memory in ((ALLOCATED_NOW, "device memory"), (RSS, "host memory")):
            key = SeriesKey(STEP_TABLE, column)
            if not schemas_of(file, key):
                continue
            teeth = sawtooth_of(file, series, key, budget)
            size = file.header.device_total_bytes if column == ALLOCATED_NOW else None
            if teeth is not None and (worst is None or teeth.largest_fall > worst[0]):
                capacity = None if size is None else float(size)
                one = reference_cycles(rank, teeth, memory=memory, capacity=capacity)
                worst = teeth.largest_fall, one
            break
    if worst is not None:
        yield worst[1]


def sawtooth_of(
    file: RankFile, series: SeriesReader, key: SeriesKey, budget: Budget
) -> Sawtooth | None:
    """Of the last training steps of a file; None too where the budget ends before."""
    counts = SeriesKey(STEP_TABLE, _COUNTS[-1])
    known = series.steps(file)
    if known is None or not schemas_of(file, counts):
        return None
    wanted = ["step", "time_ns", key.column, *_COUNTS]
    low = max(known[0], known[1] - MAX_STEPS)
    columns = series.rows_between(file, key, wanted, low, known[1], budget)
    if columns is None:
        return None
    rows = columns["step"] >= low
    memory, partial, full, objects = (
        np.asarray(columns[name], np.float64)[rows] for name in (key.column, *_COUNTS)
    )
    return sawtooth(memory, Collections(partial, full, objects))
