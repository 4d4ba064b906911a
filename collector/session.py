"""One recording behind its recorder: what it holds, how it begins, and how it ends.

Spans, loaders and profiled functions, and the process at its exits, call it on any thread.
None of that may raise: it stands in the middle of somebody else's code. A session that was
never opened, that is closed, or that a forked child has inherited is not live: every call
returns at once.
"""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import Guard, guarded, say
from memboard.collector.core.plain import described, own_text, text_of, whole_number
from memboard.collector.core.warn_once import WarnOnce
from memboard.collector.ending import end_recording
from memboard.collector.process import fork, lifecycle

if TYPE_CHECKING:
    from typing_extensions import Self

    from memboard.collector.config import RecordConfig
    from memboard.collector.engine import Engine
    from memboard.collector.functions.windows import Windows
    from memboard.collector.history.on_demand import OnDemand
    from memboard.collector.oom.handler import OomHandler
    from memboard.collector.recorder import Recorder
    from memboard.collector.steps.cycles import Cycles
    from memboard.collector.steps.models import AttachedObjects
    from memboard.collector.steps.progress import Progress
    from memboard.collector.steps.spans.log import SpanLog, SpanOptions
    from memboard.collector.steps.timing import Timing
    from memboard.collector.torch_profiler import Tracing


def _tell(
    where: str, error: BaseException, session: Session, *_: Any, **__: Any
) -> None:
    say(session.warn_once, where, error)


