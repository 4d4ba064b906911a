"""One report: everything that is known at the moment, as the capture that goes to disk.

A `Case` is what happened, in the words of whoever told; making a report adds what can be
looked up. Each look-up stands by itself, so that the report is written whatever fails.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from collector.format import oom
from collector.format.oom_message import sizes_in
from collector.format.records import Capture
from collector.oom import facts
from collector.oom.message import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.format.oom import Frame, Origin
    from collector.history.tensors import Tensors
    from collector.sources.device.accelerator import Device

_MAX_NAMES: Final = 32


@dataclass(slots=True, kw_only=True)
class Case:
    """Something to be reported, as known the moment it happened."""

    origin: Origin
    is_out_of_memory: bool
    time_ns: int
    step: int | None
    phase: str
    thread: str
    stacks: list[list[Frame]]
    """Of the failing thread, and of the main one where that is another."""
    spans: Sequence[str]
    functions: Sequence[str]
    device_type: str = "cpu"
    device: int | None = None
    error: Mapping[str, str] | None = None
    """The exception's type, module and message; it itself would keep tensors alive."""
    signal: str | None = None
    known: dict[str, Any] = field(default_factory=dict)
    """More of the meta."""


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
    found: dict[str, Any] = {
        "device_free_bytes": free,
        "device_total_bytes": total,
        "memory": memory,
    }
    sizes = sizes_in(text)
    # The text tells of the moment itself; by now memory may have been freed.
    parsed: list[str] = [
        name for name in ("requested_bytes", "device_free_bytes") if name in sizes
    ]
    parsed += [
        name
        for name in ("device_total_bytes", "device_limit_bytes")
        if name in sizes and found.get(name) is None
    ]
    found.update({name: sizes[name] for name in parsed})
    if memory is None and "allocated_bytes" in sizes:
        names = [n for n in ("allocated_bytes", "reserved_bytes") if n in sizes]
        memory = {**dict.fromkeys(oom.MEMORY), **{n: sizes[n] for n in names}}
        found["memory"] = memory
        parsed += names
    found["parsed"] = parsed
    found["other_bytes"] = _other(
        found["device_total_bytes"], found["device_free_bytes"], memory
    )
    return found


def thread_name() -> str:
    """Of the thread that runs; autograd's have one that Python makes up."""
    return threading.current_thread().name


def make_report(
    case: Case,
    number: int,
    *,
    tensors: Tensors | None,
    segments: Sequence[dict[str, Any]] | None,
    why_no_segments: str,
    began: float,
) -> Capture:
    """The report numbered `number`; `began`: when making it was begun, monotonic."""
    tables: dict[str, Any] = {"stack": oom.stack_table(case.stacks)}
    meta: dict[str, Any] = {
        **oom.META,
        oom.REPORT: number,
        "origin": case.origin,
        "is_out_of_memory": case.is_out_of_memory,
        "device_type": case.device_type,
        "device": case.device,
        "exception": case.error,
        "signal": case.signal,
        "thread": case.thread,
        "spans": list(case.spans)[:_MAX_NAMES],
        "functions": list(case.functions)[:_MAX_NAMES],
        "host": facts.host_memory(),
        **case.known,
    }
    held: dict[str, Any] = {
        "live_bytes": None,
        "num_blocks": None,
        "source": "",
        "why_not": why_no_segments,
    }
    if segments is not None:
        with suppress(Exception):  # a structure that some torch has changed
            found = facts.holders_of(list(segments), case.device, tensors)
            tables.update(oom.holder_tables(found.rows))
            held = {
                "live_bytes": found.live_bytes,
                "num_blocks": found.num_blocks,
                "source": "segments",
                "why_not": "" if found.is_whole else "there are too many live blocks",
            }
    meta["holders"] = held
    if tensors is not None:
        index = case.device if case.device_type != "cpu" else None
        tables["categories"] = oom.category_table(tensors.sums(index))
    meta["report_us"] = round((time.perf_counter() - began) * 1e6)
    return Capture(
        kind=oom.KIND,
        time_ns=case.time_ns,
        step=case.step,
        phase=case.phase,
        function=function_of(case),
        iteration=0,
        label=case.origin,
        meta=meta,
        tables=tables,
    )


def function_of(case: Case) -> str:
    """The innermost function or span under way."""
    for names in (case.spans, case.functions):
        if names:
            return names[-1]
    return ""


def _other(
    total: int | None, free: int | None, memory: Mapping[str, int | None] | None
) -> int | None:
    """What is in use, and not by torch's allocator in this process."""
    reserved = None if memory is None else memory["reserved_bytes"]
    if total is None or free is None or reserved is None:
        return None
    return max(0, total - free - reserved)
