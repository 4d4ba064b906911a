"""The finding of one error, from everything known of it and of the other ranks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import structs

from memboard.collector.format.sizes import agreeing, counted
from memboard.tb_plugin.analysis.oom.case import Growth
from memboard.tb_plugin.analysis.oom.judge import ended_finding, held_by, oom_finding
from memboard.tb_plugin.analysis.oom.suspects.capacity import held_text
from memboard.tb_plugin.api.findings import Finding, MemoryState, PeerState, Place
from memboard.tb_plugin.contract.wire import finite
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED, RESERVED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from memboard.tb_plugin.analysis.findings.cycles import Sawtooth
    from memboard.tb_plugin.analysis.oom.case import Case
    from memboard.tb_plugin.analysis.oom.errors import OomError
    from memboard.tb_plugin.api.findings import OomOrigin
    from memboard.tb_plugin.budget import Budget
    from memboard.tb_plugin.facts.ranks.rank_facts import FactsReader, FileFacts
    from memboard.tb_plugin.formats.recording.captures.oom import OomReport
    from memboard.tb_plugin.formats.recording.rank_file import RankFile
    from memboard.tb_plugin.index.history_list import FoundHistory
    from memboard.tb_plugin.index.run import AttemptFiles, Run

_MAX_TEXT: Final = 2000

MAX_PEERS: Final = 64


@dataclass(frozen=True, slots=True)
class PeerContext:
    """What is known beside the error itself."""

    attempt: int
    peers: Sequence[PeerState]
    ran_out: Collection[int]
    """Other ranks that ran out of memory too."""
    world_size: int
    usual_non_torch_bytes: int | None = None
    growth: Growth | None = None
    cycles: Sawtooth | None = None
    """Of device memory in the recorded steps."""
    num_full_collections: int | None = None
    """Of Python's garbage collector in the recorded steps; None: not recorded."""
    capacity_bytes: int | None = None
    """Size of the device as the user named it, where nothing recorded it."""
    num_earlier: int = 0
    """Errors before it that the program survived."""


def reported_error(
    report: OomReport,
    around: PeerContext,
    history: FoundHistory | None,
    error: OomError | None,
) -> Finding:
    """An error that the recorder reported; `error`: what its history says of it."""
    case = report.case if error is None else error.case.with_report(report.case)
    case = _case(case, around)
    history_id = None if history is None else history.reference.id
    lacks = [*_not_recorded(case, history_id, report.history_why_not)]
    message = report.message[:_MAX_TEXT]
    state = _state(case, around, report.origin, report.file.rpartition("/")[2], message)
    return structs.replace(
        _finding(report.id, case, state),
        place=_place(case, report.rank, history_id, error),
        not_recorded=(*lacks, *_missing(report)),
        rank=report.rank,
        step=report.step,
        time_ms=report.time_ns / 1e6,
        during=report.during or ("" if error is None else error.phase),
        state=state,
    )


def error_in_file(
    history: FoundHistory, error: OomError, around: PeerContext
) -> Finding:
    """An error inside a snapshot that another tool wrote."""
    reference, case = history.reference, _case(error.case, around)
    time_ms = reference.time_ms if error.time_us is None else error.time_us / 1e3
    finding_id = f"{reference.id}-{error.device}-{error.event}"
    state = _state(case, around, "file", reference.path or reference.label, "")
    return structs.replace(
        _finding(finding_id, case, state, num_later=error.num_later),
        place=_place(case, reference.rank, reference.id, error),
        not_recorded=tuple(_not_recorded(case, reference.id, "")),
        rank=reference.rank,
        step=reference.step if error.step is None else error.step,
        time_ms=time_ms,
        during=error.phase,
        state=state,
    )


def _state(
    case: Case, around: PeerContext, origin: OomOrigin, file: str, message: str
) -> MemoryState:
    return MemoryState(
        origin=origin,
        is_out_of_memory=case.is_out_of_memory,
        analysed=case.replayed,
        attempt=around.attempt,
        file=file,
        message=message,
        num_earlier=around.num_earlier,
        held_sentence=held_text(case),
        held_by=held_by(case),
        stack=case.stack,
        peers=shown_peers(around.peers, around.ran_out),
    )


def _finding(
    finding_id: str, case: Case, state: MemoryState, *, num_later: int = 0
) -> Finding:
    if case.is_out_of_memory:
        return oom_finding(
            finding_id, case, num_earlier=state.num_earlier, num_later=num_later
        )
    is_signal = state.origin == "signal"
    return ended_finding(finding_id, case, by_signal=is_signal, message=state.message)


