"""Reports: everything that is known at the moment, at once on the disk, a snapshot behind.

A `Case` is what happened, in the words of whoever told; making a report adds what can be
looked up. Each look-up stands by itself, so that the report is written whatever fails.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from memboard.collector.clock.process_clock import now_ns
from memboard.collector.core.guard import Block
from memboard.collector.format import oom
from memboard.collector.format.records import Capture
from memboard.collector.format.sizes import sizes_in
from memboard.collector.history.tensors import TensorMap
from memboard.collector.oom import facts
from memboard.collector.oom.history import NO_HISTORY
from memboard.collector.oom.message import device_type_in, is_of_device, text_of
from memboard.collector.steps.spans.span import under_way

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from memboard.collector.core.guard import Guard
    from memboard.collector.engine import Engine
    from memboard.collector.format.oom import Frame, Origin
    from memboard.collector.functions.windows import Windows
    from memboard.collector.history.tensors import Tensors
    from memboard.collector.oom.device import WatchedDevice
    from memboard.collector.sources.device.accelerator import Device
    from memboard.collector.steps.progress import Progress

REPORT_SECONDS: Final = 0.8
"""Longest wait of an error for its report to be on the disk."""

_HOUR_SECONDS: Final = 3600.0

REPORTS_PER_HOUR: Final = 3
"""Of errors that the program caught; more are counted. One that ends it is always told."""

_MAX_NAMES: Final = 32


@dataclass(slots=True, kw_only=True)
class Case:
    """Something to be reported, as known the moment it happened."""

    origin: Origin
    is_out_of_memory: bool
    time_ns: int
    step: int | None
    phase: str
    stacks: list[list[Frame]]
    """Of the failing thread, and of the main one where that is another."""
    spans: Sequence[str]
    functions: Sequence[str]
    device_type: str = "cpu"
    device: int | None = None
    known: dict[str, Any] = field(default_factory=dict)
    """More of the meta. Of an exception its facts: it itself would keep tensors alive."""

    @property
    def function(self) -> str:
        """The innermost function or span under way."""
        names = self.spans or self.functions
        return names[-1] if names else ""


class Reports:
    """The reports of one recorder. Its callers hold the handler's lock."""

    def __init__(
        self,
        engine: Engine,
        progress: Progress,
        windows: Windows,
        device: WatchedDevice,
        guard: Guard,
    ) -> None:
        self.tensors = TensorMap(engine.device.type)
        self.tensors.known = windows.named_storages
        self.num_ooms = 0
        self.num_not_reported = 0
        self._device = device
        self._guard = guard
        self._engine = engine
        self._progress = progress
        self._functions = windows.functions
        self._num_reports = 0
        self._reported: deque[float] = deque()
        """When reports were made, in the last hour."""

    def case(
        self, origin: Origin, *, is_out_of_memory: bool, stack: Any = None
    ) -> Case:
        """What is known now; `stack` of the failing thread, None: this one's."""
        progress = self._progress
        stacks = [facts.calling_frames() if stack is None else stack]
        main = facts.main_frames()
        if main is not None:
            stacks.append(main)
        return Case(
            origin=origin,
            is_out_of_memory=is_out_of_memory,
            time_ns=now_ns(),
            step=progress.train_step,
            phase=progress.phase.name,
            stacks=stacks,
            # A part that is timed by itself lies within the program's span of that name.
            spans=tuple(span for span, _ in groupby(under_way())),
            functions=tuple(self._functions()),
            known={"thread": threading.current_thread().name},
        )

    def case_of(
        self, error: BaseException, thread: str, text: str, *, is_oom: bool
    ) -> Case:
        """What is known of an exception, whose text is `text`."""
        stack = facts.traceback_frames(error.__traceback__)
        case = self.case("exception", is_out_of_memory=is_oom, stack=stack)
        case.phase = self._progress.phase_of(error)
        device = self._engine.device
        index = sizes_in(text).get("device", device.index) if is_oom else device.index
        if is_oom and not is_of_device(error, text):
            index = None
        if index is not None:
            kind = device.type if device.index is not None else device_type_in(text)
            case.device_type, case.device = kind or device.type, index
        case.known.update(thread=thread, exception=error_facts(error))
        case.known.update(raised_facts(device, index, text if is_oom else ""))
        return case

    def has_budget(self) -> bool:
        """Whether another report may be made in this hour."""
        now = time.monotonic()
        while self._reported and now - self._reported[0] > _HOUR_SECONDS:
            self._reported.popleft()
        return len(self._reported) < REPORTS_PER_HOUR

    def write(self, case: Case, began: float) -> int:
        """Write the report and wait for it, then take the snapshot; its number."""
        self._num_reports += 1
        number = self._num_reports
        self._reported.append(time.monotonic())
        history = self._device.history if case.device is not None else None
        tensors, holders_meta, tables = self._looked_at(case)
        tables["stack"] = oom.stack_table(case.stacks)
        recorded = {**NO_HISTORY, "why_not": "there is no device"}
        if history is not None:
            with Block(lambda error: recorded.update(why_not=_why(error))):
                recorded = history.facts()
        identity = self._engine.writer.identity
        capture = Capture(
            kind=oom.KIND,
            time_ns=case.time_ns,
            step=case.step,
            phase=case.phase,
            function=case.function,
            iteration=0,
            label=case.origin,
            meta={
                **oom.META,
                oom.REPORT: number,
                "origin": case.origin,
                "is_out_of_memory": case.is_out_of_memory,
                "device_type": case.device_type,
                "device": case.device,
                "exception": None,
                "signal": None,
                "spans": list(case.spans)[:_MAX_NAMES],
                "functions": list(case.functions)[:_MAX_NAMES],
                "host": facts.host_memory(),
                **case.known,
                "num_ooms": self.num_ooms,
                "num_not_reported": self.num_not_reported,
                "last_step": facts.last_step(self._engine.last_step()),
                "allocator": facts.allocator_facts(self._device.side),
                "history": recorded,
                "rank": identity.rank,
                "local_rank": identity.local_rank,
                "world_size": identity.world_size,
                "host_name": identity.host,
                "holders": holders_meta,
                "report_us": round((time.perf_counter() - began) * 1e6),
            },
            tables=tables,
        )
        self._engine.writer.put_urgent(capture, REPORT_SECONDS)
        if history is not None:
            with self._guard("snapshot"):
                history.take(
                    case.origin,
                    number,
                    tensors,
                    step=case.step,
                    phase=case.phase,
                    function=case.function,
                )
        return number

    def _looked_at(
        self, case: Case
    ) -> tuple[Tensors | None, dict[str, Any], dict[str, Any]]:
        """Names of tensors; who holds memory; and tables of both, as things are now."""
        holders_meta: dict[str, Any] = {
            "live_bytes": None,
            "num_blocks": None,
            "source": "",
            "why_not": "there is no device",
        }
        tables: dict[str, Any] = {}
        tensors = None
        with Block(lambda error: holders_meta.update(why_not=_why(error))):
            tensors = self.tensors.found()
            if tensors is not None:
                index = case.device if case.device_type != "cpu" else None
                tables["categories"] = oom.category_table(tensors.sums(index))
            history = self._device.history
            if history is not None and case.device is not None:
                segments, holders_meta["why_not"] = history.segments()
                if segments is not None:
                    holders = facts.holders_of(segments, case.device, tensors)
                    tables.update(oom.holder_tables(holders.rows))
                    why_not = (
                        "" if holders.is_whole else "there are too many live blocks"
                    )
                    holders_meta.update(
                        live_bytes=holders.live_bytes,
                        num_blocks=holders.num_blocks,
                        source="segments",
                        why_not=why_not,
                    )
        return tensors, holders_meta, tables


