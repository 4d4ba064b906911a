"""Making reports: so many per hour, each at once on the disk, its snapshot behind it."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from collector.clock.process_clock import now_ns
from collector.format.oom_message import sizes_in
from collector.history.tensors import TensorMap
from collector.oom import facts, report
from collector.oom.history import NO_HISTORY
from collector.oom.message import device_type_in
from collector.oom.torch_side import allocator_facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from collector.config import RecordConfig
    from collector.core.engine import Engine
    from collector.core.warn_once import Troubles
    from collector.format.oom import Origin
    from collector.history.tensors import Tensors
    from collector.oom.watched_device import WatchedDevice
    from collector.steps.progress import Progress

REPORT_SECONDS: Final = 0.8
"""How long an error waits for its report to be on the disk."""

_HOUR_SECONDS: Final = 3600.0

REPORTS_PER_HOUR: Final = 3
"""Of errors that the program caught; more are counted. One that ends it is always told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a recorder has that its reports need."""

    config: RecordConfig
    engine: Engine
    progress: Progress
    troubles: Troubles
    spans: Callable[[], Sequence[str]]
    """Those under way, outermost first."""
    functions: Callable[[], Sequence[str]]
    """Likewise the collected calls."""
    known: Callable[[], Iterable[Any]]
    """Storages that kinds of collecting know just now; see `tensors.TensorMap`."""


class Reporting:
    """The reports of one recorder. Its callers hold the witness's lock."""

    def __init__(
        self,
        context: Context,
        device: WatchedDevice,
        fault: Callable[[str, BaseException], None],
    ) -> None:
        """`fault`: told what failed, where the report goes without."""
        self.device = device
        self.tensors = TensorMap(context.engine.device.type)
        self.tensors.known = context.known
        self.num_ooms = 0
        self.num_not_reported = 0
        self._context = context
        self._engine = context.engine
        self._settings = context.config.oom
        self._fault = fault
        self._num_reports = 0
        self._reported: deque[float] = deque()
        """When reports were made, in the last hour."""

    def case(
        self, origin: Origin, *, is_out_of_memory: bool, stack: Any
    ) -> report.Case:
        """What is known now; `stack` of the failing thread, None: this one's."""
        progress = self._context.progress
        stacks = [facts.calling_frames() if stack is None else stack]
        main = facts.main_frames()
        if main is not None:
            stacks.append(main)
        return report.Case(
            origin=origin,
            is_out_of_memory=is_out_of_memory,
            time_ns=now_ns(),
            step=progress.train_step,
            phase=progress.phase.name,
            thread=report.thread_name(),
            stacks=stacks,
            spans=_said_once(self._context.spans()),
            functions=tuple(self._context.functions()),
        )

    def write(self, case: report.Case, began: float) -> int:
        """Write the report and wait for it, then take the snapshot; its number."""
        self._num_reports += 1
        number = self._num_reports
        self._reported.append(time.monotonic())
        tensors, segments, why = self._looked_at(case)
        identity = self._engine.writer.identity
        case.known.update(
            num_ooms=self.num_ooms,
            num_not_reported=self.num_not_reported,
            last_step=facts.last_step(self._engine.last_step()),
            allocator=dict(allocator_facts(self.device.side)),
            history=self._history_facts(case),
            rank=identity.rank,
            local_rank=identity.local_rank,
            world_size=identity.world_size,
            host_name=identity.host,
        )
        capture = report.make_report(
            case,
            number,
            tensors=tensors,
            segments=segments,
            why_no_segments=why,
            began=began,
        )
        self._engine.put_urgent(capture, REPORT_SECONDS)
        history = self.device.history
        if history is not None and case.device is not None:
            try:
                history.take(
                    case.origin,
                    number,
                    tensors,
                    step=case.step,
                    phase=case.phase,
                    function=capture.function,
                )
            except Exception as error:  # noqa: BLE001  # the report is there
                self._fault("snapshot", error)
        return number

    def _looked_at(
        self, case: report.Case
    ) -> tuple[Tensors | None, list[dict[str, Any]] | None, str]:
        """Names of tensors, and segments, as they are now."""
        tensors = segments = None
        why = "there is no device"
        try:
            tensors = self.tensors.found()
            history = self.device.history
            if history is not None and case.device is not None:
                segments, why = history.segments()
        except Exception as error:  # noqa: BLE001  # the report goes without
            why = f"{type(error).__name__}: {error}"
        return tensors, segments, why

    def _history_facts(self, case: report.Case) -> dict[str, Any]:
        history = self.device.history
        if history is None or case.device is None:
            return {**NO_HISTORY, "why_not": "there is no device"}
        try:
            return history.facts()
        except Exception as error:  # noqa: BLE001  # the report goes without
            return {**NO_HISTORY, "why_not": f"{type(error).__name__}: {error}"}

    def case_of(
        self, error: BaseException, thread: str, text: str, *, is_oom: bool
    ) -> report.Case:
        """What is known of an exception, whose text is `text`."""
        stack = facts.traceback_frames(error.__traceback__)
        case = self.case("exception", is_out_of_memory=is_oom, stack=stack)
        case.thread = thread
        case.phase = self._context.progress.phase_of(error)
        case.error = report.error_facts(error)
        device = self._engine.device
        index = sizes_in(text).get("device", device.index) if is_oom else device.index
        if is_oom and not is_of_device(error, text):
            index = None
        if index is not None:
            kind = device.type if device.index is not None else device_type_in(text)
            case.device_type, case.device = kind or device.type, index
        case.known.update(report.raised_facts(device, index, text if is_oom else ""))
        return case

    def has_budget(self) -> bool:
        """Whether another report may be made in this hour."""
        now = time.monotonic()
        while self._reported and now - self._reported[0] > _HOUR_SECONDS:
            self._reported.popleft()
        return len(self._reported) < REPORTS_PER_HOUR


def _said_once(names: Sequence[str]) -> tuple[str, ...]:
    """Without those that repeat their neighbour.

    A part that is timed by itself lies within the program's own span of that name.
    """
    return tuple(name for name, _ in groupby(names))


def is_of_device(error: BaseException, text: str) -> bool:
    """Whether an out-of-memory error is about a device, and not the host's memory."""
    names = {cls.__name__ for cls in type(error).__mro__}
    if "OutOfMemoryError" in names or "AcceleratorError" in names:
        return True
    return "MemoryError" not in names and "out of memory" in text.lower()
