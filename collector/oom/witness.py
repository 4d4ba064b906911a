"""What one recorder does about errors: counts them, reports a few, and lets training be.

Torch's observer tells first, while all memory is still held; the exception that follows
is recognised when it passes and adds its text. Where there is no observer the exception
is all there is. A report is written at once and waited for, then the snapshot is taken
and left to the writer.

Programs catch such errors and try again, so reports are rationed: so many per hour, and
what comes beyond that is counted, with the last one's facts kept. An error that ends the
program is always reported, if need be with those facts.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from collector.format import oom
from collector.format.oom_message import sizes_in
from collector.oom import facts, report
from collector.oom.message import in_words, is_out_of_memory, text_of
from collector.oom.reporting import Context, Reporting, is_of_device
from collector.oom.turns import turns
from collector.oom.watched_device import WatchedDevice
from collector.sources.contract import SourceInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


INFO: Final = SourceInfo(
    name="oom",
    cost="2 us per allocation while stacks are recorded; at an error about a second",
)

SIGNAL_SECONDS: Final = 5.0
"""How long a signal waits for the snapshot to be there too."""

_SAME_SIZE: Final = 0.01
"""Messages round sizes to two decimals."""


@dataclass(slots=True)
class _Seen:
    """The error that was told of last."""

    case: report.Case
    number: int | None
    """Of its report; None: it has none yet."""
    key: tuple[int, type, str] | None
    """The exception, once it has passed. Not the object, which would hold tensors."""


class OomWitness:
    """See the module, and `observer.Witness`. Nothing public raises."""

    def __init__(self, context: Context) -> None:
        self._config = context.config
        self._settings = context.config.oom
        self._context = context
        self._engine = context.engine
        self._device = WatchedDevice(context.config, context.engine, self._guarded)
        self._reports = Reporting(context, self._device, self._fault)
        self._seen: _Seen | None = None
        self._last_key: tuple[int, type, str] | None = None
        # Not reentrant: who comes while a report is being made is only counted.
        self._lock = threading.Lock()

    def start(self) -> None:
        """Watch from now on."""
        self._engine.note_kind(INFO, "recorded", "", "")
        turns.hold(self)
        if self._settings.on_sigterm:
            why_not = turns.hold_signal(self)
            if why_not:
                info = SourceInfo(name="oom.on_sigterm", cost="")
                remedy = "Call collector.record on the main thread."
                self._engine.note_kind(info, "absent", why_not, remedy)
        self._guarded("start", self._device.start)
        self._engine.watchers.append(self._device.watch)

    def attach(self, model: Any, optimizers: Sequence[Any]) -> None:
        """Name their tensors in reports and snapshots."""
        self._reports.tensors.attach(model, optimizers)

    def stepped(self) -> None:
        """A step of the current phase begins, on this thread."""
        history = self._device.history
        if history is not None:
            progress = self._context.progress
            try:
                history.tag(progress.train_step, progress.phase.name)
            except Exception as error:  # noqa: BLE001  # the border to training
                self._fault("tag", error)

    # What observers, hooks and the recorder tell.

    def observed(
        self, device: int, requested: int, limit: int, free: int, device_type: str
    ) -> None:
        """See `observer.Witness`. On the thread that allocates."""
        began = time.perf_counter()
        self._reports.num_ooms += 1
        if not self._lock.acquire(blocking=False):
            self._reports.num_not_reported += 1
            return
        try:
            case = self._reports.case("oom", is_out_of_memory=True, stack=None)
            case.device_type, case.device = device_type, device
            case.known.update(
                report.observed_facts(
                    self._engine.device, device, requested, limit, free
                )
            )
            seen = self._seen = _Seen(case, None, None)
            if self._reports.has_budget():
                seen.number = self._reports.write(case, began)
            else:
                self._reports.num_not_reported += 1
            asked, left = in_words(requested), in_words(free)
            where = f"{device_type}:{device}"
            text = f"out of memory on {where}: {asked} asked for, {left} free"
            self._note(text, case, seen.number)
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("observer", error)
        finally:
            self._lock.release()

    def uncaught(self, error: BaseException, thread: str) -> None:
        """See `observer.Witness`."""
        is_main = threading.current_thread() is threading.main_thread()
        self._raised(error, thread, ends=is_main)

    def passed(self, error: BaseException) -> None:
        """An exception passes a span or a profiled function; it may yet be caught."""
        if is_out_of_memory(error):
            self._raised(error, report.thread_name(), ends=False)

    def ended(self, error: BaseException) -> None:
        """An exception ends the recording."""
        self._raised(error, report.thread_name(), ends=True)

    def signalled(self, name: str) -> None:
        """See `observer.Witness`."""
        began = time.perf_counter()
        step = self._context.progress.train_step
        self._engine.note("signal", {"signal": name}, step=step, user=True)
        if not self._lock.acquire(blocking=False):
            return  # in the middle of a report; what is written of it stays
        try:
            case = self._reports.case("signal", is_out_of_memory=False, stack=None)
            case.signal = name
            device = self._engine.device
            if device.index is not None:
                case.device_type, case.device = device.type, device.index
            case.known.update(report.raised_facts(device, device.index, ""))
            self._reports.write(case, began)
            self._engine.writer.flush(SIGNAL_SECONDS)
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault("signal", error)
        finally:
            self._lock.release()

    def close(self) -> None:
        """Watch no more, and leave Python and torch as they were."""
        turns.let_go(self)
        self._guarded("close", self._device.close)

    # Exceptions.

    def _raised(self, error: BaseException, thread: str, *, ends: bool) -> None:
        is_oom = is_out_of_memory(error)
        if not is_oom and not self._settings.exceptions:
            return
        if isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
            return
        began = time.perf_counter()
        if not self._lock.acquire(blocking=False):
            return
        try:
            self._take_error(error, thread, began, is_oom=is_oom, ends=ends)
        except Exception as fault:  # noqa: BLE001  # the border to training
            self._fault("exception", fault)
        finally:
            self._lock.release()

    def _take_error(
        self,
        error: BaseException,
        thread: str,
        began: float,
        *,
        is_oom: bool,
        ends: bool,
    ) -> None:
        text = text_of(error)
        key = id(error), type(error), text[:200]
        if key == self._last_key and self._seen is not None:
            self._make_up(self._seen, began, ends=ends)
            return
        self._last_key = key
        seen = self._seen
        if (
            is_oom
            and seen is not None
            and seen.key is None
            and _is_of(error, seen.case)
        ):
            seen.key = key
            seen.case.error = report.error_facts(error)
            self._make_up(seen, began, ends=ends)
            data = {"message": text[: oom.MAX_MESSAGE], oom.REPORT: seen.number}
            self._engine.note("oom_message", data, step=seen.case.step, user=True)
            return
        case = self._reports.case_of(error, thread, text, is_oom=is_oom)
        if is_oom:
            self._reports.num_ooms += 1
        seen = self._seen = _Seen(case, None, key)
        if ends or self._reports.has_budget():
            seen.number = self._reports.write(case, began)
        elif is_oom:
            self._reports.num_not_reported += 1
        if is_oom:
            values = self._engine.step_values() if ends else None
            self._note(text, case, seen.number, values)

    def _make_up(self, seen: _Seen, began: float, *, ends: bool) -> None:
        """Report after all what turns out to end the program."""
        if ends and seen.number is None:
            if seen.case.is_out_of_memory:
                self._reports.num_not_reported -= 1
            seen.number = self._reports.write(seen.case, began)

    # What becomes of it.

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
            values = {name: held for name, held in memory.items() if held is not None}
        data = {
            "message": text[: oom.MAX_MESSAGE],
            "values": values,
            oom.REPORT: number,
        }
        self._engine.note("oom", data, step=case.step, user=True)

    def _guarded(self, what: str, function: Callable[[], Any]) -> None:
        try:
            function()
        except Exception as error:  # noqa: BLE001  # the border to training
            self._fault(what, error)

    def _fault(self, what: str, error: BaseException) -> None:
        info = SourceInfo(name=f"oom.{what}", cost="")
        reason = f"{type(error).__name__}: {error}"
        remedy = "Switch it off with oom=False, and report this."
        self._engine.note_kind(info, "failed", reason, remedy)
        self._context.troubles.tell(
            f"oom {what}",
            "reporting of out-of-memory errors failed (%s); training and the rest of the"
            " recording go on. %s",
            what,
            remedy,
            error=error,
        )


def _is_of(error: BaseException, case: report.Case) -> bool:
    """Whether an exception is the one that torch's observer told of."""
    if not is_of_device(error, text_of(error)):
        return False
    said = sizes_in(text_of(error))
    asked = case.known.get("requested_bytes")
    if said.get("device", case.device) != case.device:
        return False
    told = said.get("requested_bytes")
    if told is None or asked is None:
        return True
    return bool(abs(told - asked) <= _SAME_SIZE * max(told, asked))
