"""What one recorder holds, and the order in which it is made and ended.

`Recorder` is what training calls; here is everything behind it: the engine, where the
schedule stands, what is timed, what is collected around calls, and who reports errors.
Spans, loaders and profiled functions (`spans.SpanSink`, `loader.BatchSink`) and the
process at its turns (`lifecycle.Living`) tell it, on any thread. None of that may raise:
it stands in the middle of somebody else's code.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

from collector.afterwards import detached
from collector.core import lifecycle
from collector.core.engine import Engine
from collector.core.guard import guarded, say
from collector.core.inert import inert
from collector.core.plain import text_of
from collector.core.warn_once import Troubles
from collector.format.names import RANK_FILES_DIR, RUN_INDEX
from collector.functions import open_windows
from collector.functions.unmatched import tell_missing, tell_unmatched
from collector.functions.windows import MAX_FUNCTIONS
from collector.steps.attached import Attached
from collector.steps.progress import Progress
from collector.steps.spans import spans
from collector.torch_profiler import open_torch_profiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typing_extensions import Self

    from collector.config import RecordConfig
    from collector.format.records import How
    from collector.history.on_demand import OnDemand
    from collector.oom.witness import OomWitness
    from collector.recorder import Recorder
    from collector.steps.spans.how import How as SpanHow
    from collector.steps.spans.log import SpanLog
    from collector.torch_profiler.kept import SavedTrace

_MAX_TEXT: Final = 1000
MERGED_NAME: Final = "merged_trace.json.gz"
"""In the run's directory: what `merge_on_close` writes."""
_WAIT_SECONDS: Final = 60
"""For the other ranks' files, in the process that merges them."""
_MIN_INDEXED: Final = 16
"""Fewer ranks at a store open quickly without an index."""


def _tell(
    where: str, error: Exception, recording: Recording, *_: Any, **__: Any
) -> None:
    say(recording.troubles, where, error)