def _why(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def error_facts(error: BaseException) -> dict[str, str]:
    """What is kept of an exception."""
    kind = type(error)
    return {
        "type": kind.__qualname__,
        "module": str(kind.__module__),
        "message": text_of(error)[: oom.MAX_MESSAGE],
    }


def observed_facts(
    device: Device, index: int, requested: int, limit: int, free: int
) -> dict[str, Any]:
    """What torch's observer is told, and the counters of the device at that moment."""
    _, total = facts.memory_info(device, index)
    memory = facts.memory_of(device, index)
    return {
        "requested_bytes": requested,
        "device_free_bytes": free,
        "device_total_bytes": total if total is not None else limit,
        "device_limit_bytes": limit if total is not None and limit < total else None,
        "memory": memory,
        "other_bytes": _other(total, free, memory),
    }


def raised_facts(device: Device, index: int | None, text: str) -> dict[str, Any]:
    """What an exception's text says, and the counters as they are by now."""
    free, total = facts.memory_info(device, index)
    memory = facts.memory_of(device, index)
    facts_of_error: dict[str, Any] = {
        "device_free_bytes": free,
        "device_total_bytes": total,
        "memory": memory,
    }
    sizes = sizes_in(text)
    # The text tells of the moment itself; by now memory may have been freed.
    parsed: list[str] = [
        figure for figure in ("requested_bytes", "device_free_bytes") if figure in sizes
    ]
    parsed += [
        figure
        for figure in ("device_total_bytes", "device_limit_bytes")
        if figure in sizes and facts_of_error.get(figure) is None
    ]
    facts_of_error.update({figure: sizes[figure] for figure in parsed})
    if memory is None and "allocated_bytes" in sizes:
        names = [n for n in ("allocated_bytes", "reserved_bytes") if n in sizes]
        memory = {**dict.fromkeys(oom.MEMORY), **{n: sizes[n] for n in names}}
        facts_of_error["memory"] = memory
        parsed += names
    facts_of_error["parsed"] = parsed
    facts_of_error["other_bytes"] = _other(
        facts_of_error["device_total_bytes"],
        facts_of_error["device_free_bytes"],
        memory,
    )
    return facts_of_error


def _other(
    total: int | None, free: int | None, memory: Mapping[str, int | None] | None
) -> int | None:
    """What is in use, and not by torch's allocator in this process."""
    reserved = None if memory is None else memory["reserved_bytes"]
    if total is None or free is None or reserved is None:
        return None
    return max(0, total - free - reserved)
