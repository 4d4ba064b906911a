"""Memory by category through a trace, from torch's own analysis of its events.

torch works out what each tensor was for (`torch.profiler._memory_profiler`, private, and
no longer used by anything of torch's that is not deprecated); what was held when is added
up here. A torch whose analysis is another is not guessed at: the timeline is then absent
and says why. The page's analysis of the saved file says the same of what is allocated in
it, but cannot take its place: a file says nothing of tensors that were there before, and so
of parameters and the optimizer's states.

Only what happened during the trace is known, and of what was there before, those tensors
that the trace touched. Levels are thus what the trace saw, not what a device held in all.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memboard.collector.core.guard import Block
from memboard.collector.core.source import Unavailable
from memboard.collector.format.sizes import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from memboard.collector.format.records import CaptureTable, IntArray

CATEGORY_OF: Final = {
    "PARAMETER": "param",
    "OPTIMIZER_STATE": "optimizer",
    "INPUT": "input",
    "TEMPORARY": "temp",
    "ACTIVATION": "activation",
    "GRADIENT": "grad",
    "AUTOGRAD_DETAIL": "activation_grad",
}
"""torch's names, and those of `memboard.collector.format.memory`."""

UNKNOWN: Final = "other"

CATEGORIES: Final = (
    "param",
    "grad",
    "optimizer",
    "activation",
    "activation_grad",
    "input",
    "temp",
    UNKNOWN,
)
"""Columns of the table, in the order in which they are stacked."""

MAX_EVENTS: Final = 300_000
"""Operators and allocations; torch's analysis takes 50 us for each."""

MAX_EVENTS_WANTED: Final = 3_000_000
"""The same, where settings want a file of them: two minutes."""

MAX_POINTS: Final = 100_000
"""Moments of one device; of more, the highest of neighbours stands for them."""

_PREEXISTING, _CREATE, _INCREMENT, _DESTROY = (
    "PREEXISTING",
    "CREATE",
    "INCREMENT_VERSION",
    "DESTROY",
)


@dataclass(frozen=True, slots=True)
class DeviceTimeline:
    """Of one device: what it held after each moment at which that changed."""

    device: str
    """As torch writes it: `cuda:0`."""
    time_ns: IntArray  # Wall clock
    held: IntArray
    """By moment and category, bytes; never negative in sum but for what torch missed."""

    @property
    def total(self) -> IntArray:
        total: IntArray = self.held.sum(axis=1)
        return total


def memory_timelines(
    profile: Any, num_events: int, most: int = MAX_EVENTS
) -> list[DeviceTimeline]:
    """By device, from a stopped profiler with shapes, memory and stacks.

    Args:
        profile: torch's.
        num_events: that it has.
        most: of them, that may be analysed.

    Raises:
        Unavailable: this torch cannot tell; with the reason.
    """
    if num_events > most:
        raise Unavailable(
            f"the trace has {counted(num_events, 'event')}, and torch's analysis of more than"
            f" {most:,} takes too long",
            "Trace fewer steps (schedule.active), or set torch_profiler.memory_filename,"
            " which allows ten times as many.",
        )
    wrong: list[BaseException] = []
    with Block(wrong.append):  # private code of another torch may fail in any way
        analysis = import_module("torch.profiler._memory_profiler")
        memory_profile = analysis.MemoryProfile(profile.profiler.kineto_results)
        category = _categories(memory_profile)
        changes = [
            change
            for time_ns, action, (key, version), size in memory_profile.timeline
            for change in _changes(time_ns, action.name, key, version, size, category)
        ]
    for error in wrong:
        raise Unavailable(
            f"torch's analysis of memory failed: {type(error).__name__}: {error}",
            "torch 2.1 to 2.13 are known to have one that works.",
        ) from error
    return [_timeline(device, of) for device, of in _by_device(changes).items()]


