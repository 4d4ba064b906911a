"""torch's profiler, driven by the one schedule: made ready, recording, saved.

Defined where one might wonder:

- A step of warmup makes torch ready, an active one is recorded. After the last active
  step of a cycle, and where a cycle is cut short, the trace is handed on to be saved.
- What is cut before a whole step has ended is thrown away, unless an exception did it.
- While another phase is under way nothing is recorded: it may last for hours.
- torch's profiler belongs to the thread that started it. A step that ends on another
  thread is counted, and the trace goes on until one ends on its own.
- The program's own profiler has precedence; see `others`.
- A cycle whose steps pass without a trace is named, with them and the reason.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from memboard.collector.config.schedule import Action
from memboard.collector.core.guard import Block
from memboard.collector.core.plain import forgiving
from memboard.collector.torch_profiler.other_profilers import (
    OtherProfilers,
    runs_here,
    turn,
)
from memboard.collector.torch_profiler.session import Session
from memboard.collector.torch_profiler.template_variables import TemplateVariables
from memboard.collector.torch_profiler.trace import MissedCycle, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from memboard.collector.config.sections import TorchProfilerConfig
    from memboard.collector.core.guard import Breaker
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.steps.cycles import Cut, Cycles
    from memboard.collector.steps.progress import Progress
    from memboard.collector.torch_profiler.exporting import Exporter
    from memboard.collector.torch_profiler.session import ProfilerOptions

NAME: Final = "torch_profiler"

MAX_STEPS: Final = 100
MAX_SECONDS: Final = 300
"""Of one trace; a longer cycle is saved as far as it is then."""

_WHY: Final[dict[str, str]] = {
    "epoch": "",
    "phase": "another phase began before the cycle had ended",
    "schedule": "the schedule went back before the cycle had ended",
    "close": "the recording ended before the cycle had",
    "exception": "an exception ended the cycle",
}
"""Texts of a trace's `problem` for cuts; an epoch's end is none."""

_TAKEN_OVER: Final = "the program's own torch profiler took over"


class TorchProfiler:
    """A listener of `Cycles`. Never raises."""

    def __init__(
        self,
        settings: TorchProfilerConfig,
        wanted: ProfilerOptions,
        *,
        cycles: Cycles,
        progress: Progress,
        exporter: Exporter,
        breaker: Breaker,
        warn_once: WarnOnce,
        make_session: Callable[[ProfilerOptions, OtherProfilers], Session] = Session,
    ) -> None:
        self._settings = settings
        self._wanted = wanted
        self._cycles = cycles
        self._moments = TemplateVariables(progress)
        self._exporter = exporter
        self._breaker = breaker
        self._warn_once = warn_once
        self._make_session = make_session
        self._others = OtherProfilers(self._give_way)
        self._session: Session | None = None
        self._over_with = -1
        """The cycle of which nothing more is recorded."""
        self._missed: MissedCycle | None = None
        """The cycle under way, where none of it is."""
        self._first_step: int | None = None
        """Of the trace under way; None before it."""
        self._last_step = 0
        self._num_steps = 0
        """Whole ones of the trace under way."""
        self._is_off = False
        self._others.watch()

    # As a listener.

    def begin(self, step: int) -> None:
        # See `StepListener`
        self._moments.begin()
        if not self._is_off:
            with Block(self._fail):
                self._begin(step)
            self._miss(step)

    def end(self, step: int) -> None:
        # See `StepListener`
        self._moments.end()
        if self._session is not None:
            with Block(self._fail):
                self._end(step)
        missed = self._missed
        if missed is not None and missed.first_step is not None:
            missed.last_step = step
            missed.num_steps += 1
            if self._cycles.action is Action.ACTIVE_AND_SAVE:
                self._record_missed()

    def cut(self, why: Cut) -> None:
        # See `StepListener`
        if self._session is not None:
            with Block(self._fail):
                self._cut(why)
        self._record_missed()

    # The recorder's.

    def close(self) -> None:
        """Leave torch as it was. After the last `cut`."""
        self._is_off = True
        if self._session is not None and self._session.is_lost:
            with Block(self._fail):
                self._let_go_of_lost()
        self._abandon()
        self._others.unwatch()
        turn.give_back(self)

    def after_fork(self) -> None:
        """This is a forked child: what runs is the parent's."""
        self._is_off = True
        self._session = None
        self._others.after_fork()

    # Behind them.

    def _begin(self, step: int) -> None:
        action, cycle = self._cycles.action, self._cycles.cycle
        session = self._session
        if session is not None and session.is_lost:
            self._let_go_of_lost()
            return
        if session is not None and session.thread != threading.get_ident():
            return
        if action is Action.SKIP:
            self._abandon()
            return
        if cycle == self._over_with:
            return
        if session is None and not self._breaker.is_due():
            self._refuse("torch's profiler has failed, and is tried again later")
            return
        if session is None:
            session = self._prepared()
        if session is None or not action.collects:
            return
        if not session.is_recording:
            self._first_step = self._last_step = step
            self._exporter.recording(True)
            session.start()
        session.begin_step(step)

    def _prepared(self) -> Session | None:
        """A new session; None where there can be none in this cycle."""
        why = self._exporter.why_not
        if self._others.is_busy or runs_here():
            why = (
                "the program's own torch profiler is under way, and torch has only one"
            )
        if why:
            self._refuse(why)
            return None
        # Held before torch is asked: what fails in there must be taken back.
        session = self._session = self._make_session(self._wanted, self._others)
        self._first_step, self._num_steps = None, 0
        session.prepare()
        return session

    def _end(self, step: int) -> None:
        session = self._session
        if session is None or not session.is_recording or session.is_lost:
            return
        self._num_steps += 1
        self._last_step = step
        if session.thread != threading.get_ident():
            self._tell_thread()
            return
        session.end_step()
        seconds = time.time_ns() - session.start_ns
        if self._cycles.action is Action.ACTIVE_AND_SAVE:
            self._save("")
        elif self._num_steps >= MAX_STEPS:
            self._save(f"{MAX_STEPS} steps had passed before the cycle had ended")
        elif seconds > MAX_SECONDS * 1e9:
            self._save(f"{MAX_SECONDS} seconds had passed before the cycle had ended")

    def _cut(self, why: Cut) -> None:
        session = self._session
        if session is None or session.is_lost:
            return
        if session.thread != threading.get_ident():
            self._tell_thread()
        elif session.is_recording and (self._num_steps or why == "exception"):
            self._save(_WHY[why], is_over=False)
        else:
            self._abandon()

    def _save(self, problem: str, *, is_over: bool = True) -> None:
        """End the trace and hand it on. `is_over`: so is its cycle."""
        session, first_step = self._session, self._first_step
        if session is None or first_step is None:
            return
        try:
            session.stop()
        finally:
            self._exporter.recording(False)
        self._session = None
        self._breaker.works()
        if is_over:
            self._over_with = self._cycles.cycle
        self._exporter.put(
            Trace(
                profile=session.profile,
                wanted=self._wanted,
                cycle=self._cycles.cycle,
                first_step=first_step,
                last_step=self._last_step,
                num_steps=self._num_steps,
                start_ns=session.start_ns,
                end_ns=session.end_ns,
                stop_us=session.stop_us,
                moment=self._moments.values(self._last_step + 1),
                problem=problem,
                tracks_modules=session.tracks_modules,
            )
        )

    # Cycles without a trace.

    def _refuse(self, why: str) -> None:
        """Nothing, or nothing more, of the cycle under way is recorded."""
        cycle = self._over_with = self._cycles.cycle
        self._exporter.lost.refused(cycle, why)
        self._missed = MissedCycle(cycle=cycle, why=why)

    def _refuse_rest(self, why: str) -> None:
        """The same, where steps of it may have been recorded, which are lost."""
        session = self._session
        self._refuse(why)
        if self._missed is not None and session is not None:
            self._missed.first_step = self._first_step
            self._missed.last_step = self._last_step
            self._missed.num_steps = self._num_steps
            self._missed.start_ns = session.start_ns

    def _miss(self, step: int) -> None:
        """A step begins that may be one of a cycle that is not recorded."""
        missed = self._missed
        if missed is None or missed.first_step is not None:
            return
        if missed.cycle != self._cycles.cycle:
            self._missed = None
        elif self._cycles.action.collects:
            missed.first_step = missed.last_step = step
            missed.start_ns = time.time_ns()

    def _record_missed(self) -> None:
        """Have the recording name the cycle, if it had steps that were to be recorded."""
        missed, self._missed = self._missed, None
        if missed is None or missed.first_step is None or not missed.num_steps:
            return
        trace = Trace(
            profile=None,
            wanted=self._wanted,
            cycle=missed.cycle,
            first_step=missed.first_step,
            last_step=missed.last_step,
            num_steps=0,
            start_ns=missed.start_ns,
            end_ns=time.time_ns(),
            stop_us=0,
            moment={},
            problem=missed.why,
            tracks_modules=False,
        )
        self._exporter.lost.record(trace, f"not traced: {missed.why}")

    def _abandon(self) -> None:
        """Leave torch as it was and keep nothing."""
        session, self._session = self._session, None
        self._exporter.recording(False)
        if session is None or session.is_lost:
            return
        if session.thread != threading.get_ident():
            self._tell_thread()
            return
        with forgiving:
            session.cancel()

    # The program's own profiler.

    def _give_way(self) -> None:
        """The program is about to make a profiler of its own ready."""
        session = self._session
        if session is None or session.is_lost:
            return
        self._over_with = self._cycles.cycle
        self._warn_once(
            f"{NAME} gives way",
            "the program starts a torch profiler of its own in cycle %d, so this trace"
            " ends here: torch has only one. Trace other steps with one of the two.",
            self._cycles.cycle,
        )
        if session.thread == threading.get_ident() and (
            session.is_recording and self._num_steps
        ):
            with Block(self._fail):
                self._save(_TAKEN_OVER)
            return
        self._refuse_rest(_TAKEN_OVER)
        if session.thread != threading.get_ident():
            session.is_lost = True  # torch can only be stopped where it was started
        else:
            self._abandon()

    def _let_go_of_lost(self) -> None:
        """What torch took away is ended once nobody else would be hurt.

        To stop it would end the process, as torch finds nothing to stop. A new one takes
        its place on this thread, and that one can be stopped.
        """
        session = self._session
        if session is None or self._others.is_busy:
            return
        if session.thread == threading.get_ident():
            session = self._session = self._make_session(self._wanted, self._others)
            session.prepare()
            self._abandon()

    # Faults.

    def _fail(self, error: BaseException) -> None:
        self._breaker.failed(error)
        self._refuse_rest(f"{type(error).__name__}: {error}")
        self._abandon()

    def _tell_thread(self) -> None:
        self._warn_once(
            f"{NAME} thread",
            "a step ended on another thread than it began on; torch's profiler can only"
            " be stopped where it was started, so its trace goes on. Call rec.step() on"
            " one thread.",
        )
