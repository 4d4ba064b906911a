"""The main path: the life of a recording, to its `close`; see `start` for its beginning.

The engine opens the sources and starts two threads: one writes, one samples what has
its own pace. `Recorder.step` samples what belongs to a step, on the training thread, and
queues one row. `close` ends the file.

From the moment `record` has returned, nothing here raises into training: every entry is
guarded, the first fault is logged with its traceback, and the rest goes on.

Defined where one might wonder:

- Steps count from 0 per phase, or follow the numbers given. A number that goes back is
  recorded as it is and marked; the next default continues from it.
- Any thread may call; concurrent steps are taken one after the other.
- Several recorders may live in one process, each with its own file and attempt. The
  newest is the active one. Of those in the same run, the first writes the scalars. In
  an interactive session, a new one closes its forerunner in the same directory.
- A copy of a recorder is the recorder itself; one sent to another process does nothing.
- A recorder that is never closed is closed at exit; a killed process loses at most
  `flush_seconds`. A forked child's copy is dead, silently.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from collector import lifecycle
from collector.errors import ConfigError
from collector.loop import loader, spans
from collector.loop.attached import Attached
from collector.loop.compiled import untraced
from collector.loop.progress import PhaseBlock, Progress, whole_number
from collector.rank import mesh_coordinates
from collector.trouble import Troubles

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from collector.config import RecordConfig
    from collector.history.on_demand import OnDemand

Batch = TypeVar("Batch")

FLUSH_SECONDS: Final = 2.0
"""How long `flush` waits unless told otherwise."""

_MAX_TEXT: Final = 1000


class Recorder:
    """A live recording. Made by `record`; all methods are safe at any time."""

    def __init__(
        self, run_dir: Path, config: RecordConfig, mesh: dict[str, int]
    ) -> None:
        # Here and not above, so that `import collector` and a recorder that is switched
        # off stay light; and not on a thread, so that no fork meets a half import.
        from collector.engine import Engine
        from collector.profiling import open_windows

        self._run_dir = run_dir
        self._progress = Progress()
        self._troubles = Troubles()
        self._num_batches = 0
        # Reentrant: a signal handler or finaliser may call while a step is taken.
        self._lock = threading.RLock()
        self._engine = Engine(run_dir, config, mesh, self._progress, self._troubles)
        self._attached = Attached()
        self._config = config
        self._on_demand: OnDemand | None = None
        try:
            self._windows = open_windows(
                config,
                self._engine,
                self._engine.device,
                self._progress,
                self._troubles,
            )
        except BaseException:
            self._engine.stop("closed", "")
            raise
        self._live = True
        lifecycle.add(self)

    # What training calls.

    @untraced
    def step(
        self,
        step: int | None = None,
        *,
        tokens: int | None = None,
        samples: int | None = None,
    ) -> None:
        """Say that a step of the current phase is done, and record it.

        Args:
            step: its number; None: one more than the last, from 0.
            tokens: tokens it consumed on this rank.
            samples: samples it consumed on this rank.
        """
        if not self._live:
            return
        with self._lock:
            try:
                self._take_step(step, tokens, samples)
            except Exception as error:  # noqa: BLE001  # the border to training
                self._fault("step", error)

    @untraced
    def attach(
        self, *, model: Any = None, optimizer: Any = None, mesh: Any = None
    ) -> None:
        """Connect what did not exist yet at `record`, one or a list of each.

        None leaves things as they are; further models and optimizers come on top, but a
        model that wraps an earlier one takes its place.
        """
        if not self._live:
            return
        try:
            for kind, data in self._attached.add(model, optimizer):
                self._note(kind, data, user=True)
            if model is not None or optimizer is not None:
                self._windows.attach(self._attached.model, self._attached.optimizers)
            if mesh is not None:
                self._engine.mesh = mesh_coordinates(mesh)
                self._note("mesh", self._engine.mesh, user=True)
        except ConfigError as error:
            self._troubles.tell("mesh", "%s It is ignored.", error)
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("attach", error)

    @untraced
    def track_inputs(self, *inputs: Any) -> None:
        """Count these tensors, in whatever containers, as inputs of the step under way.

        Without it, where modules are tracked, inputs are what the model's forward is
        given. Nothing is kept alive.
        """
        if self._live:
            try:
                self._windows.track_inputs(inputs)
            except Exception as error:  # noqa: BLE001  # the border to training
                self._fault("track_inputs", error)

    @untraced
    def epoch(self, n: int, length: int | None = None) -> None:
        """Say that epoch `n` begins, of `length` steps where that is known."""
        if self._live:
            number = self._number("epoch", n)
            if number is not None:
                self._progress.epoch = number
                of = self._number("length", length)
                self._note("epoch", {"epoch": number, "length": of}, user=True)
                self._windows.epoch(of)

    @untraced
    def phase(self, name: str) -> PhaseBlock:
        """Say that another phase begins: a plain call, or `with rec.phase("val"):`.

        Each phase counts its own steps and has its own rows. At the end of the block
        the phase before it continues.
        """
        if not self._live:
            return PhaseBlock(self._enter_phase, None)
        before = self._progress.phase.name
        self._enter_phase(name)
        return PhaseBlock(self._enter_phase, before)

    def loader(self, dataloader: Iterable[Batch]) -> loader.RecordedLoader[Batch]:
        """Wrap a dataloader so that its batches are counted; all else is its own."""
        if self._live:
            try:
                self._note("loader", loader.describe(dataloader), user=True)
            except Exception as error:  # noqa: BLE001  # the border to training
                self._fault("loader", error)
        return loader.recorded(dataloader, self._count_batch)

    def span(self, name: str, *, memory: bool = False) -> spans.Span:
        """A context manager and decorator that times a stretch of code.

        `memory`: collect it on the schedule too, as a profiled function.
        """
        return spans.Span(str(name)[:_MAX_TEXT], self, memory=memory)

    @untraced
    def mark(self, label: str) -> None:
        """Put a labelled mark at this moment of the timeline."""
        if self._live:
            self._note("mark", {"label": str(label)[:_MAX_TEXT]}, user=True)

    @untraced
    def snapshot(self, label: str) -> bool:
        """Capture the device's allocator as it is now, under a name of your own.

        Segments and blocks, and the history of allocations as far as it is recorded
        (`history=True`, or torch's own `_record_memory_history`). Takes milliseconds, and
        about 7 us per event of history; encoding goes on elsewhere.

        Returns:
            Whether there was anything to capture: not before the device is in use.
        """
        if not self._live:
            return False
        try:
            if self._on_demand is None:
                self._on_demand = self._open_on_demand()
            return self._on_demand.take(str(label)[:_MAX_TEXT])
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("snapshot", error)
            return False

    @untraced
    def flush(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Have everything so far on disk now; whether that was done in time."""
        return self._live and self._engine.writer.flush(timeout)

    def close(self) -> None:
        """End the recording; calling again does nothing.

        Takes at most 2 s, and where `dumps` asks for files, the second it takes to write
        them (a minute at most).
        """
        self.close_for(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close_for(error)

    # What can be asked.

    @property
    def path(self) -> Path | None:
        """The rank's file; None until it is created."""
        return self._engine.writer.path

    @property
    def rank(self) -> int:
        """This process's global rank, as far as it is known by now."""
        return self._engine.writer.identity.rank

    @property
    def attempt(self) -> str:
        """Name of this start, part of the file's name."""
        return self._engine.writer.attempt

    @property
    def num_batches(self) -> int:
        """Batches that recorded loaders have handed out."""
        return self._num_batches

    @property
    def num_dropped(self) -> int:
        """Rows and notes that could not be kept, for whatever reason."""
        return self._engine.writer.num_dropped

    # Behind the calls.

    def _take_step(self, step: Any, tokens: Any, samples: Any) -> None:
        now = time.perf_counter_ns()
        self._windows.end_step()
        progress = self._progress
        phase = progress.phase
        if step is not None:
            step = self._number("step", step)
        if tokens is not None or samples is not None:
            progress.report(
                tokens=self._number("tokens", tokens, least=0),
                samples=self._number("samples", samples, least=0),
            )
        number, back_from = progress.advance(step)
        since, phase.last_ns = phase.last_ns, now
        seconds = None if since is None else (now - since) * 1e-9
        row = [time.time_ns(), number, seconds]
        row += (progress.epoch, phase.samples, phase.tokens)
        self._engine.write_step(phase.name, row)
        if back_from is not None:
            self.mark(f"step went back from {back_from} to {number}")
        self._windows.begin_step()

    def _number(self, what: str, value: Any, *, least: int | None = None) -> int | None:
        if value is None:
            return None
        number = whole_number(value)
        if number is None or (least is not None and number < least):
            self._troubles.tell(
                f"number {what}",
                "%s must be a whole number%s, got %s; it is ignored. Pass a Python int:"
                " a tensor would have to wait for the device.",
                what,
                "" if least is None else f" from {least} up",
                type(value).__name__ if number is None else number,
            )
            return None
        return number

    def _enter_phase(self, name: str) -> None:
        try:
            with self._lock:
                self._windows.drop_step()
                phase = self._progress.enter(name, time.perf_counter_ns())
                self._note("phase", {"phase": phase.name}, user=True)
                self._windows.begin_step()
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("phase", error)

    def _count_batch(self) -> None:
        self._num_batches += 1

    def open_span(self) -> Any:
        """See `spans.SpanSink`."""
        try:
            ledger = self._engine.device.ledger if self._live else None
            return None if ledger is None else (ledger, ledger.open())
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("span", error)
            return None

    def close_span(self, name: str, duration_ns: int, opened: Any) -> None:
        """See `spans.SpanSink`."""
        try:
            reading = None if opened is None else opened[0].close(opened[1])
            peak_bytes = None if reading is None else reading.peaks[0]
            if self._live:
                self._engine.spans.add(name, duration_ns // 1000, peak_bytes)
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("span", error)

    def begin_call(self, function: str) -> Any:
        """See `spans.SpanSink`."""
        try:
            return self._windows.begin(function) if self._live else None
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault(function, error)
            return None

    def end_call(self, call: Any, error: BaseException | None) -> None:
        """See `spans.SpanSink`."""
        try:
            self._windows.end(call, error)
        except Exception as fault:  # noqa: BLE001  # the border to training
            self._fault(call.call.function, fault)

    def begin(self) -> None:
        """The first step begins: all that was known at the start is attached."""
        try:
            self._windows.begin_step()
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("step", error)

    def _open_on_demand(self) -> OnDemand:
        from collector.history.on_demand import OnDemand

        return OnDemand(
            self._config,
            self._engine,
            self._progress,
            self._troubles,
            kind=lambda: self._windows.kind("history"),
        )

    def _note(self, kind: str, data: dict[str, Any], *, user: bool = False) -> None:
        step = self._progress.train_step  # whatever the phase: marks share one axis
        self._engine.note(kind, data, step=step, user=user)

    def _fault(self, where: str, error: BaseException) -> None:
        self._troubles.tell(
            f"fault {where}",
            "%s failed; training goes on, and so does the rest of the recording."
            " Please report this.",
            where,
            error=error,
        )

    def close_for(self, error: BaseException | None) -> None:
        """See `lifecycle.Living`."""
        try:
            with self._lock:
                if not self._live:
                    return
                if lifecycle.is_out_of_memory(error):
                    self._note_oom(str(error))
                how, message = lifecycle.ending(error)
                self._windows.close(error if how == "exception" else None)
                self._live = False
            lifecycle.remove(self)
            self._engine.stop(how, message)
        except Exception as fault:  # noqa: BLE001  # the border to training
            self._fault("close", fault)

    def _note_oom(self, message: str) -> None:
        """The failed step has no row, so what is known of it goes into the note."""
        data = {"message": message[:_MAX_TEXT], "values": self._engine.step_values()}
        self._note("oom", data)

    def forget(self) -> None:
        """See `lifecycle.Living`."""
        self._live = False
        self._windows.forget()
        self._engine.forget()

    @property
    def run_dir(self) -> Path:
        """The run's own directory, absolute."""
        return self._run_dir

    # A trainer that holds it may be copied, or sent to another process.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from collector.null_recorder import NullRecorder

        return NullRecorder, ()
