"""Spans one by one, the parts of each step, and the operations it needed."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import guarded, say
from memboard.collector.core.source import SourceInfo
from memboard.collector.format.columns import FLOPS, PARTS
from memboard.collector.hooks import torch_calls
from memboard.collector.steps.automatic import Automatic
from memboard.collector.steps.progress import TRAIN
from memboard.collector.steps.spans.log import (
    KEPT,
    STEPS,
    SUMMED,
    SpanLog,
    clock_ns,
    states_mask,
)
from memboard.collector.steps.spans.span import TorchProfiler
from memboard.collector.steps.spans.torch_ranges import TorchRanges

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.config import RecordConfig
    from memboard.collector.config.sections import FlopsConfig
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.format.columns import Column
    from memboard.collector.format.records import Capture, ClockAnchor
    from memboard.collector.recording import Recording
    from memboard.collector.sources.device.accelerator import Device
    from memboard.collector.steps.automatic import Note
    from memboard.collector.steps.cycles import Cycles
    from memboard.collector.steps.progress import Progress
    from memboard.collector.steps.spans.log import SpanOptions

STEP: Final = "step"

_SPANS: Final = SourceInfo(name="spans", cost="2 us per span on the training thread")


def _fault(where: str, error: BaseException, timing: Timing, *_: Any) -> None:
    say(timing.warn_once, where, error)


def _not_written(_where: str, error: BaseException, timing: Timing) -> None:
    timing.stop_keeping()
    timing.warn_once(
        "spans",
        "spans could not be written and are only summed up from now on; the rest of the"
        " recording goes on. Please report this.",
        error=error,
    )


class Timing:
    """Of one recording. What training calls is guarded by the recorder or here."""

    def __init__(
        self,
        config: RecordConfig,
        device: Device,
        cycles: Cycles,
        progress: Progress,
        warn_once: WarnOnce,
        started: ClockAnchor,
        *,
        put: Callable[[Capture], bool],
        wake: Callable[[], None],
        note: Note,
    ) -> None:
        """`put` takes a capture, False: it was dropped; `wake` the writer.

        `note` says that something is recorded, or why it is not.
        """
        spans = config.spans
        offset_ns = clock_ns() - time.monotonic_ns()
        self.to_wall_ns = started.wall_ns - started.monotonic_ns - offset_ns
        """Add it to a time of `clock_ns` to get a recorded one."""
        self.log = SpanLog(states=states_mask(spans.states), device=device, wake=wake)
        self.automatic: Automatic | None = None
        """What is timed by itself; None: nothing is."""
        self.columns: tuple[Column, ...] = ()
        self._is_on = spans.enabled
        self._cycles = cycles
        self._progress = progress
        self.warn_once = warn_once
        self._ranges = TorchRanges()
        """Of spans, in torch's own traces."""
        self._flops = config.flops if _knows_any(config.flops) else None
        self._captures: Any = None
        if spans.enabled:
            # Here and not above: it needs numpy, and a recorder that is off does not.
            from memboard.collector.steps.spans.captures import SpanCaptures

            self._captures = SpanCaptures(self.log, self.to_wall_ns, put)
            note(_SPANS, "recorded", "", "")
            if spans.automatic:
                self.automatic = Automatic(self.log, warn_once, note)
                self.columns += PARTS
                self.log.parts = self.automatic.parts
        else:
            remedy = "Set spans: true to record it."
            note(_SPANS, "off", "switched off in the configuration", remedy)
        if self._flops is not None:
            self.columns += FLOPS

    def join(self, sink: Recording) -> None:
        """The recorder lives: time what is timed by itself."""
        if "torch" in sys.modules:
            TorchProfiler.find()
            self._ranges.watch()
        if self.automatic is not None:
            self.automatic.join(sink)

    def close(self) -> None:
        """It does no more: leave torch and the models as they were."""
        self._ranges.unwatch()
        if self.automatic is not None:
            self.automatic.close()

    @guarded(_fault, instead=lambda *_: (None, None))
    def open_span(self, name: str, options: SpanOptions) -> Any:
        """All that goes on beside a span; what is returned is for `close_span`."""
        ledger = self.log.device.ledger
        scope = function = None
        if ledger is not None and options.flags & SUMMED:
            scope = ledger, ledger.open()
        if TorchProfiler.module._is_profiler_enabled:  # noqa: SLF001
            function = self._ranges.begin(name)
        return scope, function

    @guarded(_fault)
    def close_span(self, opened: Any) -> int | None:
        """It is over; the peak of its time in bytes, where there is one."""
        scope, function = opened
        if function is not None:
            self._ranges.end(function)
        reading = None if scope is None else scope[0].close(scope[1])
        return None if reading is None else reading.peaks[0]

    def begin_step(self) -> None:
        """The current phase's next step begins."""
        if self._is_on:
            cycles = self._cycles
            self.log.begin_step(
                self._progress.train.next_step, cycles.action, cycles.cycle
            )

    def end_step(
        self,
        number: int,
        since_ns: int | None,
        now_ns: int,
        samples: int | None,
        tokens: int | None,
    ) -> list[float | None]:
        """The step under way is done: the values of `columns`."""
        log, phase = self.log, self._progress.phase.name
        if phase == TRAIN:
            log.at[0] = number
        if log.keeps and since_ns is not None:
            if STEPS not in log.threads:
                thread = threading.current_thread()
                native = thread.native_id or -1
                log.threads[STEPS] = (native, f"{thread.name[:200]} steps")
            span_name = STEP if phase == TRAIN else f"{phase} {STEP}"
            took = now_ns - since_ns
            step_and_state = log.at
            log.spans += (
                span_name,
                STEP,
                STEPS,
                since_ns,
                took,
                0,
                step_and_state,
                KEPT,
                None,
                None,
            )
            if len(log.spans) >= log.wake_at:
                log.crowded()
        automatic = self.automatic
        if automatic is None:
            row: list[float | None] = []
        else:
            if not automatic.has_noted_forward:
                automatic.note_forward()
            row = automatic.parts.take(now_ns)
        if self._flops is not None:
            is_training = phase == TRAIN
            row.append(flops_of(self._flops, samples, tokens) if is_training else None)
        return row

    def enter_phase(self, phase: str, now_ns: int) -> None:
        """Another phase begins: what was under way of a step is none."""
        if self.automatic is not None:
            self.automatic.enter_phase(phase, now_ns)

    @guarded(_not_written)
    def write(self) -> None:
        """Hand over what has come, on the writer's thread."""
        if self.automatic is not None:
            torch_calls.install()  # of what was imported since
        if self._captures is not None:
            self._captures.write(self._progress.phase.name)
        else:
            self.log.take_spans()

    def stop_keeping(self) -> None:
        """Sum spans up, and keep none by itself any more."""
        self._captures, self.log.keeps, self._is_on = None, 0, False


def _knows_any(flops: FlopsConfig) -> bool:
    return any(
        value is not None
        for value in (flops.per_step, flops.per_sample, flops.per_token)
    )


def flops_of(
    flops: FlopsConfig, samples: int | None, tokens: int | None
) -> float | None:
    """Operations of a step of so many samples and tokens; None where nothing is known."""
    total = None
    for each, number in (
        (flops.per_step, 1),
        (flops.per_sample, samples),
        (flops.per_token, tokens),
    ):
        if each is not None and number is not None:
            total = (total or 0.0) + each * number
    return total
