"""Chooses the calls that are collected: counters, the schedule, calls under way.

A call is one execution of a profiled function, or a whole step: everything from one
`rec.step()` to the next; the first one begins with the recording. Each function and
phase counts its own calls, in the order they begin. The kinds of a collected call begin
in the reverse of their order and end in it, so that memory is snapped last before the
call and first after it, and none measures what another one needs.

Defined where one might wonder:

- Calls nest, recurse and overlap as they like; each is a call of its own, and what
  happens counts for all that are under way.
- A step that another phase interrupts is no step: it is not recorded, and begins anew,
  under the same number, where its phase is entered again. Neither is what comes after
  the last step of a recording.
- A call that ends in an exception is recorded as far as it came; so is a step whose
  recording ends in one.
- Model, optimizers and torch are left alone while no cycle of any function is under
  way, and at the end of each epoch.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

from memboard.collector.config.schedule import Action
from memboard.collector.core.calls import WHOLE_STEP, Call
from memboard.collector.steps.progress import TRAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from memboard.collector.core.calls import Gate
    from memboard.collector.functions.kinds import Slot
    from memboard.collector.history.tensor_walk import Known
    from memboard.collector.steps.cycles import Cycles
    from memboard.collector.steps.positions import Positions
    from memboard.collector.steps.progress import Progress

MAX_FUNCTIONS: Final = 64
"""Each function costs a table per phase; names made up in a loop must not for ever."""

OTHER: Final = "other"

CLOSE_SECONDS: Final = 1.0
"""Longest wait of a recording's end for another thread's call to begin or end."""


class CallUnderWay(msgspec.Struct, eq=False):
    """A call that is collected, and the kinds that have begun it."""

    call: Call
    begun: list[Slot]


class Windows:
    """The calls of one recording. Safe from any thread; never raises."""

    def __init__(
        self,
        *,
        positions: Positions,
        slots: Sequence[Slot],
        gate: Gate,
        progress: Progress,
        cycles: Cycles | None = None,
        inputs: Callable[[], Known] | None = None,
    ) -> None:
        """`slots`: in the order they end. `gate`: what stands before their sink.

        `cycles`: who has evaluated the schedule for whole training steps already.
        `inputs`: storages that the models were given, without any kind that is open.
        """
        self._positions = positions
        self._slots = tuple(slots)
        self._gate = gate
        self._progress = progress
        self._cycles = cycles
        self._inputs = inputs
        self._calls_before: dict[tuple[str, str], int] = {}
        """Calls where positions began, by function and phase."""
        self._wanting: dict[str, tuple[Slot, ...]] = {}
        self._counts: dict[tuple[str, str], int] = {}
        self._under_way: list[CallUnderWay] = []
        self._unfinished: set[tuple[str, str]] = set()
        """Functions and phases with a cycle of which more calls are to come."""
        self._held = False
        """Whether kinds may hold on to model or torch."""
        self.step: CallUnderWay | None = None
        """The step under way, where it is collected."""
        self._step_key: tuple[str, str] | None = None
        self._attached: tuple[Any, Sequence[Any]] | None = None
        # Reentrant: a hook of the user's may call a profiled function.
        self._lock = threading.RLock()

    # Calls of functions.

    def begin(self, function: str) -> CallUnderWay | None:
        """A profiled call begins; None where it is not collected."""
        if function == WHOLE_STEP:
            function = f"{WHOLE_STEP} (own)"  # the name is taken
        with self._lock:
            return self._begin(function, self._progress.phase.name)

    def end(self, under_way: CallUnderWay, error: BaseException | None) -> None:
        """It has ended; on any thread, and at most once."""
        with self._lock:
            if under_way in self._under_way:
                self._end(under_way, error)
                self._settle()

    # Whole steps.

    def begin_step(self) -> None:
        """The current phase's next step begins. One thread at a time, as `end_step`."""
        phase, cycles = self._progress.phase.name, self._cycles
        key = self._step_key = (WHOLE_STEP, phase)
        number = self._counts.get(key)
        if (
            number is not None
            and cycles is not None
            and cycles.action is Action.SKIP
            and cycles.needed
            and phase == TRAIN
            and key not in self._unfinished
        ):  # as nearly all steps: nobody else counts them, so none has to wait
            self._counts[key] = number + 1
            return
        with self._lock:
            self._gate.is_holding = True
            try:
                self.step = self._begin(WHOLE_STEP, phase)
            finally:
                self._gate.is_holding = False

    def end_step(self) -> None:
        """The step under way is done."""
        positions = self._positions
        if positions.steps_left is not None and self._progress.phase.name == TRAIN:
            positions.steps_left -= 1
        step, self.step, self._step_key = self.step, None, None
        if step is None:
            return
        with self._lock:
            if step in self._under_way:
                self._gate.is_holding = True
                try:
                    self._end(step, None)
                finally:
                    self._gate.is_holding = False
                    self._gate.release()
                self._settle()

    def drop_step(self) -> None:
        """The step under way is none: another phase begins, or the recording ends."""
        with self._lock:
            step, key = self.step, self._step_key
            self.step = self._step_key = None
            if key is not None and key in self._counts:
                self._counts[key] -= 1
            self._gate.drop()
            if step is not None and step in self._under_way:
                self._gate.shut = True
                try:
                    self._end(step, None)
                finally:
                    self._gate.shut = False
                self._settle()

    def epoch(self, length: int | None) -> None:
        """Another epoch begins, of `length` steps: cycles under way end here."""
        with self._lock:
            self._positions.begin_epoch(length)
            if self._positions.per_epoch:
                self._calls_before = self._counts.copy()
            self._unfinished.clear()
            self._settle()

    # Model, end.

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Model and optimizers are known, or others than before."""
        with self._lock:
            self._attached = (model, optimizers)
            for slot in self._slots:
                slot.attach(model, optimizers)

    def track_inputs(self, inputs: Sequence[Any]) -> None:
        """The step's inputs are these, for kinds that are open."""
        with self._lock:
            for slot in self._slots:
                slot.track_inputs(inputs)

    def functions(self) -> tuple[str, ...]:
        """Collected calls under way on any thread, in the order they began."""
        return tuple(under_way.call.function for under_way in self._under_way)

    def functions_seen(self) -> tuple[str, ...]:
        """Functions that were called so far, collected or not."""
        return tuple(self._wanting)

    def named_storages(self) -> Iterator[tuple[Any, int, str]]:
        """Inputs, then what open kinds know: of two names of a storage the first counts."""
        if self._inputs is not None:
            yield from self._inputs()
        yield from self.known_storages()

    def known_storages(self) -> Iterator[tuple[Any, int, str]]:
        """Storages that open kinds know just now, each with its category and a name."""
        for slot in self._slots:
            list_storages = getattr(slot.kind, "known_storages", None)
            if list_storages is not None:
                yield from list_storages()

    def kind(self, kind_name: str) -> Any:
        """The kind of that name, opened if need be; None where it is off."""
        with self._lock:
            slots = [slot for slot in self._slots if slot.name == kind_name]
            return self._opened(slots[0]) if slots else None

    def close(self, error: BaseException | None) -> None:
        """End the step under way, and leave model and torch as they were."""
        if not self._lock.acquire(timeout=CLOSE_SECONDS):
            self.after_fork()  # another thread is at it, and stuck
            return
        try:
            if error is None:
                self.drop_step()
            self._gate.release()
            for under_way in reversed(self._under_way.copy()):
                self._end(under_way, error)
            for slot in self._slots:
                slot.close()
            self.after_fork()
        finally:
            self._lock.release()

    def after_fork(self) -> None:
        """Be dead: closed, or in a forked child."""
        self._positions.stop()
        self._under_way = []
        self.step = self._step_key = self._attached = None

    # Behind the calls.

    def _begin(self, function: str, phase: str) -> CallUnderWay | None:
        slots = self._wanting.get(function)
        if slots is None:
            if len(self._wanting) >= MAX_FUNCTIONS and function != OTHER:
                return self._begin(OTHER, phase)
            slots = tuple(slot for slot in self._slots if slot.wants(function))
            self._wanting[function] = slots
        key = (function, phase)
        number = self._counts.get(key, 0)
        self._counts[key] = number + 1
        action = self._action(function, number) if slots else Action.SKIP
        if action is Action.WARMUP:
            for slot in slots:
                self._opened(slot)
        if not action.collects:
            if key in self._unfinished:
                self._unfinished.discard(key)
                self._settle()
            return None
        call = Call(
            function=function,
            phase=phase,
            iteration=number + 1,
            step=self._progress.train_step,
        )
        under_way = CallUnderWay(call, [])
        self._under_way.append(under_way)
        if action is Action.ACTIVE:
            self._unfinished.add(key)
        else:
            self._unfinished.discard(key)
        self._held = True
        for slot in reversed(slots):
            if slot.kind is None and self._opened(slot) is None:
                continue
            if slot.begin(call):
                under_way.begun.insert(0, slot)
        return under_way

    def _end(self, under_way: CallUnderWay, error: BaseException | None) -> None:
        for slot in under_way.begun:
            slot.end(under_way.call, error)
        self._under_way.remove(under_way)

    def _settle(self) -> None:
        """Leave model and torch alone where nothing is under way or to come."""
        if self._held and not self._under_way and not self._unfinished:
            self._held = False
            for slot in self._slots:
                slot.release()

    def _opened(self, slot: Slot) -> Any:
        kind = slot.kind
        if kind is None:
            kind = slot.open()
            know_storages = getattr(kind, "know_storages", None)
            if know_storages is not None:
                know_storages(self.named_storages)
            if kind is not None and self._attached is not None:
                slot.attach(*self._attached)
        return kind

    def _action(self, function: str, number: int) -> Action:
        cycles, phase, positions = (
            self._cycles,
            self._progress.phase.name,
            self._positions,
        )
        is_step = function == WHOLE_STEP
        if is_step and phase == TRAIN and cycles and cycles.needed:
            return cycles.action
        before = self._calls_before.get((function, phase), 0)
        is_last = is_step and positions.steps_left == 1
        return positions.action(positions.place(number - before), is_last)
