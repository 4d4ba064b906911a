"""The history that explains an out-of-memory error: recorded all the time, and cheaply.

Without stacks nobody can say what held the memory, and stacks can only be recorded
beforehand. So torch records Python stacks of allocations (not of frees) in a bounded ring
from the moment the device is in use, which torch's own documentation holds fit for
production: 2 us per allocation. A program that allocates so often that this would show is
found out by counting, and recorded without stacks from then on, with a note. A recording
that the program itself has on is used as it is and never changed.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.source import TORCH_ERRORS, SourceInfo
from memboard.collector.format.sizes import counted
from memboard.collector.format.snapshots.tags import is_tag, tag_text
from memboard.collector.history.captures import Keeper
from memboard.collector.virtual.current_device import virtual_device

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.config import RecordConfig
    from memboard.collector.core.calls import Sink
    from memboard.collector.history.recording import HistoryRecording
    from memboard.collector.history.tensors import Tensors

STACK_SECONDS: Final = 2e-6
"""Time to record a Python stack; torch's documentation."""

EVENT_SECONDS: Final = 7e-6
"""Time per event of a snapshot: 0.7 s for 100,000 (pytorch#172672)."""

NATIVE_FACTOR: Final = 100
"""Factor of a snapshot's time with C++ stacks (461 s against 4 s, torchtitan#3628)."""

SNAPSHOT_SECONDS: Final = 5.0
"""Longest delay of an error: a snapshot that would take longer omits its events."""

MAX_PCT: Final = 5.0
"""Of a processor: what the stacks of allocations may take."""

CHECKS: Final = 3
"""Looks at the allocator's counter, one per flush, before stacks are given up."""

NO_HISTORY: Final = {
    "recording": None,
    "stacks": None,
    "max_entries": None,
    "events": False,
    "why_not": "",
}

_STACKS: Final = SourceInfo(name="oom.stacks", cost="2 us per allocation")


