"""torch's functions for the allocator's history, and which of them this torch has.

The one way to them: tests hand in functions of their own. All are private to torch and
change between releases, so each is looked at by its signature; what is missing is said
(`absences`) and done without, where that makes sense.
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from memboard.collector.core.source import Unavailable
from memboard.collector.sources.device.accelerator import find_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_ENTRY_POINTS: Final = {
    "cuda": ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy"),
    "xpu": ("_xpu_recordMemoryHistory",),
}
"""By device type: functions of `torch._C` through which recording is turned on and off."""


class Absence(NamedTuple):
    """Something this torch cannot do for us."""

    what: str
    reason: str
    remedy: str


class Allocator:
    """One kind of device's allocator. Methods raise what torch raises."""

    def __init__(
        self,
        *,
        record: Callable[..., Any],
        snapshot: Callable[[], Any],
        memory_snapshot: Callable[..., Any] | None = None,
        set_metadata: Callable[[Any], Any] | None = None,
        get_metadata: Callable[[], Any] | None = None,
        is_recording: Callable[[], Any] | None = None,
        annotate: Callable[[int, str], Any] | None = None,
        pinned_stats: Callable[[], Mapping[str, Any]] | None = None,
        in_use: Callable[[], bool] = lambda: True,
        entry_points: Sequence[tuple[Any, str]] = (),
        device_type: str = "cuda",
        version: str = "",
    ) -> None:
        """Take torch's `_record_memory_history`, `_snapshot` and what else there is.

        Args:
            record: must be able to bound what it keeps (`max_entries`).
            snapshot: returns the structure that torch dumps.
            memory_snapshot: returns segments alone, and can leave out the traces.
            set_metadata: tags what is allocated from now on, on this thread.
            get_metadata: the tag as it is now; without it none is set.
            is_recording: whether anybody has turned recording on.
            annotate: adds a text to the history of what lies at an address.
            pinned_stats: counters of the allocator of pinned host memory.
            in_use: whether the process uses the device already; all else would start it.
            entry_points: owner and name of the functions that turn recording on and off.
            device_type: cuda, xpu ...
            version: torch's, for the words.

        Raises:
            Unavailable: recording could not be bounded.
        """
        self.device_type = device_type
        self.in_use = in_use
        self.entry_points = tuple(entry_points)
        self._record = record
        self._record_takes = _parameters(record)
        self._snapshot = snapshot
        self._memory_snapshot = memory_snapshot
        self._is_recording = is_recording
        self._annotate = annotate
        self._pinned_stats = pinned_stats
        self._set_metadata = set_metadata if get_metadata is not None else None
        self._get_metadata = get_metadata
        self._torch = f"torch {version}".strip()
        if not self._takes("max_entries"):
            raise Unavailable(
                f"{self._torch} cannot bound the history it keeps",
                "Use torch 2.1 or newer.",
            )
        self.absences = tuple(self._find_absences())

    @property
    def can_tag(self) -> bool:
        """Whether allocations can be tagged."""
        return self._set_metadata is not None

    @property
    def can_annotate(self) -> bool:
        """Whether allocations that exist already can be given a text."""
        return self._annotate is not None

    @property
    def records_pinned(self) -> bool:
        """Whether pinned host memory is recorded too."""
        return "record_pinned_host_memory" in (self._record_takes or ())

    @property
    def can_leave_out_traces(self) -> bool:
        """Whether the segments can be had without the events, at a thousandth."""
        function = self._memory_snapshot
        return function is not None and "include_traces" in (
            _parameters(function) or ()
        )

    @property
    def says_whether_recording(self) -> bool:
        """Whether `is_recording` is a question to torch and not a look at its events."""
        return self._is_recording is not None

    def is_recording(self) -> bool:
        """Whether torch records now, whoever asked it to."""
        if self._is_recording is not None:
            return bool(self._is_recording())
        return any(self.snapshot().get("device_traces", ()))

    def start(
        self, *, max_entries: int, stacks: str, context: str | None = "all"
    ) -> None:
        """Have torch record allocations and frees, or go on with other stacks.

        Of pinned host memory too, where it can: that would be turned off by a call that
        does not ask for it.

        Args:
            max_entries: that torch keeps; not to be changed while it records.
            stacks: python or all.
            context: which events have a stack: all, alloc, or None for no event.
        """
        wanted = {"context": context, "stacks": stacks, "max_entries": max_entries}
        accepted = {key: wanted[key] for key in wanted if self._takes(key)}
        if self.records_pinned:
            accepted["record_pinned_host_memory"] = True
        self._record("all", **accepted)

    def stop(self) -> None:
        """Have torch stop recording and forget what it recorded."""
        self._record(None)

    def snapshot(self) -> dict[str, Any]:
        """Segments and events as torch dumps them: a structure of the caller's own."""
        taken = self._snapshot()
        return taken if isinstance(taken, dict) else {"segments": taken}

    def segments(self) -> dict[str, Any]:
        """The segments without the events; see `can_leave_out_traces`."""
        if self._memory_snapshot is None:
            return self.snapshot()
        if sys.version_info < (3, 12):
            # torch 2.13 gives away a reference to what it is asked with at each call, and
            # here False can die of it, and Python with it. One too many does no harm.
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(False))
        return {"segments": self._memory_snapshot(include_traces=False)}

    def annotate(self, address: int, text: str) -> None:
        """Add a text to the history of the allocation that begins at an address."""
        if self._annotate is not None:
            self._annotate(address, text)

    def num_pinned(self) -> int | None:
        """Allocations of pinned host memory so far; None: torch does not count them."""
        if self._pinned_stats is None:
            return None
        number = self._pinned_stats().get("active_requests.allocated")
        return None if number is None else int(number)

    def tag(self) -> Any:
        """What this thread's allocations are tagged with; "" where it is nothing."""
        return "" if self._get_metadata is None else self._get_metadata()

    def set_tag(self, tag: Any) -> None:
        """Tag this thread's allocations from now on; "" for nothing."""
        if self._set_metadata is not None:
            self._set_metadata(tag)

    def _takes(self, parameter: str) -> bool:
        return self._record_takes is None or parameter in self._record_takes

    def _find_absences(self) -> list[Absence]:
        absences = []
        if not self._takes("stacks"):
            reason = f"{self._torch} records C++ frames whether wanted or not"
            absences.append(Absence("stacks", reason, "Use a newer torch."))
        if not self.can_tag:
            reason = f"{self._torch} cannot tag allocations with step and phase"
            remedy = "Use torch 2.10 or newer, on a CUDA or ROCm device."
            absences.append(Absence("metadata", reason, remedy))
        if not self.can_leave_out_traces:
            reason = f"{self._torch} gives the segments only along with all events"
            absences.append(Absence("segments", reason, "Use torch 2.12 or newer."))
        if not self.records_pinned:
            reason = f"{self._torch} does not record pinned host memory"
            remedy = "Use torch 2.14 or newer, on a CUDA or ROCm device."
            absences.append(Absence("pinned", reason, remedy))
        if not self.can_annotate:
            reason = f"{self._torch} cannot note which tensor an allocation holds"
            remedy = "Use torch 2.14 or newer, on a CUDA or ROCm device."
            absences.append(Absence("annotations", reason, remedy))
        if self._is_recording is None:
            reason = f"{self._torch} does not say whether history is being recorded"
            absences.append(Absence("recording", reason, "Use a newer torch."))
        return absences