class Recording:
    """All parts of one recording. `join` begins it, `close_for` ends it."""

    recorder: Recorder
    """What training calls."""

    def __init__(
        self, run_dir: Path, config: RecordConfig, mesh: dict[str, int]
    ) -> None:
        # Reentrant: a signal handler or finaliser may call while a step is taken.
        self.lock = threading.RLock()
        self.is_live = True
        self.num_batches = 0
        self.run_dir = run_dir
        self.config = config
        self.progress = Progress()
        self.troubles = Troubles()
        self.attached = Attached()
        engine = self.engine = Engine(
            run_dir, config, mesh, self.progress, self.troubles
        )
        self.cycles = engine.cycles
        self.timing = engine.timing
        self.span_log: SpanLog | None = engine.timing.log
        """Where spans go; None: nowhere, it is not live."""
        try:
            self.windows = open_windows(
                config,
                engine,
                engine.device,
                self.progress,
                self.troubles,
                self.cycles,
            )
        except BaseException:
            engine.stop("closed", "")
            raise
        self.tracing = open_torch_profiler(
            config, engine, self.progress, self.troubles, run_dir
        )
        """torch's profiler; None: it is off."""
        self._guarded(lambda: tell_missing(config.functions, self.troubles))
        self.witness = self._open_witness()
        """What reports out-of-memory errors and other ends; None: switched off."""
        self._on_demand: OnDemand | None = None

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
        self.begin_step()

    def begin_step(self) -> None:
        """The current phase's next step begins; what costs most begins last."""
        self.cycles.choose()
        self.timing.turn()
        self.windows.begin_step()
        self.cycles.begin_step()

    # What spans, loaders and profiled functions tell.

    @guarded(_tell)
    def begin_batch(self, iterator: Any) -> Any:
        """The next batch is asked for."""
        automatic = self.timing.automatic if self.is_live else None
        return None if automatic is None else automatic.begin_batch(iterator)

    @guarded(_tell)
    def end_batch(self, begun: Any, *, has_come: bool) -> None:
        """It is there, or there is none."""
        self.num_batches += has_come
        if begun is not None and self.timing.automatic is not None:
            self.timing.automatic.end(begun)

    @guarded(_tell)
    def open_span(self, name: str, how: SpanHow) -> Any:
        """A span begins of which there is more to do."""
        call = self.begin_call(text_of(name)) if how.memory else None
        return call, self.timing.open_span(name, how)

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
        if self.witness is not None and self.is_live:
            self.witness.passed(error)

    @guarded(_tell)
    def begin_call(self, function: str) -> Any:
        """A profiled call begins; None where it is not collected."""
        return self.windows.begin(function) if self.is_live else None

    @guarded(_tell)
    def end_call(self, call: Any, error: BaseException | None) -> None:
        """The call that `begin_call` returned has ended."""
        self.windows.end(call, error)

    # What the recorder is told, and what goes wrong with it.

    @property
    def path(self) -> Path | None:
        """The rank's file; None until it is created."""
        return self.engine.writer.path

    @property
    def rank(self) -> int:
        """This process's global rank, as far as it is known by now."""
        return self.engine.writer.identity.rank

    @property
    def attempt(self) -> str:
        """Name of this start, part of the file's name."""
        return self.engine.writer.attempt

    @property
    def num_steps(self) -> int:
        """Training steps taken so far."""
        return self.progress.train.num_steps

    @property
    def num_dropped(self) -> int:
        """Rows and notes that could not be kept."""
        return self.engine.writer.num_dropped

    @property
    def saved_traces(self) -> tuple[SavedTrace, ...]:
        """Traces of torch's profiler on this disk, newest last."""
        return () if self.tracing is None else self.tracing.saved_traces

    def note(self, kind: str, data: dict[str, Any], *, user: bool = False) -> None:
        """Queue a note; `user`: a user's loop may cause it, so it is bounded."""
        step = self.progress.train_step  # whatever the phase: marks share one axis
        self.engine.note(kind, data, step=step, user=user)

    def attach(self, model: Any, optimizer: Any) -> None:
        """These are there now; see `Recorder.attach`. May raise what odd models raise."""
        for kind, data in self.attached.add(model, optimizer):
            self.note(kind, data, user=True)
        if model is not None and self.timing.automatic is not None:
            self.timing.automatic.attach(self.attached.models)
        if model is None and optimizer is None:
            return
        self.windows.attach(self.attached.model, self.attached.optimizers)
        if self.witness is not None:
            self.witness.attach(self.attached.model, self.attached.optimizers)

    def take_snapshot(self, label: str) -> bool:
        """Capture the allocator now; see `Recorder.snapshot`."""
        if self._on_demand is None:
            self._on_demand = self._open_on_demand()
        return self._on_demand.take(label)

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours has failed: told once."""
        self.troubles.tell(
            f"fault {where}",
            "%s failed; training goes on, and so does the rest of the recording."
            " Please report this.",
            where,
            error=error,
        )

    # The end. Each part by itself: whatever fails, the file is ended.

    @guarded(_tell)
    def close_for(self, error: BaseException | None) -> None:
        """Close, saying how it ended; calling again does nothing."""
        with self.lock:
            if not self.is_live:
                return
            if error is not None:  # while memory is as it left it
                self._guarded(lambda: self._tell_end(error))
            if lifecycle.launcher is not None:
                lifecycle.launcher.recording_ends(self.note, error)
            how, message = lifecycle.ending(error)
            phase = self.progress.phase_of(error)
            self._cut(error if how == "exception" else None)
            self.is_live, self.span_log = False, None
        self._leave()
        lifecycle.remove(self)
        spans.release(self)
        self._stop(how, message, phase)

    @guarded(_tell)
    def end_by(self, signal_name: str) -> None:
        """End the file: a signal ends the process now. Waits for the writer alone."""
        self.is_live, self.span_log = False, None
        self.engine.end_by(signal_name)

    def _cut(self, fatal: BaseException | None) -> None:
        """What is under way ends, by the exception where one ends the recording."""
        self._guarded(lambda: self.cycles.close(fatal))
        self._guarded(self._tell_unmatched)
        self._guarded(lambda: self.windows.close(fatal))
        self._guarded(self.timing.close)

    def _leave(self) -> None:
        """Leave Python and torch as they were."""
        if self.witness is not None:
            self._guarded(self.witness.close)
        if self.tracing is not None:
            self._guarded(self.tracing.close)

    def _stop(self, how: How, message: str, phase: str) -> None:
        """End the files, and the mirror's copies of them."""
        self.engine.stop(how, message, phase)
        if self.tracing is not None:
            self.tracing.settle()
        if self.engine.rank == 0:
            if self.config.merge_on_close:
                self._start_merge()
            if self.engine.remote.is_on:
                self._guarded(self._start_index)

    def _start_merge(self) -> None:
        """Have `memboard merge` wait for the other ranks, and merge what is there then."""
        merged = self.run_dir / MERGED_NAME
        command = ["tb_plugin.cli", "merge", str(self.run_dir), "--force"]
        command += ["--wait", str(_WAIT_SECONDS), "-o", str(merged)]
        upload = self.engine.remote.task_for("merged", merged)
        if upload:
            command.insert(0, "collector.mirror.finishing")
        try:
            log = self.run_dir.joinpath(*RANK_FILES_DIR, "merge.log")
            log.unlink(missing_ok=True)
            detached.start(command[0], command[1:], log, upload)
        except (OSError, ValueError) as error:
            self.troubles.tell(
                "merge",
                "merge_on_close: merging could not be started. Run: memboard merge %s",
                self.run_dir,
                error=error,
            )

    def _start_index(self) -> None:
        """Have the mirrored run indexed, where it has so many ranks that it matters."""
        if self.engine.writer.identity.world_size < _MIN_INDEXED:
            return
        index = self.run_dir.joinpath(*RANK_FILES_DIR, RUN_INDEX)
        url = self.engine.remote.url_of("events", index)
        task = self.engine.remote.task_for_later()
        if url is not None and task:
            log = index.with_name("index.log")
            detached.start("tb_plugin.cli.index_process", [url], log, task)

    def _tell_end(self, error: BaseException) -> None:
        from collector.oom.message import is_out_of_memory, text_of

        if self.witness is not None:
            self.witness.ended(error)
        elif is_out_of_memory(error):
            # The failed step has no row, so what is known of it goes into the note.
            values = self.engine.step_values()
            self.note("oom", {"message": text_of(error)[:_MAX_TEXT], "values": values})

    def forget(self) -> None:
        """In a forked child: nothing here is ours."""
        self.is_live, self.span_log = False, None
        self.lock = threading.RLock()  # another thread may have held it
        self.witness = None
        self.windows.forget()
        if self.tracing is not None:
            self.tracing.forget()
        self.engine.forget()

    # A loader or a span that holds it may be copied, or sent to another process.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return inert, ()

    # Behind these.

    def _guarded(self, close: Callable[[], None]) -> None:
        try:
            close()
        except Exception as error:  # noqa: BLE001  # the border to training
            self.fault("close", error)

    def _tell_unmatched(self) -> None:
        seen = self.windows.functions_seen()
        if len(seen) < MAX_FUNCTIONS:  # beyond that, names are not told apart
            note, functions = self.engine.note_kind, self.config.functions
            tell_unmatched(functions, seen, note, self.troubles)

    def _open_on_demand(self) -> OnDemand:
        from collector.history.on_demand import OnDemand

        return OnDemand(
            self.config,
            self.engine,
            self.progress,
            self.troubles,
            kind=lambda: self.windows.kind("history"),
            attached=self.attached,
        )

    def _open_witness(self) -> OomWitness | None:
        from collector.oom import open_witness

        try:
            return open_witness(
                config=self.config,
                engine=self.engine,
                progress=self.progress,
                troubles=self.troubles,
                windows=self.windows,
            )
        except Exception as error:  # noqa: BLE001  # the recording goes on without
            self.fault("oom", error)
            return None
