"""Reports of out-of-memory errors and other ends, for one recorder.

Torch's observer tells first, while all memory is still held; the exception that follows
is recognised when it passes and adds its text. Where there is no observer the exception
is all there is. A report is written at once and waited for, then the snapshot is taken
and left to the writer. The user's exception is never replaced or delayed by more than a
second or two.

Programs catch such errors and try again: at most so many reports per hour are written, and
what comes beyond that is counted, with the last one's facts kept. An error that ends the
program is always reported, if need be with those facts.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.core.guard import Guard
from memboard.collector.core.source import SourceInfo
from memboard.collector.format import oom
from memboard.collector.format.sizes import sizes_in
from memboard.collector.oom import facts, report
from memboard.collector.oom.device import WatchedDevice
from memboard.collector.oom.exit_hooks import exit_hooks
from memboard.collector.oom.message import (
    in_words,
    is_of_device,
    is_out_of_memory,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from memboard.collector.config import RecordConfig
    from memboard.collector.core.warn_once import WarnOnce
    from memboard.collector.engine import Engine
    from memboard.collector.functions.windows import Windows
    from memboard.collector.steps.progress import Progress

INFO: Final = SourceInfo(
    name="oom",
    cost="2 us per allocation while stacks are recorded; at an error about a second",
)

_SAME_SIZE: Final = 0.01
"""Messages round sizes to two decimals."""

_REMEDY: Final = "Switch it off with oom=False, and report this."


@dataclass(slots=True)
class _LastError:
    """The error that was told of last."""

    case: report.Case
    number: int | None = None
    """Of its report; None: it has none yet."""
    key: tuple[int, type, str] | None = None
    """The exception, once it has passed. Not the object, which would hold tensors."""


class OomHandler:
    """What observers, hooks and the session call. Nothing public raises."""

    def __init__(
        self,
        config: RecordConfig,
        engine: Engine,
        progress: Progress,
        windows: Windows,
        warn_once: WarnOnce,
    ) -> None:
        self._settings = config.oom
        self._progress = progress
        self._engine = engine
        self._guard = Guard(
            warn_once,
            "reporting of out-of-memory errors failed (%s); training and the rest of the"
            f" recording go on. {_REMEDY}",
            note=self._note_fault,
        )
        self._device = WatchedDevice(config, engine, self._guard)
        self._reports = report.Reports(
            engine, progress, windows, self._device, self._guard
        )
        self._seen: _LastError | None = None
        self._last_key: tuple[int, type, str] | None = None
        # Not reentrant: who comes while a report is being made is only counted.
        self._lock = threading.Lock()

    def start(self) -> None:
        self._engine.note_kind(INFO, "recorded", "", "")
        exit_hooks.hold(self)
        if self._settings.on_sigterm:
            why_not = exit_hooks.hold_signal(self)
            if why_not:
                info = SourceInfo(name="oom.on_sigterm", cost="")
                remedy = "Call mb.record on the main thread."
                self._engine.note_kind(info, "absent", why_not, remedy)
        with self._guard("start"):
            self._device.start()
        self._engine.watchers.append(self._device.watch)

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Name their tensors in reports and snapshots."""
        self._reports.tensors.attach(model, optimizers)

    def stepped(self) -> None:
        """A step of the current phase begins, on this thread."""
        history = self._device.history
        if history is not None:
            with self._guard("tag"):
                history.tag(self._progress.train_step, self._progress.phase.name)

    def close(self) -> None:
        """Watch no more, and leave Python and torch as they were."""
        exit_hooks.release(self)
        with self._guard("close"):
            self._device.close()

    def observed(
        self, device: int, requested: int, limit: int, free: int, device_type: str
    ) -> None:
        """A request could not be served; the exception is yet to be raised."""
        began = time.perf_counter()
        self._reports.num_ooms += 1
        with self._alone() as is_alone, self._guard("observer"):
            if not is_alone:
                self._reports.num_not_reported += 1
                return
            case = self._reports.case("oom", is_out_of_memory=True)
            case.device_type, case.device = device_type, device
            case.known.update(
                report.observed_facts(
                    self._engine.device, device, requested, limit, free
                )
            )
            seen = self._seen = _LastError(case)
            if self._reports.has_budget():
                seen.number = self._reports.write(case, began)
            else:
                self._reports.num_not_reported += 1
            asked, left = in_words(requested), in_words(free)
            where = f"{device_type}:{device}"
            text = f"out of memory on {where}: {asked} asked for, {left} free"
            self._note(text, case, seen.number)

    def uncaught(self, error: BaseException, thread: str) -> None:
        """An exception has reached the end of a thread."""
        is_main = threading.current_thread() is threading.main_thread()
        self._raised(error, thread, ends=is_main)

    def passed(self, error: BaseException) -> None:
        """An exception passes a span or a profiled function; it may yet be caught."""
        if is_out_of_memory(error):
            self._raised(error, threading.current_thread().name, ends=False)

    def ended(self, error: BaseException) -> None:
        """An exception ends the recording."""
        self._raised(error, threading.current_thread().name, ends=True)

    def signalled(self, signal_name: str, seconds: float) -> None:
        """A signal is about to end the process; `seconds`: longest wait for the snapshot."""
        began = time.perf_counter()
        step = self._progress.train_step
        self._engine.note("signal", {"signal": signal_name}, step=step, user=True)
        with self._alone() as is_alone, self._guard("signal"):
            if not is_alone:
                return  # in the middle of a report; what is written of it stays
            case = self._reports.case("signal", is_out_of_memory=False)
            device = self._engine.device
            if device.index is not None:
                case.device_type, case.device = device.type, device.index
            case.known.update(report.raised_facts(device, device.index, ""))
            case.known["signal"] = signal_name
            self._reports.write(case, began)
            self._engine.writer.flush(seconds)

    # Exceptions.

    @contextmanager
    def _alone(self) -> Iterator[bool]:
        """Whether no other report is being made just now."""
        is_alone = self._lock.acquire(blocking=False)
        try:
            yield is_alone
        finally:
            if is_alone:
                self._lock.release()

    def _raised(self, error: BaseException, thread: str, *, ends: bool) -> None:
        if isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
            return
        began = time.perf_counter()
        with self._alone() as is_alone, self._guard("exception"):
            if is_alone:
                self._take_error(error, thread, began, ends=ends)

    def _take_error(
        self, error: BaseException, thread: str, began: float, *, ends: bool
    ) -> None:
        is_oom = is_out_of_memory(error)
        text = text_of(error)
        key = id(error), type(error), text[:200]
        seen = self._seen
        if key == self._last_key and seen is not None:
            self._make_up(seen, began, ends=ends)
            return
        self._last_key = key
        if is_oom and seen and seen.key is None and _is_of(error, text, seen.case):
            seen.key = key
            seen.case.known["exception"] = report.error_facts(error)
            self._make_up(seen, began, ends=ends)
            data = {"message": text[: oom.MAX_MESSAGE], oom.REPORT: seen.number}
            self._engine.note("oom_message", data, step=seen.case.step, user=True)
            return
        case = self._reports.case_of(error, thread, text, is_oom=is_oom)
        if is_oom:
            self._reports.num_ooms += 1
        seen = self._seen = _LastError(case, None, key)
        if ends or self._reports.has_budget():
            seen.number = self._reports.write(case, began)
        elif is_oom:
            self._reports.num_not_reported += 1
        if is_oom:
            values = self._engine.step_values() if ends else None
            self._note(text, case, seen.number, values)

    def _make_up(self, seen: _LastError, began: float, *, ends: bool) -> None:
        """Report after all what turns out to end the program."""
        if ends and seen.number is None:
            if seen.case.is_out_of_memory:
                self._reports.num_not_reported -= 1
            seen.number = self._reports.write(seen.case, began)

    # Notes.

    def _note(
        self,
        text: str,
        case: report.Case,
        number: int | None,
        values: dict[str, Any] | None = None,
    ) -> None:
        """The mark on the timeline."""
        if values is None:
            memory = case.known.get("memory") or facts.host_memory()
            values = {
                figure: value for figure, value in memory.items() if value is not None
            }
        data = {
            "message": text[: oom.MAX_MESSAGE],
            "values": values,
            oom.REPORT: number,
        }
        self._engine.note("oom", data, step=case.step, user=True)

    def _note_fault(self, part: str, error: BaseException) -> None:
        info = SourceInfo(name=f"oom.{part}", cost="")
        reason = f"{type(error).__name__}: {error}"
        self._engine.note_kind(info, "failed", reason, _REMEDY)


def _is_of(error: BaseException, text: str, case: report.Case) -> bool:
    """Whether an exception is the one that torch's observer told of."""
    if not is_of_device(error, text):
        return False
    sizes = sizes_in(text)
    if sizes.get("device", case.device) != case.device:
        return False
    asked, told = case.known.get("requested_bytes"), sizes.get("requested_bytes")
    if told is None or asked is None:
        return True
    return bool(abs(told - asked) <= _SAME_SIZE * max(told, asked))
