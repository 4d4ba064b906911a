"""The kind "history": what the allocator did, at both ends of the collected calls.

Defined where one might wonder:

- Recording begins when this kind is opened or, where the device is not in use yet, with
  the first call after that; it ends with the last window. Memory allocated before has
  no stack.
- torch keeps the last `max_entries` events of each device, so both captures of a call
  hold what came before it too.
- Only allocations on the thread of the call are tagged: torch's tags are a thread's own,
  and autograd's threads have none. A tag that the program has set stays.
- Where torch has it (2.14), pinned host memory is recorded by itself, and tensors are
  annotated in collected calls (see `annotations`).
- A program that records by itself is not disturbed: its recording is captured as it is.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.source import SourceInfo
from memboard.collector.format.snapshots.tags import is_tag, tag_text
from memboard.collector.history.allocator import find_allocator
from memboard.collector.history.annotations import TensorAnnotations
from memboard.collector.history.captures import KIND, Keeper
from memboard.collector.history.recording import shared
from memboard.collector.history.tensors import TensorMap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.config.sections import HistoryConfig
    from memboard.collector.core.calls import Call, Sink
    from memboard.collector.history.recording import HistoryRecording
    from memboard.collector.history.tensor_walk import Known

INFO: Final = SourceInfo(
    name=KIND, cost="2 us per allocation, 7 us per event kept for each capture"
)

SLOW_SECONDS: Final = 2.0
"""A snapshot that took longer: from then on calls begin without the events."""


def open_kind(config: RecordConfig, sink: Sink) -> History:
    """Open the history of the device that `config` names; record it if that is on.

    Raises:
        Unavailable: there is no device, or torch keeps no history of it.
    """
    allocator = find_allocator(config.device)
    history = History(config.history, sink, shared(allocator))
    if config.history.enabled:
        history.hold()
    return history


class History:
    """See the module. Made by `open_kind`; a test hands in a recording of its own."""

    info = INFO

    def __init__(
        self, settings: HistoryConfig, sink: Sink, recording: HistoryRecording
    ) -> None:
        self._settings = settings
        self._sink = sink
        self._recording = recording
        self._allocator = recording.allocator
        self._tags: dict[Call, tuple[str, Any]] = {}
        """The tag that a call set, and the one before."""
        self._keeper = Keeper(sink, recording, max_entries=settings.max_entries)
        self.tensors = TensorMap(recording.allocator.device_type)
        """What names the tensors of each capture."""
        self._annotations = TensorAnnotations(recording, self.tensors)
        self._slow_seconds = 0.0
        for absence in self._allocator.absences:
            info = SourceInfo(name=f"history.{absence.what}", cost="")
            sink.note_kind(info, "absent", absence.reason, absence.remedy)

    # What the windows call.

    def begin(self, call: Call) -> None:
        """Capture the start of a call, and tag what it allocates."""
        if not self.hold():
            return  # nothing is allocated yet
        self._capture(call, "start")
        if self._allocator.can_tag:
            self._tag(call)
        self._annotations.start()

    def end(self, call: Call, error: BaseException | None) -> None:
        """Capture the end of a call, also of one that failed."""
        self._untag(call)
        if self.hold():
            self._capture(call, "end", error)

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Name their tensors from now on."""
        self.tensors.attach(model, optimizers)
        self._annotations.look_again()

    def know_storages(self, list_storages: Callable[[], Known]) -> None:
        """Other kinds of collecting know of further tensors, saved ones among them."""
        self.tensors.known = list_storages

    def hold(self) -> bool:
        """Have torch record; whether the device is in use, so that it can."""
        return self._recording.hold(
            self,
            max_entries=self._settings.max_entries,
            stacks=self._settings.stacks,
        )

    def release(self) -> None:
        """The last window has ended: torch need not record for us any more."""
        self._annotations.stop()
        self._recording.let_go(self)

    def close(self) -> None:
        """The same; captures that wait are the writer's."""
        self.release()

    # On demand.

    def take(self, label: str, *, step: int | None, phase: str) -> bool:
        """Capture the allocator as it is now, with what history there is.

        Returns:
            Whether there was anything to capture and it was queued: not before the
            device is in use.
        """
        if not self._allocator.in_use():
            return False
        return self._keeper.put(
            self._allocator.snapshot(),
            step,
            self.tensors.found(),
            phase=phase,
            function="",
            iteration=0,
            label=label,
        )

    # Behind the calls.

    def _capture(
        self, call: Call, context: str, error: BaseException | None = None
    ) -> None:
        began = time.perf_counter()
        # With the events it would block this call too; those at its end hold them all.
        brief = context == "start" and self._slow_seconds > SLOW_SECONDS
        allocator = self._allocator
        if brief and allocator.can_leave_out_traces:
            snapshot = allocator.segments()
            why = f"the last snapshot took {self._slow_seconds:.1f} s"
        else:
            snapshot, why = allocator.snapshot(), ""
            self._slow_seconds = time.perf_counter() - began
        more = {} if error is None else {"error": type(error).__name__}
        if why:
            more["no_events"] = why
        self._keeper.put(
            snapshot,
            call.step,
            self.tensors.found(),
            phase=call.phase,
            function=call.function,
            iteration=call.iteration,
            context=context,
            took_us=round((time.perf_counter() - began) * 1e6),
            **more,
        )

    def _tag(self, call: Call) -> None:
        before = self._allocator.tag()
        if before and not is_tag(before):
            return  # the program's own
        tag = tag_text(step=call.step, phase=call.phase, function=call.function)
        self._allocator.set_tag(tag)
        self._tags[call] = tag, before

    def _untag(self, call: Call) -> None:
        tag, before = self._tags.pop(call, ("", ""))
        if tag and self._allocator.tag() == tag:
            self._allocator.set_tag(before)
