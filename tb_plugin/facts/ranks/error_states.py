"""Memory of a rank at its errors and other ends, by columns of the table of steps.

The step that fails is in no table, and it is the fullest: peaks include it from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from memboard.collector.format.oom import KIND
from memboard.tb_plugin.budget import Budget
from memboard.tb_plugin.facts.ranks.columns import ALLOCATED, DEVICE_USED, RESERVED, RSS
from memboard.tb_plugin.formats.recording.captures.reading import captures_of
from memboard.tb_plugin.index.notes import events_of

if TYPE_CHECKING:
    from memboard.tb_plugin.analysis.oom.case import OomFacts
    from memboard.tb_plugin.cache import Cache
    from memboard.tb_plugin.formats.recording.rank_file import RankFile


MAX_REPORTS: Final = 60
"""Of one file: the last ones."""
_SECONDS: Final = 1.0
"""For finding the reports of a file whose lists of captures are damaged."""


class ErrorState(NamedTuple):
    """Bytes at one error or other end; None: not known."""

    step: int | None
    time_ns: int
    allocated: int | None
    """The most since the last step, or at the failed request."""
    reserved: int | None
    reserved_now: int | None
    """What is reserved at the failed request, not the most before it."""
    device_used: int | None
    rss: int | None
    """Resident memory of the process."""

    @property
    def peaks(self) -> dict[str, float]:
        """Bytes that are known, by the column of the table of steps."""
        sizes = {
            ALLOCATED: self.allocated,
            RESERVED: self.reserved,
            DEVICE_USED: self.device_used,
            RSS: self.rss,
        }
        return {name: float(size) for name, size in sizes.items() if size is not None}


def error_states(file: RankFile, cache: Cache) -> list[ErrorState]:
    """What the reports of a file say of its process, and of the device of its steps."""
    notes = list(events_of(file, {"oom", "oom_message"}))
    captures = captures_of(file, Budget(_SECONDS))
    if not notes and all(entry.kind != KIND for entry in captures):
        return []
    # The first page does not wait for what reads reports where there are none.
    from memboard.tb_plugin.analysis.oom.case import OomFacts
    from memboard.tb_plugin.formats.recording.captures.oom import (
        endings_of,
        messages_by_report,
        read_report,
    )

    endings = endings_of(file, notes, Budget(_SECONDS))[-MAX_REPORTS:]
    messages = messages_by_report(notes)
    device, states = file.header.device_index, []
    for ending in endings:
        report = read_report(ending, messages, cache)
        if report is None:
            continue
        is_of_device = report.case.device is None or device in (
            None,
            report.case.device,
        )
        facts = report.case.facts if is_of_device else OomFacts()
        states.append(_state(report.step, ending.time_ns, facts, report.rss_bytes))
    return states


def _state(
    step: int | None, time_ns: int, facts: OomFacts, rss: int | None
) -> ErrorState:
    used = None
    if facts.capacity_bytes is not None and facts.device_free_bytes is not None:
        used = facts.capacity_bytes - facts.device_free_bytes
    return ErrorState(
        step=step,
        time_ns=time_ns,
        allocated=_most(facts.allocated_bytes, facts.most_allocated_bytes),
        reserved=_most(facts.reserved_bytes, facts.most_reserved_bytes),
        reserved_now=facts.reserved_bytes,
        device_used=used,
        rss=rss,
    )


def _most(*sizes: int | None) -> int | None:
    return max((size for size in sizes if size is not None), default=None)