class OomHistory:
    """The recording for one recorder's reports, and snapshots of it."""

    def __init__(
        self,
        config: RecordConfig,
        sink: Sink,
        recording: HistoryRecording,
        num_allocations: Callable[[], int | None],
    ) -> None:
        """`num_allocations`: of the whole process so far, where the device tells."""
        settings = config.oom
        self.allocator = recording.allocator
        self._recording = recording
        self._sink = sink
        self._num_allocations = num_allocations
        self._wanted = settings.history
        # Windows of `history` record into the same ring, whose size is set once.
        self._max_entries = config.history.max_entries
        self._tags = settings.history
        self._tag = ""
        self._context: str | None = "alloc"
        # Steps take no time there: allocations come as fast as they can.
        self._is_virtual = virtual_device() is not None
        self._num_over = 0
        self._checked: tuple[float, int] | None = None
        self._seconds_per_event = EVENT_SECONDS
        self._keeper = Keeper(sink, recording, max_entries=self._max_entries)

    def hold(self, *, in_use: bool | None = None) -> None:
        """Record from now on, where that is wanted. Raises what torch raises."""
        if self._wanted:
            self._recording.hold(
                self,
                max_entries=self._max_entries,
                stacks="python",
                context=self._context,
                in_use=in_use,
            )

    def let_go(self) -> None:
        """The recording ends: torch need not record for us any more."""
        if self._tag and self.allocator.tag() == self._tag:
            self.allocator.set_tag("")
        self._tag = ""
        self._recording.let_go(self)

    def tag(self, step: int, phase: str) -> None:
        """What this thread allocates from now on belongs to a step."""
        if not (self._tags and self._recording.is_ours and self.allocator.can_tag):
            return
        before = self.allocator.tag()
        if before and not is_tag(before):
            return  # the program's own
        self._tag = tag_text(step=step, phase=phase, function="step")
        self.allocator.set_tag(self._tag)

    def check(self) -> None:
        """Give stacks up where they take too much; at each flush, on the writer's thread."""
        if self._context is None or not self._recording.is_ours or self._is_virtual:
            return
        number = self._num_allocations()
        if number is None:
            return
        now = time.monotonic()
        checked, self._checked = self._checked, (now, number)
        if checked is None or now - checked[0] < 0.1:
            return
        per_second = (number - checked[1]) / (now - checked[0])
        share_pct = 100 * per_second * STACK_SECONDS
        self._num_over = self._num_over + 1 if share_pct > MAX_PCT else 0
        if self._num_over >= CHECKS:
            self._context = None
            self.hold()
            self._sink.note_kind(
                _STACKS,
                "off",
                f"{per_second:,.0f} allocations per second: recording their stacks would"
                f" take {share_pct:.1f} % of a processor",
                "Record them yourself, before recording starts, with"
                " torch.cuda.memory._record_memory_history: it is used as it is.",
            )

    def facts(self) -> dict[str, Any]:
        """What the report says of the recording, and of the snapshot that follows."""
        if not self.allocator.in_use():
            return {**NO_HISTORY, "why_not": "the device is not in use"}
        whose = self._keeper.whose()
        wish = self._recording.wish
        why_not = self._why_no_events(whose)
        return {
            "recording": whose,
            "stacks": _stacks(whose, wish),
            "max_entries": None if wish is None else wish.max_entries,
            "events": not why_not,
            "why_not": why_not,
        }

    def take(
        self,
        origin: str,
        report: int,
        tensors: Tensors | None,
        *,
        step: int | None,
        phase: str,
        function: str,
    ) -> bool:
        """Capture the allocator as it is now; whether it was queued.

        Raises what torch raises.
        """
        if not self.allocator.in_use():
            return False
        began = time.perf_counter()
        why_not = self._why_no_events(self._keeper.whose())
        if why_not and self.allocator.can_leave_out_traces:
            snapshot = self.allocator.segments()
        elif why_not and self._recording.allocator.is_recording():
            return False  # all or nothing, in this torch
        else:
            snapshot = self.allocator.snapshot()
        seconds = time.perf_counter() - began
        self._learn(snapshot, seconds)
        more: dict[str, Any] = {"no_events": why_not} if why_not else {}
        return self._keeper.put(
            snapshot,
            step,
            tensors,
            phase=phase,
            function=function,
            iteration=0,
            context=origin,
            label=origin,
            report=report,
            took_us=round(seconds * 1e6),
            **more,
        )

    def segments(self) -> tuple[list[dict[str, Any]] | None, str]:
        """The segments alone, where they can be had cheaply; else why not."""
        if not self.allocator.in_use():
            return None, "the device is not in use"
        if not self.allocator.can_leave_out_traces and self.allocator.is_recording():
            why = "this torch gives the segments only along with all events"
            return None, f"{why}: see the history that follows"
        segments = self.allocator.segments().get("segments")
        return (
            (segments, "") if isinstance(segments, list) else (None, "torch gave none")
        )

    def _why_no_events(self, whose: str) -> str:
        """Why the snapshot will have no events; empty: it will."""
        if whose == "off":
            return "history is not recorded: see the setting oom.history"
        if whose == "program":
            # Its bound and its stacks are not known, and either may cost minutes.
            return "the program records a history of its own, of unknown size"
        wish = self._recording.wish
        entries = self._max_entries if wish is None else wish.max_entries
        number = None
        with suppress(*TORCH_ERRORS):
            number = self._num_allocations()
        if number is not None:
            entries = min(entries, 4 * number)  # alloc, two of its free, its segment
        with suppress(*TORCH_ERRORS):
            entries += min(self._max_entries, 4 * (self.allocator.num_pinned() or 0))
        seconds = entries * self._seconds_per_event
        if wish is not None and wish.stacks == "all":
            seconds *= NATIVE_FACTOR
        if seconds > SNAPSHOT_SECONDS:
            return (
                f"{counted(entries, 'event')} would hold the error up for about"
                f" {seconds:.0f} s, more than {SNAPSHOT_SECONDS:g}"
            )
        return ""

    def _learn(self, snapshot: dict[str, Any], seconds: float) -> None:
        """What an event really takes here, where that is more than was thought."""
        num_events = sum(map(len, snapshot.get("device_traces", ())))
        num_events += len(snapshot.get("host_traces", ()))
        wish = self._recording.wish
        if num_events > 1000 and wish is not None and wish.stacks == "python":
            self._seconds_per_event = max(self._seconds_per_event, seconds / num_events)


def _stacks(whose: str, wish: Any) -> str | None:
    if whose == "off":
        return "off"
    if wish is None:
        return None  # the program's own
    return "off" if wish.context is None else str(wish.stacks)