def _case(case: Case, around: PeerContext) -> Case:
    facts = case.facts
    is_given = facts.capacity_bytes is None and around.capacity_bytes is not None
    capacity = around.capacity_bytes if is_given else facts.capacity_bytes
    limit, fraction = facts.limit_bytes, case.setup.memory_fraction
    if limit is None and capacity is not None and fraction is not None:
        limit = int(fraction * capacity)
    return replace(
        case,
        facts=replace(
            facts,
            capacity_bytes=capacity,
            limit_bytes=limit,
            peers_peak_bytes=peak_sizes(around.peers),
            usual_non_torch_bytes=around.usual_non_torch_bytes,
            growth=_growth(facts.growth, around.growth),
            cycles=around.cycles,
            num_full_collections=around.num_full_collections,
        ),
        world_size=around.world_size,
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


def _place(
    case: Case, rank: int | None, history: str | None, error: OomError | None
) -> Place | None:
    if history is None:
        return None
    return Place(
        "blocks",
        "Open at the error",
        rank=rank,
        history=history,
        device=case.device,
        moment=None if error is None else error.event,
    )


def _not_recorded(
    case: Case, history: str | None, why_no_history: str
) -> Iterator[str]:
    """What would have made the verdict surer."""
    if history is None:
        why = f" ({why_no_history})" if why_no_history else ""
        how = (
            ' Switch it on: mb.record(oom={"history": True}).'
            if case.setup.can_keep_stacks
            else ""
        )
        yield (
            f"The allocator's history{why}: free blocks, growth by line and live blocks"
            f" at the error.{how}"
        )
    elif not case.replayed:
        yield "The history was not read yet: open it to confirm the cause."
    if case.facts.capacity_bytes is None:
        yield (
            "The device's size: memory outside torch is not known. A recording of"
            " MemBoard's own holds it; for a file, give it with --capacity, as in"
            " memboard report FILE --capacity 80GiB."
        )
    if case.replayed and case.facts.beginning_is_lost:
        yield (
            "The beginning of the history: older events were overwritten. More are kept"
            " with a larger max_entries."
        )
    if case.replayed and not case.holders:
        yield "Stacks of allocations: which lines hold the memory is not known."
    if case.world_size > 1 and not case.facts.peers_peak_bytes:
        yield "The other ranks: whether they held less is not known."


def _missing(report: OomReport) -> Iterator[str]:
    """What the report itself says that it lacks."""
    if report.held_why_not and not report.case.holders:
        why = report.held_why_not.rstrip(".")
        yield f"Which lines held the memory, in the report: {why}."
    if report.num_not_reported:
        num = report.num_not_reported
        has_no_report = agreeing(
            num, "has no report of its own", "have no report of their own"
        )
        yield f"{counted(num, 'more error')} {has_no_report} in this recording."


class PeerRanks:
    """What the files of one start of a job say."""

    def __init__(
        self, run: Run, reader: FactsReader, attempt: AttemptFiles, budget: Budget
    ) -> None:
        self._facts: dict[int, FileFacts] = {}
        self._ended: dict[int, str] = {}
        reader.make_missing(attempt.files.values(), budget)
        for rank, file in attempt.files.items():
            facts = reader.within(file, budget)
            if facts is not None:
                self._facts[rank] = facts
            self._ended[rank] = _how_ended(run, file)

    def others(self, rank: int) -> list[PeerState]:
        """All ranks but one, ascending."""
        return [
            self._state(other, ended)
            for other, ended in sorted(self._ended.items())
            if other != rank
        ]

    def _state(self, rank: int, ended: str) -> PeerState:
        facts = self._facts.get(rank)
        if facts is None:
            return PeerState(rank, ended=ended)
        peak = facts.readings.get(ALLOCATED)
        return PeerState(
            rank=rank,
            step=facts.last_step,
            allocated_bytes=finite(facts.latest.get(ALLOCATED)),
            reserved_bytes=finite(facts.latest.get(RESERVED)),
            peak_bytes=None if peak is None else finite(peak.value),
            ended=ended,
        )

    def usual_non_torch_bytes(self, rank: int) -> int | None:
        """Median of what the others use beside torch; None where none recorded it."""
        used = [
            facts.non_torch.value
            for other, facts in self._facts.items()
            if other != rank and facts.non_torch is not None
        ]
        return int(np.median(used)) if used else None

    def growth(self, rank: int) -> Growth | None:
        """Growth of a rank's step peaks; None where they do not rise, or only at first."""
        facts = self._facts.get(rank)
        if facts is None or not (facts.is_growing or facts.rose_for_long):
            return None
        return Growth(
            num_bytes=int(facts.rise),
            bytes_per_round=facts.growth,
            num_rounds=facts.num_steps,
            by="series",
            is_run_rate=True,
            late_bytes_per_round=(
                None if np.isnan(facts.late_growth) else facts.late_growth
            ),
        )

    def num_full_collections(self, rank: int) -> int | None:
        """Of Python's garbage collector in a rank's steps; None: not recorded."""
        facts = self._facts.get(rank)
        return None if facts is None else facts.num_full_collections


def peak_sizes(peers: Sequence[PeerState]) -> tuple[int, ...]:
    return tuple(int(peer.peak_bytes) for peer in peers if peer.peak_bytes is not None)


def shown_peers(
    peers: Sequence[PeerState], ran_out: Collection[int]
) -> tuple[PeerState, ...]:
    """Those that ran out first, then by their peaks."""
    marked = [structs.replace(peer, ran_out=peer.rank in ran_out) for peer in peers]
    marked.sort(
        key=lambda peer: (not peer.ran_out, -(peer.peak_bytes or 0.0), peer.rank)
    )
    return tuple(marked[:MAX_PEERS])


def of_snapshots(peaks: Mapping[int, int], rank: int | None) -> list[PeerState]:
    """Other ranks of which only snapshots are known; none where the rank is not."""
    if rank is None:
        return []
    return [
        PeerState(other, peak_bytes=float(peak))
        for other, peak in sorted(peaks.items())
        if other != rank
    ]


def _how_ended(run: Run, file: RankFile) -> str:
    if file.close is not None:
        return file.close.how
    return "" if file.unfinished or run.file_is_live(file) else "lost"
