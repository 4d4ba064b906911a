"""What one recorder holds, and the order in which it is made and ended.

`Recorder` is what training calls; here is everything behind it: the engine, where the
schedule stands, what is timed, what is collected around calls, and who reports errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from collector import detached
from collector.engine import Engine
from collector.format.names import RANK_FILES_DIR, RUN_INDEX
from collector.loop.attached import Attached
from collector.loop.progress import Progress
from collector.profiling import open_windows
from collector.profiling.unmatched import tell_missing, tell_unmatched
from collector.profiling.windows import MAX_FUNCTIONS
from collector.torch_profiler import open_torch_profiler
from collector.trouble import Troubles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from collector.config import RecordConfig
    from collector.format.records import How
    from collector.history.on_demand import OnDemand
    from collector.loop.spans import SpanSink
    from collector.oom.witness import OomWitness

_MAX_TEXT: Final = 1000
_MIN_INDEXED: Final = 16
"""Fewer ranks at a store open quickly without an index."""


class Recording:
    """All parts of one recording. `join` begins it; then `cut`, `leave` and `stop`."""

    def __init__(
        self, run_dir: Path, config: RecordConfig, mesh: dict[str, int]
    ) -> None:
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

    def join(self, sink: SpanSink) -> None:
        """The recorder lives: time what is timed by itself."""
        self.timing.join(sink)

    # What the recorder is told, and what goes wrong with it.

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

    # The end, in this order. Each part by itself: whatever fails, the file is ended.

    def cut(self, fatal: BaseException | None) -> None:
        """What is under way ends, by the exception where one ends the recording."""
        self._guarded(lambda: self.cycles.close(fatal))
        self._guarded(self._tell_unmatched)
        self._guarded(lambda: self.windows.close(fatal))
        self._guarded(self.timing.close)

    def leave(self) -> None:
        """Leave Python and torch as they were."""
        if self.witness is not None:
            self._guarded(self.witness.close)
        if self.tracing is not None:
            self._guarded(self.tracing.close)

    def stop(self, how: How, message: str, phase: str) -> None:
        """End the files, and the mirror's copies of them."""
        self.engine.stop(how, message, phase)
        if self.tracing is not None:
            self.tracing.settle()
        if self.config.merge_on_close and self.engine.rank == 0:
            from collector.merge_process import MERGED_NAME, start_merge

            merged = self.run_dir / MERGED_NAME
            upload = self.engine.remote.task_for("merged", merged)
            start_merge(self.run_dir, self.troubles, upload)
        if self.engine.remote.is_on and self.engine.rank == 0:
            self._guarded(self._start_index)

    def _start_index(self) -> None:
        """Have the mirrored run indexed, where it has so many ranks that it matters."""
        if self.engine.writer.identity.world_size < _MIN_INDEXED:
            return
        index = self.run_dir.joinpath(*RANK_FILES_DIR, RUN_INDEX)
        url = self.engine.remote.url_of("events", index)
        task = self.engine.remote.task_for_later()
        if url is not None and task:
            log = index.with_name("index.log")
            detached.start("collector.cli.index_process", [url], log, task)

    def tell_end(self, error: BaseException | None) -> None:
        """Report the exception that ends the recording, while memory is as it left it."""
        if error is not None:
            self._guarded(lambda: self._tell_end(error))

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
        self.witness = None
        self.windows.forget()
        if self.tracing is not None:
            self.tracing.forget()
        self.engine.forget()

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
