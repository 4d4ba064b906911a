"""What the memory at the peak of a run is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memboard.collector.format.sizes import SHOWN_UNIT, capitalized
from memboard.tb_plugin.api.findings import Place
from memboard.tb_plugin.api.overview import (
    PeakComposition,
    PeakCompositionResponse,
    PeakPart,
)
from memboard.tb_plugin.facts.histories.file_peaks import (
    MAX_HOLDERS,
    peaks_of_histories,
)
from memboard.tb_plugin.facts.modules.choice import absent_of, choose, window_of
from memboard.tb_plugin.facts.modules.sentences import lead_of
from memboard.tb_plugin.facts.modules.tracked_peak import tracked_peak
from memboard.tb_plugin.facts.modules.values import ModulesQuery, module_values
from memboard.tb_plugin.facts.series.selection import capacity_of
from memboard.tb_plugin.facts.view import View
from memboard.tb_plugin.index.history_list import listed, of_rank
from memboard.tb_plugin.index.store import REQUEST_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from memboard.tb_plugin.facts.modules.choice import Choice
    from memboard.tb_plugin.facts.readers import RunReaders
    from memboard.tb_plugin.formats.recording.captures.modules import RankModules

_AT_AN_ERROR = ("oom", "exception", "signal")
_COMPOSITION_BYTES = 8_000


def peak_composition(
    readers: RunReaders, run_id: str, rank: int | None
) -> PeakCompositionResponse:
    """Of one rank, or of the one with the highest peak; see the response."""
    with readers.reading(run_id, REQUEST_SECONDS) as reading:
        run, summary = reading.run, readers.summary(reading.run)
        query = ModulesQuery(run=run_id, rank=rank)
        view = View(readers.store.series, run, summary, query, reading.budget)
        choice = choose(readers.modules, view)
        composition = (
            None if choice is None else _step_composition(view, readers, choice)
        )
        is_recording = run.made_of == "recording"
        absences = absent_of(readers.modules, run, choice) if is_recording else ()
        histories = [] if composition else of_rank(listed(*reading), rank)
        goes_on = reading.goes_on
    if is_recording:
        calm = [history for history in histories if history.origin not in _AT_AN_ERROR]
        histories = calm[-1:]
    peaks = peaks_of_histories(readers, run, histories)
    # Equal peaks: the newest.
    fullest = max(peaks, key=lambda peak: peak.row.peak_bytes or 0.0, default=None)
    if fullest is not None:
        composition = fullest.composition
    how = ""
    if composition is None and absences:
        texts = ("Modules were not tracked", absences[0].reason, absences[0].remedy)
        how = " ".join(f"{capitalized(text.rstrip('.'))}." for text in texts if text)
    return PeakCompositionResponse(
        run=summary,
        composition=composition,
        how=how,
        still_reading=goes_on or any(peak.row.state == "opening" for peak in peaks),
    )


def _step_composition(
    view: View[ModulesQuery], readers: RunReaders, choice: Choice
) -> PeakComposition | None:
    """Of the tracked step that Modules opens at, made once for each."""
    if choice.opened is None:
        return None
    capacity = capacity_of(view.run, [choice.rank], _group_of(choice.device_name))
    window = choice.ranks[choice.rank].identity
    unit = SHOWN_UNIT.get()  # in which its texts are
    key = (window, choice.device, len(choice.ranks), capacity, unit, "composition")
    cache = readers.modules.cache
    made: tuple[PeakComposition | None] | None = cache.get(key)
    if made is None:
        composition = _of_step(
            readers, view, choice, choice.opened, capacity.size_bytes
        )
        made = (composition,)
        cache.put(key, made, _COMPOSITION_BYTES)
    return made[0]


def _of_step(
    readers: RunReaders,
    view: View[ModulesQuery],
    choice: Choice,
    opened: RankModules,
    capacity_bytes: float | None,
) -> PeakComposition | None:
    peak = tracked_peak(opened.memory, choice.device)
    values = module_values(readers.modules, view, choice, opened)
    if peak is None or values.whole is None or values.state != "window_peak":
        return None
    window = window_of(choice.key, choice.ranks, attempts=False)
    lead = lead_of(
        values.whole,
        values.state,
        window,
        choice.rank,
        has_modules=values.measure == "held",
        against="",
    )
    modules = sorted(
        (_part(label, sizes) for label, sizes in peak.by_module.items()),
        key=lambda part: -part.bytes,
    )
    categories = sorted(peak.by_category.items(), key=lambda item: -item[1])
    of_what = "the tracked call" if window.step is None else f"step {window.step}"
    return PeakComposition(
        title=f"Memory at the peak of {of_what}",
        sentence=f"{lead.before}{lead.module or ''}{lead.after}",
        bytes=peak.num_bytes,
        reserved_bytes=None,
        capacity_bytes=capacity_bytes,
        categories=tuple(
            PeakPart(label, label, num_bytes)
            for label, num_bytes in categories
            if num_bytes
        ),
        holders_title="Largest modules",
        holders=tuple(part for part in modules[:MAX_HOLDERS] if part.bytes > 0),
        not_recorded=(),
        place=Place("modules", "Show the modules", rank=choice.rank),
    )


def _group_of(device_name: str) -> str:
    """Of columns about such memory; of the host's no size is shown."""
    return "" if device_name.startswith("cpu") else "device"


def _part(label: str, sizes: Mapping[str, float]) -> PeakPart:
    category = max(sizes, key=sizes.__getitem__, default="unknown")
    return PeakPart(label, category, sum(sizes.values()))
