"""The main path: the life of a recording, to its `close`; see `start` for its beginning.

The engine opens the sources and starts two threads: one writes, one samples what has
its own pace. `Recorder.step` samples what belongs to a step, on the training thread, and
queues one row. `close` ends the file.

From the moment `record` has returned, nothing here raises into training: every entry is
guarded, the first fault is logged with its traceback, and the rest goes on. The one thing
that does is `start` or `stop` of a span where the program has them in the wrong order.

In a function that torch.compile compiles, what says where training is (`step`, `phase` ...) is
called as it is, and of spans, moments and counters nothing is left.

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

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar

from memboard.collector.core.compiling import nothing, traced_as
from memboard.collector.core.guard import guarded, say
from memboard.collector.core.plain import MAX_TEXT, described, number_of
from memboard.collector.errors import ConfigError
from memboard.collector.process import lifecycle
from memboard.collector.session import NEVER_OPENED, Session
from memboard.collector.steps import loader
from memboard.collector.steps.progress import PhaseBlock
from memboard.collector.steps.spans import calls
from memboard.collector.steps.spans.calls import known_options, make_span
from memboard.collector.steps.spans.log import USER
from memboard.collector.steps.spans.span import NoSpan, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType

    from typing_extensions import Self

    from memboard.collector.config import RecordConfig
    from memboard.collector.steps.spans.calls import States
    from memboard.collector.torch_profiler.retention import SavedTrace

Batch = TypeVar("Batch")

_NO_SPAN: Final = NoSpan()

FLUSH_SECONDS: Final = 2.0
"""Default time limit of `flush`."""


def _no_block(recorder: Recorder, *_: Any) -> PhaseBlock:
    return PhaseBlock(recorder._enter_phase, None)  # noqa: SLF001  # it is its own


def _tell(
    where: str, error: BaseException, recorder: Recorder, *_: Any, **__: Any
) -> None:
    say(recorder._session.warn_once, where, error)  # noqa: SLF001  # it is its own


class Recorder:
    """A live recording. Made by `record`; all methods are safe at any time."""

    def __init__(
        self,
        run_dir: Path,
        config: RecordConfig,
        mesh: dict[str, int],
        model: Any = None,
        optimizer: Any = None,
    ) -> None:
        session = self._session = Session()
        with ExitStack() as undo:
            undo.callback(session.close_for, None)
            session.open(run_dir, config, mesh)
            session.join(self)
            undo.pop_all()
        self.attach(model=model, optimizer=optimizer)
        session.begin()

    # What training calls.

    @guarded(_tell)
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
        session = self._session
        if not session.is_live:
            return
        with session.lock:
            session.take_step(step, tokens, samples)
        if lifecycle.launcher is not None:
            lifecycle.launcher.step_taken(self)

    @guarded(_tell)
    def attach(
        self, *, model: Any = None, optimizer: Any = None, mesh: Any = None
    ) -> None:
        """Connect what did not exist yet at `record`, one or a list of each.

        None leaves things as they are; further models and optimizers come on top, but a
        model that wraps an earlier one takes its place.
        """
        if not self._session.is_live:
            return
        if mesh is not None:
            self._attach_mesh(mesh)
        self._session.attach(model, optimizer)

    @guarded(_tell)
    def track_inputs(self, *inputs: Any) -> None:
        """Count these tensors, in whatever containers, as inputs of the step under way.

        Without it, where modules are tracked, inputs are what the model's forward is
        given. Nothing is kept alive.
        """
        if self._session.is_live:
            self._session.windows.track_inputs(inputs)

    @guarded(_tell)
    def epoch(self, n: int, length: int | None = None) -> None:
        """Say that epoch `n` begins, of `length` steps where that is known."""
        session = self._session
        number = session.number("epoch", n) if session.is_live else None
        if number is not None:
            of = session.number("length", length)
            with session.lock:
                session.progress.epoch = number
                session.note("epoch", {"epoch": number, "length": of}, user=True)
                session.windows.epoch(of)
                session.cycles.epoch(of)

    @guarded(_tell)
    def moments_from(self, moment: Callable[[], Mapping[str, object]]) -> None:
        """Fill the variables of traces' names from what training counts itself.

        Args:
            moment: asked where a trace ends; numbers by variable (`epoch`, `batch`,
                `sample`, `token`, `batch_in_epoch`, `total_wct` and so on). What it
                leaves out is what was recorded.
        """
        if self._session.is_live:
            self._session.progress.moment = moment

    @guarded(_tell, instead=_no_block)
    def phase(self, name: str) -> PhaseBlock:
        """Say that another phase begins: a plain call, or `with rec.phase("val"):`.

        Each phase counts its own steps and has its own rows. At the end of the block
        the phase before it continues.
        """
        if not self._session.is_live:
            return PhaseBlock(self._enter_phase, None)
        progress = self._session.progress
        before = progress.phase.name
        self._enter_phase(name)
        return PhaseBlock(self._enter_phase, before, progress)

    @guarded(_tell, instead=lambda _, dataloader: dataloader)
    def loader(self, dataloader: Iterable[Batch]) -> loader.RecordedLoader[Batch]:
        """Wrap a dataloader so that its batches are counted; all else is its own."""
        if not self._session.is_live:
            return dataloader  # type: ignore[return-value]  # it is all that a wrapper is
        self._session.note("loader", loader.describe(dataloader), user=True)
        return loader.recorded(dataloader, self._session)

    def span(
        self,
        name: str,
        *,
        category: str = USER,
        states: States = None,
        args: dict[str, Any] | None = None,
        memory: bool = False,
    ) -> Span:
        """A stretch of code: a context manager, a decorator, or `start` and `stop`.

        Args:
            name: shown with its times; spans of one name are summed up too.
            category: groups spans; those of `memboard.collector.format.columns.STEP_PARTS`
                (`communication` ...) count as that part of the step's time.
            states: in which steps of the schedule it is kept by itself (skip, warmup,
                active, active_and_save); None: as `spans.states` says.
            args: plain values shown with it.
            memory: also snap memory at its start and end, on the schedule, as for a
                function decorated with `mb.profiled`.
        """
        if not self._session.is_live:
            return _NO_SPAN
        # Nothing is asked here of what may be anybody's object: see `make_span`.
        if states is args is None and memory is False:
            if category is USER:
                return Span(name, self._session)
            # One of a million characters would be hashed here.
            if type(category) is str and len(category) <= MAX_TEXT:
                options = known_options.get(category)
                if options is not None:
                    return Span(name, self._session, options)
        return make_span(name, self._session, category, states, args, memory)

    traced_as(span, calls.no_span)

    @guarded(_tell, traced=nothing)
    def instant(self, name: str, *, states: States = None, **args: Any) -> None:
        """Record this moment with plain values, in the steps that keep spans."""
        calls.put_instant(self._session, name, states, args)

    @guarded(_tell, traced=nothing)
    def log(self, values: Mapping[str, float], *, states: States = None) -> None:
        """Record numbers by name that hold from now on, in the steps that keep spans.

        `rec.log({"loss": loss.item(), "queue": 17})` draws a line over time for each.
        """
        calls.put_numbers(self._session, values, states)

    @guarded(_tell, traced=nothing)
    def mark(self, label: str) -> None:
        """Put a labelled mark at this moment of the timeline."""
        if self._session.is_live:
            label = self._session.text("mark", label)
            self._session.note("mark", {"label": label}, user=True)

    @guarded(_tell, instead=lambda *_: False)
    def snapshot(self, label: str) -> bool:
        """Capture the device's allocator as it is now, under a name of your own.

        Segments and blocks, and the history of allocations as far as it is recorded
        (`history=True`, or torch's own `_record_memory_history`). Takes milliseconds, and
        about 7 us per event of history; encoding goes on elsewhere.

        Returns:
            Whether there was anything to capture: not before the device is in use.
        """
        if not self._session.is_live:
            return False
        return self._session.take_snapshot(self._session.text("snapshot", label))

    @guarded(_tell, instead=lambda *_, **__: False)
    def flush(self, timeout: float = FLUSH_SECONDS) -> bool:
        """Have everything so far on disk now; whether that was done in time."""
        if not self._session.is_live:
            return False
        seconds = number_of(timeout)
        if seconds is None or seconds != seconds:  # noqa: PLR0124  # NaN is not itself
            self._session.warn_once(
                "flush",
                "the timeout of flush must be a number of seconds, got %s; it waits %g s."
                " Pass a Python number.",
                described(timeout),
                FLUSH_SECONDS,
            )
            seconds = FLUSH_SECONDS
        return self._session.engine.writer.flush(seconds)

    @guarded(_tell)
    def close(self) -> None:
        """End the recording; calling again does nothing.

        Takes at most 2 s for sources and the disk. More only for what settings switch on:
        captures that wait to be written (10 s at most), traces of torch's profiler that
        are being saved or read (a minute at most), and with a mirror what is not there
        yet (`remote.close_seconds`, 30 s unless set). A process of its own writes what
        `dumps` asks for.
        """
        self._session.close_for(None)

    def __enter__(self) -> Self:
        return self

    @guarded(_tell)
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._session.close_for(error)

    # What can be asked.

    @property
    def path(self) -> Path | None:
        """The rank's file; None until it is created."""
        return self._session.engine.writer.path if self._was_opened else None

    @property
    def run_dir(self) -> Path:
        """The run's own directory, absolute."""
        return self._session.run_dir

    @property
    def rank(self) -> int:
        """This process's global rank, as far as it is known by now."""
        return self._session.engine.rank if self._was_opened else 0

    @property
    def attempt(self) -> str:
        """Name of this start, part of the file's name."""
        return self._session.engine.writer.attempt if self._was_opened else ""

    @property
    def num_batches(self) -> int:
        """Batches that recorded loaders have handed out."""
        return self._session.num_batches

    @property
    def num_steps(self) -> int:
        """Training steps taken so far, whatever their numbers."""
        return self._session.progress.train.num_steps if self._was_opened else 0

    @property
    def num_dropped(self) -> int:
        """Rows and notes that could not be kept, for whatever reason."""
        return self._session.engine.writer.num_dropped if self._was_opened else 0

    @property
    def saved_traces(self) -> tuple[SavedTrace, ...]:
        """Traces of torch's profiler that are on this disk: when and where, newest last.

        They are saved on a thread of their own, so the newest comes a little later.
        """
        tracing = self._session.tracing
        return () if tracing is None else tracing.saved_traces

    # Behind the calls.

    @property
    def _was_opened(self) -> bool:
        return self._session is not NEVER_OPENED

    def _attach_mesh(self, mesh: Any) -> None:
        from memboard.collector.process.rank import mesh_coordinates

        try:
            coordinates = mesh_coordinates(mesh)
        except ConfigError as error:
            self._session.warn_once("mesh", "%s It is ignored.", error)
            return
        self._session.engine.mesh = coordinates
        self._session.note("mesh", coordinates, user=True)

    @guarded(_tell)
    def _enter_phase(self, name: str) -> None:
        name = self._session.text("phase", name)
        with self._session.lock:
            self._session.enter_phase(name)

    # A trainer that holds it may be copied, or sent to another process.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return inert_recorder, ()


def inert_recorder() -> Recorder:
    """One that does nothing, and imports nothing: each call is a return."""
    recorder = Recorder.__new__(Recorder)
    recorder._session = NEVER_OPENED  # noqa: SLF001  # it is made here
    return recorder
