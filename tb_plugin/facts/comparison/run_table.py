"""All runs as rows of one table: how each ended, its numbers, and where settings differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, get_args
from weakref import WeakKeyDictionary

import numpy as np

from memboard.collector.format.sizes import counted
from memboard.tb_plugin.api.base import RunStatus
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.table import Column, table_of, titled
from memboard.tb_plugin.facts.comparison.run_settings import (
    different_settings,
    settings_of,
)
from memboard.tb_plugin.facts.comparison.run_sides import run_numbers
from memboard.tb_plugin.facts.overview.prediction import predictions_of
from memboard.tb_plugin.facts.ranks.headroom import least_headroom
from memboard.tb_plugin.facts.ranks.rank_numbers import RankNumbers
from memboard.tb_plugin.facts.ranks.rank_strip import strip_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from memboard.tb_plugin.api.base import RunStanding, RunSummary
    from memboard.tb_plugin.api.tables import TableRows
    from memboard.tb_plugin.facts.comparison.run_sides import Key, Number
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.index.run import Run

MAX_ROWS: Final = 2_000
SECONDS: Final = 0.5
"""Time of one poll for the numbers of runs."""
SETTING: Final = "setting:"
_STATUSES: Final[tuple[RunStatus, ...]] = get_args(RunStatus)
"""From the worst to the best."""

_COLUMNS: Final = (
    Column("name", "Run", unit="name", help="Its folder in the logdir"),
    Column(
        "verdict",
        "Verdict",
        unit="text",
        help="Its worst finding; fine: everything was read, and there is none",
        absent="Not known yet, or nothing tells it",
    ),
    Column(
        "peak_bytes",
        "Peak",
        unit="bytes",
        help="Highest allocated bytes of all ranks; resident memory without a device",
        absent="Not recorded, or not read yet",
    ),
    Column(
        "headroom_bytes",
        "Headroom",
        unit="bytes",
        help="Capacity less the most that was used at one moment, of the worst rank",
    ),
    Column(
        "step_seconds",
        "Step time",
        unit="seconds",
        help="Median over the steps, of the slowest rank",
    ),
    Column(
        "tokens",
        "Tokens/s",
        help="Median over the steps, of all ranks together, up to 64 of them",
    ),
    Column(
        "samples",
        "Samples/s",
        help="Median over the steps, of all ranks together, up to 64 of them",
    ),
)
_STARTED: Final = Column(
    "started_ms", "Started", unit="instant", help="The first of its ranks"
)
_USUAL: Final = ("name", "verdict", "peak_bytes", "headroom_bytes", "step_seconds")
"""Shown even where no run has a value."""
_UNKNOWN: Final = "Not recorded, or not read yet"


class RunRow(NamedTuple):
    """Numbers of a run that its standing does not have; NaN: not known."""

    headroom_bytes: float = np.nan
    step_seconds: float = np.nan
    tokens: float = np.nan
    samples: float = np.nan
    settings: Mapping[str, str] = {}


class RunTable:
    """Rows by run, each made anew only where the run changed. Safe for threads."""

    def __init__(self, readers: RunReaders) -> None:
        self.version = 0
        """Raised whenever a row changes."""
        self._readers: Final = readers
        self._rows: WeakKeyDictionary[Run, tuple[int, RunRow]] = WeakKeyDictionary()

    def rows_of(self, runs: Iterable[Run]) -> tuple[list[RunRow], bool]:
        """As far as their files were opened; and whether some wait for their turn."""
        budget = Budget(SECONDS)
        rows = [self._row(run, budget) for run in runs]
        return rows, budget.exhausted

    def _row(self, run: Run, budget: Budget) -> RunRow:
        with run.lock:
            version, before = self._rows.get(run, (-1, RunRow()))
            is_current = version == run.version or run.made_of != "recording"
            if is_current or not budget.allows():
                return before
            numbers = RankNumbers(self._readers.facts, run, budget)
            version = run.version
            row = _row(self._readers, run, numbers)
            # Numbers of an earlier look are not cached as those of the run's version now.
            is_whole = numbers.are_current(run.ranks) and not run.unfinished
            self._rows[run] = (version if is_whole else -1), row
            self.version += str(row) != str(before)
            return row


def _row(readers: RunReaders, run: Run, numbers: RankNumbers) -> RunRow:
    headers = [file.header for file in run.files.values() if file.has_records]
    settings = settings_of(headers[0]) if headers else {}
    ranks = run.ranks
    if not ranks or not headers or not numbers.are_whole(run):
        return RunRow(settings=settings)
    strip = strip_of(run, ranks, numbers)
    is_virtual = any(header.virtual_gpu for header in headers)
    predictions = predictions_of(run, ranks) if is_virtual else None
    own, totals = run_numbers(readers.store.series, run, strip, numbers)

    def value(of: Mapping[Key, Number], key: Key) -> float:
        number = of.get(key)
        return np.nan if number is None else number.value

    return RunRow(
        headroom_bytes=least_headroom(run, numbers, strip, predictions),
        step_seconds=value(own, "step_time"),
        tokens=value(totals, "tokens"),
        samples=value(totals, "samples"),
        settings=settings,
    )


def run_table(
    summaries: Sequence[RunSummary],
    standings: Sequence[RunStanding],
    rows: Sequence[RunRow],
    num_runs: int,
) -> TableRows:
    """The table of some runs, each with its summary, standing and row, in one order."""
    values: dict[str, Sequence[object]] = {
        "name": [summary.name for summary in summaries],
        "verdict": [_verdict(standing) for standing in standings],
        "peak_bytes": [standing.peak_bytes for standing in standings],
        "headroom_bytes": [row.headroom_bytes for row in rows],
        "step_seconds": [row.step_seconds for row in rows],
        "tokens": [row.tokens for row in rows],
        "samples": [row.samples for row in rows],
        "started_ms": [summary.first_ms or None for summary in summaries],
    }
    shown = {key for key in values if key in _USUAL or not _is_unknown(values[key])}
    if "tokens" in shown:
        shown.discard("samples")  # they say the same of runs that are alike
    columns = [column for column in _COLUMNS if column.key in shown]
    for setting in different_settings([row.settings for row in rows]):
        key = f"{SETTING}{setting}"
        values[key] = [row.settings.get(setting, "") for row in rows]
        columns.append(
            Column(
                key,
                setting,
                unit="text",
                help=f"{setting}, as recorded; shown where runs differ in it",
                absent=_UNKNOWN,
            )
        )
    columns.append(_STARTED)
    order = [
        np.nan if standing.status is None else _STATUSES.index(standing.status)
        for standing in standings
    ]
    table = table_of(
        columns,
        values,
        "-verdict",
        num_all=num_runs,
        more={
            "name": {"notes": [_kind(summary) for summary in summaries]},
            "verdict": {"order": order},
        },
    )
    return titled(table, "Runs", counted(num_runs, "run"), "No run was found.")


def _is_unknown(values: Sequence[object]) -> bool:
    return bool(np.isnan(np.array(values, np.float64)).all())


def _verdict(standing: RunStanding) -> str:
    """The worst finding in words; else the status."""
    return standing.finding.lower() or (standing.status or "").replace("_", " ")


def _kind(summary: RunSummary) -> str:
    """What a run is, unless it is the recording of a real one."""
    if summary.simulated:
        return "simulated"
    if summary.virtual_gpu:
        return "virtual"
    return "" if summary.made_of == "recording" else summary.made_of
