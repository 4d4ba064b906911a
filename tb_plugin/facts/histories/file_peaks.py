"""The peaks of a run's histories, and how a run of snapshot files stands by them."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from memboard.tb_plugin.analysis.findings.text import size_text
from memboard.tb_plugin.api.base import RunStanding
from memboard.tb_plugin.api.findings import Place
from memboard.tb_plugin.api.memory.snapshot_files import (
    CategoryBytes,
    FilePeak,
)
from memboard.tb_plugin.api.overview import PeakComposition, PeakPart
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.contract.errors import NotReadyError
from memboard.tb_plugin.facts.findings.judge import MAX_UNASKED_BYTES
from memboard.tb_plugin.facts.histories.figures import figures_of
from memboard.tb_plugin.facts.histories.rank_peaks import OPEN_AT_ONCE
from memboard.tb_plugin.index.history_list import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from memboard.tb_plugin.api.base import RunStatus
    from memboard.tb_plugin.api.findings import HeldBy
    from memboard.tb_plugin.api.memory.calls import HistoryReference
    from memboard.tb_plugin.api.memory.histories import HistoryState
    from memboard.tb_plugin.facts.histories.figures import DeviceFigures
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import Run
    from memboard.tb_plugin.jobs.open_history import OpenHistory


MAX_FILES: Final = 200

SECONDS: Final = 0.5
"""The page asks again a second later."""

MAX_HOLDERS: Final = 8
"""Of a peak, that are named."""

_KEPT_BYTES: Final = 8_000


class HistoryPeak(NamedTuple):
    """A history's peak, and what it is made of."""

    row: FilePeak
    composition: PeakComposition | None
    """None: it is not read, or memory ran out, of which a finding says all this."""


def judge_ahead(readers: RunReaders, run_id: str) -> bool:
    """Read some small files of a run, for its standing; whether more are left."""
    with readers.reading(run_id) as reading:
        version, histories = reading.run.version, listed(*reading)
    rows = peaks_of_files(readers, reading.run, histories)
    if rows:
        readers.standings.note(run_id, version, standing_of_files(run_id, rows))
    return reading.goes_on or any(row.state == "opening" for row in rows)


def peaks_of_files(
    readers: RunReaders, run: Run, wanted: Sequence[FoundHistory]
) -> list[FilePeak]:
    """The peak of each file, of a few that are read now; the others are `opening`."""
    return [peak.row for peak in peaks_of_histories(readers, run, wanted)]


def peaks_of_histories(
    readers: RunReaders, run: Run, wanted: Sequence[FoundHistory]
) -> list[HistoryPeak]:
    """The same with their compositions."""
    budget, num_opening = Budget(SECONDS), 0
    peaks = []
    for history in wanted[-MAX_FILES:]:
        peak = readers.store.cache.get(("file peak", history.key))
        may_open = num_opening < OPEN_AT_ONCE and budget.allows()
        if peak is None:
            peak = _read(readers, run, history, may_open=may_open)
            num_opening += peak.row.state == "opening"
        peaks.append(peak)
    return peaks


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
) -> HistoryPeak:
    opening = readers.histories.known(history.key)
    is_small = history.reference.num_bytes <= MAX_UNASKED_BYTES
    if opening is None and is_small and may_open:
        with contextlib.suppress(NotReadyError):
            opening = readers.histories.open(run, history)
    if opening is None:
        state: HistoryState = "opening" if is_small else "closed"
        return HistoryPeak(FilePeak(history.reference, state), None)
    peak = HistoryPeak(FilePeak(history.reference, "opening"), None)
    made = opening.derived(partial(_peak, history)) if may_open else None
    if made is not None:
        peak = made
        readers.histories.tidy()
    elif opening.problem is not None:
        row = FilePeak(history.reference, "failed", opening.problem.what)
        peak = HistoryPeak(row, None)
    if peak.row.state != "opening":
        readers.store.cache.put(("file peak", history.key), peak, _KEPT_BYTES)
    return peak


def _peak(found_history: FoundHistory, history: OpenHistory) -> HistoryPeak:
    of_device = {figures.device: figures for figures in figures_of(history)}
    number = history.default_device
    if number is None or number not in of_device:
        row = FilePeak(
            found_history.reference,
            "failed",
            "It holds nothing of any device."
            if history.pinned_host_memory is None
            else "It holds pinned host memory alone, and nothing of any device.",
        )
        return HistoryPeak(row, None)
    figures = of_device[number]
    allocated = (holder for holder in figures.holders if not holder.is_pending)
    top = next((holder for holder in allocated if holder.label), None)
    row = FilePeak(
        reference=found_history.reference,
        state="ready",
        device=number,
        moment=figures.peak_active_event,
        peak_bytes=float(figures.peak_active_bytes),
        reserved_bytes=float(figures.reserved_at_peak_bytes),
        out_of_memory=bool(figures.oom) if figures.num_events else None,
        categories=tuple(
            CategoryBytes(category, float(size))
            for category, size in figures.categories_bytes.items()
        ),
        largest=None if top is None else replace(top, bytes=float(top.bytes)),
    )
    if figures.oom:
        return HistoryPeak(row, None)
    return HistoryPeak(row, _composition(found_history.reference, figures, top))


def _composition(
    reference: HistoryReference, figures: DeviceFigures, top: HeldBy | None
) -> PeakComposition:
    peak = size_text(figures.peak_active_bytes)
    file_name = (reference.path or reference.label).rsplit("/", 1)[-1]
    of_peak = (
        f"of the {peak} peak of {file_name}" if file_name else f"of the {peak} peak"
    )
    sentence = f"The peak of {file_name or 'the history'} is {peak}."
    if top is not None:
        sentence = f"{top.label} holds {size_text(int(top.bytes))} {of_peak}."
    categories = [
        PeakPart(category, category, float(size))
        for category, size in figures.categories_bytes.items()
    ]
    if figures.rounding_bytes:
        rounding = PeakPart("rounding", "unknown", float(figures.rounding_bytes))
        categories.append(rounding)
    return PeakComposition(
        title=f"Memory at the peak{'' if reference.path else ' of the history'}",
        sentence=sentence,
        bytes=float(figures.peak_active_bytes),
        reserved_bytes=float(figures.reserved_at_peak_bytes),
        capacity_bytes=figures.capacity_bytes,
        categories=tuple(sorted(categories, key=lambda part: -part.bytes)),
        holders_title="Top allocation sites",
        holders=tuple(
            PeakPart(
                "waits to be freed" if holder.is_pending else holder.label,
                holder.category or "unknown",
                float(holder.bytes),
            )
            for holder in figures.holders[:MAX_HOLDERS]
        ),
        not_recorded=figures.not_recorded,
        place=Place(
            "blocks",
            "Show the blocks",
            rank=reference.rank,
            history=reference.id,
            device=figures.device,
            moment=figures.peak_active_event,
        ),
    )
