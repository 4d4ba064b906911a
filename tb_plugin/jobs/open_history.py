"""One history that was opened, and all that was derived of it so far.

What every picture needs is made when a history is opened, everything else when
it is first read, once, and kept as long as the history is.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import numpy as np

from memboard.tb_plugin.analysis.allocator import groups
from memboard.tb_plugin.analysis.allocator.lifetimes import OOM
from memboard.tb_plugin.analysis.allocator.replay import (
    Replay,
    ReplayTables,
    oddities_of,
)
from memboard.tb_plugin.analysis.allocator.selection import everything, selected
from memboard.tb_plugin.analysis.categories.attribution import attribution
from memboard.tb_plugin.analysis.categories.forward_modules import forward_modules
from memboard.tb_plugin.analysis.snapshots.marks import Marks, marks_of
from memboard.tb_plugin.analysis.snapshots.snapshot import DEFAULT_POOL, HOST
from memboard.tb_plugin.analysis.snapshots.steps import spans_of, steps_of
from memboard.tb_plugin.cache import Cache, held_bytes
from memboard.tb_plugin.contract.errors import NotFoundError
from memboard.tb_plugin.jobs.lazy import LazyCache, lazy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from memboard.tb_plugin.analysis.allocator.groups import Groups
    from memboard.tb_plugin.analysis.allocator.lifetimes import Levels, Lifetimes
    from memboard.tb_plugin.analysis.allocator.selection import Selection
    from memboard.tb_plugin.analysis.categories.attribution import Attribution
    from memboard.tb_plugin.analysis.categories.forward_modules import ForwardModules
    from memboard.tb_plugin.analysis.snapshots.marks import Marks
    from memboard.tb_plugin.analysis.snapshots.snapshot import DeviceSnapshot, Snapshot
    from memboard.tb_plugin.analysis.snapshots.steps import Spans, Steps
    from memboard.tb_plugin.api.memory.blocks import AllocationColour
    from memboard.tb_plugin.worker.cache import FileKey

    Ints: TypeAlias = npt.NDArray[Any]

_T = TypeVar("_T")

_US_PER_MS: Final = 1e3


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much memory a device has."""

    num_bytes: int
    device: int | None
    """None: nobody recorded which device it is."""


@dataclass(frozen=True, slots=True)
class DeviceReplay(ReplayTables):
    """All that was found out of one device; kept beside the snapshot's tables."""

    marks: Marks
    oddities: Mapping[str, int]
    attribution: Attribution | None
    """None: no page has needed it yet."""


