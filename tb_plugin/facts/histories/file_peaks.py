"""The peaks of a run's snapshot files, and how the run stands by them."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from memboard.tb_plugin.api.base import RunStanding
from memboard.tb_plugin.api.memory.snapshot_files import (
    CategoryBytes,
    FilePeak,
)
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotReadyError
from memboard.tb_plugin.facts.findings.judge import MAX_UNASKED_BYTES
from memboard.tb_plugin.facts.histories.figures import figures_of
from memboard.tb_plugin.facts.histories.rank_peaks import OPEN_AT_ONCE
from memboard.tb_plugin.index.history_list import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.base import RunStatus
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.open_history import OpenHistory


MAX_FILES: Final = 200

SECONDS: Final = 0.5
"""The page asks again a second later."""

_KEPT_BYTES: Final = 4_000


def judge_ahead(readers: RunReaders, run_id: str) -> bool:
    """Read some small files of a run, for its standing; whether more are left."""
    with readers.reading(run_id) as reading:
        version, histories = reading.run.version, listed(*reading)
    rows = peaks_of_files(readers, reading.run, histories)
    if rows:
        readers.standings[run_id] = version, standing_of_files(run_id, rows)
    return reading.goes_on or any(row.state == "opening" for row in rows)


def peaks_of_files(
    readers: RunReaders, run: Run, wanted: Sequence[FoundHistory]
) -> list[FilePeak]:
    """The peak of each file, of a few that are read now; the others are `opening`."""
    budget, num_opening = Budget(SECONDS), 0
    rows = []
    for history in wanted[-MAX_FILES:]:
        row = readers.store.cache.get(("file peak", history.key))
        may_open = num_opening < OPEN_AT_ONCE and budget.allows()
        if row is None:
            row = _read(readers, run, history, may_open=may_open)
            num_opening += row.state == "opening"
        rows.append(row)
    return rows


def standing_of_files(run_id: str, files: Sequence[FilePeak]) -> RunStanding:
    """How the rail shows the run from now on."""
    peaks = [file.peak_bytes for file in files if file.peak_bytes is not None]
    is_known = bool(peaks) and all(file.state in ("ready", "failed") for file in files)
    # Without its history a snapshot does not say whether there was an error.
    is_fine = is_known and all(file.out_of_memory is False for file in files)
    status: RunStatus | None = "fine" if is_fine else None
    if any(file.out_of_memory for file in files):
        status = "out_of_memory"
    return RunStanding(run_id, status, max(peaks) if is_known else None)


def _read(
    readers: RunReaders, run: Run, history: FoundHistory, *, may_open: bool
) -> FilePeak:
    opening = readers.histories.known(history.key)
    is_small = history.reference.num_bytes <= MAX_UNASKED_BYTES
    if opening is None and is_small and may_open:
        with contextlib.suppress(NotReadyError):
            opening = readers.histories.open(run, history)
    if opening is None:
        return FilePeak(history.reference, "opening" if is_small else "closed")
    row = FilePeak(history.reference, "opening")
    made = opening.derived(partial(_row, history)) if may_open else None
    if made is not None:
        row = made
        readers.histories.tidy()
    elif opening.problem is not None:
        row = FilePeak(history.reference, "failed", opening.problem.what)
    if row.state != "opening":
        readers.store.cache.put(("file peak", history.key), row, _KEPT_BYTES)
    return row


def _row(found_history: FoundHistory, history: OpenHistory) -> FilePeak:
    of_device = {figures.device: figures for figures in figures_of(history)}
    number = history.default_device
    if number is None or number not in of_device:
        return FilePeak(
            found_history.reference,
            "failed",
            "It holds nothing of any device."
            if history.pinned_host_memory is None
            else "It holds pinned host memory alone, and nothing of any device.",
        )
    figures = of_device[number]
    allocated = (holder for holder in figures.holders if not holder.is_pending)
    top = next((holder for holder in allocated if holder.label), None)
    return FilePeak(
        reference=found_history.reference,
        state="ready",
        device=number,
        moment=figures.peak_active_event,
        peak_bytes=float(figures.peak_active_bytes),
        reserved_bytes=float(figures.peak_reserved_bytes),
        out_of_memory=bool(figures.oom) if figures.num_events else None,
        categories=tuple(
            CategoryBytes(name, float(size))
            for name, size in figures.categories_bytes.items()
        ),
        largest=None if top is None else replace(top, bytes=float(top.bytes)),
    )