class Session:
    """All parts of one recording, from `open` to `close_for`."""

    recorder: Recorder
    engine: Engine
    cycles: Cycles
    progress: Progress
    timing: Timing
    windows: Windows
    attached: AttachedObjects
    oom: OomHandler | None = None
    """What reports out-of-memory errors and other ends; None: switched off."""
    tracing: Tracing | None = None
    """torch's profiler; None: it is off."""
    span_log: SpanLog | None = None
    """Where spans go; None: nowhere, it is not live."""
    _on_demand: OnDemand | None = None

    def __init__(self) -> None:
        # Reentrant: a signal handler or finaliser may call while a step is taken.
        self.lock = threading.RLock()
        self.is_live = False
        self.num_batches = 0
        self.run_dir = Path()
        self.warn_once = WarnOnce()
        self.guard = Guard(self.warn_once)

    def open(self, run_dir: Path, config: RecordConfig, mesh: dict[str, int]) -> None:
        """Make all parts. Raises where recording cannot start; nothing is left then."""
        # Here and not above, so that `import memboard as mb` and a recorder that is switched
        # off stay light; and not on a thread, so that no fork meets a half import.
        from memboard.collector.engine import Engine
        from memboard.collector.functions import open_windows
        from memboard.collector.functions.functions import tell_missing
        from memboard.collector.oom.handler import OomHandler
        from memboard.collector.steps.models import AttachedObjects
        from memboard.collector.steps.progress import Progress
        from memboard.collector.torch_profiler import open_torch_profiler

        self.run_dir, self.config = run_dir, config
        progress = self.progress = Progress()
        warn_once = self.warn_once
        self.attached = AttachedObjects()
        engine = self.engine = Engine(run_dir, config, mesh, progress, warn_once)
        self.cycles, self.timing = engine.cycles, engine.timing
        with ExitStack() as undo:
            undo.callback(engine.stop, "closed", "")
            self.windows = open_windows(config, engine, progress, warn_once)
            undo.pop_all()
        self.is_live, self.span_log = True, engine.timing.log
        fork.watch(self)
        self.tracing = open_torch_profiler(
            config, engine, progress, warn_once, run_dir=run_dir
        )
        with self.guard("functions"):
            tell_missing(config.functions, warn_once)
        with self.guard("oom"):
            if config.oom.enabled:
                handler = OomHandler(config, engine, progress, self.windows, warn_once)
                handler.start()
                self.oom = handler

    def join(self, recorder: Recorder) -> None:
        """The recorder lives: time what is timed by itself."""
        self.recorder = recorder
        self.timing.join(self)
        lifecycle.add(self)

    @guarded(_tell)
    def begin(self) -> None:
        """The first step begins: all that was known at the start is attached."""
        if lifecycle.launcher is not None:
            lifecycle.launcher.recording_begun(self.note)
        self._begin_step()

    # Steps and phases; the caller holds the lock.

    def take_step(self, step: Any, tokens: Any, samples: Any) -> None:
        """A step of the current phase is done; the next one begins."""
        now = time.perf_counter_ns()
        boundary = self.engine.boundary
        if self.windows.step is not None:
            boundary.begin(self.engine.sizes)
        try:
            if step is not None:
                step = self.number("step", step)
            progress = self.progress
            phase = progress.phase
            if tokens is not None or samples is not None:
                tokens = self.number("tokens", tokens, least=0)
                samples = self.number("samples", samples, least=0)
                progress.report(tokens=tokens, samples=samples)
            self.cycles.end_step(step)
            self.windows.end_step()
            number, back_from = progress.advance(step)
            since, phase.last_ns = phase.last_ns, now
            row = [
                now + self.timing.to_wall_ns,
                number,
                None if since is None else (now - since) * 1e-9,
                progress.epoch,
                phase.samples,
                phase.tokens,
            ]
            row += self.timing.end_step(number, since, now, samples, tokens)
            self.engine.write_step(phase.name, row)
            if back_from is not None:
                label = f"step went back from {back_from} to {number}"
                self.note("mark", {"label": label}, user=True)
            if self.oom is not None:
                self.oom.stepped()
            self._begin_step()
        finally:
            boundary.sizes = None

    def enter_phase(self, name: str) -> None:
        self.windows.drop_step()
        now = time.perf_counter_ns()
        phase = self.progress.enter(name, now)
        self.timing.enter_phase(phase.name, now)
        self.cycles.entered()
        self.note("phase", {"phase": phase.name}, user=True)
        self._begin_step()

    def _begin_step(self) -> None:
        """The current phase's next step begins; what costs most begins last."""
        self.cycles.choose()
        self.timing.begin_step()
        self.windows.begin_step()
        self.cycles.begin_step()

    def number(
        self, argument: str, value: Any, *, least: int | None = None
    ) -> int | None:
        """A whole number that training gave; None, said once, where it is none."""
        if value is None:
            return None
        number = whole_number(value)
        if number is None or (least is not None and number < least):
            self.warn_once(
                f"number {argument}",
                "%s must be a whole number%s, got %s; it is ignored. Pass a Python int:"
                " a tensor would have to wait for the device.",
                argument,
                "" if least is None else f" from {least} up",
                described(value) if number is None else number,
            )
            return None
        return number

    def text(self, argument: str, value: Any) -> str:
        """A label; of what has no text that may be read, what it is."""
        if type(value) is not str and own_text(value) is None:
            self.warn_once(
                f"text {argument}",
                "the label of %s must be text, got %s, which stands in its place. Pass a"
                " str, and of a tensor its .item() where it is on the host already.",
                argument,
                described(value),
            )
        return text_of(value)

    # Spans, loaders and profiled functions.

    @guarded(_tell)
    def begin_batch(self, iterator: Any) -> Any:
        """The loop takes the next batch, or waits for it."""
        automatic = self.timing.automatic if self.is_live else None
        if automatic is None:
            return None
        return automatic.begin("dataloader", "", (iterator,))

    @guarded(_tell)
    def end_batch(self, begun: Any, *, has_come: bool) -> None:
        """It is there, or there is none."""
        if self.is_live:
            self.num_batches += has_come
            if begun is not None and self.timing.automatic is not None:
                self.timing.automatic.end(begun, False)

    @guarded(_tell)
    def open_span(self, name: str, options: SpanOptions) -> Any:
        """A span begins of which there is more to do."""
        call = self.begin_call(text_of(name)) if options.memory else None
        return call, self.timing.open_span(name, options)

    @guarded(_tell)
    def close_span(self, opened: Any, error: BaseException | None) -> int | None:
        """It has ended; its peak in bytes, where there is one."""
        call, beside = opened
        peak_bytes = self.timing.close_span(beside)
        if call is not None:
            self.end_call(call, error)
        return peak_bytes

    @guarded(_tell)
    def passed(self, error: BaseException) -> None:
        """An exception leaves a span or a profiled call; it may yet be caught."""
        if self.oom is not None and self.is_live:
            self.oom.passed(error)

    @guarded(_tell)
    def begin_call(self, function: str) -> Any:
        """A profiled call begins; None where it is not collected."""
        return self.windows.begin(function) if self.is_live else None

    @guarded(_tell)
    def end_call(self, call: Any, error: BaseException | None) -> None:
        """The call that `begin_call` returned has ended."""
        self.windows.end(call, error)

    # What the recorder is told.

    def note(self, kind: str, data: dict[str, Any], *, user: bool = False) -> None:
        """Queue a note; `user`: a user's loop may cause it, so it is bounded."""
        step = self.progress.train_step  # whatever the phase: marks share one axis
        self.engine.note(kind, data, step=step, user=user)

    def attach(self, model: Any, optimizer: Any) -> None:
        """These are there now. May raise what odd models raise."""
        for kind, data in self.attached.add(model, optimizer):
            self.note(kind, data, user=True)
        if model is not None and self.timing.automatic is not None:
            self.timing.automatic.attach(self.attached.models)
        if model is None and optimizer is None:
            return
        self.windows.attach(self.attached.model, self.attached.optimizers)
        if self.oom is not None:
            self.oom.attach(self.attached.model, self.attached.optimizers)

    def take_snapshot(self, label: str) -> bool:
        """Capture the allocator now; whether there was anything to capture."""
        if self._on_demand is None:
            from memboard.collector.history.on_demand import OnDemand

            self._on_demand = OnDemand(
                self.config, self.engine, self.windows, self.warn_once
            )
        return self._on_demand.take(label, self.attached, self.progress)

    # The end.

    @guarded(_tell)
    def close_for(self, error: BaseException | None) -> None:
        """Close, saying how it ended; calling again does nothing."""
        end_recording(self, error)

    @guarded(_tell)
    def signalled(self, signal_name: str) -> None:
        """A signal ends the process: have that on the disk, before all else."""
        self.engine.end("signal", signal_name, self.progress.phase.name)

    @guarded(_tell)
    def end_by(self, signal_name: str, seconds: float) -> None:
        """End the file, by a signal. Waits for the writer alone, so long at most."""
        self.is_live, self.span_log = False, None
        self.engine.end_by(signal_name, seconds)

    def after_fork(self) -> None:
        """Nothing here is ours: this is a forked child."""
        self.is_live, self.span_log = False, None
        self.lock = threading.RLock()  # another thread may have held it
        self.oom = None
        lifecycle.remove(self)
        for part in (self.windows, self.tracing, self.engine):
            if part is not None:
                with self.guard("fork"):
                    part.after_fork()

    # A loader or a span that holds it may be copied, or sent to another process.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return never_opened, ()


NEVER_OPENED: Final = Session()
"""Of recorders that are switched off, could not start, or were sent here."""


def never_opened() -> Session:
    """The one there is: what a pickled session becomes."""
    return NEVER_OPENED