class OpenDevice:
    """One device of a history."""

    def __init__(
        self,
        history: OpenHistory,
        device: DeviceSnapshot,
        device_replay: DeviceReplay | None,
    ) -> None:
        self.number = device.device
        # A circle would outlive it; whoever uses a device holds its history.
        self.history: OpenHistory = cast("OpenHistory", weakref.proxy(history))
        self._known = device_replay
        self.replay = Replay(history.snapshot, device, device_replay)
        self.lazy = LazyCache()
        self._selections = Cache()
        self._selecting = threading.Lock()
        """Held while one is made: whoever wants the same waits for it."""
        self.lives: Lifetimes = self.replay.lives
        self.num_events: int = self.replay.num_events
        # Every picture needs them.
        self.active: Levels = self.replay.active
        self.allocated: Levels = self.replay.allocated
        self.reserved: Levels = self.replay.reserved.levels

    @property
    def title(self) -> str:
        """Its name in sentences: `device 0`."""
        return "pinned host memory" if self.is_host else f"device {self.number}"

    @property
    def is_host(self) -> bool:
        """Whether it is pinned host memory, and no memory of a device."""
        return self.replay.device.is_host

    @cached_property
    def has_oom(self) -> bool:
        """Whether memory ran out on it."""
        return bool(len(self.replay.device.events.of_action(OOM)))

    @cached_property
    def num_before(self) -> int:
        """Allocations from before the first event: the first rows."""
        return int(np.searchsorted(self.lives.born, 0, "left"))

    @property
    def peak_moment(self) -> int:
        """The first event at which most was active; -1: before all."""
        return self.active.peak[1]

    @property
    def has_times(self) -> bool:
        """Whether it is known when its events were."""
        time_us = self.replay.device.events.time_us
        return time_us is not None and len(time_us) > 0

    @lazy
    def clock_us(self) -> Ints | None:
        """Microseconds since the first event, never going back; None without times."""
        time_us = self.replay.device.events.time_us
        if time_us is None or not len(time_us):
            return None
        return np.maximum.accumulate(time_us) - int(time_us[0])

    @lazy
    def steps(self) -> Steps:
        """Which step each event belongs to."""
        return steps_of(self.history.snapshot, self.replay.device, self.spans)

    @lazy
    def spans(self) -> Spans:
        return spans_of(self.history.snapshot, self.replay.device)

    @lazy
    def marks(self) -> Marks:
        """Events and spans that have names."""
        if self._known is not None:
            return self._known.marks
        texts = self.history.snapshot.texts
        return marks_of(self.replay.device, self.spans, self.steps, texts)

    @lazy
    def oddities(self) -> Mapping[str, int]:
        """What contradicts itself, in words, and how often."""
        replay = self._known
        return oddities_of(self.replay) if replay is None else replay.oddities

    @lazy
    def attribution(self) -> Attribution:
        replay = self._known
        if replay is not None and replay.attribution is not None:
            return replay.attribution
        return attribution(self.replay)

    @property
    def attribution_so_far(self) -> Attribution | None:
        """The same; None where nobody read it yet."""
        attribution: Attribution | None = self.lazy.peek("attribution")
        return attribution

    @lazy
    def categories(self) -> Groups:
        return groups.by_category(self.attribution.category)

    def groups(self, colour: AllocationColour) -> Groups:
        """Allocations by what they are coloured by."""
        return self.lazy.get(f"groups {colour}", lambda: self._groups(colour))

    @lazy
    def all_in_one(self) -> Groups:
        """All allocations in one group."""
        return groups.one_group(len(self.lives))

    def selection(self, stream: int | None, pool: int | None) -> Selection:
        """Allocations of a stream and a pool, rows of the snapshot's; None: of any.

        Raises:
            NotFoundError: the history has no such stream or pool.
        """
        snapshot = self.history.snapshot
        _check_row("stream", stream, len(snapshot.streams))
        _check_row("pool", pool, len(snapshot.pools))
        if stream is None and pool is None:
            return everything(self.replay)
        with self._selecting:
            selection: Selection | None = self._selections.get((stream, pool))
            if selection is None:
                selection = selected(self.replay, stream, pool)
                self._selections.put((stream, pool), selection, held_bytes(selection))
        return selection

    def time_ms(self, moment: int) -> float | None:
        """When an event was, since the epoch; None before all, and without times."""
        time_us = self.replay.device.events.time_us
        if time_us is None or not 0 <= moment < len(time_us):
            return None
        return float(time_us[moment]) / _US_PER_MS

    def step(self, moment: int) -> tuple[int | None, str]:
        """The step and the phase an event belongs to; None and empty: not known."""
        steps = self.steps
        if not 0 <= moment < len(steps.step):
            return None, ""
        step, phase = int(steps.step[moment]), int(steps.phase[moment])
        return (None if step < 0 else step), ("" if phase < 0 else steps.phases[phase])

    def _groups(self, colour: AllocationColour) -> Groups:
        history, lives = self.history, self.lives
        peak, num_events = self.peak_moment, self.num_events
        if colour == "category":
            stacks = history.snapshot.stacks
            return groups.with_site(self.categories, lives, stacks, peak)
        if colour == "module":
            modules = history.modules
            return groups.by_module(
                lives, modules.of_stack, modules.labels, peak, num_events
            )
        if colour == "stack":
            stacks = history.snapshot.stacks
            return groups.by_stack(lives, stacks, peak, num_events)
        if colour == "age":
            return groups.by_age(lives, self.clock_us, num_events)
        if colour == "stream":
            row, labels = self.replay.stream, history.stream_labels
        else:
            row, labels = self.replay.pool, history.pool_labels
        return groups.by_row(lives, row, labels, peak, num_events)