def find_allocator(choice: str | int) -> Allocator:
    """The allocator of the device that the setting `device` names.

    Raises:
        Unavailable: there is no such device, or torch keeps no history of it.
    """
    device = find_device(choice, local_rank=0)
    if device.absent is not None:
        raise device.absent
    import torch

    memory = getattr(getattr(torch, device.type, None), "memory", None)
    record = getattr(memory, "_record_memory_history", None)
    snapshot = getattr(memory, "_snapshot", None)
    if record is None or snapshot is None:
        raise Unavailable(
            f"torch {torch.__version__} keeps no allocator history for {device.type}",
            "It does for CUDA and ROCm, and from 2.11 for XPU.",
        )
    c = torch._C  # noqa: SLF001
    names = _ENTRY_POINTS.get(device.type, ())
    return Allocator(
        record=record,
        snapshot=snapshot,
        memory_snapshot=getattr(memory, "memory_snapshot", None),
        set_metadata=getattr(memory, "_set_memory_metadata", None),
        get_metadata=getattr(memory, "_get_memory_metadata", None),
        is_recording=getattr(c, f"_{device.type}_isHistoryEnabled", None),
        annotate=getattr(c, f"_{device.type}_annotateMemory", None),
        pinned_stats=getattr(memory, "host_memory_stats", None),
        in_use=device.in_use,
        entry_points=[(c, name) for name in names if hasattr(c, name)],
        device_type=device.type,
        version=str(torch.__version__),
    )


def _parameters(function: Callable[..., Any]) -> frozenset[str] | None:
    """Names it takes; None where it takes any, or does not say."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return None
    return frozenset(parameters)
