"""Hosts whose processors were wanted by more than the training: their times say nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.analysis.arrays import median
from memboard.tb_plugin.analysis.findings.text import percent
from memboard.tb_plugin.api.findings import Advice, Finding
from memboard.tb_plugin.facts.series.selection import RankRows, x_axis

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.formats.recording.series import SeriesReader
    from memboard.tb_plugin.index.run import Run

STOLEN_PCT: Final = 10.0
"""Of the processors' time, at the median: given to other virtual machines."""
RUNNABLE_PCT: Final = 200.0
"""Of the processors, at the median: as many threads wait as run."""
_MIN_SAMPLES: Final = 3


class _Load(NamedTuple):
    host: str
    rank: int
    stolen: float
    runnable: float  # Medians; NaN: not recorded

    @property
    def excess(self) -> float:
        # 1 and more: overloaded
        return float(
            np.nanmax([0, self.stolen / STOLEN_PCT, self.runnable / RUNNABLE_PCT])
        )


def overloaded(
    reader: SeriesReader, run: Run, hosts: Mapping[int, str]
) -> Finding | None:
    """Says that findings about time are off, and why; None: no host was overloaded.

    `hosts`: by rank. One rank of each host samples it.
    """
    stolen = _medians(reader, run, hosts, "cpu_steal_pct")
    runnable = _medians(reader, run, hosts, "cpu_runnable_pct")
    loads = [
        _Load(hosts[rank], rank, stolen.get(rank, np.nan), runnable.get(rank, np.nan))
        for rank in sorted(stolen.keys() | runnable.keys())
    ]
    busy = [load for load in loads if load.excess >= 1]
    if not busy:
        return None
    worst = max(busy, key=lambda load: load.excess)
    evidence, symptoms = [], []
    if worst.stolen >= STOLEN_PCT:
        symptoms.append(f"{worst.stolen:.0f} % of its processors' time was stolen")
        evidence.append(percent("steal", "stolen", worst.stolen / 100, worst.host))
    if worst.runnable >= RUNNABLE_PCT:
        symptoms.append(f"{worst.runnable / 100:.1f} threads a processor ran or waited")
        evidence.append(
            percent("runnable", "runnable", worst.runnable / 100, worst.host)
        )
    others = ""
    if len(busy) > 1:
        others = f" So {'was' if len(busy) == 2 else 'were'} {counted(len(busy) - 1, 'more host')}."
    return Finding(
        id="overloaded",
        key="overloaded",
        severity="info",
        title="Overloaded machine",
        sentence=f"Findings about time are off: {worst.host or 'the host'} was overloaded,"
        f" {' and '.join(symptoms)}.{others}",
        rank=worst.rank,
        evidence=tuple(evidence),
        advice=(Advice("Measure times while nothing else runs on the machine."),),
        rule=f"the median of the stolen time is {STOLEN_PCT:.0f} % or more, or that of"
        f" runnable threads {RUNNABLE_PCT / 100:.0f} a processor or more",
    )


def _medians(
    reader: SeriesReader, run: Run, hosts: Mapping[int, str], column: str
) -> dict[int, float]:
    """By rank that sampled its host."""
    key = run.catalogue.find(column)
    if key is None:
        return {}
    rows_of = RankRows(reader, run, key, x_axis(run, "step"))
    medians = {}
    for rank in run.catalogue.ranks_of(key):
        rows = rows_of.rollup(rank, low=True) if rank in hosts else None
        if rows is not None:
            # Of a long run the lowest of each stretch: it says no more than is sure.
            present = rows.low[~np.isnan(rows.low)]
            if len(present) * rows.width >= _MIN_SAMPLES:
                medians[rank] = median(present)
    return medians