def timeline_table(timelines: Iterable[DeviceTimeline]) -> CaptureTable:
    """The table `memory_timeline`: all devices, one after the other."""
    all_timelines = list(timelines)
    times = [timeline.time_ns for timeline in all_timelines]
    live_bytes = [timeline.held for timeline in all_timelines]
    empty = np.zeros((0, len(CATEGORIES)), np.int64)
    columns = np.concatenate([empty, *live_bytes])
    table: dict[str, Any] = {
        "time_ns": np.concatenate([np.zeros(0, np.int64), *times]),
        "device": tuple(
            timeline.device
            for timeline in all_timelines
            for _ in range(len(timeline.time_ns))
        ),
    }
    for index, category in enumerate(CATEGORIES):
        table[f"{category}_bytes"] = np.ascontiguousarray(columns[:, index])
    return table


def timeline_csv(timelines: Iterable[DeviceTimeline]) -> str:
    """The same table as comma-separated values, its columns named in the first line."""
    table = timeline_table(timelines)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    columns = (np.asarray(column).tolist() for column in table.values())
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _categories(memory_profile: Any) -> Any:
    """A function of tensor and version that gives the column."""
    category_of = memory_profile._categories  # noqa: SLF001  # all of it is private

    def category(key: Any, version: int) -> int:
        told = category_of.get(key, version) if hasattr(key, "id") else None
        name = CATEGORY_OF.get(getattr(told, "name", ""), UNKNOWN)
        return CATEGORIES.index(name)

    return category


def _changes(
    time_ns: int, action: str, key: Any, version: int, size: int, category: Any
) -> Iterable[tuple[str, int, int, int]]:
    """Device, time (-1: before the trace), category and bytes of what happened."""
    device, category_index = str(key.device), category(key, version)
    if action in (_PREEXISTING, _CREATE):
        yield device, time_ns, category_index, size
    elif action == _INCREMENT:
        # The same memory, which from now on is something else.
        yield device, time_ns, category_index, -size
        yield device, time_ns, category(key, version + 1), size
    elif action == _DESTROY:
        # Of what has no name torch gives the size signed, of tensors not.
        yield device, time_ns, category_index, -abs(size)
    else:
        raise ValueError(f"unknown action {action}")


def _by_device(
    changes: Iterable[tuple[str, int, int, int]],
) -> dict[str, list[tuple[int, int, int]]]:
    by_device: dict[str, list[tuple[int, int, int]]] = {}
    for device, *change in changes:
        by_device.setdefault(device, []).append((change[0], change[1], change[2]))
    return by_device


def _timeline(device: str, changes: list[tuple[int, int, int]]) -> DeviceTimeline:
    time_ns, category, size = np.array(changes, np.int64).T
    begun = time_ns[time_ns >= 0]
    time_ns = np.where(time_ns < 0, begun.min(initial=2**62), time_ns)
    if not len(begun):
        time_ns = np.zeros_like(time_ns)
    order = np.argsort(time_ns, kind="stable")
    time_ns, category, size = time_ns[order], category[order], size[order]
    moments, last = np.unique(time_ns[::-1], return_index=True)
    last = len(time_ns) - 1 - last
    steps = np.zeros((len(time_ns), len(CATEGORIES)), np.int64)
    steps[np.arange(len(time_ns)), category] = size
    live_bytes = np.cumsum(steps, axis=0)[last]
    return thinned(DeviceTimeline(device, moments, live_bytes))


def thinned(timeline: DeviceTimeline, most: int = MAX_POINTS) -> DeviceTimeline:
    """At most so many moments: of each stretch the highest, and both ends."""
    num = len(timeline.time_ns)
    if num <= most:
        return timeline
    total = timeline.total
    edges = np.linspace(1, num - 1, most - 1, dtype=np.int64).tolist()
    kept = [begin + int(np.argmax(total[begin:end])) for begin, end in pairwise(edges)]
    rows = np.array([0, *kept, num - 1], np.int64)
    return DeviceTimeline(timeline.device, timeline.time_ns[rows], timeline.held[rows])