class OpenHistory:
    """A history and its devices."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        key: tuple[object, ...],
        capacity: Capacity | None = None,
        replays: Mapping[int, DeviceReplay] | None = None,
        cached_as: FileKey | None = None,
    ) -> None:
        """`key`: which content it is; `replays`: by device, what replaying it came to.

        `cached_as`: under which key that is cached; None: it is not worth it.
        """
        replays = {} if replays is None else replays
        self.key = key
        self.cached_as: Final = cached_as
        self.snapshot = snapshot
        self.is_known: Final = bool(replays)
        """Whether nothing of it was replayed now."""
        self._capacity = capacity
        self.devices = {
            device.device: OpenDevice(self, device, replays.get(device.device))
            for device in snapshot.devices
        }
        self.lazy = LazyCache()

    @cached_property
    def default_device(self) -> int | None:
        """Where memory ran out, else the one with the highest peak; None: there is none.

        Pinned host memory only where there is nothing else.
        """
        numbers = list(self.devices)
        if not numbers:
            return None
        peaks = {number: of.active.peak[0] for number, of in self.devices.items()}
        failed = {number for number, of in self.devices.items() if of.has_oom}
        return max(
            numbers,
            key=lambda number: (
                number != HOST,
                number in failed,
                peaks[number],
                -number,
            ),
        )

    @property
    def pinned_host_memory(self) -> OpenDevice | None:
        """What torch pinned of the host's memory; None where that was not recorded."""
        return self.devices.get(HOST)

    def pinned_bytes(self, device: OpenDevice, moment: int) -> float | None:
        """Host memory that was pinned just after an event of a device, reserved blocks too.

        None where it was not recorded, or not when the events were.
        """
        host = self.pinned_host_memory
        if host is None or host is device:
            return None
        if moment == device.num_events - 1:
            return float(host.replay.device.reserved_bytes)
        time_ms, times = device.time_ms(moment), host.replay.device.events.time_us
        if time_ms is None or times is None or not len(times):
            return None
        clock = np.maximum.accumulate(times)
        event = int(np.searchsorted(clock, time_ms * _US_PER_MS, "right")) - 1
        return float(host.reserved.at(np.array([event]))[0])

    def device(self, number: int | None) -> OpenDevice:
        """One device; the default one where none is named.

        Raises:
            NotFoundError: the history says nothing of it.
        """
        wanted = self.default_device if number is None else number
        device = None if wanted is None else self.devices.get(wanted)
        if device is None:
            device_names = ", ".join(map(str, self.devices)) or "none"
            raise NotFoundError(
                "The history holds nothing of such a device.",
                "no device" if wanted is None else f"device={wanted}",
                f"It has these: {device_names}.",
            )
        return device

    def capacity_of(self, number: int) -> float | None:
        """Bytes of a device; None where nobody recorded it."""
        capacity = self._capacity
        if capacity is None:
            return None
        # Who does not say which device it is speaks of the only one.
        devices = [device for device in self.devices if device != HOST]
        own = next(iter(devices), None) if capacity.device is None else capacity.device
        is_sure = capacity.device is not None or len(devices) == 1
        return float(capacity.num_bytes) if is_sure and own == number else None

    def once(self, key: str, make: Callable[[], _T]) -> _T:
        """What is made of the whole history once, and kept with it."""
        return self.lazy.get(key, make)

    @lazy
    def modules(self) -> ForwardModules:
        """By stack: whose forward it was in."""
        return forward_modules(self.snapshot.stacks)

    @lazy
    def warnings(self) -> tuple[str, ...]:
        """What is wrong with the file, and left out or shown all the same: sentences."""
        contradictions = Counter(self.snapshot.oddities)
        for device in self.devices.values():
            contradictions.update(device.oddities)
        left_out = self.snapshot.left_out
        named = ("Left out", left_out), ("The file contradicts itself", contradictions)
        return tuple(
            f"{subject}: {'; '.join(f'{detail} ({num:,})' for detail, num in counts.items())}."
            for subject, counts in named
            if counts
        )

    @property
    def stream_labels(self) -> tuple[str, ...]:
        """What the rows of `Snapshot.streams` are called."""
        return tuple(
            "default" if not pointer else f"0x{pointer & (2**64 - 1):x}"
            for pointer in self.snapshot.streams
        )

    @property
    def pool_labels(self) -> tuple[str, ...]:
        """What the rows of `Snapshot.pools` are called."""
        return tuple(
            "default" if pool == DEFAULT_POOL else f"({pool[0]}, {pool[1]})"
            for pool in self.snapshot.pools
        )

    def num_bytes(self) -> int:
        """What it holds in memory, without what is mapped from files."""
        return held_bytes(self)


def _check_row(subject: str, row: int | None, num: int) -> None:
    if row is not None and row >= num:
        raise NotFoundError(
            f"The history has no such {subject}.",
            f"{subject}={row}",
            f"It has {num}; they count from 0.",
        )
