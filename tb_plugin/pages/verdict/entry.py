"""One out-of-memory error as the page shows it, from everything known of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from collector.format.memory import CATEGORIES, FOLDS_INTO
from tb_plugin import api
from tb_plugin.analysis.oom.error import filled
from tb_plugin.analysis.oom.verdict import verdict
from tb_plugin.pages.verdict.advice import advice_of
from tb_plugin.pages.verdict.case import Case
from tb_plugin.pages.verdict.evidence import evidence_of
from tb_plugin.pages.verdict.peers import peak_sizes, response_of
from tb_plugin.pages.verdict.report import as_markdown
from tb_plugin.pages.verdict.words import (
    earlier_words,
    ended_sentence_of,
    held_sentence_of,
    sentence_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from tb_plugin.analysis.oom.error import Growth, OomFacts
    from tb_plugin.analysis.oom.errors import OomError
    from tb_plugin.analysis.oom.holders import Holder
    from tb_plugin.formats.recording.oom import OomReport
    from tb_plugin.jobs.history_list import FoundHistory
    from tb_plugin.pages.verdict.peers import Peer

_MAX_TEXT: Final = 2000


@dataclass(frozen=True, slots=True)
class Beside:
    """What is known beside the error itself."""

    attempt: int
    peers: Sequence[Peer]
    ran_out: Collection[int]
    """Other ranks that ran out of memory too."""
    world_size: int
    usual_non_torch_bytes: int | None = None
    growth: Growth | None = None
    """Of the recorded steps."""
    capacity_bytes: int | None = None
    """Size of the device as the user named it, where nothing recorded it."""
    num_earlier: int = 0
    """Errors before it that the program survived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What is said of an error, whoever said it; see `api.OutOfMemory`."""

    id: str
    file: str
    origin: api.OomOrigin
    rank: int | None
    step: int | None
    phase: str
    during: str
    time_ms: float
    message: str
    history: str | None
    moment: int | None
    why_no_history: str
    missing: tuple[str, ...] = ()
    num_later: int = 0


def entry_of_report(
    report: OomReport,
    beside: Beside,
    history: FoundHistory | None,
    error: OomError | None,
) -> api.OutOfMemory:
    """An error of which the recorder told; `error`: what its history says of it."""
    facts = report.facts if error is None else filled(error.facts, report.facts)
    case = _case(
        facts,
        beside,
        error,
        device=report.device if error is None else error.device,
        parsed=report.parsed and error is None,
        is_out_of_memory=report.is_out_of_memory,
        expandable=report.expandable,
        holders=report.holders,
        live_bytes=report.live_bytes,
        by_category=_folded(report.categories),
        stack=report.stack,
        asked_at=report.asked_at,
        asked_in=report.asked_in,
    )
    told = _Told(
        id=report.id,
        file=report.file.rpartition("/")[2],
        origin=report.origin,
        rank=report.rank,
        step=report.step,
        phase=report.phase,
        during=report.during or ("" if error is None else error.phase),
        time_ms=report.time_ns / 1e6,
        message=report.message[:_MAX_TEXT],
        history=None if history is None else history.reference.id,
        moment=None if error is None else error.event,
        why_no_history=report.history_why_not,
        missing=tuple(_missing(report)),
    )
    return _entry(case, beside, told)


def entry_of_file(
    history: FoundHistory, error: OomError, beside: Beside
) -> api.OutOfMemory:
    """An error inside a snapshot that another tool wrote."""
    reference = history.reference
    time_ms = reference.time_ms if error.time_us is None else error.time_us / 1e3
    case = _case(
        error.facts,
        beside,
        error,
        device=error.device,
        expandable=error.expandable,
    )
    told = _Told(
        id=f"{reference.id}-{error.device}-{error.event}",
        file=reference.path or reference.label,
        origin="file",
        rank=reference.rank,
        step=reference.step if error.step is None else error.step,
        phase="",
        during=error.phase,
        time_ms=time_ms,
        message="",
        history=reference.id,
        moment=error.event,
        why_no_history="",
        num_later=error.num_later,
    )
    return _entry(case, beside, told)


def _case(
    facts: OomFacts,
    beside: Beside,
    error: OomError | None,
    *,
    device: int | None,
    expandable: bool | None,
    parsed: bool = False,
    is_out_of_memory: bool = True,
    holders: tuple[Holder, ...] = (),
    live_bytes: int | None = None,
    by_category: dict[str, int] | None = None,
    stack: tuple[str, ...] = (),
    asked_at: str = "",
    asked_in: str = "",
) -> Case:
    is_given = facts.capacity_bytes is None and beside.capacity_bytes is not None
    facts = replace(
        facts,
        capacity_bytes=beside.capacity_bytes if is_given else facts.capacity_bytes,
        peers_peak_bytes=peak_sizes(beside.peers),
        usual_non_torch_bytes=beside.usual_non_torch_bytes,
        growth=_growth(facts.growth, beside.growth),
    )
    if error is not None:
        expandable = error.expandable if expandable is None else expandable
        stack, asked_at = error.stack or stack, error.asked_at or asked_at
        asked_in = error.asked_in or asked_in
        holders, live_bytes = error.holders, error.live_bytes
        by_category = dict(error.by_category)
    return Case(
        facts=facts,
        verdict=verdict(facts),
        device=device,
        replayed=error is not None,
        parsed=parsed,
        is_out_of_memory=is_out_of_memory,
        expandable=expandable,
        holders=holders,
        live_bytes=live_bytes,
        by_category=by_category or {},
        stack=stack,
        asked_at=asked_at,
        asked_in=asked_in,
        world_size=beside.world_size,
        holdings=() if error is None else error.holdings,
        trains=error is None or error.trains,
        makes_model=error is not None and error.makes_model,
        capacity_is_given=is_given,
    )


def _growth(of_lines: Growth | None, of_steps: Growth | None) -> Growth | None:
    """What a history says is kept, growing as fast as the step table says.

    Growth per step is one number on all pages: that of the table, where there is one. A
    history shows the last steps alone.
    """
    if of_lines is None or of_steps is None or of_lines.by != "steps":
        return of_lines or of_steps
    return replace(
        of_lines,
        bytes_per_round=of_steps.bytes_per_round,
        is_run_rate=True,
        late_bytes_per_round=of_steps.late_bytes_per_round,
    )


def _entry(case: Case, beside: Beside, told: _Told) -> api.OutOfMemory:
    holders = tuple(_holder(holder) for holder in case.holders)
    not_recorded = _not_recorded(case, told.history, told.why_no_history)
    entry = api.OutOfMemory(
        id=told.id,
        origin=told.origin,
        is_out_of_memory=case.is_out_of_memory,
        rank=told.rank,
        attempt=beside.attempt,
        file=told.file,
        device=case.device,
        step=told.step,
        phase=told.phase,
        during=told.during,
        asked_at=case.asked_at,
        time_ms=told.time_ms,
        message=told.message,
        analysed=case.replayed,
        num_earlier=beside.num_earlier,
        **_judged(case, told, beside, holders),
        held_sentence=held_sentence_of(holders, case.live_bytes),
        **_sizes(case.facts),
        evidence=evidence_of(case),
        holders=holders,
        stack=case.stack,
        history=told.history,
        moment=told.moment,
        peers=response_of(beside.peers, beside.ran_out),
        report="",
        not_recorded=(*not_recorded, *told.missing),
    )
    return replace(entry, report=as_markdown(entry))


def _judged(
    case: Case, told: _Told, beside: Beside, holders: tuple[api.VerdictHolder, ...]
) -> dict[str, Any]:
    """The cause and what to do; of what ended a training otherwise, that it did."""
    facts, found = case.facts, case.verdict
    if not case.is_out_of_memory:
        sentence = ended_sentence_of(facts, told.message)
        return {"cause": "unsure", "also": (), "sentence": sentence, "advice": ()}
    sentence = sentence_of(facts, found.cause, holders, case.live_bytes)
    sentence += earlier_words(beside.num_earlier, told.num_later)
    return {
        "cause": found.cause,
        "also": found.also,
        "sentence": sentence,
        "advice": advice_of(case),
    }


def _sizes(facts: OomFacts) -> dict[str, Any]:
    """The numbers of the moment."""
    free = facts.free
    return {
        "requested_bytes": facts.requested_bytes,
        "device_free_bytes": facts.device_free_bytes,
        "capacity_bytes": facts.capacity_bytes,
        "reserved_bytes": facts.reserved_bytes,
        "allocated_bytes": facts.allocated_bytes,
        "active_bytes": facts.active_bytes,
        "free_bytes": None if free is None else free.num_bytes,
        "num_free_blocks": None if free is None else free.num_blocks,
        "largest_free_bytes": None if free is None else free.largest_bytes,
    }


def _holder(holder: Holder) -> api.VerdictHolder:
    category = holder.category
    return api.VerdictHolder(
        label=holder.label,
        category=FOLDS_INTO[CATEGORIES[category]] if category >= 0 else None,  # type: ignore[arg-type]
        bytes=float(holder.num_bytes),
        share=holder.share,
        num_blocks=holder.num_blocks,
        stack=holder.stack if holder.stack >= 0 else None,
    )


def _folded(categories: Sequence[tuple[int, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for category, num_bytes in categories:
        name = FOLDS_INTO[CATEGORIES[category]] if category >= 0 else "unknown"
        found[name] = found.get(name, 0) + num_bytes
    return found


def _not_recorded(
    case: Case, history: str | None, why_no_history: str
) -> Iterator[str]:
    """What would have made the verdict surer."""
    if history is None:
        why = f" ({why_no_history})" if why_no_history else ""
        yield (
            f"The allocator's history{why}: free blocks, growth by line and what lived"
            " at the error. It is recorded by default on CUDA devices:"
            " RecordConfig(oom=OomConfig(history=True))."
        )
    elif not case.replayed:
        yield "The history was not looked through yet: open it for a surer verdict."
    if case.facts.capacity_bytes is None:
        yield (
            "The device's size: memory outside torch cannot be told. A recording of"
            " MemBoard's own holds it; for a file, say it with --capacity, as in"
            " memboard report FILE --capacity 80GiB."
        )
    if case.replayed and case.facts.beginning_is_lost:
        yield (
            "The beginning of the history: older events were overwritten. More are kept"
            " with a larger max_entries."
        )
    if case.replayed and not case.holders:
        yield "Stacks of allocations: who holds the memory is not known."
    if case.world_size > 1 and not case.facts.peers_peak_bytes:
        yield "The other ranks: whether they held less is not known."


def _missing(report: OomReport) -> Iterator[str]:
    """What the report itself says that it lacks."""
    if report.held_why_not and not report.holders:
        yield f"Who held the memory, in the report: {report.held_why_not.rstrip('.')}."
    if report.num_not_reported:
        num = report.num_not_reported
        words = "error has no report" if num == 1 else "errors have no report"
        yield f"{num:,} more {words} of their own in this recording."
